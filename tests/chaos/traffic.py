"""Hostile traffic against real servers: killed under load, fuzzed, starved by slow clients, overloaded."""

import contextlib
import json
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import numpy as np

from apps.serve.test_app import TABLE, ask_until_answered, column, make_model, rows_of, serving
from chaos.kills import PATIENCE
from chaos.rows import Row, each, expect
from gaussianmlr.apps.annotate import Store
from gaussianmlr.data.inputs import scaled
from support.commanding import make_table
from support.paging import digit_model, running

LABELS = ("mountain", "sky", "sea", "sun")
CLIENTS = 12
BOUND = 20.0  # seconds in which a normal client must have its answer
CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"


# Annotations


def _annotate_words(home):
    if not (home / "labels.txt").exists():
        make_table(3000).drop(columns=["ranking", "split"]).to_csv(home / "rows.csv", index=False)
        (home / "labels.txt").write_text("\n".join(LABELS))
    words = ("-m", "gaussianmlr", "annotate", home / "rows.csv", "--labels", home / "labels.txt")
    return (*words, "--out", home / "store", "--port", 0)


class Ranker(threading.Thread):
    """A client that ranks one item after another, and repeats what was not acknowledged."""

    def __init__(self, number, office):
        super().__init__(daemon=True)
        self.number, self.office, self.http = number, office, httpx.Client(timeout=PATIENCE, verify=False)
        self.person, self.acknowledged, self.tried, self.problem = None, {}, {}, None

    def run(self):
        item = 0
        while not self.office.closed.is_set() and self.problem is None:
            if self.person is None:
                found = self._post("/api/people", {"name": f"person {self.number}"})
                self.person = None if found is None else found["id"]
                continue
            item += 1
            random = self.office.plan.random("annotate", self.number, item)
            labels = random.sample(LABELS, random.randint(0, len(LABELS)))
            order = [[label] for label in labels]
            self.tried[item] = " > ".join(labels)
            given = {"person": self.person, "token": f"client-{self.number}-{item}", "order": order}
            while not self.office.closed.is_set() and self.problem is None:
                found = self._post(f"/api/items/{item}/answers", given)
                if found is not None:
                    self.acknowledged[item] = found["saved"]["ranking"]
                    break

    def _post(self, path, body):
        """The answer, or None where there was none."""
        url = self.office.url
        if url is None:
            time.sleep(0.01)
            return None
        try:
            found = self.http.post(f"{url}{path}", json=body)
        except httpx.TimeoutException:
            self.problem = f"no answer to {path} within {PATIENCE:.0f} s"
            return None
        except httpx.TransportError:  # the server was killed
            time.sleep(0.01)
            return None
        if found.status_code != 200:
            self.problem = f"{path}: {found.status_code} {found.text[:300]}"
            return None
        return found.json()


class Office:
    """Where the clients find the server, while there is one."""

    def __init__(self, plan):
        self.plan, self.url, self.closed = plan, None, threading.Event()

    def wait_for_answers(self, clients):
        """Wait until a client was answered by the server that is there now."""
        before, began = sum(len(one.acknowledged) for one in clients), time.monotonic()
        while sum(len(one.acknowledged) for one in clients) <= before:
            over = time.monotonic() - began > PATIENCE
            if over or all(one.problem for one in clients):
                return
            time.sleep(0.01)


def annotate(plan):
    """Kill `gmlr annotate` under 12 clients: no acknowledged answer is lost, none counts twice."""
    row = Row("annotate", f"SIGKILL, SIGTERM of `gmlr annotate` under {CLIENTS} clients", "", plan.count(24))
    row.promise = "acknowledged answers are stored, once"
    home = plan.space("annotate")
    words = _annotate_words(home)
    office = Office(plan)
    clients = [Ranker(number, office) for number in range(CLIENTS)]
    for client in clients:
        client.start()
    try:
        for case in range(row.planned):
            if plan.is_over:
                break
            random = plan.random("annotate", case)
            sign = random.choice((signal.SIGKILL, signal.SIGKILL, signal.SIGTERM))
            with running(*words) as server:
                office.url = server.url
                office.wait_for_answers(clients)
                time.sleep(random.uniform(0, 2))
                code, errors = server.stop(sign)
                office.url = None
            row.done += 1
            row.counts[sign.name] += 1
            if "Traceback" in errors or (sign == signal.SIGTERM and code != 0):
                row.fail(plan, "crashed", case, f"exit code {code}: {errors}")
            _check_answers(plan, row, case, home / "store", clients)
    finally:
        office.closed.set()
        for client in clients:
            client.join()
    row.counts["acknowledged"] = sum(len(client.acknowledged) for client in clients)
    for client in clients:
        if client.problem:
            kind = "hung" if "no answer" in client.problem else "wrong"
            row.fail(plan, kind, f"client {client.number}", client.problem)
    if row.counts["acknowledged"] == 0:
        row.fail(plan, "wrong", "all", "nothing was acknowledged, so nothing was shown")
    return row


def _check_answers(plan, row, case, folder, clients):
    """Every acknowledged answer is in the store, every stored one was sent, and each counts once."""
    with Store(folder) as store:
        held = {(one.person, one.item): one.ranking for one in store.answers()}
        doubled = [key for key in held if len(store.history(key[1], key[0])) != 1]
    for client in clients:
        for item, ranking in list(client.acknowledged.items()):
            if held.get((client.person, item)) != ranking:
                row.fail(plan, "lost", case, f"{ranking!r} of client {client.number}, item {item}")
    sent = {(client.person, item): text for client in clients for item, text in list(client.tried.items())}
    for key, ranking in held.items():
        if sent.get(key) != ranking:
            row.fail(plan, "wrong", case, f"(person, item) {key} holds {ranking!r}, and nobody said so")
    if doubled:
        row.fail(plan, "wrong", case, f"kept twice: {doubled[:5]}")


# Schemas


def http(plan):
    """Requests that schemathesis makes from the OpenAPI documents of `serve`, `play` and `annotate`."""
    row = Row("http", "requests by schemathesis, three OpenAPI documents", "", 3)
    row.promise = "no 5xx, answers as documented"
    home = plan.space("http")
    make_model(TABLE).save(home / "table")
    digit_model().save(home / "digits")
    play = ("play", "--model", home / "digits", "--digits", "embedded", "--port", 0)
    servers = {
        "serve": ("-m", "gaussianmlr", "serve", home / "table", "--port", 0),
        "play": ("-m", "gaussianmlr", *play),
        "annotate": _annotate_words(home),
    }
    examples = plan.count(150)

    def attack(name):
        with running(*servers[name]) as server:
            if name == "annotate":  # so that some requests get past the first check
                httpx.post(f"{server.url}/api/people", json={"name": "Ann"}, timeout=PATIENCE)
            found = _schemathesis(plan, name, server.url, home, examples)
            alive = httpx.get(f"{server.url}/openapi.json", timeout=PATIENCE).status_code
            code, errors = server.stop()
        expect(alive == 200, "crashed", f"{name}: {alive} afterwards")
        expect(code == 0, "crashed", f"{name} ended with {code}: {errors}")
        for problem in found["problems"]:
            row.fail(plan, "wrong", name, problem)
        return {f"requests to {name}": found["requests"]}

    each(plan, row, servers, attack)
    if row.done == row.planned:
        row.planned = row.done = sum(row.counts.values())
    return row


def _schemathesis(plan, name, url, home, examples):
    """How many requests were sent, and what was wrong with the answers."""
    report = home / f"{name}.json"
    words = [Path(sys.executable).with_name("schemathesis"), "run", f"{url}/openapi.json"]
    words += ["--checks", CHECKS, "--phases", "examples,coverage,fuzzing", "--max-examples", examples]
    words += ["--seed", plan.seed, "--request-timeout", BOUND, "--continue-on-failure", "--no-shrink"]
    words += ["--generation-database", "none", "--suppress-health-check", "all", "--warnings", "off"]
    words += ["--no-color", "--report-json-path", report]
    try:
        done = subprocess.run(
            [str(word) for word in words], capture_output=True, text=True, timeout=600, cwd=home
        )
    except subprocess.TimeoutExpired:
        expect(False, "hung", f"{name}: no end of schemathesis")
    expect(done.returncode in (0, 1), "crashed", f"{name}: {done.stdout[-1500:]} {done.stderr[-500:]}")
    found = json.loads(report.read_text())
    problems = [json.dumps(one) for one in (*found["failures"], *found["errors"])]
    expect(problems or done.returncode == 0, "crashed", f"{name}: {done.stdout[-1500:]}")
    return {"requests": found["test_cases"]["generated"], "problems": problems}


# Slow clients


@contextlib.contextmanager
def _many_files(count):
    """Let this process open so many files; a server started before has the usual bound."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, count)), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@contextlib.contextmanager
def _usual_files():
    """1,024 open files, as most systems allow a server."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 1024), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


class Dripping(threading.Thread):
    """Clients that send a body byte by byte; those that are refused try again."""

    def __init__(self, port, count):
        super().__init__(daemon=True)
        self.port, self.count, self.ended = port, count, threading.Event()

    def run(self):
        head = b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        head += b"Content-Length: 1000\r\n\r\n{"
        sockets = []
        while not self.ended.wait(0.5):
            alive = []
            for one in sockets:
                try:
                    one.sendall(b" ")
                    alive.append(one)
                except OSError:
                    one.close()
            sockets = alive
            with contextlib.suppress(OSError):
                while len(sockets) < self.count:
                    sockets.append(_connect(self.port, head))
        for one in sockets:
            one.close()


def _connect(port, data):
    found = socket.create_connection(("127.0.0.1", port), timeout=2)
    try:
        found.sendall(data)
    except OSError:
        found.close()
        raise
    return found


def slow(plan):
    """1,100 half-sent requests and 60 slow bodies, while normal clients ask."""
    row = Row("slow", "1,100 half-sent requests and 60 slow bodies", "", plan.count(300))
    row.promise = f"normal clients are answered within {BOUND:.0f} s"
    home = plan.space("slow")
    model = make_model(TABLE)
    model.save(home / "table")
    with contextlib.ExitStack() as stack:
        with _usual_files():
            server = stack.enter_context(serving(home / "table", "--requests", 16))
        stack.enter_context(_many_files(4096))
        port = urlsplit(server.url).port
        dripping = Dripping(port, 60)
        dripping.start()
        halves = []
        for _ in range(1100):
            try:
                halves.append(_connect(port, b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-"))
            except OSError:  # a server may refuse
                row.counts["half-sent refused"] += 1
        row.counts["half-sent"] = len(halves)
        try:
            each(plan, row, range(row.planned), lambda case: _ask_normally(server.url, model, case, row))
        finally:
            dripping.ended.set()
            dripping.join()
            for one in halves:
                one.close()
        code, errors = server.stop()
        if code != 0 or "Traceback" in errors:
            row.fail(plan, "crashed", "the end", f"exit code {code}: {errors}")
    return row


def _ask_normally(url, model, case, row):
    """A client that does not know of the others: its own answer within the bound."""
    rows, began = rows_of(1 + case % 5, seed=case), time.monotonic()
    found = _ask(f"{url}/predict", {"rows": rows.tolist()})
    took = time.monotonic() - began
    _compare(found.json(), rows, model)
    if case % 10 == 0:  # and what a load balancer asks
        _ask(f"{url}/ready", None)
    row.counts["ms, slowest answer"] = max(row.counts["ms, slowest answer"], int(1000 * took))
    return {"answered": 1}


def _ask(url, body):
    """The answer, after some tries where the server is busy."""
    end, last = time.monotonic() + BOUND, "never asked"
    while time.monotonic() < end:
        try:
            with httpx.Client(timeout=max(0.1, end - time.monotonic()), verify=False) as client:
                found = client.get(url) if body is None else client.post(url, json=body)
            if found.status_code == 200:
                return found
            expect(found.status_code == 503, "wrong", f"{url}: {found.status_code} {found.text[:300]}")
            last = "503"
        except httpx.TransportError as error:
            last = repr(error)
        time.sleep(0.1)
    return expect(False, "hung", f"{url}: no answer within {BOUND:.0f} s; last: {last}")


def _compare(answer, rows, model):
    wanted = model.predict(scaled(rows, TABLE)).significance
    found = column(answer, "significance")
    same = found.shape == wanted.shape and np.allclose(found, wanted, rtol=1e-4, atol=1e-5)
    expect(same, "wrong", f"the answer to another request: {found.tolist()}, not {wanted.tolist()}")


def overload(plan):
    """600 requests of 60 clients to a server with 4 places: the right answer, or 503 and another try."""
    row = Row("overload", "60 clients, 4 places", "its own answer or 503; none mixed up", plan.count(600))
    home = plan.space("overload")
    model = make_model(TABLE)
    model.save(home / "table")
    asked = [rows_of(1 + place % 7, seed=place) for place in range(row.planned)]
    limits = httpx.Limits(max_connections=60)
    with (
        serving(home / "table", "--requests", 4, "--batch-size", 8) as server,
        httpx.Client(timeout=PATIENCE, limits=limits) as client,
    ):

        def ask(case):
            try:
                answer, refused = ask_until_answered(client, server.url, asked[case])
            except (AssertionError, httpx.TransportError) as error:
                expect(False, "lost", repr(error))
            _compare(answer, asked[case], model)
            return {"answered": 1, "times 503": refused}

        row = each(plan, row, range(row.planned), ask, jobs=60)
        if row.done >= 100 and not row.counts["times 503"]:
            row.fail(plan, "wrong", "all", "no request was sent away, so nothing was shown")
        code, errors = server.stop()
    if code != 0 or "Traceback" in errors:
        row.fail(plan, "crashed", "the end", f"exit code {code}: {errors}")
    return row

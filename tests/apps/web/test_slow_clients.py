"""Slow senders, slow readers and heavy requests against a real process: normal clients are answered."""

import asyncio
import contextlib
import socket
import statistics
import threading
import time
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
import torch

from gaussianmlr.model.model import Model, build
from gaussianmlr.model.recipe import Recipe
from support.paging import running

pytestmark = pytest.mark.slow

WIDTH = 120
SOON = 2.0  # seconds; on busy cores a quiet server takes a tenth
LIGHT = {"rows": [[1.0, 2.0]]}
HEAVY = {"rows": [[1.0, 2.0]] * 256, "readings": ["p_rank"]}  # some 12 s of work


def saved_model(folder, width):
    torch.manual_seed(0)
    inputs = {"kind": "table", "channels": 2, "columns": ["a", "b"]}
    recipe = Recipe(backbone="mlp")
    labels = tuple(f"label {number}" for number in range(width))
    return Model(*build(recipe, width, inputs), labels, recipe, inputs).save(folder)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return saved_model(tmp_path_factory.mktemp("slow") / "model", WIDTH)


def serving(folder, *options):
    return running("-m", "gaussianmlr", "serve", folder, "--port", 0, *options)


@pytest.fixture(scope="module")
def url(folder):
    with serving(folder, "--seconds", 6) as server:
        yield server.url


@contextlib.contextmanager
def opened(url, count, text):
    """Connections that have sent some text and then nothing."""
    with contextlib.ExitStack() as stack:
        place = ("127.0.0.1", urlsplit(url).port)
        found = [stack.enter_context(socket.create_connection(place, timeout=30)) for _ in range(count)]
        for one in found:
            with contextlib.suppress(OSError):  # closed in favour of later ones
                one.sendall(text)
        yield found


def light_seconds(url, times=10):
    """How long normal clients wait, each over a connection of its own."""
    found = []
    for _ in range(times):
        began = time.perf_counter()
        response = httpx.post(f"{url}/predict", json=LIGHT, timeout=20)
        assert response.status_code == 200, response.text
        found.append(time.perf_counter() - began)
    return found


@pytest.mark.parametrize(
    "text",
    [b"", b"POST /predict HTTP/1.1\r\nHost: localhost\r\nX-A: b"],
    ids=["nothing", "half the headers"],
)
def test_1100_half_sent_requests_shut_nobody_out(url, text):
    with opened(url, 1100, text):
        assert max(light_seconds(url)) < SOON
        assert httpx.get(f"{url}/ready").json() == {"status": "ready"}


def test_60_slow_bodies_take_no_place(folder):
    body = b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{"
    with serving(folder, "--requests", 4, "--seconds", 6) as server, opened(server.url, 60, body) as slow:
        metrics = httpx.get(f"{server.url}/metrics").text
        assert "gmlr_requests_under_way 0.0" in metrics
        assert max(light_seconds(server.url)) < SOON
        assert slow[0].recv(100).startswith(b"HTTP/1.1 408 ")  # after six seconds


def test_more_unfinished_bodies_than_connections_shut_nobody_out(url):
    body = b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{"
    with opened(url, 1100, body):
        assert max(light_seconds(url)) < SOON


def test_unfinished_bodies_hold_bounded_memory(folder):
    # 100 x 4 MB are sent, of which 64 MB may be held; those that began first are given up.
    head = b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4194304\r\n\r\n"
    with serving(folder, "--megabytes", 4, "--seconds", 8) as server:
        before = resident(server.process.pid)
        with opened(server.url, 100, head) as slow:
            for one in slow:
                with contextlib.suppress(OSError):
                    one.sendall(b" " * ((4 << 20) - 1))
            assert max(light_seconds(server.url, 3)) < SOON
            assert resident(server.process.pid) - before < 200e6
            assert slow[0].recv(100).startswith(b"HTTP/1.1 408 ")


def resident(process):
    return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * 4096


SERVER = """
import sys
from fastapi import Response
from gaussianmlr.apps.web.server import make_app, run_server

app = make_app("test")

@app.get("/large")
def large(): return Response(b"x" * 50_000_000)

run_server(app, port=0, header_seconds=1.0, answer_seconds=2.0)
"""


def test_connections_end_that_wait_or_read_too_slowly(tmp_path):
    script = tmp_path / "server.py"
    script.write_text(SERVER)
    request = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with running(script) as server, contextlib.ExitStack() as stack:
        cases = {
            "nothing": b"",
            "half": b"GET / HTTP/1.1\r\nHost:",
            "idle": request,
            "second half": request + b"GET / HT",
            "reader": b"GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n",
        }
        sockets = {}
        for name, text in cases.items():
            (sockets[name],) = stack.enter_context(opened(server.url, 1, text))
        # A body that nobody reads, a byte at a time: every byte resets uvicorn's own clock.
        drip = b"GET /nowhere HTTP/1.1\r\nHost: evil.org\r\nContent-Length: 100\r\n\r\n"
        (dripping,) = stack.enter_context(opened(server.url, 1, drip))
        began = time.monotonic()
        ended = None
        while ended is None and time.monotonic() - began < 10:
            try:
                dripping.sendall(b"x")
            except OSError:
                ended = time.monotonic() - began
            time.sleep(0.2)
        assert ended is not None
        assert ended < 5
        time.sleep(max(0.0, 3.5 - ended))
        for name, one in sockets.items():
            one.settimeout(10)
            got = 0
            with contextlib.suppress(ConnectionResetError):
                while data := one.recv(1 << 16):
                    got += len(data)
            assert got < 50_000_000, name  # the answer was cut off
        assert httpx.get(f"{server.url}/health").status_code == 200


def test_two_heavy_requests_hold_up_neither_light_ones_nor_others_after_them(folder):
    with serving(folder, "--seconds", 4) as server:
        url, heavy = server.url, []

        def ask():
            heavy.append(httpx.post(f"{url}/predict", json=HEAVY, timeout=30))

        threads = [threading.Thread(target=ask) for _ in range(2)]
        for thread in threads:
            thread.start()
        while "gmlr_requests_under_way 2.0" not in httpx.get(f"{url}/metrics").text:
            time.sleep(0.05)
        waited = light_seconds(url, 12)
        assert statistics.median(waited) < SOON / 2
        assert max(waited) < SOON
        for thread in threads:
            thread.join()
        assert [one.status_code for one in heavy] == [503, 503]
        assert "no answer within 4 s" in heavy[0].json()["error"]
        assert idle_soon(url)


def idle_soon(url):
    """Whether the processor rests: work that nobody waits for was given up."""

    def used():
        (line,) = [x for x in httpx.get(f"{url}/metrics").text.splitlines() if x.startswith("process_cpu")]
        return float(line.split()[1])

    time.sleep(0.7)  # the step under way
    before = used()
    time.sleep(1.0)
    return used() - before < 0.3


def test_the_work_of_a_client_that_left_is_given_up(url):
    with pytest.raises(httpx.ReadTimeout):
        httpx.post(f"{url}/predict", json=HEAVY, timeout=0.7)
    time.sleep(0.3)
    assert "gmlr_requests_under_way 0.0" in httpx.get(f"{url}/metrics").text
    assert 'gmlr_requests_total{status="499"} 1.0' in httpx.get(f"{url}/metrics").text
    assert idle_soon(url)


def test_one_instance_of_1000_labels_is_cancelled_between_the_slices_of_its_reading(tmp_path):
    asked = {"rows": [[1.0, 2.0]], "readings": ["p_rank", "p_first"]}  # one step of some 4 s
    with serving(saved_model(tmp_path / "wide", 1000), "--seconds", 0.5) as server:
        late = httpx.post(f"{server.url}/predict", json=asked, timeout=20)
        assert (late.status_code, "no answer within 0.5 s" in late.json()["error"]) == (503, True)
        assert idle_soon(server.url)
        with pytest.raises(httpx.ReadTimeout):
            httpx.post(f"{server.url}/predict", json=asked, timeout=0.3)
        assert idle_soon(server.url)
        assert httpx.get(f"{server.url}/ready").json() == {"status": "ready"}
        assert server.stop() == (0, "")


def test_a_sliced_answer_is_the_whole_one(url):
    rows = [[float(place), 1.0] for place in range(5)]
    found = httpx.post(f"{url}/predict", json={"rows": rows, "readings": ["p_rank"]}, timeout=20).json()
    alone = [
        httpx.post(f"{url}/predict", json={"rows": [row], "readings": ["p_rank"]}).json()["instances"][0]
        for row in rows
    ]
    assert [one["name"] for one in found["instances"]] == [0, 1, 2, 3, 4]
    for place, (one, expected) in enumerate(zip(found["instances"], alone)):
        assert one["order"] == expected["order"], place
        torch.testing.assert_close(
            torch.tensor(one["p_rank"]), torch.tensor(expected["p_rank"]), rtol=1e-4, atol=1e-6
        )


def test_many_clients_over_kept_connections_are_not_cut_off(url):
    async def ask():
        async with httpx.AsyncClient(timeout=20) as client:
            answers = []
            for _ in range(5):
                answers += await asyncio.gather(
                    *(client.post(f"{url}/predict", json=LIGHT) for _ in range(20))
                )
                await asyncio.sleep(0.3)
            return {answer.status_code for answer in answers}

    assert asyncio.run(ask()) == {200}

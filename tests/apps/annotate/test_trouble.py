"""`gmlr annotate` when the store is locked, the disk is full, or the server is killed."""

import contextlib
import itertools
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from PIL import Image

from gaussianmlr.apps.annotate import Store
from support.paging import browser, running

pytestmark = pytest.mark.slow

LABELS = ("mountain", "sky", "sea", "sun")
HOLD = (
    "import sqlite3, sys\n"
    "held = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
    "held.execute('BEGIN EXCLUSIVE')\n"
    "held.execute('INSERT INTO people (name, known_as) VALUES (?, ?)', ('half', 'half'))\n"
    "print('held', flush=True)\n"
    "sys.stdin.readline()\n"
)


@contextlib.contextmanager
def locked(store):
    """The store while another process has written to it and not committed; given is how to let it go."""
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, store / "answers.sqlite"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert holder.stdout.readline() == "held\n"
        yield lambda: holder.communicate("\n", timeout=60)
    finally:
        holder.kill()
        holder.communicate()


@contextlib.contextmanager
def small_disk(folder, size):
    """A file system of this size in bytes."""
    folder.mkdir()
    mounted = shutil.which("mount") and subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder], capture_output=True
    )
    if not mounted or mounted.returncode:
        pytest.skip("no small file system here: mounting one takes root")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


def fill(folder):
    """Leave not a byte free; given is the file that takes it."""
    taken = folder / "taken"
    with contextlib.suppress(OSError), taken.open("wb", buffering=0) as file:
        for size in (1 << 16, 1 << 10, 1):
            with contextlib.suppress(OSError):
                while True:
                    file.write(b"x" * size)
    return taken


@pytest.fixture
def place(tmp_path):
    (tmp_path / "photos").mkdir()
    for number in range(3):
        Image.new("RGB", (60, 40), (90 * number, 90, 90)).save(tmp_path / "photos" / f"photo{number}.png")
    (tmp_path / "labels.txt").write_text("\n".join(LABELS))
    return tmp_path


def serving(place, store, port=0):
    source = ["annotate", place / "photos", "--labels", place / "labels.txt"]
    return running("-m", "gaussianmlr", *source, "--out", store, "--port", port)


def post(client, item, person, token, order=(("sky",), ("sea",))):
    given = {"person": person, "token": token, "order": order}
    return client.post(f"/api/items/{item}/answers", json=given)


def join(client, name="Ann"):
    return client.post("/api/people", json={"name": name}).json()["id"]


def stored(store):
    """What the file holds, by a connection of its own: {token: (item, person, ranking)}."""
    with contextlib.closing(sqlite3.connect(store / "answers.sqlite")) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        rows = connection.execute("SELECT token, item, person, ranking FROM history").fetchall()
    found = {token: rest for token, *rest in rows}
    assert len(found) == len(rows)
    return found


def test_a_locked_store_is_503_and_readers_do_not_wait(place):
    store = place / "store"
    with serving(place, store) as server, httpx.Client(base_url=server.url, timeout=60) as client:
        ann = join(client)
        assert post(client, 1, ann, "before-the-lock").status_code == 200
        took = []

        def read(number):
            paths = ["/api/project", f"/api/next?person={ann}", "/api/overview", "/api/export.csv"]
            paths += [f"/api/items?person={ann}", "/api/items/1/picture"]
            began = time.monotonic()
            found = client.get(paths[number % len(paths)])
            took.append(time.monotonic() - began)
            assert found.status_code == 200, found.text

        # More writers than the server has threads.
        limits = httpx.Limits(max_connections=100)
        with (
            locked(store) as release,
            httpx.Client(base_url=server.url, timeout=60, limits=limits) as other,
            ThreadPoolExecutor(60) as pool,
        ):
            began = time.monotonic()
            writes = [pool.submit(post, other, 1, ann, f"in-the-lock-{number}") for number in range(58)]
            writes.append(pool.submit(other.post, "/api/people", json={"name": "Bob"}))
            writes.append(pool.submit(other.post, "/api/undo", json={"person": ann}))
            time.sleep(0.5)
            while not all(write.done() for write in writes):
                for number in range(6):
                    read(number)
            assert time.monotonic() - began < 30
            for write in writes:
                found = write.result()
                assert found.status_code == 503
                assert int(found.headers["retry-after"]) > 0
                assert "try again" in found.json()["error"]
            assert max(took) < 2, sorted(took)[-5:]
            assert len(took) >= 12
            assert list(stored(store)) == ["before-the-lock"]
            release()
        assert post(client, 1, ann, "in-the-lock-0").status_code == 200
        assert sorted(stored(store)) == ["before-the-lock", "in-the-lock-0"]
        code, errors = server.stop()
        assert code == 0
        assert "Traceback" not in errors


def test_a_full_disk_is_507_and_what_is_acknowledged_is_stored(place):
    with small_disk(place / "disk", 1 << 20) as disk:
        store = disk / "store"
        with serving(place, store) as server, httpx.Client(base_url=server.url, timeout=60) as client:
            ann = join(client)
            acknowledged, refused = [], []
            for number in range(40):
                if number == 5:
                    taken = fill(disk)
                found = post(client, 1 + number % 3, ann, f"some-token-{number}")
                (acknowledged if found.status_code == 200 else refused).append(f"some-token-{number}")
                if found.status_code != 200:
                    assert found.status_code == 507, found.text
                    assert "full" in found.json()["error"]
            assert len(acknowledged) >= 5
            assert len(refused) >= 10
            # Reading needs no space, nor do pictures that no cache can take.
            paths = ("/api/project", f"/api/next?person={ann}", "/api/items/2/picture?size=full")
            for path in (*paths, "/api/overview", "/api/export.csv"):
                assert client.get(path).status_code == 200
            taken.unlink()
            assert post(client, 2, ann, refused[0]).status_code in (200, 400)  # 400: of another item
            assert post(client, 3, ann, "after-the-flood").status_code == 200
            _, errors = server.stop(signal.SIGKILL)
            assert "Traceback" not in errors
        found = stored(store)
        assert set(acknowledged) | {"after-the-flood"} <= set(found)
        with Store(store) as again:
            assert again.person("Ann").id == ann


def test_a_full_disk_at_the_start_is_one_clear_error(place):
    with small_disk(place / "disk", 1 << 16) as disk:
        fill(disk)
        command = [sys.executable, "-m", "gaussianmlr", "annotate", place / "photos", "--labels"]
        command += [place / "labels.txt", "--out", disk / "store", "--port", "0"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1, done.stderr
    assert "full" in done.stderr


def test_kills_under_twelve_clients_lose_no_acknowledged_answer(place):
    kills, clients = 3, 12
    store, acknowledged, lock = place / "store", {}, threading.Lock()
    address, ended, numbers = [""], threading.Event(), itertools.count()
    chance = random.Random(7)

    def work(name):
        person, client = None, httpx.Client()
        mine = random.Random(name)
        while not ended.is_set():
            token = f"token-{next(numbers):08d}"
            order = [[label] for label in mine.sample(LABELS, mine.randint(0, 4))]
            item = mine.randint(1, 3)
            while not ended.is_set():  # sent until it is acknowledged, as the page does
                try:
                    if client.base_url != address[0]:
                        client = httpx.Client(base_url=address[0], timeout=30)
                    person = person or join(client, name)
                    found = post(client, item, person, token, order)
                except httpx.TransportError:
                    time.sleep(0.05)
                    continue
                assert found.status_code == 200, found.text
                with lock:
                    acknowledged[token] = [item, person, " > ".join(label for (label,) in order)]
                break

    with ThreadPoolExecutor(clients) as pool:
        workers = []
        for kill in range(kills):
            before = len(acknowledged)
            with serving(place, store) as server:
                address[0] = server.url
                if not kill:
                    workers = [pool.submit(work, f"person {number}") for number in range(clients)]
                until = time.monotonic() + 60
                while len(acknowledged) < before + 3 * clients and time.monotonic() < until:
                    time.sleep(0.01)
                time.sleep(chance.random() / 2)
                if kill == kills - 1:
                    ended.set()
                server.stop(signal.SIGKILL)
        for worker in workers:
            worker.result()
    found = stored(store)
    assert len(acknowledged) >= 3 * clients * kills
    assert {token: found.get(token) for token in acknowledged} == acknowledged
    with Store(store) as again:
        assert len(again.people()) == clients


@pytest.mark.skipif(os.name != "posix", reason="an open file cannot be replaced there")
def test_nothing_is_acknowledged_of_a_store_that_was_replaced(place):
    store = place / "store"
    with serving(place, store) as server, httpx.Client(base_url=server.url, timeout=60) as client:
        ann = join(client)
        shutil.copy(store / "answers.sqlite", store / "copy")
        (store / "copy").replace(store / "answers.sqlite")
        found = post(client, 1, ann, "some-token")
        assert (found.status_code, "replaced" in found.json()["error"]) == (503, True)
        (store / "answers.sqlite").unlink()
        assert post(client, 1, ann, "some-token").status_code == 503


def test_the_page_keeps_an_answer_that_could_not_be_saved(place):
    from playwright.sync_api import expect

    store = place / "store"
    with serving(place, store) as server, browser() as chromium:
        tab = chromium.new_context(viewport={"width": 1200, "height": 850}).new_page()
        tab.on("pageerror", lambda error: pytest.fail(f"the page failed: {error}"))
        tab.goto(server.url)
        tab.get_by_role("textbox", name="Your name").fill("Ann")
        tab.keyboard.press("Enter")
        tab.wait_for_selector("#work:not([hidden])")
        retry = tab.get_by_role("button", name="Try again")
        chips = tab.locator("#order .chip")

        def refused(words):
            expect(tab.locator("#problem")).to_contain_text(words, timeout=30_000)
            expect(tab.locator("#status")).to_have_text("Not saved. Your answer is kept on this page.")
            expect(retry).to_be_visible()
            expect(chips).to_have_text(["sky", "sun"])

        with locked(store) as release:
            for key in "24":
                tab.keyboard.press(key)
            tab.keyboard.press("n")
            tab.keyboard.type("hazy")
            tab.keyboard.press("Escape")
            tab.keyboard.press("Enter")
            refused("locked by another program")
            # Elsewhere and back: the answer is still there.
            tab.get_by_role("button", name="Overview").click()
            tab.wait_for_selector("#people tr")
            tab.get_by_role("button", name="Rank", exact=True).click()
            tab.wait_for_selector("#work:not([hidden])")
            expect(chips).to_have_text(["sky", "sun"])
            assert tab.input_value("#note") == "hazy"
            tab.get_by_role("button", name="Save").click()
            refused("locked by another program")
            assert stored(store) == {}
            release()
        tab.context.set_offline(True)
        retry.click()
        refused("cannot be reached")
        tab.context.set_offline(False)
        retry.click()
        expect(tab.locator("#status")).to_have_text("Saved: sky > sun", timeout=30_000)
        expect(tab.locator("#item-name")).to_have_text("photo1.png")
        expect(retry).to_be_hidden()
        expect(tab.locator("#problem")).to_have_text("")
        assert [row[2] for row in stored(store).values()] == ["sky > sun"]
        # The answer is saved, the next item does not come: a retry fetches it and saves nothing twice.
        tab.route("**/api/next*", lambda route: route.abort())
        tab.keyboard.press("1")
        tab.keyboard.press("Enter")
        expect(tab.locator("#problem")).to_contain_text("cannot be reached")
        expect(tab.locator("#status")).to_have_text("Saved: mountain")
        tab.unroute("**/api/next*")
        tab.keyboard.press("Enter")
        expect(tab.locator("#item-name")).to_have_text("photo2.png")
        expect(tab.locator("#problem")).to_have_text("")
        assert [row[2] for row in stored(store).values()] == ["sky > sun", "mountain"]


def test_the_page_shows_a_full_disk(place):
    from playwright.sync_api import expect

    with (
        small_disk(place / "disk", 1 << 20) as disk,
        serving(place, disk / "store") as server,
        browser() as chromium,
    ):
        tab = chromium.new_page()
        tab.goto(server.url)
        tab.get_by_role("textbox", name="Your name").fill("Ann")
        tab.keyboard.press("Enter")
        tab.wait_for_selector("#work:not([hidden])")
        taken = fill(disk)
        tab.keyboard.press("3")
        tab.keyboard.press("Enter")
        expect(tab.locator("#status")).to_contain_text("Not saved")
        expect(tab.locator("#problem")).to_contain_text("full")
        expect(tab.locator("#order .chip")).to_have_text(["sea"])
        taken.unlink()
        tab.get_by_role("button", name="Try again").click()
        expect(tab.locator("#problem")).to_have_text("")
        expect(tab.locator("#status")).to_have_text("Saved: sea")
        assert len(stored(disk / "store")) == 1

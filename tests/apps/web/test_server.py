"""The base of all pages, by real requests to a real process."""

import re
import signal
import socket
import threading
import time
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

import gaussianmlr.apps
from gaussianmlr.apps.web.server import SHARED, check_listening, listen, make_app, run_server
from gaussianmlr.errors import DataError
from support.paging import running

pytestmark = pytest.mark.slow

APP = """
import asyncio, sqlite3, sys
from fastapi import Request
from gaussianmlr.errors import DataError
from gaussianmlr.apps.web.server import make_app, run_server

token = sys.argv[1] or None
app = make_app("test", token=token, max_body=1000, body_seconds=1.0, below="/work")
begun = []




@app.post("/echo")
async def echo(request: Request): return {"bytes": len(await request.body())}

@app.get("/slow")
async def slow():
    print("begun", flush=True)
    await asyncio.sleep(1.0)
    return {"finished": True}

@app.get("/typed")
def typed(count: int): return count

@app.get("/data")
def data(): raise DataError("row 3 is bad")

@app.post("/kept")
def kept(value: dict): return sqlite3.connect(":memory:").execute("SELECT ?", (value["it"],)).fetchone()

@app.get("/surprise")
def surprise(): raise RuntimeError("a secret")

run_server(app, sys.argv[2], 0, token=token, say=lambda address: print(address, flush=True))
"""
TOKEN = "correct-horse"


@pytest.fixture(scope="module")
def script(tmp_path_factory):
    file = tmp_path_factory.mktemp("base") / "server.py"
    file.write_text(APP)
    return file


@pytest.fixture(scope="module")
def url(script):
    with running(script, "", "127.0.0.1") as server:
        yield server.url


@pytest.fixture(scope="module")
def guarded(script):
    with running(script, TOKEN, "0.0.0.0") as server:
        yield f"http://127.0.0.1:{urlsplit(server.url).port}"


def test_answers_carry_what_browsers_heed(url):
    found = httpx.get(f"{url}/static/base.css")
    assert found.status_code == 200
    assert "default-src 'self'" in found.headers["content-security-policy"]
    assert found.headers["x-content-type-options"] == "nosniff"
    assert found.headers["cache-control"] == "no-cache"
    assert "server" not in found.headers
    assert httpx.get(f"{url}/static/base.js").headers["content-type"].startswith("text/javascript")


@pytest.mark.parametrize("path", ["/static/../base.py", "/static/%2e%2e/base.py", "/static//etc/passwd"])
def test_nothing_outside_the_static_files_is_given(url, path):
    with socket.create_connection(("127.0.0.1", urlsplit(url).port)) as raw:
        raw.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        assert b" 404 " in raw.recv(100)


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", 200),
        ("127.0.0.1:80", 200),
        ("[::1]:9", 200),
        ("evil.org", 421),
        ("127.0.0.1.evil.org", 421),
    ],
)
def test_a_foreign_name_for_this_machine_is_refused(url, host, status):
    assert httpx.get(f"{url}/health", headers={"host": host}).status_code == status


def test_pages_of_other_sites_cannot_change_anything(url):
    found = httpx.post(f"{url}/echo", content=b"x", headers={"origin": "http://evil.org"})
    assert found.status_code == 403
    assert "evil.org" in found.json()["error"]
    assert httpx.post(f"{url}/echo", content=b"x", headers={"origin": "null"}).status_code == 403
    assert httpx.post(f"{url}/echo", content=b"x", headers={"origin": url}).json() == {"bytes": 1}


def test_a_long_body_is_refused_with_and_without_its_length(url):
    assert httpx.post(f"{url}/echo", content=b"x" * 1000).json() == {"bytes": 1000}
    for content in (b"x" * 1001, iter([b"x" * 600, b"x" * 600])):
        found = httpx.post(f"{url}/echo", content=content)
        assert found.status_code == 413
        assert "at most 1,000 bytes" in found.json()["error"]


def test_a_slow_body_is_refused(url):
    with socket.create_connection(("127.0.0.1", urlsplit(url).port)) as raw:
        raw.sendall(b"POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nx")
        assert b" 408 " in raw.recv(1000)


def test_errors_name_the_problem_and_hide_the_rest(url):
    assert httpx.get(f"{url}/data").json() == {"error": "row 3 is bad"}
    assert httpx.get(f"{url}/data").status_code == 400
    wrong = httpx.get(f"{url}/typed", params={"count": "many"})
    assert (wrong.status_code, "'many'" in wrong.json()["error"]) == (422, True)
    surprise = httpx.get(f"{url}/surprise")
    assert surprise.status_code == 500
    assert "secret" not in surprise.text
    assert httpx.get(f"{url}/nowhere").json() == {"error": "Not Found"}
    assert httpx.get(f"{url}/redoc").status_code == 404
    described = httpx.get(f"{url}/docs")
    assert described.status_code == 200
    assert not re.search(r"""(src|href)=["']?(https?:)?//""", described.text)  # offline, too


@pytest.mark.parametrize("value", [r'"\ud800"', str(2**63), "1" + "0" * 400])
def test_what_cannot_be_kept_is_no_mistake_of_the_server(url, value):
    found = httpx.post(
        f"{url}/kept", content=f'{{"it": {value}}}', headers={"content-type": "application/json"}
    )
    assert (found.status_code, "too large" in found.json()["error"]) == (400, True)


def test_the_token_is_asked_for(guarded):
    assert httpx.get(f"{guarded}/health").status_code == 200
    missing = httpx.get(f"{guarded}/data")
    assert (missing.status_code, missing.headers["www-authenticate"]) == (401, "Bearer")
    for wrong in ("Bearer nonsense", f"Basic {TOKEN}", "Bearer", "Bearer \xe9"):
        assert (
            httpx.get(f"{guarded}/data", headers={"authorization": wrong.encode("latin-1")}).status_code
            == 401
        )
    right = httpx.get(f"{guarded}/data", headers={"authorization": f"Bearer {TOKEN}"})
    assert right.status_code == 400  # it came through
    assert httpx.get(f"{guarded}/static/base.css").status_code == 401


def test_a_browser_is_let_in_by_the_address_that_was_printed(guarded):
    with httpx.Client() as client:
        found = client.get(f"{guarded}/static/base.css?token={TOKEN}&v=1")
        assert (found.status_code, found.headers["location"]) == (303, "/static/base.css?v=1")
        assert all(word in found.headers["set-cookie"] for word in ("HttpOnly", "SameSite=strict"))
        assert client.get(f"{guarded}{found.headers['location']}").status_code == 200
        away = client.get(f"{guarded}//evil.org?token={TOKEN}")
        assert away.headers["location"] == "/evil.org"
    assert httpx.get(f"{guarded}/data?token=nonsense").status_code == 401


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_what_is_under_way_is_finished_before_the_end(script, how):
    with running(script, "", "127.0.0.1") as server:
        answers = []
        asking = threading.Thread(target=lambda: answers.append(httpx.get(f"{server.url}/slow", timeout=20)))
        asking.start()
        assert server.process.stdout.readline() == "begun\n"
        began = time.monotonic()
        code, errors = server.stop(how)
        asking.join()
        assert answers[0].json() == {"finished": True}
        assert (code, errors) == (0, "")
        assert time.monotonic() - began < 20


def test_an_address_that_cannot_be_used_is_named():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(
            DataError, match=f"cannot listen at 127.0.0.1, port {port}: Address already in use"
        ):
            run_server(make_app("test"), port=port)
    with pytest.raises(DataError, match=r"nowhere\.invalid is not an address"):
        run_server(make_app("test", token=TOKEN), "nowhere.invalid", token=TOKEN)
    for host in ("0.0.0.0", "::", "192.0.2.1"):
        with pytest.raises(DataError, match="give a --token"):
            run_server(make_app("test"), host)
    for token in ("short", "with space in it", "t\u00f6ken-long", 'quote"quote'):
        with pytest.raises(DataError, match="expected a token"):
            check_listening("127.0.0.1", token)


def test_answers_do_not_wait_for_an_acknowledgement():
    # asyncio turns Nagle's algorithm off for sockets of this protocol alone.
    with listen("127.0.0.1", 0) as listener:
        assert listener.proto == socket.IPPROTO_TCP


def test_static_files_are_part_of_the_package():
    apps = Path(gaussianmlr.apps.__file__).parent
    for folder, name in (
        (SHARED, "base.css"),
        (apps / "play/static", "play.html"),
        (apps / "serve/static", "try.html"),
        (apps / "web/static", "docs.html"),
        (apps / "annotate/static", "annotate.html"),
    ):
        assert (folder / name).is_file()
        for file in folder.iterdir():
            outside = [word for word in ("//cdn", "https://", "@import url") if word in file.read_text()]
            assert outside == [], file.name

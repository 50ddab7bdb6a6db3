"""Malformed requests to a real process: refused by name, never 500, and nothing of them in the log."""

import json
import os
import pty
import re
import socket
import subprocess
import sys
from urllib.parse import urlsplit

import httpx
import pytest
import torch

from gaussianmlr.model.model import Model, build
from gaussianmlr.model.recipe import Recipe
from support.paging import ENVIRONMENT, running

pytestmark = pytest.mark.slow

TOKEN = "correct-horse"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    torch.manual_seed(0)
    inputs = {"kind": "table", "channels": 2, "columns": ["a", "b"]}
    recipe = Recipe(backbone="mlp")
    model = Model(*build(recipe, 2, inputs), ("sea", "sky"), recipe, inputs)
    model.about["metrics"] = {"loss": float("nan")}
    return model.save(tmp_path_factory.mktemp("malformed") / "model")


@pytest.fixture(scope="module")
def url(folder):
    with running("-m", "gaussianmlr", "serve", folder, "--port", 0) as server:
        yield server.url
        code, errors = server.stop()
    assert code == 0
    assert "Traceback" not in errors


@pytest.fixture(scope="module")
def guarded(folder):
    with running("-m", "gaussianmlr", "serve", folder, "--port", 0, "--token", TOKEN) as server:
        yield server.url


def exchange(url, text):
    """The status and body that a text gets."""
    with socket.create_connection(("127.0.0.1", urlsplit(url).port), timeout=10) as raw:
        raw.sendall(text)
        answer = b""
        while data := raw.recv(1 << 16):
            answer += data
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), body


def request(target="/health", *headers, method="GET", host="localhost", body=b""):
    lines = [f"{method} {target} HTTP/1.1", *([f"Host: {host}"] if host is not None else []), *headers]
    return "\r\n".join([*lines, "Connection: close", "", ""]).encode("latin-1") + body


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", 200),
        ("LOCALHOST:1", 200),
        ("127.0.0.1:8000", 200),
        ("[::1]:8000", 200),
        ("127.0.0.1.evil.org", 421),
        ("localhost.evil.org:80", 421),
        ("evil.org", 421),
        ("localhost:80@evil.org", 400),
        ("evil.org@localhost", 400),
        ("[::1]evil.org", 400),
        ("[::1", 400),
        ("localhost:", 400),
        ("localhost:80:80", 400),
        ("localhost:123456", 400),
        ("localhost, evil.org", 400),
        ("localhost\xb2", 400),
        ("localhost/evil", 400),
        ("", 400),
    ],
)
def test_the_host_is_parsed(url, host, status):
    assert exchange(url, request(host=host))[0] == status


def test_there_is_one_host_and_the_target_is_a_path(url, guarded):
    for place in (url, guarded):
        assert exchange(place, request("/health", "Host: evil.org"))[0] == 400
        assert exchange(place, request(host=None))[0] == 400
        assert exchange(place, request("http://evil.org/health"))[0] == 400
        assert exchange(place, request("*", method="OPTIONS"))[0] == 400
    assert exchange(guarded, request(host="[::1]evil.org"))[0] == 400


@pytest.mark.parametrize(
    ("origin", "host", "same"),
    [
        ("http://localhost:8000", "localhost:8000", True),
        ("http://LOCALHOST", "localhost:80", True),
        ("https://example.org", "example.org", True),  # behind a proxy with TLS
        ("https://example.org:443", "example.org", True),
        ("http://example.org", "example.org:8000", False),
        ("http://evil.org", "example.org", False),
        ("http://example.org.evil.org", "example.org", False),
        ("http://example.org@evil.org", "example.org", False),
        ("http://[::1", "example.org", False),
        ("http://[::1]x", "[::1]", False),
        ("http://[bad]:x", "example.org", False),
        ("file://example.org", "example.org", False),
        ("null", "example.org", False),
        ("", "example.org", False),
        ("http://\xe9\xff", "example.org", False),
    ],
)
def test_the_origin_is_compared_with_the_host(guarded, origin, host, same):
    headers = (f"Origin: {origin}", f"Authorization: Bearer {TOKEN}")
    headers += ("Content-Type: application/json", "Content-Length: 2")
    status, body = exchange(guarded, request("/predict", *headers, method="POST", host=host, body=b"{}"))
    assert status == (400 if same else 403), body
    json.loads(body)


@pytest.mark.parametrize(
    "cookie",
    ["gmlr_token", "gmlr_token=", "=;=;", 'gmlr_token="\\377', "a\x80=\xff; gmlr_token=no", "x" * 5000],
)
def test_malformed_cookies_are_no_token(guarded, cookie):
    assert exchange(guarded, request("/info", f"Cookie: {cookie}"))[0] == 401
    # What other programs of this host have set, however odd, does not keep ours from being read.
    assert exchange(guarded, request("/info", f"Cookie: a b=[{{; x; gmlr_token={TOKEN}"))[0] == 200


@pytest.mark.parametrize(
    "target",
    [
        "/%00",
        "/static/%00",
        "/static/base.css%00.js",
        "/static/" + "a" * 5000,
        "/static/%ff%fe",
        "/static/%ed%a0%80",
        "/%",
        "/%zz",
        "/static/..%2f..%2fbase.py",
        "/static/%5c..%5cbase.py",
        "/static",
        "/info%0d%0aX-A: b",
        "/predict/../../etc/passwd",
        "//evil.org/",
    ],
)
def test_rubbish_paths_are_refused(url, target):
    status, _ = exchange(url, request(target.replace(" ", "%20")))
    assert 300 <= status < 500


@pytest.mark.parametrize("length", ["-1", "abc", "1e3", "", "9" * 18, "9" * 5000, "1, 2", "0x10", "+1"])
def test_bad_lengths_are_refused(url, length):
    text = request("/predict", f"Content-Length: {length}", method="POST")
    assert exchange(url, text)[0] in (400, 413)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b'{"rows": [[1, 2]], "names": ["\\ud800"]}', 200),
        (b'{"rows": [[1, 2]], "\\udfff": 1}', 422),
        (b'{"rows": [[1, "\\ud800"]]}', 400),
        (b'{"rows": [{"a": 1, "b": 2, "\\ud800": 3}]}', 200),
        (b'{"rows": ["\\ud800"]}', 400),
        (b'{"rows": [[1, 2]], "readings": ["\\ud800"]}', 422),
        (b'{"rows": [[1, 2]], "names": ["\xed\xa0\x80"]}', 200),
        (b'{"rows": [[1, 9223372036854775808]]}', 400),
        (b'{"rows": [[1, -18446744073709551617]]}', 400),
        (b'{"rows": [[1, 1' + b"0" * 400 + b"]]}", 400),
        (b'{"rows": [[1, 2]], "confidence": 1' + b"0" * 400 + b"}", 422),
        (b'{"rows": [[1, 2]], "confidence": Infinity}', 422),
        (b'{"rows": [[1, 2]], "names": [1' + b"0" * 400 + b"]}", 422),
        (b'{"rows": 5, "names": ' + b"[1," * 2000 + b"1" + b"]" * 2000 + b"}", (400, 422)),
        (b'{"rows": [[3e38, -3e38]]}', (200, 400)),
    ],
)
def test_odd_values_are_named_and_answers_are_json(url, body, status):
    found = httpx.post(f"{url}/predict", content=body, headers={"content-type": "application/json"})
    assert found.status_code in (status if isinstance(status, tuple) else (status,)), found.text
    json.loads(found.content, parse_constant=pytest.fail)
    assert len(found.content) < 2000


def test_names_are_given_back_as_they_came(url):
    names = ["\U0001f600 \u00e9\u2028</script>"]
    found = httpx.post(f"{url}/predict", json={"rows": [[1, 2]], "names": names})
    assert [one["name"] for one in found.json()["instances"]] == names


def test_what_is_no_number_is_null(url):
    text = httpx.get(f"{url}/info").text
    assert json.loads(text, parse_constant=pytest.fail)["metrics"] == {"loss": None}


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("multipart/form-data", b"--x"),
        ("multipart/form-data; boundary=", b"--\r\n"),
        ("multipart/form-data; boundary=x", b"--y\r\n\r\n"),
        ("multipart/form-data; boundary=x", b"--x\r\nContent-Disposition: form-data\r\n\r\na\r\n--x--\r\n"),
        ("multipart/form-data; boundary=x", b"--x\r\n" + b"A" * 100_000),
        (
            "multipart/form-data; boundary=x; charset=idna",
            b'--x\r\nContent-Disposition: form-data; name="\xff"\r\n\r\n\xff\r\n--x--\r\n',
        ),
        (
            "multipart/form-data; boundary=x; charset=undefined",
            b'--x\r\nContent-Disposition: form-data; name="readings"\r\n\r\na\r\n--x--\r\n',
        ),
        ("multipart/form-data; boundary=\xff", b"--\xff\r\n\r\n"),
        ("application/x-www-form-urlencoded", b"images=%ff&%ff=%00&readings=" + b"&a" * 2000),
        ("application/json; charset=\xff", b"{}"),
        ("text/plain", b"{}"),
        ("\xff", b"{}"),
    ],
)
@pytest.mark.parametrize("target", ["/predict", "/predict/files"])
def test_bad_forms_are_refused(url, target, kind, body):
    headers = (f"Content-Type: {kind}", f"Content-Length: {len(body)}")
    status, answer = exchange(url, request(target, *headers, method="POST", body=body))
    assert 400 <= status < 500, answer


def test_logs_show_neither_queries_nor_tokens(folder):
    command = ("-m", "gaussianmlr", "serve", folder, "--port", 0, "--token", TOKEN, "--log")
    with running(*command) as server:
        entered = httpx.get(f"{server.url}/info?token={TOKEN}&v=1")
        assert (entered.status_code, entered.headers["location"]) == (303, "/info?v=1")
        assert TOKEN not in entered.headers["location"]
        httpx.get(f"{server.url}/info?secret=hush", headers={"authorization": f"Bearer {TOKEN}"})
        httpx.get(f"{server.url}/nowhere?secret=hush")
        server.process.send_signal(15)
        out, errors = server.process.communicate(timeout=60)
    log = out + errors  # standard output is a pipe, as where it is kept
    assert '"GET /info HTTP/1.1" 303' in log
    assert '"GET /info HTTP/1.1" 200' in log
    assert '"GET /nowhere HTTP/1.1" 401' in log
    assert TOKEN not in log
    assert "hush" not in log


@pytest.mark.parametrize("terminal", [True, False])
def test_the_address_has_the_token_on_a_terminal_alone(folder, terminal):
    command = [sys.executable, "-m", "gaussianmlr", "serve", folder, "--port", "0", "--token", TOKEN]
    ours, theirs = pty.openpty() if terminal else os.pipe()
    with subprocess.Popen(command, stdout=theirs, stderr=subprocess.DEVNULL, env=ENVIRONMENT) as process:
        os.close(theirs)
        said = b""
        while not re.search(rb"http://\S+/.*\n", said):
            said += os.read(ours, 1000)
        process.terminate()
    os.close(ours)
    assert (TOKEN.encode() in said) == terminal

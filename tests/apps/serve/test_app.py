"""`gmlr serve` by real requests to a real process, against the model called directly."""

import asyncio
import base64
import concurrent.futures
import io
import struct
import threading
import time
import zlib
from dataclasses import replace

import httpx
import numpy as np
import pytest
import torch
from PIL import Image

from gaussianmlr.apps.serve.app import Limits, serving_app
from gaussianmlr.apps.serve.batches import Batcher
from gaussianmlr.data.inputs import scaled
from gaussianmlr.data.open import image_inputs
from gaussianmlr.model.model import Model, build
from gaussianmlr.model.recipe import Recipe
from gaussianmlr.model.scale import JndScale
from support.commanding import gmlr
from support.paging import running

pytestmark = pytest.mark.slow

LABELS = ("sea", "sky", "sun", "sand")
TABLE = {
    "kind": "table",
    "channels": 3,
    "columns": ["a", "b", "c"],
    "scaling": {"mean": [1.0, -2.0, 0.0], "std": [2.0, 1.0, 10.0]},
}


def make_model(inputs, method="gmlr", backbone="mlp"):
    torch.manual_seed(0)
    recipe = Recipe(method=method, backbone=backbone)
    return Model(*build(recipe, len(LABELS), inputs), LABELS, recipe, inputs)


@pytest.fixture(scope="module")
def table():
    return replace(make_model(TABLE), jnd=JndScale([-1.0, 2.0], [0.0, 1.0]))


@pytest.fixture(scope="module")
def images():
    return make_model(image_inputs(32, 1), backbone="fast")


@pytest.fixture(scope="module")
def folder(tmp_path_factory, table, images):
    found = tmp_path_factory.mktemp("models")
    table.save(found / "table")
    images.save(found / "images")
    make_model(TABLE, method="lsep").save(found / "lsep")
    return found


def serving(folder, *options):
    return running("-m", "gaussianmlr", "serve", folder, "--port", 0, *options)


@pytest.fixture(scope="module")
def url(folder):
    with serving(folder / "table", "--count", 50) as server:
        yield server.url


@pytest.fixture(scope="module")
def image_url(folder):
    with serving(folder / "images", "--pixels", 10_000, "--megabytes", 1) as server:
        yield server.url


def rows_of(count, seed=0):
    return np.random.default_rng(seed).normal(size=(count, 3)) * [2, 1, 10]


def png(pixels):
    Image.fromarray(pixels).save(stream := io.BytesIO(), "PNG")
    return stream.getvalue()


def column(answer, name):
    return np.array([[one["labels"][label][name] for label in LABELS] for one in answer["instances"]])


def test_every_reading_is_what_the_model_says(url, table):
    rows = rows_of(7)
    readings = ["buckets", "p_first", "expected_rank", "degree", "p_rank", "p_above", "partial_order"]
    asked = {"rows": rows.tolist(), "readings": readings, "confidence": 0.8, "names": list("abcdefg")}
    response = httpx.post(f"{url}/predict", json=asked)
    assert response.status_code == 200, response.text
    answer, expected = response.json(), table.predict(scaled(rows, TABLE))
    assert (answer["method"], answer["scale"], answer["labels"]) == ("gmlr", "jnd", list(LABELS))
    instances = answer["instances"]
    assert [one["name"] for one in instances] == list("abcdefg")
    assert [one["order"] for one in instances] == expected.orders
    assert [one["buckets"] for one in instances] == expected.lists
    assert [one["partial"] for one in instances] == expected.partial_text(0.8)
    assert [one["partial_order"] for one in instances] == expected.partial_order(0.8).tolist()
    assert (column(answer, "rank") == expected.ranks).all()
    for name in ("significance", "sigma", "p_relevant", "p_first", "expected_rank", "degree"):
        np.testing.assert_allclose(column(answer, name), getattr(expected, name), rtol=1e-4, atol=1e-6)
    low, high = expected.rank_interval(0.8)
    assert (column(answer, "rank_low") == low).all()
    assert (column(answer, "rank_high") == high).all()
    for name in ("p_rank", "p_above"):
        found = np.array([one[name] for one in instances])
        np.testing.assert_allclose(found, getattr(expected, name), rtol=1e-4, atol=1e-6)


def test_the_most_significant_labels_alone(url, table):
    rows = rows_of(3)
    readings = ["buckets", "p_first", "expected_rank", "p_above", "partial_order"]
    asked = {"rows": rows.tolist(), "readings": readings, "confidence": 0.8, "top": 2}
    answer, expected = httpx.post(f"{url}/predict", json=asked).json(), table.predict(scaled(rows, TABLE))
    assert "labels" not in answer
    for row, instance in enumerate(answer["instances"]):
        best = np.argsort(-expected.scores[row], kind="stable")[:2]
        assert list(instance["labels"]) == [LABELS[k] for k in best]
        assert instance["order"] == expected.orders[row]
        assert instance["partial"] == expected.partial_text(0.8, top=2)[row]
        for name in ("significance", "p_first", "expected_rank"):
            found = [one[name] for one in instance["labels"].values()]
            np.testing.assert_allclose(found, getattr(expected, name)[row, best], rtol=1e-4, atol=1e-6)
        pairs = np.ix_(best, best)
        np.testing.assert_allclose(instance["p_above"], expected.p_above[row][pairs], rtol=1e-4)
        assert instance["partial_order"] == expected.partial_order(0.8)[row][pairs].tolist()
    refused = httpx.post(f"{url}/predict", json=asked | {"readings": ["p_rank"]})
    assert (refused.status_code, "it has no top labels" in refused.json()["error"]) == (400, True)
    assert httpx.post(f"{url}/predict", json=asked | {"top": 0}).status_code == 422


def test_ties_are_told(tmp_path):
    torch.manual_seed(0)
    recipe = Recipe(method_settings={"ties": "learned"}, backbone="mlp")
    model = Model(*build(recipe, len(LABELS), TABLE), LABELS, recipe, TABLE)
    with torch.no_grad():
        model.network.head.layers["tau"].values.add_(0.3)  # a threshold of about three
    model.save(tmp_path / "model")
    rows = rows_of(20)
    with serving(tmp_path / "model") as server:
        asked = {"rows": rows.tolist(), "readings": ["p_tie", "buckets"]}
        instances = httpx.post(f"{server.url}/predict", json=asked).json()["instances"]
    expected = model.predict(scaled(rows, TABLE))
    assert any(" = " in one["order"] for one in instances)
    assert [one["order"] for one in instances] == expected.orders
    assert [one["buckets"] for one in instances] == expected.lists
    found = np.array([one["p_tie"] for one in instances])
    np.testing.assert_allclose(found, expected.p_tie, rtol=1e-4, atol=1e-6)


def test_categories_dates_and_gaps(tmp_path):
    encoding = [
        {"kind": "number", "gaps": True},
        {"kind": "category", "categories": ["Oslo", "Rome"]},
        {"kind": "date", "parts": ["days"]},
    ]
    scaling = {"mean": [1.0, 0.0, 19_000.0], "std": [2.0, 1.0, 100.0]}
    model = make_model(TABLE | {"encoding": encoding, "scaling": scaling})
    nan = float("nan")
    expected = model.predict(torch.tensor([[nan, 1, 0], [1, 2, 0.01]])).p_relevant
    with serving(model.save(tmp_path / "model")) as server:
        rows = [{"a": None, "b": "Rome", "c": "2022-01-08"}, [3, "Atlantis", "2022-01-09"]]
        answer = httpx.post(f"{server.url}/predict", json={"rows": rows}).json()
        np.testing.assert_allclose(column(answer, "p_relevant"), expected, rtol=1e-4, atol=1e-4)
        schema = httpx.get(f"{server.url}/openapi.json").json()["components"]["schemas"]["Asked"]
        described = schema["properties"]["rows"]["anyOf"][0]["items"]["anyOf"][1]["properties"]
        assert described["b"]["description"] == "category of 2: Oslo, Rome"
        assert described["c"]["type"] == ["string", "null"]


def test_rows_by_name_are_rows_by_place(url):
    by_place = httpx.post(f"{url}/predict", json={"rows": [[1.0, 2.0, 3.0]]}).json()
    by_name = httpx.post(
        f"{url}/predict", json={"rows": [{"c": 3.0, "a": 1.0, "b": 2.0, "more": "x"}]}
    ).json()
    assert by_name == by_place


def test_images_as_files_and_as_base64(image_url, images):
    pictures = np.random.default_rng(1).integers(0, 255, (3, 32, 32), dtype=np.uint8)
    expected = images.predict(torch.from_numpy(pictures)[:, None])
    files = [("images", (f"{place}.png", png(picture))) for place, picture in enumerate(pictures)]
    form = httpx.post(
        f"{image_url}/predict/files", files=files, data={"readings": ["p_first"], "confidence": "0.9"}
    )
    assert form.status_code == 200, form.text
    encoded = [base64.b64encode(png(picture)).decode() for picture in pictures]
    plain = httpx.post(f"{image_url}/predict", json={"images": encoded})
    assert [one["name"] for one in form.json()["instances"]] == ["0.png", "1.png", "2.png"]
    for answer in (form.json(), plain.json()):
        assert [one["order"] for one in answer["instances"]] == expected.orders
        np.testing.assert_allclose(column(answer, "p_relevant"), expected.p_relevant, rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(column(form.json(), "p_first"), expected.p_first, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b'{"rows": ', "the body is not JSON: Expecting value, at character 9"),
        (b"[" * 100_000, "body"),
        (b"\xff\xfe", "body"),
        (b"[]", "body"),
        (b"{}", "expected 'rows' alone"),
        (b'{"rows": [], "images": []}', "expected 'rows' alone"),
        (b'{"images": ["aaaa"]}', "expected 'rows' alone"),
        (b'{"rows": []}', "0 rows; expected 1 to 50"),
        (b'{"rows": [["x", 1, 2]]}', "row 0: 'x' in column 'a'; expected a number"),
        (b'{"rows": [[1, 2, 3], [1e999, 1, 2]]}', "row 1: inf in column 'a'"),
        (b'{"rows": [[1, 1e300, 3]]}', "row 0: 1e+300 in column 'b' is too large"),
        (b'{"rows": [[1, 2, 1' + b"0" * 400 + b"]]}", "in column 'c' is too large"),
        (b'{"rows": [[1, 2, 1' + b"0" * 5000 + b"]]}", "body"),
        (b'{"rows": [[1, 2]]}', "row 0 has 2 cells; expected 3"),
        (b'{"rows": [{"a": 1, "b": 2}]}', "row 0: no 'c'"),
        (b'{"rows": [[1, 2, [3]]]}', "row 0: [3] in column 'c'"),
        (b'{"rows": ["abc"]}', "row 0 is 'abc'"),
        (b'{"rows": [[1, 2, 3]], "colour": 1}', "colour"),
        (b'{"rows": [[1, 2, 3]], "readings": ["p_last"]}', "p_first"),
        (b'{"rows": [[1, 2, 3]], "readings": ["partial_order"]}', "needs a confidence"),
        (b'{"rows": [[1, 2, 3]], "confidence": 1.0}', "less than 1"),
        (b'{"rows": [[1, 2, 3]], "confidence": NaN}', "confidence"),
        (b'{"rows": [[1, 2, 3]], "names": ["a", "b"]}', "a name for each of 1 instances, got 2"),
    ],
)
def test_hostile_rows_are_refused_by_name(url, body, problem):
    found = httpx.post(f"{url}/predict", content=body, headers={"content-type": "application/json"})
    assert 400 <= found.status_code < 500, found.text
    assert problem in found.json()["error"]
    assert "Traceback" not in found.text
    assert len(found.text) < 2000


def test_too_many_rows_are_refused(url):
    found = httpx.post(f"{url}/predict", json={"rows": [[1, 2, 3]] * 51})
    assert (found.status_code, found.json()["error"]) == (400, "51 rows; expected 1 to 50 in a request")


def bomb(width, height):
    """A PNG of any size whose pixels are zeros, some bytes long."""

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    data = zlib.compress(b"\0" * 1_000_000, 9)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", data) + chunk(b"IEND", b"")


NOISE = png(np.random.default_rng(0).integers(0, 255, (32, 32), dtype=np.uint8))
EPS = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\n%%EndComments\n"


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (bomb(50_000, 50_000), "pixels"),
        (bomb(101, 100), "101 x 100 pixels; expected at most 10,000"),
        (bomb(0, 0), "x.png"),
        (NOISE[:500], "x.png: damaged or cut off"),
        (b"", "x.png: is empty"),
        (b"hello", "x.png: is not a picture"),
        (EPS, "x.png: is not a picture"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "x.png: is not a picture"),
    ],
    ids=["huge", "large", "nothing", "cut", "empty", "text", "script", "drawing"],
)
def test_hostile_images_are_refused_by_name(image_url, data, problem):
    found = httpx.post(f"{image_url}/predict/files", files=[("images", ("x.png", data))])
    assert found.status_code == 400, found.text
    assert problem in found.json()["error"]


def test_hostile_forms_are_refused(image_url):
    assert httpx.post(f"{image_url}/predict/files", data={"confidence": "0.9"}).status_code == 422
    text = httpx.post(f"{image_url}/predict/files", data={"images": "no file"}).json()
    assert text == {"error": "body.images.0: expected a file, got 'no file'"}
    many = [("images", ("x.png", b"x"))] * 257
    assert (
        "257 images; expected 1 to 256"
        in httpx.post(f"{image_url}/predict/files", files=many).json()["error"]
    )
    broken = httpx.post(
        f"{image_url}/predict/files",
        content=b"--x\r\nnonsense",
        headers={"content-type": "multipart/form-data"},
    )
    assert 400 <= broken.status_code < 500
    long = httpx.post(f"{image_url}/predict/files", files=[("images", ("x.png", b"x" * (1 << 21)))])
    assert long.status_code == 413
    wrong = httpx.post(f"{image_url}/predict", json={"images": ["not base64!"]})
    assert "'not base64!'; expected base64" in wrong.json()["error"]
    assert httpx.post(f"{image_url}/predict", json={"rows": [[1]]}).status_code == 400
    assert httpx.get(f"{image_url}/health").json() == {"status": "alive"}


def test_what_a_method_cannot_say_is_said(folder):
    with serving(folder / "lsep", "--token", "correct-horse") as server:
        post = {"json": {"rows": [[1, 2, 3]], "readings": ["p_first"]}}
        assert httpx.post(f"{server.url}/predict", **post).status_code == 401
        assert httpx.get(f"{server.url}/metrics").status_code == 401
        assert httpx.get(f"{server.url}/ready").json() == {"status": "ready"}
        post["headers"] = {"authorization": "Bearer correct-horse"}
        found = httpx.post(f"{server.url}/predict", **post)
        assert (found.status_code, "has no sigma" in found.json()["error"]) == (400, True)


def test_what_the_server_says_of_itself(url, table):
    info = httpx.get(f"{url}/info").json()
    assert (info["labels"], info["inputs"]["columns"]) == (list(LABELS), ["a", "b", "c"])
    assert info["limits"]["count"] == 50
    described = httpx.get(f"{url}/openapi.json").json()
    paths = described["paths"]
    assert {"/", "/predict", "/predict/files", "/health", "/ready", "/info", "/metrics"} == set(paths)
    for code in ("400", "401", "408", "413", "422", "503"):
        body = paths["/predict"]["post"]["responses"][code]["content"]["application/json"]["schema"]
        named = described["components"]["schemas"][body["$ref"].rpartition("/")[2]]
        assert list(named["properties"]) == ["error"]
    root = httpx.get(f"{url}/").json()
    assert root["POST /predict"] == "Predict rows, texts, or images as base64"

    def counted():
        lines = httpx.get(f"{url}/metrics").text.splitlines()
        return {key: float(value) for key, _, value in (x.rpartition(" ") for x in lines if x[0] != "#")}

    before = counted()
    httpx.post(f"{url}/predict", json={"rows": [[1, 2, 3]] * 5})
    httpx.post(f"{url}/predict", json={})
    after = counted()
    change = {key: after[key] - before.get(key, 0) for key in after}
    assert change['gmlr_requests_total{status="200"}'] == 1
    assert change['gmlr_requests_total{status="400"}'] == 1
    assert change["gmlr_instances_total"] == 5
    assert change["gmlr_request_seconds_count"] == change['gmlr_request_seconds_bucket{le="+Inf"}'] == 2
    assert after["gmlr_requests_under_way"] == 0


def ask_until_answered(client, url, rows):
    """What patient clients do, and how often they were sent away."""
    for refused in range(1000):
        found = client.post(f"{url}/predict", json={"rows": rows.tolist()})
        if found.status_code == 200:
            return found.json(), refused
        assert (found.status_code, found.headers["retry-after"]) == (503, "1"), found.text
        time.sleep(0.02)
    raise AssertionError("never answered")


def test_ten_times_too_many_requests_lose_and_mix_up_nothing(folder, table):
    asked = [rows_of(1 + place % 7, seed=place) for place in range(120)]
    limits = httpx.Limits(max_connections=40)
    with (
        serving(folder / "table", "--requests", 4, "--batch-size", 8) as server,
        httpx.Client(timeout=60, limits=limits) as client,
        concurrent.futures.ThreadPoolExecutor(40) as clients,
    ):
        found = list(clients.map(lambda rows: ask_until_answered(client, server.url, rows), asked))
        metrics = httpx.get(f"{server.url}/metrics").text
        assert server.stop() == (0, "")
    assert sum(refused for _, refused in found) > 0  # it was too much
    assert f'gmlr_requests_total{{status="200"}} {len(asked)}.0\n' in metrics
    assert f"gmlr_instances_total {sum(map(len, asked)) + 1}.0\n" in metrics  # and the first, to warm up
    for (answer, _), rows in zip(found, asked):
        expected = table.predict(scaled(rows, TABLE))
        np.testing.assert_allclose(
            column(answer, "significance"), expected.significance, rtol=1e-4, atol=1e-5
        )


def test_requests_under_way_are_answered_at_the_end(folder):
    asked = [rows_of(40, seed=place).tolist() for place in range(12)]
    readings = ["p_rank", "p_first"]  # some work
    with (
        serving(folder / "table") as server,
        httpx.Client(timeout=60) as client,
        concurrent.futures.ThreadPoolExecutor(12) as clients,
    ):
        post, path = client.post, f"{server.url}/predict"
        answers = [clients.submit(post, path, json={"rows": rows, "readings": readings}) for rows in asked]
        while "gmlr_requests_under_way 0" in httpx.get(f"{server.url}/metrics").text:
            if all(answer.done() for answer in answers):
                break
        code, errors = server.stop()
        assert (code, errors) == (0, "")
        answered, refused = 0, 0
        for answer in answers:
            try:
                assert answer.result().status_code == 200
                answered += 1
            except httpx.ConnectError:  # it came after the end
                refused += 1
        assert answered > 0
        assert answered + refused == len(asked)


class Slow(Model):
    """Takes its time."""

    def read(self, inputs, *args, **kwargs):
        time.sleep(0.6 if len(inputs) > 1 else 0.0)
        return super().read(inputs, *args, **kwargs)


def test_requests_that_take_too_long_are_given_up(table):
    model = Slow(table.network, table.method, LABELS, table.recipe, TABLE)
    app = serving_app(model, Limits(seconds=0.3))

    async def ask():
        transport = httpx.ASGITransport(app)
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client,
        ):
            return await client.post("/predict", json={"rows": rows_of(2).tolist()})

    found = asyncio.run(ask())
    assert (found.status_code, found.headers.get("retry-after")) == (503, "1")
    assert "no answer within 0.3 s" in found.json()["error"]


def test_the_command_names_what_is_wrong(folder, tmp_path):
    found = gmlr("serve", tmp_path / "nowhere")
    assert (found.returncode, "no model at" in found.stderr) == (2, True)
    found = gmlr("serve", folder / "table", "--host", "0.0.0.0")
    assert (found.returncode, "give a --token" in found.stderr) == (2, True)


def test_jobs_that_wait_together_are_read_together(table):
    seen = []

    class Watched(Model):
        def read(self, inputs, *args, **kwargs):
            seen.append(len(inputs))
            time.sleep(0.05)
            if inputs.isnan().any():
                raise ValueError("nan")
            return super().read(inputs, *args, **kwargs)

    model = Watched(table.network, table.method, LABELS, table.recipe, TABLE)
    batcher = Batcher(model, batch_size=8)
    inputs = [torch.randn(count, 3) for count in (1, 3, 3, 4, 20)]
    answers = [batcher.submit(one) for one in inputs]
    cancelled = batcher.submit(torch.zeros(5, 3))
    assert cancelled.cancel()
    bad = batcher.submit(torch.full((1, 3), torch.nan))
    good = batcher.submit(torch.ones(1, 3))
    batcher.close()
    for one, answer in zip(inputs, answers):
        torch.testing.assert_close(answer.result().scores, table.read(one).scores)
    assert isinstance(bad.exception(), ValueError)
    torch.testing.assert_close(good.result().scores, table.read(torch.ones(1, 3)).scores)
    assert not batcher.alive
    assert max(count for count in seen if count != 20) <= 8
    assert len(seen) < len(inputs) + 4  # some went together


class Odd(Model):
    """Ends its thread at one row, and never returns from another until it is let go."""

    let_go = threading.Event()

    def read(self, inputs, *args, **kwargs):
        first = float(inputs[0, 0])
        if first == scaled([[111, 0, 0]], TABLE)[0, 0]:
            raise SystemExit
        if first == scaled([[222, 0, 0]], TABLE)[0, 0]:
            self.let_go.wait(20)
        return super().read(inputs, *args, **kwargs)


def asked_in_turn(table, rows):
    """What an odd model answers to a row, and what `/ready` says before and after."""
    app = serving_app(Odd(table.network, table.method, LABELS, table.recipe, TABLE), Limits(seconds=0.3))

    async def ask():
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client,
        ):
            before = await client.get("/ready")
            answer = await client.post("/predict", json={"rows": [rows]})
            await asyncio.sleep(0.1)
            after = await client.get("/ready")
            Odd.let_go.set()
            return before, answer, after

    return asyncio.run(ask())


def test_a_server_whose_model_is_stuck_is_not_ready(table):
    before, answer, after = asked_in_turn(table, [222, 0, 0])
    assert (before.status_code, answer.status_code, after.status_code) == (200, 503, 503)
    assert "under way for more than 0.3 s" in after.json()["error"]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_server_whose_model_has_ended_is_not_ready(table):
    before, answer, after = asked_in_turn(table, [111, 0, 0])
    assert (before.status_code, answer.status_code, after.status_code) == (200, 503, 503)
    assert "has ended" in answer.json()["error"]
    assert "has ended" in after.json()["error"]

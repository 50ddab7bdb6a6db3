"""`gmlr play` in a real browser and by real requests."""

import asyncio
import io
import json
import re
import time
from dataclasses import replace
from urllib.request import urlopen

import httpx
import numpy as np
import pytest
import torch
from PIL import Image

from gaussianmlr.data import load_digits
from gaussianmlr.errors import DataError
from gaussianmlr.model import Model, build
from gaussianmlr.pages.playing import playing_app
from gaussianmlr.recipe import Recipe
from gaussianmlr.sources import _image_inputs
from paging import browser, running

LABELS = tuple("0123456789")


def make_model(channels=1, side=112, method="gmlr"):
    torch.manual_seed(3)
    inputs = _image_inputs(side, channels)
    recipe = Recipe(method=method, backbone="fast")
    return Model(*build(recipe, 10, inputs), LABELS, recipe, inputs)


@pytest.fixture(scope="module")
def model():
    return make_model()


@pytest.fixture(scope="module")
def url(tmp_path_factory, model):
    folder = model.save(tmp_path_factory.mktemp("play") / "model")
    command = ("-m", "gaussianmlr.cli", "play", "--model", folder, "--port", 0, "--digits", "embedded")
    with running(*command) as server:
        yield server.url


def pixels_of(source):
    return np.asarray(Image.open(io.BytesIO(urlopen(source).read())))


def test_the_picture_is_what_was_asked_for_and_what_was_read(url, model):
    asked = {
        "digits": [
            {"digit": 7, "x": 5, "y": 60, "scale": 1.5, "brightness": 0.5, "style": 4},
            {"digit": 2, "x": 70, "y": 10, "scale": 1.0},
        ],
        "confidence": 0.7,
    }
    found = httpx.post(f"{url}/api/read", json=asked).json()
    pixels = pixels_of(found["image"])
    assert pixels.shape == (112, 112)
    sevens = load_digits("test", "embedded")
    seven = Image.fromarray(sevens.images[sevens.of_class(7)[4]]).resize((42, 42), Image.Resampling.BILINEAR)
    inside = pixels[60:102, 5:47].astype(float)
    np.testing.assert_allclose(inside, np.asarray(seven) * 0.5, atol=1.5)
    two = pixels[10:38, 70:98]
    assert (two == sevens.images[sevens.of_class(2)[0]]).all()
    outside = pixels.copy()
    outside[60:102, 5:47] = outside[10:38, 70:98] = 0
    assert outside.max() == 0
    assert found["truth"] == {"scale": "7 > 2", "brightness": "2 > 7"}
    expected = model.predict(torch.from_numpy(pixels.copy())[None, None])
    assert found["order"] == expected.orders[0]
    assert found["partial"] == expected.partial_text(0.7)[0]
    for name in ("significance", "sigma", "p_first", "p_above", "p_relevant"):
        np.testing.assert_allclose(found[name], getattr(expected, name)[0], rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize(
    ("digits", "problem"),
    [
        ([{"digit": 1, "x": 100, "y": 0, "scale": 1.0}], "reaches over the edge of 112"),
        ([{"digit": 1, "x": -1, "y": 0, "scale": 1.0}], "digits.0.x"),
        ([{"digit": 10, "x": 0, "y": 0, "scale": 1.0}], "digits.0.digit"),
        ([{"digit": 1, "x": 0, "y": 0, "scale": 1.0}] * 2, "twice"),
        ([{"digit": 1, "x": 0, "y": 0, "scale": 1.0}] * 11, "at most 10"),
        ([{"digit": 1, "x": 0, "y": 0, "scale": 1.0, "brightness": 2}], "brightness"),
    ],
)
def test_scenes_that_cannot_be_are_refused(url, digits, problem):
    found = httpx.post(f"{url}/api/read", json={"digits": digits})
    assert 400 <= found.status_code < 500
    assert problem in found.json()["error"]
    nan = httpx.post(f"{url}/api/read", content=b'{"digits": [{"digit": 1, "x": 0, "y": 0, "scale": NaN}]}')
    assert 400 <= nan.status_code < 500


def settle(page):
    """Wait until the page has shown the answer to all that was done."""
    page.locator("body[data-settled]:not([data-waiting])").wait_for()


def test_people_move_digits_and_see_what_the_model_says(url, tmp_path):
    with browser() as chromium:
        page = chromium.new_page(viewport={"width": 1200, "height": 950})
        problems = []
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("console", lambda message: message.type == "error" and problems.append(message.text))
        sent = []
        page.on("request", lambda request: sent.append(request.url))
        page.goto(url)
        settle(page)
        assert page.locator("#stage button").count() == 3
        first = pixels_of(page.get_attribute("#picture", "src"))

        handle = page.locator("#stage button[data-digit='7']")  # by mouse, to the upper left corner
        box = handle.bounding_box()
        page.mouse.move(box["x"] + 5, box["y"] + 5)
        page.mouse.down()
        page.mouse.move(box["x"] - 400, box["y"] - 600, steps=4)
        page.mouse.up()
        settle(page)
        assert handle.evaluate("node => [node.style.left, node.style.top]") == ["0%", "0%"]
        moved = pixels_of(page.get_attribute("#picture", "src"))
        assert (moved != first).any()

        handle.focus()  # by keys
        page.keyboard.press("ArrowRight")
        page.keyboard.press("+")
        settle(page)
        assert float(handle.evaluate("node => parseFloat(node.style.left)")) > 0

        page.locator("#brightness").fill("0.2")  # by sliders
        settle(page)
        page.locator("#factor").select_option("brightness")
        assert page.inner_text("#truth") == "1 = 3 > 7"
        page.locator("#picker button[data-digit='9']").click()
        settle(page)
        assert page.inner_text("#truth") == "1 = 3 = 9 > 7"

        scene = page.evaluate("document.body.dataset.scene")
        answer = httpx.post(f"{url}/api/read", json=json.loads(scene)).json()
        assert page.inner_text("#order") == (answer["order"] or "no digit")
        assert page.inner_text("#partial") == (answer["partial"] or "nothing is sure")
        assert page.locator("#curves path").count() == 10
        assert page.locator("#pairs tr").count() == 11
        shown = page.locator("#first .number").first.inner_text()
        assert shown == f"{100 * max(answer['p_first']):.1f} %"
        assert problems == []
        assert all(re.match(rf"{url}/|data:", one) for one in sent)
        unnamed = page.evaluate(
            "[...document.querySelectorAll('button, input, select, img')].filter(node => !node.ariaLabel"
            " && !node.textContent.trim() && !node.alt && !(node.labels ?? []).length).length"
        )
        assert unnamed == 0
        page.set_viewport_size({"width": 360, "height": 740})
        assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_the_shipped_model_orders_digits():
    """Three digits far apart in size, as a user would place them first: the order has to be right."""
    sizes = {4: 2.6, 7: 1.8, 0: 1.1}
    placed = [
        {"digit": digit, "x": x, "y": y, "scale": scale}
        for (digit, scale), (x, y) in zip(sizes.items(), [(10, 10), (120, 20), (60, 140)])
    ]
    with running("-m", "gaussianmlr.cli", "play", "--port", 0, "--digits", "embedded") as server:
        found = httpx.post(f"{server.url}/api/read", json={"digits": placed}).json()
    assert found["order"] == found["truth"]["scale"] == "4 > 7 > 0"


def test_a_model_of_digits_is_asked_for():
    letters = make_model()
    with pytest.raises(DataError, match="expected a model of images with the labels 0 to 9"):
        playing_app(replace(letters, labels=tuple("abcdefghij")), load_digits("test", "embedded"))


def test_colour_and_methods_without_sigma():
    app = playing_app(make_model(channels=3, method="lsep"), load_digits("test", "embedded"))
    scene = {"digits": [{"digit": 4, "x": 0, "y": 0, "scale": 2.0, "hue": 0.0, "saturation": 1.0}]}

    async def ask():
        transport = httpx.ASGITransport(app)
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client,
        ):
            return [
                (await client.get("/api/start")).json(),
                (await client.post("/api/read", json=scene)).json(),
            ]

    start, found = asyncio.run(ask())
    assert (start["colour"], start["canvas"]) == (True, 112)
    pixels = pixels_of(found["image"])
    assert pixels.shape == (112, 112, 3)
    assert pixels[..., 0].max() > 200  # red alone
    assert pixels[..., 1:].max() == 0
    assert found["sigma"] is None
    assert "p_first" not in found


def test_the_round_trip_is_quick(url):
    asked = {"digits": [{"digit": 1, "x": 0, "y": 0, "scale": 2.0}]}

    def seconds(client):
        start = time.perf_counter()
        assert client.post(f"{url}/api/read", json=asked).status_code == 200
        return time.perf_counter() - start

    with httpx.Client() as client:  # a busy machine has a quiet moment
        assert any(seconds(client) < 0.1 for _ in range(100))

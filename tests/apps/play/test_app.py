"""`gmlr play` in a real browser and by real requests."""

import json
import re
import time
from dataclasses import replace

import httpx
import numpy as np
import pytest
import torch
from PIL import Image

from gaussianmlr.apps.play.app import playing_app
from gaussianmlr.cli.play import _named
from gaussianmlr.data import load_digits
from gaussianmlr.errors import DataError
from gaussianmlr.model.scale import JndScale
from support.paging import ask_app, browser, digit_model, pixels_of, running

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def model():
    return replace(digit_model(), jnd=JndScale([-1.0, 2.0], [0.0, 1.0]))


@pytest.fixture(scope="module")
def url(tmp_path_factory, model):
    folder = model.save(tmp_path_factory.mktemp("play") / "model")
    command = ("-m", "gaussianmlr", "play", "--model", folder, "--port", 0, "--digits", "embedded")
    with running(*command) as server:
        yield server.url


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
    (found,) = found["answers"]
    assert found["order"] == expected.orders[0]
    assert found["scale"] == expected.scale == "jnd"
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
        (answer,) = httpx.post(f"{url}/api/read", json=json.loads(scene)).json()["answers"]
        assert page.inner_text("[data-part=order]").startswith(answer["order"] or "(none)")
        assert page.inner_text("[data-part=partial]") == (answer["partial"] or "(none)")
        assert page.locator("#answers [data-part=curves] path").count() == 10
        assert page.inner_text("[data-part=note]").endswith("ordered correctly 84 times in 100.")
        assert page.locator("[data-part=pairs] tr").count() == 11
        shown = page.locator("[data-part=first] .number").first.inner_text()
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
    with running("-m", "gaussianmlr", "play", "--port", 0, "--digits", "embedded") as server:
        found = httpx.post(f"{server.url}/api/read", json={"digits": placed}).json()
    assert found["truth"]["scale"] == "4 > 7 > 0"
    assert {answer["order"] for answer in found["answers"]} == {"4 > 7 > 0"}


def test_a_model_of_digits_is_asked_for():
    letters = digit_model()
    with pytest.raises(DataError, match="expected a model of images with the labels 0 to 9"):
        playing_app({"a": replace(letters, labels=tuple("abcdefghij"))}, load_digits("test", "embedded"))


def test_colour_and_methods_without_sigma():
    app = playing_app({"mine": digit_model(channels=3, method="lsep")}, load_digits("test", "embedded"))
    scene = {"digits": [{"digit": 4, "x": 0, "y": 0, "scale": 2.0, "hue": 0.0, "saturation": 1.0}]}
    start, found = (one.json() for one in ask_app(app, ["/api/start"], ["/api/read", scene]))
    assert (start["colour"], start["canvas"]) == (True, 112)
    pixels = pixels_of(found["image"])
    assert pixels.shape == (112, 112, 3)
    assert pixels[..., 0].max() > 200  # red alone
    assert pixels[..., 1:].max() == 0
    assert found["answers"][0]["sigma"] is None
    assert "p_first" not in found["answers"][0]
    assert start["models"] == [
        {"title": "LSEP strong", "detail": "mine, fast", "scores": "Scores above the learned thresholds"}
    ]


def test_models_of_one_page_share_a_canvas():
    digits = load_digits("test", "embedded")
    gray, colour, small = digit_model(), digit_model(channels=3), digit_model(side=84)
    message = "a takes gray images of 112 pixels, b takes colour images of 112 pixels$"
    with pytest.raises(DataError, match=message):
        playing_app({"a": gray, "b": colour}, digits)
    with pytest.raises(DataError, match="b takes gray images of 84 pixels"):
        playing_app({"a": gray, "b": small}, digits)
    with pytest.raises(DataError, match="expected 1 to 4 models to show side by side, got 5"):
        playing_app(dict.fromkeys("abcde", gray), digits)
    with pytest.raises(DataError, match="expected 1 to 4 models"):
        playing_app({}, digits)


def test_several_models_answer_of_one_canvas():
    """Each answers as it does alone, whatever the order of its labels; some are asked, or all."""
    models = {
        "a": digit_model(),
        "b": digit_model(method="crpc", labels="9876543210"),
        "c": digit_model(method="crpc"),
    }
    app = playing_app(models, load_digits("test", "embedded"))
    scene = {
        "digits": [{"digit": 4, "x": 0, "y": 0, "scale": 2.0}, {"digit": 6, "x": 60, "y": 60, "scale": 1.0}]
    }
    start, every, some, *wrong = ask_app(
        app,
        ["/api/start"],
        ["/api/read", scene],
        ["/api/read", {**scene, "models": [2, 0]}],
        *(["/api/read", {**scene, "models": which}] for which in ([3], [-1], [0, 0], [], [0, 1, 2, 0, 1])),
    )
    titles = [model["title"] for model in start.json()["models"]]
    assert titles == ["GaussianMLR strong", "CRPC strong (b)", "CRPC strong (c)"]
    every, some = every.json(), some.json()
    image = torch.from_numpy(pixels_of(every["image"]).copy())[None, None]
    for model, answer in zip(models.values(), every["answers"]):
        alone = model.predict(image)
        scores = alone.significance if model.method.name == "gmlr" else alone.scores
        found = dict(zip(answer["labels"], answer["significance"]))
        for label, score in zip(model.labels, scores[0]):
            assert found[label] == pytest.approx(score, rel=1e-3, abs=1e-5)
    assert some["answers"] == [every["answers"][2], every["answers"][0]]
    for answer in wrong:
        assert 400 <= answer.status_code < 500
        assert "models" in answer.json()["error"]


def test_folders_are_called_by_names_that_tell_them_apart(tmp_path):
    folders = [tmp_path / "runs/a/model", tmp_path / "runs/b", tmp_path / "other/a", tmp_path / "third/a"]
    assert list(_named(folders)) == ["a", "b", "a, 2", "a, 3"]
    assert list(_named(folders).values()) == folders


def test_the_round_trip_is_quick(url):
    asked = {"digits": [{"digit": 1, "x": 0, "y": 0, "scale": 2.0}]}

    def seconds(client):
        start = time.perf_counter()
        assert client.post(f"{url}/api/read", json=asked).status_code == 200
        return time.perf_counter() - start

    with httpx.Client() as client:  # a busy machine has a quiet moment
        assert any(seconds(client) < 0.1 for _ in range(100))

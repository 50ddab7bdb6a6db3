"""The film of `gmlr play`, and models side by side, in a real browser and by real requests."""

import threading
import time

import httpx
import numpy as np
import pytest
import torch
from scipy import stats

from gaussianmlr.apps.play.app import playing_app
from gaussianmlr.apps.play.film import Shooting, film_probe, film_setting, sheet
from gaussianmlr.data import SETTINGS, adjusting_sequences, load_digits
from gaussianmlr.data.ranked_mnist.settings import Setting
from gaussianmlr.model.scale import JndScale
from support.paging import ask_app, browser, digit_model, pixels_of, running

pytestmark = pytest.mark.slow

METHODS = ("gmlr", "crpc")


@pytest.fixture(scope="module")
def models():
    found = [digit_model(method=method) for method in METHODS]
    found[METHODS.index("gmlr")].jnd = JndScale([-1.0, 2.0], [0.0, 1.0])
    return found


@pytest.fixture(scope="module")
def url(tmp_path_factory, models):
    folder = tmp_path_factory.mktemp("film")
    chosen = [part for one in models for part in ("--model", one.save(folder / one.method.name))]
    with running("-m", "gaussianmlr", "play", *chosen, "--port", 0, "--digits", "embedded") as server:
        yield server.url


def test_the_film_is_the_papers_sequence():
    """On the paper's canvas: the same digits, frames and true significances as its figure has."""
    play = Setting(name="play", factor="scale", scale=(0.5, 1.0))
    digits = load_digits("test", "embedded")
    for factor, name in (("scale", "gray-s"), ("brightness", "gray-b")):
        papers = adjusting_sequences(name, count=1, frames=50, seed=3, digits=digits)
        probe = film_probe(Shooting(factor=factor, seed=3), play, digits)
        assert probe.setting.pictures == SETTINGS[name].pictures
        assert probe.labels.tolist() == papers.labels.tolist()
        np.testing.assert_array_equal(probe[0], papers[0])
        np.testing.assert_array_equal(probe.significance, papers.significance)


@pytest.mark.parametrize("canvas", [32, 56, 84, 112, 160, 224, 400])
@pytest.mark.parametrize("factor", ["scale", "brightness"])
def test_digits_of_a_film_fit_any_canvas(canvas, factor):
    play = Setting(name="play", factor="scale", scale=(0.5, 0.6), canvas=canvas)
    low, high = getattr(film_setting(play, factor), factor)
    assert high == pytest.approx(1.0 if factor == "brightness" else min(3.0, canvas / 56))
    assert low < high
    probe = film_probe(Shooting(factor=factor, frames=3), play, load_digits("test", "embedded"))
    assert probe[0].shape == (3, 1, canvas, canvas)


@pytest.mark.parametrize(("count", "channels"), [(1, 1), (10, 3), (23, 1), (60, 3)])
def test_every_frame_is_in_its_place_on_the_sheet(count, channels):
    images = np.random.default_rng(0).integers(0, 256, (count, channels, 6, 6), np.uint8)
    found = sheet(images)
    for place, image in enumerate(images):
        x, y = 6 * (place % 10), 6 * (place // 10)
        np.testing.assert_array_equal(found[:, y : y + 6, x : x + 6], image)


def naive_numbers(scores, truth):
    """Monotonicity, linearity and drift of one sequence, by scipy."""
    changing = [(scores[:, place], truth[:, place]) for place in (0, 2)]
    reach = [max(score) - min(score) for score, _ in changing]
    mean = sum(scores[:, 1]) / len(scores)
    deviation = (sum((score - mean) ** 2 for score in scores[:, 1]) / len(scores)) ** 0.5
    return {
        "monotonicity": np.mean([stats.spearmanr(*pair).statistic for pair in changing]),
        "linearity": np.mean([stats.pearsonr(*pair).statistic for pair in changing]),
        "drift": deviation / np.mean(reach),
    }


def test_frames_and_readings_are_those_of_the_models(url, models):
    asked = {"factor": "brightness", "digits": [5, 0, 8], "seed": 4, "frames": 23}
    answer = httpx.post(f"{url}/api/film", json=asked, timeout=60)
    assert answer.status_code == 200
    assert len(answer.content) < 1 << 20
    found = answer.json()
    setting = Setting(name="by hand", factor="brightness", brightness=(0, 1), canvas=112)
    probe = adjusting_sequences(setting, count=1, frames=23, seed=4, digits="embedded", labels=[5, 0, 8])
    pixels = pixels_of(found["sheet"])
    frames = probe[0]
    for t, image in enumerate(frames):
        x, y = 112 * (t % 10), 112 * (t // 10)
        np.testing.assert_array_equal(pixels[y : y + 112, x : x + 112], image[0])
    assert found["digits"] == [5, 0, 8]
    np.testing.assert_allclose(found["true"], [[t / 22, 0.5, 1 - t / 22] for t in range(23)])
    assert found["orders"][0] == "8 > 0 > 5"
    assert found["orders"][11] == "0 = 5 = 8"
    assert found["orders"][-1] == "5 > 0 > 8"
    for model, track in zip(models, found["answers"]):
        alone = model.predict(frames)
        by_sigma = model.method.name == "gmlr"
        scores = (alone.significance if by_sigma else alone.scores)[:, [5, 0, 8]]
        np.testing.assert_allclose(track["significance"], scores, rtol=1e-3, atol=1e-5)
        assert track["orders"] == alone.orders
        assert track["scale"] == alone.scale
        if by_sigma:
            np.testing.assert_allclose(track["sigma"], alone.sigma[:, [5, 0, 8]], rtol=1e-3)
        else:
            assert track["sigma"] is None
        expected = naive_numbers(np.array(track["significance"]), np.array(found["true"]))
        assert track["numbers"] == pytest.approx(expected, abs=2e-4)


def test_another_seed_is_another_film_and_nothing_else_is(url):
    def film(**asked):
        return httpx.post(f"{url}/api/film", json={"frames": 3, "models": [0], **asked}, timeout=60).json()

    first, again, other = film(seed=1), film(seed=1), film(seed=2)
    assert first == again
    assert (first["digits"], first["sheet"]) != (other["digits"], other["sheet"])
    assert len(first["answers"]) == 1
    kept = film(seed=2, digits=first["digits"])
    assert kept["digits"] == first["digits"]
    assert kept["sheet"] != first["sheet"]  # another handwriting


@pytest.mark.parametrize(
    ("asked", "problem"),
    [
        ({"frames": 61}, "frames"),
        ({"frames": 1}, "frames"),
        ({"frames": 1e9}, "frames"),
        ({"seed": -1}, "seed"),
        ({"seed": 1 << 31}, "seed"),
        ({"seed": "no"}, "seed"),
        ({"factor": "hue"}, "factor"),
        ({"digits": [1, 2]}, "digits"),
        ({"digits": [1, 2, 3, 4]}, "digits"),
        ({"digits": [1, 2, 2]}, "three different digits"),
        ({"digits": [1, 2, 10]}, "digits.2"),
        ({"digits": [1, 2, None]}, "digits.2"),
        ({"models": [5]}, "expected different ones of 0 to 0"),
        ({"models": []}, "models"),
        ({"canvas": 9000}, "canvas"),
        (b'{"frames": NaN}', "frames"),
        (b'{"seed": 1e400}', "seed"),
        (b"[" * 40000, ""),
        (b"x" * 70000, ""),
    ],
)
def test_films_that_cannot_be_are_refused(asked, problem, refusing):
    (found,) = ask_app(refusing, ["/api/film", asked])
    assert 400 <= found.status_code < 500
    assert problem in found.json()["error"]


@pytest.fixture(scope="module")
def refusing(models):
    return playing_app({"one": models[0]}, load_digits("test", "embedded"))


def test_scores_that_never_change_have_no_drift():
    """A network that says the same of all images: a number, or none, but an answer that JSON can hold."""
    model = digit_model(method="crpc", side=64)
    with torch.no_grad():
        for parameter in model.network.head.parameters():
            parameter.zero_()
    (found,) = ask_app(
        playing_app({"flat": model}, load_digits("test", "embedded")), ["/api/film", {"frames": 5}]
    )
    assert found.status_code == 200
    assert found.json()["answers"][0]["numbers"] == {"monotonicity": 0.0, "linearity": 0.0, "drift": None}


def test_colours_of_a_film_do_not_flicker():
    model = digit_model(channels=3, side=84)
    app = playing_app({"colour": model}, load_digits("test", "embedded"))
    asked = {"factor": "brightness", "frames": 6, "seed": 2}
    (found,) = ask_app(app, ["/api/film", asked])
    pixels = pixels_of(found.json()["sheet"]).astype(float)
    assert pixels.shape == (84, 6 * 84, 3)
    still = pixels[42:, :42]  # the digit that keeps its brightness, in the lower left
    for t in range(1, 6):
        np.testing.assert_array_equal(pixels[42:, 84 * t : 84 * t + 42], still)


def ready(page):
    """Wait until the page has shown all that was asked for."""
    page.locator("body[data-settled]:not([data-waiting]):not([data-filming])").wait_for()


@pytest.fixture(scope="module")
def chromium():
    with browser() as found:
        yield found


def opened(chromium, address, **options):
    """A page, and what went wrong on it."""
    page = chromium.new_page(viewport={"width": 1300, "height": 950}, **options)
    problems = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda message: message.type == "error" and problems.append(message.text))
    page.goto(address)
    ready(page)
    return page, problems


def test_two_models_stand_side_by_side(url, chromium):
    page, problems = opened(chromium, url)
    columns = page.locator("#answers .column")
    assert columns.count() == 2
    assert columns.nth(0).locator("h2").inner_text() == "GaussianMLR strong"
    assert columns.nth(1).locator("h2").inner_text() == "CRPC strong"
    boxes = [columns.nth(k).bounding_box() for k in range(2)]
    assert boxes[0]["y"] == boxes[1]["y"]
    assert boxes[0]["x"] + boxes[0]["width"] <= boxes[1]["x"]
    assert columns.nth(0).locator("[data-part=curves] path").count() == 10
    assert columns.nth(1).locator("[data-part=curves] rect").count() == 10
    assert "threshold" in columns.nth(1).locator("[data-part=curves]").text_content()
    assert "no sigma" in columns.nth(1).locator("[data-part=first]").inner_text()

    scene = page.evaluate("JSON.parse(document.body.dataset.scene)")
    found = httpx.post(f"{url}/api/read", json=scene).json()
    for k, answer in enumerate(found["answers"]):
        order = columns.nth(k).locator("[data-part=order]").inner_text()
        verdict = "✓ correct" if answer["order"] == found["truth"]["scale"] else "✗ not the true order"
        assert order.split() == [*(answer["order"] or "(none)").split(), *verdict.split()]

    picker = page.locator("#models button")  # one of two, the other, and never none
    picker.nth(0).click()
    ready(page)
    assert columns.locator("h2").all_inner_texts() == ["CRPC strong"]
    assert picker.nth(0).get_attribute("aria-pressed") == "false"
    assert page.evaluate("JSON.parse(document.body.dataset.scene).models") == [1]
    picker.nth(1).click()
    assert columns.count() == 1
    picker.nth(0).click()
    ready(page)
    assert columns.locator("h2").all_inner_texts() == ["GaussianMLR strong", "CRPC strong"]
    assert problems == []
    page.close()


def frame_of(page):
    return int(page.input_value("#frame"))


def test_people_search_a_film_that_stands_still(url, chromium):
    """With reduced motion nothing plays by itself; every frame can be seen."""
    page, problems = opened(chromium, url, reduced_motion="reduce")
    page.locator("#go-film").click()
    page.locator("#play:enabled").wait_for()
    ready(page)
    page.wait_for_timeout(300)
    assert frame_of(page) == 0
    assert page.inner_text("#play") == "Play"
    film = httpx.post(f"{url}/api/film", json={"seed": 0}, timeout=60).json()
    tracks = page.locator("#tracks .column")
    assert tracks.locator("h2").all_inner_texts() == ["GaussianMLR strong", "CRPC strong"]
    assert [tracks.nth(k).locator("path.band").count() for k in range(2)] == [3, 0]
    assert tracks.nth(0).locator("path[data-digit]").count() == 3

    def uncovered(k):
        return float(tracks.nth(k).locator("clipPath rect").get_attribute("width"))

    widths = []
    for t in (0, 20, 49):
        page.locator("#frame").fill(str(t))
        widths.append(uncovered(0))
        assert page.inner_text("#film-truth") == film["orders"][t]
        shown = pixels_of(page.evaluate("document.getElementById('screen').toDataURL()"))
        x, y = 112 * (t % 10), 112 * (t // 10)
        np.testing.assert_array_equal(shown[..., 0], pixels_of(film["sheet"])[y : y + 112, x : x + 112])
        for k, answer in enumerate(film["answers"]):
            assert (
                tracks.nth(k)
                .locator("[data-part=order]")
                .inner_text()
                .startswith(answer["orders"][t] or "(none)")
            )
            numbers = tracks.nth(k).locator("[data-number]").all_inner_texts()
            ended = [f"{value:.3f}" for value in answer["numbers"].values()]
            assert numbers == (ended if t == 49 else ["–"] * 3)
    assert widths == sorted(set(widths))

    page.locator("#film-said:not(:empty)").wait_for(state="attached")  # aloud, once it stands still
    assert "linearity" in page.evaluate(
        "new Promise(done => setTimeout(() => done(document.getElementById('film-said').textContent), 600))"
    )
    page.locator("h1").click()  # by keys, from the page itself
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowLeft")
    assert frame_of(page) == 1
    page.keyboard.press("End")
    assert frame_of(page) == 49
    unnamed = page.evaluate(
        "[...document.querySelectorAll('button, input, select, img, canvas, svg')].filter(node =>"
        " !node.ariaLabel && !node.textContent.trim() && !node.alt && !(node.labels ?? []).length).length"
    )
    assert unnamed == 0
    page.set_viewport_size({"width": 400, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    assert problems == []
    page.close()


def test_people_play_and_change_a_film(url, chromium):
    page, problems = opened(chromium, f"{url}/#film", reduced_motion="no-preference")
    page.locator("#play:has-text('Pause')").wait_for()  # it plays by itself
    said = page.evaluate_handle(
        "(() => { const said = []; const options = { childList: true, subtree: true };"
        " const watch = new MutationObserver(() => said.push(1));"
        " watch.observe(document.getElementById('film-said'), options); return said; })()"
    )
    page.locator("#speed").select_option("4")
    page.locator("#frame-out:text-is('50 of 50')").wait_for()
    page.locator("#play:has-text('Play')").wait_for()  # and ends
    page.wait_for_timeout(600)
    assert 1 <= said.evaluate("said => said.length") <= 3  # not fifty times
    page.locator("#speed").select_option("0.25")
    page.locator("h1").click()
    page.keyboard.press("Space")
    page.locator("#frame-out:not(:text-is('1 of 50')):not(:text-is('50 of 50'))").wait_for()
    page.keyboard.press("Space")
    assert page.inner_text("#play") == "Play"
    held = frame_of(page)
    page.wait_for_timeout(700)
    assert frame_of(page) == held < 49

    asked = []
    page.on("request", lambda one: asked.append(one.post_data_json) if "/api/film" in one.url else None)

    def changed(act):
        """Do something, and what was asked for by then."""
        count = len(asked)
        act()
        while len(asked) == count:
            page.wait_for_timeout(20)
        ready(page)
        return asked[-1]

    before = [page.input_value(f"#cast-{role}") for role in ("gains", "keeps", "loses")]
    swapped = changed(lambda: page.select_option("#cast-gains", before[1]))
    assert swapped["digits"] == [int(before[1]), int(before[0]), int(before[2])]
    assert page.is_checked("#keep")
    page.locator("h1").click()
    kept = changed(lambda: page.keyboard.press("n"))
    assert (kept["digits"], kept["seed"]) == (swapped["digits"], swapped["seed"] + 1)
    page.uncheck("#keep")
    other = changed(lambda: page.click("#another"))
    assert (other["digits"], other["seed"]) == (None, kept["seed"] + 1)
    bright = changed(lambda: page.select_option("#film-factor", "brightness"))
    assert bright["factor"] == "brightness"
    assert "true brightness" in page.locator("[data-part=track]").first.text_content()
    alone = changed(lambda: page.locator("#models button").nth(0).click())
    assert alone["models"] == [1]
    assert page.locator("#tracks h2").all_inner_texts() == ["CRPC strong"]
    page.locator("#go-canvas").click()
    page.wait_for_selector("#answers .column")
    assert not page.locator("#screen").is_visible()
    assert problems == []
    page.close()


def test_a_film_leaves_room_for_the_canvas(url):
    """While films are made, a canvas that somebody moves is answered before the films are."""
    scene = {"digits": [{"digit": 1, "x": 0, "y": 0, "scale": 2.0}]}
    done = []

    def shoot():
        done.append(httpx.post(f"{url}/api/film", json={"frames": 60}, timeout=120).status_code)

    threads = [threading.Thread(target=shoot) for _ in range(4)]
    for thread in threads:
        thread.start()
    answered = 0
    with httpx.Client(timeout=60) as client:
        while len(done) < 4:
            assert client.post(f"{url}/api/read", json=scene).status_code == 200
            answered += 1
            time.sleep(0.01)
    for thread in threads:
        thread.join()
    assert done == [200] * 4
    assert answered >= 8


def test_too_many_films_at_a_time_are_sent_away(url):
    statuses, retry = [], []

    def shoot():
        found = httpx.post(f"{url}/api/film", json={"frames": 20}, timeout=120)
        statuses.append(found.status_code)
        retry.extend(found.headers.get_list("retry-after"))

    threads = [threading.Thread(target=shoot) for _ in range(24)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(statuses) == {200, 503}
    assert statuses.count(200) >= 8
    assert len(retry) == statuses.count(503)

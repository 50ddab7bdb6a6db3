"""The page of `gmlr try` and `gmlr serve`, and the page of the HTTP API, in a real browser."""

import json
from dataclasses import replace

import httpx
import numpy as np
import pytest
import torch
from PIL import Image

from gaussianmlr.apps.serve.service import read_picture
from gaussianmlr.data.inputs import read_rows
from gaussianmlr.data.open import image_inputs
from gaussianmlr.model.model import Model, build
from gaussianmlr.model.recipe import Recipe
from gaussianmlr.model.scale import JndScale
from support.commanding import gmlr
from support.paging import browser, digit_model, running

pytestmark = pytest.mark.slow

LABELS = ("steep", "a > b", "sunny; dry", 'the "Alps"', "quiet", "__proto__")
TABLE = {
    "kind": "table",
    "channels": 6,
    "columns": ["height", "length", "town", "day", "loop", "code"],
    "encoding": [
        {"kind": "number", "gaps": True},
        {"kind": "number"},
        {"kind": "category", "categories": ["Oslo", "Rome", "Zürich"]},
        {"kind": "date", "parts": ["days"]},
        {"kind": "boolean"},
        {"kind": "category", "categories": [f"{k:03}" for k in range(400)]},
    ],
    "scaling": {"mean": [820.0, -1.5, 0, 19_000.0, 0.7, 0], "std": [300.0, 4.0, 1, 100.0, 0.46, 1]},
}


def make_model(inputs, labels=LABELS, method="gmlr", backbone="mlp"):
    torch.manual_seed(0)
    recipe = Recipe(method=method, backbone=backbone)
    return Model(*build(recipe, len(labels), inputs), tuple(labels), recipe, inputs)


@pytest.fixture(scope="module")
def chromium():
    with browser() as found:
        yield found


def opened(chromium, url, **look):
    """A page that has settled; what goes wrong in it, and every address that it asks for."""
    page = chromium.new_page(**({"viewport": {"width": 1200, "height": 950}} | look))
    page.problems, page.sent = [], []
    page.on("pageerror", lambda error: page.problems.append(str(error)))
    page.on("console", lambda message: message.type == "error" and page.problems.append(message.text))
    page.on("request", lambda request: page.sent.append(request.url))
    page.goto(url)
    page.locator("body[data-settled]").wait_for()
    return page


def settle(page):
    page.locator("body[data-settled]:not([data-waiting])").wait_for()


def check_shown(page, expected, confidence=0.9):
    """The page shows this prediction of one instance."""
    buckets = [" = ".join(bucket) for bucket in expected.lists[0]]
    assert page.inner_text("#order").split() == (" > ".join(buckets) or "(none)").split()
    chips = page.locator("#partial .chip").all_inner_texts()
    possible = expected.p_relevant[0] > 1 - confidence
    assert set(chips) == {label for label, one in zip(expected.labels, possible) if one}
    by_score = np.argsort(-expected.scores[0], kind="stable")
    rows = page.locator("#labels tbody tr")
    assert rows.locator("th").all_inner_texts() == [expected.labels[k] for k in by_score]
    for name in ("p_relevant", "p_first"):
        shown = rows.locator(f"[data-part={name}]").all_inner_texts()
        found = [float(text.removesuffix("%")) / 100 for text in shown]
        np.testing.assert_allclose(found, getattr(expected, name)[0][by_score], atol=6e-4)
    assert page.locator("#curves path").count() == len(LABELS)


def check_accessible(page, url):
    """Every control has a name, nothing is asked for elsewhere, small screens need no sideways scrolling."""
    assert page.problems == []
    assert all(one.startswith((f"{url}/", "data:", "blob:")) for one in page.sent)
    unnamed = page.evaluate(
        "[...document.querySelectorAll('button, input, select, textarea, img')].filter(node =>"
        " !node.ariaLabel && !node.textContent.trim() && !node.alt && !(node.labels ?? []).length).length"
    )
    assert unnamed == 0
    page.set_viewport_size({"width": 360, "height": 740})
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_people_fill_in_a_row_and_see_what_the_model_says(tmp_path, chromium):
    model = replace(make_model(TABLE), jnd=JndScale([-1.0, 2.0], [0.0, 1.0]))
    folder = model.save(tmp_path / "model")
    with running("-m", "gaussianmlr", "try", folder, "--port", 0) as server:
        page = opened(chromium, server.url)
        assert page.inner_text("#note").endswith("ordered correctly 84 times in 100.")
        row = [820, -1.5, "Oslo", "2022-01-08", True, "000"]  # the middle of the training rows
        check_shown(page, model.predict(read_rows([row], TABLE)))

        page.get_by_label("height", exact=True).fill("1600.5")  # by keys
        page.get_by_label("town").select_option("Zürich")
        page.get_by_label("day").fill("2021-06-01")
        page.get_by_label("loop").select_option("false")
        page.get_by_label("code").fill("unknown")
        settle(page)
        row = [1600.5, -1.5, "Zürich", "2021-06-01", False, "unknown"]
        check_shown(page, model.predict(read_rows([row], TABLE)))

        slider = page.get_by_label("length, slider")  # by a slider, with keys
        slider.focus()
        for _ in range(25):
            page.keyboard.press("ArrowRight")
        settle(page)
        length = page.get_by_label("length", exact=True).input_value()
        assert float(length) == pytest.approx(-1.5 + 25 * 24 / 200, abs=0.01)
        page.locator("#confidence").fill("0.6")
        settle(page)
        row[1] = float(length)
        check_shown(page, model.predict(read_rows([row], TABLE)), 0.6)
        check_accessible(page, server.url)

        page.get_by_role("button", name="Empty").click()
        settle(page)
        empty = model.predict(read_rows([[None] * 6], TABLE))
        check_shown(page, empty, 0.6)

        page.get_by_label("length", exact=True).fill("long")  # what went wrong, in the server's words
        page.get_by_text("'long' in column 'length'; expected a number").wait_for()
        assert not page.locator("#answer").is_visible()
        page.get_by_role("button", name="Typical values").click()
        settle(page)
        assert page.locator("#answer").is_visible()
        assert page.locator("#trouble").inner_text() == ""


def test_numbers_beside_a_text_begin_with_typical_values(tmp_path, chromium):
    terms = {"encoder": "text:tfidf", "tokens": 8, "vocabulary": "happy\nsad", "weights": [1.0, 1.0]}
    inputs = {
        "kind": "table",
        "channels": 11,
        "columns": ["stars", "comment", "day", "length"],
        "encoding": [
            {"kind": "number"},
            {"kind": "text", "text": terms},
            {"kind": "date", "parts": ["days"]},
            {"kind": "number"},
        ],
        "scaling": {"mean": [3.25, *[0.0] * 8, 19_000.0, -1.5], "std": [1.0, *[1.0] * 8, 100.0, 4.0]},
    }
    model = make_model(inputs, backbone="text:tfidf")
    with running("-m", "gaussianmlr", "try", model.save(tmp_path / "model"), "--port", 0) as server:
        page = opened(chromium, server.url)
        check_shown(page, model.predict(read_rows([[3.25, "", "2022-01-08", -1.5]], inputs)))
        page.get_by_label("comment").fill("so happy, so sad")
        settle(page)
        check_shown(page, model.predict(read_rows([[3.25, "so happy, so sad", "2022-01-08", -1.5]], inputs)))
        assert page.locator("#answer").get_by_text("After ? come labels").is_visible()
        check_accessible(page, server.url)


def test_cells_of_a_spreadsheet_fill_the_fields(tmp_path, chromium):
    model = make_model(TABLE)
    with running("-m", "gaussianmlr", "serve", model.save(tmp_path / "model"), "--port", 0) as server:
        page = opened(chromium, server.url)
        page.get_by_label("length", exact=True).evaluate(
            """node => {
              const clipboardData = new DataTransfer();
              clipboardData.setData("text", CELLS);
              const look = { clipboardData, bubbles: true, cancelable: true };
              node.dispatchEvent(new ClipboardEvent("paste", look));
            }""".replace("CELLS", json.dumps("2.25\tRome\t2022-03-04 12:00\tfalse\t007\textra\nnext\tline"))
        )
        settle(page)
        row = [820, 2.25, "Rome", "2022-03-04 12:00", False, "007"]
        check_shown(page, model.predict(read_rows([row], TABLE)))


def test_people_drop_a_picture(tmp_path, chromium):
    inputs = image_inputs(32, 3)
    model = make_model(inputs, backbone="fast")
    pixels = np.random.default_rng(0).integers(0, 256, (2, 32, 32, 3), dtype=np.uint8)
    files = [tmp_path / "a.png", tmp_path / "b.png"]
    for file, one in zip(files, pixels):
        Image.fromarray(one).save(file)
    read = [read_picture(file.read_bytes(), model, file.name, 10_000) for file in files]
    expected = [model.predict(one[None]) for one in read]
    with running("-m", "gaussianmlr", "try", model.save(tmp_path / "model"), "--port", 0) as server:
        page = opened(chromium, server.url)
        assert not page.locator("#answer").is_visible()
        page.set_input_files("#file", files[0])
        settle(page)
        check_shown(page, expected[0])
        page.locator(".drop").evaluate(
            """async (node, bytes) => {
              const dataTransfer = new DataTransfer();
              dataTransfer.items.add(new File([new Uint8Array(bytes)], "b.png", { type: "image/png" }));
              node.dispatchEvent(new DragEvent("drop", { dataTransfer, bubbles: true, cancelable: true }));
            }""",
            list(files[1].read_bytes()),
        )
        settle(page)
        check_shown(page, expected[1])
        assert "b.png" in page.inner_text(".drop")
        check_accessible(page, server.url)
        (tmp_path / "c.png").write_text("no picture")
        page.set_input_files("#file", tmp_path / "c.png")
        page.get_by_text("c.png").first.wait_for()
        page.locator("#trouble:not(:empty)").wait_for()


def test_people_type_a_text(tmp_path, chromium):
    """The page of a model of one column of texts, and what it sends; a row is answered in its place."""
    model = make_model({"kind": "table", "channels": 1})
    with running("-m", "gaussianmlr", "try", model.save(tmp_path / "model"), "--port", 0) as server:
        page, sent = chromium.new_page(), []

        def describe(route):
            about = route.fetch().json()
            column = {"kind": "text", "text": {"encoder": "text:minilm", "tokens": 64}}
            about["inputs"] |= {"columns": ["comment"], "encoding": [column]}
            route.fulfill(json=about)

        def answer(route):
            sent.append(route.request.post_data_json)
            rest = {name: value for name, value in sent[-1].items() if name != "texts"}
            route.fulfill(response=route.fetch(post_data=json.dumps({"rows": [[len(sent)]]} | rest)))

        page.route("**/info", describe)
        page.route("**/predict", answer)
        page.goto(server.url)
        page.locator("body[data-settled]").wait_for()
        assert sent == []  # nothing is typed
        assert not page.locator("#answer").is_visible()
        page.keyboard.type("so happy today")  # the field has the focus
        page.locator("#order:not(:empty)").wait_for()
        settle(page)
        assert sent[-1]["texts"] == ["so happy today"]
        check_shown(page, model.predict(read_rows([[len(sent)]], {"kind": "table", "channels": 1})))


def test_a_model_without_sigma_shows_bars_and_one_of_many_columns_a_search(tmp_path, chromium):
    labels = [f"label {k}" for k in range(250)]
    model = make_model({"kind": "table", "channels": 100}, labels, "lsep")
    with running("-m", "gaussianmlr", "try", model.save(tmp_path / "model"), "--port", 0) as server:
        page = opened(chromium, server.url, color_scheme="dark", viewport={"width": 400, "height": 800})
        expected = model.predict(torch.zeros(1, 100))
        assert page.locator("#curves rect").count() == 10
        assert not page.locator("#certainty").is_visible()
        assert page.locator("#labels tbody tr").count() == 20
        page.get_by_role("button", name="Show 50 labels").click()  # the server gives no more of them
        shown = page.locator("#labels tbody th").all_inner_texts()
        assert shown == [labels[k] for k in np.argsort(-expected.scores[0], kind="stable")[:50]]
        assert "The 10 most significant of 250 labels" in page.inner_text("#note")
        assert page.locator(".field").count() == 60
        page.get_by_label("Find a column").fill("77")
        page.get_by_label("77", exact=True).fill("2.5")
        page.get_by_label("Find a column").fill("")
        settle(page)
        row = torch.zeros(1, 100)
        row[0, 77] = 2.5
        best = labels[int(model.predict(row).scores.argmax())]
        assert page.locator("#labels tbody th").first.inner_text() == best
        assert page.evaluate("document.documentElement.scrollWidth") <= 400
        dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert sum(map(int, dark.removeprefix("rgb(").removesuffix(")").split(","))) < 150


def test_the_api_as_a_page(tmp_path, chromium):
    """Rendered from the description alone; the example of a model is answered as it stands."""
    model = make_model(TABLE)
    with running("-m", "gaussianmlr", "serve", model.save(tmp_path / "model"), "--port", 0) as server:
        page = opened(chromium, f"{server.url}/docs")
        described = httpx.get(f"{server.url}/openapi.json").json()
        operations = [f"{method}{path}" for path, of in described["paths"].items() for method in of]
        found = page.locator("#operations section").evaluate_all("all => all.map(one => one.id)")
        assert found == operations
        box = page.locator("section[id='post/predict']")
        for name, schema in described["components"]["schemas"]["Asked"]["properties"].items():
            assert name in box.inner_text()
            assert schema.get("description", "") in box.inner_text()
        box.get_by_role("button", name="Send").click()
        box.locator("pre:not(:empty)").wait_for()
        assert '"method": "gmlr"' in box.locator("pre").inner_text()
        check_accessible(page, server.url)


def test_a_token_keeps_others_out_of_the_pages(tmp_path, chromium):
    folder = make_model(TABLE).save(tmp_path / "model")
    with running("-m", "gaussianmlr", "try", folder, "--port", 0, "--token", "correct-horse") as server:
        for path in ("/", "/docs", "/static/serve/main.js", "/static/web/docs.js"):
            assert httpx.get(f"{server.url}{path}", headers={"accept": "text/html"}).status_code == 401
        for path in ("/", "/docs"):
            entered = httpx.get(
                f"{server.url}{path}?token=correct-horse&v=1", headers={"accept": "text/html"}
            )
            assert (entered.status_code, entered.headers["location"]) == (303, f"{path}?v=1")
        page = opened(chromium, f"{server.url}/?token=correct-horse")
        asked = []
        page.on("request", lambda request: asked.append((request.url, request.headers.get("referer", ""))))
        assert page.url == f"{server.url}/"
        assert page.locator("#order").inner_text()
        page.get_by_role("link", name="HTTP API").click()
        page.locator("#operations section").first.wait_for()
        assert asked
        assert "correct-horse" not in str(asked)
        server.process.send_signal(15)
        assert "correct-horse" not in "".join(server.process.communicate(timeout=60))


def test_all_servers_have_the_page_of_their_api(tmp_path, chromium):
    digits = digit_model(side=56).save(tmp_path / "model")
    command = ("play", "--model", digits, "--digits", "embedded", "--port", 0)
    with running("-m", "gaussianmlr", *command) as server:
        page = opened(chromium, f"{server.url}/docs")
        assert "POST /api/read" in page.inner_text("#contents")
        assert page.problems == []


def test_try_says_what_is_wrong(tmp_path):
    refused = gmlr("try", tmp_path)
    assert refused.returncode == 2
    assert str(tmp_path) in refused.stderr
    make_model(TABLE).save(tmp_path / "model")
    refused = gmlr("try", tmp_path / "model", "--host", "0.0.0.0")
    assert (refused.returncode, "give a --token" in refused.stderr) == (2, True)

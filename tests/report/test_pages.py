"""What every report must be: safe, whole, named for those who cannot see it, and right in a real browser."""

import re

import numpy as np
import pytest

from gaussianmlr.plots import HistoryDisplay, SignificanceDisplay
from gaussianmlr.report import write_report
from gaussianmlr.report.counts import confusion, pick_examples, place_table, places
from gaussianmlr.report.page import environment
from gaussianmlr.report.svg import drawn
from support.paging import browser
from support.parsing import Page

KINDS = ("run", "lsep", "photos", "comparison")
SCRIPT, IMAGE, MATHS = "<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "$\\frac{a}{b}$ & <b>"


@pytest.fixture(scope="module", params=KINDS)
def file(request):
    return write_report(request.getfixturevalue(request.param))


def test_nothing_comes_from_outside_and_nothing_runs(file):
    page = Page(file)
    for node in page.root.all():
        assert node.tag not in ("script", "link", "iframe", "object", "embed", "base", "form")
        for name, value in node.attributes.items():
            assert not name.startswith("on"), f"<{node.tag} {name}>"
            if name in ("src", "href", "xlink:href", "srcset", "poster", "action"):
                assert value.startswith(("#", "data:")), value
            assert "url(" not in (value or "").replace("url(#", "")
    assert "url(" not in page.root.first("style").text
    assert "@import" not in page.root.first("style").text
    policy = [one.attributes.get("content", "") for one in page.root.all("meta")]
    assert any("default-src 'none'" in text for text in policy)
    assert file.stat().st_size < 2_000_000


def test_everything_has_a_name(file):
    page = Page(file)
    ids = [node.attributes["id"] for node in page.root.all() if "id" in node.attributes]
    assert len(ids) == len(set(ids))
    for node in page.root.all():
        for name in ("href", "xlink:href"):
            if node.attributes.get(name, "").startswith("#"):
                assert node.attributes[name][1:] in ids
    assert all(image.attributes["alt"] for image in page.root.all("img"))
    drawings = list(page.root.all("svg"))
    assert drawings
    assert all(one.attributes["role"] == "img" and len(one.attributes["aria-label"]) > 20 for one in drawings)
    for table in page.root.all("table"):
        assert table.first("caption").text
        assert all(head.attributes["scope"] in ("col", "row") for head in table.all("th"))
        widths = {sum(cell.tag in ("th", "td") for cell in row.all()) for row in table.all("tr")}
        assert len(widths) == 1
    assert len(list(page.root.all("h1"))) == 1
    assert page.root.first("html").attributes["lang"] == "en"


def test_labels_and_names_that_try_to_get_out(photos):
    page = Page(write_report(photos))
    for label in (SCRIPT, IMAGE, MATHS):
        assert label in page.root.text
    labels = {text.text.strip() for text in page.root.all("text")}
    assert any(text.startswith("<script>alert(1)</scr") for text in labels)
    assert any("$\\frac{a}{b}$" in text for text in labels)  # and not as mathematics
    names = [card.first("h4").text for card in page.root.all("article")]
    assert names
    assert all(re.fullmatch(r"\d+ <i>&amp;' onload='x\.png", name) for name in names)


@pytest.mark.parametrize("bad", ["a\x00b", "a\x1bb", "a\ud800b"])
def test_texts_that_no_file_can_hold(bad):
    made = environment().from_string('<p title="{{ text }}">{{ text }}</p>').render(text=bad)
    assert made == '<p title="a\ufffdb">a\ufffdb</p>'


def test_escaping_is_not_undone_in_drawings():
    labels = ['<g id="x">', 'url(#y) x="#000000"', "1.23456"]
    display = SignificanceDisplay([3.0, 2.0, 1.0], labels)
    made = drawn("bars", 'said "so"', (4, 2), display.plot)
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", made)
    assert {'&lt;g id="x"&gt;', 'url(#y) x="#000000"', "1.23456"} <= set(texts)
    assert 'aria-label="said &#34;so&#34;"' in made
    assert "var(--blue)" in made
    assert "#0072b2" not in made


def test_letters_that_matplotlib_does_not_have():
    made = drawn("bars", "words", (4, 2), SignificanceDisplay([1.0, -1.0], ["山", "🌊"]).plot)
    assert "山" in made
    assert "🌊" in made


def test_histories():
    rows = [{"stage": "a", "train_loss": 2.0, "loss": 1.0}, {"stage": "b", "train_loss": 0.5}]
    display = HistoryDisplay(rows, {"train_loss": "training", "loss": "validation"}, best=1).plot()
    assert display.lines_["loss"].get_xydata().tolist() == [[1.0, 1.0]]
    assert [text.get_text() for text in display.ax_.texts] == ["b →", "best"]
    percent = HistoryDisplay(rows, {"loss": "x"}, percent=True).plot()
    assert percent.lines_["loss"].get_ydata().tolist() == [100.0]


def draw_ranks(seed, count=40, labels=5):
    found = np.random.default_rng(seed).integers(-1, 4, size=(count, labels))
    return found, np.maximum(np.random.default_rng(seed + 1).integers(-2, 4, size=(count, labels)), 0)


@pytest.mark.parametrize("seed", range(3))
def test_counts_by_naive_loops(seed):
    truth, said = draw_ranks(seed)
    found = confusion(said, truth)
    table = np.zeros((4, 4), int)
    for u in range(5):
        for v in range(5):
            below = [row for row in range(40) if 0 <= truth[row, u] < truth[row, v]]
            assert found.total[u, v] == len(below)
            assert found.wrong[u, v] == sum(said[row, u] > said[row, v] for row in below)
    for true, order in zip(truth, said):
        for u in range(5):
            if true[u] >= 0:
                here, there = (
                    3 if ranks[u] == 0 else min(2, len({rank for rank in ranks if rank > ranks[u]}))
                    for ranks in (true, order)
                )
                table[here, there] += 1
    assert (place_table(said, truth, 3) == table).all()
    assert ((places(truth) == -1) == (truth == -1)).all()


def test_examples_are_never_both_and_never_without_an_order():
    truth = np.array([[0, 0, -1], [1, 0, 0], [2, 1, 0], [1, 1, 1], [-1, -1, -1], [-1, 2, 1], [-1, 3, -1]])
    tau = np.array([0.0, 1.0, 1.0, 0.0, 0.0, -1.0, 0.0])
    found = pick_examples(tau, truth, 6)
    assert found.best == [2, 1]
    assert found.worst == [5]
    assert pick_examples(tau[3:5], truth[3:5], 6) == ([], [])


def brightness(text):
    red, green, blue = map(int, re.findall(r"\d+", text)[:3])
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_in_a_browser(run, photos, comparison, tmp_path):
    with browser() as chromium:
        for folder in (run, photos, comparison):
            file = write_report(folder, examples=2)
            for scheme, width in (("light", 1200), ("dark", 1200), ("light", 400), ("dark", 400)):
                tab = chromium.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
                said, asked = [], []
                tab.on("console", lambda message, said=said: said.append(message.text))
                tab.on("pageerror", lambda error, said=said: said.append(str(error)))
                tab.on("dialog", lambda dialog, said=said: (said.append("dialog"), dialog.dismiss()))
                tab.on("request", lambda request, asked=asked: asked.append(request.url))
                tab.goto(file.as_uri())
                assert said == []
                assert [url for url in asked if not url.startswith("data:")] == [file.as_uri()]
                assert tab.evaluate("document.documentElement.scrollWidth") <= width
                paper, ink, axis = (
                    tab.evaluate(f"getComputedStyle(document.querySelector('{where}')).{what}")
                    for where, what in (
                        ("body", "backgroundColor"),
                        ("h1", "color"),
                        ("svg.plot text", "fill"),
                    )
                )
                if scheme == "dark":
                    assert brightness(paper) < 60 < 180 < min(brightness(ink), brightness(axis))
                else:
                    assert brightness(paper) > 230 > 80 > max(brightness(ink), brightness(axis))
                assert tab.evaluate("[...document.images].every(image => image.naturalWidth > 0)")
                tab.close()
        tab = chromium.new_page()
        tab.goto((run / "report.html").as_uri())
        with tab.expect_download() as saved:
            tab.get_by_role("link", name="predictions.csv").click()
        saved.value.save_as(tmp_path / "saved.csv")
        assert (tmp_path / "saved.csv").read_text() == Page(run / "report.html").download("predictions.csv")
        tab.emulate_media(media="print", color_scheme="dark")
        assert tab.evaluate("getComputedStyle(document.querySelector('#downloads')).display") == "none"
        assert brightness(tab.evaluate("getComputedStyle(document.body).backgroundColor")) == pytest.approx(
            255
        )
        assert tab.get_by_role("region", name="Metrics in percent").count() == 1

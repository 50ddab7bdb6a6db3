"""Guides, candidate labels and small screens: a real server, a real browser."""

import httpx
import pytest
from PIL import Image

from gaussianmlr.apps.annotate import Found, Store, read_items
from gaussianmlr.apps.annotate.guide import make_guide, read_guide
from gaussianmlr.errors import DataError
from support.commanding import gmlr
from support.paging import browser, running
from support.parsing import Page

LABELS = ("mountain", "sky", "sea", "sun", "red, dark")
GUIDE = """# How to rank

Order what you *see*. See [the paper](https://example.org/paper "t").

| a | b |
| --- | --- |
| 1 | 2 |

## sky

Anything **above** the horizon,
clouds included.

Not reflections.

## sea
- water

<img src=x onerror=alert(1)> <script>alert(1)</script>

![a picture](https://example.org/track.png) [x](javascript:alert(1)) [y](data:text/html,hi) [z](vbscript:a)
"""
PHONE = {"width": 400, "height": 820}


def test_a_guide_is_rendered_without_anything_that_runs_or_loads(tmp_path):
    guide = make_guide(GUIDE, LABELS)
    (tmp_path / "guide.html").write_text(f"<body>{guide.html}</body>")
    tags = Page(tmp_path / "guide.html").root
    assert tags.first("h1").text == "How to rank"
    assert tags.first("em").text == "see"
    assert not list(tags.all("img"))
    assert not list(tags.all("script"))
    links = [link.attributes for link in tags.all("a")]
    # A picture is a link: it loads nothing by itself.
    assert [link["href"] for link in links] == ["https://example.org/paper", "https://example.org/track.png"]
    assert links[0]["rel"] == "noopener noreferrer"
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in guide.html
    assert guide.about == {"sky": "Anything above the horizon, clouds included.", "sea": "water"}


@pytest.mark.parametrize(
    "text",
    ["[" * 50_000, "> " * 50_000 + "a", "*a_" * 30_000, "- " * 20_000 + "x", "\x00<b>\ufffd", "`" * 99_999],
)
def test_hostile_guides_end_soon_and_stay_text(text):
    assert "<b>" not in make_guide(text, LABELS).html


def test_a_guide_that_cannot_be_read_is_one_message(tmp_path):
    with pytest.raises(DataError, match="does not exist; expected a guide in Markdown"):
        read_guide(tmp_path / "none.md", LABELS)
    (tmp_path / "latin.md").write_bytes("Über".encode("latin-1"))
    with pytest.raises(DataError, match="byte 0 is not UTF-8"):
        read_guide(tmp_path / "latin.md", LABELS)
    (tmp_path / "large.md").write_bytes(b"a" * ((1 << 20) + 1))
    with pytest.raises(DataError, match="expected a guide of at most"):
        read_guide(tmp_path / "large.md", LABELS)


def table(folder, rows):
    file = folder / "poems.csv"
    file.write_text("id,text,offers\n" + "\n".join(rows) + "\n")
    return file


def test_candidates_are_read_from_a_column(tmp_path):
    file = table(tmp_path, ['a,pond,"sky, \'x\', ""red, dark"""', "b,frog,", 'b,frog,"sea"', "c,moon,sun"])
    found = read_items(file, candidates="Offers")
    assert dict(found.candidates) == {"a": ("sky", "'x'", "red, dark"), "b": ("sea",), "c": ("sun",)}
    assert read_items(file).candidates == {}
    file = tmp_path / "rows.csv"
    file.write_text("height,offers\n1,sky\n2,\n")
    found = read_items(file, candidates="offers")
    assert found.items == {"0": {"height": 1}, "1": {"height": 2}}  # a column of candidates is no content
    assert dict(found.candidates) == {"0": ("sky",)}


@pytest.mark.parametrize(
    ("column", "cell", "what"),
    [
        ("offer", "sky", "did you mean 'offers'"),
        ("offers", "skyy", "item 'a' offers 'skyy', which is no label; did you mean 'sky'?"),
        ("offers", '"""sky"', "row 0: offers is"),
    ],
)
def test_wrong_candidates_are_refused_before_a_store_is_made(tmp_path, column, cell, what):
    file = table(tmp_path, [f"a,pond,{cell}"])
    done = gmlr(
        "annotate",
        file,
        "--labels",
        "sky,sea",
        "--out",
        tmp_path / "store",
        "--candidates",
        column,
        "--port",
        0,
    )
    assert done.returncode == 2
    assert what in done.stderr
    assert not (tmp_path / "store").exists()


def test_neighbours_are_those_that_are_shown(tmp_path):
    with Store(tmp_path / "store", create=True) as store:
        store.bring(Found("text", "poems", {name: name for name in "abcd"}), LABELS)
        store.bring(Found("text", "poems", {name: name for name in "abd"}))
        found = [store.neighbours(item.id) for item in store.items()]
    assert found == [(None, 2), (1, 4), (2, None)]


@pytest.fixture(scope="module")
def chromium():
    with browser() as found:
        yield found


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("photos")
    for number in range(4):
        Image.new("RGB", (640, 400), (120, 60 * number, 230)).save(folder / f"photo{number}.png")
    rows = ["photo0.png,", 'photo1.png,"sky, sea"', "photo2.png,", 'photo3.png,"""red, dark"""']
    (folder / "photos.csv").write_text("image,offers\n" + "\n".join(rows) + "\n")
    (folder / "guide.md").write_text(GUIDE)
    (folder / "labels.txt").write_text("\n".join(LABELS))
    options = ["--labels", folder / "labels.txt", "--guide", folder / "guide.md", "--candidates", "offers"]
    command = ["annotate", folder / "photos.csv", "--out", folder / "store", "--port", 0, *options]
    with running("-m", "gaussianmlr", *command) as found:
        yield found


def enter(chromium, server, name, **settings):
    tab = chromium.new_context(**settings).new_page()
    tab.on("pageerror", lambda error: pytest.fail(f"the page failed: {error}"))
    tab.goto(server.url)
    tab.get_by_role("textbox", name="Your name").fill(name)
    tab.keyboard.press("Enter")
    tab.wait_for_selector("#work:not([hidden])")
    return tab


def expect_text(tab, where, text):
    from playwright.sync_api import expect

    expect(tab.locator(where)).to_have_text(text, timeout=30_000)


def on_screen(tab, where):
    """Whether an element is in the viewport, and not below another one."""
    return tab.locator(where).evaluate(
        """(one) => { const box = one.getBoundingClientRect();
        const top = document.elementFromPoint(box.x + Math.min(5, box.width / 2), box.y + box.height / 2);
        const seen = one === top || one.contains(top);
        return box.width > 0 && box.top >= 0 && box.bottom <= innerHeight && seen; }"""
    )


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_on_a_phone_labels_and_status_are_in_view(server, chromium, scheme):
    tab = enter(chromium, server, f"Phone {scheme}", viewport=PHONE, color_scheme=scheme, has_touch=True)
    wide = tab.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert wide[0] <= wide[1]
    for label in LABELS:
        assert on_screen(tab, f'#labels [data-label="{label}"]'), label
    tab.locator('#labels [data-label="sky"]').tap()
    tab.locator('#labels [data-label="mountain"]').tap()
    left = [f'#labels [data-label="{label}"]' for label in LABELS if label not in ("sky", "mountain")]
    for where in ("#order", *left, "#tool-up", "#save", "#back", "#on", "#skip", "#undo"):
        assert on_screen(tab, where), where
    for where in ("#save", "#back", "#on", "#skip", "#undo"):
        assert tab.locator(where).evaluate("(one) => one.scrollWidth <= one.clientWidth"), where
    tab.locator("#save").tap()
    expect_text(tab, "#status", "Saved: sky > mountain")
    assert on_screen(tab, "#status")
    assert not tab.locator("#guide-card").evaluate("(one) => one.open")
    tab.locator("#guide-card summary").tap()
    assert tab.locator("#guide h1").inner_text() == "How to rank"


@pytest.mark.slow
def test_the_guide_stands_beside_the_task_and_describes_labels(server, chromium):
    tab = enter(chromium, server, "Reader", viewport={"width": 1200, "height": 850})
    assert on_screen(tab, "#guide h1")
    for width, height in ((1200, 850), (1366, 768), (820, 1180)):
        tab.set_viewport_size({"width": width, "height": height})
        for where in ("#back", "#save", "#on"):
            assert on_screen(tab, where), (where, width)
        wide = tab.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        assert wide[0] <= wide[1]
    assert tab.locator("#guide script, #guide img").count() == 0
    chip = tab.locator('#labels [data-label="sky"]')
    assert chip.get_attribute("title") == "Anything above the horizon, clouds included."
    chip.click()
    expect_text(tab, "#label-about", "sky: Anything above the horizon, clouds included.")
    tab.locator('#labels [data-label="mountain"]').click()
    assert not tab.locator("#label-about").is_visible()


@pytest.mark.slow
def test_items_offer_their_candidates(server, chromium):
    tab = enter(chromium, server, "Chooser", viewport={"width": 1200, "height": 850})
    offered = "[...document.querySelectorAll('#labels button')].map((one) => one.dataset.label)"
    assert tab.evaluate(offered) == list(LABELS)
    tab.locator("#on").click()
    expect_text(tab, "#item-name", "photo1.png")
    assert tab.evaluate(offered) == ["sky", "sea"]
    tab.keyboard.press("1")  # mountain is not offered
    tab.keyboard.press("3")
    expect_text(tab, "#status", "sea")
    with httpx.Client(base_url=server.url) as client:
        person = client.post("/api/people", json={"name": "Chooser"}).json()["id"]
        answer = {"person": person, "token": "0123456789", "order": [["mountain"]]}
        refused = client.post("/api/items/2/answers", json=answer)
        assert refused.status_code == 400
        assert "does not offer 'mountain'" in refused.json()["error"]


@pytest.mark.slow
def test_previous_and_next_walk_over_all_items_and_keep_what_was_begun(server, chromium):
    tab = enter(chromium, server, "Walker", viewport={"width": 1200, "height": 850})
    assert tab.locator("#back").is_disabled()
    tab.keyboard.press("4")
    tab.keyboard.press("ArrowRight")
    expect_text(tab, "#item-name", "photo1.png")
    expect_text(tab, "#status", "Not answered yet")
    tab.keyboard.press("2")
    tab.keyboard.press("Enter")
    expect_text(tab, "#status", "Saved: sky")
    expect_text(tab, "#item-name", "photo0.png")  # the next one that waits
    expect_text(tab, "#order", "sun")  # begun, not lost
    tab.keyboard.press("Enter")
    expect_text(tab, "#status", "Saved: sun")
    tab.locator("#back").click()
    expect_text(tab, "#item-name", "photo1.png")
    expect_text(tab, "#status", "Your answer: sky")
    tab.locator("#on").click()
    tab.locator("#on").click()
    expect_text(tab, "#item-name", "photo3.png")
    assert tab.locator("#on").is_disabled()


@pytest.mark.slow
def test_on_a_phone_the_buttons_stay_where_they_are(chromium, tmp_path):
    """From a long text to a short one, also where labels were scrolled."""
    file = table(tmp_path, [f"a,{'an old silent pond. ' * 60},", "b,frog,"])
    labels = ",".join(f"feeling {number}" for number in range(25))
    with running(
        "-m", "gaussianmlr", "annotate", file, "--labels", labels, "--out", tmp_path / "s", "--port", 0
    ) as found:
        tab = enter(chromium, found, "Thumb", viewport=PHONE, has_touch=True)
        before = tab.locator("#save").bounding_box()
        assert tab.locator("#text").evaluate("(one) => one.scrollHeight > one.clientHeight")
        tab.locator("#text").evaluate("(one) => one.scrollTo(0, 400)")
        tab.locator('#labels [data-label="feeling 24"]').tap()
        assert tab.locator("#labels").evaluate("(one) => one.scrollTop") > 0
        tab.locator("#save").tap()
        expect_text(tab, "#text", "frog")
        assert tab.locator("#save").bounding_box() == before
        for where in ("#text", '#labels [data-label="feeling 0"]', "#status", "#save", "#on"):
            assert on_screen(tab, where), where

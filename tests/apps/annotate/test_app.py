"""`gmlr annotate` as people meet it: a real process, a real browser, and what the store then holds."""

import itertools
import re
import signal
import socket
import time

import httpx
import pytest
from PIL import Image, ImageDraw
from typer.testing import CliRunner

from gaussianmlr.apps.annotate import Store, read_items
from gaussianmlr.cli.main import app
from gaussianmlr.data import read_images
from gaussianmlr.errors import DataError
from support.commanding import gmlr, make_table
from support.paging import browser, running

pytestmark = pytest.mark.slow

LABELS = ("mountain", "sky", "sea", "sun")
SOME = itertools.count()


def paint(folder, count=4):
    folder.mkdir()
    for number in range(count):
        image = Image.new("RGB", (320, 200), (120, 160 + 20 * number, 230))
        ImageDraw.Draw(image).polygon([(30, 200), (120, 60), (210, 200)], fill=(90, 110, 90))
        image.save(folder / f"photo{number}.png")


@pytest.fixture
def place(tmp_path):
    paint(tmp_path / "photos")
    (tmp_path / "labels.txt").write_text("\n".join(LABELS))
    return tmp_path


def serving(place, *more):
    arguments = [place / "photos", "--labels", place / "labels.txt", "--out", place / "store", "--port", 0]
    return running("-m", "gaussianmlr", "annotate", *arguments, *more)


@pytest.fixture(scope="module")
def chromium():
    with browser() as found:
        yield found


def enter(chromium, url, name, **settings):
    """The page of somebody, at their first item; what its scripts complain of is an error."""
    context = chromium.new_context(viewport={"width": 1200, "height": 850}, **settings)
    tab = context.new_page()
    tab.on("pageerror", lambda error: pytest.fail(f"the page failed: {error}"))
    tab.goto(url)
    tab.get_by_role("textbox", name="Your name").fill(name)
    tab.keyboard.press("Enter")
    tab.wait_for_selector("#work:not([hidden])")
    return tab


def press(tab, *keys):
    for key in keys:
        tab.keyboard.press(key)


def shows(tab, where, text):
    """Wait until an element says something; by the browser's driver, since the page allows no eval."""
    from playwright.sync_api import expect

    expect(tab.locator(where)).to_have_text(text, timeout=30_000)


def saved(tab, text):
    shows(tab, "#status", f"Saved: {text}")


def drag(tab, label, where, height=0.5):
    chip = tab.locator(f".chip[data-label={label}]").bounding_box()
    box = tab.locator(where).bounding_box()
    tab.mouse.move(chip["x"] + chip["width"] / 2, chip["y"] + chip["height"] / 2)
    tab.mouse.down()
    tab.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] * height, steps=5)
    tab.mouse.up()


def held(place):
    """What the store holds, read by a connection of its own: {(item, person): answer}."""
    with Store(place / "store") as store:
        names = {one.id: one.name for one in store.people()}
        return {(store.item(one.item).name, names[one.person]): one for one in store.answers()}


def test_what_the_page_shows_as_saved_survives_kill_9(place, chromium):
    with serving(place) as server:
        tab = enter(chromium, server.url, "Ann")
        press(tab, "1", "2", "3", "=", "Enter")
        saved(tab, "mountain > sky = sea")
        assert tab.inner_text("#item-name") == "photo1.png"
        code, _ = server.stop(signal.SIGKILL)
        assert code == -signal.SIGKILL
        press(tab, "4", "Enter")  # nobody is there to save it, and the page says so
        tab.wait_for_selector("#status.bad")
        assert tab.inner_text("#status").startswith("Not saved")
        assert "cannot be reached" in tab.inner_text("#problem")
    assert {key: one.ranking for key, one in held(place).items()} == {
        ("photo0.png", "Ann"): "mountain > sky = sea"
    }
    with serving(place) as server:
        tab = enter(chromium, server.url, "ann")
        assert tab.inner_text("#item-name") == "photo1.png"
        assert tab.inner_text("#progress-text") == "1 of 4 ranked"
        assert server.stop()[0] == 0


def test_saved_is_said_once_the_next_item_is_there(place, chromium):
    """Else a key pressed upon "Saved" is lost while the next item is on its way."""

    def late(route):
        time.sleep(0.5)
        route.continue_()

    with serving(place) as server:
        tab = enter(chromium, server.url, "Ann")
        tab.route("**/api/next*", late)
        press(tab, "1", "Enter")
        saved(tab, "mountain")
        assert tab.inner_text("#item-name") == "photo1.png"
        press(tab, "u")
        shows(tab, "#item-name", "photo0.png")
        assert held(place) == {}


def test_two_people_at_once_by_keys_and_by_dragging(place, chromium):
    with serving(place) as server:
        ann, bob = enter(chromium, server.url, "Ann"), enter(chromium, server.url, "Bob")
        assert ann.inner_text("#item-name") == bob.inner_text("#item-name") == "photo0.png"
        # Ann: keys, with moves, a tie that is undone, a note
        press(ann, "2", "1", "4", "ArrowUp", "=", "u", "Delete", "u", "n")
        ann.keyboard.type("hazy")
        press(ann, "Escape")
        # Bob: drag and drop; sun to the top of mountain, sky into a tie with it, sea in and out again
        drag(bob, "mountain", "#order")
        drag(bob, "sun", "#order li:first-child", height=0.1)
        drag(bob, "sky", "#order li:last-child")
        drag(bob, "sea", "#order li:last-child", height=0.9)
        assert bob.locator("#order .chip").all_inner_texts() == ["sun", "mountain", "sky", "sea"]
        drag(bob, "sea", "#labels")
        press(ann, "Enter")
        press(bob, "Enter")
        saved(ann, "sky > sun > mountain")
        saved(bob, "sun > mountain = sky")
        found = held(place)
        assert found["photo0.png", "Ann"].ranking == "sky > sun > mountain"
        assert found["photo0.png", "Ann"].note == "hazy"
        assert found["photo0.png", "Ann"].seconds > 0
        assert found["photo0.png", "Bob"].ranking == "sun > mountain = sky"
        # One Enter says nothing of an item, two say that no label applies; S skips; U takes back.
        press(ann, "Enter")
        shows(ann, "#status", re.compile("^The order is empty"))
        assert len(held(place)) == 2
        press(ann, "Enter")
        saved(ann, "(none)")
        press(ann, "s")
        saved(ann, "skipped")
        found = held(place)
        assert (found["photo1.png", "Ann"].state, found["photo1.png", "Ann"].ranking) == ("ranked", "")
        assert found["photo2.png", "Ann"].state == "skipped"
        press(ann, "u")
        shows(ann, "#item-name", "photo2.png")
        assert ("photo2.png", "Ann") not in held(place)
        # A second look at what they disagree on shows what the other says.
        ann.get_by_role("button", name="Overview").click()
        ann.get_by_label("Show").select_option("disputed")
        ann.get_by_role("button", name="photo0.png").click()
        ann.wait_for_selector("#others:not([hidden])")
        assert "Bob: sun > mountain = sky" in ann.inner_text("#others")
        assert ann.locator("#order .chip").all_inner_texts() == ["sky", "sun", "mountain"]
        assert server.stop()[0] == 0


def names_of_controls(tab):
    return tab.evaluate(
        """() => [...document.querySelectorAll('button, input, select, textarea, a, img')]
        .filter((one) => one.offsetParent !== null)
        .map((one) => one.ariaLabel || one.alt || one.innerText || one.labels?.[0]?.textContent || '')"""
    )


def fetched(tab):
    return tab.evaluate("performance.getEntriesByType('resource').map((one) => one.name)")


def test_light_dark_and_small_screens(place, chromium):
    with serving(place) as server:
        colours = set()
        for scheme in ("light", "dark"):
            tab = enter(chromium, server.url, "Ann", color_scheme=scheme)
            press(tab, "1", "2")
            colours.add(tab.evaluate("getComputedStyle(document.body).backgroundColor"))
            assert all(name.strip() for name in names_of_controls(tab))
            # While one picture is looked at, the next ones come.
            end = time.monotonic() + 30
            while not any("/api/items/2/picture" in name for name in fetched(tab)):
                assert time.monotonic() < end, fetched(tab)
                tab.wait_for_timeout(100)
        assert len(colours) == 2
        tab.set_viewport_size({"width": 360, "height": 740})
        for view in ("#work", "#look"):
            if view == "#look":
                tab.get_by_role("button", name="Overview").click()
                tab.wait_for_selector("#people tr")
            wide = tab.evaluate("[document.documentElement.scrollWidth, window.innerWidth]")
            assert wide[0] <= wide[1], f"{view} is wider than a small screen"
        tab.get_by_role("button", name="Rank", exact=True).click()
        tab.get_by_role("button", name="sun").click()  # a tap is enough
        tab.get_by_role("button", name="Zoom in").click()
        assert "scale(1.5)" in tab.locator("#picture").get_attribute("style")
        tab.get_by_role("button", name="Save").click()
        saved(tab, "sun")


def test_the_list_of_items_has_pages(tmp_path, chromium):
    rows = "".join(f"{number},poem {number}\n" for number in range(70))
    (tmp_path / "poems.csv").write_text(f"id,text\n{rows}")
    (tmp_path / "labels.txt").write_text("calm\nsad\n")
    command = ("annotate", tmp_path / "poems.csv", "--labels", tmp_path / "labels.txt")
    with running("-m", "gaussianmlr", *command, "--out", tmp_path / "store", "--port", 0) as server:
        tab = enter(chromium, server.url, "Ann")
        tab.get_by_role("button", name="Overview").click()
        shows(tab, "#page", "1–60 of 70")
        assert tab.get_by_role("button", name="Previous").is_disabled()
        tab.get_by_role("button", name="Next").click()
        shows(tab, "#page", "61–70 of 70")
        assert tab.get_by_role("button", name="Next").is_disabled()
        tab.get_by_role("button", name="Previous").click()
        shows(tab, "#page", "1–60 of 70")


def test_the_interface_refuses_what_is_wrong_and_serves_pictures_and_manifests(place):
    with serving(place, "--people", 1) as server, httpx.Client(base_url=server.url, timeout=60) as client:
        ann, bob = (client.post("/api/people", json={"name": name}).json()["id"] for name in ("Ann", "Bob"))

        def answer(item, **more):
            given = {"person": ann, "token": f"some-token-{next(SOME)}", "order": [["sea"]], **more}
            return client.post(f"/api/items/{item}/answers", json=given)

        for bad, status, what in [
            (answer(1, order=[["fog"]]), 400, "fog"),
            (answer(1, order=[["sea"], ["sea"]]), 400, "above and below itself"),
            (answer(99), 400, "no item 99"),
            (answer(1, person=99), 400, "no person 99"),
            (client.get("/api/next", params={"person": 99}), 400, "no person 99"),
            (client.get("/api/items/1", params={"person": 99}), 400, "no person 99"),
            (answer(1, seconds=-1), 422, "seconds"),
            (client.post("/api/people", json={"name": " "}), 400, "expected a name"),
            (client.post("/api/undo", json={"person": ann}), 400, "nothing to undo"),
            (client.get("/api/export.csv"), 400, "holds no order yet"),
            (client.get("/api/items/1/picture?size=huge"), 422, "'small', 'view' or 'full'"),
            (
                client.post("/api/people", json={"name": "x"}, headers={"origin": "http://evil.org"}),
                403,
                "evil",
            ),
        ]:
            assert bad.status_code == status, bad.text
            assert what in bad.json()["error"]
        # One answer an item is enough, so two people are shown different ones.
        shown = [client.get("/api/next", params={"person": one}).json() for one in (ann, bob)]
        assert [one["item"]["id"] for one in shown] == [1, 2]
        assert len(shown[0]["ahead"]) > 0
        assert answer(1, note="x").json()["saved"]["ranking"] == "sea"
        assert client.get("/api/next", params={"person": bob}).json()["item"]["id"] == 2
        picture = client.get("/api/items/1/picture?size=small")
        assert (picture.headers["content-type"], picture.content[:2]) == ("image/jpeg", b"\xff\xd8")
        (place / "photos" / "manifest.csv").write_bytes(client.get("/api/export.csv").content)
    assert read_images(place / "photos", labels=LABELS).orders() == ["sea"]


def save_model(folder):
    """A model of tables, as it was made: it says something of each row."""
    from gaussianmlr.model.model import Model, build
    from gaussianmlr.model.recipe import Recipe

    inputs = {"kind": "table", "channels": 4, "columns": ["a", "b", "c", "d"]}
    recipe = Recipe(backbone="mlp")
    model = Model(*build(recipe, 3, inputs), ("sea", "sky", "sun"), recipe, inputs)
    model.save(folder)
    return model


def test_a_model_suggests_and_what_it_is_unsure_of_comes_first(tmp_path):
    frame = make_table(12)
    frame.drop(columns=["ranking", "split"]).to_csv(tmp_path / "rows.csv", index=False)
    (tmp_path / "labels.txt").write_text("sun\nsea\n")
    model = save_model(tmp_path / "model")
    arguments = [tmp_path / "rows.csv", "--labels", tmp_path / "labels.txt", "--out", tmp_path / "store"]
    more = ["--port", 0, "--model", tmp_path / "model"]
    with running("-m", "gaussianmlr", "annotate", *arguments, *more) as server:
        with Store(tmp_path / "store") as store:
            end = time.monotonic() + 60
            while any(store.suggestion(item.id) is None for item in store.items()):
                assert time.monotonic() < end, "no suggestions"
                time.sleep(0.1)
            unsure = {item.id: store.suggestion(item.id).uncertainty for item in store.items()}
            said = store.suggestion(1).ranking
        ann = httpx.post(f"{server.url}/api/people", json={"name": "Ann"}).json()["id"]
        found = httpx.get(f"{server.url}/api/next", params={"person": ann}).json()
        assert found["item"]["id"] == max(unsure, key=unsure.get)
        assert found["item"]["suggestion"]["bits"] == pytest.approx(max(unsure.values()))
    from gaussianmlr.apps.annotate.suggestions import uncertainty

    prediction = model.predict(frame[model.inputs["columns"]].to_numpy(dtype="float32"))
    assert unsure[1] == pytest.approx(uncertainty(prediction)[0], rel=1e-4)
    known = [label for label in prediction.orders[0].split(" > ") if label in ("sun", "sea")]
    assert said == " > ".join(known)


def test_from_answers_to_a_model(tmp_path):
    frame = make_table(40)
    orders = frame["ranking"].tolist()
    frame.drop(columns=["ranking", "split"]).to_csv(tmp_path / "rows.csv", index=False)
    frame.assign(id=range(40), ranker="Ann")[["id", "ranker", "ranking"]].to_csv(
        tmp_path / "given.csv", index=False
    )
    with Store(tmp_path / "store", create=True) as store:
        store.bring(read_items(tmp_path / "rows.csv"), ("sea", "sky", "sun"))
    run = CliRunner().invoke
    done = run(app, ["annotations", "import", str(tmp_path / "store"), str(tmp_path / "given.csv")])
    assert "40 answers added" in done.output
    done = run(app, ["annotations", "export", str(tmp_path / "store"), str(tmp_path / "out.csv")])
    assert "40 orders" in done.output
    again = ["annotations", "export", str(tmp_path / "store"), str(tmp_path / "out.csv")]
    assert "is there already" in str(run(app, again).exception)
    assert "40 orders" in run(app, [*again, "--overwrite"]).output
    shown = run(app, ["annotations", "show", str(tmp_path / "store")])
    assert "Ann: 40 ranked, 0 skipped" in shown.output
    checked = run(app, ["data", "check", str(tmp_path / "out.csv")])
    assert checked.exit_code == 0, checked.output
    training = ["train", tmp_path / "out.csv", "--out", tmp_path / "run", "--epochs", 1, "--backbone", "mlp"]
    trained = run(app, list(map(str, training)))
    assert trained.exit_code == 0, trained.output
    assert (tmp_path / "run" / "model" / "config.json").is_file()
    from gaussianmlr.data import read_table

    assert read_table(tmp_path / "out.csv").orders() == orders


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"photos": "nowhere"}, "does not exist; expected a folder of pictures"),
        ({"photos": "empty"}, "holds no pictures"),
        ({"labels": "none.txt"}, "expected a text file with one label per line"),
        ({"labels": "blank.txt"}, "holds no label"),
        ({"labels": "twice.txt"}, "occur more than once"),
        ({"labels": "one.txt"}, "gives one label, 'sky; sea'; expected several"),
        ({"store": "broken"}, "cannot be used as a store of answers"),
        ({"store": "labels.txt"}, "is a file"),
        ({"store": "photos"}, "is not empty and holds no store of answers"),
        ({"more": ["--host", "0.0.0.0"]}, "--token"),
        ({"more": ["--host", "256.1.1.1", "--token", "long-enough"]}, "256.1.1.1 is not an address"),
        ({"more": ["--model", "nowhere"]}, "no model at nowhere"),
    ],
)
def test_bad_input_is_one_clear_error(place, change, what):
    (place / "empty").mkdir()
    (place / "blank.txt").write_text("\n\n")
    (place / "twice.txt").write_text("sky\nsky\n")
    (place / "one.txt").write_text("sky; sea\n")
    (place / "broken").mkdir()
    (place / "broken" / "answers.sqlite").write_text("no database" * 50)
    names = {"photos": "photos", "labels": "labels.txt", "store": "store", "more": [], **change}
    arguments = ["annotate", place / names["photos"], "--labels", place / names["labels"]]
    arguments += ["--out", place / names["store"], *names["more"]]
    done = CliRunner().invoke(app, list(map(str, arguments)))
    assert isinstance(done.exception, DataError), done.output
    assert what in str(done.exception)
    assert not (place / "store").exists()
    assert not (place / "photos" / "answers.sqlite").exists()


def test_a_start_that_fails_leaves_a_store_as_it_was(place):
    save_model(place / "model")
    arguments = ["annotate", place / "photos", "--labels", place / "more.txt", "--out", place / "store"]
    (place / "more.txt").write_text("\n".join((*LABELS, "fog")))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        failing = [
            (["--model", place / "model"], "'table', and the items are of kind 'image'"),
            (["--port", taken.getsockname()[1]], "cannot listen at 127.0.0.1"),
        ]
        for there in (False, True):
            if there:
                with Store(place / "store", create=True) as store:
                    store.bring(read_items(place / "photos"), LABELS)
                    store.suggest([(1, "sky", 1.0)], "model")
                paint(place / "photos" / "new")
            for more, what in failing:
                done = CliRunner().invoke(app, [*map(str, arguments), "--port", "0", *map(str, more)])
                assert isinstance(done.exception, DataError), done.output
                assert what in str(done.exception)
                assert (place / "store").exists() == there
    with Store(place / "store") as store:
        assert (store.labels, store.count(), store.suggestion(1).ranking) == (LABELS, 4, "sky")


def test_a_store_that_is_not_there_needs_labels(place):
    done = gmlr("annotate", place / "photos", "--out", place / "new")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "--labels" in done.stderr
    assert not (place / "new").exists()

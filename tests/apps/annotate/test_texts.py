"""The whole loop for texts: annotate, export, train, annotate again with suggestions."""

import csv
import time

import httpx
import pytest

from gaussianmlr.apps.annotate import Store
from support.commanding import gmlr
from support.paging import browser, running

WORDS = {"joy": ("happy", "glad"), "fear": ("scared", "afraid"), "anger": ("angry", "furious")}
KEYS = {"anger": "1", "fear": "2", "joy": "3"}
pytestmark = pytest.mark.slow


def write_texts(file, count, start=0):
    """Texts that name two emotions, the first twice; the true orders by id."""
    pairs = [(one, other) for one in WORDS for other in WORDS if one != other]
    truth = {}
    with file.open("w", newline="") as opened:
        rows = csv.writer(opened)
        rows.writerow(["id", "text"])
        for number in range(start, start + count):
            one, other = pairs[number % len(pairs)]
            both = f"{WORDS[one][0]} and {WORDS[one][1]}"
            rows.writerow([f"t{number}", f"I was {both}, and a bit {WORDS[other][number % 2]} too"])
            truth[f"t{number}"] = f"{one} > {other}"
    return truth


def served(folder, *more):
    arguments = [folder / "texts.csv", "--labels", "anger,fear,joy", "--out", folder / "store", "--port", 0]
    return running("-m", "gaussianmlr", "annotate", *arguments, *more)


def test_annotate_export_train_and_annotate_with_suggestions(tmp_path):
    from playwright.sync_api import expect

    truth = write_texts(tmp_path / "texts.csv", 18)
    with browser() as chromium, served(tmp_path) as server:
        tab = chromium.new_page()
        tab.goto(server.url)
        tab.get_by_role("textbox", name="Your name").fill("Ann")
        tab.keyboard.press("Enter")
        tab.wait_for_selector("#work:not([hidden])")
        with Store(tmp_path / "store") as store:
            texts = {item.content: item.name for item in store.items()}
        shown = tab.locator("#text")
        for number in range(18):
            expect(shown).not_to_be_empty()
            order = truth[texts[shown.inner_text()]]
            for label in order.split(" > "):
                tab.keyboard.press(KEYS[label])
            tab.keyboard.press("Enter")
            if number < 17:
                expect(tab.locator("#status")).to_have_text(f"Saved: {order}", timeout=30_000)
        expect(tab.locator("#done")).to_be_visible(timeout=30_000)
    done = gmlr("annotations", "export", tmp_path / "store", tmp_path / "out.csv")
    assert "18 orders" in done.stdout
    with (tmp_path / "out.csv").open() as opened:
        assert {row["id"]: row["ranking"] for row in csv.DictReader(opened)} == truth
    training = ["--backbone", "text:tfidf", "--epochs", 60, "--no-peers", "--set", "select=last"]
    done = gmlr("train", tmp_path / "out.csv", "--out", tmp_path / "run", *training)
    assert done.returncode == 0, done.stderr

    fresh = write_texts(tmp_path / "texts.csv", 24)
    with served(tmp_path, "--model", tmp_path / "run") as server, Store(tmp_path / "store") as store:
        end = time.monotonic() + 60
        while any(store.suggestion(item.id) is None for item in store.items()):
            assert time.monotonic() < end, "no suggestions"
            time.sleep(0.1)
        said = {item.name: store.suggestion(item.id).ranking for item in store.items()}
        assert len(said) == 24
        right = sum(said[name].startswith(order.partition(" > ")[0]) for name, order in fresh.items())
        assert right >= 20  # the most significant emotion is named twice
        ann = httpx.post(f"{server.url}/api/people", json={"name": "Ann"}).json()["id"]
        item = httpx.get(f"{server.url}/api/next", params={"person": ann}).json()["item"]
        unsure = {one.name: store.suggestion(one.id).uncertainty for one in store.items()}
        open_ones = {name: bits for name, bits in unsure.items() if int(name[1:]) >= 18}
        assert item["suggestion"]["bits"] == pytest.approx(max(open_ones.values()))
        with browser() as chromium:
            tab = chromium.new_page()
            tab.goto(server.url)
            tab.get_by_role("textbox", name="Your name").fill("Ann")
            tab.keyboard.press("Enter")
            tab.wait_for_selector("#work:not([hidden])")
            expect(tab.locator("#suggestion strong")).to_have_text(said[item["name"]], timeout=30_000)

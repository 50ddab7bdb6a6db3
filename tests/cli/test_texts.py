"""Texts on the command line, from a CSV to predictions, as real processes."""

import csv
import json

import pytest

from support.commanding import gmlr

pytestmark = pytest.mark.slow
TFIDF = ("--backbone", "text:tfidf", "--epochs", 40, "--quiet")
WORDS = {"joy": ("happy", "glad", "smile"), "fear": ("scared", "dark", "afraid")}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A table of graded texts with a test part, and a run on it."""
    folder = tmp_path_factory.mktemp("texts")
    with (folder / "feel.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["id", "text", "split", "joy", "fear"])
        for number in range(90):
            words = WORDS["joy" if number % 2 else "fear"]
            other = WORDS["fear" if number % 2 else "joy"]
            grades = [3, 1] if number % 2 else [1, 3]
            text = f"{words[number % 3]} and {words[(number + 1) % 3]}, hardly {other[number % 3]}, {number}"
            rows.writerow([f"t{number}", text, "test" if number % 5 == 0 else "train", *grades])
    reading = ("--labels", "joy,fear", "--threshold", 0)
    done = gmlr("train", folder / "feel.csv", "--out", folder / "run", *reading, *TFIDF)
    assert done.returncode == 0, done.stderr
    return folder, reading


def test_texts_are_checked_trained_and_evaluated(place):
    folder, reading = place
    done = gmlr("data", "check", folder / "feel.csv", *reading)
    assert (done.returncode, "texts: text" in done.stdout) == (0, True)
    done = gmlr("evaluate", folder / "run", folder / "feel.csv", "--threshold", 0, "--json")
    assert json.loads(done.stdout)["metrics"]["tau_b"] > 0.9
    done = gmlr("info", folder / "run")
    assert "text: text," in done.stdout
    assert "(text:tfidf)" in done.stdout
    assert "trees" not in done.stderr
    refused = gmlr(
        "train", folder / "feel.csv", "--out", folder / "other", *reading, "--model", "trees", *TFIDF
    )
    assert (refused.returncode, "trees take no texts" in refused.stderr) == (2, True)
    refused = gmlr("train", folder / "feel.csv", "--out", folder / "other", *reading, "--backbone", "mlp")
    assert (refused.returncode, "expected text:minilm" in refused.stderr) == (2, True)


@pytest.mark.parametrize(
    "given",
    [
        'happy and glad\ndark and "scared"\n',
        'text\nhappy and glad\n"dark and ""scared"""\n',
        '{"text": "happy and glad"}\n{"text": "dark and \\"scared\\""}\n',
    ],
)
def test_standard_input_holds_texts_a_table_or_json_lines(place, given):
    done = gmlr("predict", place[0] / "run", "-", text=given)
    assert done.returncode == 0, done.stderr
    assert [line.split("\t")[1].split(" > ")[0] for line in done.stdout.splitlines()] == ["joy", "fear"]


def test_folders_of_files_and_ray_give_the_same_orders(place):
    folder, _ = place
    (folder / "notes").mkdir()
    with (folder / "feel.csv").open() as file:
        rows = list(csv.DictReader(file))[:4]
    for row in rows:
        (folder / "notes" / f"{row['id']}.txt").write_text(row["text"])
    (folder / "notes" / "bad.txt").write_bytes(b"\xff")
    one = gmlr("predict", folder / "run", folder / "notes", "--on-error", "skip")
    orders = [line.split("\t")[1] for line in one.stdout.splitlines()]
    assert "byte 0 is not UTF-8" in one.stderr
    pytest.importorskip("ray")
    other = gmlr("predict", folder / "run", folder / "feel.csv", "--engine", "ray", "--out", folder / "p.csv")
    assert other.returncode == 0, other.stderr
    with (folder / "p.csv").open() as file:
        assert [row["order"] for row in csv.DictReader(file)][:4] == orders


def test_a_folder_without_texts_is_refused(place):
    folder, _ = place
    (folder / "empty").mkdir()
    done = gmlr("predict", folder / "run", folder / "empty")
    assert done.returncode == 2
    assert "empty: expected .txt files, or tables (.csv" in done.stderr


def test_a_single_file_of_texts_is_refused_with_the_two_ways_to_read_it(place):
    file = place[0] / "lines.txt"
    file.write_text("happy and glad, so glad\ndark\n")
    done = gmlr("predict", place[0] / "run", file)
    assert done.returncode == 2
    assert "expected a table with a column 'text', got 'happy and glad, so glad'" in done.stderr
    assert "for one text per line pass '-'" in done.stderr


def test_the_report_shows_the_texts(place):
    folder, _ = place
    done = gmlr("report", folder / "run", "--out", folder / "report.html", "--quiet")
    assert done.returncode == 0, done.stderr
    page = (folder / "report.html").read_text()
    assert page.count("<blockquote>") >= 4
    assert "<blockquote>happy and glad, hardly" in page or "<blockquote>glad and smile, hardly" in page


def test_a_comparison_takes_texts_and_rivals_their_features(place):
    folder, reading = place
    contenders = ("--method", "gmlr", "--method", "neighbours", "--method", "dummy")
    done = gmlr("compare", folder / "feel.csv", *contenders, "--out", folder / "cmp", *reading, *TFIDF)
    assert done.returncode == 0, done.stderr
    assert "neighbours" in done.stdout

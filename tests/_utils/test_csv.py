"""CSV for spreadsheets: no text begins like a formula, and numbers stay numbers."""

import base64
import csv
import html
import io
import re
import urllib.parse

import numpy as np
import pandas as pd
import pytest
from fastapi.testclient import TestClient
from typer.testing import CliRunner

from gaussianmlr import DataError
from gaussianmlr._utils.tables import inert
from gaussianmlr.apps.annotate import Found, Store, export_answers
from gaussianmlr.apps.annotate.app import make_annotate_app
from gaussianmlr.cli.main import app
from gaussianmlr.data import from_arrays
from gaussianmlr.inference.predict import Predictions
from gaussianmlr.inference.writers import make_writer
from gaussianmlr.model.recipe import Recipe
from gaussianmlr.report import write_report
from gaussianmlr.training.fit import fit

EVIL = ["=cmd|' /C calc'!A0", "+1+1", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "=", "-", "a\r=1", "a\r\n=1"]


def runs(cell):
    """Whether a spreadsheet would take a cell for a formula: a number, such as -1.5, is none."""
    return cell[:1] in tuple("=+-@\t\r") and not re.fullmatch(r"[-+]?[\d.]+(e[-+]?\d+)?", cell)


def cells(text, separator=","):
    return [cell for row in csv.reader(io.StringIO(text, newline=""), delimiter=separator) for cell in row]


@pytest.mark.parametrize("text", [text for text in EVIL if not text.startswith("a")])
def test_what_begins_like_a_formula_is_made_inert(text):
    assert inert(text) == "'" + text.replace("\r", "\n")


@pytest.mark.parametrize("cell", ["-1.5", "+2", "-1e-05", -1.5, np.float32(-2), None, "", "a=b", "'=1"])
def test_numbers_and_harmless_texts_stay(cell):
    assert inert(cell) == cell
    assert type(inert(cell)) is type(cell)


def test_predictions():
    labels = ("=label", "sea")
    values = {"significance": np.array([[-1.5, 2.0]] * len(EVIL), np.float32)}
    found = Predictions(EVIL, ["=label > sea"] * len(EVIL), None, np.array([[2, 1]] * len(EVIL)), values)
    texts = []
    for escape in (False, True):
        stream = io.StringIO(newline="")
        make_writer("csv", stream, labels, escape_formulas=escape).write(found)
        texts.append(stream.getvalue())
    assert any(map(runs, cells(texts[0])))
    assert not any(map(runs, cells(texts[1])))
    assert cells(texts[1]).count("-1.5") == len(EVIL)
    assert len(cells(texts[1])) == 6 * (len(EVIL) + 1)
    with pytest.raises(DataError, match="'jsonl'; formulas are escaped in csv alone"):
        make_writer("jsonl", io.StringIO(), labels, escape_formulas=True)


@pytest.fixture
def store(tmp_path):
    rows = {name.strip(): {"=note": name, "size": -1.5} for name in EVIL}
    with Store(tmp_path / "store", create=True) as made:
        made.bring(Found("row", "rows", rows), ["=sky", "sea"])
        person = made.person("@Ann").id
        for item in range(1, len(rows) + 1):
            made.answer(item, person, [["=sky"], ["sea"]], token=str(item))
        yield made


@pytest.mark.parametrize("form", ["csv", "tsv"])
def test_annotations(store, tmp_path, form):
    separator = "\t" if form == "tsv" else ","
    plain, safe = tmp_path / f"plain.{form}", tmp_path / f"safe.{form}"
    export_answers(store, plain)
    export_answers(store, safe, escape_formulas=True)
    assert any(map(runs, cells(plain.read_bytes().decode(), separator)))
    assert not any(map(runs, cells(safe.read_bytes().decode(), separator)))
    escaped = pd.read_csv(safe, sep=separator)
    assert escaped["size"].tolist() == [-1.5] * len(escaped)
    assert "'=note" in escaped
    with pytest.raises(DataError, match=r"formulas are escaped only in \.csv and \.tsv"):
        export_answers(store, tmp_path / "out.jsonl", escape_formulas=True)


def test_annotations_from_the_page(store):
    with TestClient(make_annotate_app(store, title="rows"), base_url="http://127.0.0.1:8000") as client:
        assert any(map(runs, cells(client.get("/api/export.csv").text)))
        assert not any(map(runs, cells(client.get("/api/export.csv?escape_formulas=true").text)))


def downloads(page):
    pattern = r'download="([^"]+\.csv)"[^>]*href="([^"]+)"|href="([^"]+)"[^>]*download="([^"]+\.csv)"'
    links = re.findall(pattern, page)
    found = {}
    for first, link, other, last in links:
        head, _, body = html.unescape(link or other).partition(",")
        raw = base64.b64decode(body) if head.endswith("base64") else urllib.parse.unquote_to_bytes(body)
        found[first or last] = raw.decode("utf-8")
    return found


def test_a_report_and_the_command_line(tmp_path):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(40, 2))
    orders = [["@a", "b"] if one > other else ["b", "@a"] for one, other in rows]
    data = from_arrays(rows, orders)
    fit(Recipe(backbone="mlp", epochs=1), data, data, out=tmp_path / "run")
    frame = pd.DataFrame(rows, columns=["0", "1"])
    frame.insert(0, "id", [f"={number}+1" for number in range(40)])
    frame["ranking"] = [" > ".join(order) for order in orders]
    frame["split"] = "test"
    frame.to_csv(tmp_path / "data.csv", index=False)
    common = ["report", str(tmp_path / "run"), "--data", str(tmp_path / "data.csv"), "--quiet", "--out"]
    for more in ([], ["--escape-formulas"]):
        done = CliRunner().invoke(app, [*common, str(tmp_path / "report.html"), *more])
        assert done.exit_code == 0, done.output
        files = downloads((tmp_path / "report.html").read_text("utf-8"))
        assert {"predictions.csv", "confusion.csv", "epochs.csv"} <= set(files)
        assert any(runs(cell) for text in files.values() for cell in cells(text)) is not bool(more)
    predict = ["predict", str(tmp_path / "run"), str(tmp_path / "data.csv"), "--format"]
    assert any(map(runs, cells(CliRunner().invoke(app, [*predict, "csv"]).stdout)))
    escaped = CliRunner().invoke(app, [*predict, "csv", "--escape-formulas"]).stdout
    assert "'=0+1" in cells(escaped)
    assert not any(map(runs, cells(escaped)))
    refused = CliRunner().invoke(app, [*predict, "jsonl", "--escape-formulas"])
    assert isinstance(refused.exception, DataError)
    assert "--escape-formulas is for --format csv, not jsonl" in str(refused.exception)
    assert write_report(tmp_path / "run", tmp_path / "bare.html", escape_formulas=True).is_file()

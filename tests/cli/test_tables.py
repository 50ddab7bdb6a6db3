"""A table of another program through the commands: train, evaluate, predict, report, compare."""

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from typer.main import get_command

from gaussianmlr.cli.main import app
from gaussianmlr.cli.options import listed
from gaussianmlr.errors import DataError
from gaussianmlr.inference.matching import open_model
from gaussianmlr.report.measure import Wanted, find_evidence
from gaussianmlr.training.origin import Origin, read_origin

NAMES = ["sky", "sea", "sun"]


def gmlr(*arguments, stdin=None, code=0):
    found = subprocess.run(
        [sys.executable, "-m", "gaussianmlr", *map(str, arguments)],
        capture_output=True,
        text=True,
        input=stdin,
        check=False,
    )
    assert found.returncode == code, found.stderr + found.stdout
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A German table with a pandas index, orders separated by commas, and another name for their column."""
    folder = tmp_path_factory.mktemp("tables")
    x = np.random.default_rng(0).normal(size=(80, 3)).round(2)
    table = pd.DataFrame(x, columns=["A", "B", "C"])
    table["Ziel"] = [", ".join(NAMES[k] for k in np.argsort(-row) if row[k] > 0) for row in x]
    table["größe"] = "klein"
    table.to_csv(folder / "t.csv", sep=";", decimal=",", encoding="latin-1")
    new = table.drop(columns=["Ziel", "größe"])
    new.rename(columns=str.lower).to_csv(folder / "new.csv", sep=";", decimal=",")
    new.to_csv(folder / "plain.csv", index=False)
    new.to_excel(folder / "new.xlsx")
    return folder


READING = ("--ranking", "ziel", "--order-separator", ",", "--encoding", "latin-1")


@pytest.fixture(scope="module")
def run(folder):
    found = gmlr(
        "train", folder / "t.csv", "--out", folder / "run", *READING, "--drop", "Größe", "--epochs", 2
    )
    return folder / "run", found.stderr


@pytest.mark.slow
def test_train_says_what_it_found(run):
    _, said = run
    assert "columns are separated by ';' (--sep)" in said
    assert "decimal commas, such as '0,13', are read in columns 'A', 'B', 'C' (--decimal)" in said
    assert "the first column has no name and is left out" in said
    assert "cells of the column 'Ziel' are empty: no label applies there" in said


@pytest.mark.slow
def test_without_the_options_the_way_out_is_named(folder):
    said = gmlr("train", folder / "t.csv", "--out", folder / "none", code=2).stderr
    assert "it looks like Latin-1 (cp1252): pass --encoding latin-1" in said
    said = gmlr(
        "train", folder / "t.csv", "--out", folder / "none", *READING[:2], *READING[4:], code=2
    ).stderr
    assert "(--order-separator ',')" in said


@pytest.mark.slow
def test_predictions_are_those_of_the_plain_table(run, folder):
    plain = gmlr("predict", run[0], folder / "plain.csv", "--format", "jsonl").stdout
    german = gmlr("predict", run[0], folder / "new.csv", "--format", "jsonl")
    assert "decimal commas are read in 'A', 'B', 'C'" in german.stderr
    assert german.stdout == plain
    assert gmlr("predict", run[0], folder / "new.xlsx", "--format", "jsonl").stdout == plain
    piped = gmlr("predict", run[0], "-", "--format", "jsonl", stdin=(folder / "new.csv").read_text())
    assert piped.stdout == plain
    assert len(plain.splitlines()) == 80


@pytest.mark.slow
def test_evaluate_and_report_read_it_the_same_way(run, folder):
    found = gmlr("evaluate", run[0], folder / "t.csv", *READING, "--split", "all", "--json")
    assert json.loads(found.stdout)["instances"] == 80
    gmlr("report", run[0])  # finds the data again by the layout of the run
    layout = read_origin(run[0]).layout
    evidence = find_evidence(open_model(run[0]), run[0], Wanted())
    assert evidence.own
    assert len(evidence.data) == 16
    assert evidence.notes[0] == "columns are separated by ';' (--sep)"
    assert (layout.order_separator, layout.drop, layout.encoding) == (",", ("Größe",), "latin-1")


def test_origins_of_before_have_the_usual_layout(tmp_path):
    Origin("t.csv", digest="0").write(tmp_path)
    fields = json.loads((tmp_path / "data.json").read_text())
    del fields["layout"]
    (tmp_path / "data.json").write_text(json.dumps(fields))
    assert read_origin(tmp_path).layout.ranking == "ranking"


def test_labels_are_a_file_or_a_list(tmp_path):
    (tmp_path / "labels.txt").write_text('sky\n# a comment\nred, dark\n"quoted"\n')
    assert listed(str(tmp_path / "labels.txt")) == ["sky", "red, dark", '"quoted"']
    assert listed('"red, dark", blue') == ["red, dark", "blue"]
    with pytest.raises(DataError, match="does not exist"):
        listed(str(tmp_path / "none.txt"))
    with pytest.raises(DataError, match="cannot be read"):
        listed('"red, dark')


@pytest.mark.parametrize("command", ["train", "data check", "compare", "evaluate", "report"])
def test_options_have_the_same_names(command):
    found = get_command(app)
    for name in command.split():
        found = found.commands[name]
    shown = {option for parameter in found.params for option in parameter.opts}
    for option in ("--ranking", "--drop", "--id", "--ranker", "--sep", "--decimal", "--encoding", "--sheet",
                   "--order-separator", "--positions", "--missing"):  # fmt: skip
        assert option in shown

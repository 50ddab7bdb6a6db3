"""`gmlr train --model`: what is trained on tables, resumed part by part, and used by other commands."""

import json
import shutil

import numpy as np
import pandas as pd
import pytest

import gaussianmlr
from support.commanding import gmlr

pytestmark = pytest.mark.slow
FAST = ["--epochs", "2", "--set", "trees.rounds=12"]


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 4)).round(3)
    names = np.array(["sea", "sky", "sun"])
    orders = [" > ".join(names[place] for place in np.argsort(-row[:3]) if row[place] > 0) for row in X]
    file = tmp_path_factory.mktemp("table") / "hikes.csv"
    pd.DataFrame(X, columns=list("abcd")).assign(ranking=orders).to_csv(file, index=False)
    return file


@pytest.mark.parametrize("kind", ["trees", "both", "auto"])
def test_a_run_of_every_kind(table, tmp_path, kind):
    out = tmp_path / "run"
    given = [] if kind == "auto" else ["--model", kind]
    done = gmlr("train", table, "--out", out, *given, *FAST, "--json")
    assert done.returncode == 0, done.stderr
    model = gaussianmlr.load(out / "model")
    if kind == "auto":
        chosen = json.loads((out / "choice.json").read_text())
        assert chosen["kind"] == model.kind
        assert chosen["why"] in done.stderr
    else:
        assert model.kind == kind
    files = [out / name for name in ("choice.json", "trees.pt", "best.pt") if (out / name).exists()]
    before = {file: file.read_bytes() for file in files}
    (out / "model" / "README.md").unlink()
    shutil.rmtree(out / "model")
    again = gmlr("train", table, "--out", out, *given, *FAST, "--json")
    assert again.returncode == 0, again.stderr
    assert "comparing" not in again.stderr
    assert "epoch   1" not in again.stderr
    assert {file: file.read_bytes() for file in files} == before
    assert json.loads(again.stdout)["metrics"] == json.loads(done.stdout)["metrics"]
    info = json.loads(gmlr("info", out, "--json").stdout)
    assert info["state"] == "finished"
    assert ("trees" in info["backbone"]) == (model.kind != "network")
    for command in (
        ["evaluate", out, table, "--split", "validation"],
        ["predict", out, table, "--out", tmp_path / "found.csv"],
        ["report", out, "--out", tmp_path / "page.html"],
    ):
        done = gmlr(*command)
        assert done.returncode == 0, done.stderr
    assert len(pd.read_csv(tmp_path / "found.csv")) == 150


def test_other_methods_and_wrong_kinds(table, tmp_path):
    done = gmlr("train", table, "--out", tmp_path / "crpc", "--method", "crpc", *FAST)
    assert done.returncode == 0, done.stderr
    assert gaussianmlr.load(tmp_path / "crpc" / "model").kind == "network"
    done = gmlr("train", table, "--out", tmp_path / "two", "--method", "crpc", "--model", "trees", *FAST)
    assert done.returncode == 2
    assert "trees learn the likelihood of gmlr, not the loss of 'crpc'" in done.stderr
    done = gmlr("train", table, "--out", tmp_path / "three", "--model", "forest")
    assert done.returncode == 2
    assert "model is 'forest'; expected 'network' or 'trees' or 'both' or 'auto'" in done.stderr


def test_a_run_of_a_network_goes_on_as_one(table, tmp_path):
    """A run that an earlier version began has no field for the kind of model."""
    out = tmp_path / "run"
    assert gmlr("train", table, "--out", out, "--model", "network", "--epochs", "2").returncode == 0
    run = json.loads((out / "run.json").read_text())
    del run["recipe"]["model"], run["recipe"]["trees"]
    (out / "run.json").write_text(json.dumps(run))
    (out / "checkpoint.pt").unlink()
    (out / "best.pt").unlink()
    done = gmlr("train", table, "--out", out, "--epochs", "2")
    assert done.returncode == 0, done.stderr
    assert gaussianmlr.load(out / "model").kind == "network"


def test_changed_parts_of_a_run_are_named(table, tmp_path):
    out = tmp_path / "run"
    assert gmlr("train", table, "--out", out, "--model", "trees", *FAST).returncode == 0
    model = (out / "model" / "trees-0.ubj").read_bytes()
    whole = (out / "trees.pt").read_bytes()
    changed = bytearray(whole)
    changed[len(whole) // 2] ^= 1
    for damaged, reason in (
        (whole[:-9], "it was cut or overwritten"),
        (bytes(changed), "its checksum is wrong: it was changed"),
        (b"", "it is empty"),
        (bytes(len(whole)), "it was cut or overwritten"),
    ):
        (out / "trees.pt").write_bytes(damaged)
        done = gmlr("train", table, "--out", out, "--model", "trees", *FAST)
        assert done.returncode == 2
        assert f"trees.pt, cannot be read: {reason}. Nothing was changed" in done.stderr
        assert (out / "model" / "trees-0.ubj").read_bytes() == model


def test_runs_with_trees_of_the_first_versions(table, tmp_path):
    """They were kept as XGBoost wrote them, without a checksum."""
    out = tmp_path / "run"
    assert gmlr("train", table, "--out", out, "--model", "trees", *FAST).returncode == 0
    trees = (out / "model" / "trees-0.ubj").read_bytes()
    shutil.rmtree(out / "model")
    (out / "trees.pt").unlink()
    (out / "trees.ubj").write_bytes(trees)
    done = gmlr("train", table, "--out", out, "--model", "trees", *FAST)
    assert done.returncode == 0, done.stderr
    assert (out / "model" / "trees-0.ubj").read_bytes() == trees
    assert not (out / "trees.pt").exists()
    (out / "trees.ubj").write_bytes(trees[:-9])
    done = gmlr("train", table, "--out", out, "--model", "trees", *FAST)
    assert done.returncode == 2
    assert "trees.ubj: not trees that XGBoost wrote for this model" in done.stderr

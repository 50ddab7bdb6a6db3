"""What was written and imported before the package had rooms still works."""

import importlib
import json
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import gaussianmlr
from gaussianmlr._moved import MODULES, new_name
from gaussianmlr.apps.annotate import Store
from gaussianmlr.data.loading import Arrays
from gaussianmlr.model import Recipe, load
from gaussianmlr.training import fit

SUPPORT = Path(__file__).parent / "support"
BEFORE = SUPPORT / "before_rooms"  # made by commit e4e2d02, the last before the move
BEFORE_TABLES = SUPPORT / "before_tables"  # made by commit 546fc6f, the last before trees


@pytest.fixture(scope="module")
def rows():
    with np.load(BEFORE / "rows.npz") as arrays:
        return arrays["x"], arrays["y"]


@pytest.fixture(scope="module")
def said():
    with np.load(BEFORE / "said.npz") as arrays:
        return dict(arrays)


@pytest.mark.slow
def test_old_names_are_the_new_modules_and_warn():
    code = """
import importlib, json, sys, warnings
from gaussianmlr._moved import MODULES
for old, new in MODULES.items():
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        found = importlib.import_module(f"gaussianmlr.{old}")
    assert found is importlib.import_module(f"gaussianmlr.{new}"), old
    told = [str(one.message) for one in seen if one.category is DeprecationWarning]
    assert any(f"gaussianmlr.{old} moved to gaussianmlr.{new}" in text for text in told), (old, told)
print(len(MODULES))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert int(done.stdout) == len(MODULES) > 80


def test_a_name_that_left_a_package_and_one_that_never_was():
    from gaussianmlr import plots

    with pytest.warns(DeprecationWarning, match=r"plots\.ComparisonDisplay moved to"):
        found = plots.ComparisonDisplay
    assert found is importlib.import_module("gaussianmlr.comparison.plot").ComparisonDisplay
    with pytest.raises(AttributeError, match="no attribute 'Nonsense'"):
        plots.Nonsense  # noqa: B018
    assert new_name("gaussianmlr.nonsense") is None
    assert new_name("numpy.recipe") is None


@pytest.mark.slow
def test_public_names_do_not_warn():
    code = (
        "import warnings; warnings.simplefilter('error'); import gaussianmlr; "
        "[getattr(gaussianmlr, name) for name in gaussianmlr.__all__]"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_model_loads_and_says_the_same(rows, said):
    assert np.array_equal(load(BEFORE / "run" / "model").read(rows[0]).scores.numpy(), said["model"])


def test_an_interrupted_run_resumes_to_the_same_weights(rows, tmp_path):
    shutil.copytree(BEFORE / "interrupted", tmp_path / "run")
    recipe = Recipe(
        backbone="mlp",
        backbone_settings={"width": 8},
        head_settings={"hidden": 8},
        epochs=4,
        batch_size=16,
        seed=3,
    )
    data = Arrays(*rows)
    found = fit(recipe, data, data, labels=("a", "b", "c"), out=tmp_path / "run")
    assert not found.result.interrupted
    wanted = load(BEFORE / "run" / "model").network.state_dict()
    assert all((found.model.network.state_dict()[name] == value).all() for name, value in wanted.items())
    table = (tmp_path / "run" / "epochs.csv").read_text().splitlines()
    assert len(table) == 5


@pytest.mark.parametrize("name", ["ranker", "neighbours", "dummy"])
def test_a_pickled_estimator_says_the_same(name, rows, said):
    old = {f"gaussianmlr.{module}" for module in MODULES}
    for module in old & set(sys.modules):
        del sys.modules[module]
    with pytest.warns(DeprecationWarning, match="moved to"):
        found = pickle.loads((BEFORE / f"{name}.pickle").read_bytes())
    assert np.array_equal(found.decision_function(rows[0]), said[name])
    assert type(found).__name__ in gaussianmlr.__all__


def test_a_store_keeps_its_answers(tmp_path):
    shutil.copytree(BEFORE / "store", tmp_path / "store")
    with Store(tmp_path / "store") as store:
        (answer,) = store.answers()
        assert (answer.ranking, answer.note) == ("sea > sky = sun", "clear")
        assert store.labels == ("sea", "sky", "sun")


def test_the_config_of_a_run_is_read(rows):
    run = json.loads((BEFORE / "run" / "run.json").read_text())
    assert Recipe.from_dict(run["recipe"]).seed == 3


@pytest.mark.filterwarnings("default:.* moved to:DeprecationWarning")
def test_pickles_from_before_trees_and_scales_say_the_same():
    with np.load(BEFORE_TABLES / "said.npz") as arrays:
        told = dict(arrays)
    ranker, prediction, data = (
        pickle.loads((BEFORE_TABLES / f"{name}.pickle").read_bytes())
        for name in ("ranker", "prediction", "data")
    )
    assert np.array_equal(ranker.decision_function(told["x"]), told["ranker"])
    for found in (prediction, ranker.predict_full(told["x"])):
        assert np.array_equal(found.significance, told["significance"])
        np.testing.assert_allclose(found.p_rank, told["p_rank"], rtol=0, atol=1e-9)
    assert np.array_equal(data.ranks, gaussianmlr.densify(told["y"]))
    assert data.read_from.path == "t.csv"

"""The constant order and the forest beside a model."""

import json

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.stats import kendalltau
from sklearn.ensemble import RandomForestRegressor

from gaussianmlr.comparison import peers
from gaussianmlr.data import RankedMNIST
from gaussianmlr.data.loading import Arrays
from gaussianmlr.errors import DataError
from gaussianmlr.model.model import load
from gaussianmlr.model.recipe import Recipe
from gaussianmlr.model.schema import digest_of, read_config
from gaussianmlr.training.fit import fit
from support.commanding import gmlr, make_table
from support.oracles_metrics import tau_b

X = np.arange(10, dtype=np.float32)[:, None]


def test_the_constant_order_by_hand():
    # sky is first in three of four, sea second, sun never: sky > sea.
    train = Arrays(X[:4], [[2, 1, 0], [2, 1, 0], [2, 1, 0], [1, 2, 0]])
    held_out = Arrays(X[:2], [[2, 1, 0], [0, 1, 2]])
    found = peers.learn_peers(train, held_out, table=False)
    scores = found["constant_order"]["scores"]
    assert scores[:2] == [2.0, 1.0]
    assert scores[2] < 0
    # Right on the first; on the second all three pairs are reversed.
    by_hand = np.mean([kendalltau([2, 1, -1], truth).statistic for truth in ([2, 1, 0], [0, 1, 2])])
    assert found["constant_order"]["metrics"]["tau_b"] == pytest.approx(by_hand)
    # sky and sea are predicted: no mistake on the first, sky and sun wrong on the second.
    assert found["constant_order"]["metrics"]["hamming_loss"] == pytest.approx(2 / 6)
    assert "forest" not in found


def random_table(count, seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(count, 4)).astype(np.float32)
    hidden = x[:, :3] + 0.3 * rng.normal(size=(count, 3))
    return x, np.where(hidden > 0, hidden.argsort(1).argsort(1) + 1 - (hidden <= 0).sum(1)[:, None], 0)


def test_the_forest_by_scikit_learn():
    (x, ranks), (v, truth) = random_table(120, 0), random_table(60, 1)
    found = peers.learn_peers(Arrays(x, ranks), Arrays(v, truth), table=True, seed=5)
    y = np.hstack([ranks > 0, ranks / np.maximum(1, ranks.max(1, keepdims=True))]).astype(float)
    forest = RandomForestRegressor(100, max_features="sqrt", min_samples_leaf=3, random_state=5).fit(x, y)
    relevance, height = forest.predict(v)[:, :3], forest.predict(v)[:, 3:]
    wrong = np.mean((relevance > 0.5) != (truth > 0))
    assert found["forest"]["metrics"]["hamming_loss"] == pytest.approx(wrong)
    scores = np.where(relevance > 0.5, height, relevance - 1)
    expected = np.mean([tau_b(score, true) for score, true in zip(np.float32(scores), truth)])
    assert found["forest"]["metrics"]["tau_b"] == pytest.approx(expected, abs=1e-6)
    assert found["forest"]["metrics"]["tau_b"] > found["constant_order"]["metrics"]["tau_b"] + 0.1


def test_unknown_labels_and_gaps_do_not_stop_the_forest():
    x, ranks = random_table(80, 2)
    ranks[::3, 1], x[::5, 0] = -1, np.nan
    found = peers.learn_peers(Arrays(x, ranks), Arrays(x, ranks), table=True)
    assert found["forest"]["metrics"]["tau_b"] > 0.3


def test_a_forest_that_is_too_large_or_slow_is_left_out(monkeypatch):
    x, ranks = random_table(60, 3)
    data = Arrays(x, ranks)
    monkeypatch.setattr(peers, "MOST_CELLS", 60 * 4 * 3 - 1)
    found = peers.learn_peers(data, data, table=True)
    assert "forest" not in found
    assert "60 rows x 4 columns x 3 labels are 720 cells" in found["notes"][0]
    monkeypatch.undo()
    monkeypatch.setattr(peers, "_SECONDS", 0.0)
    found = peers.learn_peers(data, data, table=True, seconds=0.001)
    assert "forest" not in found
    assert "more than the 0 s it is given" in found["notes"][0]


def test_canvases_have_a_constant_order_alone():
    data = RankedMNIST("gray-s", "train", size=50, digits="embedded")
    found = peers.learn_peers(data, data, table=False)
    assert len(found["constant_order"]["scores"]) == 10
    assert "forest" not in found


def test_a_model_keeps_its_peers_and_the_schema_checks_them(tmp_path):
    data = Arrays(*random_table(40, 4))
    learned = peers.learn_peers(data, data, table=True)
    recipe, labels = Recipe(backbone="mlp", epochs=1), ("a", "b", "c")
    fit(recipe, data, data, labels=labels, out=tmp_path / "run", facts=lambda _: {"peers": learned})
    model = load(tmp_path / "run" / "model")
    assert model.about["peers"] == learned
    seen = peers.measure_peers(model, tmp_path / "run", data, torch.arange(40))
    assert seen.metrics["constant order"] == pytest.approx(learned["constant_order"]["metrics"])
    assert "random forest: tau-b" in seen.notes[0]  # no file to learn from
    file = tmp_path / "run" / "model" / "config.json"
    config = json.loads(file.read_text())
    config["about"]["peers"]["constant_order"]["scores"].pop()
    config["config_sha256"] = digest_of(config)
    file.write_text(json.dumps(config))
    with pytest.raises(DataError, match="2 scores of a constant order of 3 labels"):
        read_config(file.parent)


@pytest.mark.slow
def test_commands_show_peers_and_a_finished_run_keeps_them(tmp_path):
    table, run = tmp_path / "table.csv", tmp_path / "run"
    make_table().to_csv(table, index=False)
    train = ("train", table, "--out", run, "--epochs", "3", "--json", "--quiet")
    done = gmlr(*train)
    assert done.returncode == 0, done.stderr
    shown = json.loads(done.stdout)["peers"]
    assert list(shown) == ["constant order", "random forest"]
    held_out = gmlr("evaluate", run, table, "--split", "validation", "--json")
    assert json.loads(held_out.stdout)["peers"] == {
        name: pytest.approx(values) for name, values in shown.items()
    }
    assert json.loads(gmlr("evaluate", run, table, "--no-peers", "--json").stdout)["peers"] == {}
    file = run / "model" / "config.json"
    before = json.loads(file.read_text())["about"]["peers"]
    assert gmlr(*train).returncode == 0
    assert json.loads(file.read_text())["about"]["peers"] == before  # also its seconds: not computed again
    text = gmlr("evaluate", run, table).stdout
    assert "constant order" in text
    assert "random forest" in text
    assert "100 = the right order" in text
    pd.read_csv(table).assign(a=0.0).to_csv(table, index=False)  # no longer what the run was trained on
    other = gmlr("evaluate", run, table)
    assert "random forest: tau-b" in other.stderr
    assert "random forest" not in other.stdout
    page = gmlr("report", run, "--data", table, "--split", "test")
    assert page.returncode == 0, page.stderr
    assert "constant order" in (run / "report.html").read_text("utf-8")

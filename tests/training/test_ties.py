"""Training with ties: what is learned, when it is chosen, and that runs resume."""

import json
import shutil

import numpy as np
import pytest
import torch

from gaussianmlr import GaussianMLR, MultiLabelRanker, load, metrics
from gaussianmlr._utils.progress import Watcher
from gaussianmlr.data.loading import Arrays
from gaussianmlr.model.recipe import Recipe
from gaussianmlr.orders import densify
from gaussianmlr.training.fit import fit
from gaussianmlr.training.kinds import fit_kinds
from gaussianmlr.training.ties import hold_ties, settled
from gaussianmlr.training.trees import fit_trees

LABELS = tuple("abcde")
INPUTS = {"kind": "table", "channels": 6}
AUTO = {"gauge": "canonical", "balance": "comparisons", "ties": "auto"}
RECIPE = Recipe(backbone="mlp", epochs=12, batch_size=32, rate=5e-3, method_settings=AUTO)


def graded(count, seed, *, step=1.0, noise=0.3):
    """Grades are hidden significances rounded up to multiples of a step; 0 for none."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(count, 6)).astype(np.float32)
    hidden = 0.3 + 1.5 * x[:, :5] + noise * rng.normal(size=(count, 5))
    return x, densify(np.where(hidden > 0, np.ceil(hidden / step), 0))


def unrelated(count, seed):
    """Ties by chance alone: any two neighbours of an order tie with probability one half."""
    rng = np.random.default_rng(seed)
    x, ranks = graded(count, seed, step=1e-6, noise=0.05)
    joined = np.cumsum(rng.random((count, 6)) < 0.5, axis=1)
    coarse = np.take_along_axis(joined, ranks, 1) + 1
    return x, densify(np.where(ranks > 0, coarse, 0))


def sets(make, **options):
    return [Arrays(*make(count, seed, **options)) for count, seed in ((400, 0), (200, 1), (300, 2))]


@pytest.fixture(scope="module")
def learned():
    train, validation, _ = sets(graded)
    return fit(RECIPE, train, validation, labels=LABELS).model


def test_ties_of_grades_are_learned(learned):
    test = sets(graded)[2]
    found, ranks = learned.predict(test.inputs), test.ranks.numpy()
    assert learned.method.ties == learned.recipe.method_settings["ties"] == "learned"
    assert learned.about["ties"]["gain"] > 3 * learned.about["ties"]["error"] > 0
    joined = metrics.kendall_tau_b(found.ranks, ranks)
    assert joined > metrics.kendall_tau_b(found.scores, ranks) + 0.01
    assert metrics.tie_f1(found.ranks, ranks) > 0.5
    assert learned.about["metrics"]["tau_b"] > 0.7
    rate = np.full_like(found.p_above, learned.about["ties"]["share"])
    chance = metrics.bucket_likelihood((1 - rate) * found.p_above / (1 - found.p_tie), rate, ranks)
    assert metrics.bucket_likelihood(found.p_above, found.p_tie, ranks) > chance + 0.05


def test_orders_without_ties_keep_the_papers_method():
    train, validation, test = sets(graded, step=1e-6)
    assert not hold_ties(train.ranks)
    models = [
        fit(
            RECIPE.replace(epochs=2, method_settings=AUTO | {"ties": ties}), train, validation, labels=LABELS
        ).model
        for ties in ("auto", "none")
    ]
    states = [model.network.state_dict() for model in models]
    assert states[0].keys() == states[1].keys()
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])
    assert models[0].predict(test.inputs) == models[1].predict(test.inputs)


def test_ties_by_chance_are_dropped(tmp_path):
    train, validation, test = sets(unrelated)
    assert hold_ties(train.ranks)
    notes = []
    watcher = Watcher()
    watcher.note = notes.append
    model = fit(RECIPE, train, validation, labels=LABELS, out=tmp_path / "run", watcher=watcher).model
    assert any(note.startswith("no ties") for note in notes)
    assert model.method.ties == "none"
    assert model.predict(test.inputs).tau is None
    assert "ties" not in model.about
    again = load(tmp_path / "run" / "model")
    assert again.predict(test.inputs) == model.predict(test.inputs)
    # The run knows what was asked, and the same call finds it finished.
    assert json.loads((tmp_path / "run" / "run.json").read_text())["recipe"]["method_settings"] == AUTO
    same = fit(RECIPE, train, validation, labels=LABELS, out=tmp_path / "run").model
    assert same.predict(test.inputs) == model.predict(test.inputs)


def test_interrupted_runs_resume_to_the_bit(tmp_path):
    train, validation, test = sets(graded)
    recipe = RECIPE.replace(epochs=4)
    whole = fit(recipe, train, validation, labels=LABELS, out=tmp_path / "whole").model

    class Stopper(Watcher):
        steps = 0

        def step(self, loss):
            self.steps += 1
            if self.steps == 20:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit(recipe, train, validation, labels=LABELS, out=tmp_path / "cut", watcher=Stopper())
    shutil.copytree(tmp_path / "cut", tmp_path / "copy")
    resumed = fit(recipe, train, validation, labels=LABELS, out=tmp_path / "copy").model
    assert resumed.predict(test.inputs) == whole.predict(test.inputs)
    assert torch.equal(resumed.read(test.inputs).tau, whole.read(test.inputs).tau)


def test_settled_by_several_rankers():
    ranks = torch.tensor([[[2, 1, 0], [1, 1, 0]]])
    assert settled(RECIPE, Arrays(torch.zeros(1, 2), ranks)).method_settings["ties"] == "learned"
    assert settled(RECIPE, object()).method_settings["ties"] == "none"  # drawn on demand
    asked = RECIPE.replace(method_settings={})
    assert settled(asked, Arrays(torch.zeros(1, 2), ranks)) is asked


@pytest.mark.parametrize("thresholds", ["model", "label"])
def test_trees_with_ties(thresholds, tmp_path):
    pytest.importorskip("xgboost")
    train, validation, test = sets(graded)
    settings = AUTO | {"ties": "learned", "thresholds": thresholds}
    recipe = RECIPE.replace(method_settings=settings, trees={"rounds": 60, "rate": 0.2})
    model = fit_trees(recipe, train, validation, labels=LABELS, inputs=INPUTS)
    found = model.predict(test.inputs)
    assert metrics.tie_f1(found.ranks, test.ranks.numpy()) > 0.4
    assert metrics.kendall_tau_b(found.ranks, test.ranks.numpy()) > metrics.kendall_tau_b(
        found.scores, test.ranks.numpy()
    )
    again = load(model.save(tmp_path / "model"))
    assert again.predict(test.inputs) == found
    assert len(model.trees.tau) == (1 if thresholds == "model" else 5)


@pytest.mark.slow
def test_runs_of_both_kinds(tmp_path):
    pytest.importorskip("xgboost")
    train, validation, test = sets(graded)
    recipe = RECIPE.replace(model="both", epochs=6, trees={"rounds": 40, "rate": 0.2})
    options = {"labels": LABELS, "inputs": INPUTS, "out": tmp_path / "run", "fingerprint": "x"}
    model = fit_kinds(recipe, train, validation, **options).model
    assert model.kind == "both"
    assert model.about["ties"]["gain"] > 0
    assert metrics.tie_f1(model.predict(test.inputs).ranks, test.ranks.numpy()) > 0.4
    again = fit_kinds(recipe, train, validation, **options).model  # finished parts are kept
    assert again.predict(test.inputs) == model.predict(test.inputs)


@pytest.mark.slow
@pytest.mark.parametrize("model", ["network", "trees", "both"])
def test_estimators(model, tmp_path):
    x, ranks = graded(300, 0)
    new, truth = graded(200, 2)
    scores = {}
    for ties in ("none", "auto"):
        ranker = GaussianMLR(model=model, ties=ties, epochs=10, random_state=0).fit(x, ranks)
        scores[ties] = metrics.kendall_tau_b(ranker.predict(new), truth)
    assert scores["auto"] > scores["none"] + 0.01
    assert ranker.model_.about["ties"]["gain"] > 0
    again = GaussianMLR.load(ranker.save(tmp_path / model))
    assert np.array_equal(again.predict(new), ranker.predict(new))
    assert any("=" in order for order in ranker.predict_order(new))
    by_chance, tied = unrelated(300, 0)
    assert (
        GaussianMLR(model=model, epochs=10, random_state=0).fit(by_chance, tied).model_.method.ties == "none"
    )


@pytest.mark.parametrize("name", ["ranknet", "zlpr"])
def test_estimators_of_rivals(name):
    x, ranks = graded(300, 0)
    options = {"epochs": 40, "n_members": 1, "rate": 5e-3, "dropout": 0.0, "random_state": 0}
    settings = {"ties": "learned", "supervision": "strong"}
    ranker = MultiLabelRanker(name, method_settings=settings, **options)
    found = ranker.fit(x, ranks).predict_full(x)
    assert metrics.tie_f1(found.ranks, ranks) > 0.4


def test_estimator_of_exact_ties():
    x, ranks = graded(300, 0)
    exact = MultiLabelRanker("pl", method_settings={"ties": "exact"}, epochs=5, n_members=1, random_state=0)
    assert metrics.kendall_tau_b(exact.fit(x, ranks).decision_function(x), ranks) > 0.5

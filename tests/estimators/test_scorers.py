"""Scorers against scikit-learn's own conventions and metrics."""

import pickle

import numpy as np
import pytest
from scipy.stats import kendalltau
from sklearn.metrics import f1_score, hamming_loss
from sklearn.model_selection import GridSearchCV

from gaussianmlr import DataError, NeighbourRanker
from gaussianmlr.estimators import scorers
from gaussianmlr.metrics import evaluate


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    y = np.where(X > 0, X.argsort(1).argsort(1) + 1, 0)
    y[rng.random(y.shape) < 0.1] = -1
    return NeighbourRanker(5).fit(X[:40], y[:40]), X[40:], y[40:]


@pytest.mark.parametrize("name", scorers.available())
def test_larger_is_better(fitted, name):
    model, X, y = fitted
    plain = evaluate(model.decision_function(X), y)
    found = pickle.loads(pickle.dumps(scorers.get_scorer(name)))(model, X, y)
    assert found == (-plain[name[4:]] if name.startswith("neg_") else plain[name])


@pytest.mark.parametrize("name", scorers.available())
def test_weights_are_repetitions(fitted, name):
    model, X, y = fitted
    weights = np.random.default_rng(1).integers(0, 4, len(X))
    scorer = scorers.get_scorer(name)
    expected = scorer(model, X.repeat(weights, 0), y.repeat(weights, 0))
    assert scorer(model, X, y, sample_weight=weights) == pytest.approx(expected)
    assert scorer(model, X, y, sample_weight=np.zeros(len(X))) == 0


def test_weighted_classification_is_scikit_learns(fitted):
    model, X, y = fitted
    known = (y >= 0).all(1)
    X, y = X[known], y[known]
    weights = np.random.default_rng(1).random(len(X))
    found = {name: one(model, X, y, sample_weight=weights) for name, one in scorers.get_scorers().items()}
    true, said = y > 0, model.predict(X) > 0
    assert found["f1"] == pytest.approx(f1_score(true, said, average="micro", sample_weight=weights))
    assert -found["neg_hamming_loss"] == pytest.approx(hamming_loss(true, said, sample_weight=weights))


def test_a_search_refits_by_one_of_all(fitted):
    _, X, y = fitted
    search = GridSearchCV(
        NeighbourRanker(),
        {"n_neighbours": [1, 9]},
        scoring=scorers.get_scorers(),
        refit="neg_hamming_loss",
        cv=2,
    ).fit(X, y)
    means = search.cv_results_["mean_test_neg_hamming_loss"]
    assert search.best_params_["n_neighbours"] == (1, 9)[int(np.argmax(means))]
    assert means.max() <= 0


def test_unknown_names():
    with pytest.raises(DataError, match="did you mean 'neg_hamming_loss'"):
        scorers.get_scorer("hamming_loss")
    with pytest.raises(DataError, match="there are tau_b, "):
        scorers.get_scorer("accuracy")


def test_a_rival_from_outside_needs_a_decision_function_alone():
    class Rival:
        def decision_function(self, X):
            return np.asarray(X) - 0.5

    X, ranks = np.array([[2.0, 1.0, 0.0], [0.0, 3.0, 1.0]]), np.array([[2, 1, 0], [0, 1, 2]])
    assert scorers.get_scorer("tau_b")(Rival(), X, ranks) == pytest.approx(kendalltau_mean(X - 0.5, ranks))
    assert scorers.get_scorer("neg_hamming_loss")(Rival(), X, ranks) == 0


def kendalltau_mean(scores, ranks):
    accepted = np.where(scores > 0, scores, 0)
    return np.mean([kendalltau(one, other).statistic for one, other in zip(accepted, ranks)])

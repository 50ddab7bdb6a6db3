"""Metrics of ties against loops over pairs."""

import itertools
import math

import numpy as np
import pytest
import torch
from scipy.stats import kendalltau

from gaussianmlr import DataError, metrics


def drawn(seed=0, rows=60, labels=5):
    rng = np.random.default_rng(seed)
    return rng.integers(0, 4, (rows, labels)), rng.integers(-1, 4, (rows, labels))


def counted(predicted, ranks):
    both = said = true = 0
    for one, order in zip(predicted, ranks):
        for u, v in itertools.combinations([x for x in range(len(order)) if order[x] >= 0], 2):
            a, b = one[u] == one[v] > 0, order[u] == order[v] > 0
            said, true, both = said + a, true + b, both + (a and b)
    return both, said, true


def test_precision_recall_and_f1():
    predicted, ranks = drawn()
    both, said, true = counted(predicted, ranks)
    assert 0 < both < min(said, true)
    assert metrics.tie_precision(predicted, ranks) == pytest.approx(both / said)
    assert metrics.tie_recall(predicted, ranks) == pytest.approx(both / true)
    assert metrics.tie_f1(predicted, ranks) == pytest.approx(2 * both / (said + true))


def test_nothing_tied():
    assert metrics.tie_precision([[2, 1]], [[1, 1]]) == 0.0
    assert metrics.tie_recall([[1, 1]], [[2, 1]]) == 0.0
    assert metrics.tie_f1([[2, 1]], [[2, 1]]) == 0.0


def test_modular_over_batches():
    predicted, ranks = (torch.from_numpy(part) for part in drawn(1))
    for name, function in (
        ("TiePrecision", metrics.tie_precision),
        ("TieRecall", metrics.tie_recall),
        ("TieF1", metrics.tie_f1),
    ):
        measure = getattr(metrics, name)()
        for rows in (slice(0, 7), slice(7, 60)):
            measure.update(predicted[rows], ranks[rows])
        assert measure.compute().item() == pytest.approx(float(function(predicted, ranks)))


def test_tau_b_counts_predicted_ties():
    predicted, ranks = drawn(2)
    ranks = np.abs(ranks)
    wanted = [kendalltau(one, order).statistic for one, order in zip(predicted, ranks)]
    found = metrics.kendall_tau_b(predicted, ranks, reduction="none")
    assert np.allclose(found, np.nan_to_num(wanted))
    scores = predicted + np.where(predicted > 0, 0.01 * np.arange(5), -1.0)  # a finer order
    given = metrics.evaluate(scores, ranks, predicted)
    assert given["tau_b"] == pytest.approx(found.mean())
    assert given["tau_b"] != pytest.approx(metrics.evaluate(scores, ranks)["tau_b"])
    assert given["max1_error"] == metrics.evaluate(scores, ranks)["max1_error"]
    measure = metrics.PaperMetrics()
    measure.update(*(torch.from_numpy(part) for part in (scores, ranks, predicted)))
    assert measure.compute()["tau_b"].item() == pytest.approx(given["tau_b"])
    with pytest.raises(DataError, match="contradict"):
        metrics.evaluate(-scores, ranks, predicted)


def test_bucket_likelihood():
    rng = np.random.default_rng(3)
    _, ranks = drawn(3, rows=9)
    parts = rng.dirichlet([1, 1, 1], (9, 5, 5))
    above = np.triu(parts[..., 0], 1) + np.tril(parts[..., 1].transpose(0, 2, 1), -1)
    tie = np.triu(parts[..., 2], 1) + np.triu(parts[..., 2], 1).transpose(0, 2, 1)
    wanted = []
    for a, t, order in zip(above, tie, ranks):
        logs = [
            math.log(t[u, v] if order[u] == order[v] else a[u, v] if order[u] > order[v] else a[v, u])
            for u, v in itertools.combinations([x for x in range(5) if order[x] > 0], 2)
        ]
        wanted.append(np.mean(logs) if logs else 0.0)
    found = metrics.bucket_likelihood(above, tie, ranks, reduction="none")
    assert np.allclose(found, wanted)
    counts = (ranks > 0).sum(1) > 1
    assert metrics.bucket_likelihood(above, tie, ranks) == pytest.approx(np.mean(np.array(wanted)[counts]))
    measure = metrics.BucketLikelihood()
    for rows in (slice(0, 4), slice(4, 9)):
        measure.update(*(torch.from_numpy(part[rows]) for part in (above, tie, ranks)))
    assert measure.compute().item() == pytest.approx(np.mean(np.array(wanted)[counts]))


def test_bucket_likelihood_of_a_model_without_ties_is_finite():
    above, none = np.full((1, 2, 2), 0.5), np.zeros((1, 2, 2))
    assert metrics.bucket_likelihood(above, none, [[1, 1]], floor=1e-6) == pytest.approx(math.log(1e-6))
    with pytest.raises(DataError, match="floor"):
        metrics.bucket_likelihood(above, none, [[1, 1]], floor=0.0)
    with pytest.raises(DataError, match="shape"):
        metrics.bucket_likelihood(above, none, [[1, 1, 1]])

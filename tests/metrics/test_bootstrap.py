"""Intervals against scipy's bootstrap, and their promise: they hold the truth as often as they say."""

import numpy as np
import pytest
from scipy import stats

from gaussianmlr.errors import DataError
from gaussianmlr.metrics import f1
from gaussianmlr.metrics.bootstrap import bootstrap


def test_the_interval_is_that_of_scipy():
    values = np.random.default_rng(0).exponential(size=400)
    found = bootstrap(values, draws=4000)
    known = stats.bootstrap((values,), np.mean, method="percentile", n_resamples=4000, rng=1)
    assert found.value == pytest.approx(values.mean())
    assert found[1:] == pytest.approx(tuple(known.confidence_interval), abs=0.01)


def test_a_ratio_of_sums_is_resampled_as_a_whole():
    random = np.random.default_rng(1)
    scores, ranks = random.normal(size=(200, 5)), random.integers(0, 3, (200, 5))
    said, true = scores > 0, ranks > 0
    hits, misses = (said & true).sum(1), (said != true).sum(1)
    found = bootstrap(hits, hits + misses / 2, draws=2000)
    assert found.value == pytest.approx(f1(scores, ranks))
    naive = []
    for _ in range(2000):
        rows = random.integers(0, 200, 200)
        naive.append(f1(scores[rows], ranks[rows]))
    assert found[1:] == pytest.approx(tuple(np.quantile(naive, [0.025, 0.975])), abs=0.008)


def test_of_several_trainings_the_mean_is_resampled_over_the_same_instances():
    random = np.random.default_rng(2)
    easy = random.normal(size=300)
    trainings = easy + 0.1 * random.normal(size=(3, 300))
    found = bootstrap(trainings)
    assert found.value == pytest.approx(trainings.mean())
    assert found[1:] == pytest.approx(bootstrap(trainings.mean(0))[1:])
    with_gaps = bootstrap(trainings * (easy > 0), np.tile(easy > 0, (3, 1)))
    assert with_gaps.value == pytest.approx(trainings[:, easy > 0].mean())


def test_it_holds_the_truth_as_often_as_it_says():
    random = np.random.default_rng(3)
    held = [
        (found := bootstrap(random.normal(size=80), draws=400)).low <= 0 <= found.high for _ in range(400)
    ]
    assert 0.90 <= np.mean(held) <= 0.98


@pytest.mark.parametrize(
    ("values", "more", "message"),
    [
        ([], {}, "expected values and weights of one shape"),
        ([1.0, 2.0], {"weights": [1.0]}, "expected values and weights of one shape"),
        ([1.0], {"weights": [0.0]}, "all weights are 0"),
        ([1.0], {"level": 1.0}, "level is 1.0"),
    ],
)
def test_what_has_no_interval(values, more, message):
    with pytest.raises(DataError, match=message):
        bootstrap(values, **more)

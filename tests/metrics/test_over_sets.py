"""Mean ranks and critical differences against scipy, Demsar's tables, and naive loops."""

import numpy as np
import pytest
from scipy import stats

from gaussianmlr.errors import DataError
from gaussianmlr.metrics.over_sets import critical_difference, over_sets


@pytest.mark.parametrize(
    ("methods", "q"),  # Demsar (2006), table 5a: critical values at 0.05
    [(2, 1.960), (3, 2.343), (4, 2.569), (5, 2.728), (6, 2.850), (10, 3.164)],
)
def test_critical_values_are_those_of_demsars_table(methods, q):
    found = critical_difference(methods, 30)
    assert found == pytest.approx(q * np.sqrt(methods * (methods + 1) / 180), rel=6e-4)


def test_mean_ranks_and_friedman():
    table = np.random.default_rng(0).normal([0, 0.5, 1, 1.5], size=(9, 4))
    found = over_sets(table)
    naive = np.mean([[1 + sum(other > value for other in row) for value in row] for row in table], axis=0)
    np.testing.assert_allclose(found.ranks, naive)
    assert found.p == pytest.approx(stats.friedmanchisquare(*table.T).pvalue)
    assert over_sets(-table, larger_is_better=False).ranks.tolist() == found.ranks.tolist()
    assert over_sets([[0.5, 0.5, 0.1], [0.2, 0.2, 0.2]]).ranks.tolist() == [1.75, 1.75, 2.5]
    assert over_sets(np.ones((3, 3))).p == 1.0


def test_methods_without_a_difference_are_rarely_told_apart():
    random = np.random.default_rng(1)
    apart = 0
    for _ in range(400):
        found = over_sets(random.normal(size=(12, 3)))
        apart += np.ptp(found.ranks) > found.critical
    assert apart / 400 < 0.09


def test_what_cannot_be_ranked():
    with pytest.raises(DataError, match="two methods or more"):
        over_sets([[1.0], [2.0]])
    with pytest.raises(DataError, match="expected two or more on one or more"):
        critical_difference(1, 5)

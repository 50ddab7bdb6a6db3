r"""Paired tests of whether one contender beats another beyond noise, and adjustment for many tests.

The right test depends on what differs between the runs. Where every run has its own test part, training
parts overlap and the runs are not independent: `resampled_t` widens the spread accordingly. Where all runs
share one test part, both its instances and the seeds of the training are random: `crossed_t` accounts for
both. A test over instances alone would mistake a lucky seed for a better method.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gaussianmlr.errors import DataError

__all__ = ["Pair", "PairedTest", "all_pairs", "crossed_t", "holm", "resampled_t"]


class PairedTest(NamedTuple):
    """A paired test of a mean difference against zero, two-sided; `error` is its standard error."""

    difference: float
    statistic: float
    freedom: float
    p: float
    error: float = math.nan

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """The confidence interval of the difference, which holds zero where p is above 1 - level.

        Examples
        --------
        >>> low, high = crossed_t([[0.1, 0.3, 0.2, 0.0]]).interval()
        >>> round(low, 3), round(high, 3)
        (-0.055, 0.355)
        """
        from scipy.special import stdtrit

        reach = float(stdtrit(self.freedom, (1 + level) / 2)) * self.error
        return self.difference - reach, self.difference + reach


class Pair(NamedTuple):
    """Two contenders, the test of their difference, and its p-value adjusted for all pairs."""

    one: str
    other: str
    test: PairedTest
    adjusted: float


def all_pairs(names: Sequence[str], test: Callable[[str, str], PairedTest]) -> tuple[Pair, ...]:
    """Test every pair of contenders, and adjust the p-values for their number by Holm's method.

    Parameters
    ----------
    names : sequence of str
        The contenders; the first of a pair is the one that comes first.
    test : callable
        The paired test of two of them.

    Examples
    --------
    >>> values = {"a": [3.0, 4.0, 5.5], "b": [1.0, 2.5, 3.0], "c": [1.0, 2.0, 3.5]}
    >>> pairs = all_pairs("abc", lambda one, other: crossed_t([np.subtract(values[one], values[other])]))
    >>> [(pair.one, pair.other, round(pair.test.p, 3), round(pair.adjusted, 3)) for pair in pairs]
    [('a', 'b', 0.02, 0.04), ('a', 'c', 0.0, 0.0), ('b', 'c', 1.0, 1.0)]
    """
    pairs = list(itertools.combinations(names, 2))
    tests = [test(*pair) for pair in pairs]
    adjusted = holm([one.p for one in tests])
    return tuple(Pair(*pair, one, float(p)) for pair, one, p in zip(pairs, tests, adjusted))


def resampled_t(differences: npt.ArrayLike, ratio: float) -> PairedTest:
    r"""The corrected resampled t-test: runs on splits of one data set, each with its own test part.

    .. math::
        t = \frac{\bar d}{\sqrt{\left(\frac 1J + \frac{n_\text{test}}{n_\text{rest}}\right) s_d^2}},
        \qquad J - 1 \text{ degrees of freedom}

    for the differences :math:`d_1 .. d_J` of two contenders on the same splits. The plain paired
    t-test has :math:`1/J` alone and finds differences that do not exist, since the training parts overlap.

    Parameters
    ----------
    differences : array-like [J]
        One difference per split, two or more.
    ratio : float
        Test instances per training instance.

    References
    ----------
    Nadeau and Bengio (2003), Inference for the generalization error. Machine Learning 52. Bouckaert and
    Frank (2004), Evaluating the replicability of significance tests for comparing learning algorithms.

    Examples
    --------
    >>> round(resampled_t([0.02, 0.03, 0.01, 0.02, 0.04], ratio=0.25).p, 4)
    0.0349
    """
    d = np.asarray(differences, dtype=np.float64)
    if d.ndim != 1 or len(d) < 2:
        raise DataError(f"expected two differences or more, got shape {list(d.shape)}")
    if not ratio >= 0:
        raise DataError(f"ratio is {ratio}; expected test instances per training instance, 0 or more")
    return _t(float(d.mean()), (1 / len(d) + ratio) * float(d.var(ddof=1)), len(d) - 1)


def crossed_t(differences: npt.ArrayLike) -> PairedTest:
    r"""A t-test for seeds tested on the same instances, which accounts for the noise of both.

    Differences are a two-way table with random rows (seeds) and columns (instances). From its mean squares,

    .. math::
        \widehat{\text{Var}}(\bar d) = \frac{MS_e + \max(0, MS_s - MS_e) + \max(0, MS_i - MS_e)}{S n}

    with the degrees of freedom by Satterthwaite. Many seeds and few instances are judged by the spread
    over the instances, and vice versa. One seed gives the paired t-test over instances, which
    compares these trained models, not the methods.

    Parameters
    ----------
    differences : array-like [S, n]
        One row per seed, one column per instance; two instances or more.

    References
    ----------
    Clark (1973), The language-as-fixed-effect fallacy. Journal of Verbal Learning and Verbal Behavior 12.
    Satterthwaite (1946), An approximate distribution of estimates of variance components.

    Examples
    --------
    >>> table = [[0.1, 0.3, 0.2, 0.0], [0.2, 0.3, 0.1, 0.1]]
    >>> round(crossed_t(table).p, 4), round(crossed_t(table[:1]).p, 4)
    (0.0511, 0.1027)
    """
    d = np.asarray(differences, dtype=np.float64)
    if d.ndim != 2 or d.shape[0] < 1 or d.shape[1] < 2:
        raise DataError(f"expected differences of shape [seeds, two instances or more], got {list(d.shape)}")
    seeds, count = d.shape
    mean = float(d.mean())
    if seeds == 1:
        return _t(mean, float(d.var(ddof=1)) / count, count - 1)
    of_seed, of_instance = d.mean(axis=1), d.mean(axis=0)
    left = d - of_seed[:, None] - of_instance + mean
    free = np.array([(seeds - 1) * (count - 1), seeds - 1, count - 1], dtype=np.float64)
    squares = np.array([np.sum(left**2), count * np.sum((of_seed - mean) ** 2), 0.0]) / free
    squares[2] = seeds * np.sum((of_instance - mean) ** 2) / free[2]
    # A negative variance component counts as zero.
    above = squares[1:] > squares[0]
    terms = np.array([1.0 - above.sum(), *above]) * squares
    total = float(terms.sum())
    spread = float(np.sum(terms**2 / free))
    freedom = total**2 / spread if spread > 0 else float(free.max())
    return _t(mean, total / (seeds * count), freedom)


def holm(p: npt.ArrayLike) -> npt.NDArray[np.float64]:
    r"""P-values adjusted for their number by Holm's method.

    .. math:: \tilde p_{(i)} = \min\left(1, \max_{j \le i} (m - j + 1) \, p_{(j)}\right)

    Parameters
    ----------
    p : array-like [m]
        P-values, in any order.

    References
    ----------
    Holm (1979), A simple sequentially rejective multiple test procedure.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03])
    array([0.03, 0.06, 0.06])
    """
    values = np.asarray(p, dtype=np.float64)
    order = np.argsort(values, kind="stable")
    falling = np.arange(len(values), 0, -1)
    adjusted = np.empty_like(values)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(falling * values[order]))
    return adjusted


def _t(mean: float, variance: float, freedom: float) -> PairedTest:
    from scipy.special import stdtr

    if variance <= 0:  # the limit without any spread
        endless = math.copysign(math.inf, mean) if mean else 0.0
        return PairedTest(mean, endless, freedom, 0.0 if mean else 1.0, 0.0)
    error = math.sqrt(variance)
    statistic = mean / error
    return PairedTest(mean, statistic, freedom, float(2 * stdtr(freedom, -abs(statistic))), error)

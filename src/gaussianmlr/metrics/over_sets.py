r"""Methods over several data sets: mean ranks, Friedman's test, critical differences.

One number per data set and method; data sets are the sample. For tests on the instances of one data set see
`metrics.paired`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gaussianmlr.errors import DataError

__all__ = ["OverSets", "critical_difference", "over_sets"]

Floats = npt.NDArray[np.float64]


class OverSets(NamedTuple):
    """Mean ranks of methods over data sets (1 is the best), and how far apart chance puts them."""

    ranks: Floats
    critical: float
    p: float


def critical_difference(methods: int, sets: int, level: float = 0.05) -> float:
    r"""Nemenyi's critical difference of mean ranks.

    .. math:: CD = q_{\alpha, k} \sqrt{\frac{k (k + 1)}{6 n}}

    for k methods on n data sets, with the studentized range over :math:`\sqrt 2` as q.

    Parameters
    ----------
    methods, sets : int
        Two or more methods, one data set or more.
    level : float
        Chance that methods without any difference are told apart.

    References
    ----------
    Demsar (2006), Statistical comparisons of classifiers over multiple data sets. JMLR 7.

    Examples
    --------
    >>> round(critical_difference(4, 14), 2)  # Demsar's example, at 0.05
    1.25
    """
    from scipy.stats import studentized_range

    if methods < 2 or sets < 1:
        raise DataError(f"{methods} methods on {sets} data sets; expected two or more on one or more")
    q = float(studentized_range.ppf(1 - level, methods, np.inf)) / math.sqrt(2)
    return q * math.sqrt(methods * (methods + 1) / (6 * sets))


def over_sets(table: npt.ArrayLike, *, larger_is_better: bool = True, level: float = 0.05) -> OverSets:
    """Rank the methods on every data set, and compare the mean ranks.

    Parameters
    ----------
    table : array-like [sets, methods]
        A metric; tied methods share their mean rank.
    larger_is_better : bool
        Whether rank 1 is the largest.
    level : float
        Of the critical difference.

    Returns
    -------
    OverSets
        `p` is that of Friedman's test that all methods are alike; 1 for two methods on which it is
        undefined, and where all are tied.

    References
    ----------
    Friedman (1937), The use of ranks to avoid the assumption of normality. JASA 32.

    Examples
    --------
    >>> found = over_sets([[0.9, 0.8, 0.7], [0.8, 0.7, 0.6], [0.7, 0.6, 0.65]])
    >>> found.ranks.round(2).tolist(), round(found.p, 3)
    ([1.0, 2.33, 2.67], 0.097)
    """
    from scipy.stats import friedmanchisquare, rankdata

    values = np.asarray(table, dtype=np.float64)
    if values.ndim != 2 or values.shape[1] < 2 or not len(values):
        raise DataError(f"expected numbers [data sets, two methods or more], got shape {list(values.shape)}")
    ranks: Floats = rankdata(-values if larger_is_better else values, axis=1)
    p = 1.0
    if values.shape[1] > 2 and len(values) > 1 and np.ptp(ranks, axis=1).any():
        p = float(friedmanchisquare(*values.T).pvalue)
    return OverSets(ranks.mean(0), critical_difference(values.shape[1], len(values), level), p)

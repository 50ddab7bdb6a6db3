"""Bootstrap intervals over instances of metrics that are means, or ratios of sums."""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gaussianmlr.errors import DataError

__all__ = ["Interval", "bootstrap"]

Floats = npt.NDArray[np.float64]
_SEED = 20_220_718  # fixed, so that an interval can be reproduced


class Interval(NamedTuple):
    """A value, and the ends of its interval."""

    value: float
    low: float
    high: float


def bootstrap(
    values: npt.ArrayLike, weights: npt.ArrayLike | None = None, *, level: float = 0.95, draws: int = 1000
) -> Interval:
    r"""The percentile interval of a ratio of sums over resampled instances.

    .. math:: \hat m = \frac{\sum_i v_i}{\sum_i w_i}

    Instances are drawn with replacement, `draws` times; the interval holds the middle `level` of the ratios.
    A metric per instance has weights of 1; micro F1 has values :math:`TP_i` and weights
    :math:`TP_i + (FP_i + FN_i)/2`.

    Parameters
    ----------
    values : array-like [n] or [S, n]
        One per instance; of several trainings, row by row, each resample takes the same instances of all.
    weights : array-like, optional
        As `values`; 1 for all by default.
    level : float
        Between 0 and 1.
    draws : int
        Resamples.

    References
    ----------
    Efron and Tibshirani (1993), An introduction to the bootstrap, chapter 13.

    Examples
    --------
    >>> found = bootstrap([0.2, 0.4, 0.9, 0.5])
    >>> round(found.value, 3), found.low < 0.5 < found.high
    (0.5, True)
    """
    above = np.atleast_2d(np.asarray(values, dtype=np.float64))
    below = np.ones_like(above) if weights is None else np.atleast_2d(np.asarray(weights, dtype=np.float64))
    if above.ndim != 2 or above.shape != below.shape or not above.shape[1]:
        raise DataError(
            f"expected values and weights of one shape [n] or [S, n], n > 0, got {list(above.shape)} "
            f"and {list(below.shape)}"
        )
    if not 0 < level < 1:
        raise DataError(f"level is {level}; expected a number between 0 and 1")
    if not below.sum() > 0:
        raise DataError("all weights are 0; expected an instance that counts")
    # The mean of several trainings' ratios, which may have different weights.
    counts = _resamples(above.shape[1], draws)
    sums, sizes = counts @ above.T, counts @ below.T
    ratios = np.divide(sums, sizes, out=np.full_like(sums, np.nan), where=sizes > 0).mean(1)
    low, high = np.nanquantile(ratios, [(1 - level) / 2, (1 + level) / 2])
    value = float((above.sum(1) / below.sum(1)).mean())
    return Interval(value, float(low), float(high))


@functools.lru_cache(maxsize=4)
def _resamples(count: int, draws: int) -> Floats:
    """How often each instance is drawn, [draws, count]: the same for all metrics and methods."""
    random = np.random.default_rng((_SEED, count))
    found = np.empty((draws, count))
    for row in found:
        row[:] = np.bincount(random.integers(0, count, count), minlength=count)
    return found

"""The columns of wide tables that trees are trained on, and the thresholds tried per column."""

from __future__ import annotations

import warnings

import numpy as np
import numpy.typing as npt

from gaussianmlr.losses.boosting import Comparisons, gmlr_derivatives

__all__ = ["within_budget"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Table = npt.NDArray[np.float32]
_FEWEST_BINS = 32  # per column, before columns are left out
_LOOKED_AT = 10_000  # rows by which columns are chosen


def within_budget(
    table: Table, comparisons: Comparisons, means: FloatArray, bins: int, *, most: int
) -> tuple[Table, int]:
    """The table with gaps in the columns that trees do without, and the thresholds per column.

    The cost of a round follows the thresholds of all columns, whether a split may use them or not. XGBoost
    spends nothing on gaps, and never splits on a column of gaps alone.

    Parameters
    ----------
    table : float array [N, D]
        Dense rows.
    comparisons : Comparisons
        Of these rows.
    means : float array [K]
        Where boosting starts; columns that correlate most with the gradient there are kept.
    bins : int
        Thresholds per column that were asked for.
    most : int
        Thresholds of all columns together.

    Examples
    --------
    >>> from gaussianmlr.losses.boosting import compare_all
    >>> table = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 0.0], [3.0, 1.0]], np.float32)
    >>> comparisons = compare_all(np.array([[0, 1], [0, 1], [1, 0], [1, 0]]))
    >>> within_budget(table, comparisons, np.zeros(2), 4, most=5)[0].tolist()
    [[0.0, nan], [1.0, nan], [2.0, nan], [3.0, nan]]
    """
    sample = slice(None, None, -(-len(table) // _LOOKED_AT))
    distinct = _distinct(table[sample])
    if np.minimum(distinct, bins).sum() <= most:
        return table, bins
    bins = min(bins, _FEWEST_BINS)
    same = np.broadcast_to(means, (len(table), len(means)))
    slopes = gmlr_derivatives(same, None, comparisons).mu_gradient[sample]
    by_worth = np.argsort(-_correlations(table[sample], slopes), kind="stable")
    spent = np.cumsum(np.minimum(distinct, bins)[by_worth])
    kept = table.copy()
    kept[:, by_worth[spent > most]] = np.nan
    return kept, bins


def _distinct(table: Table) -> IntArray:
    """The number of different values of each column; gaps count as at most one."""
    ordered = np.sort(table, axis=0)
    steps: IntArray = (ordered[1:] > ordered[:-1]).sum(0)
    return steps + 1


def _correlations(table: Table, targets: FloatArray) -> FloatArray:
    """Squared correlations of columns with all targets, summed; a gap counts as the mean."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # columns without any value
        centred = np.nan_to_num(table - np.nanmean(table, axis=0, dtype=np.float64))
        spread = (centred**2).sum(0)
    slopes = targets - targets.mean(0)
    slopes = slopes / np.maximum(np.sqrt((slopes**2).sum(0)), 1e-300)
    found: FloatArray = ((centred.T @ slopes) ** 2).sum(1) / np.maximum(spread, 1e-300)
    return found

"""The counts of a report, as pure functions of true and predicted ranks."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = ["Confusion", "Examples", "confusion", "pick_examples", "place_table", "places"]

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
_BLOCK = 1 << 22  # comparisons at a time


class Confusion(NamedTuple):
    """How often pairs of labels are predicted in the wrong order; arrays [K, K]."""

    wrong: IntArray
    """Instances where the row's label is predicted above the column's but is truly below it."""
    total: IntArray
    """Instances where the row's label is truly below the column's."""

    @property
    def share(self) -> FloatArray:
        """Wrong / total; NaN where total is zero."""
        with np.errstate(invalid="ignore"):
            return np.where(self.total > 0, self.wrong / np.maximum(1, self.total), np.nan)


def confusion(predicted: IntArray, truth: IntArray) -> Confusion:
    r"""Count the pairs of labels that are predicted in the wrong order.

    .. math:: C_{uv} = \frac{\#\{\hat r_u > \hat r_v,\; r_u < r_v\}}{\#\{r_u < r_v\}}

    over the instances in which both labels are known. Predicted ties do not count as mistakes.

    Parameters
    ----------
    predicted, truth : int arrays [N, K]
        Ranks; -1 = unknown in the truth.

    Examples
    --------
    >>> found = confusion(np.array([[2, 1, 0], [1, 2, 0]]), np.array([[1, 2, 0], [1, 2, 0]]))
    >>> found.wrong[0, 1], found.total[0, 1], found.share[0, 1]
    (np.int64(1), np.int64(2), np.float64(0.5))
    """
    labels = truth.shape[1]
    wrong, total = (np.zeros((labels, labels), dtype=np.int64) for _ in range(2))
    rows = max(1, _BLOCK // max(1, labels * labels))
    for start in range(0, len(truth), rows):
        true, said = truth[start : start + rows], predicted[start : start + rows]
        below = (true[:, :, None] < true[:, None, :]) & (true[:, :, None] >= 0)
        total += below.sum(0)
        wrong += (below & (said[:, :, None] > said[:, None, :])).sum(0)
    return Confusion(wrong, total)


def places(ranks: IntArray) -> IntArray:
    """The place of every label from the top: 1 = most significant, tied labels share one; 0 = irrelevant.

    Unknown labels are -1.

    Examples
    --------
    >>> places(np.array([[5, 2, 0, 2, -1]]))
    array([[ 1,  2,  0,  2, -1]])
    """
    found = np.where(ranks < 0, -1, 0)
    for row, order in enumerate(ranks):
        relevant = order > 0
        buckets = np.unique(order[relevant])[::-1]
        found[row, relevant] = 1 + np.searchsorted(-buckets, -order[relevant])
    return found


def place_table(predicted: IntArray, truth: IntArray, most: int) -> IntArray:
    """Counts of labels by true place and predicted place: [most + 1, most + 1].

    The entries are places 1 to `most`, the last including all later ones, then "irrelevant".

    Examples
    --------
    >>> place_table(np.array([[2, 1, 0]]), np.array([[1, 2, 0]]), 2)
    array([[0, 1, 0],
           [1, 0, 0],
           [0, 0, 1]])
    """
    known = truth >= 0
    here, there = (np.minimum(places(ranks)[known], most) - 1 for ranks in (truth, predicted))
    found = np.zeros((most + 1, most + 1), dtype=np.int64)
    np.add.at(found, (here, there), 1)  # irrelevant is -1: the last entry
    return found


class Examples(NamedTuple):
    """Indices of instances, the most extreme first."""

    best: list[int]
    worst: list[int]


def pick_examples(tau_b: FloatArray, truth: IntArray, count: int) -> Examples:
    """The best and the worst instances by tau-b; among equals those with more relevant labels.

    No instance is both; one whose truth orders no two labels is neither, as its tau-b has no meaning.

    Examples
    --------
    >>> pick_examples(np.array([1.0, -1.0, 1.0]), np.array([[1, 0], [1, 0], [1, 2]]), 1)
    Examples(best=[2], worst=[1])
    """
    lowest = np.where(truth < 0, truth.max(1, keepdims=True), truth).min(1)
    known = np.flatnonzero(lowest < truth.max(1))
    relevant = (truth > 0).sum(1)
    worst = sorted(known.tolist(), key=lambda row: (tau_b[row], -relevant[row], row))
    best = sorted(known.tolist(), key=lambda row: (-tau_b[row], -relevant[row], row))
    best = best[: min(count, (len(known) + 1) // 2)]
    taken = set(best)
    return Examples(best, [row for row in worst if row not in taken][:count])

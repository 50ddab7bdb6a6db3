"""What a report counts, as pure functions of true and predicted ranks."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = ["Confusion", "Examples", "confusion", "pick_examples", "place_table", "places"]

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
_BLOCK = 1 << 22  # comparisons at a time


class Confusion(NamedTuple):
    """How often labels stand the wrong way round; arrays [K, K]."""

    wrong: IntArray
    """Instances where the label of the row is predicted above that of the column, and is truly below."""
    total: IntArray
    """Instances where the label of the row is truly below that of the column."""

    @property
    def share(self) -> FloatArray:
        """Wrong / total; NaN where the two are never ordered so."""
        with np.errstate(invalid="ignore"):
            return np.where(self.total > 0, self.wrong / np.maximum(1, self.total), np.nan)


def confusion(predicted: IntArray, truth: IntArray) -> Confusion:
    r"""Which labels are put above which, against the truth.

    .. math:: C_{uv} = \frac{\#\{\hat r_u > \hat r_v,\; r_u < r_v\}}{\#\{r_u < r_v\}}

    over the instances that know both labels. Predicted ties are no mistake here.

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

    Unknown labels stay -1.

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
    """How often labels of a true place are predicted at a place: [most + 1, most + 1].

    The entries are places 1 to `most`, later ones with the last, and then "irrelevant".

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
    """Numbers of instances, the most telling first."""

    best: list[int]
    worst: list[int]


def pick_examples(tau_b: FloatArray, truth: IntArray, count: int) -> Examples:
    """The best and the worst instances by tau-b; among equals those with more relevant labels.

    No instance is both, and one whose truth orders no two labels is neither: tau-b says nothing of it.

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

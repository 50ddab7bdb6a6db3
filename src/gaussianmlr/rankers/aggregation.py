"""Aggregation of the orders of many rankers, with a virtual label.

Rankers' ranks have the shape [N, R, K]: N instances, R rankers, K labels. A ranker who did not see an
instance is a row of -1; single labels may be -1 too. Every ranker's order has a virtual label right after
the relevant labels and before the irrelevant ones, which tie. So has the aggregate: labels that are not
below its virtual label are relevant.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from gaussianmlr.errors import DataError
from gaussianmlr.orders.reading import UNKNOWN, FloatArray, IntArray, dense
from gaussianmlr.rankers.checking import check_ranks
from gaussianmlr.rankers.kemeny import nearest_orders
from gaussianmlr.rankers.thurstone import thurstone

__all__ = ["aggregate", "borda", "kemeny", "mean_rank_ordering"]

BoolArray = npt.NDArray[np.bool_]
Method = Literal["mean_rank", "borda", "kemeny", "thurstone"]
_CELLS = 1 << 22  # int64 cells of a Kemeny table at a time: 32 MB


class Places(NamedTuple):
    """Twice the position of every label and, last, of the virtual one; doubled, positions are whole."""

    doubled: IntArray  # [N, R, K + 1]; tied labels share their mean position, 1 = first
    known: BoolArray  # [N, R, K + 1]
    relevant: IntArray  # [N, R, 1], how many labels the ranker calls relevant


def mean_rank_ordering(ranks: npt.ArrayLike, weights: npt.ArrayLike | None = None) -> IntArray:
    r"""Order labels by their mean position, as the natural scenes data are aggregated.

    A ranker with :math:`P` relevant labels gives them the positions :math:`1 .. P` (tied labels share
    their mean position), the virtual label :math:`P + 1`, and every irrelevant label :math:`P + 2`. A
    label's mean is over the rankers who know it. A label is relevant if its mean is not larger than that of
    the virtual label; equal means tie, compared exactly.

    Parameters
    ----------
    ranks : array-like [N, R, K]
        The rankers' ranks; -1 = unknown, a missing ranker is a row of -1.
    weights : array-like [N, R], optional
        Weight of each ranker, 0 or more; equal by default.

    Returns
    -------
    array [N, K]
        Dense ranks; -1 for a label no ranker knows.

    References
    ----------
    Geng and Luo (2014), Multilabel ranking with inconsistent rankers. CVPR.

    Examples
    --------
    >>> mean_rank_ordering([[[2, 1, 0], [1, 2, 0], [1, 0, 0], [-1, -1, -1]]])
    array([[2, 1, 0]])
    """
    places = _places(check_ranks(ranks))
    shares = _check_weights(weights, places.known)
    positions = places.doubled.copy()
    labels = positions[..., :-1]
    behind = places.known[..., :-1] & (labels > 2 * places.relevant + 2)
    np.copyto(labels, 2 * places.relevant + 4, where=behind)
    return _order(-_mean(positions, shares), shares > 0)


def borda(ranks: npt.ArrayLike, weights: npt.ArrayLike | None = None) -> IntArray:
    r"""Order labels by their mean Borda points.

    A ranker gives a label one point for every label it beats and half a point for every tie, including the
    virtual label. Labels that the ranker does not know count as tied, so points of short and long orders
    have one scale. A label is relevant if it has at least as many points as the virtual label; equal points
    tie, compared exactly.

    Parameters
    ----------
    ranks, weights
        As for `mean_rank_ordering`.

    Returns
    -------
    array [N, K]
        As for `mean_rank_ordering`.

    References
    ----------
    de Borda (1781), Mémoire sur les élections au scrutin.

    Examples
    --------
    >>> borda([[[2, 1, 0], [1, 2, 0], [2, 1, 0]]])
    array([[2, 1, 0]])
    """
    places = _places(check_ranks(ranks))
    shares = _check_weights(weights, places.known)
    elements = places.known.shape[-1]
    seen = places.known.sum(axis=-1, keepdims=True)
    points = 2 * seen - places.doubled + (elements - seen)  # beaten and half of ties, plus half of unknown
    return _order(_mean(points, shares), shares > 0)


def kemeny(ranks: npt.ArrayLike, max_labels: int = 12) -> IntArray:
    r"""The order nearest to all rankers' orders: the exact Kemeny consensus, with ties and a cut.

    .. math::
        \arg\min_r \sum_\text{rankers} \sum_{u < v} d_{uv}, \qquad
        d_{uv} = \begin{cases} 1 & \text{ordered in opposite ways} \\
        1/2 & \text{tied in one of them only} \\ 0 & \text{otherwise}\end{cases}

    over every bucket order of the labels and the virtual one whose irrelevant labels tie. Pairs that a
    ranker does not know are ignored. Among several nearest orders, the one with the fewest buckets of
    relevant labels is chosen, then the one with the most relevant labels, then the first in label order.

    Parameters
    ----------
    ranks
        As for `mean_rank_ordering`.
    max_labels : int
        The largest number of labels, as the work grows with :math:`3^K`.

    Returns
    -------
    array [N, K]
        As for `mean_rank_ordering`.

    References
    ----------
    Kemeny (1959), Mathematics without numbers. Fagin, Kumar, Mahdian, Sivakumar and Vee (2004),
    Comparing and aggregating rankings with ties.

    Examples
    --------
    >>> kemeny([[[2, 1, 0], [1, 2, 0], [2, 1, 0]]])
    array([[2, 1, 0]])
    >>> kemeny([[[2, 1, 0], [1, 2, 0]]])
    array([[1, 1, 0]])
    """
    table = check_ranks(ranks)
    labels = table.shape[2]
    if labels > max_labels:
        raise DataError(
            f"expected at most max_labels={max_labels} labels, got {labels}; "
            "exact Kemeny takes 3^K steps; use borda instead"
        )
    step = max(1, _CELLS >> labels)
    parts = [nearest_orders(table[start : start + step]) for start in range(0, len(table), step)]
    return np.concatenate(parts) if parts else np.zeros((0, labels), dtype=np.int64)


_METHODS: dict[str, Callable[..., IntArray]] = {
    "mean_rank": mean_rank_ordering,
    "borda": borda,
    "kemeny": kemeny,
    "thurstone": lambda ranks: thurstone(ranks).ranks(),
}


def aggregate(
    ranks: npt.ArrayLike, method: Method = "mean_rank", weights: npt.ArrayLike | None = None
) -> IntArray:
    """One order from many rankers, by the name of the method.

    Parameters
    ----------
    ranks
        As for `mean_rank_ordering`.
    method : {"mean_rank", "borda", "kemeny", "thurstone"}
        `mean_rank_ordering`, `borda`, `kemeny`, or the order of `thurstone`, which learns from all instances
        together how reliable each ranker is.
    weights : array-like [N, R], optional
        Weight of each ranker, 0 or more; equal by default. `kemeny` and
        `thurstone` take no weights.

    Returns
    -------
    array [N, K]
        As for `mean_rank_ordering`.

    Examples
    --------
    >>> aggregate([[[2, 1, 0], [1, 2, 0], [2, 1, 0]]], method="borda")
    array([[2, 1, 0]])
    """
    if method not in _METHODS:
        raise DataError(f"method is one of {', '.join(map(repr, _METHODS))}, not {method!r}")
    if weights is None:
        return _METHODS[method](ranks)
    unweighted = {"kemeny": "exact Kemeny", "thurstone": "Thurstone's model"}
    if method in unweighted:
        raise DataError(f"{unweighted[method]} takes no weights; use 'mean_rank' or 'borda' with weights")
    return _METHODS[method](ranks, weights)


def _places(table: IntArray) -> Places:
    """Positions of all labels of all rankers, by one sort."""
    known = table >= 0
    present = known.any(axis=-1, keepdims=True)
    # doubled, ranks leave room for the virtual label at 1; unknown labels sort last
    virtual = np.where(present, 1, -2)
    heights = np.concatenate([np.where(known, 2 * table, -2), virtual], axis=-1)
    order = np.argsort(-heights, axis=-1, kind="stable")
    falling = np.take_along_axis(heights, order, axis=-1)
    index = np.broadcast_to(np.arange(heights.shape[-1]), heights.shape)
    new = np.ones(heights.shape, dtype=bool)
    new[..., 1:] = falling[..., 1:] != falling[..., :-1]
    last = np.ones_like(new)
    last[..., :-1] = new[..., 1:]
    first_of_tie = np.maximum.accumulate(np.where(new, index, 0), axis=-1)
    backwards = np.where(last, index, index.shape[-1])[..., ::-1]
    last_of_tie = np.minimum.accumulate(backwards, axis=-1)[..., ::-1]
    doubled = np.empty_like(heights)
    np.put_along_axis(doubled, order, first_of_tie + last_of_tie + 2, axis=-1)
    return Places(doubled, heights >= 0, (table > 0).sum(axis=-1, keepdims=True))


def _check_weights(weights: npt.ArrayLike | None, known: BoolArray) -> IntArray | FloatArray:
    """Weight of each ranker for each label [N, R, K + 1]: 0 if it is unknown."""
    if weights is None:
        return known.astype(np.int64)
    table = np.asarray(weights, dtype=np.float64)
    if table.shape != known.shape[:2]:
        raise DataError(f"expected weights of shape {list(known.shape[:2])}, got {list(table.shape)}")
    bad = np.argwhere(~(np.isfinite(table) & (table >= 0))).tolist()
    if bad:
        row, ranker = bad[0]
        raise DataError(f"row {row}, ranker {ranker} has weight {table[row, ranker]}; expected 0 or more")
    return known * table[..., None]


def _mean(values: IntArray, shares: IntArray | FloatArray) -> FloatArray:
    """Means over the rankers who know a label; quotients of integers, so equal means are equal floats."""
    weight = shares.sum(axis=1)
    means: FloatArray = (values * shares).sum(axis=1) / np.where(weight > 0, weight, 1)
    return means


def _order(heights: FloatArray, known: BoolArray) -> IntArray:
    """Dense ranks of the labels that are not below the virtual one, which comes last."""
    labels, virtual = heights[:, :-1], heights[:, -1:]
    seen = known[..., :-1].any(axis=1)
    return np.where(seen, dense(labels, seen & (labels >= virtual)), UNKNOWN)

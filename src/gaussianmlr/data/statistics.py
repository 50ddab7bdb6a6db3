"""What a data set holds, in numbers ready for JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from gaussianmlr.data.dataset import IntArray, RankedData


def describe(data: RankedData) -> dict[str, Any]:
    """Counts of labels, positives, ties, unknowns, splits and rankers.

    A label's `first` counts the instances it leads, shared firsts in equal parts; its
    `mean_place` is the mean place (1 = most significant, ties share the mean of their places) where
    it applies. `ties` counts instances with two relevant labels of one rank.

    Examples
    --------
    >>> from gaussianmlr.data import RankedData
    >>> found = describe(RankedData([[2, 1, 0], [1, 1, 0]], ["sky", "sun", "sea"]))
    >>> found["labels"]["sky"]
    {'relevant': 2, 'share': 1.0, 'first': 1.5, 'mean_place': 1.25, 'unknown': 0}
    >>> found["labels"]["sea"]["mean_place"] is None
    True
    >>> found["positives"]["histogram"], found["ties"]
    ({2: 2}, 1)
    """
    ranks = data.ranks
    positives = (ranks > 0).sum(axis=1)
    found: dict[str, Any] = {
        "instances": len(data),
        "kind": data.kind,
        "labels": _labels(data),
        "positives": {
            "mean": float(positives.mean()) if len(data) else None,
            "min": int(positives.min()) if len(data) else None,
            "max": int(positives.max()) if len(data) else None,
            "histogram": {int(n): int((positives == n).sum()) for n in np.unique(positives)},
        },
        "empty": int((positives == 0).sum()),
        "ties": int(_tied(ranks).sum()),
        "unknown": int((ranks < 0).sum()),
        "splits": data.splits,
    }
    if data.features is not None:
        found["features"] = int(data.features.shape[1])
    if data.weights is not None and len(data):
        found["weights"] = {"sum": float(data.weights.sum()), "max": float(data.weights.max())}
    if data.by_ranker is not None and data.rankers is not None:
        found["rankers"] = _rankers(data.by_ranker, data.rankers)
    return found


def places(ranks: IntArray) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Places of the relevant labels, 1 = most significant, ties share their mean; NaN elsewhere.

    Examples
    --------
    >>> places(np.array([[2, 1, 1, 0]]))
    array([[1. , 2.5, 2.5, nan]])
    """
    above = np.zeros(ranks.shape)
    tied = np.zeros(ranks.shape)
    for label in range(ranks.shape[1]):  # one label at a time keeps memory at N x K
        other = ranks[:, label : label + 1]
        above += other > np.maximum(ranks, 0)
        tied += (other == ranks) & (other > 0)
    return np.where(ranks > 0, above + (tied + 1) / 2, np.nan)


def first_shares(ranks: IntArray) -> np.ndarray[Any, np.dtype[np.float64]]:
    """How many instances each label leads; a first place shared by m labels counts 1/m for each.

    Examples
    --------
    >>> first_shares(np.array([[2, 1, 0], [1, 1, 0]]))
    array([1.5, 0.5, 0. ])
    """
    top = ranks.max(axis=1, keepdims=True, initial=0)
    leads = (ranks == top) & (ranks > 0)
    shares: np.ndarray[Any, np.dtype[np.float64]] = (
        leads / np.maximum(leads.sum(axis=1, keepdims=True), 1)
    ).sum(axis=0)
    return shares


def _labels(data: RankedData) -> dict[str, dict[str, Any]]:
    relevant = (data.ranks > 0).sum(axis=0)
    known = (data.ranks >= 0).sum(axis=0)
    unknown = (data.ranks < 0).sum(axis=0)
    sums = np.nansum(places(data.ranks), axis=0)
    firsts = first_shares(data.ranks)
    return {
        label: {
            "relevant": int(relevant[k]),
            "share": float(relevant[k] / known[k]) if known[k] else None,
            "first": float(firsts[k]),
            "mean_place": float(sums[k] / relevant[k]) if relevant[k] else None,
            "unknown": int(unknown[k]),
        }
        for k, label in enumerate(data.labels)
    }


def _tied(ranks: IntArray) -> np.ndarray[Any, np.dtype[np.bool_]]:
    ascending = np.sort(ranks, axis=1)
    tied: np.ndarray[Any, np.dtype[np.bool_]] = (
        (ascending[:, 1:] == ascending[:, :-1]) & (ascending[:, 1:] > 0)
    ).any(axis=1)
    return tied


def _rankers(by_ranker: IntArray, names: tuple[str, ...]) -> dict[str, Any]:
    spoke = (by_ranker >= 0).any(axis=2)
    return {
        "count": len(names),
        "orders": {name: int(count) for name, count in zip(names, spoke.sum(axis=0))},
        "an_instance": {
            "min": int(spoke.sum(axis=1).min(initial=len(names))),
            "max": int(spoke.sum(axis=1).max(initial=0)),
        },
    }

"""What a data set holds, in numbers ready for JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gaussianmlr.data.columns import Column, Encoding
from gaussianmlr.orders.sparse import SparseRanks

IntArray = npt.NDArray[np.int64]


def describe_ranks(ranks: IntArray | SparseRanks, labels: Sequence[str]) -> dict[str, Any]:
    """Counts of labels, positives, ties and unknowns.

    Examples
    --------
    >>> found = describe_ranks(np.array([[2, 1, 0], [1, 1, 0]]), ["sky", "sun", "sea"])
    >>> found["labels"]["sky"]
    {'relevant': 2, 'share': 1.0, 'first': 1.5, 'mean_place': 1.25, 'unknown': 0}
    >>> found["labels"]["sea"]["mean_place"] is None
    True
    >>> found["positives"]["histogram"], found["ties"]
    ({2: 2}, 1)
    """
    placed, unknown = _placed(ranks), _unknown(ranks)
    positives = np.bincount(placed.row, minlength=len(ranks))
    return {
        "labels": _labels(len(ranks), labels, placed, unknown),
        "positives": {
            "mean": float(positives.mean()) if len(ranks) else None,
            "min": int(positives.min()) if len(ranks) else None,
            "max": int(positives.max()) if len(ranks) else None,
            "histogram": {int(n): int((positives == n).sum()) for n in np.unique(positives)},
        },
        "empty": int((positives == 0).sum()),
        "ties": len(np.unique(placed.row[placed.shared > 1])),
        "unknown": int(unknown.sum()),
    }


def describe_columns(
    features: npt.NDArray[Any], encoding: Encoding | None, names: Sequence[str] | None
) -> list[dict[str, Any]]:
    """Kind, gaps and categories of the columns that are more than numbers without gaps.

    Examples
    --------
    >>> describe_columns(np.array([[1.0, 2.0], [3.0, np.nan]]), None, ["a", "b"])
    [{'name': 'b', 'kind': 'number', 'gaps': 1}]
    """
    found = []
    gaps = np.isnan(features).sum(axis=0).tolist()
    for place, column in enumerate(encoding or (Column(),) * features.shape[1]):
        if column.kind == "number" and not gaps[place]:
            continue
        name = str(place) if names is None else names[place]
        about: dict[str, Any] = {"name": name, "kind": column.kind, "gaps": gaps[place]}
        if column.kind == "category":
            about["categories"] = len(column.categories)
        found.append(about)
    return found


def places(ranks: IntArray) -> npt.NDArray[np.float64]:
    """Places of the relevant labels, 1 = most significant, ties share their mean; NaN elsewhere.

    Examples
    --------
    >>> places(np.array([[2, 1, 1, 0]]))
    array([[1. , 2.5, 2.5, nan]])
    """
    found = np.full(ranks.shape, np.nan)
    placed = _placed(ranks)
    found[placed.row, placed.column] = placed.place
    return found


class _Placed(NamedTuple):
    """The relevant labels of all instances: where they are, their places, and how many share each."""

    row: npt.NDArray[np.intp]
    column: npt.NDArray[np.intp]
    place: npt.NDArray[np.float64]
    shared: npt.NDArray[np.intp]


def _placed(ranks: IntArray | SparseRanks) -> _Placed:
    """Relevant labels only, so that the cost does not depend on the number of labels."""
    if isinstance(ranks, SparseRanks):
        stored = ranks.matrix.tocoo()
        some = stored.data > 0
        (row, column), rank = (one[some] for one in stored.coords), stored.data[some]
    else:
        row, column = np.nonzero(ranks > 0)
        rank = ranks[row, column]
    order = np.lexsort((-rank, row))
    row, column, rank = row[order], column[order], rank[order]
    new = np.ones(len(row), dtype=bool)
    new[1:] = (row[1:] != row[:-1]) | (rank[1:] != rank[:-1])
    begin = np.flatnonzero(new)
    shared = np.diff(np.append(begin, len(row)))
    before = begin - np.searchsorted(row, row[begin])  # labels above, in the same instance
    bucket = np.cumsum(new) - 1
    return _Placed(row, column, (before + (shared + 1) / 2)[bucket], shared[bucket])


def _unknown(ranks: IntArray | SparseRanks) -> npt.NDArray[np.int64]:
    """How many instances do not say whether a label applies, per label."""
    if isinstance(ranks, SparseRanks):
        matrix = ranks.matrix
        return np.bincount(matrix.indices[matrix.data < 0], minlength=ranks.shape[1]).astype(np.int64)
    found: npt.NDArray[np.int64] = (ranks < 0).sum(axis=0)
    return found


def first_shares(ranks: IntArray) -> npt.NDArray[np.float64]:
    """How many instances each label leads; a first place shared by m labels counts 1/m for each.

    Examples
    --------
    >>> first_shares(np.array([[2, 1, 0], [1, 1, 0]]))
    array([1.5, 0.5, 0. ])
    """
    return _firsts(_placed(ranks), ranks.shape[1])


def _firsts(placed: _Placed, labels: int) -> npt.NDArray[np.float64]:
    lead = placed.place == (placed.shared + 1) / 2  # nothing is above
    return np.bincount(placed.column[lead], 1 / placed.shared[lead], labels).astype(np.float64)


def _labels(
    count: int, labels: Sequence[str], placed: _Placed, unknown: npt.NDArray[np.int64]
) -> dict[str, dict[str, Any]]:
    relevant = np.bincount(placed.column, minlength=len(labels))
    known = count - unknown
    sums = np.bincount(placed.column, placed.place, len(labels))
    firsts = _firsts(placed, len(labels))
    return {
        label: {
            "relevant": int(relevant[k]),
            "share": float(relevant[k] / known[k]) if known[k] else None,
            "first": float(firsts[k]),
            "mean_place": float(sums[k] / relevant[k]) if relevant[k] else None,
            "unknown": int(unknown[k]),
        }
        for k, label in enumerate(labels)
    }


def describe_rankers(by_ranker: IntArray, names: tuple[str, ...]) -> dict[str, Any]:
    """How many orders each ranker gave, and how many an instance has."""
    spoke = (by_ranker >= 0).any(axis=2)
    return {
        "count": len(names),
        "orders": {name: int(count) for name, count in zip(names, spoke.sum(axis=0))},
        "an_instance": {
            "min": int(spoke.sum(axis=1).min(initial=len(names))),
            "max": int(spoke.sum(axis=1).max(initial=0)),
        },
    }

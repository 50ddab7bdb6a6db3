"""Checks of targets: orders in any form as ranks, and weights of rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from gaussianmlr._utils.foreign import as_pandas
from gaussianmlr._utils.magnitude import LARGEST_WEIGHT
from gaussianmlr.errors import DataError, shorten
from gaussianmlr.orders import check_labels, to_ranks
from gaussianmlr.orders.sparse import SparseRanks
from gaussianmlr.rankers import aggregate

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]


_DENSE = 300  # labels up to which sparse ranks become dense ones


def read_targets(y: Any, labels: Any = None) -> tuple[Any, tuple[str, ...]]:
    """As `read_orders` with all rankers; sparse ranks of many labels stay sparse, see `SparseRanks`."""
    if not _stays_sparse(y):
        return read_orders(y, labels, keep_rankers=True)
    names = tuple(map(str, range(y.shape[1]))) if labels is None else check_labels(labels)
    if len(names) != y.shape[1]:
        raise DataError(f"y has {y.shape[1]:,} columns; expected one for each of {len(names):,} labels")
    return SparseRanks(y), names


def read_orders(
    y: Any, labels: Any = None, *, keep_rankers: bool = False
) -> tuple[IntArray, tuple[str, ...]]:
    """Ranks and labels of orders in any form `to_ranks` takes, of sparse ones and of several rankers.

    Parameters
    ----------
    y : orders
        What `to_ranks` takes, a sparse matrix of ranks, or ranks of several rankers [N, R, K].
    labels : sequence of str, optional
        The labels in the order of the columns wanted.
    keep_rankers : bool
        Leave [N, R, K] unchanged; otherwise the rankers are aggregated by mean rank.
    """
    y = as_pandas(y)
    if hasattr(y, "toarray"):  # sparse
        y = y.toarray()
    elif hasattr(y, "__array__") and not hasattr(y, "iloc") and not hasattr(y, "detach"):
        y = np.asarray(y)
    if y.ndim == 3 if hasattr(y, "ndim") else _is_cube(y):
        table = np.asarray(y.detach().cpu() if hasattr(y, "detach") else y)
        flat = to_ranks(table.reshape(-1, table.shape[-1]), labels)
        by_ranker = flat.ranks.reshape(table.shape)
        return (by_ranker if keep_rankers else aggregate(by_ranker)), flat.labels
    found = to_ranks(y, labels)
    return found.ranks, found.labels


def read_truth(y: Any, labels: Any = None, *, keep_sparse: bool = False) -> Any:
    """True ranks [N, K] for a fitted estimator with these labels; sparse ones of many labels as they are."""
    try:
        return (read_targets if keep_sparse and _stays_sparse(y) else read_orders)(y, labels)[0]
    except DataError as error:
        if lacking := _lacking(y, labels):
            raise DataError(
                f"{error}\nthe fitted y lacks {shorten(lacking)}, as can happen in a fold of the data; "
                "pass all labels to the estimator: labels=[...]"
            ) from None
        raise


def _stays_sparse(y: Any) -> bool:
    return hasattr(y, "toarray") and y.ndim == 2 and y.shape[1] > _DENSE


def _lacking(y: Any, labels: Any) -> list[str]:
    """Labels in `y` that are not among the known ones."""
    try:
        named = read_orders(y)[1]
    except DataError:
        return []
    unnamed = named == tuple(map(str, range(len(named))))  # ranks without names have numbered columns
    return [] if labels is None or unnamed else [label for label in named if label not in set(labels)]


def refuse_unknown(ranks: IntArray | SparseRanks, what: str) -> None:
    """Refuse orders without any known label."""
    if isinstance(ranks, SparseRanks):
        unknown = int((ranks.matrix.data < 0).sum()) == ranks.shape[0] * ranks.shape[1]
    else:
        unknown = bool((ranks < 0).all())
    if unknown:
        shape = " x ".join(map(str, ranks.shape))
        raise DataError(
            f"all {shape} entries of {what} are unknown (-1), so there is nothing to learn from; "
            "expected at least one label that is known to be relevant (1, 2, ...) or irrelevant (0)"
        )


def one_order(ranks: Any) -> Any:
    """Ranks [N, K]: the aggregate of several rankers; sparse ones as they are."""
    return aggregate(ranks) if ranks.ndim == 3 else ranks


def check_weights(weights: Any, count: int) -> FloatArray:
    """Weights as floats [N], finite and not negative."""
    try:
        array = np.asarray(weights, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError(f"expected sample_weight to be numbers, got {shorten(weights)}") from None
    if array.shape != (count,):
        raise DataError(f"expected sample_weight of shape [{count}], got shape {list(array.shape)}")
    bad = np.flatnonzero(~((array >= 0) & (array <= LARGEST_WEIGHT))).tolist()
    if bad:
        problems = [
            (row, f"weight {array[row]}; expected a number from 0 to {LARGEST_WEIGHT:g}") for row in bad
        ]
        raise DataError.of_rows("sample weights cannot be used", problems, count)
    return array


def _is_cube(y: Any) -> bool:
    """Whether nested lists hold numbers three levels deep."""
    for _ in range(3):
        if not isinstance(y, list | tuple | np.ndarray) or len(y) == 0:
            return False
        y = y[0]
    return isinstance(y, int | float | np.number) and not isinstance(y, bool)

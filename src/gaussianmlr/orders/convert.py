"""Orders over labels: texts, lists, positions and frames to `ranks` and back.

Ranks are the one form the rest of the package knows: integers of shape [N, K], 0 = irrelevant,
1 = least significant relevant label, larger = more significant, equal = tied, -1 = unknown.
Rows are dense: the relevant labels of a row use every number from 1 to its largest.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from gaussianmlr._utils.foreign import as_pandas
from gaussianmlr.errors import DataError, shorten
from gaussianmlr.orders.grammar import Buckets, write
from gaussianmlr.orders.reading import (
    IRRELEVANT,
    UNKNOWN,
    FloatArray,
    IntArray,
    Ranks,
    as_rows,
    check_labels,
    dense,
    from_frame,
    from_matrix,
    from_rows,
    index_of,
    is_frame,
    looks_like_matrix,
    rectangle,
    refuse,
)
from gaussianmlr.orders.separators import check_separator

if TYPE_CHECKING:
    import torch

ArrayOrTensor = TypeVar("ArrayOrTensor", IntArray, "torch.Tensor")
Unranked = Literal["irrelevant", "unknown"]
_UNRANKED: dict[Unranked, int] = {"irrelevant": IRRELEVANT, "unknown": UNKNOWN}


class Pairs(NamedTuple):
    """Ordered pairs: in `instance`, the label `above` is more significant than `below`."""

    instance: IntArray
    above: IntArray
    below: IntArray


def to_ranks(
    orders: object, labels: Iterable[object] | None = None, *, order_separator: str | None = None
) -> Ranks:
    """Read orders in any form; the single entry point for labels.

    Parameters
    ----------
    orders : sequence, array or frame
        One order per row, as one of

        - texts, ``"mountain > sky = cloud"``; ``""`` or ``"(none)"`` means that no label applies, as does a
          missing text (None or NaN, with a warning that counts them), and labels after question marks,
          ``"sky ? sun ? sea"``, are unknown. Labels that contain ``> = ? "`` or outer spaces are written in
          double quotes;
        - lists of labels or of buckets, ``["mountain", ["sky", "cloud"]]``, most significant
          first; a last element ``{"unknown": ["sun"]}`` names unknown labels;
        - mappings from label to rank, ``{"mountain": 2, "sky": 1}``;
        - a rank matrix [N, K] (array, tensor, nested lists of numbers);
        - a pandas or polars frame with one column per label, or with one column of texts; a Series of texts.
    labels : iterable of str, optional
        The labels in the order of the columns wanted. Without it they are found: the column
        names of a frame, ``"0"`` to ``"K-1"`` for a matrix, else every label that occurs,
        sorted. With it, a label that is not listed is an error.
    order_separator : str, optional
        What stands between the labels of texts, most significant first, beside ``>``: ``","`` reads
        ``"mountain, sky"``. Without it, texts that seem to be written so are an error.

    Returns
    -------
    Ranks
        The named tuple ``(ranks, labels)``; `ranks` is int64 [N, K] with dense rows.

    Raises
    ------
    DataError
        Naming every bad row, the first ten in full.

    Examples
    --------
    >>> from gaussianmlr import to_ranks
    >>> ranks, labels = to_ranks(["mountain > sky = cloud", "", "sky ? cloud"])
    >>> labels
    ('cloud', 'mountain', 'sky')
    >>> ranks
    array([[ 1,  2,  1],
           [ 0,  0,  0],
           [-1,  0,  1]])
    """
    wanted = None if labels is None else check_labels(labels)
    check_separator(order_separator)
    orders = as_pandas(orders)
    if is_frame(orders):
        return from_frame(orders, wanted, order_separator)
    if isinstance(orders, str | Mapping) or not isinstance(orders, Iterable):
        raise DataError(f"expected a sequence of orders, got {shorten(orders)}; put a single order in a list")
    index = index_of(orders) if hasattr(orders, "iloc") else None  # a pandas Series
    rows = as_rows(orders)
    if len(rows) == 0 and wanted is not None:
        return Ranks(np.zeros((0, len(wanted)), dtype=np.int64), wanted)
    if len(rows) == 0:
        raise DataError("expected at least one order or a list of labels, got neither")
    if looks_like_matrix(rows):
        return from_matrix(rectangle(rows, None if wanted is None else len(wanted)), wanted, index)
    return from_rows(rows, wanted, index, order_separator)


def check_ranks(ranks: object) -> IntArray:
    """A rank matrix as int64 [N, K]; an error with the offending rows if it is not one.

    Examples
    --------
    >>> check_ranks([[5.0, 2.0, 0.0, -1.0]])  # rows become dense
    array([[ 2,  1,  0, -1]])
    """
    return from_matrix(rectangle(ranks), None, None).ranks


def to_text(ranks: object, labels: Iterable[object]) -> list[str]:
    """Write each row of ranks as text, the inverse of `to_ranks`.

    Examples
    --------
    >>> to_text([[2, 1, 1], [0, 0, -1]], ["mountain", "sky", "cloud"])
    ['mountain > sky = cloud', '? cloud']
    """
    return [write(buckets) for buckets in _buckets(ranks, labels)]


def to_lists(ranks: object, labels: Iterable[object]) -> list[list[Any]]:
    """Write each row as a list of buckets, most significant first, ready for JSON.

    Unknown labels, if any, come last as ``{"unknown": [...]}``.

    Examples
    --------
    >>> to_lists([[2, 1, 1], [0, 0, -1]], ["mountain", "sky", "cloud"])
    [[['mountain'], ['sky', 'cloud']], [{'unknown': ['cloud']}]]
    """
    rows: list[list[Any]] = []
    for ranked, unknown, _ in _buckets(ranks, labels):
        rows.append([*ranked, {"unknown": unknown}] if unknown else [*ranked])
    return rows


def to_positions(ranks: object, *, unranked: Unranked = "irrelevant") -> FloatArray:
    """Positions in the form of scikit-lr: 1 = best, ties share a position, NaN = unranked.

    Parameters
    ----------
    ranks : array-like [N, K]
        Ranks.
    unranked : {"irrelevant", "unknown"}
        What NaN stands for. Positions have only one kind of gap, so rows with the other kind are
        refused.

    Examples
    --------
    >>> to_positions([[2, 1, 1, 0]])
    array([[ 1.,  2.,  2., nan]])
    """
    checked = check_ranks(ranks)
    other: Unranked = "unknown" if _gap(unranked) == IRRELEVANT else "irrelevant"
    expected = f"positions with unranked={unranked!r} cannot hold {other} labels"
    refuse(checked == _UNRANKED[other], checked, "rows cannot become positions", expected)
    top = checked.max(axis=1, keepdims=True, initial=0)
    return np.where(checked > 0, top - checked + 1.0, np.nan)


def from_positions(positions: npt.ArrayLike, *, unranked: Unranked = "irrelevant") -> IntArray:
    """Ranks from positions (1 = best, equal = tied, NaN = unranked), the inverse of `to_positions`.

    Examples
    --------
    >>> from_positions([[1, 3, 3, float("nan")]])
    array([[2, 1, 1, 0]])
    """
    values = _floats(positions, "positions")
    gap = _gap(unranked)
    bad = ~np.isnan(values) & ~((values >= 1) & np.isfinite(values))
    refuse(bad, values, "rows are not positions", "expected numbers from 1 (best) up, or NaN")
    ranks = dense(-values, ~np.isnan(values))
    return np.where(np.isnan(values), gap, ranks)


def densify(
    values: npt.ArrayLike,
    *,
    threshold: float = 0.0,
    tolerance: float = 0.0,
    missing: Literal["error", "unknown", "irrelevant"] = "error",
) -> IntArray:
    r"""Turn any numbers (degrees, stars, votes) into dense ranks 1..m.

    Labels whose value is above the threshold are relevant. Sorted by value, two neighbours tie
    if they differ by no more than the tolerance, so ties chain: 1.0, 1.1 and 1.2 are one
    bucket at a tolerance of 0.1.

    Parameters
    ----------
    values : array-like [N, K]
        Larger = more significant.
    threshold : float
        Values up to and including it are irrelevant.
    tolerance : float
        The largest difference that still counts as a tie.
    missing : {"error", "unknown", "irrelevant"}
        What NaN means.

    Examples
    --------
    >>> densify([[0.5, 0.3, 0.2, 0.0]])
    array([[3, 2, 1, 0]])
    >>> densify([[5, 3, 2, 1]], threshold=1, tolerance=1)
    array([[2, 1, 1, 0]])
    >>> densify([[1.0, 1.1, 1.2]], tolerance=0.1)
    array([[1, 1, 1]])
    """
    numbers = _floats(values, "values")
    if not (np.isfinite(threshold) and np.isfinite(tolerance) and tolerance >= 0):
        raise DataError(f"expected a finite threshold and a tolerance >= 0, got {threshold} and {tolerance}")
    gaps = np.isnan(numbers)
    if missing not in ("error", "unknown", "irrelevant"):
        raise DataError(f"missing is 'error', 'unknown' or 'irrelevant', not {missing!r}")
    if missing == "error":
        refuse(
            gaps, numbers, "rows hold NaN", "expected numbers; missing='unknown' or 'irrelevant' reads NaN"
        )
    ranks = dense(numbers, ~gaps & (numbers > threshold), tolerance)
    return np.where(gaps, UNKNOWN, ranks) if missing == "unknown" else ranks


def weak(ranks: ArrayOrTensor) -> ArrayOrTensor:
    """Keep only the bipartition: all relevant labels get rank 1. For arrays and tensors.

    Examples
    --------
    >>> weak(np.array([[3, 1, 0, -1]]))
    array([[ 1,  1,  0, -1]])
    """
    return ranks.clip(max=1)


def pairs(ranks: object) -> Pairs:
    r"""List the ordered pairs of bucket orders.

    The pairs of an order :math:`r` are :math:`\mathcal B = \{(u, v) : r_u > r_v \ge 0\}`: relevant
    labels among each other and against irrelevant ones. Tied and unknown labels form no pairs.

    Returns
    -------
    Pairs
        The named tuple ``(instance, above, below)`` of equally long index arrays, by instance.

    Examples
    --------
    >>> pairs([[2, 1, 0], [0, 0, 0]])
    Pairs(instance=array([0, 0, 0]), above=array([0, 0, 1]), below=array([1, 2, 2]))
    """
    checked = check_ranks(ranks)
    instance, above = np.nonzero(checked > 0)
    below_of = (checked[instance, above][:, None] > checked[instance]) & (checked[instance] >= 0)
    row, below = np.nonzero(below_of)
    return Pairs(instance[row], above[row], below)


def _buckets(ranks: object, labels: Iterable[object]) -> list[Buckets]:
    names = check_labels(labels)
    rows = from_matrix(rectangle(ranks), names, None).ranks
    found = []
    for row in rows.tolist():
        ranked: list[list[str]] = [[] for _ in range(max(row, default=0))]
        unknown = []
        for name, rank in zip(names, row):
            if rank > 0:
                ranked[-rank].append(name)
            elif rank == UNKNOWN:
                unknown.append(name)
        found.append(Buckets(ranked, unknown))
    return found


def _floats(values: npt.ArrayLike, what: str) -> FloatArray:
    if hasattr(values, "detach"):
        values = values.detach().cpu().double().numpy()
    try:
        matrix = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"expected {what} to be numbers of shape [N, K]: {error}") from None
    if matrix.ndim != 2:
        raise DataError(f"expected {what} of shape [N, K], got shape {list(matrix.shape)}")
    return matrix


def _gap(unranked: Unranked) -> int:
    if unranked not in _UNRANKED:
        raise DataError(f"unranked is 'irrelevant' or 'unknown', not {unranked!r}")
    return _UNRANKED[unranked]

"""Reads orders from frames, matrices, and rows of texts, lists or mappings."""

from __future__ import annotations

import functools
import unicodedata
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any, NamedTuple, TypeGuard

import numpy as np
import numpy.typing as npt

from gaussianmlr.errors import DataError, shorten
from gaussianmlr.orders.grammar import Buckets, OrderSyntaxError, parse
from gaussianmlr.orders.separators import is_written_list, meant_separator, refusal

UNKNOWN = -1
IRRELEVANT = 0
IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]


class Ranks(NamedTuple):
    """Ranks and the labels of their columns."""

    ranks: IntArray
    labels: tuple[str, ...]


def check_labels(labels: Iterable[object]) -> tuple[str, ...]:
    """Labels as distinct, non-empty texts in Unicode's composed form (NFC).

    Examples
    --------
    >>> check_labels(["sky", 7])
    ('sky', '7')
    """
    if isinstance(labels, str) or not isinstance(labels, Iterable):
        raise DataError(f"expected a sequence of labels, got {labels!r}")
    found: list[str] = []
    for label in labels:
        if not isinstance(label, str | int | np.integer) or isinstance(label, bool):
            raise DataError(f"expected labels to be texts, got {shorten(label)}")
        found.append(normal_form(str(label)))
    for label in found:
        if not label:
            raise DataError(f"an empty label among {shorten(found)}; every label needs a name")
    if len(set(found)) != len(found):
        twice = sorted({label for label in found if found.count(label) > 1})
        raise DataError(f"labels must differ, but {shorten(twice)} occur more than once")
    return tuple(found)


def is_frame(orders: object) -> TypeGuard[Any]:
    """Whether orders are a pandas or polars frame."""
    return hasattr(orders, "columns") and hasattr(orders, "to_numpy")


def index_of(frame: Any) -> Sequence[object] | None:
    """The index of a frame; None if it only numbers the rows."""
    index: list[object] = list(frame.index)
    return None if index == list(range(len(index))) else index


def from_frame(frame: Any, wanted: tuple[str, ...] | None, separator: str | None = None) -> Ranks:
    """Ranks of a frame: one column per label."""
    if len(frame.columns) == 0:
        raise DataError("expected a frame with at least one column, got none")
    numeric = [_holds_numbers(frame.iloc[:, column]) for column in range(len(frame.columns))]
    if all(numeric):
        names = check_labels(frame.columns)
        if wanted is not None:
            _match_columns(names, wanted)
            frame = frame.iloc[:, [names.index(label) for label in wanted]]
        return from_matrix(numbers_of(frame), wanted or names, index_of(frame))
    if len(numeric) > 1:
        texts = [str(name) for name, number in zip(frame.columns, numeric) if not number]
        raise DataError(f"expected one column of texts or only numbers, but {shorten(texts)} hold no numbers")
    return from_rows(frame.iloc[:, 0].to_numpy(dtype=object).tolist(), wanted, index_of(frame), separator)


def _holds_numbers(column: Any) -> bool:
    """Whether a column of a frame holds numbers, whatever its type; gaps are allowed."""
    if column.dtype.kind != "O":
        return column.dtype.kind in "biuf"
    values = [value for value in column.tolist() if not is_missing(value)]
    return len(values) > 0 and all(map(_is_number, values))


def numbers_of(frame: Any) -> npt.NDArray[Any]:
    """The numbers of a frame, also of nullable and object columns, with NaN in gaps; else an object array."""
    columns = [frame.iloc[:, place] for place in range(len(frame.columns))]
    if not all(map(_holds_numbers, columns)):
        return np.asarray(frame.to_numpy(dtype=object))
    if all(isinstance(column.dtype, np.dtype) and column.dtype.kind != "O" for column in columns):
        return np.asarray(frame.to_numpy())
    return np.asarray(frame.to_numpy(dtype=np.float64, na_value=np.nan))


def is_missing(value: object) -> bool:
    """Whether a value is None, NaN, or pandas' form of them."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float | np.floating) and bool(np.isnan(value))


def refuse_masked(values: object) -> None:
    """Refuse masked arrays: their hidden values would be read."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        where = np.argwhere(np.ma.getmaskarray(values))[0].tolist()
        raise DataError(f"a masked value at {where}; fill it: in ranks, -1 stands for unknown")


def _match_columns(names: tuple[str, ...], wanted: tuple[str, ...]) -> None:
    missing, extra = sorted(set(wanted) - set(names)), sorted(set(names) - set(wanted))
    if missing or extra:
        raise DataError(
            f"the columns do not match the labels: missing {shorten(missing)}, unknown {shorten(extra)}"
        )


def as_rows(orders: Any) -> Any:
    """Arrays and tensors of numbers as they are, everything else as a list of rows."""
    if hasattr(orders, "detach"):
        return orders
    if hasattr(orders, "to_numpy"):
        orders = orders.to_numpy()
    if hasattr(orders, "dtype"):
        return orders if orders.dtype.kind in "biuf" else orders.tolist()
    return list(orders)


def looks_like_matrix(orders: Any) -> bool:
    """Whether rows are a matrix of numbers rather than labels."""
    if hasattr(orders, "dtype"):
        return True
    return all(
        _is_numeric_array(row) or (_is_listing(row) and len(row) > 0 and all(map(_is_number, row)))
        for row in orders
    )


def _is_numeric_array(value: object) -> bool:
    return hasattr(value, "detach") or (isinstance(value, np.ndarray) and value.dtype.kind in "biuf")


def _is_listing(value: object) -> TypeGuard[Sequence[object]]:
    return isinstance(value, Sequence | np.ndarray) and not isinstance(value, str | bytes)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


def rectangle(rows: Any, width: int | None = None) -> npt.NDArray[Any]:
    """Rows of numbers as one array; `width` is the expected number of columns, if known."""
    refuse_masked(rows)
    if is_frame(rows):
        rows = numbers_of(rows)
    if hasattr(rows, "detach"):  # a tensor on any device, also of types that numpy lacks
        rows = rows.detach().cpu()
        rows = (rows.double() if rows.is_floating_point() else rows).numpy()
    if not hasattr(rows, "dtype"):
        rows = [row.tolist() if hasattr(row, "tolist") else row for row in rows]
        widths = Counter(len(row) for row in rows if _is_listing(row))
        expected = width or next(iter(widths.most_common(1)), (0,))[0]
        ragged = [
            (number, f"{shorten(row)} has {len(row)} values, expected {expected}")
            for number, row in enumerate(rows)
            if _is_listing(row) and len(row) != expected
        ]
        if ragged:
            error = DataError.of_rows("rows have another length", ragged, len(rows))
            hint = "numbers are ranks, one per label; labels that are numbers are given as texts, ['3', '1']"
            raise DataError(f"{error}\n{hint}")
    matrix = np.asarray(rows)
    if matrix.ndim != 2 or matrix.shape[1] == 0:
        raise DataError(f"expected ranks of shape [N, K] with K >= 1, got shape {list(matrix.shape)}")
    if matrix.dtype.kind not in "biuf":
        raise DataError(
            f"expected ranks to be integers, got {matrix.dtype} such as {shorten(matrix.flat[0])}"
        )
    return matrix


def from_matrix(
    matrix: npt.NDArray[Any], wanted: tuple[str, ...] | None, index: Sequence[object] | None
) -> Ranks:
    """Ranks of a matrix of numbers: one row per instance, one column per label."""
    if wanted is not None and matrix.shape[1] != len(wanted):
        raise DataError(f"expected {len(wanted)} columns, one per label, got {matrix.shape[1]}")
    if matrix.dtype.kind == "f":
        expected = "expected integers; `densify` turns any numbers into ranks"
        gap = "expected integers; -1 stands for unknown; `from_positions` reads positions (1 = best)"
        refuse(np.isnan(matrix), matrix, "rows hold NaN", gap, index, wanted)
        wrong = ~np.isfinite(matrix) | (matrix != np.round(matrix))
        refuse(wrong, matrix, "rows are not ranks", expected, index, wanted)
    expected = "expected 0, 1, 2, ..., or -1 for unknown"
    refuse(matrix < UNKNOWN, matrix, "rows hold negative ranks", expected, index, wanted)
    ranks = dense(matrix, matrix > 0)
    ranks[matrix == UNKNOWN] = UNKNOWN
    labels = wanted or tuple(str(column) for column in range(matrix.shape[1]))
    return Ranks(ranks, labels)


def from_rows(
    rows: list[Any],
    wanted: tuple[str, ...] | None,
    index: Sequence[object] | None,
    separator: str | None = None,
) -> Ranks:
    """Ranks of texts, lists, or mappings, one per instance."""
    if missing := sum(map(is_missing, rows)):
        rows = ["" if is_missing(row) else row for row in rows]
        warnings.warn(
            f"{missing} of {len(rows)} orders are missing; they are read as '': no label applies",
            stacklevel=4,
        )
    read: list[Buckets] = []
    problems: list[tuple[object, str]] = []
    known = None if wanted is None else frozenset(wanted)
    for number, row in enumerate(rows):
        try:
            read.append(_check_buckets(_read_row(row, separator), known))
        except OrderSyntaxError as error:
            name = number if index is None else f"{number} (index {shorten(index[number])})"
            problems.append((name, f"{shorten(row)}: {error}"))
    if problems:
        raise DataError.of_rows("orders cannot be read", problems, len(rows))
    if wanted is None and separator is None:
        _refuse_separators(read, rows)
    labels = wanted or tuple(
        sorted(
            {
                label
                for row in read
                for bucket in (*row.ranked, row.unknown, row.irrelevant)
                for label in bucket
            }
        )
    )
    if not labels:
        raise DataError(f"no label occurs in {len(rows)} orders; give labels=[...]")
    column = {label: number for number, label in enumerate(labels)}
    ranks = np.zeros((len(read), len(labels)), dtype=np.int64)
    for target, (ranked, unknown, _) in zip(ranks, read):
        for rank, bucket in enumerate(reversed(ranked), start=1):
            target[[column[label] for label in bucket]] = rank
        target[[column[label] for label in unknown]] = UNKNOWN
    return Ranks(ranks, labels)


def _refuse_separators(read: list[Buckets], rows: list[Any]) -> None:
    """Refuse texts that list labels in another way, which would become one strange label each."""
    if (row := is_written_list(rows)) is not None:
        raise DataError(
            f"{shorten(rows[row])} in row {row} is a list written as a text; write 'sky > sea', or keep "
            "lists in JSON lines or Parquet; a label that begins so is written in quotes or listed in labels"
        )
    named = [[label for bucket in (*row.ranked, row.unknown) for label in bucket] for row in read]
    if (meant := meant_separator(named, rows)) is not None:
        raise DataError(refusal(meant, rows[meant.row], len(rows)))


def _read_row(row: object, separator: str | None = None) -> Buckets:
    if isinstance(row, str):
        return parse(row, separator)
    if isinstance(row, Mapping):
        return _read_mapping(row)
    if not _is_listing(row):
        raise OrderSyntaxError(
            f"expected a text, a list of labels or buckets, or a mapping, got {type(row).__name__}"
        )
    buckets, unknown = list(row), []
    if buckets and isinstance(buckets[-1], Mapping):
        last: Any = buckets.pop()
        if set(last) != {"unknown"}:
            raise OrderSyntaxError("a mapping in a list names the unknown labels, as {'unknown': [...]}")
        unknown = _read_bucket(last["unknown"])
    return Buckets([_read_bucket(bucket) for bucket in buckets], unknown)


def _read_bucket(bucket: object) -> list[str]:
    labels = [bucket] if isinstance(bucket, str) else bucket
    if isinstance(labels, Set):
        labels = sorted(labels, key=str)
    if not _is_listing(labels) or not all(isinstance(label, str) for label in labels):
        raise OrderSyntaxError(f"expected a label or a bucket of labels, got {shorten(bucket)}")
    if len(labels) == 0:
        raise OrderSyntaxError("empty bucket; a label must stand there")
    return [str(label) for label in labels]


def _read_mapping(row: Mapping[Any, Any]) -> Buckets:
    by_rank: dict[int, list[str]] = {}
    for label, rank in row.items():
        if not isinstance(label, str | int) or isinstance(label, bool):
            raise OrderSyntaxError(f"expected labels to be texts, got {shorten(label)}")
        if not _is_number(rank) or not np.isfinite(rank) or rank != int(rank) or rank < UNKNOWN:
            raise OrderSyntaxError(
                f"label {label!r} has rank {rank!r}; expected 0, 1, 2, ..., or -1 for unknown; "
                "`densify` turns a frame of grades into ranks"
            )
        by_rank.setdefault(int(rank), []).append(str(label))
    unknown = by_rank.pop(UNKNOWN, [])
    irrelevant = tuple(by_rank.pop(IRRELEVANT, []))
    return Buckets([by_rank[rank] for rank in sorted(by_rank, reverse=True)], unknown, irrelevant)


def _check_buckets(buckets: Buckets, known: frozenset[str] | None) -> Buckets:
    ranked = [[normal_form(label) for label in bucket] for bucket in buckets.ranked]
    unknown = [normal_form(label) for label in buckets.unknown]
    irrelevant = tuple(normal_form(label) for label in buckets.irrelevant)
    home: dict[str, int] = {}
    for number, bucket in enumerate([*ranked, unknown, irrelevant]):
        for label in bucket:
            if not label:
                raise OrderSyntaxError("an empty label; every label needs a name")
            if known is not None and label not in known:
                raise OrderSyntaxError(f"label {shorten(label)} is not one of {_listed(known)}")
            if home.get(label) == number:
                raise OrderSyntaxError(f"label {shorten(label)} is named twice; name each label once")
            if label in home and number == len(ranked):
                raise OrderSyntaxError(
                    f"label {shorten(label)} is both ranked and unknown; name each label once"
                )
            if label in home and number > len(ranked):
                raise OrderSyntaxError(f"label {shorten(label)} is named twice; name each label once")
            if label in home:
                raise OrderSyntaxError(
                    f"label {shorten(label)} stands above and below itself; name each label once"
                )
            home[label] = number
    return Buckets(ranked, unknown, irrelevant)


@functools.lru_cache(maxsize=1)  # every bad row lists the same labels
def _listed(known: frozenset[str]) -> str:
    return shorten(sorted(known))


def normal_form(label: str) -> str:
    """A label in Unicode normal form C, in which equal texts are equal."""
    return unicodedata.normalize("NFC", label)


def dense(values: npt.NDArray[Any], relevant: npt.NDArray[np.bool_], tolerance: float = 0.0) -> IntArray:
    """Dense ranks of the relevant values of each row, 0 elsewhere; cost follows the relevant values."""
    ranks = np.zeros(values.shape, dtype=np.int64)
    rows, columns = np.nonzero(relevant)
    if len(rows) == 0:
        return ranks
    numbers = values[rows, columns].astype(np.float64)
    order = np.lexsort((numbers, rows))
    ascending = numbers[order]
    begins = np.concatenate([[True], rows[1:] != rows[:-1]])  # rows are sorted already
    with np.errstate(invalid="ignore"):  # inf minus inf
        # 1.2 - 1.1 is slightly more than 0.1 in floats; rounding must not break ties.
        rounding = 4 * np.finfo(np.float64).eps * np.abs(ascending[1:]) if tolerance > 0 else 0.0
        tied = ascending[1:] - ascending[:-1] <= tolerance + rounding
    steps = np.concatenate([[0], np.cumsum(begins[1:] | ~tied)])
    ranks[rows, columns[order]] = steps - steps[begins][np.cumsum(begins) - 1] + 1
    return ranks


def refuse(
    bad: npt.NDArray[np.bool_],
    matrix: npt.NDArray[Any],
    what: str,
    expected: str,
    index: Sequence[object] | None = None,
    labels: tuple[str, ...] | None = None,
) -> None:
    """Raise a `DataError` that shows the first offending entries, if there are any."""
    rows = np.flatnonzero(bad.any(axis=1)).tolist()
    if not rows:
        return
    problems: list[tuple[object, str]] = []
    for row in rows:
        name = row if index is None else f"{row} (index {shorten(index[row])})"
        column = int(np.flatnonzero(bad[row])[0])
        called = "" if labels is None else f" ({shorten(labels[column])})"
        where = f"column {column}{called} of {shorten(matrix[row].tolist())}"
        problems.append((name, f"{matrix[row, column]} in {where}; {expected}"))
    raise DataError.of_rows(what, problems, len(matrix))

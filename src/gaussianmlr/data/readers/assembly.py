"""Reads every row of a frame: orders, features and all other columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gaussianmlr._utils.magnitude import LARGEST, LARGEST_WEIGHT, expected_below
from gaussianmlr.data.cells import EXPECTED, Kind
from gaussianmlr.data.columns import Column, Encoding
from gaussianmlr.data.dataset import FloatArray, IntArray
from gaussianmlr.data.matrices import Read, read_column, read_named
from gaussianmlr.data.problems import Problems
from gaussianmlr.data.readers.grades import Grading, like_positions, question_grades, question_positions
from gaussianmlr.data.readers.parts import Columns
from gaussianmlr.errors import DataError, shorten
from gaussianmlr.orders import to_ranks
from gaussianmlr.orders.reading import is_missing

BoolArray = npt.NDArray[np.bool_]
_LONGEST_ID = 4096  # characters, as of the path of a picture
_LONGEST_SPLIT = 100


@dataclass(frozen=True)
class Rows:
    """The usable rows of a frame, still one per ranker."""

    ranks: IntArray
    labels: tuple[str, ...]
    features: FloatArray | None
    table: Table
    good: BoolArray
    split: npt.NDArray[np.object_] | None
    weight: npt.NDArray[np.float64] | None
    ranker: npt.NDArray[np.object_] | None
    id: npt.NDArray[np.object_] | None
    first: int = 0  # number of the first row in its file


class Table(NamedTuple):
    """The feature columns that are used, and why others are not."""

    names: tuple[str, ...] = ()
    encoding: Encoding | None = None
    notes: tuple[str, ...] = ()


class _Notes(NamedTuple):
    """What is noted while rows are read."""

    places: list[str]
    good: BoolArray
    problems: Problems
    first: int = 0  # number of the first row in its file

    def refuse(self, kind: str, row: int, message: str) -> None:
        """Note a problem of a row, which is then not used."""
        self.problems.add(kind, self.places[row], message)
        self.good[row] = False


def read_rows(
    frame: Any,
    columns: Columns,
    grading: Grading,
    problems: Problems,
    order_separator: str | None = None,
    kinds: Mapping[str, Kind] | None = None,
    first: int = 0,
) -> Rows:
    """Read every cell, noting problems; `kinds` says what feature columns hold where it is known.

    `first` is the number of the first row in its file, where the frame is a part of one.
    """
    good = np.ones(len(frame), dtype=bool)
    ids = texts(frame, columns.id, problems, good, first=first)
    places = [
        f"row {first + row}" if ids is None else f"row {first + row} (id {shorten(ids[row])})"
        for row in range(len(frame))
    ]
    notes = _Notes(places, good, problems, first)
    if columns.ranking is not None:
        ranks, labels = _text_orders(frame, columns, order_separator, notes)
    else:
        ranks, labels = _label_orders(frame, columns, grading, notes)
    features, table = _features(frame, columns.features, notes, kinds or {})
    weight = None
    if columns.weight is not None:
        weight = _numbers(frame, (columns.weight,), notes, kind="weight")[:, 0]
        for row in np.flatnonzero(good & (weight < 0)).tolist():
            notes.refuse("weight", row, f"weight {weight[row]}; expected a number >= 0")
    split = texts(frame, columns.split, problems, good, _LONGEST_SPLIT, first)
    ranker = texts(frame, columns.ranker, problems, good, first=first)
    return Rows(ranks, labels, features, table, good, split, weight, ranker, ids, first)


def texts(
    frame: Any,
    column: str | None,
    problems: Problems,
    good: BoolArray,
    longest: int = _LONGEST_ID,
    first: int = 0,
) -> npt.NDArray[np.object_] | None:
    """A column as texts; empty and overlong cells are problems."""
    if column is None:
        return None
    values = frame[column]
    written = values.astype(str).str
    empty = np.asarray(values.isna() | (written.strip() == ""), dtype=bool)
    for row in np.flatnonzero(empty).tolist():
        problems.add("cell", f"row {first + row}", f"nothing in column {column!r}; expected a text")
    long = np.asarray(written.len() > longest, dtype=bool)
    for row in np.flatnonzero(long).tolist():
        shown = f"{shorten(str(values.iloc[row]), 40)} in column {column!r}"
        problems.add("cell", f"row {first + row}", f"{shown}; expected at most {longest:,} characters")
    good[empty | long] = False
    if long.any():
        values = values.mask(long, "")
    if values.dtype.kind == "f" and bool((values[~empty] % 1 == 0).all()):
        values = values.astype("Int64")  # 3.0 is ranker 3 where a cell is empty
    return np.asarray(values.astype(str), dtype=np.object_)


def _label_orders(
    frame: Any, columns: Columns, grading: Grading, notes: _Notes
) -> tuple[IntArray, tuple[str, ...]]:
    labels, good = columns.labels or (), notes.good
    values = _numbers(frame, columns.label_columns, notes, kind="order", gaps=True)
    questionable = like_positions(values[good])
    if not grading.gaps:
        _refuse_gaps(values, columns.label_columns, questionable, notes)
    ranks = np.zeros((len(frame), len(labels)), dtype=np.int64)
    for row in np.flatnonzero(good).tolist() if not _try(grading, values[good]) else ():
        try:
            grading.ranks(values[row : row + 1])
        except DataError as error:
            hint = "; threshold=0.0 (--threshold 0) reads degrees" if grading.threshold is None else ""
            message = reason(error).replace("; `densify` turns any numbers into ranks", hint)
            notes.refuse("order", row, message)
    if good.any():
        ranks[good] = grading.ranks(values[good])
        if not grading.positions and grading.threshold is None:
            question = question_positions if questionable else question_grades
            question(values[good], notes.problems)
    return ranks, labels


def _refuse_gaps(values: FloatArray, names: tuple[str, ...], questionable: bool, notes: _Notes) -> None:
    """Note empty cells of label columns, by column."""
    gaps = np.isnan(values) & notes.good[:, None]
    for column in np.flatnonzero(gaps.any(axis=0)).tolist():
        rows = np.flatnonzero(gaps[:, column]).tolist()
        listed = ", ".join(str(notes.first + row) for row in rows[:5])
        listed += f" and {len(rows) - 5} more" if len(rows) > 5 else ""
        message = (
            f"nothing in {'row' if len(rows) == 1 else 'rows'} {listed}; write 0 (does not apply) or -1 "
        )
        message += "(unknown), or say which with missing='irrelevant' or 'unknown' (--missing)"
        if questionable:
            message += "; positions (1 = best, empty = not ranked) are read with positions=True (--positions)"
        notes.problems.add("order", f"column {names[column]!r}", message)
    notes.good[gaps.any(axis=1)] = False


def _try(grading: Grading, values: FloatArray) -> bool:
    """Whether all rows can be read at once, which is faster."""
    try:
        grading.ranks(values)
    except DataError:
        return False
    return True


def _text_orders(
    frame: Any, columns: Columns, separator: str | None, notes: _Notes
) -> tuple[IntArray, tuple[str, ...]]:
    labels = columns.labels
    given: list[Any] = frame[columns.ranking].to_numpy(dtype=object).tolist()
    rows = ["" if is_missing(row) else row for row in given]
    empty = sum(isinstance(row, str) and not row.strip() for row in rows)
    if empty:
        cells = f"{empty:,} of {len(rows):,} cells of the column {columns.ranking!r}"
        notes.problems.notes.append(f"{cells} are empty: no label applies there")
    try:
        return _ranks_of(rows, labels, separator)
    except DataError as error:
        whole = error
    bad: list[tuple[Any, str]] = list(whole.rows or _bad_alone(rows, labels, separator))
    if not bad:  # every order alone is valid, so the labels are wrong
        notes.problems.add("order", f"column {columns.ranking!r}", str(whole))
        notes.good[:] = False
    for number, message in bad:
        notes.refuse("order", number, message)
    good = notes.good
    if not good.any():
        return np.zeros((len(rows), len(labels or ())), dtype=np.int64), labels or ()
    read, found = to_ranks([row for row, fine in zip(rows, good) if fine], labels, order_separator=separator)
    ranks = np.zeros((len(rows), len(found)), dtype=np.int64)
    ranks[good] = read
    return ranks, found


def _ranks_of(
    rows: list[Any], labels: tuple[str, ...] | None, separator: str | None
) -> tuple[IntArray, tuple[str, ...]]:
    """Ranks of orders, equal texts read once: millions of rows have few different ones."""
    distinct = dict.fromkeys(rows) if all(isinstance(row, str) for row in rows) else {}
    if not distinct or 2 * len(distinct) > len(rows):
        return to_ranks(rows, labels, order_separator=separator)
    try:
        ranks, found = to_ranks([*distinct], labels, order_separator=separator)
    except DataError:  # again, for the numbers of all bad rows
        return to_ranks(rows, labels, order_separator=separator)
    places = {row: place for place, row in enumerate(distinct)}
    return ranks[np.fromiter(map(places.__getitem__, rows), dtype=np.intp, count=len(rows))], found


def _bad_alone(
    rows: list[Any], labels: tuple[str, ...] | None, separator: str | None
) -> Iterator[tuple[int, str]]:
    for number, row in enumerate(rows):
        try:
            # A second order with a label of its own: an empty order alone names none.
            to_ranks([row, ["-"]] if labels is None else [row], labels, order_separator=separator)
        except DataError as error:
            yield number, reason(error)


def reason(error: DataError) -> str:
    """The message of an error about the single row 0."""
    last = str(error).splitlines()[-1].strip()
    return last.removeprefix("row 0: ")


def _features(
    frame: Any, names: tuple[str, ...], notes: _Notes, kinds: Mapping[str, Kind]
) -> tuple[FloatArray | None, Table]:
    """The feature columns as numbers, and what they hold."""
    if not names:
        return None, Table()
    left_out = []
    each = {name: _feature(frame[name], name, notes, kinds.get(name)) for name in names}
    free = [name for name, found in each.items() if found.free]
    if len(free) == 1 and all(found.column is None for found in each.values()):
        each[free[0]] = read_column(frame[free[0]], "text")  # there is nothing else to learn from
    used, columns, matrix = [], [], []
    for name, found in each.items():
        if found.column is None:
            left_out.append(f"column {name!r} is left out: {found.note}")
            continue
        used.append(name)
        columns.append(found.column)
        matrix.append(found.values)
    if not used:
        notes.problems.add("feature", "the table", f"no feature column can be used; {'; '.join(left_out)}")
        return None, Table(notes=tuple(left_out))
    values = np.stack(matrix, axis=1)
    _check_range(values, tuple(used), notes, kind="feature", gaps=True)
    single = all(frame[name].dtype == np.float32 for name in used)
    encoding = None if all(one == Column() for one in columns) else tuple(columns)
    table = Table(tuple(used), encoding, tuple(left_out))
    return values.astype(np.float32) if single else values, table


def as_category(name: str) -> str:
    """How to say that a column holds categories."""
    return f"with --categories {name!r}, in Python kinds={{{name!r}: 'category'}}"


def _feature(cells: Any, name: str, notes: _Notes, kind: Kind | None) -> Read:
    """A feature column, its mistakes noted."""
    empty = np.zeros(len(cells))
    try:
        found = read_named(cells, name, kind)
    except (DataError, TypeError) as error:
        way = "leave it out (--drop, drop=[...])"
        if isinstance(error, TypeError):  # a list, which is no category either
            way += ", or join what a list holds into one text per row"
        else:
            way += f", or read it as texts {as_category(name)}"
        notes.problems.add("feature", f"column {name!r}", f"{error}; {way}")
        return Read(Column(), empty, np.zeros(0, dtype=np.intp), "")
    if found.free:
        way = f"it is read as texts with --texts {name!r}, in Python kinds={{{name!r}: 'text'}}"
        return found._replace(note=f"{found.note}; {way}, or as a category {as_category(name)}")
    if found.column is None:
        return found
    rows = found.wrong.tolist()
    for number, row in enumerate(rows):
        hint = f", or categories {as_category(name)}" if number == 0 and kind is None else ""
        what = f"{shorten(cells.iloc[row])} in column {name!r}; expected {EXPECTED[found.column.kind]}"
        notes.refuse("feature", row, what + hint)
    return found


def _numbers(
    frame: Any, names: tuple[str, ...], notes: _Notes, *, kind: str, gaps: bool = False
) -> npt.NDArray[np.float64]:
    """The columns as numbers [N, D]; with `gaps`, NaN may stay."""
    matrix = np.zeros((len(frame), len(names)))
    for position, name in enumerate(names):
        column = frame[name]
        matrix[:, position] = _column_numbers(column)
        if column.dtype.kind in "biuf":
            continue
        wrong = np.isnan(matrix[:, position]) & ~np.asarray(column.isna(), dtype=bool)
        rows = np.flatnonzero(wrong).tolist()
        if 2 * len(rows) > len(frame):  # a column of texts is one mistake, not one per row
            shown = _no_number(column.iloc[rows[0]], notes.first + rows[0])
            notes.problems.add(kind, f"column {name!r}", shown)
            matrix[:, position] = 0.0
            continue
        for row in rows:
            notes.refuse(kind, row, f"{shorten(column.iloc[row])} in column {name!r}; expected a number")
        matrix[rows, position] = 0.0
    _check_range(matrix, names, notes, kind=kind, gaps=gaps)
    return matrix


def _column_numbers(column: Any) -> npt.NDArray[np.float64]:
    """A column as numbers, NaN for cells that are not."""
    import pandas as pd

    numbers = column
    if column.dtype.kind in "mMc":  # pandas would turn dates into numbers, which are of no use here
        numbers = pd.Series(np.nan, column.index)
    elif column.dtype.kind not in "biuf":
        try:
            numbers = pd.to_numeric(column, errors="coerce")
        except OverflowError:  # integers beyond every float are among them
            numbers = column.map(_float).astype(np.float64)
    found: npt.NDArray[np.float64] = numbers.to_numpy(dtype=np.float64, na_value=np.nan)
    return found


def _check_range(
    matrix: npt.NDArray[np.float64], names: tuple[str, ...], notes: _Notes, *, kind: str, gaps: bool
) -> None:
    """Note numbers that are too large, infinite or, without `gaps`, missing."""
    most = LARGEST_WEIGHT if kind == "weight" else LARGEST
    if matrix.size and (gaps or not np.isnan(matrix).any()):
        # Nothing to find, as nearly always; NaN is no maximum.
        top, bottom = np.fmax.reduce(matrix, axis=None), np.fmin.reduce(matrix, axis=None)
        if not max(top, -bottom) > most:
            return
    bad = (np.abs(matrix) > most) | (False if gaps else np.isnan(matrix))
    for position in np.flatnonzero(bad.all(axis=0)).tolist():  # one mistake, not one per row
        empty = bool(np.isnan(matrix[:, position]).all())
        what = "is empty" if empty else "holds no finite number"
        if np.isfinite(matrix[:, position]).any():
            what = f"holds no magnitude below {most:g}"
        notes.problems.add(kind, f"column {names[position]!r}", f"{what}; leave it out with features=[...]")
        matrix[:, position], bad[:, position] = 0.0, False
    for row in np.flatnonzero(bad.any(axis=1)).tolist():
        columns = [names[position] for position in np.flatnonzero(bad[row])]
        value = matrix[row, np.flatnonzero(bad[row])[0]]
        shown, expected = value, "; expected a finite number"
        if np.isnan(value):
            shown, expected = "nothing", "; expected a number; fill the gap or leave the row out"
        elif np.isfinite(value):
            shown, expected = f"{value:g}", f" {expected_below(most)}"
        notes.refuse(kind, row, f"{shown} in {_columns(columns)}{expected}")


def _float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        return np.inf if value > 0 else -np.inf
    except (TypeError, ValueError):
        return np.nan


def _columns(names: list[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ("column " if len(names) == 1 else "columns ") + ", ".join(map(repr, names[:3])) + more


def _no_number(value: object, row: int) -> str:
    return f"{shorten(value)} in row {row}; expected numbers"

"""Frames and arrays as matrices of numbers, with what their columns hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gaussianmlr.data.cells import EXPECTED, READ, Cells, Kind, kind_of, text_of, unique_cells
from gaussianmlr.data.columns import Column, Encoding, FloatArray, recode
from gaussianmlr.errors import DataError, shorten

__all__ = ["TEXT", "Matrix", "Read", "read_column", "read_matrix", "read_named"]

TEXT = "text"  # a column of this name holds texts, if it holds words


class Read(NamedTuple):
    """A column of a frame or an array, read."""

    column: Column | None  # None if it is left out
    values: FloatArray
    wrong: npt.NDArray[np.intp]  # rows whose cell does not fit the kind
    note: str  # why it is left out
    free: bool = False  # whether it holds too many different texts for categories


def read_column(values: Any, kind: Kind | None = None) -> Read:
    """A column as numbers, by the kind given or found.

    Parameters
    ----------
    values : pandas or polars Series, or array
        The cells.
    kind : {"number", "boolean", "category", "date", "text"}, optional
        The kind, found from the cells if left out.

    Raises
    ------
    DataError
        If the column cannot be used.
    TypeError
        If a cell is a list or an object.

    Examples
    --------
    >>> found = read_column(np.array(["red", "n/a", "blue", "red"], dtype=object))
    >>> found.column.categories, found.values
    (('blue', 'red'), array([ 1., nan,  0.,  1.]))
    """
    cells, said = _array(values)
    kind = kind or said
    nothing = np.zeros(0, dtype=np.intp)
    if kind not in ("category", "text") and cells.dtype.kind in "biuf":
        found = cells.astype(np.float64)
        if kind is None and len(found) and np.isnan(found).all():
            return Read(None, found, nothing, "it is empty")
        if kind == "boolean":
            return Read(
                Column("boolean"), found, np.flatnonzero(~np.isin(found, (0, 1)) & ~np.isnan(found)), ""
            )
        if kind != "date":
            return Read(Column(), found, nothing, "")
    if kind in (None, "date") and cells.dtype.kind == "M":
        days = (cells - np.datetime64(0, "s")) / np.timedelta64(1, "D")
        return Read(Column("date"), days.astype(np.float64), nothing, "")
    if cells.dtype.kind in "mc":
        raise DataError(f"holds {cells.dtype} values; expected numbers, texts or dates")
    distinct = unique_cells(cells.astype(object))
    if not distinct.values and kind is None:
        return Read(None, np.full(len(cells), np.nan), nothing, "it is empty")
    guessed = kind or kind_of(distinct)
    if guessed == "text":
        return _texts(distinct, wanted=kind == "text")
    if guessed == "category":
        return _categories(distinct)
    return Read(Column(guessed), *distinct.numbers(READ[guessed]), "")


def _texts(cells: Cells, *, wanted: bool) -> Read:
    """A column of texts, left out unless it is wanted."""
    nothing = np.zeros(0, dtype=np.intp)
    if wanted:
        texts = tuple(text_of(value) for value in cells.values)
        return Read(Column("text", texts), np.where(cells.codes < 0, np.nan, cells.codes), nothing, "")
    note = f"{len(cells.values):,} different texts in {len(cells.codes):,} rows are no categories, such as "
    note += shorten(cells.values[0], 40)
    return Read(None, np.full(len(cells.codes), np.nan), nothing, note, free=True)


def read_named(values: Any, name: Any, kind: Kind | None = None) -> Read:
    """A column as `read_column` gives it; one of words that is called "text" holds texts.

    Examples
    --------
    >>> read_named(np.array(["so happy", "sad"], dtype=object), "Text").column.kind
    'text'
    """
    found = read_column(values, kind)
    words = found.free or (found.column is not None and found.column.kind == "category")
    called = str(name).strip().casefold() == TEXT
    return read_column(values, "text") if kind is None and called and words else found


def _categories(cells: Cells) -> Read:
    texts = [text_of(value) for value in cells.values]
    known = sorted(set(texts))
    place = {text: float(number) for number, text in enumerate(known)}
    return Read(Column("category", tuple(known)), *cells.numbers(lambda value: place[text_of(value)]), "")


def _array(values: Any) -> tuple[npt.NDArray[Any], Kind | None]:
    """The cells as an array of numbers, dates or objects, and the kind that their type says."""
    said: Kind | None = None
    name = str(getattr(values, "dtype", "")).lower()
    if name.startswith(("category", "categorical", "enum")):
        said, values = "category", np.asarray(values.to_numpy(), dtype=object)
    elif name.startswith("bool"):
        said = "boolean"
    elif name.startswith("datetime64[") and "," in name:  # pandas with a time zone
        values = values.dt.tz_convert(None)
    if hasattr(values, "to_numpy"):
        numeric = getattr(values.dtype, "kind", "") in "biuf" or hasattr(values.dtype, "is_numeric")
        if hasattr(values, "iloc") and numeric:
            values = values.to_numpy(dtype=np.float64, na_value=np.nan)
        else:
            values = values.to_numpy()
    array = np.asarray(values)
    return array, said


class Matrix(NamedTuple):
    """A frame or an array as numbers."""

    values: npt.NDArray[Any]  # [N, used columns]
    columns: Encoding | None  # what they hold; None for numbers alone
    used: tuple[int, ...] | None  # places of the columns; None for all
    notes: tuple[str, ...] = ()  # why others are left out


def read_matrix(features: Any, like: Matrix | None = None) -> Matrix:
    """A frame or an array [N, D] as numbers, and what its columns hold.

    A column of words that is called "text", and one of many different texts where no other can be used, holds
    texts.

    Parameters
    ----------
    features : frame or array-like [N, D]
        Cells.
    like : Matrix, optional
        Read the same columns, coded in the same way.

    Raises
    ------
    DataError
        With column and row, if a cell cannot be used.

    Examples
    --------
    >>> found = read_matrix(np.array([[1, "red"], [None, "blue"]], dtype=object))
    >>> found.values.tolist(), [column.kind for column in found.columns]
    ([[1.0, 1.0], [nan, 0.0]], ['number', 'category'])
    """
    framed = hasattr(features, "columns") and hasattr(features, "to_numpy")
    array = None if framed else np.asarray(features)
    plain = like is None or (like.columns is None and like.used is None)
    if array is not None and (array.ndim != 2 or (plain and array.dtype.kind in "biuf")):
        return Matrix(array, None, None)
    names = (
        list(features.columns)
        if framed
        else list(range(features.shape[1] if array is None else array.shape[1]))
    )
    found: list[Read] = []
    used, notes, free = [], [], []
    known = dict(zip(_places(like, len(names)), like.columns or (Column(),) * len(names))) if like else {}
    for place in _places(like, len(names)):
        cells = features[names[place]] if array is None else array[:, place]
        read = _checked(cells, names[place], known[place].kind if like else None)
        if read.column is None:
            notes.append(f"column {names[place]!r} is left out: {read.note}")
            free += [place] if read.free else []
            continue
        used.append(place)
        found.append(read)
    if not found and len(free) == 1:
        used, notes = free, notes[:0]
        cells = features[names[free[0]]] if array is None else array[:, free[0]]
        found = [read_column(cells, "text")]
    if not found:
        raise DataError(f"no column can be used; {'; '.join(notes) or 'there is none'}")
    columns: Encoding | None = tuple(read.column for read in found if read.column is not None)
    values: Any = np.stack([read.values for read in found], axis=1)
    if like is not None:
        values, columns = (
            recode(values, columns, like.columns, [str(names[place]) for place in used]),
            like.columns,
        )
    elif all(read.column == Column() for read in found):
        columns = None
    return Matrix(
        values,
        columns,
        None if len(used) == len(names) else tuple(used),
        tuple(notes),
    )


def _places(like: Matrix | None, width: int) -> Sequence[int]:
    return range(width) if like is None or like.used is None else like.used


def _checked(cells: Any, name: Any, kind: Kind | None) -> Read:
    """A column without cells of another kind."""
    try:
        read = read_named(cells, name, kind)
    except DataError as error:
        raise DataError(f"column {name!r} of X {error}") from None
    if len(read.wrong):
        row = int(read.wrong[0])
        value = (cells.to_numpy() if hasattr(cells, "to_numpy") else cells)[row]
        expected = EXPECTED[read.column.kind] if read.column is not None else ""
        raise DataError(f"column {name!r} of X is {shorten(value)} in row {row}; expected {expected}")
    return read

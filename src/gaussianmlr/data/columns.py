"""Columns of a table as numbers: categories, booleans, dates, texts and gaps, and how a model codes them.

A table is a matrix with one number per column: numbers as they are, NaN for a gap, 0 or 1 for a boolean, days
since 1970-01-01 for a date, and for a category or a text its place in a list. A model codes a text by its
tokens, in several columns.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import accumulate, pairwise
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from gaussianmlr.data.cells import EXPECTED, READ, Kind, is_gap, text_of
from gaussianmlr.data.tokens import TextCode, default_encoder, fit_text, tokens_of
from gaussianmlr.errors import DataError, shorten

__all__ = [
    "Column",
    "Encoding",
    "channels_of",
    "code_cell",
    "codes_of",
    "count_unseen",
    "fit_columns",
    "parse_encoding",
    "recode",
    "show_cell",
    "slots",
    "spans",
    "texts_at",
    "unseen",
    "unseen_lines",
]

FloatArray = npt.NDArray[np.float64]
Part = Literal["days", "day of year", "weekday", "hour"]
PARTS: tuple[Part, ...] = ("days", "day of year", "weekday", "hour")
MOST_CATEGORIES = 10_000  # of a column
LONGEST_CATEGORY = 1_000  # characters
_FREQUENT = 64  # categories with an input of their own in a network
_FEWEST = 2  # rows of a category that is kept


@dataclass(frozen=True)
class Column:
    """What a column holds, and how a model codes it.

    Parameters
    ----------
    kind : {"number", "boolean", "category", "date", "text"}
        What the cells are.
    categories : tuple of str
        Sorted texts; a cell is coded by its place among them, any other text by their number.
    frequent : tuple of int
        Places of the categories with an input of their own in a network; all of them if empty.
    other : bool
        Whether training rows had categories that are not listed, being rare.
    parts : tuple of str
        Of a date: the numbers made of it.
    gaps : bool
        Whether training rows had gaps.
    text : TextCode, optional
        How a model codes a text.

    Examples
    --------
    >>> Column("category", ("blue", "red"), gaps=True).to_dict()
    {'kind': 'category', 'categories': ['blue', 'red'], 'gaps': True}
    """

    kind: Kind = "number"
    categories: tuple[str, ...] = ()
    frequent: tuple[int, ...] = ()
    other: bool = False
    parts: tuple[Part, ...] = ()
    gaps: bool = False
    text: TextCode | None = None

    def to_dict(self) -> dict[str, Any]:
        """As JSON types, without what is not said."""
        found = {"kind": self.kind} | {
            field.name: getattr(self, field.name) for field in fields(self) if getattr(self, field.name)
        }
        if self.text is not None:
            found["text"] = self.text.to_dict()
        return {name: list(value) if isinstance(value, tuple) else value for name, value in found.items()}

    @classmethod
    def from_dict(cls, found: Mapping[str, Any]) -> Column:
        """From what `to_dict` gave."""
        parts: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in found.items()
        }
        if "text" in parts:
            parts["text"] = TextCode.from_dict(parts["text"])
        return cls(**parts)

    @property
    def width(self) -> int:
        """Number of channels of a model that it becomes."""
        return len(self.parts) if self.kind == "date" else self.codes

    @property
    def codes(self) -> int:
        """Number of columns of a coded matrix: one per token of a text, else one."""
        return 1 if self.text is None else self.text.tokens

    @property
    def shown(self) -> str:
        """Kind and categories, for people.

        Examples
        --------
        >>> Column("category", ("blue", "red"), other=True).shown
        'category of 2: blue, red, and rare ones'
        """
        text: str = self.kind
        if self.kind == "category":
            named = ", ".join(shorten(one, 30).strip("'\"") for one in self.categories[:5])
            more = ", ..." if len(self.categories) > 5 else ""
            rare = ", and rare ones" if self.other else ""
            text = f"category of {len(self.categories)}: {named}{more}{rare}"
        elif self.text is not None:
            text = self.text.shown
        elif self.parts:
            text = f"date as {', '.join(self.parts)}"
        return text + ("; may be empty" if self.gaps else "")


Encoding = tuple[Column, ...]


def code_cell(value: Any, column: Column) -> float:
    """The number that stands for a cell; NaN for a gap.

    Raises
    ------
    DataError
        With what was expected, if the cell does not fit the column.

    Examples
    --------
    >>> colour = Column("category", ("blue", "red"))
    >>> [code_cell(value, colour) for value in ("red", "green", None)]
    [1.0, 2.0, nan]
    """
    if is_gap(value):
        return float("nan")
    try:
        if column.kind == "category":
            return float(_place(text_of(value), column.categories))
        return READ[column.kind](value)
    except (TypeError, ValueError):
        raise DataError(f"{shorten(value)}; expected {EXPECTED[column.kind]}") from None


def codes_of(value: Any, column: Column) -> list[float]:
    """The numbers that stand for a cell: the tokens of a text, else what `code_cell` gives.

    Examples
    --------
    >>> codes_of("so so", Column("text", text=TextCode("text:tfidf", 3, "so", (1.0,))))
    [1.0, 1.0, 0.0]
    """
    if column.text is None:
        return [code_cell(value, column)]
    try:
        text = "" if is_gap(value) else text_of(value)
    except TypeError:
        raise DataError(f"{shorten(value)}; expected {EXPECTED[column.kind]}") from None
    return [float(token) for token in tokens_of(text, column.text)]


def spans(encoding: Encoding) -> list[slice]:
    """The columns of a coded matrix that belong to each column of a table.

    Examples
    --------
    >>> spans((Column(), Column("text", text=TextCode("text:tfidf", 3, "so", (1.0,)))))
    [slice(0, 1, None), slice(1, 4, None)]
    """
    ends = list(accumulate((one.codes for one in encoding), initial=0))
    return [slice(*both) for both in pairwise(ends)]


def texts_at(column: Column, values: FloatArray) -> list[str]:
    """The texts of a column as it was read, an empty one for a gap."""
    return ["" if code != code else column.categories[int(code)] for code in values.tolist()]


def _place(text: str, categories: tuple[str, ...]) -> int:
    """The place of a text in a sorted list, or its length."""
    place = bisect_left(categories, text)
    return place if place < len(categories) and categories[place] == text else len(categories)


def show_cell(number: float, column: Column) -> str:
    """A coded cell, for people.

    Examples
    --------
    >>> show_cell(0.0, Column("category", ("blue", "red"))), show_cell(365.5, Column("date"))
    ('blue', '1971-01-01 12:00:00')
    >>> show_cell(float("nan"), Column()), show_cell(1234567.0, Column()), show_cell(1.0, Column("boolean"))
    ('(empty)', '1.235e+06', 'true')
    """
    if number != number:
        return "(empty)"
    if column.kind in ("category", "text"):
        return column.categories[int(number)] if number < len(column.categories) else "(other)"
    if column.kind == "date":
        moment = np.datetime64(0, "s") + np.timedelta64(round(number * 86_400), "s")
        return str(moment).replace("T", " ").removesuffix(" 00:00:00")
    if column.kind == "boolean":
        return "true" if number else "false"
    return f"{number:.4g}"


def fit_columns(
    features: Any, columns: Encoding | None = None, encoder: str | None = None
) -> Encoding | None:
    """How a model codes columns, from its training rows; None for numbers without gaps alone.

    Parameters
    ----------
    features : array [N, D]
        Training rows.
    columns : Encoding, optional
        What the columns hold; numbers if left out.
    encoder : str, optional
        The backbone that takes the texts among them.

    Examples
    --------
    >>> rows = np.array([[1.0, 0.0], [2.0, 0.0], [np.nan, 1.0]])
    >>> for column in fit_columns(rows, (Column(), Column("category", ("a", "b")))):
    ...     print(column.shown)
    number; may be empty
    category of 1: a, and rare ones
    """
    if hasattr(features, "toarray"):
        return None
    matrix = np.asarray(features)
    gaps = np.isnan(matrix).any(axis=0)
    if columns is None and not gaps.any():
        return None
    known = columns or (Column(),) * matrix.shape[1]
    places = list(zip(spans(known), known))
    texts = [
        text
        for span, one in places
        if one.kind == "text" and one.text is None
        for text in texts_at(one, matrix[:, span.start])
        if text
    ]
    code = fit_text(encoder or default_encoder(), texts) if texts else None  # one for all columns of texts
    found = tuple(_fitted(matrix[:, span.start], one, bool(gaps[span.start]), code) for span, one in places)
    return None if all(one == Column() for one in found) else found


def _fitted(values: FloatArray, column: Column, gaps: bool, code: TextCode | None) -> Column:
    if column.text is not None:
        return column
    held = values[~np.isnan(values)]
    if column.kind == "text":
        if code is None:
            raise DataError("the columns of texts are empty; expected a text in one row at least")
        return Column("text", text=code)
    if column.kind == "category":
        return _fitted_categories(held, column, gaps)
    if column.kind == "date":
        parts = [part for part in PARTS if part == "days" or len(np.unique(_part(held, part))) > 1]
        return Column("date", parts=tuple(parts), gaps=gaps)
    return Column(column.kind, gaps=gaps)


def _fitted_categories(held: FloatArray, column: Column, gaps: bool) -> Column:
    counts = np.bincount(held.astype(np.int64), minlength=len(column.categories) + 1)
    lengths = np.array([len(text) for text in column.categories], dtype=np.int64)
    usable = np.flatnonzero((counts[: len(lengths)] >= _FEWEST) & (lengths <= LONGEST_CATEGORY))
    by_count = usable[np.argsort(-counts[usable], kind="stable")][:MOST_CATEGORIES]
    kept = np.sort(by_count)
    frequent: list[int] = []
    if len(kept) > _FREQUENT:
        frequent = np.flatnonzero(np.isin(kept, by_count[:_FREQUENT])).tolist()
    return Column(
        "category",
        tuple(column.categories[place] for place in kept.tolist()),
        tuple(frequent),
        other=bool(counts.sum() > counts[kept].sum()),
        gaps=gaps,
    )


def recode(features: Any, have: Encoding | None, want: Encoding | None, names: Sequence[str]) -> Any:
    """Rows coded by one list of columns, as another codes them; categories are matched by their texts.

    Examples
    --------
    >>> have, want = Column("category", ("a", "b", "c")), Column("category", ("b", "c"))
    >>> recode(np.array([[0.0], [1.0], [2.0]]), (have,), (want,), ["x"]).tolist()
    [[2.0], [0.0], [1.0]]
    """
    if have == want or hasattr(features, "toarray"):
        return features
    matrix = np.asarray(features, dtype=np.float64)
    plain = (Column(),) * len(names)
    parts = [
        _recoded(matrix[:, span], old, new, name)
        for span, old, new, name in zip(spans(have or plain), have or plain, want or plain, names)
    ]
    return np.concatenate(parts, axis=1)


def _recoded(codes: FloatArray, old: Column, new: Column, name: str) -> FloatArray:
    """The codes of one column, as another codes them."""
    if new.text is not None:
        return _tokens(codes[:, 0], old, new.text, name)
    if old.kind == new.kind == "category":
        lookup = [float(_place(text, new.categories)) for text in old.categories]
        lookup.append(float(len(new.categories)))
    elif new.kind == "category" and old.kind not in ("date", "text"):
        return np.array([[code_cell(value, new)] for value in codes[:, 0].tolist()])
    elif old.kind == new.kind or {old.kind, new.kind} == {"number", "boolean"}:
        return codes
    else:
        raise DataError(f"column {name!r} holds {old.shown}; expected {EXPECTED[new.kind]} in each row")
    found = codes.copy()
    held = ~np.isnan(found)
    found[held] = np.asarray(lookup)[np.minimum(found[held], len(lookup) - 1).astype(np.intp)]
    return found


def _tokens(codes: FloatArray, column: Column, text: TextCode, name: str) -> FloatArray:
    """The tokens of a column of texts, of a category or of numbers; a gap has those of an empty text."""
    if column.kind == "date":
        raise DataError(f"column {name!r} holds {column.shown}; expected {EXPECTED['text']} in each row")
    if column.kind in ("category", "text"):
        texts = list(column.categories)
    else:
        numbers, places = np.unique(codes, return_inverse=True)
        texts = ["" if one != one else text_of(one) for one in numbers.tolist()]
        codes = places.astype(np.float64)
    known = np.array([tokens_of(one, text) for one in [*texts, ""]], dtype=np.float64)
    found: FloatArray = known[np.where(np.isnan(codes), len(texts), codes).astype(np.intp)]
    return found


def channels_of(features: Any, encoding: Encoding | None) -> FloatArray:
    """Rows with one column per channel of a model: dates become their parts.

    Examples
    --------
    >>> channels_of(np.array([[0.75]]), (Column("date", parts=("days", "weekday", "hour")),)).tolist()
    [[0.75, 3.0, 18.0]]
    """
    matrix = np.asarray(features, dtype=np.float64)
    if encoding is None or not any(one.kind == "date" for one in encoding):
        return matrix
    found = [
        _part(matrix[:, span], part) if one.kind == "date" else matrix[:, span]
        for span, one in zip(spans(encoding), encoding)
        for part in (one.parts if one.kind == "date" else PARTS[:1])
    ]
    return np.concatenate(found, axis=1)


def _part(days: FloatArray, part: Part) -> FloatArray:
    """A part of dates given as days since 1970-01-01, a Thursday."""
    whole = np.floor(days)
    if part == "weekday":
        return (whole + 3) % 7
    if part == "hour":
        return np.round(24 * (days - whole), 6)
    if part == "day of year":
        dates = np.where(np.isnan(whole), 0, whole).astype("datetime64[D]")
        numbers = (dates - dates.astype("datetime64[Y]").astype("datetime64[D]")).astype(np.float64) + 1
        return np.where(np.isnan(whole), np.nan, numbers)
    return days


class Slot(NamedTuple):
    """How a network takes one channel: as a number, or one input per category."""

    inputs: tuple[int, ...] | None  # per code the input that it turns on, -1 for none; None for a number
    gaps: bool  # whether a gap turns on an input of its own


def slots(encoding: Encoding) -> list[Slot]:
    """How a network takes each channel of an encoding.

    Examples
    --------
    >>> slots((Column(gaps=True), Column("category", ("a", "b"), other=True)))
    [Slot(inputs=None, gaps=True), Slot(inputs=(0, 1, 2), gaps=False)]
    """
    found = []
    for column in encoding:
        if column.kind == "category":
            found.append(Slot(_inputs(column), column.gaps))
            continue
        found.append(Slot(None, column.gaps))
        found += [Slot(None, False)] * (column.width - 1)  # one input says that a date is missing
    return found


def _inputs(column: Column) -> tuple[int, ...]:
    count = len(column.categories)
    frequent = column.frequent or tuple(range(count))
    other = len(frequent) if column.other or len(frequent) < count else -1
    places = np.full(count + 1, other)
    places[list(frequent)] = np.arange(len(frequent))
    return tuple(places.tolist())


Unseen = Counter[tuple[str, str]]  # cells per column and meaning


def unseen(number: float, column: Column) -> str:
    """What a coded cell means that no training row had, or nothing.

    Examples
    --------
    >>> unseen(float("nan"), Column())
    'a gap counts as the mean, since the training rows had none'
    """
    if number != number:
        if column.gaps:
            return ""
        meaning = "has no effect" if column.kind == "category" else "counts as the mean"
        return f"a gap {meaning}, since the training rows had none"
    if column.kind == "category" and number == len(column.categories):
        return "a category that training rows had rarely or never"
    return ""


def count_unseen(features: Any, encoding: Encoding | None, names: Sequence[str]) -> Unseen:
    r"""Cells of recoded rows that no training row had, counted per column.

    Examples
    --------
    >>> columns = (Column(), Column("category", ("a", "b")))
    >>> rows = np.array([[np.nan, 2.0], [1.0, 2.0]])
    >>> print("\n".join(unseen_lines(count_unseen(rows, columns, ["age", "city"]))))
    column 'age': a gap counts as the mean, since the training rows had none (1 row)
    column 'city': a category that training rows had rarely or never (2 rows)
    """
    matrix = np.asarray(features)
    known = encoding or (Column(),) * matrix.shape[1]
    found: Unseen = Counter()
    for span, column, name in zip(spans(known), known, names):
        if column.kind == "text":
            continue
        codes = matrix[:, span.start]
        for number in (np.nan, float(len(column.categories))):
            held = np.isnan(codes) if number != number else codes == number
            if (message := unseen(number, column)) and held.any():
                found[name, message] = int(held.sum())
    return found


def unseen_lines(found: Unseen) -> list[str]:
    """The counts, in words."""
    rows = {key: f"{count:,} row{'' if count == 1 else 's'}" for key, count in found.items()}
    return [f"column {name!r}: {message} ({rows[name, message]})" for name, message in found]


def parse_encoding(found: Iterable[Mapping[str, Any]] | None) -> Encoding | None:
    """An encoding from the config of a model.

    Examples
    --------
    >>> parse_encoding([{"kind": "number", "gaps": True}])
    (Column(kind='number', categories=(), frequent=(), other=False, parts=(), gaps=True, text=None),)
    """
    return None if found is None else tuple(Column.from_dict(one) for one in found)

"""What a column of a table holds, and the numbers that stand for its cells."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from gaussianmlr.data.cells import EXPECTED, READ, Kind, is_gap, text_of
from gaussianmlr.data.dates import Part
from gaussianmlr.data.tokens import TextCode, tokens_of
from gaussianmlr.errors import DataError, shorten

__all__ = [
    "Column",
    "Encoding",
    "code_cell",
    "codes_of",
    "parse_encoding",
    "place_of",
    "show_cell",
    "spans",
    "texts_at",
]

FloatArray = npt.NDArray[np.float64]


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
            return float(place_of(text_of(value), column.categories))
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


def place_of(text: str, categories: tuple[str, ...]) -> int:
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


def parse_encoding(found: Iterable[Mapping[str, Any]] | None) -> Encoding | None:
    """An encoding from the config of a model.

    Examples
    --------
    >>> parse_encoding([{"kind": "number", "gaps": True}])
    (Column(kind='number', categories=(), frequent=(), other=False, parts=(), gaps=True, text=None),)
    """
    return None if found is None else tuple(Column.from_dict(one) for one in found)

"""Columns of a table as numbers: categories, booleans, dates, texts and gaps, and how a model codes them.

A table is a matrix with one number per column: numbers as they are, NaN for a gap, 0 or 1 for a boolean, days
since 1970-01-01 for a date, and for a category or a text its place in a list. A model codes a text by its
tokens, in several columns. Single cells are in `coding`, what a network makes of them in `channels`, and what
no training row had in `unseen`; their names are importable from here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gaussianmlr.data.cells import EXPECTED, text_of
from gaussianmlr.data.channels import Slot, channels_of, slots
from gaussianmlr.data.coding import (
    Column,
    Encoding,
    code_cell,
    codes_of,
    parse_encoding,
    place_of,
    show_cell,
    spans,
    texts_at,
)
from gaussianmlr.data.dates import PARTS, part_of
from gaussianmlr.data.tokens import TextCode, default_encoder, fit_text, tokens_of
from gaussianmlr.data.unseen import Unseen, count_unseen, unseen, unseen_lines
from gaussianmlr.errors import DataError

__all__ = [
    "LONGEST_CATEGORY",
    "MOST_CATEGORIES",
    "PARTS",
    "Column",
    "Encoding",
    "FloatArray",
    "Slot",
    "Unseen",
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
MOST_CATEGORIES = 10_000  # of a column
LONGEST_CATEGORY = 1_000  # characters
_FREQUENT = 64  # categories with an input of their own in a network
_FEWEST = 2  # rows of a category that is kept


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
        parts = [part for part in PARTS if part == "days" or len(np.unique(part_of(held, part))) > 1]
        return Column("date", parts=tuple(parts), gaps=gaps)
    return Column(column.kind, gaps=gaps)


def _fitted_categories(held: FloatArray, column: Column, gaps: bool) -> Column:
    return fitted_categories(
        column, np.bincount(held.astype(np.int64), minlength=len(column.categories) + 1), gaps
    )


def fitted_categories(column: Column, counts: npt.NDArray[np.int64], gaps: bool) -> Column:
    """How a model codes sorted categories that occur so often in training rows."""
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
        lookup = [float(place_of(text, new.categories)) for text in old.categories]
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

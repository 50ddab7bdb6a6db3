"""Cells that no training row had: what they mean for a model, and how many there are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from gaussianmlr.data.coding import Column, Encoding, spans

__all__ = ["Unseen", "count_unseen", "unseen", "unseen_lines"]

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

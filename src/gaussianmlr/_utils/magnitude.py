"""Limits of magnitude: beyond them, squares and single precision silently overflow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gaussianmlr.errors import DataError

__all__ = ["LARGEST", "LARGEST_INPUT", "LARGEST_WEIGHT", "expected_below", "refuse_large"]

LARGEST = 1e100  # of a feature: the variance of a column sums squares in double precision
LARGEST_WEIGHT = 1e30  # of an instance: losses are summed in single precision
LARGEST_INPUT = 1e18  # of a standardised feature: networks sum squares in single precision


def expected_below(most: float) -> str:
    """The end of a message about a number that is too large.

    Examples
    --------
    >>> expected_below(LARGEST)
    'is too large; expected a magnitude below 1e+100'
    """
    return f"is too large; expected a magnitude below {most:g}"


def refuse_large(
    values: Any,
    columns: Sequence[object] | None = None,
    *,
    most: float = LARGEST,
    raw: Any = None,
    unit: str = "",
) -> None:
    """Refuse numbers [N, D], dense or sparse, that would overflow; show row and column.

    Parameters
    ----------
    values : array or sparse matrix [N, D]
        The numbers.
    columns : sequence, optional
        Names of the columns; numbers by default.
    most : float
        The largest magnitude.
    raw : array [N, D], optional
        Shown instead of the values, such as the numbers before standardising.
    unit : str
        The unit, shown after the number.

    Examples
    --------
    >>> refuse_large(np.array([[1.0, 2.0], [3.0, -1e300]]), ["a", "b"])
    Traceback (most recent call last):
        ...
    gaussianmlr.errors.DataError: 1 of 2 rows hold numbers that are too large:
      row 1: -1e+300 in column 'b' is too large; expected a magnitude below 1e+100
    """
    held = values.data if hasattr(values, "toarray") else values
    if held.size == 0:
        return
    # NaN, a gap, is no number that is too large.
    if not max(float(np.fmax.reduce(held, axis=None)), -float(np.fmin.reduce(held, axis=None))) > most:
        return
    places = np.argwhere(
        np.abs(values.toarray() if hasattr(values, "toarray") else values) > np.float64(most)
    )
    problems: dict[int, str] = {}
    for row, column in places.tolist():
        name = column if columns is None else columns[column]
        shown = f"{(values if raw is None else raw)[row, column]:g} in column {name!r}"
        if unit:
            shown += f" is {values[row, column]:g} {unit}, which"
        problems.setdefault(row, f"{shown} {expected_below(most)}")
    raise DataError.of_rows("rows hold numbers that are too large", [*problems.items()], values.shape[0])

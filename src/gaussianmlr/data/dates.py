"""Parts of dates as numbers: the days themselves, the day of the year, the weekday and the hour."""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

__all__ = ["PARTS", "Part", "part_of"]

FloatArray = npt.NDArray[np.float64]
Part = Literal["days", "day of year", "weekday", "hour"]
PARTS: tuple[Part, ...] = ("days", "day of year", "weekday", "hour")


def part_of(days: FloatArray, part: Part) -> FloatArray:
    """A part of dates given as days since 1970-01-01, a Thursday.

    Examples
    --------
    >>> [part_of(np.array([31.5]), part).item() for part in PARTS]
    [31.5, 32.0, 6.0, 12.0]
    """
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

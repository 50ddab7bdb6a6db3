"""The channels of a model that columns become, and how a network takes them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gaussianmlr.data.coding import Column, Encoding, spans
from gaussianmlr.data.dates import PARTS, part_of

__all__ = ["Slot", "channels_of", "slots"]

FloatArray = npt.NDArray[np.float64]


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
        part_of(matrix[:, span], part) if one.kind == "date" else matrix[:, span]
        for span, one in zip(spans(encoding), encoding)
        for part in (one.parts if one.kind == "date" else PARTS[:1])
    ]
    return np.concatenate(found, axis=1)


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

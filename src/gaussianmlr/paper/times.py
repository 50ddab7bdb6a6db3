"""How long missing cells will take, by the cells that ran."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from typing import Any

from gaussianmlr.data.ranked_mnist.settings import SETTINGS
from gaussianmlr.paper.canvas import sizes_of
from gaussianmlr.paper.cells import Cell

__all__ = ["seconds_of"]


def seconds_of(cell: Cell, landed: Mapping[Cell, Mapping[str, Any]]) -> float | None:
    """The training time that a cell will take; None where nothing like it ran.

    Of the finished cells of the same preset it takes those that are most alike: the same set and method, else
    the same set, else images of the same kind. Canvases are counted in seconds per training image.

    Examples
    --------
    >>> done = {Cell("gray-s", "gmlr", "strong", "cpu"): {"seconds": 640.0, "images_seen": 64_000}}
    >>> seconds_of(Cell("gray-s", "gmlr", "strong", "cpu", images=300_000), done)
    3000.0
    >>> seconds_of(Cell("nsid", "gmlr", "strong", "cpu"), done) is None
    True
    """
    found: dict[int, list[float]] = {}
    for one, facts in landed.items():
        likeness = _likeness(cell, one)
        if one.reading or likeness is None or not facts["images_seen"]:
            continue
        seconds = float(facts["seconds"])
        if cell.kind == "canvas":
            seconds *= sizes_of(cell).images / facts["images_seen"]
        found.setdefault(likeness, []).append(seconds)
    return statistics.median(found[max(found)]) if found else None


def _likeness(cell: Cell, one: Cell) -> int | None:
    """How alike the trainings of two cells are; None if one says nothing about the other."""
    if cell.preset != one.preset or cell.kind != one.kind:
        return None
    if cell.kind == "canvas" and SETTINGS[cell.dataset].colour != SETTINGS[one.dataset].colour:
        return 0
    alike = cell.method == one.method, cell.dataset == one.dataset, cell.settings == one.settings
    return 1 + sum(weight for weight, same in zip((4, 2, 1), alike) if same)

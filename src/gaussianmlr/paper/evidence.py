"""What cells say beyond their means: intervals over instances, spread over seeds, paired tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gaussianmlr.metrics.bootstrap import Interval, bootstrap
from gaussianmlr.metrics.paired import PairedTest, crossed_t
from gaussianmlr.paper.cells import Cell
from gaussianmlr.paper.values import measures_of, read_values

__all__ = ["Evidence", "Landed"]

Landed = Mapping[Cell, Mapping[str, Any]]
Floats = npt.NDArray[np.float64]


class Evidence:
    """Finished cells and, where they have them, their per-instance values.

    Parameters
    ----------
    landed : mapping
        Cells and their contents, from `read_cells`.
    folder : path-like, optional
        Folder of the cells, which also holds the values; without it there are only means.

    Examples
    --------
    >>> Evidence({}).seeds_of(Cell("gray-s", "gmlr", "strong", "cpu"))
    []
    """

    def __init__(self, landed: Landed, folder: str | Path | None = None) -> None:
        self.landed = landed
        self._folder = None if folder is None else Path(folder)
        self._measures: dict[Cell, dict[str, tuple[Floats, Floats]] | None] = {}
        self._truths: dict[Cell, bytes] = {}

    def seeds_of(self, cell: Cell) -> list[Cell]:
        """The finished cells that differ from a cell in the seed at most, by seed."""
        found = (one for one in self.landed if one.at(seed=0) == cell.at(seed=0))
        return sorted(found, key=lambda one: one.seed)

    def has_values(self, cell: Cell) -> bool:
        """Whether any seed of a cell has per-instance values."""
        return any(self.measures(one) is not None for one in self.seeds_of(cell))

    def measures(self, cell: Cell) -> dict[str, tuple[Floats, Floats]] | None:
        """Numerators and denominators per metric and instance; None for cells without values."""
        if cell not in self._measures:
            values = None
            if self._folder is not None and cell in self.landed:
                values = read_values(self._folder, self.landed[cell])
            self._measures[cell] = None if values is None else measures_of(values)
            if values is not None:
                self._truths[cell] = repr(values.ids).encode() + values.ranks.tobytes()
        return self._measures[cell]

    def interval(self, cell: Cell, metric: str) -> Interval | None:
        """The bootstrap interval of the mean over all seeds with values, in percent; None without any."""
        found = [measures for one in self.seeds_of(cell) if (measures := self.measures(one)) is not None]
        if not found or len({len(one[metric][0]) for one in found}) > 1:
            return None
        above, below = (np.stack([one[metric][part] for one in found]) for part in (0, 1))
        if not (below.sum(1) > 0).all():
            return None
        return Interval(*(100 * number for number in bootstrap(above, below)))

    def compare(self, one: Cell, other: Cell, metric: str) -> PairedTest | None:
        """The paired test of two cells over the seeds and instances that both have, in percent.

        None where either has no values, or they were measured on different instances.
        """
        rows = []
        for cell in self.seeds_of(one):
            rival = other.at(seed=cell.seed)
            mine, theirs = self.measures(cell), self.measures(rival)
            if mine is None or theirs is None or self._truths[cell] != self._truths[rival]:
                continue
            counted = mine[metric][1] > 0
            rows.append(100 * (mine[metric][0] - theirs[metric][0])[counted])
        if not rows or len({len(row) for row in rows}) > 1 or len(rows[0]) < 2:
            return None
        return crossed_t(np.stack(rows))

    def paired_seeds(self, one: Cell, other: Cell) -> int:
        """The number of seeds that both have, with values."""
        pairs = ((cell, other.at(seed=cell.seed)) for cell in self.seeds_of(one))
        return sum(all(self.measures(cell) is not None for cell in pair) for pair in pairs)

    def mean(self, cell: Cell, metric: str) -> float | None:
        """The mean over the seeds, in percent."""
        values = [float(self.landed[one]["metrics"][metric]) for one in self.seeds_of(cell)]
        return float(np.mean(values)) if values else None

    def means(self, cells: Sequence[Cell], metric: str) -> list[float] | None:
        """The means of several cells; None if one was not run."""
        found = [self.mean(cell, metric) for cell in cells]
        return None if None in found else [one for one in found if one is not None]

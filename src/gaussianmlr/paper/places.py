"""Where data comes from, and where results go."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from gaussianmlr.paper.cells import Cell

__all__ = ["Places", "Sources"]


@dataclass(frozen=True)
class Sources:
    """Locations of the data that cannot be generated."""

    digits: str = "auto"
    nsid: Path | None = None
    avdp: Path | None = None


@dataclass(frozen=True)
class Places:
    """Folders: `work` for runs and models, `results` for cells, tables and figures."""

    work: Path
    results: Path

    @property
    def cells(self) -> Path:
        """The folder of the JSON files."""
        return self.results / "cells"

    def run(self, cell: Cell) -> Path:
        """The folder of a cell's training."""
        return self.work / cell.training.name

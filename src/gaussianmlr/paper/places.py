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

    def of(self, dataset: str) -> Path | None:
        """The folder of a data set of pictures, if it was given."""
        folder: Path | None = getattr(self, dataset.partition("-")[0])
        return folder

    def absolute(self) -> Sources:
        """The same for a process that has another working directory."""
        is_folder = self.digits != "auto" and Path(self.digits).is_dir()
        return Sources(
            str(Path(self.digits).absolute()) if is_folder else self.digits,
            *(folder and folder.absolute() for folder in (self.nsid, self.avdp)),
        )


@dataclass(frozen=True)
class Places:
    """Folders: `work` for runs and models, `results` for cells, tables and figures."""

    work: Path
    results: Path

    @property
    def cells(self) -> Path:
        """The folder of the JSON files."""
        return self.results / "cells"

    @property
    def submissions(self) -> Path:
        """The folder of the rows that others add to the leaderboard."""
        return self.results / "submissions"

    @property
    def frozen(self) -> Path:
        """The recipes that were frozen before the test images were looked at."""
        return self.results / "frozen.json"

    def run(self, cell: Cell) -> Path:
        """The folder of a cell's training."""
        return self.work / cell.training.name

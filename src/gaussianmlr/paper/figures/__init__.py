"""Figures from the probes of cells, each with its numbers beside it."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from gaussianmlr.paper.cells import Cell
from gaussianmlr.paper.plans import FIGURES
from gaussianmlr.paper.running import Sources
from gaussianmlr.presets import Preset

__all__ = ["write_figures"]


def write_figures(
    names: Iterable[str],
    landed: Mapping[Cell, Mapping[str, Any]],
    preset: Preset,
    folder: Path,
    sources: Sources,
) -> list[Path]:
    """Draw figures of the cells that are there, and say which files were written.

    Parameters
    ----------
    names : iterable of str
        Figures, of `plans.FIGURES`.
    landed : mapping
        Cells, as `read_cells` gives them.
    preset : {"paper", "cpu", "smoke"}
        Whose cells, seed 0.
    folder : Path
        Where figures go.
    sources : Sources
        Digits and pictures, for what is seen on the figures.
    """
    from gaussianmlr.paper.figures._studio import Studio

    studio = Studio(landed, preset, folder, sources)
    written: list[Path] = []
    for name in names:
        assert name in FIGURES
        written += importlib.import_module(f"{__name__}.{name}").draw(studio)
    return written

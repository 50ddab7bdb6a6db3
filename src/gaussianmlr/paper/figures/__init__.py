"""Figures from the probes of cells, each with a file of its numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from gaussianmlr.model.presets import Preset
from gaussianmlr.paper.cells import Cell
from gaussianmlr.paper.figures import adjusting, bars, calibration, extracted, ranks, samples, variance
from gaussianmlr.paper.figures.shared import Studio
from gaussianmlr.paper.places import Sources

__all__ = ["write_figures"]

_DRAWN = {
    "adjusting": adjusting,
    "calibration": calibration,
    "extracted": extracted,
    "bars": bars,
    "variance": variance,
    "samples": samples,
    "ranks": ranks,
}


def write_figures(
    names: Iterable[str],
    landed: Mapping[Cell, Mapping[str, Any]],
    preset: Preset,
    folder: Path,
    sources: Sources,
    *,
    safe_colours: bool = False,
) -> list[Path]:
    """Draw figures of the finished cells, and return the files.

    Parameters
    ----------
    names : iterable of str
        Names from `plans.FIGURES`.
    landed : mapping
        Cells, from `read_cells`.
    preset : {"paper", "cpu", "smoke"}
        Preset of the cells, seed 0.
    folder : Path
        Folder of the figures.
    sources : Sources
        Digits and pictures shown on the figures.
    safe_colours : bool
        Whether bars have colours for colour-blind readers, instead of the paper's green and red.
    """
    studio = Studio(landed, preset, folder, sources, safe_colours)
    return [file for name in names for file in _DRAWN[name].draw(studio)]

"""Figures from trained models, each with its numbers beside it."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from pathlib import Path

from gaussianmlr.paper.plans import FIGURES
from gaussianmlr.paper.running import Places, Sources
from gaussianmlr.presets import Preset

__all__ = ["write_figures"]


def write_figures(names: Iterable[str], preset: Preset, places: Places, sources: Sources) -> list[Path]:
    """Draw figures of the models that are there, and say which files were written.

    Parameters
    ----------
    names : iterable of str
        Figures, of `plans.FIGURES`.
    preset : {"paper", "cpu", "smoke"}
        Whose models, seed 0.
    places, sources
        Where models are, where figures go (``results/figures``), and where the data is.
    """
    from gaussianmlr.paper.figures._studio import Studio

    studio = Studio(preset, places, sources)
    written: list[Path] = []
    for name in names:
        assert name in FIGURES
        written += importlib.import_module(f"{__name__}.{name}").draw(studio)
    return written

"""The cells of the tables and figures, the most important first."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product

from gaussianmlr.errors import DataError
from gaussianmlr.model.presets import Preset
from gaussianmlr.paper.cells import PHOTOS, Cell

__all__ = ["FIGURES", "FINE_TUNED", "SIX", "TABLES", "cells_of", "plan"]

# In the order of the paper's tables.
SIX = tuple(product(("crpc", "lsep", "gmlr"), ("weak",))) + tuple(
    product(("crpc", "lsep", "gmlr"), ("strong",))
)
GRAY = ("gray-s", "gray-b", "gray-s-mix", "gray-b-mix")
COLOR = ("color-s", "color-b", "color-s-mix", "color-b-mix")
SMALL = "gray-s-small"
RIVALS = (("ranknet", "strong"), ("zlpr", "strong"), ("pl", "strong"), ("br", "weak"))
# Deviations from the preset in the ablation, with the methods they apply to.
ABLATIONS = (
    ("head=linear", ("gmlr", "crpc")),
    ("method_settings.balance=parts", ("gmlr",)),  # the paper's
    ("method_settings.gauge=canonical", ("gmlr",)),
    ("method_settings.ties=losses", ("crpc",)),  # with published votes: as the paper's code has it
)
# Fine-tuning of the last stage on four versions of each picture; features below it are computed once.
FINE_TUNED = (
    "augment=randaugment",
    "augment_settings.views=4",
    "backbone=efficientnet-lite0",
    "epochs=20",
    "freeze=1",
    "head_settings.dropout=0.5",
)
LONG_RUNS = {"gray-s": 300_000, SMALL: 128_000}  # images, for GaussianMLR
SEQUENCES = (*GRAY[:2], *COLOR[:2], *GRAY[2:], *COLOR[2:])
VARIANCES = ("gray-s", "gray-b", "color-s", "color-b", SMALL)
BARS = ("gray-s", "color-s", "nsid", "avdp")

# Data sets of the tables and figures.
SETS = {
    "gray": GRAY,
    "color": COLOR,
    "small-change": (SMALL,),
    "real": PHOTOS,
    "error-bars": PHOTOS,
    "adjusting": SEQUENCES,
    "calibration": ("gray-s",),
    "extracted": ("nsid",),
    "bars": BARS,
    "variance": VARIANCES,
    "samples": (),
}
TABLES = ("gray", "color", "real", "error-bars", "small-change", "rivals")
FIGURES = ("adjusting", "calibration", "extracted", "bars", "variance", "samples")


def cells_of(what: str, preset: Preset, seeds: int | None = None) -> list[Cell]:
    """The cells of a table or figure.

    Parameters
    ----------
    what : str
        One of `TABLES` or `FIGURES`.
    preset : {"paper", "cpu", "smoke"}
        The preset of all of them.
    seeds : int, optional
        Seeds per cell; by default one, but five for pictures, as for the error bars of the paper.

    Examples
    --------
    >>> len(cells_of("gray", "cpu")), len(cells_of("error-bars", "cpu"))
    (24, 60)
    >>> cells_of("samples", "cpu")
    []
    """
    if what not in (*TABLES, *FIGURES):
        raise DataError(f"no table or figure {what!r}; known are {', '.join((*TABLES, *FIGURES))}")
    several = range(1 if seeds is None else seeds)
    if what == "rivals":
        return [cell.at(seed=seed) for cell in _rivals(preset) for seed in several]
    methods = (("gmlr", "strong"),) if what == "variance" else SIX
    of_each = _seeds(what, preset, seeds)
    found = [Cell(name, *one, preset, seed) for name, one, seed in product(SETS[what], methods, of_each)]
    if what == "real" and preset == "cpu":
        strong = product(SIX[3:], several)
        found += [Cell("nsid", *one, preset, seed, settings=FINE_TUNED) for one, seed in strong]
    return found


def _seeds(what: str, preset: Preset, seeds: int | None) -> range:
    if what in FIGURES:
        return range(1)
    usual = 5 if SETS[what] == PHOTOS and preset != "smoke" else 1
    return range(usual if seeds is None else seeds)


def _rivals(preset: Preset) -> list[Cell]:
    """All methods and ablations on gray-s at one budget, and the long runs."""
    trained = [Cell("gray-s", *one, preset) for one in (*SIX, *RIVALS)]
    ablations = [
        Cell("gray-s", method, "strong", preset, settings=(setting,))
        for setting, methods in ABLATIONS
        for method in methods
    ]
    long_runs = [Cell(name, "gmlr", "strong", preset, images=images) for name, images in LONG_RUNS.items()]
    found = [*trained, *ablations, *(long_runs if preset == "cpu" else [])]
    return [one for cell in found for one in cell.readings]


def plan(whats: Iterable[str], preset: Preset, seeds: int | None = None) -> list[Cell]:
    """All trainings that tables and figures need, each once, the most important first.

    Examples
    --------
    >>> [cell.name for cell in plan(["gray", "color"], "cpu")][:2]
    ['gray-s_gmlr-strong_cpu_seed0', 'gray-s_lsep-strong_cpu_seed0']
    """
    found = dict.fromkeys(cell.training for what in whats for cell in cells_of(what, preset, seeds))
    return sorted(found, key=_priority)


def _priority(cell: Cell) -> tuple[int, ...]:
    """First gray-s, on which the claims rest, then strong methods on the other sets, then the rest."""
    strength = ("gmlr", "lsep", "crpc").index(cell.method) if cell.method in ("gmlr", "lsep", "crpc") else 3
    base = not cell.settings and cell.images is None
    home = cell.dataset == "gray-s"
    late = cell.images is not None  # the long runs take hours
    first = home or (cell.supervision == "strong" and base)
    return (cell.seed, late, not first, not home, not base, cell.supervision == "weak", strength)

"""Which cells the tables and figures are made of, the most telling first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product

from gaussianmlr.errors import DataError
from gaussianmlr.paper.cells import Cell
from gaussianmlr.presets import Preset

__all__ = ["FIGURES", "FINE_TUNED", "SIX", "TABLES", "cells_of", "plan"]

# In the order of the paper's tables.
SIX = tuple(product(("crpc", "lsep", "gmlr"), ("weak",))) + tuple(
    product(("crpc", "lsep", "gmlr"), ("strong",))
)
GRAY = ("gray-s", "gray-b", "gray-s-mix", "gray-b-mix")
COLOR = ("color-s", "color-b", "color-s-mix", "color-b-mix")
SMALL = "gray-s-small"
RIVALS = (("ranknet", "strong"), ("zlpr", "strong"), ("pl", "strong"), ("br", "weak"))
# What differs from the preset in the ablation, with the methods it is tried on.
ABLATIONS = (
    ("head=linear", ("gmlr", "crpc")),
    ("method_settings.balance=parts", ("gmlr",)),  # the paper's
    ("method_settings.gauge=canonical", ("gmlr",)),
    ("method_settings.ties=losses", ("crpc",)),  # with published votes: as the paper's code has it
)
# The last stage of one network, trained on four versions of each picture; the stages below see them once.
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
        How many seeds of each; one without it, but five for pictures: the paper's error bars.

    Examples
    --------
    >>> len(cells_of("gray", "cpu")), len(cells_of("error-bars", "cpu"))
    (24, 60)
    >>> cells_of("samples", "cpu")
    []
    """
    if what not in (*TABLES, *FIGURES):
        raise DataError(f"nothing is named {what!r}; known are {', '.join((*TABLES, *FIGURES))}")
    several = 1 if preset == "smoke" else 5
    pictures = range(several if seeds is None else seeds)
    drawn = range(1 if seeds is None else seeds)
    sets: dict[str, tuple[Sequence[str], Iterable[int]]] = {
        "gray": (GRAY, drawn),
        "color": (COLOR, drawn),
        "small-change": ((SMALL,), drawn),
        "real": (("nsid", "avdp"), pictures),
        "error-bars": (("nsid", "avdp"), pictures),
        "adjusting": (SEQUENCES, (0,)),
        "calibration": (("gray-s",), (0,)),
        "extracted": (("nsid",), (0,)),
        "bars": (BARS, (0,)),
        "samples": ((), ()),
    }
    if what == "variance":
        return [Cell(name, "gmlr", "strong", preset) for name in VARIANCES]
    if what == "rivals":
        return [cell.at(seed=seed) for cell in _rivals(preset) for seed in drawn]
    datasets, numbers = sets[what]
    found = [
        Cell(name, method, supervision, preset, seed)
        for name in datasets
        for method, supervision in SIX
        for seed in numbers
    ]
    if what == "real" and preset == "cpu":
        tuned = [Cell("nsid", *one, preset, settings=FINE_TUNED) for one in SIX if one[1] == "strong"]
        found += [cell.at(seed=seed) for cell in tuned for seed in drawn]
    return found


def _rivals(preset: Preset) -> list[Cell]:
    """Everything that was tried on gray-s, at one budget; and the long runs."""
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
    """All trainings that some tables and figures need, each once, the most telling first.

    Examples
    --------
    >>> [cell.name for cell in plan(["gray", "color"], "cpu")][:2]
    ['gray-s_gmlr-strong_cpu_seed0', 'gray-s_lsep-strong_cpu_seed0']
    """
    found = dict.fromkeys(cell.training for what in whats for cell in cells_of(what, preset, seeds))
    return sorted(found, key=_priority)


def _priority(cell: Cell) -> tuple[int, ...]:
    """First what the claims rest on: gray-s, then the strong methods of the other sets, then the rest."""
    strength = ("gmlr", "lsep", "crpc").index(cell.method) if cell.method in ("gmlr", "lsep", "crpc") else 3
    base = not cell.settings and cell.images is None
    home = cell.dataset == "gray-s"
    late = cell.images is not None  # the long run keeps a core busy for hours
    first = home or (cell.supervision == "strong" and base)
    return (cell.seed, late, not first, not home, not base, cell.supervision == "weak", strength)

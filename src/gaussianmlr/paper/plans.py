"""The cells of the tables and figures, the most important first."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product

from gaussianmlr.errors import DataError
from gaussianmlr.model.presets import Preset
from gaussianmlr.paper.cells import TESTED, Cell

__all__ = ["FIGURES", "FINE_TUNED", "OWN_LOSS", "SIX", "TABLES", "cells_of", "plan", "trials"]

# In the order of the paper's tables.
SIX = tuple(product(("crpc", "lsep", "gmlr"), ("weak",))) + tuple(
    product(("crpc", "lsep", "gmlr"), ("strong",))
)
GRAY = ("gray-s", "gray-b", "gray-s-mix", "gray-b-mix")
COLOR = ("color-s", "color-b", "color-s-mix", "color-b-mix")
SMALL = "gray-s-small"
RIVALS = (("ranknet", "strong"), ("zlpr", "strong"), ("pl", "strong"), ("br", "weak"))
REAL = ("nsid", "avdp")
SCENES = ("nsid", TESTED)
SEEDED = (*GRAY[:2], *COLOR[:2])  # sets on which the strong methods have three seeds
OWN_LOSS = "method_settings.balance=parts"  # the paper's loss of GaussianMLR
_FREE = "method_settings.gauge=free"  # on pictures, where the presets have the canonical gauge
# Deviations from the preset in the ablation, with the methods they apply to.
ABLATIONS = (
    (("head=linear",), ("gmlr", "crpc")),
    ((OWN_LOSS,), ("gmlr",)),
    (("method_settings.gauge=canonical",), ("gmlr",)),
    (("method_settings.ties=losses",), ("crpc",)),  # with published votes: as the paper's code has it
    (("head=linear", "method_settings.ties=losses"), ("crpc",)),  # and with its head: the paper's set-up
)
# Rates that every method is given a chance with, on validation images of two sets.
RATES = ("0.001", "0.002", "0.005", "0.01")
TUNED_ON = ("gray-s", "color-b")
TRIED: dict[Preset, int] = {"cpu": 16_000}  # training images of a trial: a quarter of those of a cell
# Fine-tuning of the last stage on four versions of each picture; features below it are computed once.
FINE_TUNED = (
    "augment=randaugment",
    "augment_settings.views=4",
    "backbone=efficientnet-lite0",
    "epochs=20",
    "freeze=1",
    "head_settings.dropout=0.5",
)
LONG_RUNS = (  # images
    ("gray-s", "gmlr", 300_000),
    ("gray-s", "crpc", 300_000),
    ("color-b", "gmlr", 300_000),
    ("color-b", "crpc", 300_000),
    (SMALL, "gmlr", 128_000),
)
REDUCED = 20_000  # images of the runs that show that the preset `paper` works; it has 3,000,000
SEQUENCES = (*GRAY[:2], *COLOR[:2], *GRAY[2:], *COLOR[2:], SMALL)
VARIANCES = ("gray-s", "gray-b", "color-s", "color-b", SMALL)
BARS = ("gray-s", "color-s", "nsid", TESTED, "avdp")

# Data sets of the tables and figures.
SETS = {
    "gray": GRAY,
    "color": COLOR,
    "small-change": (SMALL,),
    "real": REAL,
    "error-bars": REAL,
    "nsid-test": (TESTED,),
    "loss": (*GRAY, *COLOR, SMALL, "nsid"),
    "adjusting": SEQUENCES,
    "calibration": ("gray-s",),
    "extracted": SCENES,
    "bars": BARS,
    "variance": VARIANCES,
    "samples": (),
    "ranks": (),  # of the cells that tables need
}
TABLES = ("gray", "color", "real", "error-bars", "small-change", "nsid-test", "loss", "rivals")
FIGURES = ("adjusting", "calibration", "extracted", "bars", "variance", "samples", "ranks")


def cells_of(what: str, preset: Preset, seeds: int | None = None) -> list[Cell]:
    """The cells of a table or figure.

    Parameters
    ----------
    what : str
        One of `TABLES` or `FIGURES`.
    preset : {"paper", "cpu", "smoke"}
        The preset of all of them.
    seeds : int, optional
        Seeds per cell; by default one, but five for pictures, as for the error bars of the paper, and three
        for the strong methods on four sets of Ranked MNIST.

    Examples
    --------
    >>> len(cells_of("gray", "cpu")), len(cells_of("error-bars", "cpu"))
    (36, 60)
    >>> cells_of("samples", "cpu")
    []
    """
    if what not in (*TABLES, *FIGURES):
        raise DataError(f"no table or figure {what!r}; known are {', '.join((*TABLES, *FIGURES))}")
    if what == "rivals":
        return [cell.at(seed=seed) for cell in _rivals(preset) for seed in range(seeds or 1)]
    if what == "loss":
        return _of_the_loss(preset, seeds)
    methods = (("gmlr", "strong"),) if what == "variance" else SIX
    found = [
        Cell(name, *one, preset, seed)
        for name, one in product(SETS[what], methods)
        for seed in (range(1) if what in FIGURES else _seeds(name, one[1], preset, seeds))
    ]
    if what == "real" and preset == "cpu":
        strong = product(SIX[3:], range(seeds or 1))
        found += [Cell("nsid", *one, preset, seed, settings=FINE_TUNED) for one, seed in strong]
    if what == "nsid-test":  # the orders of all ten rankers, instead of their aggregate
        found += [cell.at(settings=("rankers=all",)) for cell in found]
    return found


def _seeds(dataset: str, supervision: str, preset: Preset, seeds: int | None = None) -> range:
    usual = 1
    if preset != "smoke" and dataset in (*REAL, TESTED):
        usual = 5
    elif preset == "cpu" and dataset in SEEDED and supervision == "strong":
        usual = 3
    return range(usual if seeds is None else seeds)


def _of_the_loss(preset: Preset, seeds: int | None) -> list[Cell]:
    """GaussianMLR as the preset has it, and with the paper's own loss and a free gauge."""
    found = []
    for name in SETS["loss"]:
        own = (OWN_LOSS, _FREE) if name in REAL else (OWN_LOSS,)
        # Ranked MNIST has seeds of the preset's loss for the other tables; here one is enough.
        counts = _seeds(name, "strong", preset, seeds) if name in REAL else range(seeds or 1)
        found += [
            Cell(name, "gmlr", "strong", preset, seed, settings) for settings in ((), own) for seed in counts
        ]
    return found


def _rivals(preset: Preset) -> list[Cell]:
    """All methods and ablations on gray-s at one budget, and the long runs."""
    trained = [Cell("gray-s", *one, preset) for one in (*SIX, *RIVALS)]
    ablations = [
        Cell("gray-s", method, "strong", preset, settings=settings)
        for settings, methods in ABLATIONS
        for method in methods
    ]
    more = []
    if preset == "cpu":
        more = [Cell(name, method, "strong", preset, images=images) for name, method, images in LONG_RUNS]
        # The paper's own network, at a hundred and fiftieth of its images: it runs, no more.
        more += [
            Cell("gray-s", method, "strong", "paper", settings=("epochs=1",), images=REDUCED)
            for method in ("gmlr", "crpc")
        ]
    return [one for cell in (*trained, *ablations, *more) for one in cell.readings]


def trials(preset: Preset) -> list[Cell]:
    """The runs that are measured on validation images only, to choose the rate of every strong method.

    Examples
    --------
    >>> len(trials("cpu")), trials("cpu")[0].name
    (24, 'gray-s_crpc-strong_cpu_seed0_rate-0.001_images-16000')
    """
    images = TRIED.get(preset)
    return [
        Cell(name, method, "strong", preset, settings=(f"rate={rate}",), images=images)
        for name, (method, _), rate in product(TUNED_ON, SIX[3:], RATES)
    ]


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

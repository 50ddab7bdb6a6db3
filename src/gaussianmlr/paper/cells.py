"""Cells: one training and one reading of it, measured once on the test split, stored as one JSON file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from gaussianmlr._utils.bounded import shorter
from gaussianmlr.comparison.cells import cell_files, read_sealed, write_sealed
from gaussianmlr.data.ranked_mnist.settings import SETTINGS
from gaussianmlr.errors import DataError, shorten
from gaussianmlr.methods import Method, available, make
from gaussianmlr.methods import base as methods
from gaussianmlr.model.presets import PRESETS, Preset, preset
from gaussianmlr.model.recipe import Recipe
from gaussianmlr.model.settings import changed
from gaussianmlr.nn.backbones import registry as backbones
from gaussianmlr.paper.values import Values, write_values

__all__ = ["METRICS", "MORE", "PHOTOS", "READINGS", "TESTED", "Cell", "read_cells", "recipe_of", "write_cell"]

METRICS = ("tau_b", "spearman_rho", "gamma", "hamming_loss", "max1_error", "f1")
MORE = ("f1_instance", "positives_tau")  # metrics that cells of the first versions lack
TESTED = "nsid-test"  # the natural scenes on the paper's split, with frozen recipes
PHOTOS = ("nsid", TESTED, "avdp")
# Sets of the same images, whose weak labels are the same too: one training, tested on both orders.
TWINS = {"gray-b-mix": "gray-s-mix", "color-b-mix": "color-s-mix"}
# Readings of one trained network, the usual one first: they share training and test.
READINGS: Mapping[str, tuple[str, ...]] = {"crpc": ("", "vote=published"), "lsep": ("", "reading=margin")}
_HEAD = ("dataset", "method", "supervision", "preset", "seed")


@dataclass(frozen=True)
class Cell:
    """A measurement: data set, method, supervision, preset, seed, and deviations from the preset.

    Parameters
    ----------
    dataset : str
        A Ranked MNIST set, ``nsid``, ``nsid-test`` (the paper's split) or ``avdp``.
    method, supervision : str
        As in `methods.make`.
    preset : {"paper", "cpu", "smoke"}
        Source of the recipe.
    seed : int
        Seed of weights, batches and, if images never repeat, of the images.
    settings : tuple of str
        Deviations from the preset: texts ``field=value`` or ``field.key=value``.
    images : int, optional
        Total number of training images; by default the preset's.
    reading : str
        Another way to read the network, one of `READINGS`.

    Examples
    --------
    >>> cell = Cell("gray-s", "crpc", "strong", "cpu", settings=("head=linear",), reading="vote=published")
    >>> cell.name
    'gray-s_crpc-strong_cpu_seed0_head-linear_vote-published'
    >>> cell.training.name
    'gray-s_crpc-strong_cpu_seed0_head-linear'
    """

    dataset: str
    method: str
    supervision: str
    preset: Preset
    seed: int = 0
    settings: tuple[str, ...] = ()
    images: int | None = None
    reading: str = ""

    def __post_init__(self) -> None:
        if self.dataset not in (*SETTINGS, *PHOTOS):
            known = ", ".join((*SETTINGS, *PHOTOS))
            raise DataError(f"there is no data set {shorten(self.dataset)}; known are {known}")
        if self.method not in available():
            raise DataError(f"no method {self.method!r}; known are {', '.join(available())}")
        make(self.method, supervision=self.supervision)
        if self.preset not in PRESETS:
            raise DataError(f"no preset {self.preset!r}; known are {', '.join(PRESETS)}")
        if self.seed < 0 or (self.images is not None and self.images < 1):
            raise DataError(f"seed {self.seed} and images {self.images}; expected 0 or more and 1 or more")
        if self.reading not in READINGS.get(self.method, ("",)):
            known = ", ".join(filter(None, READINGS.get(self.method, ()))) or "none"
            raise DataError(f"no reading {self.reading!r} of {self.method!r}; known are {known}")
        object.__setattr__(self, "settings", tuple(sorted(self.settings)))

    @property
    def name(self) -> str:
        """Name of the file, without suffix."""
        parts = [self.dataset, f"{self.method}-{self.supervision}", self.preset, f"seed{self.seed}"]
        parts += [_plain(short(text)) for text in self.settings]
        parts += [] if self.images is None else [f"images-{self.images}"]
        return shorter("_".join([*parts, *filter(None, [_plain(self.reading)])]))

    @property
    def training(self) -> Cell:
        """The cell whose name is also that of the training: the usual reading, of twins the first.

        Examples
        --------
        >>> Cell("gray-b-mix", "gmlr", "weak", "cpu").training.dataset
        'gray-s-mix'
        """
        shared = TWINS if self.supervision == "weak" else {}
        return replace(self, reading="", dataset=shared.get(self.dataset, self.dataset))

    @property
    def readings(self) -> tuple[Cell, ...]:
        """All cells of the same training."""
        first = self.training
        sets = [first.dataset]
        if self.supervision == "weak":
            sets += [name for name, twin in TWINS.items() if twin == first.dataset]
        each = READINGS.get(self.method, ("",))
        return tuple(replace(first, dataset=name, reading=one) for name in sets for one in each)

    @property
    def is_drawn(self) -> bool:
        """Whether figures show it: the unchanged preset, seed 0, the usual reading."""
        return self == Cell(self.dataset, self.method, self.supervision, self.preset)

    @property
    def kind(self) -> str:
        """``canvas`` for Ranked MNIST, ``photo`` for pictures."""
        return "photo" if self.dataset in PHOTOS else "canvas"

    def at(self, **changes: Any) -> Cell:
        """The cell with some fields changed."""
        return replace(self, **changes)


def recipe_of(cell: Cell) -> Recipe:
    """The recipe of a cell: its preset with the cell's settings.

    Examples
    --------
    >>> recipe_of(Cell("gray-s", "lsep", "weak", "paper", seed=3)).seed
    3
    """
    kind: Any = cell.kind
    recipe = preset(cell.preset, kind, method=cell.method, supervision=cell.supervision)
    recipe = recipe.replace(seed=cell.seed)
    if cell.preset == "smoke" and cell.kind == "canvas":
        recipe = recipe.replace(backbone_settings={**recipe.backbone_settings, "widths": [8, 16, 16]})
    if cell.supervision == "weak" and cell.dataset in {*TWINS, *TWINS.values()}:
        recipe = recipe.replace(select="loss")  # neither of the two orders chooses the epoch
    for text in cell.settings:
        recipe = changed(recipe, text)
    return read_as(recipe, cell.reading)


def read_as(recipe: Recipe, reading: str) -> Recipe:
    """The recipe with another reading of the outputs."""
    if not reading:
        return recipe
    name, _, value = reading.partition("=")
    return recipe.replace(method_settings={**recipe.method_settings, name: value})


def reading_methods(cell: Cell) -> list[Method]:
    """The methods that read the outputs of the cell's network, one per reading."""
    recipes = map(recipe_of, cell.readings)
    return [make(recipe.method, **recipe.method_settings) for recipe in recipes]


@dataclass(frozen=True)
class Tested:
    """A reading of a network on test instances, and its probes for figures."""

    values: Values
    probes: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Measured:
    """Result of a training: one test per cell of `Cell.readings`, cost, and what it was trained on."""

    tests: list[Tested]
    images: int
    seconds: float
    about: dict[str, Any]


@dataclass(frozen=True)
class _Stored:
    """The fields that every file of a cell has; files hold others too."""

    dataset: str
    method: str
    supervision: str
    preset: str
    seed: int
    metrics: dict[str, float]
    images_seen: int
    seconds: float
    variant: dict[str, list[str] | int | str | None] = field(default_factory=dict)
    probes: dict[str, Any] = field(default_factory=dict)
    values: dict[str, str | int] | None = None

    def __post_init__(self) -> None:
        if missing := [name for name in METRICS if name not in self.metrics]:
            raise ValueError(f"no number for the metric {missing[0]!r}")
        _ = self.cell  # refuses unknown names

    @property
    def cell(self) -> Cell:
        """What was measured."""
        variant: dict[str, Any] = {"settings": (), **self.variant}
        head: dict[str, Any] = {name: getattr(self, name) for name in _HEAD}
        return Cell(**head | variant | {"settings": tuple(variant["settings"])})


def write_cell(
    folder: str | Path, cell: Cell, facts: Mapping[str, Any], values: Values | None = None
) -> Path:
    """Write the JSON file of a cell atomically, and its per-instance values beside it.

    Parameters
    ----------
    folder : path-like
        Folder of the cells.
    cell : Cell
        What was measured.
    facts : mapping
        metrics (percent), images_seen, seconds, recipe, versions, commit, and others; probes, which are
        long, are written on one line.
    values : Values, optional
        Scores and ranks of the test instances.

    Raises
    ------
    ValueError
        For numbers that JSON cannot hold.
    """
    head = {name: getattr(cell, name) for name in _HEAD}
    variant = {"settings": list(cell.settings), "images": cell.images, "reading": cell.reading}
    file = _file_of(cell, folder)
    kept = {} if values is None else {"values": write_values(file.with_suffix(".npz"), values)}
    write_sealed(file, {**head, "variant": variant, **facts, **kept}, indent=2, one_line="probes")
    return file


def read_cells(folder: str | Path) -> dict[Cell, dict[str, Any]]:
    """Read all cells of a folder.

    Raises
    ------
    DataError
        For a file that is not a cell, with what is missing.
    """
    found = {}
    for file in cell_files(folder):
        stored, facts = read_sealed(_Stored, file)
        recipe = recipe_of(stored.cell)
        methods.check_named(recipe.method, file)
        backbones.check_named(recipe.backbone, file)
        if file.stem != stored.cell.name:
            raise DataError(f"{file} describes the cell {stored.cell.name}; expected a file of that name")
        found[stored.cell] = facts
    return found


def is_landed(cell: Cell, folder: str | Path, *, with_values: bool = False) -> bool:
    """Whether all readings of the cell's training are stored, with probes if figures show them.

    Cells from before cells kept per-instance values count, unless `with_values` asks for these too.
    """
    files = [_file_of(one, folder) for one in cell.readings]
    if not all(file.is_file() for file in files):
        return False
    facts = [read_sealed(_Stored, file)[1] for file in files]  # a damaged one is refused, not passed over
    if with_values and not all(one.get("values") for one in facts):
        return False
    return not cell.training.is_drawn or "probes" in facts[0]


def _file_of(cell: Cell, folder: str | Path) -> Path:
    return Path(folder) / f"{cell.name}.json"


def short(setting: str) -> str:
    """A setting without the name of its field.

    Examples
    --------
    >>> short("backbone_settings.curves=true"), short("rate=0.01")
    ('curves=true', 'rate=0.01')
    """
    name, equals, value = setting.partition("=")
    return f"{name.rpartition('.')[2]}{equals}{value}"


def _plain(text: str) -> str:
    """A setting as part of a file name."""
    kept = (char if char.isalnum() or char in ".-" else "-" for char in text)
    return "".join(kept)

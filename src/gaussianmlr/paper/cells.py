"""Cells: one training and one reading of it, measured once on the test split, kept as one JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gaussianmlr.data.settings import SETTINGS
from gaussianmlr.errors import DataError, shorten
from gaussianmlr.files import write_text
from gaussianmlr.methods import available, make
from gaussianmlr.presets import PRESETS, Preset, preset
from gaussianmlr.recipe import Recipe

__all__ = ["METRICS", "PHOTOS", "READINGS", "Cell", "read_cells", "recipe_of", "write_cell"]

METRICS = ("tau_b", "spearman_rho", "gamma", "hamming_loss", "max1_error", "f1")
PHOTOS = ("nsid", "avdp")
# Ways to read one trained network, the usual one first: they share its training and its test.
READINGS: Mapping[str, tuple[str, ...]] = {
    "crpc": ("", "vote=published"),
    "lsep": ("", "reading=margin"),
}
_FIELDS = ("dataset", "method", "supervision", "preset", "seed", "metrics", "images_seen", "seconds")


@dataclass(frozen=True)
class Cell:
    """What is measured: a data set, a method, its supervision, a preset, a seed, and what differs.

    Parameters
    ----------
    dataset : str
        A Ranked MNIST set, ``nsid`` or ``avdp``.
    method, supervision : str
        As in `methods.make`.
    preset : {"paper", "cpu", "smoke"}
        Where the recipe comes from.
    seed : int
        Of weights, batches and, where images are drawn without end, of the images.
    settings : tuple of str
        What differs from the preset: texts ``field=value`` or ``field.key=value``.
    images : int, optional
        Training images in all; the preset's number without it.
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
        """The name of its file."""
        parts = [self.dataset, f"{self.method}-{self.supervision}", self.preset, f"seed{self.seed}"]
        parts += [_plain(short(text)) for text in self.settings]
        parts += [] if self.images is None else [f"images-{self.images}"]
        return "_".join([*parts, *filter(None, [_plain(self.reading)])])

    @property
    def training(self) -> Cell:
        """The cell of the usual reading, which has the name of the training too."""
        return replace(self, reading="")

    @property
    def readings(self) -> tuple[Cell, ...]:
        """All cells that come from the same training."""
        return tuple(replace(self, reading=one) for one in READINGS.get(self.method, ("",)))

    @property
    def is_drawn(self) -> bool:
        """Whether figures show it: the preset as it is, seed 0, the usual reading."""
        return self == Cell(self.dataset, self.method, self.supervision, self.preset)

    @property
    def kind(self) -> str:
        """``canvas`` for Ranked MNIST, ``photo`` for pictures."""
        return "photo" if self.dataset in PHOTOS else "canvas"

    def at(self, **changes: Any) -> Cell:
        """The cell with some fields changed."""
        return replace(self, **changes)


def recipe_of(cell: Cell) -> Recipe:
    """The recipe of a cell: its preset's, then what differs.

    Examples
    --------
    >>> recipe_of(Cell("gray-s", "lsep", "weak", "paper", seed=3)).seed
    3
    """
    from gaussianmlr.commands.settings import changed

    kind: Any = cell.kind
    recipe = preset(cell.preset, kind, method=cell.method, supervision=cell.supervision)
    recipe = recipe.replace(seed=cell.seed)
    if cell.preset == "smoke" and cell.kind == "canvas":
        recipe = recipe.replace(backbone_settings={**recipe.backbone_settings, "widths": [8, 16, 16]})
    for text in cell.settings:
        recipe = changed(recipe, text)
    return read_as(recipe, cell.reading)


def read_as(recipe: Recipe, reading: str) -> Recipe:
    """A recipe whose method reads its outputs in another way."""
    if not reading:
        return recipe
    name, _, value = reading.partition("=")
    return recipe.replace(method_settings={**recipe.method_settings, name: value})


def write_cell(folder: str | Path, cell: Cell, facts: Mapping[str, Any]) -> Path:
    """Write the JSON of a cell, whole or not at all.

    Parameters
    ----------
    folder : path-like
        Where cells are kept.
    cell : Cell
        What was measured.
    facts : mapping
        metrics (percent), images_seen, seconds, recipe, versions, commit, and what else is known; probes,
        which are long, stand on one line.

    Raises
    ------
    ValueError
        For numbers that JSON does not know.
    """
    file = Path(folder) / f"{cell.name}.json"
    head = {
        "dataset": cell.dataset,
        "method": cell.method,
        "supervision": cell.supervision,
        "preset": cell.preset,
        "seed": cell.seed,
        "variant": {"settings": list(cell.settings), "images": cell.images, "reading": cell.reading},
    }
    known = {**head, **facts}
    probes = known.pop("probes", None)
    text = json.dumps(known, indent=2, ensure_ascii=False, allow_nan=False)
    if probes is not None:
        line = json.dumps(probes, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        text = text.removesuffix("\n}") + f',\n  "probes": {line}\n}}'
    write_text(file, text + "\n")
    return file


def read_cells(folder: str | Path) -> dict[Cell, dict[str, Any]]:
    """All cells of a folder, by what they are.

    Raises
    ------
    DataError
        For a file that is no cell, with what it lacks.
    """
    found = {}
    for file in sorted(Path(folder).glob("*.json")):
        try:
            facts = json.loads(file.read_text("utf-8"))
        except ValueError as error:
            raise DataError(f"{file} is no JSON: {error}") from None
        found[_cell_of(facts, file)] = facts
    return found


def _cell_of(facts: Any, file: Path) -> Cell:
    if not isinstance(facts, dict):
        raise DataError(f"{file} holds {shorten(facts)}; expected named fields")
    if missing := [name for name in _FIELDS if name not in facts]:
        raise DataError(f"{file} has no field {missing[0]!r}; a cell has {', '.join(_FIELDS)}")
    if missing := [name for name in METRICS if not isinstance(facts["metrics"].get(name), int | float)]:
        raise DataError(f"{file} has no number for the metric {missing[0]!r}")
    if not isinstance(facts.get("probes", {}), dict):
        raise DataError(f"{file} has probes {shorten(facts['probes'])}; expected named fields")
    variant = facts.get("variant", {})
    cell = Cell(
        **{name: facts[name] for name in ("dataset", "method", "supervision", "preset", "seed")},
        settings=tuple(variant.get("settings", ())),
        images=variant.get("images"),
        reading=variant.get("reading", ""),
    )
    if file.stem != cell.name:
        raise DataError(f"{file} describes the cell {cell.name}; expected a file of that name")
    return cell


def is_landed(cell: Cell, folder: str | Path) -> bool:
    """Whether all readings of the cell's training have landed, with the probes of one that figures show."""
    files = [Path(folder) / f"{one.name}.json" for one in cell.readings]
    if not all(file.is_file() for file in files):
        return False
    return not cell.training.is_drawn or "probes" in json.loads(files[0].read_text("utf-8"))


def short(setting: str) -> str:
    """A setting without the field that holds it.

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

"""From a cell to its JSON: train once, go on after any interruption, measure once, land whole."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch

from gaussianmlr.batches import RankedSet, batches
from gaussianmlr.errors import DataError
from gaussianmlr.files import alone
from gaussianmlr.fitting import fit
from gaussianmlr.methods import Method, make
from gaussianmlr.metrics import PaperMetrics
from gaussianmlr.model import Model, load, read_config
from gaussianmlr.origin import Origin
from gaussianmlr.paper.canvas import open_canvases
from gaussianmlr.paper.cells import Cell, is_landed, read_as, recipe_of, write_cell
from gaussianmlr.paper.probing import probe_canvas
from gaussianmlr.provenance import commit, versions
from gaussianmlr.recipe import Recipe
from gaussianmlr.training import Watcher

__all__ = ["Places", "Sources", "measure", "run_cell"]

Outcome = Literal["landed", "there", "busy", "interrupted"]


@dataclass(frozen=True)
class Sources:
    """Where the data is that cannot be drawn from nothing."""

    digits: str = "auto"
    nsid: Path | None = None
    avdp: Path | None = None


@dataclass(frozen=True)
class Places:
    """Where things are kept: `work` for runs and models, `results` for cells, tables and figures."""

    work: Path
    results: Path

    @property
    def cells(self) -> Path:
        """The folder of the JSON files."""
        return self.results / "cells"

    def run(self, cell: Cell) -> Path:
        """The folder of a cell's training."""
        return self.work / cell.training.name


def run_cell(
    cell: Cell,
    places: Places,
    sources: Sources,
    *,
    accelerator: str = "auto",
    watcher: Watcher | None = None,
) -> Outcome:
    """Train, measure and write a cell with all readings of its training, unless they are there.

    Parameters
    ----------
    cell : Cell
        What to measure.
    places : Places
        Where runs and results are kept. The same call goes on where an earlier one was cut.
    sources : Sources
        Where digits and pictures are.
    accelerator : str
        Lightning's.
    watcher : Watcher, optional
        Is told how training goes on.

    Returns
    -------
    {"landed", "there", "busy", "interrupted"}
        Whether it was measured now or before, another process is at it, or Ctrl-C stopped it.
    """
    cell = cell.training
    if is_landed(cell, places.cells):
        return "there"
    with alone(_lock_of(places.run(cell))) as first:
        if not first:
            return "busy"
        if is_landed(cell, places.cells):  # the other process has just finished
            return "there"
        made_by = commit()  # of the code that trains, whatever is committed meanwhile
        if cell.kind == "photo":
            from gaussianmlr.paper.photos import run_photos

            found = run_photos(cell, places.run(cell), sources, accelerator=accelerator, watcher=watcher)
        else:
            found = _run_canvas(cell, places.run(cell), sources, accelerator, watcher)
        if found is None:
            return "interrupted"
        recipe = recipe_of(cell)
        for one, metrics in zip(cell.readings, found.metrics):
            facts = {
                "metrics": {name: round(100 * value, 4) for name, value in metrics.items()},
                "images_seen": found.images,
                "seconds": round(found.seconds, 1),
                "data": found.about,
                "recipe": read_as(recipe, one.reading).to_dict(),
                "versions": versions(),
                "commit": made_by,
            }
            if one.is_drawn:
                facts["probes"] = found.probes
            write_cell(places.cells, one, facts)
        return "landed"


@dataclass(frozen=True)
class Measured:
    """What a training gave: metrics of each reading as fractions, its cost, and what figures show of it."""

    metrics: list[dict[str, float]]
    images: int
    seconds: float
    about: dict[str, Any]
    probes: dict[str, Any]


def _run_canvas(
    cell: Cell, folder: Path, sources: Sources, accelerator: str, watcher: Watcher | None
) -> Measured | None:
    recipe = recipe_of(cell)
    data = open_canvases(cell, recipe, sources.digits)
    model = train_once(
        recipe,
        data.train,
        data.validation,
        labels=data.test.labels,
        folder=folder,
        fingerprint=data.fingerprint,
        accelerator=accelerator,
        watcher=watcher,
    )
    if model is None:
        return None
    shown = data.validation
    Origin(
        cell.dataset,
        digest=shown.digits.digest(),
        validation=len(shown),
        digits=sources.digits,
        shared_digits=shown.shared_digits,
    ).write(folder)
    found = measure(model, reading_methods(cell), data.test)
    _tidy(folder)
    probes: dict[str, Any] = {}
    if cell.is_drawn:
        probes = probe_canvas(model, cell.dataset, data.test.digits, small=cell.preset == "smoke")
    return Measured(found, int(model.about["images"]), float(model.about["seconds"]), data.about, probes)


def train_once(
    recipe: Recipe,
    data: RankedSet,
    validation: RankedSet | None,
    *,
    labels: tuple[str, ...],
    folder: Path,
    fingerprint: str,
    accelerator: str = "auto",
    watcher: Watcher | None = None,
) -> Model | None:
    """The model of a run, trained now or earlier; none where Ctrl-C stopped it."""
    there = finished_model(folder)
    if there is not None and there.recipe == recipe and there.about.get("fingerprint") == fingerprint:
        return there
    fitted = fit(
        recipe,
        data,
        validation,
        labels=labels,
        out=folder,
        fingerprint=fingerprint,
        accelerator=accelerator,
        watcher=watcher,
    )
    return None if fitted.result.interrupted else fitted.model


def finished_model(folder: Path) -> Model | None:
    """The model of a run that came to its end."""
    if not (folder / "model").is_dir():
        return None
    if read_config(folder / "model").get("about", {}).get("interrupted", True):
        return None
    return load(folder / "model")


def reading_methods(cell: Cell) -> list[Method]:
    """The methods that read the outputs of the cell's network, one a reading."""
    found = []
    for one in cell.readings:
        recipe = recipe_of(one)
        found.append(make(recipe.method, **recipe.method_settings))
    return found


@torch.no_grad()
def measure(
    model: Model, methods: Sequence[Method], data: RankedSet, batch_size: int = 64
) -> list[dict[str, float]]:
    """The paper's six metrics of several readings of one network, from one pass over the data."""
    device = next(model.network.parameters()).device
    model.network.eval()
    measures = [PaperMetrics() for _ in methods]
    for batch in batches(data, torch.arange(len(data)), batch_size):
        outputs = model.network(batch.inputs.to(device))
        for method, found in zip(methods, measures):
            found.update(method.read(outputs).scores.float().cpu(), batch.ranks)
    return [{name: float(value) for name, value in found.compute().items()} for found in measures]


def _tidy(folder: Path) -> None:
    """The model is kept; what is only needed to go on with its training is not."""
    for name in ("checkpoint.pt", "best.pt"):
        (folder / name).unlink(missing_ok=True)


def _lock_of(folder: Path) -> Path:
    return folder.with_name(f".{folder.name}.lock")


def is_busy(cell: Cell, places: Places) -> bool:
    """Whether a process is at work on a cell."""
    if not _lock_of(places.run(cell)).exists():
        return False
    with alone(_lock_of(places.run(cell))) as first:
        return not first


def run_all(
    cells: Sequence[Cell],
    places: Places,
    sources: Sources,
    *,
    accelerator: str = "auto",
    watcher: Watcher | None = None,
    say: Callable[[str], None] = lambda line: None,
) -> bool:
    """Run cells that are missing, one after the other; false where Ctrl-C stopped it.

    A cell that another process works on is left to it, so several processes can share a plan.
    """
    todo = list(dict.fromkeys(cell.training for cell in cells))
    for number, cell in enumerate(todo, 1):
        if is_landed(cell, places.cells):
            continue
        say(f"cell {number} of {len(todo)}: {cell.name}")
        try:
            outcome = run_cell(cell, places, sources, accelerator=accelerator, watcher=watcher)
        except DataError as error:
            raise DataError(f"cell {cell.name}: {error}") from None
        if outcome == "interrupted":
            return False
        if outcome == "busy":
            say("another process is at it")
    return True

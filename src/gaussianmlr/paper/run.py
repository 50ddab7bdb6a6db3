"""Run cells: train once, resume after interruptions, measure once, write the JSON file atomically."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from gaussianmlr._utils.files import alone
from gaussianmlr._utils.leftovers import sweep
from gaussianmlr._utils.progress import Watcher
from gaussianmlr._utils.provenance import commit, machine, versions
from gaussianmlr.data.loading import RankedSet
from gaussianmlr.data.ranked_mnist.sets import RankedMNIST
from gaussianmlr.errors import DataError
from gaussianmlr.model.model import Model, load, read_config
from gaussianmlr.model.recipe import Recipe
from gaussianmlr.paper.canvas import open_canvases
from gaussianmlr.paper.cells import (
    TESTED,
    Cell,
    Measured,
    Tested,
    is_landed,
    read_as,
    reading_methods,
    recipe_of,
    write_cell,
)
from gaussianmlr.paper.frozen import check_frozen
from gaussianmlr.paper.photos import all_outputs, run_photos
from gaussianmlr.paper.places import Places, Sources
from gaussianmlr.paper.probes import probe_canvas
from gaussianmlr.paper.values import Values, measured
from gaussianmlr.training.fit import fit
from gaussianmlr.training.origin import Origin

__all__ = ["run_all", "run_cell"]

Outcome = Literal["landed", "there", "busy", "interrupted"]


def run_cell(
    cell: Cell,
    places: Places,
    sources: Sources,
    *,
    accelerator: str = "auto",
    watcher: Watcher | None = None,
    with_values: bool = False,
) -> Outcome:
    """Train, measure and write a cell with all readings of its training, unless they exist.

    Parameters
    ----------
    cell : Cell
        The cell to measure.
    places : Places
        Folders of runs and results. The same call resumes an interrupted one.
    sources : Sources
        Locations of digits and pictures.
    accelerator : str
        Accelerator of Lightning.
    watcher : Watcher, optional
        Receives the progress of the training.
    with_values : bool
        Whether a cell that lacks per-instance values is run again.

    Returns
    -------
    {"landed", "there", "busy", "interrupted"}
        Measured now, measured before, running in another process, or stopped by Ctrl-C.
    """
    cell = cell.training
    if is_landed(cell, places.cells, with_values=with_values):
        return "there"
    frozen = check_frozen(cell, places.frozen) if cell.dataset == TESTED else None
    with alone(lock_of(places.run(cell))) as first:
        if not first:
            return "busy"
        if is_landed(cell, places.cells, with_values=with_values):  # the other process has just finished
            return "there"
        made_by = commit()  # read before training, as commits may follow meanwhile
        if cell.kind == "photo":
            found = run_photos(cell, places.run(cell), sources, accelerator=accelerator, watcher=watcher)
        else:
            found = _run_canvas(cell, places.run(cell), sources, accelerator, watcher)
        if found is None:
            return "interrupted"
        for one, tested in zip(cell.readings, found.tests, strict=True):
            twin = {} if one.dataset == cell.dataset else {"trained_on": cell.dataset}
            facts = {
                "metrics": {name: round(100 * value, 4) for name, value in measured(tested.values).items()},
                "images_seen": found.images,
                "seconds": round(found.seconds, 1),
                "data": {**found.about, **twin},
                "recipe": read_as(recipe_of(cell), one.reading).to_dict(),
                "versions": versions(),
                "machine": machine(),
                "commit": made_by,
            }
            if frozen is not None:
                facts["frozen"] = frozen
            if one.is_drawn:
                facts["probes"] = tested.probes
            write_cell(places.cells, one, facts, tested.values)
        return "landed"


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
    tests = measure_canvases(cell, model, data.test)
    _tidy(folder)
    return Measured(tests, int(model.about["images"]), float(model.about["seconds"]), data.about)


def measure_canvases(cell: Cell, model: Model, images: RankedMNIST) -> list[Tested]:
    """All readings of a model on the test images of a cell, and of its twin, which are the same images."""
    found, ranks = all_outputs(model.network, images)
    methods = reading_methods(cell)
    tests = []
    for one, method in zip(cell.readings, methods, strict=True):
        scores = method.read(found).scores.float().numpy()
        truth = ranks if one.dataset == cell.dataset else ranks_of(one.dataset, images)
        probes: dict[str, Any] = {}
        if one.is_drawn:
            probes = probe_canvas(model, one.dataset, images.digits, small=cell.preset == "smoke")
        tests.append(Tested(Values(scores, truth.astype(np.int16)), probes))
    return tests


def ranks_of(dataset: str, images: RankedMNIST) -> npt.NDArray[np.int64]:
    """The ranks of the same images by the factor of another set."""
    twin = RankedMNIST(dataset, images.split, size=len(images), seed=images.seed, digits=images.digits)
    found: npt.NDArray[np.int64] = twin.recipes(np.arange(len(images))).ranks
    return found


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
    """The model of a run, trained now or earlier; None if Ctrl-C stopped it."""
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
    """The model of a finished run; None if it is not finished."""
    sweep(folder)  # a model that a dead process had moved aside is there again
    if not (folder / "model").is_dir():
        return None
    try:
        if read_config(folder / "model").get("about", {}).get("interrupted", True):
            return None
        return load(folder / "model")
    except DataError as error:
        raise DataError(f"{error}; or remove {folder} to train it again") from None


def _tidy(folder: Path) -> None:
    """Remove the checkpoints, which are needed only to resume."""
    for name in ("checkpoint.pt", "best.pt"):
        (folder / name).unlink(missing_ok=True)


def lock_of(folder: Path) -> Path:
    return folder.with_name(f".{folder.name}.lock")


def is_busy(cell: Cell, places: Places) -> bool:
    """Whether a process is running a cell."""
    if not lock_of(places.run(cell)).exists():
        return False
    with alone(lock_of(places.run(cell))) as first:
        return not first


def run_all(
    cells: Sequence[Cell],
    places: Places,
    sources: Sources,
    *,
    accelerator: str = "auto",
    watcher: Watcher | None = None,
    say: Callable[[str], None] = lambda line: None,
    with_values: bool = False,
) -> bool:
    """Run the missing cells one after the other; False if Ctrl-C stopped it.

    A cell that runs in another process is skipped, so several processes can share a plan.
    """
    todo = list(dict.fromkeys(cell.training for cell in cells))
    for number, cell in enumerate(todo, 1):
        if is_landed(cell, places.cells, with_values=with_values):
            continue
        say(f"cell {number} of {len(todo)}: {cell.name}")
        try:
            outcome = run_cell(
                cell, places, sources, accelerator=accelerator, watcher=watcher, with_values=with_values
            )
        except DataError as error:
            raise DataError(f"cell {cell.name}: {error}") from None
        if outcome == "interrupted":
            return False
        if outcome == "busy":
            say("running in another process")
    return True

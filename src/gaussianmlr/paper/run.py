"""Run cells: train once, resume after interruptions, measure once, write the JSON file atomically."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, nullcontext
from dataclasses import dataclass
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
from gaussianmlr.engines.folders import packed, unpack
from gaussianmlr.engines.jobs import Engine, Tell, scratch
from gaussianmlr.engines.jobs import run as run_jobs
from gaussianmlr.errors import DataError, shorten
from gaussianmlr.model.model import Model, load, read_config
from gaussianmlr.model.recipe import Recipe
from gaussianmlr.paper.canvas import digits_of, open_canvases
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
    with _claimed(cell, places, with_values) as state:
        if state != "missing":
            return state
        work = _Work(sources, accelerator, places, watcher)
        found = _measure(work, _Todo(cell, _frozen(cell, places)), lambda step, value: False)
        if found is None:
            return "interrupted"
        _land(found, cell, places)
        return "landed"


@dataclass(frozen=True)
class _Todo:
    """A training with all its readings, and what is kept about the freeze of its recipe."""

    cell: Cell
    frozen: dict[str, Any] | None

    def __str__(self) -> str:
        return f"the cell {self.cell.name}"


@dataclass(frozen=True)
class _Work:
    """What cells have in common."""

    sources: Sources
    accelerator: str
    places: Places | None = None  # of the runs; on other machines each has a folder of its own
    watcher: Watcher | None = None
    digits: dict[str, Any] | None = None  # what canvases must be drawn from


@dataclass(frozen=True)
class _Found:
    """The cells of a training, with facts and values, and the files of its run if it was elsewhere."""

    cells: list[tuple[Cell, dict[str, Any], Values]]
    run: dict[str, bytes] | None


@contextmanager
def _claimed(cell: Cell, places: Places, with_values: bool) -> Iterator[Literal["missing", "there", "busy"]]:
    """Claim a training for this process; yield whether its cells are missing."""
    if is_landed(cell, places.cells, with_values=with_values):
        yield "there"
        return
    with alone(lock_of(places.run(cell))) as first:
        if not first:
            yield "busy"
        else:  # another process may have just finished it
            yield "there" if is_landed(cell, places.cells, with_values=with_values) else "missing"


def _frozen(cell: Cell, places: Places) -> dict[str, Any] | None:
    return check_frozen(cell, places.frozen) if cell.dataset == TESTED else None


def _measure(work: _Work, todo: _Todo, tell: Tell) -> _Found | None:
    """Train, or resume, and measure a cell; None if Ctrl-C stopped it."""
    cell = todo.cell
    made_by = commit()  # read before training, as commits may follow meanwhile
    with nullcontext(work.places.run(cell)) if work.places else scratch() as folder:
        try:
            found = (_run_photos if cell.kind == "photo" else _run_canvas)(cell, folder, work)
        except DataError as error:
            raise DataError(f"cell {cell.name}: {error}") from None
        files = None if work.places else packed(folder)
    if found is None:
        return None
    cells = []
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
        if todo.frozen is not None:
            facts["frozen"] = todo.frozen
        if one.is_drawn:
            facts["probes"] = tested.probes
        cells.append((one, facts, tested.values))
    return _Found(cells, files)


def _land(found: _Found, cell: Cell, places: Places) -> None:
    """Write what was measured: cells last, as they say that all is done."""
    if found.run is not None:
        unpack(found.run, places.run(cell))
    for one, facts, values in found.cells:
        write_cell(places.cells, one, facts, values)


def _run_canvas(cell: Cell, folder: Path, work: _Work) -> Measured | None:
    recipe = recipe_of(cell)
    data = open_canvases(cell, recipe, work.sources.digits)
    if work.digits not in (None, data.about["digits"]):
        raise DataError(f"digits here are {shorten(data.about['digits'])}, not {shorten(work.digits)}")
    model = train_once(
        recipe,
        data.train,
        data.validation,
        labels=data.test.labels,
        folder=folder,
        fingerprint=data.fingerprint,
        accelerator=work.accelerator,
        watcher=work.watcher,
    )
    if model is None:
        return None
    shown = data.validation
    Origin(
        cell.dataset,
        digest=shown.digits.digest(),
        validation=len(shown),
        digits=work.sources.digits,
        shared_digits=shown.shared_digits,
    ).write(folder)
    tests = measure_canvases(cell, model, data.test)
    _tidy(folder)
    return Measured(tests, int(model.about["images"]), float(model.about["seconds"]), data.about)


def _run_photos(cell: Cell, folder: Path, work: _Work) -> Measured | None:
    return run_photos(cell, folder, work.sources, accelerator=work.accelerator, watcher=work.watcher)


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
    engine: Engine | None = None,
    watcher: Watcher | None = None,
    say: Callable[[str], None] = lambda line: None,
    with_values: bool = False,
) -> bool:
    """Run the missing cells, one after the other or on a cluster; False if Ctrl-C stopped it.

    A cell that runs in another process is skipped, so several processes can share a plan.
    """
    engine = engine or Engine()
    todo = list(dict.fromkeys(cell.training for cell in cells))
    work = _Work(sources, accelerator, places, watcher)
    if not engine.is_local:
        digits = digits_of(sources.digits) if any(cell.kind == "canvas" for cell in todo) else None
        work = _Work(sources.absolute(), accelerator, digits=digits)
    with ExitStack() as stack:
        claims: dict[Cell, ExitStack] = {}

        def missing() -> Iterator[_Todo]:
            for number, cell in enumerate(todo, 1):
                claims[cell] = stack.enter_context(ExitStack())
                state = claims[cell].enter_context(_claimed(cell, places, with_values))
                if state != "there":
                    say(f"cell {number} of {len(todo)}: {cell.name}")
                if state == "missing":
                    yield _Todo(cell, _frozen(cell, places))
                    continue
                claims.pop(cell).close()
                if state == "busy":
                    say("running in another process")

        for one, found in stack.enter_context(closing(run_jobs(_measure, work, missing(), engine, say=say))):
            if found is None:
                return False
            _land(found, one.cell, places)
            claims.pop(one.cell).close()
            if not engine.is_local:
                say(f"done: {one.cell.name}")
    return True

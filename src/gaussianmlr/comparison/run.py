"""Run a comparison: contenders on the same data and splits with the same budget.

A cell is a contender on one split with one seed, stored as one JSON file in ``cells/`` when it is finished.
An interrupted comparison resumes with the missing cells; contenders and seeds can be added later.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import time
from collections.abc import Callable, Iterable
from contextlib import closing, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from gaussianmlr._utils.bounded import shorter
from gaussianmlr._utils.display import clock
from gaussianmlr._utils.files import held, write_text
from gaussianmlr._utils.progress import Watcher
from gaussianmlr._utils.provenance import versions
from gaussianmlr._utils.strict_json import differences, dumps, loads, read_json
from gaussianmlr.comparison.cells import Cell, read_cell, write_cell
from gaussianmlr.comparison.participants import Contender, Network, Outcome, Task, Wanted, contenders_of
from gaussianmlr.comparison.splits import Run, parts_of, runs_of
from gaussianmlr.comparison.verdict import Comparison
from gaussianmlr.data import RankedData, Setting
from gaussianmlr.data.open import Source, find_data, open_data, portable
from gaussianmlr.data.sparse import made_dense
from gaussianmlr.data.splits import has_test
from gaussianmlr.data.tokens import encoder_of
from gaussianmlr.engines.jobs import Engine, Tell, scratch
from gaussianmlr.engines.jobs import run as run_jobs
from gaussianmlr.errors import DataError, shorten
from gaussianmlr.methods import make
from gaussianmlr.metrics import ece, evaluate, kendall_tau_b
from gaussianmlr.model.recipe import Recipe
from gaussianmlr.nn.network import refuse_many_pairs
from gaussianmlr.training.defaults import default_recipe, picture_options
from gaussianmlr.training.run_folder import IDLE

__all__ = ["FORMAT", "compare"]

DEFAULT = ("gmlr", "lsep", "crpc")  # the paper's three
FORMAT = "gaussianmlr-comparison"


@dataclass(frozen=True)
class _Plan:
    """Everything that the cells depend on."""

    data: RankedData | Setting
    who: tuple[Contender, ...]
    runs: list[Run]
    folds: int | None
    recipe: Recipe
    opening: dict[str, Any]


@dataclass(frozen=True)
class _Missing:
    """A cell that is to be measured, and the digest of its split."""

    contender: Contender
    run: Run
    parts: str

    def __str__(self) -> str:
        return f"{self.contender.name}, {self.run.name}"


@dataclass
class _Work:
    """What the cells of a comparison have in common."""

    plan: _Plan
    accelerator: str
    folder: Path | None = None  # of the runs; on other machines each has a folder of its own
    watcher: Watcher | None = None
    opened: tuple[Run, Source, str] | None = None  # the last run's data, for all contenders


def compare(
    data: RankedData | Setting | str | os.PathLike[str],
    contenders: Iterable[str | Contender] = DEFAULT,
    *,
    out: str | os.PathLike[str],
    recipe: Recipe | None = None,
    supervision: Wanted | None = None,
    seeds: int = 5,
    folds: int | None = None,
    accelerator: str = "auto",
    engine: Engine | None = None,
    watcher: Watcher | None = None,
    say: Callable[[str], None] = lambda line: None,
    **opening: Any,
) -> Comparison:
    """Train and test every contender on the same splits with the same budget.

    Parameters
    ----------
    data : RankedData, Setting, str or path
        Data, or what `data.open.find_data` takes.
    contenders : iterable of str
        As in `contenders_of`.
    out : path-like
        Folder of the comparison; finished cells there are not run again.
    recipe : Recipe, optional
        The budget of all networks; by default one that suits the data. Its seed is the first, and its
        method settings apply to its method only.
    supervision : {"strong", "weak", "both"}, optional
        For contenders without one in their name.
    seeds : int
        Number of seeds. If the data has no test part, each draws its own split.
    folds : int, optional
        Number of folds of a cross-validation per seed.
    accelerator : str
        Accelerator of Lightning.
    engine : Engine, optional
        Where cells run: here, one after the other, or on a Ray cluster, where a cell that was interrupted
        begins again, while here it resumes.
    watcher : Watcher, optional
        Receives the progress of a training on this machine.
    say : callable
        Called with lines of progress.
    **opening
        Options of `data.open.open_data`, such as `size` and `image_size`.

    Raises
    ------
    KeyboardInterrupt
        If it was interrupted; finished cells are kept.

    Examples
    --------
    >>> import tempfile
    >>> from gaussianmlr.data import from_arrays
    >>> x = np.random.default_rng(0).normal(size=(60, 3))
    >>> data = from_arrays(x, np.where(x > 0, x.argsort(1).argsort(1) + 1, 0))
    >>> recipe = Recipe(backbone="mlp", epochs=2, batch_size=8)
    >>> found = compare(data, ["gmlr", "br"], out=tempfile.mkdtemp(), recipe=recipe, seeds=2)
    >>> found
    Comparison of gmlr:strong, br:weak on 2 runs
    """
    found = made_dense(data if isinstance(data, RankedData | Setting) else find_data(data), "compare")
    if isinstance(found, RankedData) and found.kind == "orders":
        raise DataError(f"{found.source}: holds only orders; expected feature columns or pictures")
    base = default_recipe(found) if recipe is None else recipe
    who = contenders_of(
        contenders, supervision, tables=not isinstance(found, Setting) and found.kind == "features"
    )
    if folds is not None and has_test(found):
        raise DataError("the data has its own test part; leave folds out")
    if isinstance(found, RankedData) and found.images is not None:
        opening |= picture_options(found, base, opening.get("image_size"), opening.get("channels"))
    plan = _Plan(found, who, runs_of(seeds, folds, base.seed), folds, base, opening)
    for one in who:
        one.describe(base)  # refuses an invalid contender before any training
        if isinstance(one, Network) and isinstance(found, RankedData):
            refuse_many_pairs(make(one.method), len(found.labels))
    folder = Path(out)
    with held(folder):
        _claim(folder, plan)
        cells = _cells(folder, plan, engine or Engine(), accelerator, watcher, say)
        shutil.rmtree(folder / "runs", ignore_errors=True)
    return Comparison(
        data=_name(found),
        contenders=tuple(contender.name for contender in who),
        cells=tuple(cells),
        one_test=has_test(found) or len(plan.runs) == 1,
        drawn=not has_test(found),
        folds=folds,
        recipe=base.to_dict(),
    )


def _name(data: RankedData | Setting) -> str:
    return Path(data.name if isinstance(data, Setting) else data.source or "data").name


def _cells(
    folder: Path,
    plan: _Plan,
    engine: Engine,
    accelerator: str,
    watcher: Watcher | None,
    say: Callable[[str], None],
) -> list[Cell]:
    """All cells, split by split, so that an interruption leaves all contenders equally far."""
    found, missing = _known(folder, plan)
    total = len(found) + len(missing)
    if found:
        say(f"{len(found)} of {total} cells exist already")
    if engine.is_local:
        work = _Work(plan, accelerator, folder / "runs", watcher)
    else:
        data, opening = portable(plan.data, plan.opening)
        work = _Work(replace(plan, data=data, opening=opening), accelerator)
    spent: dict[str, list[float]] = {}
    left = [one.contender.name for one in missing]
    began = time.monotonic()
    with closing(run_jobs(_measure, work, missing, engine, say=say)) as results:
        for one, (cell, took) in results:
            file = _file(folder, one.contender, one.run)
            write_cell(file, cell)
            shutil.rmtree(folder / "runs" / file.stem, ignore_errors=True)
            found[one.run, one.contender.name] = cell
            left.remove(one.contender.name)
            spent.setdefault(one.contender.name, []).append(took)
            at_a_time = max(1.0, sum(map(sum, spent.values())) / max(time.monotonic() - began, 1e-9))
            say(
                f"[{total - len(left)}/{total}] {one}: tau-b {100 * cell.metrics['tau_b']:.2f}, "
                f"{clock(took)}; about {clock(_left(spent, left) / at_a_time)} left"
            )
    return [found[one, contender.name] for one in plan.runs for contender in plan.who]


def _known(folder: Path, plan: _Plan) -> tuple[dict[tuple[Run, str], Cell], list[_Missing]]:
    """The cells that are there, and those that are missing; refused if they are not of the same parts."""
    found: dict[tuple[Run, str], Cell] = {}
    missing = []
    seen: dict[str, Path] = {}
    parts = ""
    for run in plan.runs:
        recipe = plan.recipe.replace(seed=run.seed)
        if not isinstance(plan.data, Setting):  # the splits of Ranked MNIST are the same for all runs
            seen, parts = {}, ""
        for contender in plan.who:
            file = _file(folder, contender, run)
            if file.exists():
                cell = _read(file, contender, run, contender.describe(recipe))
                found[run, contender.name] = cell
                _same_parts(seen, cell.parts, file)
                continue
            parts = parts or _parts(plan, run)[1]
            _same_parts(seen, parts, file)
            missing.append(_Missing(contender, run, parts))
    return found, missing


def _file(folder: Path, contender: Contender, run: Run) -> Path:
    return folder / "cells" / f"{_slug(contender.name)}_{run.name}.json"


def _measure(work: _Work, one: _Missing, tell: Tell) -> tuple[Cell, float]:
    """A cell, and the seconds it took."""
    began = time.monotonic()
    recipe = work.plan.recipe.replace(seed=one.run.seed)
    if work.opened is None or work.opened[0] != one.run:
        work.opened = (one.run, *_opened(work.plan, one.run, recipe))
    _, source, parts = work.opened
    if parts != one.parts:
        raise DataError(f"{one}: this machine has other data, such as other digits, than the one that began")
    place = (
        nullcontext(work.folder / _file(work.folder, one.contender, one.run).stem)
        if work.folder
        else scratch()
    )
    with place as folder:
        outcome = one.contender.run(Task(source, recipe, folder, work.accelerator, work.watcher))
    about = one.contender.describe(recipe)
    return _measured(one.contender, one.run, outcome, about, source, parts), time.monotonic() - began


def _left(spent: dict[str, list[float]], missing: list[str]) -> float:
    """Estimated seconds left: the mean time of each contender, or of all if it has not run yet."""
    means = {name: sum(seconds) / len(seconds) for name, seconds in spent.items()}
    return sum(means.get(name, sum(means.values()) / len(means)) for name in missing)


def _parts(plan: _Plan, run: Run) -> tuple[Any, str]:
    """The part of every instance in a run, and a digest of the split."""
    if isinstance(plan.data, Setting):
        return None, open_data(plan.data, **plan.opening).fingerprint
    parts = parts_of(plan.data, run, plan.folds)
    listed = "\0".join(f"{name} {part}" for name, part in zip(plan.data.ids or (), parts))
    return parts.astype(np.str_), hashlib.sha256(listed.encode()).hexdigest()


def _opened(plan: _Plan, run: Run, recipe: Recipe) -> tuple[Source, str]:
    """The data of a run, and a digest of the split."""
    parts, digest = _parts(plan, run)
    data = plan.data if isinstance(plan.data, Setting) else replace(plan.data, split=parts)
    options = {**plan.opening, "rankers": recipe.rankers, "seed": recipe.seed}
    return open_data(data, **options, encoder=encoder_of(recipe.backbone)), digest


def _measured(
    contender: Contender, run: Run, outcome: Outcome, about: dict[str, Any], source: Source, parts: str
) -> Cell:
    scores, ranks = outcome.scores, outcome.ranks
    metrics = evaluate(scores, ranks)
    if outcome.p_relevant is not None:
        metrics["ece"] = float(ece(outcome.p_relevant, ranks))
    known = (ranks >= 0).any(1)
    each = kendall_tau_b(scores, ranks, reduction="none")
    return Cell(
        contender=contender.name,
        method=contender.method,
        supervision=contender.supervision,
        seed=run.seed,
        fold=run.fold,
        metrics=metrics,
        tau_b=[float(value) if counts else None for value, counts in zip(each, known.tolist())],
        seconds=round(outcome.seconds, 3),
        sizes={"train": len(source.train), "validation": len(source.validation), "test": len(ranks)},
        parts=parts,
        about=about,
        facts=outcome.facts,
        versions=versions(),
    )


def _read(file: Path, contender: Contender, run: Run, about: dict[str, Any]) -> Cell:
    cell = read_cell(file)
    known = {"contender": cell.contender, "seed": cell.seed, "fold": cell.fold, "about": cell.about}
    wanted = {"contender": contender.name, "seed": run.seed, "fold": run.fold, "about": about}
    for name, was, now in differences(known, loads(dumps(wanted))):
        raise DataError(
            f"{file} has {name} = {shorten(was)}, not {shorten(now)}; remove it to train it again"
        )
    return cell


def _same_parts(seen: dict[str, Path], parts: str, file: Path) -> None:
    """Refuse cells of one run that were tested on different instances."""
    seen.setdefault(parts, file)
    if len(seen) > 1:
        first = next(iter(seen.values()))
        raise DataError(f"{file} and {first} are not of the same parts of the data; choose another folder")


def _claim(folder: Path, plan: _Plan) -> None:
    """Claim the folder for this comparison; only contenders and seeds may differ from an earlier one."""
    what = plan.data.fingerprint() if isinstance(plan.data, RankedData) else plan.data.name
    recipe = {name: value for name, value in plan.recipe.to_dict().items() if name not in IDLE}
    wanted = {"format": FORMAT, "data": what, "folds": plan.folds, "opening": plan.opening, "recipe": recipe}
    wanted = loads(dumps(wanted))
    file = folder / "plan.json"
    if not file.exists() and any(one for one in folder.iterdir() if one.name != ".lock"):
        raise DataError(f"{folder} is not empty and does not hold a comparison; choose another folder")
    if not any((folder / begun).is_dir() for begun in ("cells", "runs")):  # no cell depends on the plan yet
        _keep(file, wanted, plan, {})
        return
    try:
        there = read_json(file)
        known = {name: there[name] for name in wanted}
    except (OSError, ValueError, KeyError, TypeError):
        raise DataError(f"{file} is not the plan of a comparison; choose another folder") from None
    for name, was, now in differences(known, wanted):
        shown = "is of other data" if name == "data" else f"has {name} = {shorten(was)}, not {shorten(now)}"
        raise DataError(f"the comparison in {folder} {shown}; choose another folder, or remove this one")
    _keep(file, wanted, plan, there.get("asked", {}))


def _keep(file: Path, wanted: dict[str, Any], plan: _Plan, before: dict[str, Any]) -> None:
    """Write the plan with all requested contenders and runs, so that a report knows what is missing."""
    who = [*before.get("contenders", ()), *(one.name for one in plan.who)]
    runs = [*map(tuple, before.get("runs", ())), *((run.seed, run.fold) for run in plan.runs)]
    asked = {
        "name": _name(plan.data),
        "own_test": has_test(plan.data),
        "contenders": list(dict.fromkeys(who)),
        "runs": list(dict.fromkeys(runs)),
    }
    write_text(file, dumps({**wanted, "asked": asked}, indent=2, ensure_ascii=False) + "\n")


def _slug(name: str) -> str:
    return shorter(re.sub(r"[^\w.-]+", "-", name))

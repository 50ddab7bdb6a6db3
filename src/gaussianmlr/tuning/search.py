"""Search recipes for data: trials on training and validation rows, kept in SQLite, the best as a recipe."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from gaussianmlr._utils.display import clock
from gaussianmlr._utils.files import held, write_text
from gaussianmlr._utils.progress import Watcher
from gaussianmlr._utils.strict_json import differences, dumps, loads, read_json
from gaussianmlr.data import RankedData, Setting
from gaussianmlr.data.dataset import ORDERS_ALONE
from gaussianmlr.data.open import find_data, open_data, portable
from gaussianmlr.data.splits import part_names
from gaussianmlr.engines.jobs import Engine
from gaussianmlr.engines.jobs import run as run_jobs
from gaussianmlr.errors import DataError, shorten
from gaussianmlr.methods import make
from gaussianmlr.model.recipe import Recipe
from gaussianmlr.training.defaults import (
    default_recipe,
    picture_options,
    with_default_model,
    with_default_ties,
)
from gaussianmlr.training.run_folder import IDLE
from gaussianmlr.tuning.space import Dimension, Value, applied, space_of
from gaussianmlr.tuning.study import Study
from gaussianmlr.tuning.trials import Trial, Work, measure, searched

__all__ = ["FORMAT", "TESTED", "Row", "Search", "tune"]

FORMAT = "gaussianmlr-search"
TESTED = "test.json"  # of a search whose best recipe was measured on the test part
_FOLDS = 3  # of tables and texts, whose single part of a fifth would be a coarse measure


@dataclass(frozen=True)
class Row:
    """A finished trial.

    Attributes
    ----------
    number : int
        0 is the default recipe.
    state : str
        ``complete``, ``pruned`` (stopped early) or ``fail``.
    value, standard_error : float or None
        Mean tau-b and its standard error over rows, of complete trials.
    seconds : float or None
        Time of the trial.
    changes : dict
        What differs from the default recipe.
    why : str
        Why it failed.
    """

    number: int
    state: str
    value: float | None
    standard_error: float | None
    seconds: float | None
    changes: dict[str, Value]
    why: str = ""


@dataclass(frozen=True)
class Search:
    """The trials of a search.

    Attributes
    ----------
    base : Recipe
        The default recipe, trial 0.
    space : tuple of Dimension
        What was varied.
    rows : tuple of Row
        The finished trials, by number.
    measured_on : str
        The rows that trials were measured on, as text.
    """

    base: Recipe
    space: tuple[Dimension, ...]
    rows: tuple[Row, ...]
    measured_on: str

    @property
    def default(self) -> Row:
        """Trial 0."""
        return self.rows[0]

    @property
    def best(self) -> Row:
        """The trial with the largest value; the default one if none is larger."""
        return max((row for row in self.rows if row.state == "complete"), key=_merit)

    @property
    def recipe(self) -> Recipe:
        """The recipe of the best trial."""
        return applied(self.base, self.best.changes)

    def verdict(self) -> str:
        """What was found, in two sentences.

        Examples
        --------
        >>> rows = [Row(number, "complete", value, 0.01, 1.0, {}) for number, value in enumerate([0.82, 0.8])]
        >>> print(Search(Recipe(), (), tuple(rows), "3 folds of 90 rows").verdict())
        No trial of 2 is better than the default recipe: tau-b 82.00 ± 1.00 on 3 folds of 90 rows.
        """
        best, default = self.best, self.default
        if best.number == 0:
            first = f"No trial of {len(self.rows)} is better than the default recipe"
            return f"{first}: tau-b {_percent(best)} on {self.measured_on}."
        return (
            f"Best: trial {best.number}, tau-b {_percent(best)} on {self.measured_on}; the default recipe: "
            f"{_percent(default)}. The best of {len(self.rows)} is chosen by these rows, so its number is "
            "optimistic."
        )

    def to_dict(self) -> dict[str, Any]:
        """Everything, ready for JSON."""
        return {
            "best": asdict(self.best),
            "default": asdict(self.default),
            "recipe": self.recipe.to_dict(),
            "measured_on": self.measured_on,
            "space": {one.name: one.text() for one in self.space},
            "trials": [asdict(row) for row in self.rows],
        }


def tune(
    data: RankedData | Setting | str | os.PathLike[str],
    *,
    out: str | os.PathLike[str],
    recipe: Recipe | None = None,
    trials: int = 30,
    timeout: float | None = None,
    folds: int | None = None,
    seed: int = 0,
    fixed: Collection[str] = (),
    prune: bool = True,
    accelerator: str = "auto",
    engine: Engine | None = None,
    watcher: Watcher | None = None,
    say: Callable[[str], None] = lambda line: None,
    **opening: Any,
) -> Search:
    """Search settings around a recipe by the tau-b of rows that a trial did not see.

    The test part of the data is left out before anything is trained. Trials are measured on the validation
    part of the data if it has one, else on folds or a fifth of the training rows, drawn by ids; a fifth of
    the rest chooses the epoch. Trial 0 is the default recipe. Further trials are proposed by the
    tree-structured Parzen estimator; one that is among the worst quarter at the same point (folds, or
    quarters of a single training) is stopped.

    Parameters
    ----------
    data : RankedData, Setting, str or path
        Data, or what `data.open.find_data` takes.
    out : path-like
        Folder of the search; the same call resumes it.
    recipe : Recipe, optional
        The default; by default that of `gmlr train` for this data.
    trials : int
        Number of trials in all, finished ones and the default included.
    timeout : float, optional
        Seconds after which no further trial begins.
    folds : int, optional
        Folds to measure on, 1 for a single part; 3 by default for tables and texts, else 1. Data with a
        validation part has one.
    seed : int
        Seed of the search and of the folds. One after the other, the same seed tries the same.
    fixed : collection of str
        Settings that are not varied, as ``field`` or ``field.key``.
    prune : bool
        Whether to stop bad trials early.
    accelerator : str
        Accelerator of Lightning.
    engine : Engine, optional
        Where trials run: here, or many at a time on a Ray cluster, which then propose by what is finished.
    watcher : Watcher, optional
        Receives the progress of a training on this machine.
    say : callable
        Called with lines of progress.
    **opening
        Options of `data.open.open_data`, such as `size` and `image_size`.

    Raises
    ------
    KeyboardInterrupt
        If it was interrupted; finished trials are kept.

    References
    ----------
    Bergstra, Bardenet, Bengio, Kégl (2011). Algorithms for hyper-parameter optimization.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from gaussianmlr.data import from_arrays
    >>> x = np.random.default_rng(0).normal(size=(60, 3))
    >>> data = from_arrays(x, np.where(x > 0, x.argsort(1).argsort(1) + 1, 0))
    >>> recipe = Recipe(backbone="mlp", epochs=2, batch_size=8)
    >>> found = tune(data, out=tempfile.mkdtemp(), recipe=recipe, trials=3, folds=2, fixed=["batch_size"])
    >>> [row.number for row in found.rows], found.best.value >= found.default.value
    ([0, 1, 2], True)
    """
    if trials < 1:
        raise DataError(f"trials is {trials}; expected 1 or more")
    if timeout is not None and timeout <= 0:
        raise DataError(f"timeout is {timeout:g}; expected seconds above 0")
    found = data if isinstance(data, RankedData | Setting) else find_data(data)
    if isinstance(found, RankedData) and found.kind == "orders":
        raise DataError(f"{found.source}: {ORDERS_ALONE}")
    folder, engine = Path(out), engine or Engine()
    base = recipe
    if base is None:
        base = with_default_ties(with_default_model(default_recipe(found), found, folder), found, folder)
    if isinstance(found, RankedData) and found.images is not None:
        opening |= picture_options(found, base, opening.get("image_size"), opening.get("channels"))
    make(base.method, **base.method_settings)  # refused before the folder is claimed
    seen, count = searched(found), _folds(found, folds)
    space = _checked_space(base, seen, fixed)
    fingerprint = (
        seen.fingerprint() if isinstance(seen, RankedData) else open_data(seen, **opening).fingerprint
    )
    plan = {
        "format": FORMAT,
        "data": fingerprint,
        "folds": count,
        "seed": seed,
        "prune": prune,
        "opening": opening,
        "space": {one.name: one.text() for one in space},
        "recipe": {name: value for name, value in base.to_dict().items() if name not in IDLE},
    }
    with held(folder):
        _claim(folder, loads(dumps(plan)))
        study = Study(folder / "search.db", base, space, seed=seed, prune=prune)
        if (folder / TESTED).is_file() and not study.is_done(trials):
            raise DataError(f"{folder / TESTED} is there: after a look at the test part no trial may follow")
        work = Work(seen, count, seed, opening, accelerator, fingerprint, folder / "runs", watcher)
        if not engine.is_local:
            away, options = portable(seen, opening)
            work = Work(away, count, seed, options, accelerator, fingerprint)
        _try(study, work, engine, trials, timeout, folder, say)
        shutil.rmtree(folder / "runs", ignore_errors=True)
        return _found(study, _measured_on(seen, count))


def _folds(data: RankedData | Setting, folds: int | None) -> int | None:
    """Number of folds; None for a single part."""
    if folds is not None and folds < 1:
        raise DataError(f"folds is {folds}; expected 1 or more")
    if isinstance(data, Setting) or "validation" in part_names(data).tolist():
        if folds is not None and folds > 1:
            raise DataError("the data has its own validation part; leave folds out")
        return None
    if folds is None:
        return _FOLDS if data.kind == "features" else None
    return None if folds == 1 else folds


def _checked_space(base: Recipe, data: RankedData | Setting, fixed: Collection[str]) -> tuple[Dimension, ...]:
    known = Recipe.describe()
    if unknown := [name for name in fixed if name.partition(".")[0] not in known]:
        raise DataError(f"no field {unknown[0]!r} in a recipe to be fixed; it has {', '.join(known)}")
    space = space_of(base, data, fixed)
    if not space:
        raise DataError(f"nothing is left to search: {', '.join(fixed)} are fixed")
    return space


def _claim(folder: Path, plan: dict[str, Any]) -> None:
    """Claim the folder for this search; one of other data, space or seed is refused."""
    file = folder / "plan.json"
    if not file.exists():
        if any(one for one in folder.iterdir() if one.name != ".lock"):
            raise DataError(f"{folder} is not empty and does not hold a search; choose another folder")
        write_text(file, dumps(plan, indent=2, ensure_ascii=False) + "\n")
        return
    try:
        known = dict(read_json(file))
    except (OSError, ValueError, TypeError):
        raise DataError(f"{file} is not the plan of a search; choose another folder") from None
    for name, was, now in differences(known, plan):
        shown = "is of other data" if name == "data" else f"has {name} = {shorten(was)}, not {shorten(now)}"
        raise DataError(f"the search in {folder} {shown}; choose another folder, or remove this one")


def _try(
    study: Study,
    work: Work,
    engine: Engine,
    trials: int,
    timeout: float | None,
    folder: Path,
    say: Callable[[str], None],
) -> None:
    """Do the trials that are missing, those of a dead process first."""
    began = time.monotonic()

    def coming() -> Iterator[Trial]:
        yield from study.unfinished()
        while study.begun() < trials:
            if timeout is not None and study.begun() and time.monotonic() - began >= timeout:
                say(f"{clock(timeout)} are over; the same command resumes")
                return
            yield study.next()

    if there := sum(row.state.is_finished() for row in study.rows()):
        say(f"{there} of {max(there, trials)} trials exist already")
    best = max([row.value for row in study.rows() if row.state.name == "COMPLETE"], default=-1.0)
    with closing(run_jobs(measure, work, coming(), engine, heard=study.heard, say=say)) as results:
        for trial, found in results:
            if isinstance(found, str):
                study.fail(trial, found)
                end = f"failed: {found}"
            else:
                study.tell(trial, found)
                best = best if found.pruned else max(best, found.value)
                end = "stopped early" if found.pruned else f"tau-b {100 * found.value:.2f}"
                end += f", {clock(found.seconds)}; best so far {100 * best:.2f}"
            say(f"[{trial.number + 1}/{trials}] {end}")
            shutil.rmtree(folder / "runs" / trial.folder, ignore_errors=True)


def _measured_on(data: RankedData | Setting, folds: int | None) -> str:
    if isinstance(data, Setting):
        return "validation images"
    if folds is not None:
        return f"{folds} folds of {len(data):,} rows"
    own = "test" in part_names(data).tolist()
    return "the validation part" if own else f"a held-out fifth of {len(data):,} rows"


def _found(study: Study, measured_on: str) -> Search:
    rows = []
    for one in study.rows():
        if not one.state.is_finished():
            continue
        state = one.state.name.lower()
        whole = state == "complete"
        rows.append(
            Row(
                one.number,
                state,
                one.value if whole else None,
                one.user_attrs["standard_error"] if whole else None,
                one.user_attrs.get("seconds"),
                dict(one.params) if one.number else {},
                one.user_attrs.get("why", ""),
            )
        )
    return Search(study.base, study.space, tuple(rows), measured_on)


def _merit(row: Row) -> tuple[float, int]:
    assert row.value is not None
    return row.value, -row.number


def _percent(row: Row) -> str:
    assert row.value is not None
    return f"{100 * row.value:.2f} ± {100 * (row.standard_error or 0.0):.2f}"


def _as_dict(row: Row) -> dict[str, Any]:
    return asdict(row)

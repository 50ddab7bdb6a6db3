"""A trial: a recipe, trained on a part of the rows and measured on rows that it did not see."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from gaussianmlr._utils.progress import Watcher
from gaussianmlr.comparison.splits import Run, parts_of
from gaussianmlr.data import RankedData, RankedMNIST, Setting
from gaussianmlr.data.open import Source, open_data
from gaussianmlr.data.splits import part_names
from gaussianmlr.data.tokens import encoder_of
from gaussianmlr.engines.jobs import Tell, scratch
from gaussianmlr.errors import DataError
from gaussianmlr.metrics import kendall_tau_b
from gaussianmlr.model.evaluate import read
from gaussianmlr.model.recipe import Recipe
from gaussianmlr.training.kinds import fit_kinds

__all__ = ["Score", "Trial", "Work", "measure", "searched"]

FloatArray = npt.NDArray[np.float64]
_QUARTERS = 4  # times that a training of a single part is looked at
_DRAWN_ANEW = 1  # seed of the images that choose the epoch; those of seed 0 are measured on


@dataclass(frozen=True)
class Trial:
    """A numbered recipe."""

    number: int
    recipe: Recipe

    def __str__(self) -> str:
        return f"trial {self.number}"

    @property
    def folder(self) -> str:
        """Name of the folder of its runs."""
        return f"trial-{self.number:04}"


@dataclass(frozen=True)
class Score:
    """What a trial is worth.

    Attributes
    ----------
    value, standard_error : float
        Mean tau-b of the rows that were measured on, and its standard error over rows.
    parts : list of float
        Mean tau-b per part, one per fold.
    rows : int
        Number of rows that were measured on.
    seconds : float
        Time of everything.
    pruned : bool
        Whether it was stopped early, as others were better by then.
    """

    value: float
    standard_error: float
    parts: list[float]
    rows: int
    seconds: float
    pruned: bool = False


@dataclass
class Work:
    """What trials have in common.

    Attributes
    ----------
    data : RankedData or Setting
        The rows to search on, as `searched` gives them; a row with the split ``test`` is measured on.
    folds : int or None
        Number of folds; one part if None.
    seed : int
        Seed of the parts.
    opening : dict
        Options of `open_data`.
    accelerator : str
        Lightning's.
    fingerprint : str
        Of the data, so that a machine with other digits is found out.
    folder : Path, optional
        Of the runs; on other machines each trial has a folder of its own.
    watcher : Watcher, optional
        Receives the progress.
    """

    data: RankedData | Setting
    folds: int | None
    seed: int
    opening: dict[str, Any]
    accelerator: str
    fingerprint: str
    folder: Path | None = None
    watcher: Watcher | None = None
    opened: dict[int, Source] = field(default_factory=dict)  # the parts, for all trials

    def parts(self, recipe: Recipe) -> Iterator[Source]:
        """Each part: rows to train on, to choose the epoch by, and (as test) to measure on."""
        for fold in range(self.folds or 1):
            if fold not in self.opened:
                self.opened[fold] = self._open(fold, recipe)
            yield self.opened[fold]

    def _open(self, fold: int, recipe: Recipe) -> Source:
        if isinstance(self.data, Setting):
            source = open_data(self.data, **self.opening)
            if source.fingerprint != self.fingerprint:
                raise DataError("this machine has other digits than the one that began")
            shown = source.validation
            assert isinstance(shown, RankedMNIST)
            chosen_by = RankedMNIST(
                self.data, "validation", size=len(shown), seed=_DRAWN_ANEW, digits=shown.digits
            )
            return replace(source, validation=chosen_by, test=shown)
        run = Run(self.seed, None if self.folds is None else fold)
        parts = parts_of(self.data, run, self.folds).astype(np.str_)
        options = {**self.opening, "rankers": recipe.rankers, "seed": recipe.seed}
        return open_data(replace(self.data, split=parts), **options, encoder=encoder_of(recipe.backbone))


def searched(data: RankedData | Setting) -> RankedData | Setting:
    """The rows that a search may see: all but the test part.

    The validation part of the data, if it has one, becomes the part to measure on.

    Examples
    --------
    >>> from gaussianmlr.data import from_arrays
    >>> data = from_arrays(np.eye(4), [["a", "b"]] * 4)
    >>> found = searched(replace(data, split=np.array(["train", "val", "test", "train"])))
    >>> found.split.tolist()
    ['train', 'test', 'train']
    """
    if isinstance(data, Setting):
        return data
    names = part_names(data)
    kept = data.subset(np.isin(names, ("train", "validation")))
    split = np.where(names == "validation", "test", "train")[np.isin(names, ("train", "validation"))]
    return replace(kept, split=split.astype(np.str_))


class _StoppedError(Exception):
    """A trial is not worth going on with."""


class _Inside(Watcher):
    """Shows the bars of a training, not its lines, and reports its validation tau-b after each quarter."""

    def __init__(self, shown: Watcher | None, epochs: int, tell: Tell | None) -> None:
        self.shown, self.epochs, self.tell, self.told = shown or Watcher(), epochs, tell, 0

    def begin(self, stage: str, epoch: int, epochs: int, steps: int, done: int) -> None:
        """Show a bar."""
        self.shown.begin(stage, epoch, epochs, steps, done)

    def step(self, loss: float) -> None:
        """Move the bar."""
        self.shown.step(loss)

    def rounds(self, done: int, total: int) -> None:
        """Move the bar of trees."""
        self.shown.rounds(done, total)

    def end(self, row: dict[str, Any]) -> None:
        """Remove the bar, and stop if others were better by now."""
        self.shown.end(row)
        quarter = _QUARTERS * int(row["epoch"]) // self.epochs
        if self.tell and self.told < quarter < _QUARTERS and row.get("tau_b") is not None:
            self.told = quarter
            if self.tell(quarter, float(row["tau_b"])):
                raise _StoppedError


def measure(work: Work, trial: Trial, tell: Tell) -> Score | str:
    """Train and measure a trial, or say why it cannot be trained; resumes where the folder is kept."""
    try:
        return _measured(work, trial, tell)
    except DataError as error:
        if trial.number == 0:  # the default recipe: then it is the data, not the trial
            raise
        return str(error)


def _measured(work: Work, trial: Trial, tell: Tell) -> Score:
    began = time.monotonic()
    values: list[FloatArray] = []
    pruned = False
    place = nullcontext(work.folder / trial.folder) if work.folder else scratch()
    with place as folder:
        for number, source in enumerate(work.parts(trial.recipe)):
            try:
                values.append(_fitted(work, trial.recipe, source, folder / f"part-{number}", tell))
            except _StoppedError:
                pruned = True
                break
            if work.folds and number + 1 < work.folds and tell(number, float(np.concatenate(values).mean())):
                pruned = True
                break
    every = np.concatenate(values) if values else np.zeros(0)
    spread = float(every.std(ddof=1) / np.sqrt(len(every))) if len(every) > 1 else 0.0
    return Score(
        value=float(every.mean()) if len(every) else 0.0,
        standard_error=spread,
        parts=[float(part.mean()) for part in values],
        rows=len(every),
        seconds=time.monotonic() - began,
        pruned=pruned,
    )


def _fitted(work: Work, recipe: Recipe, source: Source, folder: Path, tell: Tell) -> FloatArray:
    """Tau-b of every row that a recipe is measured on, once trained."""
    reports = not work.folds and recipe.model == "network"  # with folds, those are what is compared
    fitted = fit_kinds(
        recipe,
        source.train,
        source.validation,
        labels=source.labels,
        inputs=source.inputs,
        out=folder,
        fingerprint=source.fingerprint,
        accelerator=work.accelerator,
        watcher=_Inside(work.watcher, recipe.epochs, tell if reports else None),
    )
    if fitted.result.interrupted:
        raise KeyboardInterrupt
    assert source.test is not None
    reading, ranks = read(fitted.model, source.test, recipe.batch_size)
    each = kendall_tau_b(reading.scores.float(), ranks, reduction="none")
    known = (ranks >= 0).any(1)
    found: FloatArray = torch.as_tensor(each)[known].double().numpy()
    if not len(found):
        raise DataError("the rows to measure on have no known label; give other validation rows")
    return found

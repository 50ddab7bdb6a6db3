"""Splits of a comparison: the same for every contender, drawn from ids and seeds only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gaussianmlr.data import RankedData
from gaussianmlr.data.splits import hold_out, part_names
from gaussianmlr.errors import DataError

__all__ = ["Run", "parts_of", "runs_of"]


@dataclass(frozen=True)
class Run:
    """A split and a seed; every contender is trained on every run.

    Attributes
    ----------
    seed : int
        Seed of the split, if it is drawn, and of the training.
    fold : int or None
        Index of the test fold, if any.
    """

    seed: int
    fold: int | None = None

    @property
    def name(self) -> str:
        """For example ``seed0`` or ``seed0-fold2``."""
        return f"seed{self.seed}" + ("" if self.fold is None else f"-fold{self.fold}")


def runs_of(seeds: int, folds: int | None = None, first: int = 0) -> list[Run]:
    """All runs of a comparison.

    Examples
    --------
    >>> [run.name for run in runs_of(2)], len(runs_of(2, folds=5))
    (['seed0', 'seed1'], 10)
    """
    if seeds < 1:
        raise DataError(f"seeds is {seeds}; expected 1 or more")
    if folds is not None and folds < 2:
        raise DataError(f"folds is {folds}; expected 2 or more, or None for one split per seed")
    parts: list[int | None] = [None] if folds is None else list(range(folds))
    return [Run(first + seed, fold) for seed in range(seeds) for fold in parts]


def parts_of(data: RankedData, run: Run, folds: int | None = None) -> Any:
    """The part of every instance in a run: train, validation or test.

    Test and validation parts of the data are kept. Otherwise a fifth is drawn for the test, or the fold
    of the run, and a fifth of the rest for validation. The draw depends only on ids and seed, not on the
    order of the rows; rows with the same id stay together.

    Parameters
    ----------
    data : RankedData
        The instances.
    run : Run
        Seed and fold.
    folds : int, optional
        Number of folds per seed.

    Returns
    -------
    array of str [N]
        Other parts of the data keep their names.

    Examples
    --------
    >>> from gaussianmlr.data import from_arrays
    >>> data = from_arrays(np.arange(20.0).reshape(10, 2), [["a", "b"]] * 5 + [["b"]] * 5)
    >>> parts = parts_of(data, Run(seed=0))
    >>> [int((parts == part).sum()) for part in ("train", "validation", "test")]
    [6, 2, 2]
    """
    parts, where = part_names(data), data.source or "data"
    assert data.ids is not None
    if "test" not in parts.tolist():
        count = _different(data, parts)
        if count < max(3, folds or 0):
            wanted = f"{folds} folds" if folds and folds > 3 else "a train, a validation and a test part"
            raise DataError(f"{where}: {count} instances to train on; too few for {wanted}")
        hold_out(parts, data.ids, "test", f"test {run.seed}\0{{}}", fold=run.fold, folds=folds)
    if "validation" not in parts.tolist():
        if _different(data, parts) < 2:
            raise DataError(f"{where}: too few instances to train on and to validate")
        hold_out(parts, data.ids, "validation", f"validation {run.seed} {run.fold}\0{{}}")
    return parts


def _different(data: RankedData, parts: Any) -> int:
    """Number of different ids to train on."""
    return len(set(np.array(data.ids, dtype=object)[parts == "train"]))

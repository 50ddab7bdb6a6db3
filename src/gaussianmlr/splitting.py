"""Who is learned from and who is tested on: the same for every contender, drawn from ids and seeds alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gaussianmlr.data import RankedData, Setting
from gaussianmlr.errors import DataError
from gaussianmlr.sources import ALIASES, held_out_of, in_drawn_order

__all__ = ["Run", "has_test", "parts_of", "runs_of"]


@dataclass(frozen=True)
class Run:
    """A split and a seed; every contender does every run.

    Attributes
    ----------
    seed : int
        Of the split, where it is drawn, and of the training.
    fold : int or None
        Which part of the partition is the test part, from 0 on.
    """

    seed: int
    fold: int | None = None

    @property
    def name(self) -> str:
        """Such as ``seed0`` or ``seed0-fold2``."""
        return f"seed{self.seed}" + ("" if self.fold is None else f"-fold{self.fold}")


def runs_of(seeds: int, folds: int | None = None, first: int = 0) -> list[Run]:
    """Every run of a comparison.

    Examples
    --------
    >>> [run.name for run in runs_of(2)], len(runs_of(2, folds=5))
    (['seed0', 'seed1'], 10)
    """
    if seeds < 1:
        raise DataError(f"seeds is {seeds}; expected 1 or more")
    if folds is not None and folds < 2:
        raise DataError(f"folds is {folds}; expected 2 or more, or none: one drawn split a seed")
    parts: list[int | None] = [None] if folds is None else list(range(folds))
    return [Run(first + seed, fold) for seed in range(seeds) for fold in parts]


def has_test(data: RankedData | Setting) -> bool:
    """Whether somebody set a test part apart already."""
    return isinstance(data, Setting) or "test" in _names(data).tolist()


def parts_of(data: RankedData, run: Run, folds: int | None = None) -> Any:
    """The part of every instance in a run: train, validation or test.

    A test part that the data brings is kept, and so is a validation part. Else a fifth is drawn for the
    test, or of `folds` parts the run's, and a fifth of the rest for validation. The draw depends
    on ids and seed alone, not on the order of the rows; rows with one id stay together.

    Parameters
    ----------
    data : RankedData
        The instances.
    run : Run
        Seed and fold.
    folds : int, optional
        How many parts each seed cuts the data in.

    Returns
    -------
    array of str [N]
        Other parts that the data names are left as they are.

    Examples
    --------
    >>> from gaussianmlr.data import from_arrays
    >>> data = from_arrays(np.arange(20.0).reshape(10, 2), [["a", "b"]] * 5 + [["b"]] * 5)
    >>> parts = parts_of(data, Run(seed=0))
    >>> [int((parts == part).sum()) for part in ("train", "validation", "test")]
    [6, 2, 2]
    """
    parts = _names(data)
    ids = np.array(data.ids, dtype=object)
    if "test" not in parts.tolist():
        pool = in_drawn_order(ids[parts == "train"], f"test {run.seed}\0{{}}")
        if len(pool) < max(3, folds or 0):
            wanted = f"{folds} folds" if folds and folds > 3 else "a train, a validation and a test part"
            raise DataError(
                f"{data.source or 'data'}: {len(pool)} instances to learn from; too few for {wanted}"
            )
        chosen = pool[: held_out_of(len(pool))] if run.fold is None else pool[run.fold :: folds]
        parts[(parts == "train") & np.isin(ids, np.array(chosen, dtype=object))] = "test"
    if "validation" not in parts.tolist():
        pool = in_drawn_order(ids[parts == "train"], f"validation {run.seed} {run.fold}\0{{}}")
        if len(pool) < 2:
            raise DataError(f"{data.source or 'data'}: too few instances to train on and to validate")
        chosen = pool[: held_out_of(len(pool))]
        parts[(parts == "train") & np.isin(ids, np.array(chosen, dtype=object))] = "validation"
    return parts


def _names(data: RankedData) -> Any:
    if data.split is None:
        return np.full(len(data), "train", dtype=object)
    return np.array([ALIASES.get(name.lower(), name.lower()) for name in data.split.tolist()], dtype=object)

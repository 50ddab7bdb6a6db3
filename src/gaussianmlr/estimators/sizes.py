"""Sizes of batches, numbers of epochs and learning rates that suit the number of rows, and their limits."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gaussianmlr.errors import DataError

__all__ = ["batch_for", "check_count", "check_share", "epochs_for", "rate_for"]

_EPOCHS = (20, 100)  # minimum and maximum number of epochs for few rows
_STEPS = (300, 3_000)  # steps to reach with more epochs, and steps not to exceed
_FEWEST_EPOCHS = 10  # for many rows
_RATES = (3e-3, 1e-3)  # for fewer rows than the next number, and for more
_FEW_ROWS = 800
_BATCH = (32, 512)
_BATCHES = 20  # per epoch, within the limits of the batch size


def batch_for(rows: int) -> int:
    """The power of two that makes about 20 batches of the rows, from 32 to 512.

    Examples
    --------
    >>> batch_for(100), batch_for(3_000), batch_for(10**6)
    (32, 128, 512)
    """
    power = max(0, round(math.log2(max(rows, 1) / _BATCHES)))
    return min(max(1 << power, _BATCH[0]), _BATCH[1])


def epochs_for(rows: int, batch: int) -> int:
    """Number of epochs: the fewer steps per epoch, the more.

    Examples
    --------
    >>> epochs_for(100, 32), epochs_for(3_000, 128), epochs_for(10**6, 512)
    (75, 20, 10)
    """
    steps = max(1, -(-rows // batch))
    few = min(max(_EPOCHS[0], -(-_STEPS[0] // steps)), _EPOCHS[1])
    return max(_FEWEST_EPOCHS, min(few, _STEPS[1] // steps))


def rate_for(rows: int) -> float:
    """The maximum learning rate.

    Examples
    --------
    >>> rate_for(100), rate_for(3_000)
    (0.003, 0.001)
    """
    return _RATES[rows >= _FEW_ROWS]


def check_count(name: str, value: Any, *, optional: bool = False) -> None:
    """Refuse a parameter that is no whole number from 1 up; None is fine where it is optional.

    Examples
    --------
    >>> check_count("hidden", 0)
    Traceback (most recent call last):
        ...
    gaussianmlr.errors.DataError: hidden is 0; expected a whole number from 1 up
    """
    if value is None and optional:
        return
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise DataError(f"{name} is {value!r}; expected a whole number from 1 up")


def check_share(name: str, value: Any) -> None:
    """Refuse a parameter that is no share of the rows, from 0 to below 1."""
    if not isinstance(value, int | float | np.number) or not 0 <= value < 1:
        raise DataError(f"{name} is {value!r}; expected a share below 1")

"""Checked, read-only arrays of predictions."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from torch import Tensor

from gaussianmlr.errors import DataError

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

_ABOVE_HALF = float(np.nextafter(np.float32(0.5), np.float32(1.0)))  # stays above 0.5 in single precision
_SLACK = 1e-6  # rounding error of single precision


def array(values: Tensor) -> FloatArray:
    """A tensor as a float64 array."""
    found: FloatArray = values.detach().cpu().double().numpy()
    return found


def matrix(values: npt.ArrayLike, name: str) -> FloatArray:
    """Finite numbers [N, K], or an error with the first that is not finite."""
    found = np.array(values, dtype=np.float64)
    if found.ndim != 2:
        raise DataError(f"expected {name} of shape [N, K], got shape {list(found.shape)}")
    refuse(~np.isfinite(found), found, name, "a finite number")
    return found


def refuse(bad: BoolArray, values: FloatArray, name: str, wanted: str) -> None:
    """Raise an error with the first bad value, if there is one."""
    if bad.any():
        place = tuple(int(index) for index in np.argwhere(bad)[0])
        raise DataError(f"{name} is {values[place]} at {list(place)}; expected {wanted}")


def beside(scores: FloatArray, chances: FloatArray) -> FloatArray:
    """Probabilities moved to the score's side of one half where rounding has put them on the other."""
    refuse((chances < 0) | (chances > 1), chances, "p_relevant", "a probability")
    relevant = scores > 0
    found = np.where(relevant, np.maximum(chances, _ABOVE_HALF), np.minimum(chances, 0.5))
    bad = np.abs(found - chances) > _SLACK
    refuse(bad, chances, "p_relevant", "more than 1/2 where the score is above 0, and only there")
    return found


def fixed(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The array itself, made read-only."""
    values.setflags(write=False)
    return values

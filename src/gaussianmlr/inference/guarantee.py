"""Conformal calibration of a model on a part of some data."""

from __future__ import annotations

from gaussianmlr.errors import DataError
from gaussianmlr.inference.matching import Part, ready
from gaussianmlr.model.evaluate import read
from gaussianmlr.model.guarantees import Conformal
from gaussianmlr.model.model import Model

__all__ = ["calibrate_on"]

_NEW = "expected rows that neither training, epoch choice nor temperatures saw"


def calibrate_on(model: Model, part: Part, batch_size: int = 64) -> Conformal:
    """Calibrate the guarantees of a model on a part of data, and keep them in the model.

    Parameters
    ----------
    model : Model
        The model.
    part : Part
        Instances that the model was not made from.
    batch_size : int
        Instances per batch.

    Raises
    ------
    DataError
        If the part is one that training uses.
    """
    if part.split in ("train", "validation"):
        raise DataError(f"the part {part.split!r} is used in training; {_NEW}")
    if part.trained_on and part.split != "test":
        raise DataError(f"the model was trained on this data; {_NEW}")
    reading, truth = read(model, ready(part.data, model), batch_size, calibrated=True)
    return model.calibrate_reading(reading, truth.numpy())

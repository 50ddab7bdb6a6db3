"""What comes after training: metrics, calibration, guarantees, and the model on disk."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file

from gaussianmlr._utils.leftovers import sweep
from gaussianmlr.data import RankedData
from gaussianmlr.data.loading import RankedSet
from gaussianmlr.errors import DataError
from gaussianmlr.model.calibration import calibrate
from gaussianmlr.model.evaluate import calibration_errors, measure, read
from gaussianmlr.model.model import Model, read_config
from gaussianmlr.model.scale import fit_scale
from gaussianmlr.training.engine import Result
from gaussianmlr.training.sets import as_set
from gaussianmlr.training.ties import gain_of_ties, without_ties

if TYPE_CHECKING:
    pass

__all__ = ["choose_ties", "finish", "measure_and_calibrate", "save_model"]


def measure_and_calibrate(model: Model, validation: RankedSet, trained: Model | None = None) -> None:
    """Add metrics on validation data to the facts of a model, and calibrate it if its recipe says so.

    `trained` is the part of the model that was trained, if it reads features of a frozen one.
    """
    reader = replace(trained or model, calibration=None)
    metrics, reading, truth = measure(reader, validation, model.recipe.batch_size)
    model.about |= {"metrics": metrics, "measured_on": "validation"}
    if model.recipe.calibrate:
        model.calibration = calibrate(reading, truth, supervision=model.method.supervision)
        model.about["calibration_error"] = calibration_errors(reading, truth, model.calibration)
        reading = model.calibration.apply(reading)
    model.about.pop("ties", None)
    if reading.tau is not None:
        model.about["ties"] = asdict(gain_of_ties(reading, truth))
        reader = replace(reader, calibration=model.calibration)  # ties depend on it
        model.about["metrics"] = measure(reader, validation, model.recipe.batch_size).metrics
    if model.recipe.jnd:
        model.jnd = fit_scale(reading)


def choose_ties(model: Model, validation: RankedSet | None, trained: Model | None = None) -> str | None:
    """Drop the threshold of a model that was asked to choose, if it has gained nothing; returns a note."""
    known = model.about.get("ties")
    if known is None or validation is None:
        return None
    numbers = f"{known['gain']:+.3f} (standard error {known['error']:.3f}) per instance on validation data"
    if known["gain"] > 0:
        return f"ties are learned: the threshold gains {numbers}"
    without_ties(model)
    trained = None if trained is None else replace(model, network=trained.network)
    measure_and_calibrate(model, validation, trained)
    return f"no ties: the threshold gains {numbers}"


def finish(
    model: Model,
    result: Result,
    conformal: RankedSet | RankedData | None,
    facts: Callable[[Result], Mapping[str, Any]] | None,
) -> None:
    """Calibrate the guarantees of a trained model, and add facts about it."""
    last = model.method.stages[-1].name
    ended = any(row["stage"] in (last, "trees") for row in result.history)
    if ended and conformal is not None:
        _guarantee(model, as_set(conformal, model.inputs, drawn=False, seed=model.recipe.seed))
    if facts is not None:
        model.about |= facts(result)


def _guarantee(model: Model, data: RankedSet) -> None:
    """Calibrate the guarantees of a model."""
    reading, truth = read(model, data, model.recipe.batch_size, calibrated=True)
    model.calibrate_reading(reading, truth.numpy())


def save_model(model: Model, place: Path, result: Result) -> None:
    """Save the model of a run; an existing one is never replaced by a worse one."""
    if not result.history:  # nothing was learned yet
        return
    sweep(place.parent)
    about = read_config(place).get("about", {}) if place.exists() else {"interrupted": True}
    ended = not about.get("interrupted", True)
    if result.interrupted and (ended or about.get("images", 0) > result.images):
        return
    if result.unproven and ended and not _same_weights(model, place):
        raise DataError(
            f"the best weights of the run, {place.parent / 'best.pt'}, are not those that {place} was made "
            f"from. Nothing was changed. Restore the file, or remove {place} to make it from these"
        )
    model.save(place, overwrite=True)


def _same_weights(model: Model, place: Path) -> bool:
    """Whether the weights on disk are those of the model, or cannot be read."""
    try:
        there = load_file(place / "model.safetensors")
    except (OSError, SafetensorError):
        return True
    now = model.network.state_dict()
    return there.keys() == now.keys() and all(torch.equal(now[name].cpu(), there[name]) for name in now)

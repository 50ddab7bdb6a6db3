"""Facts about a model or a run, ready for JSON, without building a network."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from gaussianmlr._utils.leftovers import sweep
from gaussianmlr.errors import DataError
from gaussianmlr.model.checks import sizes_of
from gaussianmlr.model.schema import read_config, read_run
from gaussianmlr.training.run_folder import Standing, read_checkpoint

__all__ = ["describe"]


def describe(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Facts about the model or the run in a folder.

    Parameters
    ----------
    path : path-like
        Written by `gmlr train` or `Model.save`.

    Raises
    ------
    DataError
        If the folder is neither.
    """
    folder = Path(path)
    if (folder / "run.json").is_file():
        return _run(folder)
    return _model(folder)


def _model(folder: Path) -> dict[str, Any]:
    config = read_config(folder)
    try:
        recipe, inputs, about = config["recipe"], dict(config["inputs"]), dict(config.get("about", {}))
        inputs.pop("scaling", None)  # two numbers per column, too many to show
        return {
            "model": str(folder),
            "method": recipe["method"],
            "supervision": recipe["method_settings"].get("supervision", "strong"),
            "backbone": recipe["backbone"],
            "head": recipe["head"],
            "parameters": sizes_of(folder / "model.safetensors")[1],
            "labels": config["labels"],
            "inputs": inputs,
            "instances seen": about.get("images"),
            "seconds": about.get("seconds"),
            "data": about.get("fingerprint"),
            "versions": config.get("versions", {}),
            "recipe": recipe,
            "temperatures": {
                name: round(value, 4) for name, value in (config.get("calibration") or {}).items()
            },
            "calibration error": about.get("calibration_error"),
            "measured on": about.get("measured_on"),
            "metrics": about.get("metrics", {}),
        }
    except (KeyError, TypeError, AttributeError) as error:
        raise DataError(f"the config of {folder} was changed: {error}") from None


def _run(folder: Path) -> dict[str, Any]:
    try:
        run = read_run(folder)
        recipe, data = run["recipe"], run["data"]
        found: dict[str, Any] = {
            "run": str(folder),
            "method": recipe["method"],
            "backbone": recipe["backbone"],
            "labels": data["labels"],
            "data": data["fingerprint"],
            "recipe": recipe,
        }
    except DataError:
        raise
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(f"{folder} is not a run of gaussianmlr, or was changed: {error}") from None
    checkpoint = folder / "checkpoint.pt"
    standing = read_checkpoint(checkpoint)[0] if checkpoint.is_file() else Standing()
    sweep(folder)  # restores a model that a dead process had moved aside
    found["state"] = "finished" if standing.finished else "not finished: the same command resumes"
    later = recipe.get("later_epochs")
    epochs = recipe["epochs"] if later is None else f"{recipe['epochs']}, then {later}"
    found["epochs"] = f"{len(standing.history)} done, {epochs} per stage"
    found["instances seen"], found["seconds"] = standing.images, round(standing.seconds, 1)
    if standing.history and "tau_b" in standing.history[-1]:
        found["last tau_b"] = round(standing.history[-1]["tau_b"], 4)
    if (folder / "model").is_dir():
        model = _model(folder / "model")
        found |= {name: model[name] for name in ("model", "parameters", "inputs", "measured on", "metrics")}
    return found

"""What a model or a run says of itself, ready for JSON; no network is built for it."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

from gaussianmlr.checkpoints import Standing
from gaussianmlr.errors import DataError
from gaussianmlr.model import read_config

__all__ = ["describe"]


def describe(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Facts about the model or the run in a folder.

    Parameters
    ----------
    path : path-like
        What `gmlr train` wrote, or `Model.save`.

    Raises
    ------
    DataError
        For a folder that is neither.
    """
    folder = Path(path)
    if (folder / "run.json").is_file():
        return _run(folder)
    return _model(folder)


def _model(folder: Path) -> dict[str, Any]:
    config = read_config(folder)
    try:
        recipe, inputs, about = config["recipe"], dict(config["inputs"]), dict(config.get("about", {}))
        inputs.pop("scaling", None)  # a number or two a column: nothing to read
        return {
            "model": str(folder),
            "method": recipe["method"],
            "supervision": recipe["method_settings"].get("supervision", "strong"),
            "backbone": recipe["backbone"],
            "head": recipe["head"],
            "parameters": _parameters(folder / "model.safetensors"),
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


def _parameters(file: Path) -> int:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(file, "numpy") as weights:
            return sum(math.prod(weights.get_slice(name).get_shape()) for name in weights.keys())  # noqa: SIM118
    except (OSError, SafetensorError) as error:
        raise DataError(f"{file} cannot be read: {error}") from None


def _run(folder: Path) -> dict[str, Any]:
    import torch

    try:
        run = json.loads((folder / "run.json").read_text("utf-8"))
        recipe, data = run["recipe"], run["data"]
        found: dict[str, Any] = {
            "run": str(folder),
            "method": recipe["method"],
            "backbone": recipe["backbone"],
            "labels": data["labels"],
            "data": data["fingerprint"],
            "recipe": recipe,
        }
        checkpoint = folder / "checkpoint.pt"
        standing = Standing()
        if checkpoint.is_file():
            loaded = torch.load(checkpoint, weights_only=True, map_location="cpu", mmap=True)
            standing = Standing(**json.loads(loaded["standing"]))
    except (OSError, ValueError, KeyError, TypeError, RuntimeError) as error:
        raise DataError(f"{folder} is no run of gaussianmlr, or was changed: {error}") from None
    found["state"] = "finished" if standing.finished else "not finished: the same command goes on"
    later = recipe.get("later_epochs")
    planned = f"{recipe['epochs']} a stage" if later is None else f"{recipe['epochs']}, then {later} a stage"
    found["epochs"] = f"{len(standing.history)} done, {planned}"
    found["instances seen"], found["seconds"] = standing.images, round(standing.seconds, 1)
    if standing.history and "tau_b" in standing.history[-1]:
        found["last tau_b"] = round(standing.history[-1]["tau_b"], 4)
    if (folder / "model").is_dir():
        model = _model(folder / "model")
        found |= {name: model[name] for name in ("model", "parameters", "inputs", "measured on", "metrics")}
    return found

"""Facts about a model or a run, ready for JSON, without building a network."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from gaussianmlr._utils.leftovers import sweep
from gaussianmlr.data.columns import show_cell
from gaussianmlr.data.inputs import Inputs, columns_of, encoding_of
from gaussianmlr.errors import DataError
from gaussianmlr.model.checks import sizes_of
from gaussianmlr.model.guarantees import Conformal
from gaussianmlr.model.network import built_of
from gaussianmlr.model.schema import read_config, read_run
from gaussianmlr.model.shipped import place_of
from gaussianmlr.training.boosting import read_boosting
from gaussianmlr.training.run_folder import TREES, Standing, read_checkpoint

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
    folder = place_of(path)
    if (folder / "run.json").is_file():
        return _run(folder)
    return _model(folder)


def _model(folder: Path) -> dict[str, Any]:
    config = read_config(folder)
    try:
        recipe, inputs, about = config["recipe"], dict(config["inputs"]), dict(config.get("about", {}))
        columns = _columns(config["inputs"])
        if columns:
            inputs.pop("columns", None)
        for name in ("scaling", "encoding"):  # too long to show; `columns` sums them up
            inputs.pop(name, None)
        return {
            "model": str(folder),
            "method": recipe["method"],
            "supervision": recipe["method_settings"].get("supervision", "strong"),
            "backbone": _built_of(config),
            "head": recipe["head"],
            "chosen": about.get("chosen", {}).get("why"),
            "parameters": sizes_of(folder / "model.safetensors")[1],
            "labels": config["labels"],
            "inputs": inputs,
            "columns": columns,
            "instances seen": about.get("images"),
            "seconds": about.get("seconds"),
            "data": about.get("fingerprint"),
            "versions": config.get("versions", {}),
            "recipe": recipe,
            "temperatures": {
                name: round(value, 4) for name, value in (config.get("calibration") or {}).items()
            },
            "ties": {name: _short(value) for name, value in (about.get("ties") or {}).items()},
            "guarantees": _guarantees(config.get("conformal")),
            "calibration error": about.get("calibration_error"),
            "measured on": about.get("measured_on"),
            "metrics": about.get("metrics", {}),
            "peers": about.get("peers"),
        }
    except (KeyError, TypeError, AttributeError) as error:
        raise DataError(f"the config of {folder} was changed: {error}") from None


def _short(value: Any) -> Any:
    return round(value, 4) if isinstance(value, float) else value


def _guarantees(conformal: dict[str, Any] | None) -> dict[str, Any]:
    if conformal is None:
        return {}
    known = Conformal.from_dict(conformal)
    return {"calibration rows": known.rows, "smallest alpha": round(known.smallest_alpha, 4)}


def _columns(inputs: Inputs) -> dict[str, str]:
    """What each column of a table holds, in words; nothing if all are numbers without gaps."""
    encoding, scaling = encoding_of(inputs), inputs.get("scaling")
    found, place = {}, 0
    for name, column in zip(columns_of(inputs), encoding or ()):
        found[name] = column.shown
        if scaling is not None and column.kind in ("number", "date"):
            mean, std = scaling["mean"][place], scaling["std"][place]
            around = f"mean {show_cell(mean, column)}"
            found[name] += f"; {around}" + (f", std {std:.4g}" if column.kind == "number" else "")
        place += column.width
    return found


def _run(folder: Path) -> dict[str, Any]:
    try:
        run = read_run(folder)
        recipe, data = run["recipe"], run["data"]
        found: dict[str, Any] = {
            "run": str(folder),
            "method": recipe["method"],
            "backbone": built_of(recipe["backbone"], recipe["model"]),
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
    done = standing.finished if recipe["model"] == "network" else _is_made(folder / "model")
    found["state"] = "finished" if done else "not finished: the same command resumes"
    later = recipe.get("later_epochs")
    epochs = recipe["epochs"] if later is None else f"{recipe['epochs']}, then {later}"
    found["epochs"] = f"{len(standing.history)} done, {epochs} per stage"
    if (folder / TREES).is_file():
        found["rounds"] = read_boosting(folder / TREES)[0].rounds
    found["instances seen"], found["seconds"] = standing.images, round(standing.seconds, 1)
    if standing.history and "tau_b" in standing.history[-1]:
        found["last tau_b"] = round(standing.history[-1]["tau_b"], 4)
    if (folder / "model").is_dir():
        model = _model(folder / "model")
        shown = ("model", "backbone", "chosen", "parameters", "inputs", "columns", "measured on", "metrics")
        found |= {name: model[name] for name in (*shown, "peers")}
    return found


def _built_of(config: dict[str, Any]) -> str:
    kind = "network" if not config["trees_sha256"] else "both" if config["members"] else "trees"
    return built_of(config["recipe"]["backbone"], kind)


def _is_made(folder: Path) -> bool:
    """Whether the model of a run is there, and is not that of an interrupted one."""
    return folder.is_dir() and not read_config(folder)["about"].get("interrupted", False)

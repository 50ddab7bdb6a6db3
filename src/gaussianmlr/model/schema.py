"""Schema of a model's config, which is checked before anything is built from it."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, model_validator

from gaussianmlr._utils.leftovers import sweep
from gaussianmlr._utils.strict_json import read_json
from gaussianmlr._utils.typed import problem
from gaussianmlr._version import __version__
from gaussianmlr.errors import DataError, shorten
from gaussianmlr.model.recipe import Recipe

__all__ = ["CONFIG", "FORMAT", "FORMAT_VERSION", "check_inputs", "digest_of", "read_config", "read_run"]

FORMAT = "gaussianmlr-model"
FORMAT_VERSION = 1
CONFIG = "config.json"
MOST_LABELS, MOST_COLUMNS, MOST_MEMBERS, LONGEST_SIDE = 100_000, 1_000_000, 1_000, 4_096

Digest = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
Name = Annotated[str, StringConstraints(min_length=1, max_length=1_000)]
Side = Annotated[int, Field(ge=1, le=LONGEST_SIDE)]
Size = Annotated[list[Side], Field(min_length=2, max_length=2)]
Positive = Annotated[float, Field(gt=0)]
Temperature = Annotated[float, Field(ge=1e-3, le=1e3)]
_LEFT_OUT: Any = None  # for keys that may be missing but not null


class _Part(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)


class _Scaling(_Part):
    mean: list[float]
    std: list[Positive]


class _Preprocess(_Part):
    size: Size = _LEFT_OUT
    crop: Annotated[float, Field(gt=0, le=1)] | None = None
    mean: list[float] = _LEFT_OUT
    std: list[Positive] = _LEFT_OUT
    channels: Literal[1, 3] = 3
    interpolation: Literal["nearest", "bilinear", "bicubic", "lanczos"] = "bilinear"


class _Inputs(_Part):
    kind: Literal["image", "table"]
    channels: Annotated[int, Field(ge=1, le=MOST_COLUMNS)]
    size: Size = _LEFT_OUT
    columns: list[str] = _LEFT_OUT
    preprocess: _Preprocess = _LEFT_OUT
    scaling: _Scaling = _LEFT_OUT

    @model_validator(mode="after")
    def _agree(self) -> _Inputs:
        wide = self.channels
        of_tables = {"columns": self.columns}
        if self.scaling is not None:
            of_tables |= {"mean": self.scaling.mean, "std": self.scaling.std}  # type: ignore[dict-item]
        for name, values in of_tables.items():
            if values is not None and (self.kind != "table" or len(values) != wide):
                raise ValueError(f"{len(values)} {name} for {wide} channels of {self.kind} inputs")
        if self.preprocess is not None:
            lengths = {len(one) for one in (self.preprocess.mean, self.preprocess.std) if one}
            if self.kind != "image" or self.preprocess.channels != wide or lengths - {wide}:
                raise ValueError(f"a preprocess that does not fit {wide} channels of {self.kind} inputs")
        return self


class _Calibration(_Part):
    relevance: Temperature = 1.0
    pairs: Temperature = 1.0


class _About(BaseModel):
    """The fields that the package writes are checked; callers may add others."""

    model_config = ConfigDict(strict=True, extra="allow", allow_inf_nan=False)
    images: Annotated[int, Field(ge=0, le=1 << 62)] = _LEFT_OUT
    seconds: Annotated[float, Field(ge=0)] = _LEFT_OUT
    fingerprint: str = _LEFT_OUT
    interrupted: bool = _LEFT_OUT
    metrics: dict[str, float | None] = _LEFT_OUT
    measured_on: str = _LEFT_OUT
    calibration_error: dict[str, dict[str, float | None]] = _LEFT_OUT
    commit: str | None = None


class _Config(_Part):
    format: Literal["gaussianmlr-model"]
    format_version: Annotated[int, Field(ge=1)]
    weights_sha256: Digest
    config_sha256: Digest = _LEFT_OUT
    method: Name
    labels: Annotated[list[str], Field(min_length=1, max_length=MOST_LABELS)]
    members: Annotated[int, Field(ge=1, le=MOST_MEMBERS)] = 1
    inputs: _Inputs
    recipe: dict[str, Any]
    calibration: _Calibration | None = None
    about: _About = _LEFT_OUT
    versions: dict[str, str] = _LEFT_OUT

    @model_validator(mode="after")
    def _labels_differ(self) -> _Config:
        if len(set(self.labels)) < len(self.labels):
            raise ValueError("labels that are not all different")
        return self


def read_config(folder: Path) -> dict[str, Any]:
    """The config of a model, complete, unchanged and of the right types.

    Examples
    --------
    >>> read_config(Path("nowhere"))
    Traceback (most recent call last):
        ...
    gaussianmlr.errors.DataError: no model at nowhere: expected a folder that `gmlr train` or `save` wrote
    """
    file, config = folder / CONFIG, _read_format(folder)
    # Models of the first versions have no checksum of their config.
    if "config_sha256" in config and config["config_sha256"] != digest_of(config):
        raise DataError(f"{file} is not the file that was saved: it was changed; copy it again")
    try:
        _Config.model_validate(config)
        Recipe.from_dict(config["recipe"])
    except ValidationError as error:
        raise DataError(f"{file} was changed: {problem(error)}") from None
    except (DataError, ArithmeticError, RecursionError, TypeError) as error:
        raise DataError(f"{file} was changed: {error}") from None
    if "metrics" in config.get("about", {}):  # JSON has no NaN
        metrics = config["about"]["metrics"]
        config["about"]["metrics"] = {name: math.nan if x is None else x for name, x in metrics.items()}
    return {"members": 1, "calibration": None, "about": {}, "versions": {}, **config}


def _read_format(folder: Path) -> dict[str, Any]:
    """The config of a folder as JSON gives it, if it is of a format that this version reads."""
    if not folder.is_dir():
        sweep(folder.parent)  # restores a model that a dead process had moved aside
    if not folder.is_dir():
        raise DataError(f"no model at {folder}: expected a folder that `gmlr train` or `save` wrote")
    try:
        config = read_json(folder / CONFIG)
    except FileNotFoundError:
        raise DataError(f"{folder} is not a model: it has no {CONFIG}") from None
    except OSError as error:
        raise DataError(f"{folder / CONFIG} cannot be read: {error.strerror or error}") from None
    if not isinstance(config, dict) or config.get("format") != FORMAT:
        raise DataError(f"{folder} is not a model of gaussianmlr: {CONFIG} does not say format {FORMAT!r}")
    version = config.get("format_version")
    if type(version) is int and version > FORMAT_VERSION:
        raise DataError(
            f"{folder} has model format {shorten(version)}, but this gaussianmlr {__version__} reads up to "
            f"{FORMAT_VERSION}; update gaussianmlr"
        )
    return config


class _Trained(BaseModel):
    model_config = ConfigDict(strict=True, extra="allow")
    labels: list[str]
    fingerprint: str


class _Run(BaseModel):
    model_config = ConfigDict(strict=True, extra="allow")
    recipe: dict[str, Any]
    data: _Trained


def read_run(folder: Path) -> dict[str, Any]:
    """The contents of ``run.json``; fields of the recipe that were added later take their defaults.

    Examples
    --------
    >>> read_run(Path("nowhere"))
    Traceback (most recent call last):
        ...
    gaussianmlr.errors.DataError: nowhere is not a run of gaussianmlr: it has no run.json
    """
    file = folder / "run.json"
    try:
        run = read_json(file)
        _Run.model_validate(run)
        recipe = Recipe.from_dict({**Recipe().to_dict(), **run["recipe"]})
    except FileNotFoundError:
        raise DataError(f"{folder} is not a run of gaussianmlr: it has no run.json") from None
    except OSError as error:
        raise DataError(f"{file} cannot be read: {error.strerror or error}") from None
    except ValidationError as error:
        raise DataError(f"{folder} is not a run of gaussianmlr, or was changed: {problem(error)}") from None
    except (DataError, ArithmeticError, RecursionError, TypeError) as error:
        raise DataError(f"{folder} is not a run of gaussianmlr, or was changed: {error}") from None
    return {**run, "recipe": recipe.to_dict()}


def digest_of(config: Mapping[str, Any]) -> str:
    """The checksum of a config without its checksum, whatever its layout.

    Examples
    --------
    >>> digest_of({"b": 1, "a": 2}) == digest_of({"a": 2, "b": 1, "config_sha256": "..."})
    True
    """
    rest = {name: value for name, value in config.items() if name != "config_sha256"}
    text = json.dumps(rest, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def check_inputs(inputs: Mapping[str, Any]) -> None:
    """Refuse inputs of a model that could not be loaded again.

    Examples
    --------
    >>> check_inputs({"kind": "table", "channels": 2, "columns": ["height"]})
    Traceback (most recent call last):
        ...
    gaussianmlr.errors.DataError: inputs: 1 columns for 2 channels of table inputs
    """
    try:
        _Inputs.model_validate_json(json.dumps(inputs))
    except ValidationError as error:
        raise DataError(f"inputs: {problem(error)}") from None
    except TypeError as error:
        raise DataError(f"inputs: {error}") from None

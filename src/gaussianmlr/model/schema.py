"""Schema of a model's config, which is checked before anything is built from it."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, model_validator

from gaussianmlr._utils.leftovers import sweep
from gaussianmlr._utils.strict_json import read_json
from gaussianmlr._utils.typed import problem
from gaussianmlr._version import __version__
from gaussianmlr.data.columns import LONGEST_CATEGORY, MOST_CATEGORIES, PARTS
from gaussianmlr.data.tokens import MINILM, MOST_TERMS, MOST_TOKENS, TFIDF
from gaussianmlr.errors import DataError, shorten
from gaussianmlr.model.conformal import MOST_POINTS
from gaussianmlr.model.packaged import is_packaged
from gaussianmlr.model.recipe import Recipe
from gaussianmlr.model.scale import MOST_KNOTS, JndScale

__all__ = ["CONFIG", "FORMAT", "FORMAT_VERSION", "check_inputs", "digest_of", "read_config", "read_run"]

FORMAT = "gaussianmlr-model"
FORMAT_VERSION = (
    3  # the second has trees, the third weights in packages; models without are written as before
)
CONFIG = "config.json"
_LONGEST_VOCABULARY, _WORDS = 4 << 20, 30_522  # characters; words of MiniLM
MOST_LABELS, MOST_COLUMNS, MOST_MEMBERS, LONGEST_SIDE = 1_000_000, 1_000_000, 1_000, 4_096
LARGEST_CONFIG = 96 << 20  # bytes: names of so many labels and columns, and the scaling of these

Digest = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
Name = Annotated[str, StringConstraints(min_length=1, max_length=1_000)]
Category = Annotated[str, StringConstraints(max_length=LONGEST_CATEGORY)]
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


class _Text(_Part):
    encoder: Annotated[str, StringConstraints(pattern=r"^(text:minilm|text:tfidf|hf:.+)$", max_length=1_000)]
    tokens: Annotated[int, Field(ge=2, le=MOST_TOKENS)]
    vocabulary: Annotated[str, StringConstraints(min_length=1, max_length=_LONGEST_VOCABULARY)] = _LEFT_OUT
    weights: Annotated[list[Positive], Field(min_length=1, max_length=MOST_TERMS)] = _LEFT_OUT

    @model_validator(mode="after")
    def _agree(self) -> _Text:
        words = [] if self.vocabulary is None else self.vocabulary.split("\n")
        if self.encoder == TFIDF and (len(words) != len(self.weights or ()) or len({*words}) != len(words)):
            raise ValueError(f"{len(words):,} terms of texts and {len(self.weights or ()):,} weights")
        if self.encoder != TFIDF and self.weights is not None:
            raise ValueError(f"weights of terms for {self.encoder}")
        if self.encoder == MINILM and (len(words) > _WORDS or not {"[UNK]", "[CLS]", "[SEP]"} <= {*words}):
            raise ValueError(f"a vocabulary of {len(words):,} words that {self.encoder} cannot have")
        return self


class _Column(_Part):
    kind: Literal["number", "boolean", "category", "date", "text"]
    categories: Annotated[list[Category], Field(max_length=MOST_CATEGORIES)] = _LEFT_OUT
    frequent: Annotated[list[Annotated[int, Field(ge=0)]], Field(max_length=MOST_CATEGORIES)] = _LEFT_OUT
    other: bool = False
    parts: Annotated[list[Literal["days", "day of year", "weekday", "hour"]], Field(max_length=4)] = _LEFT_OUT
    gaps: bool = False
    text: _Text | None = _LEFT_OUT

    @model_validator(mode="after")
    def _agree(self) -> _Column:
        if (self.kind == "text") != (self.text is not None):
            raise ValueError(f"what texts are read as in a column of kind {self.kind}")
        texts, frequent = self.categories or [], self.frequent or []
        if (texts or frequent or self.other) and self.kind != "category":
            raise ValueError(f"categories in a column of kind {self.kind}")
        if any(one >= other for one, other in pairwise(texts)):
            raise ValueError("categories that are not sorted, or not all different")
        if any(one >= other for one, other in pairwise([-1, *frequent, len(texts)])):
            raise ValueError(f"frequent categories that are not among {len(texts)}, in order")
        parts = self.parts or []
        if (self.kind == "date") != bool(parts) or [one for one in PARTS if one in parts] != parts:
            raise ValueError(f"the parts {parts} in a column of kind {self.kind}")
        return self

    @property
    def width(self) -> int:
        """Number of channels."""
        if self.text is not None:
            return self.text.tokens
        return len(self.parts) if self.kind == "date" else 1


class _Inputs(_Part):
    kind: Literal["image", "table"]
    channels: Annotated[int, Field(ge=1, le=MOST_COLUMNS)]
    size: Size = _LEFT_OUT
    columns: list[str] = _LEFT_OUT
    preprocess: _Preprocess = _LEFT_OUT
    encoding: list[_Column] = _LEFT_OUT
    scaling: _Scaling = _LEFT_OUT

    @model_validator(mode="after")
    def _agree(self) -> _Inputs:
        wide = self.channels
        of_tables: dict[str, Any] = {} if self.encoding is not None else {"columns": self.columns}
        if self.encoding is not None:
            self._check_encoding()
        if self.scaling is not None:
            of_tables |= {"mean": self.scaling.mean, "std": self.scaling.std}
        for name, values in of_tables.items():
            if values is not None and (self.kind != "table" or len(values) != wide):
                raise ValueError(f"{len(values)} {name} for {wide} channels of {self.kind} inputs")
        if self.preprocess is not None:
            lengths = {len(one) for one in (self.preprocess.mean, self.preprocess.std) if one}
            if self.kind != "image" or self.preprocess.channels != wide or lengths - {wide}:
                raise ValueError(f"a preprocess that does not fit {wide} channels of {self.kind} inputs")
        return self

    def _check_encoding(self) -> None:
        if self.columns is None or len(self.columns) != len(self.encoding):
            raise ValueError(
                f"an encoding of {len(self.encoding)} columns for {len(self.columns or ())} names"
            )
        wide = sum(one.width for one in self.encoding)
        if self.kind != "table" or wide != self.channels:
            raise ValueError(f"an encoding of {wide} channels for {self.channels} of {self.kind} inputs")
        if sum(len(one.categories or ()) for one in self.encoding) > MOST_COLUMNS:
            raise ValueError(f"more than {MOST_COLUMNS:,} categories")


class _Calibration(_Part):
    relevance: Temperature = 1.0
    pairs: Temperature = 1.0
    ties: Temperature = 1.0


class _Jnd(_Part):
    knots: Annotated[list[float], Field(min_length=1, max_length=MOST_KNOTS)]
    log_sigma: Annotated[list[float], Field(min_length=1, max_length=MOST_KNOTS)]

    @model_validator(mode="after")
    def _is_a_scale(self) -> _Jnd:
        try:
            JndScale(tuple(self.knots), tuple(self.log_sigma))
        except DataError as error:
            raise ValueError(str(error)) from None
        return self


class _Curve(_Part):
    limits: Annotated[list[float], Field(min_length=1, max_length=MOST_POINTS)]
    losses: Annotated[list[Annotated[float, Field(ge=0)]], Field(min_length=1, max_length=MOST_POINTS)]
    rows: Annotated[int, Field(ge=0, le=1 << 62)]

    @model_validator(mode="after")
    def _falls(self) -> _Curve:
        up, down = sorted(self.limits), sorted(self.losses, reverse=True)
        if (up, down) != (self.limits, self.losses) or len(up) != len(down) or down[-1] > 0:
            raise ValueError("limits that do not rise, or losses that do not fall to 0 beside them")
        return self


class _Conformal(_Part):
    relevance: _Curve
    places: _Curve
    statements: _Curve
    temperatures: Annotated[list[Temperature], Field(min_length=2, max_length=2)]


class _Peer(_Part):
    metrics: dict[str, float | None]
    scores: list[float] = _LEFT_OUT
    seconds: Annotated[float, Field(ge=0)] = _LEFT_OUT


class _Peers(_Part):
    constant_order: _Peer = _LEFT_OUT
    forest: _Peer = _LEFT_OUT
    notes: list[str] = _LEFT_OUT


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
    peers: _Peers = _LEFT_OUT
    commit: str | None = None


class _Config(_Part):
    format: Literal["gaussianmlr-model"]
    format_version: Annotated[int, Field(ge=1)]
    weights_sha256: Digest
    config_sha256: Digest = _LEFT_OUT
    packaged_sha256: Digest = _LEFT_OUT
    method: Name
    labels: Annotated[list[str], Field(min_length=1, max_length=MOST_LABELS)]
    members: Annotated[int, Field(ge=0, le=MOST_MEMBERS)] = 1
    trees_sha256: Annotated[list[Digest], Field(max_length=MOST_MEMBERS)] = _LEFT_OUT
    inputs: _Inputs
    recipe: dict[str, Any]
    calibration: _Calibration | None = None
    jnd: _Jnd = _LEFT_OUT
    conformal: _Conformal | None = None
    about: _About = _LEFT_OUT
    versions: dict[str, str] = _LEFT_OUT

    @model_validator(mode="after")
    def _labels_differ(self) -> _Config:
        if len(set(self.labels)) < len(self.labels):
            raise ValueError("labels that are not all different")
        if self.trees_sha256 and (self.inputs.kind != "table" or self.method != "gmlr"):
            raise ValueError(f"trees for {self.inputs.kind} inputs and the method {self.method!r}")
        if self.members == 0 and not self.trees_sha256:
            raise ValueError("members is 0, and there are no trees")
        return self

    @model_validator(mode="after")
    def _packages_fit(self) -> _Config:
        name, freeze = (self.recipe.get(field) for field in ("backbone", "freeze"))
        fits = isinstance(name, str) and is_packaged(name) and freeze == "all" and self.members == 1
        if self.packaged_sha256 is not None and (not fits or self.trees_sha256):
            raise ValueError(f"packaged_sha256 for the backbone {name!r}, whose weights are in no package")
        return self

    @model_validator(mode="after")
    def _peers_fit(self) -> _Config:
        constant = self.about and self.about.peers and self.about.peers.constant_order
        if constant and len(constant.scores or ()) != len(self.labels):
            raise ValueError(
                f"{len(constant.scores or ())} scores of a constant order of {len(self.labels)} labels"
            )
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
    about = config.get("about", {})
    peers = about.get("peers", {})
    for one in (about, peers.get("constant_order", {}), peers.get("forest", {})):
        if "metrics" in one:  # JSON has no NaN
            one["metrics"] = {name: math.nan if x is None else x for name, x in one["metrics"].items()}
    absent: dict[str, Any] = {
        "members": 1,
        "trees_sha256": [],
        "packaged_sha256": None,
        "calibration": None,
        "jnd": None,
        "conformal": None,
    }
    return {**absent, "about": {}, "versions": {}, **config}


def _read_format(folder: Path) -> dict[str, Any]:
    """The config of a folder as JSON gives it, if it is of a format that this version reads."""
    if not folder.is_dir():
        sweep(folder.parent)  # restores a model that a dead process had moved aside
    if not folder.is_dir():
        raise DataError(f"no model at {folder}: expected a folder that `gmlr train` or `save` wrote")
    try:
        config = read_json(folder / CONFIG, LARGEST_CONFIG)
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
        run = read_json(file, LARGEST_CONFIG)
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

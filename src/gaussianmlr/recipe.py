"""A recipe: every setting of a training run, written next to its result."""

from __future__ import annotations

import dataclasses
import json
import tomllib
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from gaussianmlr.errors import DataError, shorten

Schedule = Literal["one-cycle", "exponential", "constant"]


def _about(default: Any, text: str) -> Any:
    """A field with its documentation, which the command line and the docs show."""
    if isinstance(default, dict):
        return field(default_factory=lambda: dict(default), metadata={"about": text})
    return field(default=default, metadata={"about": text})


@dataclass(frozen=True)
class Recipe:
    """Settings of a training run.

    Every field is documented by `Recipe.describe`; `read` and `from_dict` refuse unknown ones.

    Examples
    --------
    >>> recipe = Recipe(method="lsep", epochs=3)
    >>> Recipe.from_dict(recipe.to_dict()) == recipe
    True
    >>> Recipe.from_dict({"epoch": 3})
    Traceback (most recent call last):
        ...
    gaussianmlr.errors.DataError: no field 'epoch' in a recipe; did you mean 'epochs'?
    """

    method: str = _about("gmlr", "Name of the method, or 'package.module:Class'.")
    method_settings: dict[str, Any] = _about({}, "Settings of the method, supervision among them.")
    backbone: str = _about("fast", "Name of the backbone.")
    backbone_settings: dict[str, Any] = _about({}, "Settings of the backbone.")
    head: str = _about("auto", "'linear', 'tokens', or 'auto': tokens where the backbone gives a map.")
    head_settings: dict[str, Any] = _about({}, "Settings of the head.")
    freeze: int | Literal["none", "all"] = _about(
        "none", "What of the backbone stands still: 'none', 'all', or a number: all but its last stages."
    )
    backbone_rate: float = _about(1.0, "Rate of the backbone, as a multiple of that of the head.")
    epochs: int = _about(10, "Passes over the training data, in every stage that later_epochs does not name.")
    later_epochs: int | None = _about(
        None, "Passes in stages after the first; as many as in the first without it."
    )
    batch_size: int = _about(64, "Instances a step, over all devices together.")
    accumulate: int = _about(1, "Parts a batch is cut into, where memory is short; the step stays the same.")
    optimizer: Literal["adamw", "adam", "muon"] = _about(
        "adamw", "Adam, with decoupled weight decay or without, or Muon for networks trained from nothing."
    )
    rate: float = _about(3e-3, "The largest learning rate.")
    weight_decay: float = _about(0.05, "Weight decay.")
    schedule: Schedule = _about("one-cycle", "Rise and fall in one cycle, decay by epochs, or constant.")
    rise: float = _about(0.3, "Share of a stage in which the rate of one cycle rises.")
    decay: float = _about(0.9, "Factor of the rate in the exponential schedule.")
    decay_every: int = _about(1, "Epochs between two decays.")
    clip: float | None = _about(1.0, "Largest norm of the gradient; none for no clipping.")
    average: float | None = _about(None, "Decay of a moving average of the weights that is kept instead.")
    select: Literal["tau_b", "loss", "last"] = _about(
        "tau_b", "How the best epoch is chosen on validation data."
    )
    calibrate: bool = _about(True, "Fit two temperatures of the probabilities to validation data at the end.")
    patience: int | None = _about(None, "Stop after so many epochs without a better one.")
    seed: int = _about(0, "Seed of everything random.")
    precision: Literal["32-true", "16-mixed", "bf16-mixed"] = _about("32-true", "Lightning's precision.")
    channels_last: bool = _about(True, "Memory layout that makes convolutions quicker.")
    rankers: Literal["aggregate", "all"] = _about(
        "aggregate", "Train on the aggregated order, or on one ranker's order drawn anew each epoch."
    )
    label_weights: dict[str, Any] = _about(
        {}, "By label, how much its terms of the loss count, a pair by the product; 1 where nothing is said."
    )
    order_weight: float = _about(
        1.0, "How much pairs of two relevant labels count in the loss, against all its other terms."
    )
    fresh: bool = _about(
        False, "Draw new training instances each epoch, where data is drawn: Ranked MNIST without repeats."
    )
    augment: Literal["none", "randaugment"] = _about("none", "How training images are changed at random.")
    augment_settings: dict[str, Any] = _about(
        {},
        "Of randaugment: operations (3), magnitude (10) of bins (40); views, how many versions of an image "
        "there are, if not another one each epoch.",
    )
    checkpoint_minutes: float = _about(5.0, "Longest time between two checkpoints within an epoch.")
    workers: int = _about(0, "Processes that load data.")

    def __post_init__(self) -> None:
        for name, kind in typing.get_type_hints(type(self)).items():
            object.__setattr__(self, name, _fit(name, getattr(self, name), kind))
        for name in ("seed", "workers"):
            if getattr(self, name) < 0:
                raise DataError(f"{name} is {getattr(self, name)}; expected 0 or more")
        if self.seed >= 1 << 32:  # numpy's generators take no more
            raise DataError(f"seed is {self.seed}; expected less than {1 << 32}")
        for name in ("epochs", "batch_size", "accumulate", "decay_every"):
            if getattr(self, name) < 1:
                raise DataError(f"{name} is {getattr(self, name)}; expected 1 or more")
        for name in ("rate", "backbone_rate", "decay"):
            if not getattr(self, name) > 0:
                raise DataError(f"{name} is {getattr(self, name)}; expected more than 0")
        for name, value in {**self.label_weights, "order_weight": self.order_weight}.items():
            if type(value) not in (int, float) or not 0 <= value < float("inf"):
                raise DataError(f"the weight of {name} is {shorten(value)}; expected a number from 0 up")
        if self.later_epochs is not None and self.later_epochs < 1:
            raise DataError(f"later_epochs is {self.later_epochs}; expected 1 or more, or none")
        if not 0 < self.rise < 1:
            raise DataError(f"rise is {self.rise}; expected a number between 0 and 1")
        if self.average is not None and not 0 < self.average < 1:
            raise DataError(f"average is {self.average}; expected a number between 0 and 1, or none")

    def epochs_of(self, stage: int) -> int:
        """Passes over the training data in a stage, counted from 0.

        Examples
        --------
        >>> [Recipe(epochs=7, later_epochs=1).epochs_of(stage) for stage in (0, 1)]
        [7, 1]
        """
        return self.epochs if stage == 0 or self.later_epochs is None else self.later_epochs

    def to_dict(self) -> dict[str, Any]:
        """All fields, ready for JSON."""
        return dataclasses.asdict(self)

    def replace(self, **changes: Any) -> Recipe:
        """The recipe with some fields changed, checked as in `from_dict`.

        Another method, backbone or head does not inherit the settings of the one before.

        Examples
        --------
        >>> recipe = Recipe(method_settings={"balance": "comparisons"})
        >>> recipe.replace(method="lsep").method_settings, recipe.replace(epochs=2).method_settings
        ({}, {'balance': 'comparisons'})
        """
        for name in ("method", "backbone", "head"):
            if changes.get(name, getattr(self, name)) != getattr(self, name):
                changes = {f"{name}_settings": {}, **changes}
        return Recipe.from_dict({**self.to_dict(), **changes})

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Recipe:
        """A recipe from its fields; unknown fields and values of another type are refused."""
        kinds = typing.get_type_hints(cls)
        checked = {}
        for name, value in fields.items():
            if name not in kinds:
                raise DataError(f"no field {name!r} in a recipe; {_nearest(name, list(kinds))}")
            checked[name] = value
        return cls(**checked)

    @classmethod
    def read(cls, path: str | Path, base: Recipe | None = None) -> Recipe:
        """A recipe from a TOML or JSON file; what the file leaves out is as in `base`."""
        file = Path(path)
        try:
            text = file.read_text("utf-8")
            fields = tomllib.loads(text) if file.suffix == ".toml" else json.loads(text)
        except OSError as error:
            raise DataError(f"cannot read the recipe {file}: {error.strerror}") from None
        except ValueError as error:
            kind = "TOML" if file.suffix == ".toml" else "JSON (nor named .toml)"
            raise DataError(f"the recipe {file} is no {kind}: {error}") from None
        if not isinstance(fields, dict):
            raise DataError(f"the recipe {file} holds {shorten(fields)}; expected named fields")
        return cls.from_dict(fields) if base is None else base.replace(**fields)

    def to_toml(self) -> str:
        """The recipe as TOML, with what each field means."""
        lines = []
        for one in dataclasses.fields(self):
            value = getattr(self, one.name)
            line = "# not set" if value is None else f"{one.name} = {_toml(value)}"
            lines += [f"# {one.metadata['about']}", f"# {one.name}" if value is None else line, ""]
        return "\n".join(lines)

    @classmethod
    def describe(cls) -> dict[str, str]:
        """What each field means."""
        return {one.name: str(one.metadata["about"]) for one in dataclasses.fields(cls)}


def _nearest(name: str, names: list[str]) -> str:
    import difflib

    close = difflib.get_close_matches(name, names, n=1)
    return f"did you mean {close[0]!r}?" if close else f"it has {', '.join(names)}"


def _fit(name: str, value: Any, kind: Any) -> Any:
    """The value where it has the type of the field, whole numbers as floats where floats are wanted."""
    is_union = typing.get_origin(kind) in (types.UnionType, typing.Union)
    options = typing.get_args(kind) if is_union else (kind,)
    for option in options:
        if typing.get_origin(option) is Literal:
            if value in typing.get_args(option):
                return value
        elif option is float and isinstance(value, int | float) and not isinstance(value, bool):
            return float(value)
        elif isinstance(option, type) and type(value) is option:
            return value
        elif typing.get_origin(option) is dict and isinstance(value, Mapping):
            return dict(value)
    raise DataError(f"{name} is {shorten(value)}; expected {_spell(options)}")


def _spell(options: tuple[Any, ...]) -> str:
    words = []
    for option in options:
        if typing.get_origin(option) is Literal:
            words += [repr(choice) for choice in typing.get_args(option)]
        elif option is type(None):
            words.append("nothing")
        else:
            words.append(
                {"int": "a whole number", "float": "a number", "str": "a text", "bool": "true or false"}.get(
                    getattr(option, "__name__", ""), "named values"
                )
            )
    return " or ".join(words)


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return (
            "{ "
            + ", ".join(f"{json.dumps(key)} = {_toml(one)}" for key, one in value.items() if one is not None)
            + " }"
        )
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value, ensure_ascii=False)

"""A recipe: every setting of a training run, written next to its result."""

from __future__ import annotations

import dataclasses
import difflib
import json
import math
import tomllib
import types
import typing
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from gaussianmlr._utils.bounded import check_file, read_regular
from gaussianmlr._utils.strict_json import loads
from gaussianmlr.errors import DataError, shorten
from gaussianmlr.methods import base as methods
from gaussianmlr.nn.backbones import registry as backbones

_HEAVIEST = 1e15  # weight of a label: a pair has the product of two, in single precision
_DEEPEST = 20  # levels of lists and tables in a setting
Schedule = Literal["one-cycle", "exponential", "constant"]
# Names of fields, what must hold for their values, and how that is said.
_LIMITS: tuple[tuple[tuple[str, ...], Callable[[Any], bool], str], ...] = (
    (("seed", "workers"), lambda value: value >= 0, "0 or more"),
    (("seed",), lambda value: value < 1 << 32, f"less than {1 << 32}"),  # numpy's generators take no more
    (("epochs", "batch_size", "accumulate", "decay_every"), lambda value: value >= 1, "1 or more"),
    (("rate", "backbone_rate", "decay"), lambda value: value > 0, "more than 0"),
    (("later_epochs",), lambda value: value is None or value >= 1, "1 or more, or none"),
    (("conformal",), lambda value: 0 <= value <= 0.5, "a share from 0 to 0.5"),
    (("rise",), lambda value: 0 < value < 1, "a number between 0 and 1"),
    (("average",), lambda value: value is None or 0 < value < 1, "a number between 0 and 1, or none"),
)


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
        "none", "Frozen part of the backbone: 'none', 'all', or a number n: all but its last n stages."
    )
    backbone_rate: float = _about(1.0, "Rate of the backbone, as a multiple of that of the head.")
    epochs: int = _about(10, "Passes over the training data per stage; see later_epochs.")
    later_epochs: int | None = _about(
        None, "Passes in stages after the first; as many as in the first if not set."
    )
    batch_size: int = _about(64, "Instances per step, over all devices together.")
    accumulate: int = _about(1, "Parts that a batch is split into to save memory; the step stays the same.")
    optimizer: Literal["adamw", "adam", "muon"] = _about(
        "adamw", "Adam, with decoupled weight decay or without, or Muon for networks trained from scratch."
    )
    rate: float = _about(3e-3, "The largest learning rate.")
    weight_decay: float = _about(0.05, "Weight decay.")
    schedule: Schedule = _about("one-cycle", "Rise and fall in one cycle, decay by epochs, or constant.")
    rise: float = _about(0.3, "Share of a stage in which the rate of one cycle rises.")
    decay: float = _about(0.9, "Factor of the rate in the exponential schedule.")
    decay_every: int = _about(1, "Epochs between two decays.")
    clip: float | None = _about(1.0, "Maximum norm of the gradient; none for no clipping.")
    average: float | None = _about(
        None, "Decay of a moving average of the weights, to be kept instead; smaller in the first steps."
    )
    select: Literal["tau_b", "loss", "last"] = _about(
        "tau_b", "How the best epoch is chosen on validation data."
    )
    calibrate: bool = _about(True, "Fit two temperatures of the probabilities to validation data at the end.")
    jnd: bool = _about(True, "Fit the scale of just noticeable differences to validation data at the end.")
    conformal: float = _about(
        0.0,
        "Share of the training instances held out from training to calibrate guarantees, up to 0.5; "
        "0 for none.",
    )
    patience: int | None = _about(None, "Stop after this many epochs without improvement.")
    seed: int = _about(0, "Seed of everything random.")
    precision: Literal["32-true", "16-mixed", "bf16-mixed"] = _about("32-true", "Lightning's precision.")
    channels_last: bool = _about(True, "Memory layout for faster convolutions.")
    rankers: Literal["aggregate", "all", "reliable"] = _about(
        "aggregate",
        "Train on the aggregated order, or on that of one ranker, drawn again in each epoch: with equal "
        "chances, or in proportion to reliability.",
    )
    label_weights: dict[str, Any] = _about(
        {}, "Weights of the terms of the loss by label, 1 by default; a pair has the product."
    )
    order_weight: float = _about(
        1.0, "Weight of pairs of two relevant labels in the loss, relative to all other terms."
    )
    fresh: bool = _about(
        False,
        "Draw new training instances in each epoch; for Ranked MNIST, whose images then never repeat.",
    )
    augment: Literal["none", "randaugment"] = _about("none", "How training images are changed at random.")
    augment_settings: dict[str, Any] = _about(
        {},
        "For randaugment: operations (3), magnitude (10) of bins (40); views, the number of versions of "
        "an image, if not a new one in each epoch.",
    )
    model: Literal["network", "trees", "both", "auto"] = _about(
        "network",
        "What is trained on tables by gmlr: a network, boosted trees, both, or what validation favours.",
    )
    trees: dict[str, Any] = _about(
        {}, "Settings of boosted trees: rounds, rate, depth, patience, rows, columns, penalty, bins."
    )
    checkpoint_minutes: float = _about(5.0, "Minutes between two checkpoints within an epoch, at most.")
    workers: int = _about(0, "Number of processes that load data.")

    def __post_init__(self) -> None:
        for name, kind in typing.get_type_hints(type(self)).items():
            object.__setattr__(self, name, _fit(name, getattr(self, name), kind))
        for names, holds, expected in _LIMITS:
            for name in names:
                if not holds(getattr(self, name)):
                    raise DataError(f"{name} is {getattr(self, name)}; expected {expected}")
        for name, value in {**self.label_weights, "order_weight": self.order_weight}.items():
            if type(value) not in (int, float) or not 0 <= value <= _HEAVIEST:
                expected = f"expected a number from 0 up to {_HEAVIEST:g}"
                raise DataError(f"the weight of {name} is {shorten(value)}; {expected}")

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

    def changes(self) -> dict[str, Any]:
        """Fields that differ from their defaults, as the parameter `recipe` of the estimators takes them.

        Examples
        --------
        >>> Recipe(backbone="mlp", epochs=3).changes()
        {'backbone': 'mlp', 'epochs': 3}
        """
        defaults = Recipe().to_dict()
        return {name: value for name, value in self.to_dict().items() if value != defaults[name]}

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
    def read(
        cls, path: str | Path, base: Recipe | None = None, *, said: Collection[str | None] = ()
    ) -> Recipe:
        """A recipe from a TOML or JSON file; missing fields are those of `base`.

        A file may name code, as ``"package.module:Class"``, only if it is trusted (see `trust`) or if the
        user named it too, in `said`.
        """
        file = check_file(path, "a recipe in TOML or JSON")
        try:
            text = read_regular(file).decode("utf-8")
            fields = tomllib.loads(text) if file.suffix == ".toml" else loads(text)
        except OSError as error:
            raise DataError(f"cannot read the recipe {file}: {error.strerror}") from None
        except RecursionError:
            raise DataError(f"the recipe {file} is nested too deeply; expected one or two levels") from None
        except ValueError as error:
            kind = "TOML" if file.suffix == ".toml" else "JSON (and is not named .toml)"
            raise DataError(f"the recipe {file} is not {kind}: {error}") from None
        if not isinstance(fields, dict):
            raise DataError(f"the recipe {file} holds {shorten(fields)}; expected named fields")
        recipe = cls.from_dict(fields) if base is None else base.replace(**fields)
        for name, check_named in (("method", methods.check_named), ("backbone", backbones.check_named)):
            if name in fields and fields[name] not in said:
                check_named(getattr(recipe, name), file)
        return recipe

    def to_toml(self) -> str:
        """The recipe as TOML, with the meaning of each field."""
        lines = []
        for one in dataclasses.fields(self):
            value = getattr(self, one.name)
            line = "# not set" if value is None else f"{one.name} = {_toml(value)}"
            lines += [f"# {one.metadata['about']}", f"# {one.name}" if value is None else line, ""]
        return "\n".join(lines)

    @classmethod
    def describe(cls) -> dict[str, str]:
        """Meaning of each field."""
        return {one.name: str(one.metadata["about"]) for one in dataclasses.fields(cls)}


def _nearest(name: str, names: list[str]) -> str:
    close = difflib.get_close_matches(name, names, n=1)
    return f"did you mean {close[0]!r}?" if close else f"it has {', '.join(names)}"


def _fit(name: str, value: Any, kind: Any) -> Any:
    """The value if it has the type of the field; whole numbers become floats for fields of floats."""
    is_union = typing.get_origin(kind) in (types.UnionType, typing.Union)
    options = typing.get_args(kind) if is_union else (kind,)
    for option in options:
        if typing.get_origin(option) is Literal:
            if value in typing.get_args(option):
                return value
        elif option is float and isinstance(value, int | float) and not isinstance(value, bool):
            _check_number(name, value)
            return float(value)
        elif isinstance(option, type) and type(value) is option:
            _check_number(name, value)
            return value
        elif typing.get_origin(option) is dict and isinstance(value, Mapping):
            for key, one in value.items():
                _check_settings(f"{name}.{key}", one)
            return dict(value)
    raise DataError(f"{name} is {shorten(value)}; expected {_spell(options)}")


def _check_settings(name: str, value: Any, depth: int = 1) -> None:
    """Refuse numbers and depths of nesting beyond what can be stored."""
    if depth > _DEEPEST:
        raise DataError(f"{name} is nested too deeply; expected at most {_DEEPEST} levels")
    if isinstance(value, Mapping | list | tuple):
        for one in value.values() if isinstance(value, Mapping) else value:
            _check_settings(name, one, depth + 1)
    _check_number(name, value)


def _check_number(name: str, value: Any) -> None:
    if isinstance(value, float) and not math.isfinite(value):
        raise DataError(f"{name} is {value}; expected a finite number")
    if isinstance(value, int) and abs(value) >= 1 << 63:
        raise DataError(f"{name} is {shorten(value)}; expected a magnitude below {1 << 63}")


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

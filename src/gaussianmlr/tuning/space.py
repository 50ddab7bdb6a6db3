"""What a search varies: few settings that matter, in ranges around the default recipe."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gaussianmlr.data import RankedData, Setting
from gaussianmlr.model.recipe import Recipe
from gaussianmlr.training.trees import TreeSettings, no_trees

__all__ = ["Dimension", "applied", "asked", "space_of", "value_of"]

Value = float | int | str


@dataclass(frozen=True)
class Dimension:
    """A setting that a search varies.

    Attributes
    ----------
    name : str
        ``field`` or ``field.key`` of a recipe.
    default : float, int or str
        Its value in the default recipe, which is always possible.
    low, high : float or int, optional
        The range of numbers; whole numbers if the default is one.
    log : bool
        Whether the range is searched on a logarithmic scale.
    choices : tuple, optional
        The values, if it is no range.
    """

    name: str
    default: Value
    low: float | None = None
    high: float | None = None
    log: bool = False
    choices: tuple[Value, ...] | None = None

    def ask(self, trial: Any) -> Value:
        """A value for an Optuna trial."""
        if self.choices is not None:
            chosen: Value = trial.suggest_categorical(self.name, self.choices)
            return chosen
        suggest = trial.suggest_int if isinstance(self.default, int) else trial.suggest_float
        number: Value = suggest(self.name, self.low, self.high, log=self.log)
        return number

    def text(self) -> str:
        """Range or choices for people.

        Examples
        --------
        >>> Dimension("rate", 0.001, 0.0002, 0.005, log=True).text()
        '0.0002 to 0.005, log'
        """
        if self.choices is not None:
            return ", ".join(map(str, self.choices))
        return f"{self.low:g} to {self.high:g}" + (", log" if self.log else "")


def space_of(
    recipe: Recipe, data: RankedData | Setting | None = None, fixed: Collection[str] = ()
) -> tuple[Dimension, ...]:
    """The settings to search around a recipe, by what it trains on this data.

    Networks: rate, weight decay, batch size, dropout and width of the head; epochs, where instances repeat;
    width, depth and dropout of an MLP. Tables of `gmlr`: also network, trees or both, and rate, depth,
    penalty, and share of rows and columns of the trees.

    Parameters
    ----------
    recipe : Recipe
        The default.
    data : RankedData or Setting, optional
        What is trained on; it decides whether trees are possible.
    fixed : collection of str
        Names, ``field`` or ``field.key``, that stay as they are.

    Examples
    --------
    >>> for one in space_of(Recipe(backbone="mlp", epochs=60, rate=1e-3), fixed=["batch_size"]):
    ...     print(f"{one.name}: {one.text()}")
    rate: 0.0002 to 0.005, log
    weight_decay: 0.001 to 0.3, log
    epochs: 20 to 120
    head_settings.dropout: 0 to 0.6
    head_settings.hidden: 64, 128, 256, 512
    backbone_settings.width: 64, 128, 256, 512
    backbone_settings.depth: 1 to 3
    backbone_settings.dropout: 0 to 0.5
    """
    found: list[Dimension | None] = [
        _around(recipe, "rate", 5.0),
        _number(recipe, "weight_decay", 1e-3, 0.3, log=True),
        _choice(recipe, "batch_size", (16, 32, 64, 128)),
    ]
    if not recipe.fresh:  # where images are drawn anew, epochs are the budget
        found.append(_number(recipe, "epochs", max(1, recipe.epochs // 3), 2 * recipe.epochs))
    found.append(_number(recipe, "head_settings.dropout", 0.0, 0.6, default=0.0))
    if recipe.backbone != "fast" and recipe.head != "tokens":
        found.append(_choice(recipe, "head_settings.hidden", (64, 128, 256, 512), default=512))
    if recipe.backbone == "mlp":
        found += [
            _choice(recipe, "backbone_settings.width", (64, 128, 256, 512), default=256),
            _number(recipe, "backbone_settings.depth", 1, 3, default=1),
            _number(recipe, "backbone_settings.dropout", 0.0, 0.5, default=0.0),
        ]
    if _may_have_trees(recipe, data):
        trees = TreeSettings.of(recipe.trees)
        # "auto" ends as one of the three, at twice the price; the default recipe counts as the nearest.
        model = "both" if recipe.model == "auto" else recipe.model
        found = [
            Dimension("model", model, choices=("network", "trees", "both")),
            *found,
            _number(recipe, "trees.rate", 0.02, 0.2, default=trees.rate, log=True),
            _number(recipe, "trees.depth", 2, 6, default=trees.depth),
            _number(recipe, "trees.penalty", 1.0, 30.0, default=trees.penalty, log=True),
            _number(recipe, "trees.rows", 0.4, 1.0, default=trees.rows),
            _number(recipe, "trees.columns", 0.2, 1.0, default=trees.columns),
        ]
    return tuple(
        one
        for one in found
        if one is not None and one.name not in fixed and one.name.partition(".")[0] not in fixed
    )


def _may_have_trees(recipe: Recipe, data: RankedData | Setting | None) -> bool:
    if recipe.model == "network" or not isinstance(data, RankedData) or data.features is None:
        return False
    return no_trees(len(data), data.features.shape[1], len(data.labels)) is None


def value_of(recipe: Recipe, name: str, default: Any = None) -> Any:
    """The value of ``field`` or ``field.key`` in a recipe."""
    field, dot, key = name.partition(".")
    value = getattr(recipe, field)
    return value.get(key, default) if dot else value


def applied(recipe: Recipe, values: Mapping[str, Value]) -> Recipe:
    """A recipe with some settings changed, by name.

    Examples
    --------
    >>> applied(Recipe(), {"rate": 0.01, "head_settings.dropout": 0.2}).head_settings
    {'dropout': 0.2}
    """
    changes: dict[str, Any] = {}
    for name, value in values.items():
        field, dot, key = name.partition(".")
        changes[field] = {**changes.get(field, getattr(recipe, field)), key: value} if dot else value
    return recipe.replace(**changes)


def asked(trial: Any, space: Sequence[Dimension]) -> dict[str, Value]:
    """The values of a trial; those of a part that it does not train are not asked for."""
    values: dict[str, Value] = {}
    for one in space:
        of_trees = one.name.startswith("trees.")
        if (of_trees and values.get("model") == "network") or (
            not of_trees and one.name != "model" and values.get("model") == "trees"
        ):
            continue
        values[one.name] = one.ask(trial)
    return values


def _around(recipe: Recipe, name: str, factor: float) -> Dimension:
    """A number, from a fraction to a multiple of its default."""
    value = float(getattr(recipe, name))
    return Dimension(name, value, value / factor, value * factor, log=True)


def _number(
    recipe: Recipe, name: str, low: float, high: float, *, default: Value | None = None, log: bool = False
) -> Dimension | None:
    """A range that has the default in it; None where the recipe has no such number."""
    value = value_of(recipe, name, default)
    if not isinstance(value, int | float) or isinstance(value, bool) or (log and value <= 0):
        return None
    return Dimension(name, value, min(low, value), max(high, value), log=log)


def _choice(
    recipe: Recipe, name: str, choices: tuple[Value, ...], *, default: Value | None = None
) -> Dimension:
    """Some values, the default among them."""
    value = value_of(recipe, name, default)
    return Dimension(name, value, choices=choices if value in choices else (value, *choices))

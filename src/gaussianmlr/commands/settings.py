"""From options of a command to a recipe."""

from __future__ import annotations

import tomllib
import types
import typing
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from gaussianmlr.errors import DataError
from gaussianmlr.recipe import Recipe

__all__ = ["changed", "recipe_of"]


def recipe_of(
    base: Recipe,
    *,
    file: Path | None = None,
    settings: Iterable[str] = (),
    supervision: str | None = None,
    **fields: Any,
) -> Recipe:
    """The recipe of a command: a base, then a file, then options, then single settings.

    Parameters
    ----------
    base : Recipe
        What nothing else says.
    file : path-like, optional
        A TOML or JSON file with any of the fields.
    settings : iterable of str
        Texts ``field=value`` and ``field.key=value``.
    supervision : str, optional
        The method's supervision.
    **fields
        Fields; None leaves them.

    Examples
    --------
    >>> recipe_of(Recipe(), settings=["clip=none", "backbone_settings.width=8"], epochs=3).epochs
    3
    """
    recipe = base if file is None else Recipe.read(file, base)
    given = {name: value for name, value in fields.items() if value is not None}
    recipe = recipe.replace(**given)
    if supervision is not None:
        recipe = recipe.replace(method_settings={**recipe.method_settings, "supervision": supervision})
    for text in settings:
        recipe = changed(recipe, text)
    return recipe


def changed(recipe: Recipe, text: str) -> Recipe:
    """A recipe with one setting changed, given as ``field=value`` or ``field.key=value``.

    Examples
    --------
    >>> changed(Recipe(), "method_settings.supervision=weak").method_settings
    {'supervision': 'weak'}
    >>> changed(Recipe(), "rate")
    Traceback (most recent call last):
        ...
    gaussianmlr.errors.DataError: the setting 'rate' is no field=value, such as rate=0.001
    """
    name, equals, value = text.partition("=")
    field, dot, key = name.strip().partition(".")
    if not equals or not field:
        raise DataError(f"the setting {text!r} is no field=value, such as rate=0.001")
    if not dot:
        return recipe.replace(**{field: _value(field, value.strip())})
    old = getattr(recipe, field, None)
    if field not in Recipe.describe() or not isinstance(old, dict):
        holders = [one for one in Recipe.describe() if isinstance(getattr(recipe, one), dict)]
        raise DataError(f"no field {field!r} that holds settings; there are {', '.join(holders)}")
    return recipe.replace(**{field: {**old, key: _value("", value.strip())}})


def _value(field: str, text: str) -> Any:
    """A text as TOML reads it; a text that TOML cannot read is itself."""
    kind = typing.get_type_hints(Recipe).get(field)
    options = typing.get_args(kind) if isinstance(kind, types.UnionType) else ()
    if text.lower() in ("none", "") and type(None) in options:
        return None
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text

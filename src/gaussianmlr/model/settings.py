"""Recipes from the options of a command."""

from __future__ import annotations

import tomllib
import types
import typing
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from gaussianmlr.errors import DataError, shorten
from gaussianmlr.model.recipe import Recipe

__all__ = ["changed", "recipe_of"]


def recipe_of(
    base: Recipe,
    *,
    file: Path | None = None,
    settings: Iterable[str] = (),
    supervision: str | None = None,
    ties: str | None = None,
    said: Iterable[str] = (),
    **fields: Any,
) -> Recipe:
    """The recipe of a command: a base, then a file, then options, then single settings.

    Parameters
    ----------
    base : Recipe
        The fields that nothing else sets.
    file : path-like, optional
        A TOML or JSON file with some of the fields.
    settings : iterable of str
        Texts ``field=value`` and ``field.key=value``.
    supervision : str, optional
        The method's supervision.
    ties : str, optional
        Whether the method learns ties.
    said : iterable of str
        Names of code that the user gave elsewhere, which the file may name too.
    **fields
        Fields; None leaves a field as it is.

    Examples
    --------
    >>> recipe_of(Recipe(), settings=["clip=none", "backbone_settings.width=8"], epochs=3).epochs
    3
    """
    told = [*said, *fields.values(), *(text.partition("=")[2].strip(" \"'") for text in settings)]
    recipe = base if file is None else Recipe.read(file, base, said=told)
    given = {name: value for name, value in fields.items() if value is not None}
    recipe = recipe.replace(**given)
    if supervision is not None:
        recipe = recipe.replace(method_settings={**recipe.method_settings, "supervision": supervision})
    if ties is not None:
        recipe = recipe.replace(method_settings={**recipe.method_settings, "ties": ties})
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
    gaussianmlr.errors.DataError: the setting 'rate' is not field=value, such as rate=0.001
    """
    name, equals, value = text.partition("=")
    field, dot, key = name.strip().partition(".")
    if not equals or not field:
        raise DataError(f"the setting {text!r} is not field=value, such as rate=0.001")
    if not dot:
        return recipe.replace(**{field: _value(field, value.strip())})
    old = getattr(recipe, field, None)
    if field not in Recipe.describe() or not isinstance(old, dict):
        holders = [one for one in Recipe.describe() if isinstance(getattr(recipe, one), dict)]
        raise DataError(f"no field {field!r} that holds settings; there are {', '.join(holders)}")
    return recipe.replace(**{field: {**old, key: _value("", value.strip())}})


def _value(field: str, text: str) -> Any:
    """The TOML value of a text, or the text itself if it is not TOML."""
    kind = typing.get_type_hints(Recipe).get(field)
    options = typing.get_args(kind) if isinstance(kind, types.UnionType) else ()
    if text.lower() in ("none", "") and type(None) in options:
        return None
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except ValueError:  # also for a number of thousands of digits
        return text
    except RecursionError:
        raise DataError(f"{shorten(text)} is nested too deeply; expected one or two levels") from None

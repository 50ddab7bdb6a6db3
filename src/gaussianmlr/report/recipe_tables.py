"""Recipes and versions as tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gaussianmlr._utils.strict_json import dumps
from gaussianmlr.model.recipe import Recipe
from gaussianmlr.report.page import Data

__all__ = ["recipe_section", "setting", "versions_section"]


def setting(value: Any) -> str:
    """The value of a setting as text.

    Examples
    --------
    >>> setting(None), setting(True), setting({"width": 8}), setting(0.001)
    ('none', 'true', '{"width": 8}', '0.001')
    """
    if value is None:
        return "none"
    return value if isinstance(value, str) else dumps(value, ensure_ascii=False)


def recipe_section(recipe: Mapping[str, Any], shared: list[list[str]] | None = None) -> Data:
    """Every setting, those that differ from the default first; for a comparison also those of contenders."""
    usual, about = Recipe().to_dict(), Recipe.describe()
    rows: dict[bool, list[list[str]]] = {True: [], False: []}
    for name, value in {**usual, **recipe}.items():
        default = setting(usual[name]) if name in usual else "-"
        same = name in usual and value == usual[name]
        rows[same].append([name, setting(value), default, about.get(name, "")])
    return {"differs": rows[False], "same": rows[True], "shared": shared}


def versions_section(versions: Mapping[str, Any], digests: Mapping[str, str | None]) -> Data:
    """Versions of the software, and digests of data and weights."""
    return {"versions": versions, "digests": {name: text for name, text in digests.items() if text}}

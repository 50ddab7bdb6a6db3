"""Recipes and versions as tables."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from gaussianmlr.recipe import Recipe
from gaussianmlr.reporting.html import Section, details, element, facts, section, table

__all__ = ["made_with", "recipe_section", "setting"]


def setting(value: Any) -> str:
    """The value of a setting, as people write it.

    Examples
    --------
    >>> setting(None), setting(True), setting({"width": 8}), setting(0.001)
    ('none', 'true', '{"width": 8}', '0.001')
    """
    if value is None:
        return "none"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def recipe_section(recipe: Mapping[str, Any], *more: Any, words: str = "") -> Section:
    """Every setting, those that differ from the default first and marked."""
    usual, about = Recipe().to_dict(), Recipe.describe()
    known = {**usual, **recipe}
    differs = [name for name in known if name not in usual or known[name] != usual[name]]
    same = [name for name in known if name not in differs]

    def row(name: str) -> list[Any]:
        default = setting(usual[name]) if name in usual else "-"
        return [
            element("b", name) if name in differs else name,
            element("code", setting(known[name])),
            default,
            about.get(name, ""),
        ]

    head = ("setting", "value", "default", "what it is")
    return section(
        "Recipe",
        element("p", words) if words else None,
        table("Settings that differ from the default", head, map(row, differs), class_="wide")
        if differs
        else element("p", "Every setting is the default."),
        details(
            f"The other {len(same)} settings, all at their defaults",
            table("Settings at their defaults", head, map(row, same), class_="wide", hide=True),
        ),
        more,
        anchor="recipe",
    )


def made_with(versions: Mapping[str, Any], commit: str | None, digests: Mapping[str, str | None]) -> Section:
    """What made it, and what data and weights are known by."""
    pairs = [(name, str(version)) for name, version in versions.items()]
    known = [(name, element("code", text)) for name, text in {"commit": commit, **digests}.items() if text]
    return section(
        "Made with",
        facts(pairs) if pairs else element("p", "No versions were recorded.", class_="soft"),
        facts(known, class_="lines") if known else None,
        anchor="versions",
    )

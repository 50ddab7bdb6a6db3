"""Defaults that suit the data: a recipe, the size and the channels of pictures."""

from __future__ import annotations

from typing import Any

from gaussianmlr.data import RankedData, Setting
from gaussianmlr.data.open import SIDE, channels_of
from gaussianmlr.model.presets import Kind, preset
from gaussianmlr.model.recipe import Recipe
from gaussianmlr.nn import backbones
from gaussianmlr.nn.backbones.sizes import SIZES

__all__ = ["SIDE", "default_recipe", "picture_options", "side_of"]


def default_recipe(found: RankedData | Setting, name: str | None = None, method: str = "gmlr") -> Recipe:
    """A recipe that suits the kind of data, from a preset or without further packages.

    Parameters
    ----------
    found : RankedData or Setting
        The data, as returned by `find_data`.
    name : {"paper", "cpu", "smoke"}, optional
        A preset, "cpu" by default. For pictures, whose presets need a backbone from another package,
        the default is a small network trained from scratch.
    method : str
        Name of the method.

    Examples
    --------
    >>> from gaussianmlr.data.open import find_data
    >>> default_recipe(find_data("gray-s")).backbone, default_recipe(find_data("gray-s"), "paper").backbone
    ('fast', 'resnet18')
    """
    kind: Kind = "canvas" if isinstance(found, Setting) else "photo" if found.kind == "images" else "table"
    recipe = preset(name or "cpu", kind, method=method)
    # Methods with a single supervision have it by default.
    settings = {key: value for key, value in recipe.method_settings.items() if key != "supervision"}
    if kind == "photo" and name is None:
        recipe = Recipe(method=method, backbone="fast", epochs=30, batch_size=32)
    return recipe.replace(method_settings=settings)


def side_of(recipe: Recipe, channels: int = 3) -> int:
    """Height and width of pictures for a recipe: those its backbone was made for, or 224.

    Examples
    --------
    >>> side_of(Recipe(backbone="resnet18"))
    224
    """
    names = recipe.backbone.split("+")
    if all(name in SIZES for name in names):
        return max(SIZES[name] or 0 for name in names) or SIDE
    # Only a backbone from elsewhere has to be built to know its size.
    backbone = backbones.make(recipe.backbone, channels=channels, **recipe.backbone_settings)
    return backbone.inputs.size or SIDE


def picture_options(
    data: RankedData, recipe: Recipe, image_size: int | None = None, channels: int | None = None
) -> dict[str, Any]:
    """Options of `open_data` for pictures; defaults follow the data and the backbone."""
    assert data.images is not None
    if channels is None:
        channels = channels_of(data.images)
    return {
        "channels": channels,
        "image_size": side_of(recipe, channels) if image_size is None else image_size,
    }

"""What suits data where nobody said: a recipe, the size and the channels of pictures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gaussianmlr import backbones
from gaussianmlr.data import RankedData, Setting
from gaussianmlr.presets import Kind, preset
from gaussianmlr.recipe import Recipe

__all__ = ["SIDE", "default_recipe", "picture_options", "side_of"]

SIDE = 224  # of pictures, where the backbone has no size of its own
_LOOKED_AT = 32  # pictures that say whether all are gray


def default_recipe(found: RankedData | Setting, name: str | None = None, method: str = "gmlr") -> Recipe:
    """A recipe that suits the kind of data: that of a preset, or one that needs nothing installed.

    Parameters
    ----------
    found : RankedData or Setting
        The data, as `find_data` gives it.
    name : {"paper", "cpu", "smoke"}, optional
        A preset. Without it, that for a CPU; but for pictures, whose preset has a backbone from
        another package, a small network trained from nothing.
    method : str
        The method, with our settings of it.

    Examples
    --------
    >>> from gaussianmlr.sources import find_data
    >>> default_recipe(find_data("gray-s")).backbone, default_recipe(find_data("gray-s"), "paper").backbone
    ('fast', 'resnet18')
    """
    kind: Kind = "canvas" if isinstance(found, Setting) else "photo" if found.kind == "images" else "table"
    recipe = preset(name or "cpu", kind, method=method)
    # A method that knows one supervision has it without being told.
    settings = {key: value for key, value in recipe.method_settings.items() if key != "supervision"}
    if kind == "photo" and name is None:
        recipe = Recipe(method=method, backbone="fast", epochs=30, batch_size=32)
    return recipe.replace(method_settings=settings)


def side_of(recipe: Recipe, channels: int = 3) -> int:
    """Height and width that pictures are brought to for a recipe: those its backbone was made for, or 224.

    Examples
    --------
    >>> side_of(Recipe(backbone="resnet18"))
    224
    """
    backbone = backbones.make(recipe.backbone, channels=channels, **recipe.backbone_settings)
    return backbone.inputs.size or SIDE


def picture_options(
    data: RankedData, recipe: Recipe, image_size: int | None = None, channels: int | None = None
) -> dict[str, Any]:
    """Options of `open_data` for pictures: what nobody said is as the data and the backbone have it."""
    assert data.images is not None
    if channels is None:
        channels = 1 if all(_is_gray(file) for file in data.images[:_LOOKED_AT]) else 3
    return {
        "channels": channels,
        "image_size": side_of(recipe, channels) if image_size is None else image_size,
    }


def _is_gray(file: Path) -> bool:
    from PIL import Image

    try:
        with Image.open(file) as image:
            return image.mode == "1" or image.mode.startswith(("L", "I"))
    except Exception:  # whatever is wrong with the file is said when it is read
        return False

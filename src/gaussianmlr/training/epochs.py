"""Data that depends on the epoch: fresh images, augmented images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from gaussianmlr.data import Augment
from gaussianmlr.data.loading import Order, RankedSet, fetch, order_of
from gaussianmlr.errors import DataError, shorten
from gaussianmlr.model.recipe import Recipe

__all__ = ["Augmented", "Fresh", "for_training"]


class Fresh:
    """A set with new instances in every epoch.

    Parameters
    ----------
    data : RankedSet
        A set with a method ``fresh(epoch)`` that returns the set of an epoch, such as `RankedMNIST`.

    Examples
    --------
    >>> from gaussianmlr.data import RankedMNIST
    >>> data = RankedMNIST("gray-s", "train", size=10, digits="embedded")
    >>> images, ranks = Fresh(data).tensors_at([3], epoch=2)
    >>> bool((images == data.tensors([23])[0]).all())
    True
    """

    def __init__(self, data: Any) -> None:
        if not callable(getattr(data, "fresh", None)):
            raise DataError(
                f"fresh needs data that is drawn, such as Ranked MNIST; {type(data).__name__} is fixed"
            )
        self.data = data
        self._epoch, self._now = 0, data.fresh(0)

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, index: int) -> Any:
        return self.data[index]

    def tensors_at(self, indices: Sequence[int], epoch: int = 0) -> tuple[Tensor, ...]:
        """Some instances of an epoch."""
        if epoch != self._epoch:
            self._epoch, self._now = epoch, self.data.fresh(epoch)
        return fetch(self._now, list(indices))


class Augmented:
    """A set of randomly augmented images, the same for the same (seed, epoch, index).

    Parameters
    ----------
    data : RankedSet
        Images [channels, height, width], bytes or floats in 0..1.
    augment : Augment
        The augmentation; its preprocessing is not used, as the images are already preprocessed.
    views : int, optional
        Number of versions of an image, used in turn; a new one per epoch by default.

    Examples
    --------
    >>> import numpy as np
    >>> from gaussianmlr.data.loading import Arrays
    >>> data = Arrays(np.full((2, 3, 8, 8), 99, np.uint8), np.ones((2, 4), int))
    >>> images, ranks = Augmented(data, Augment(operations=2)).tensors_at([0, 1], epoch=5)
    >>> images.shape, images.dtype
    (torch.Size([2, 3, 8, 8]), torch.float32)
    """

    def __init__(self, data: RankedSet, augment: Augment, views: int | None = None) -> None:
        if views is not None and views < 1:
            raise DataError(f"views is {views}; expected 1 or more versions of an image")
        self.data, self.augment, self.views = data, augment, views

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, index: int) -> tuple[Tensor, ...]:
        return tuple(part[0] for part in self.tensors_at([index]))

    def set_epoch(self, epoch: int) -> None:
        """Pass the epoch to a set that depends on it."""
        if hasattr(self.data, "set_epoch"):
            self.data.set_epoch(epoch)

    def order(self, seed: int, stage: int, epoch: int) -> Order:
        """The order of an epoch is that of the data."""
        return order_of(self.data, seed, stage, epoch)

    def tensors_at(self, indices: Sequence[int], epoch: int = 0) -> tuple[Tensor, ...]:
        """Some instances, as they are in an epoch."""
        images, *rest = fetch(self.data, list(indices), epoch)
        return (self.changed(images, indices, epoch), *rest)

    def changed(self, images: Tensor, indices: Sequence[int], epoch: int) -> Tensor:
        """Images that belong to some indices, as they are in an epoch."""
        if images.ndim != 4 or images.shape[1] not in (1, 3):
            raise DataError(
                f"augmentation needs images of 1 or 3 channels, not inputs {list(images.shape[1:])}"
            )
        unit = images.float() / 255 if images.dtype == torch.uint8 else images.float()
        if unit.numel() and not (unit.min() >= 0 and unit.max() <= 1):
            raise DataError(
                "augmentation needs images of bytes, or of floats in 0..1, "
                f"not values from {unit.min():.3g} to {unit.max():.3g}"
            )
        found = torch.empty_like(unit)
        view = epoch if self.views is None else epoch % self.views
        for place, index in enumerate(indices):
            found[place] = self.augment.augment(unit[place], epoch=view, index=int(index))
        return found


def for_training(data: RankedSet, recipe: Recipe) -> RankedSet:
    """Training data for a recipe: fresh, augmented, or unchanged.

    Examples
    --------
    >>> from gaussianmlr.data import RankedMNIST
    >>> data = RankedMNIST("gray-s", "train", size=10, digits="embedded")
    >>> type(for_training(data, Recipe(fresh=True))).__name__, for_training(data, Recipe()) is data
    ('Fresh', True)
    """
    if recipe.fresh:
        data = Fresh(data)
    if recipe.augment == "none":
        return data
    for name, value in recipe.augment_settings.items():
        if name not in ("operations", "magnitude", "bins", "views") or type(value) is not int:
            raise DataError(
                f"augment_settings has {name} = {shorten(value)}; "
                "expected operations, magnitude, bins and views, whole numbers"
            )
    settings = dict(recipe.augment_settings)
    views = settings.pop("views", None)
    # Repeated versions do not depend on the seed, so that runs can share their features.
    return Augmented(data, Augment(seed=recipe.seed if views is None else 0, **settings), views)

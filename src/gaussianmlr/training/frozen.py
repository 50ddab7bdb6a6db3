"""The frozen part of a backbone is computed once: its features, or the maps of its frozen stages."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeGuard, runtime_checkable

import torch
from torch import Tensor

from gaussianmlr.data.loading import Arrays, RankedSet, fetch
from gaussianmlr.model.recipe import Recipe
from gaussianmlr.nn.backbones import Backbone
from gaussianmlr.training.epochs import Augmented
from gaussianmlr.training.features import compute_features

__all__ = ["OfFiles", "Versions", "features_of", "stands_still"]

LARGEST = 4 << 30  # bytes of features that are held in memory
_AT_ONCE = 8  # inputs per batch; fixed, so that features do not depend on the recipe's batch size


@runtime_checkable
class OfFiles(Protocol):
    """A set whose inputs are files, so that features can be kept by their contents."""

    files: Sequence[Path]
    ranks: Tensor
    weights: Tensor | None
    seed: int

    def load(self, file: Path) -> Tensor:
        """The input of a file."""

    def loading(self) -> dict[str, Any] | None:
        """What identifies the results of `load`; None if they must not be kept."""


@dataclasses.dataclass(frozen=True)
class Versions:
    """Features of several versions of the same instances, used in turn, one per epoch."""

    each: tuple[Arrays, ...]

    def __len__(self) -> int:
        return len(self.each[0])

    def __getitem__(self, index: int) -> tuple[Tensor, ...]:
        return self.each[0][index]

    def tensors_at(self, indices: Sequence[int], epoch: int = 0) -> tuple[Tensor, ...]:
        """Some instances, as they are in an epoch."""
        return self.each[epoch % len(self.each)].tensors(indices, epoch)

    def rows(self, where: Tensor) -> Versions:
        """Some instances, all their versions."""
        return Versions(tuple(one.rows(where) for one in self.each))


def _in_files(data: RankedSet) -> TypeGuard[OfFiles]:
    return isinstance(data, OfFiles) and data.loading() is not None


def stands_still(recipe: Recipe, data: RankedSet) -> bool:
    """Whether the inputs of the frozen part repeat, as they are or in a fixed number of versions.

    Examples
    --------
    >>> data = Arrays(torch.zeros(3, 2), torch.ones(3, 2).long())
    >>> stands_still(Recipe(freeze="all"), data), stands_still(Recipe(freeze="none"), data)
    (True, False)
    """
    if isinstance(data, Augmented):
        return data.views is not None and stands_still(recipe, data.data)
    if recipe.freeze == "none" or recipe.fresh:
        return False
    told = hasattr(data, "tensors_at") or hasattr(data, "set_epoch")  # the set may change with the epoch
    return isinstance(data, Arrays) or _in_files(data) or not told


def features_of(
    backbone: Backbone,
    data: RankedSet,
    *,
    cache: str | os.PathLike[str] | bool = True,
    progress: Callable[[int, int], None] = lambda done, total: None,
    note: Callable[[str], None] = lambda text: None,
) -> Arrays | Versions | None:
    """Data with features in place of inputs; none where they would not fit into memory.

    Parameters
    ----------
    backbone : Backbone
        What computes them.
    data : RankedSet
        Features of arrays and of files are kept on disk; of other sets they are computed in every run.
        Of augmented data they are those of all its versions, kept where they are of files.
    cache : path-like or bool
        Where they are kept: a folder; True for `features.features_folder`; False for nowhere.
    progress : callable
        Told how many inputs are done, and of how many.
    note : callable
        As of `compute_features`.

    Examples
    --------
    >>> from gaussianmlr.nn import backbones
    >>> data = Arrays(torch.ones(3, 4), torch.ones(3, 2).long())
    >>> features_of(backbones.make("mlp", channels=4, width=8), data, cache=False).inputs.shape
    torch.Size([3, 8])
    """
    views = (data.views or 1) if isinstance(data, Augmented) else 1
    one = compute_features(backbone, fetch(data, [0])[0], cache=False)
    if one.numel() * 4 * len(data) * views > LARGEST:
        return None
    if not isinstance(data, Augmented):
        return _features(backbone, data, cache, progress, note)
    found = []
    for view in range(views):
        before = view * len(data)
        part: RankedSet = _View(data, view)
        if _in_files(data.data):
            part = _ViewOfFiles(data, data.data, view)

        def told(done: int, _: int, before: int = before) -> None:
            progress(before + done, views * len(data))

        found.append(_features(backbone, part, cache, told, note))
    return Versions(tuple(found))


def _features(
    backbone: Backbone,
    data: RankedSet,
    cache: str | os.PathLike[str] | bool,
    progress: Callable[[int, int], None],
    note: Callable[[str], None],
) -> Arrays:
    settings: dict[str, Any] = {
        "batch_size": _AT_ONCE,
        "cache": cache is not False,
        "folder": None if isinstance(cache, bool) else cache,
        "workers": 1 if isinstance(data, _View) else None,  # augmentation seeds the one generator there is
        "progress": progress,
        "note": note,
    }
    if isinstance(data, Arrays):
        return dataclasses.replace(data, inputs=compute_features(backbone, data.inputs, **settings))
    if _in_files(data):
        found = compute_features(backbone, data.files, load=data.load, transform=data.loading(), **settings)
        return Arrays(found, data.ranks, data.weights, data.seed, getattr(data, "shares", None))
    features, ranks, weights = _in_passing(backbone, data, progress)
    if isinstance(data, _View) and isinstance(data.data.data, Arrays):  # whose rankers are drawn later
        return dataclasses.replace(data.data.data, inputs=features)
    return Arrays(features, ranks, weights)


def _in_passing(
    backbone: Backbone, data: RankedSet, progress: Callable[[int, int], None]
) -> tuple[Tensor, Tensor, Tensor | None]:
    parts = []
    for start in range(0, len(data), _AT_ONCE):
        indices = list(range(start, min(start + _AT_ONCE, len(data))))
        inputs, *rest = fetch(data, indices)
        parts.append((compute_features(backbone, inputs, batch_size=_AT_ONCE, cache=False), *rest))
        progress(indices[-1] + 1, len(data))
    features, ranks, *weights = (torch.cat(column) for column in zip(*parts))
    return features, ranks, weights[0] if weights else None


class _View:
    """One version of augmented data."""

    def __init__(self, data: Augmented, view: int) -> None:
        self.data, self.view = data, view

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, index: int) -> tuple[Tensor, ...]:
        return tuple(part[0] for part in self.tensors_at([index]))

    def tensors_at(self, indices: Sequence[int], epoch: int = 0) -> tuple[Tensor, ...]:
        return self.data.tensors_at(indices, self.view)


class _ViewOfFiles(_View):
    """One version of augmented pictures; what is drawn for a file goes by its place among them."""

    def __init__(self, data: Augmented, pictures: OfFiles, view: int) -> None:
        super().__init__(data, view)
        self.pictures = pictures
        self.files, self.ranks = pictures.files, pictures.ranks
        self.weights, self.seed = pictures.weights, pictures.seed
        self.shares = getattr(pictures, "shares", None)
        self._places = {file: place for place, file in enumerate(self.files)}

    def load(self, file: Path) -> Tensor:
        return self.data.changed(self.pictures.load(file)[None], [self._places[file]], self.view)[0]

    def loading(self) -> dict[str, Any]:
        augment = self.data.augment
        drawn = {name: getattr(augment, name) for name in ("operations", "magnitude", "bins", "seed")}
        return {**(self.pictures.loading() or {}), "augment": {**drawn, "view": self.view}}

"""A backbone that stands still: its features are computed once, and the head trains on them alone."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor

from gaussianmlr.backbones import Backbone
from gaussianmlr.batches import Arrays, RankedSet, fetch
from gaussianmlr.features import compute_features
from gaussianmlr.recipe import Recipe

__all__ = ["OfFiles", "features_of", "stands_still"]

LARGEST = 4 << 30  # bytes of features that are held in memory
_AT_ONCE = 8  # inputs; always the same, for features shall not depend on the recipe's batches


@runtime_checkable
class OfFiles(Protocol):
    """A set whose inputs are files, so that features can be kept by their contents."""

    files: Sequence[Path]
    ranks: Tensor
    weights: Tensor | None
    seed: int

    def load(self, file: Path) -> Tensor:
        """The input of a file."""

    def transform(self) -> dict[str, Any]:
        """What `load` does, in numbers and texts."""


def stands_still(recipe: Recipe, data: RankedSet) -> bool:
    """Whether the same features come in every epoch: a frozen backbone, and inputs that do not change.

    Examples
    --------
    >>> data = Arrays(torch.zeros(3, 2), torch.ones(3, 2).long())
    >>> stands_still(Recipe(freeze="all"), data), stands_still(Recipe(freeze="none"), data)
    (True, False)
    """
    if recipe.freeze != "all" or recipe.fresh or recipe.augment != "none":
        return False
    told = hasattr(data, "tensors_at") or hasattr(data, "set_epoch")  # the set may change with the epoch
    return isinstance(data, Arrays | OfFiles) or not told


def features_of(
    backbone: Backbone,
    data: RankedSet,
    *,
    cache: str | os.PathLike[str] | bool = True,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Arrays | None:
    """Data with features in place of inputs; none where they would not fit into memory.

    Parameters
    ----------
    backbone : Backbone
        What computes them.
    data : RankedSet
        Features of arrays and of files are kept on disk; of other sets they are computed in every run.
    cache : path-like or bool
        Where they are kept: a folder; True for `features.features_folder`; False for nowhere.
    progress : callable
        Told how many inputs are done, and of how many.

    Examples
    --------
    >>> from gaussianmlr import backbones
    >>> data = Arrays(torch.ones(3, 4), torch.ones(3, 2).long())
    >>> features_of(backbones.make("mlp", channels=4, width=8), data, cache=False).inputs.shape
    torch.Size([3, 8])
    """
    one = compute_features(backbone, fetch(data, [0])[0], cache=False)
    if one.numel() * 4 * len(data) > LARGEST:
        return None
    settings: dict[str, Any] = {
        "batch_size": _AT_ONCE,
        "cache": cache is not False,
        "folder": None if isinstance(cache, bool) else cache,
        "progress": progress,
    }
    if isinstance(data, Arrays):
        return dataclasses.replace(data, inputs=compute_features(backbone, data.inputs, **settings))
    if isinstance(data, OfFiles):
        found = compute_features(backbone, data.files, load=data.load, transform=data.transform(), **settings)
        return Arrays(found, data.ranks, data.weights, data.seed)
    return _in_passing(backbone, data, progress)


def _in_passing(backbone: Backbone, data: RankedSet, progress: Callable[[int, int], None]) -> Arrays:
    parts = []
    for start in range(0, len(data), _AT_ONCE):
        indices = list(range(start, min(start + _AT_ONCE, len(data))))
        inputs, *rest = fetch(data, indices)
        parts.append((compute_features(backbone, inputs, batch_size=_AT_ONCE, cache=False), *rest))
        progress(indices[-1] + 1, len(data))
    features, ranks, *weights = (torch.cat(column) for column in zip(*parts))
    return Arrays(features, ranks, weights[0] if weights else None)

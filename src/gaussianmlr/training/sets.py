"""Data as the sets that training takes, and the part of it that calibrates guarantees."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from gaussianmlr.data import RankedData
from gaussianmlr.data.inputs import Inputs, table_inputs
from gaussianmlr.data.loading import Arrays, RankedSet
from gaussianmlr.data.open import ranked_set
from gaussianmlr.data.splits import CONFORMAL, STAMP, held_out_size, hold_out
from gaussianmlr.data.tokens import encoder_of
from gaussianmlr.errors import DataError
from gaussianmlr.model.recipe import Recipe
from gaussianmlr.rankers import aggregate, reliability

if TYPE_CHECKING:
    pass

__all__ = ["as_set", "fingerprint_of", "part_off", "ready_sets", "table_inputs_of"]

_OF_GUARANTEES = 1  # a stream of its own beside the recipe's seed


def table_inputs_of(data: RankedSet | RankedData, backbone: str = "") -> Inputs:
    """What is known of the inputs of a table with categories, dates or gaps."""
    if not isinstance(data, RankedData) or data.features is None:
        return {}
    if data.encoding is None and not np.isnan(data.features).any():
        return {}
    names = data.feature_names or tuple(map(str, range(data.features.shape[1])))
    return table_inputs(data.features, names, data.encoding, encoder=encoder_of(backbone))


def ready_sets(
    recipe: Recipe,
    data: RankedSet | RankedData,
    validation: RankedSet | RankedData | None,
    inputs: Inputs,
) -> tuple[RankedSet, RankedSet | None]:
    """Training and validation data as sets; refused if there is nothing to learn from."""
    data = as_set(data, inputs, drawn=recipe.rankers != "aggregate", seed=recipe.seed)
    if len(data) == 0:
        raise DataError("expected at least one instance to train on, got none")
    weights = getattr(data, "weights", None)
    if isinstance(weights, Tensor) and not bool((weights > 0).any()):
        raise DataError("all weights of the training instances are 0; expected one above it")
    if recipe.rankers == "reliable":
        data = _by_reliability(data)
    return data, None if validation is None else as_set(validation, inputs, drawn=False, seed=recipe.seed)


def part_off(
    data: RankedSet | RankedData, recipe: Recipe
) -> tuple[RankedSet | RankedData, RankedSet | RankedData]:
    """The instances to train on, and the recipe's share of them that calibrates guarantees."""
    if isinstance(data, RankedData):
        parts = np.full(len(data), "train", dtype=object)
        hold_out(parts, data.ids or (), CONFORMAL, STAMP, share=recipe.conformal)
        return data.subset(parts == "train"), data.subset(parts == CONFORMAL)
    if not isinstance(data, Arrays):
        raise DataError(
            f"conformal is {recipe.conformal:g}, but no share of {type(data).__name__} can be held out; "
            "give the instances that calibrate guarantees: fit(..., conformal=...)"
        )
    order = torch.from_numpy(np.random.default_rng((recipe.seed, _OF_GUARANTEES)).permutation(len(data)))
    held = held_out_size(len(data), recipe.conformal)
    return data.rows(order[held:].sort().values), data.rows(order[:held])


def as_set(data: RankedSet | RankedData, inputs: Inputs, *, drawn: bool, seed: int) -> RankedSet:
    """Data as a set; with `drawn`, one of several rankers is drawn in each epoch."""
    if isinstance(data, RankedData):
        if data.features is None:
            raise DataError(f"expected features, got {data!r}; for pictures use data.RankedImages")
        if "encoding" in inputs:
            return ranked_set(data, inputs, by_ranker=drawn, seed=seed)
        if np.isnan(data.features).any():
            raise DataError(f"{data!r} has gaps, but the training data has none; fill them first")
        several = drawn and data.by_ranker is not None
        ranks = data.by_ranker if several else data.ranks
        weights = None if data.weights is None else data.weights.astype("float32")
        return Arrays(data.features, ranks, weights, seed)
    if isinstance(data, Arrays) and data.ranks.ndim == 3 and not drawn:
        return Arrays(data.inputs, aggregate(data.ranks.numpy()), data.weights, data.seed)
    return data


def _by_reliability(data: RankedSet) -> RankedSet:
    """Data of several rankers that draws them in proportion to their reliability."""
    ranks = getattr(data, "ranks", None)
    if not isinstance(ranks, Tensor) or ranks.ndim != 3 or not hasattr(data, "shares"):
        return data
    shares = torch.from_numpy(reliability(ranks.numpy()))
    if isinstance(data, Arrays):
        return replace(data, shares=shares)
    data = copy.copy(data)
    data.shares = shares
    return data


def fingerprint_of(data: RankedSet | None) -> str:
    """The fingerprint of data; for sets without one, type and length."""
    if data is None:
        return "none"
    known = getattr(data, "fingerprint", None)
    return str(known()) if callable(known) else f"{type(data).__name__} {len(data)}"

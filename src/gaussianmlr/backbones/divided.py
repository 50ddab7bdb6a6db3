"""A backbone cut in two: the stages that stand still, and those that are trained."""

from __future__ import annotations

from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

from gaussianmlr.backbones.base import Backbone, Inputs, run_steps

__all__ = ["Halves", "divide"]


class Halves(NamedTuple):
    """Run one after the other, they are the backbone; its modules are theirs."""

    still: Backbone
    free: Backbone


def divide(backbone: Backbone) -> Halves | None:
    """The frozen stages and the others as backbones of their own; none where it cannot be cut.

    Parameters
    ----------
    backbone : Backbone
        With all its stages frozen, or some, where its `steps` are known.

    Examples
    --------
    >>> from gaussianmlr import backbones
    >>> backbone = backbones.make("fast", channels=1).eval()
    >>> backbones.freeze(backbone, 1)
    >>> still, free = divide(backbone)
    >>> image = torch.rand(2, 1, 64, 64)
    >>> still(image).shape, bool((free(still(image)) == backbone(image)).all())
    (torch.Size([2, 64, 8, 8]), True)
    """
    if not backbone.frozen:
        return None
    if backbone.frozen == len(backbone.stages()):
        return Halves(backbone, _Nothing(backbone))
    if not backbone.steps():
        return None
    inputs = backbone.inputs
    weight = next(backbone.parameters())
    side = inputs.size or 64
    still = _Half(backbone, slice(None, backbone.frozen), 0, inputs, is_map=True)
    with torch.no_grad():
        width = still(torch.zeros(1, inputs.channels, side, side, device=weight.device)).shape[1]
    still.features = width
    free = _Half(
        backbone, slice(backbone.frozen, None), backbone.features, Inputs(width), is_map=backbone.is_map
    )
    return Halves(still, free.train(backbone.training))


class _Nothing(Backbone):
    """What is left of a backbone that is frozen as a whole: features as they are."""

    def __init__(self, whole: Backbone) -> None:
        kind: Literal["image", "table"] = "image" if whole.is_map else "table"
        super().__init__(whole.features, Inputs(whole.features, kind), is_map=whole.is_map)

    def extract(self, x: Tensor) -> Tensor:
        """The features."""
        return x


class _Half(Backbone):
    """Some steps of a backbone."""

    def __init__(self, whole: Backbone, which: slice, features: int, inputs: Inputs, *, is_map: bool) -> None:
        super().__init__(features, inputs, is_map=is_map)
        self.to(next(whole.parameters()).device)
        stages = whole.stages()
        self.parts = nn.ModuleList(stages[which])
        self.frozen = len(self.parts) if which.start is None else 0
        # In a tuple, which registers nothing; a copy of this half copies the modules of both together.
        self._whole, self._which = (whole,), which
        self.train(False)

    def extract(self, x: Tensor) -> Tensor:
        """What these steps make of it."""
        return run_steps(self._whole[0].steps()[self._which], x)

    def stages(self) -> list[nn.Module]:
        """Its share of the backbone's stages."""
        return list(self.parts)

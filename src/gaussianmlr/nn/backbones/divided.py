"""A backbone divided into its frozen and its trained stages."""

from __future__ import annotations

from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

from gaussianmlr.nn.backbones.base import Backbone, Inputs, run_steps

__all__ = ["Halves", "divide"]


class Halves(NamedTuple):
    """Run in turn, they equal the backbone, whose modules they share."""

    still: Backbone
    free: Backbone


def divide(backbone: Backbone) -> Halves | None:
    """The frozen stages and the others as two backbones; None if it cannot be divided.

    Parameters
    ----------
    backbone : Backbone
        With all stages frozen, or with some frozen and known `steps`.

    Examples
    --------
    >>> from gaussianmlr.nn import backbones
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
    """The trained half of a backbone that is frozen as a whole: the identity."""

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
        # In a tuple, which registers no module; copying this half copies the modules of both.
        self._whole, self._which = (whole,), which
        self.train(False)

    def extract(self, x: Tensor) -> Tensor:
        """The result of these steps."""
        return run_steps(self._whole[0].steps()[self._which], x)

    def stages(self) -> list[nn.Module]:
        """The stages of this half."""
        return list(self.parts)

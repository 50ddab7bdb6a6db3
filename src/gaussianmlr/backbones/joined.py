"""Several backbones side by side: what one does not see, another may."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from gaussianmlr.backbones.base import Backbone, Inputs, make
from gaussianmlr.errors import DataError


class Joined(Backbone):
    """The features of several image backbones, one after the other, in one vector.

    Every member sees the image at the size its weights were made for, and its map is averaged over
    places. Networks that were trained apart make different mistakes, so that a head on both
    is better than on either.

    Parameters
    ----------
    members : sequence of Backbone
        Two or more, for images of as many channels.

    Examples
    --------
    >>> from gaussianmlr import backbones
    >>> backbone = backbones.make("fast+resnet18", channels=1)
    >>> backbone(torch.zeros(2, 1, 224, 224)).shape
    torch.Size([2, 640])
    """

    def __init__(self, members: Sequence[Backbone]) -> None:
        if len(members) < 2 or any(member.inputs.kind != "image" for member in members):
            named = ", ".join(type(member).__name__ for member in members)
            raise DataError(f"expected two or more backbones of images to join, got {named or 'none'}")
        channels = {member.inputs.channels for member in members}
        if len(channels) > 1:
            raise DataError(f"backbones to join take {sorted(channels)} channels; expected as many each")
        sizes = [member.inputs.size for member in members if member.inputs.size is not None]
        inputs = Inputs(channels.pop(), size=max(sizes, default=None))
        super().__init__(sum(member.features for member in members), inputs, is_map=False)
        self.members = nn.ModuleList(members)
        # From the last parts on, for the last are freed first; no module, or it would hold all weights twice.
        levels = zip_longest(*(reversed(member.stages()) for member in members))
        self._stages = tuple(nn.ModuleList(filter(None, level)) for level in levels)[::-1]

    def extract(self, x: Tensor) -> Tensor:
        """The members' features, joined."""
        parts = []
        for member in self.members:
            assert isinstance(member, Backbone)
            features: Tensor = member(_sized(x, member.inputs.size))
            parts.append(features.mean((2, 3)) if member.is_map else features)
        return torch.cat(parts, 1)

    def stages(self) -> list[nn.Module]:
        """Parts of all members, so that their last parts are the last."""
        return list(self._stages)


def join(names: str, channels: int, settings: dict[str, Any]) -> Joined:
    """Make the backbones of a name like ``"efficientnet-lite0+efficientnet-lite2"``; all get the settings."""
    return Joined([make(name, channels=channels, **settings) for name in names.split("+")])


def _sized(x: Tensor, size: int | None) -> Tensor:
    if size is None or tuple(x.shape[2:]) == (size, size):
        return x
    return functional.interpolate(x, (size, size), mode="bilinear", align_corners=False, antialias=True)

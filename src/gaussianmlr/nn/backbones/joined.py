"""Several backbones side by side."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

import torch
from torch import Tensor, nn
from torch.nn import functional

from gaussianmlr.errors import DataError
from gaussianmlr.nn.backbones.base import Backbone, Inputs, mean_of_places


class Joined(Backbone):
    """The features of several image backbones, joined in one vector.

    Every member gets the image at the size its weights were trained for, and its map is averaged over
    places. Independently trained networks make different mistakes, so a head on both is better than on
    either.

    Parameters
    ----------
    members : sequence of Backbone
        Two or more, for images with the same number of channels.
    mirror : bool
        Whether to average the features of the image and of its mirror image: less noise for twice the time,
        if left and right do not matter.

    Examples
    --------
    >>> from gaussianmlr.nn import backbones
    >>> backbone = backbones.make("fast+resnet18", channels=1)
    >>> backbone(torch.zeros(2, 1, 224, 224)).shape
    torch.Size([2, 640])
    """

    def __init__(self, members: Sequence[Backbone], *, mirror: bool = False) -> None:
        if len(members) < 2 or any(member.inputs.kind != "image" for member in members):
            named = ", ".join(type(member).__name__ for member in members)
            raise DataError(f"expected two or more backbones of images to join, got {named or 'none'}")
        channels = {member.inputs.channels for member in members}
        if len(channels) > 1:
            raise DataError(f"backbones to join take {sorted(channels)} channels; expected one number")
        sizes = [member.inputs.size for member in members if member.inputs.size is not None]
        inputs = Inputs(channels.pop(), size=max(sizes, default=None))
        super().__init__(sum(member.features for member in members), inputs, is_map=False)
        self.members, self.mirror = nn.ModuleList(members), mirror
        # Aligned at the last parts, which are unfrozen first; a tuple, or all weights would be held twice.
        levels = zip_longest(*(reversed(member.stages()) for member in members))
        self._stages = tuple(nn.ModuleList(filter(None, level)) for level in levels)[::-1]

    def extract(self, x: Tensor) -> Tensor:
        """The members' features, joined."""
        return (self._seen(x) + self._seen(x.flip(-1))) / 2 if self.mirror else self._seen(x)

    def _seen(self, x: Tensor) -> Tensor:
        parts = []
        for member in self.members:
            assert isinstance(member, Backbone)
            features: Tensor = member(self.for_member(x, member))
            parts.append(mean_of_places(features) if member.is_map else features)
        return torch.cat(parts, 1)

    def for_member(self, x: Tensor, member: Backbone) -> Tensor:
        """Images at the size of a member."""
        return _sized(x, member.inputs.size)

    def extra_repr(self) -> str:
        """Settings that are not visible in the members."""
        return f"mirror={self.mirror}"

    def stages(self) -> list[nn.Module]:
        """Parts of all members, aligned at their last parts."""
        return list(self._stages)


def _sized(x: Tensor, size: int | None) -> Tensor:
    if size is None or tuple(x.shape[2:]) == (size, size):
        return x
    return functional.interpolate(x, (size, size), mode="bilinear", align_corners=False, antialias=True)

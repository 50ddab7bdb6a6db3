"""Several backbones side by side: what one does not see, another may."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from gaussianmlr.backbones.base import Backbone, Inputs, make
from gaussianmlr.errors import DataError, shorten


class Joined(Backbone):
    """The features of several image backbones, one after the other, in one vector.

    Every member sees the image at the size its weights were made for, and its map is averaged over
    places. Networks that were trained apart make different mistakes, so that a head on both
    is better than on either.

    Parameters
    ----------
    members : sequence of Backbone
        Two or more, for images of as many channels.
    mirror : bool
        Whether the features are the mean of those of the image and of its mirror image: less noise, for
        twice the time, where left and right mean nothing.

    Examples
    --------
    >>> from gaussianmlr import backbones
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
            raise DataError(f"backbones to join take {sorted(channels)} channels; expected as many each")
        sizes = [member.inputs.size for member in members if member.inputs.size is not None]
        inputs = Inputs(channels.pop(), size=max(sizes, default=None))
        super().__init__(sum(member.features for member in members), inputs, is_map=False)
        self.members, self.mirror = nn.ModuleList(members), mirror
        # From the last parts on, for the last are freed first; no module, or it would hold all weights twice.
        levels = zip_longest(*(reversed(member.stages()) for member in members))
        self._stages = tuple(nn.ModuleList(filter(None, level)) for level in levels)[::-1]

    def extract(self, x: Tensor) -> Tensor:
        """The members' features, joined."""
        return (self._seen(x) + self._seen(x.flip(-1))) / 2 if self.mirror else self._seen(x)

    def _seen(self, x: Tensor) -> Tensor:
        parts = []
        for member in self.members:
            assert isinstance(member, Backbone)
            features: Tensor = member(_sized(x, member.inputs.size))
            parts.append(features.mean((2, 3)) if member.is_map else features)
        return torch.cat(parts, 1)

    def extra_repr(self) -> str:
        """What no weight tells."""
        return f"mirror={self.mirror}"

    def stages(self) -> list[nn.Module]:
        """Parts of all members, so that their last parts are the last."""
        return list(self._stages)


def join(names: str, channels: int, settings: dict[str, Any]) -> Joined:
    """Make the backbones of a name like ``"efficientnet-lite0+efficientnet-lite2"``.

    ``mirror`` is of all together; every one of them gets the other settings.
    """
    mirror = settings.get("mirror", False)
    if not isinstance(mirror, bool):
        raise DataError(f"mirror is {shorten(mirror)}; expected true or false")
    each = {name: value for name, value in settings.items() if name != "mirror"}
    members = [make(name, channels=channels, **each) for name in names.split("+")]
    return Joined(members, mirror=mirror)


def _sized(x: Tensor, size: int | None) -> Tensor:
    if size is None or tuple(x.shape[2:]) == (size, size):
        return x
    return functional.interpolate(x, (size, size), mode="bilinear", align_corners=False, antialias=True)

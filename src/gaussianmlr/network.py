"""A network: a backbone and a head, as a method needs them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from gaussianmlr import backbones
from gaussianmlr.backbones import Backbone
from gaussianmlr.heads import Head, make_head
from gaussianmlr.methods import Method


class Network(nn.Module):
    """Inputs in, a method's outputs by name out.

    Parameters
    ----------
    backbone : Backbone
        Turns inputs into features.
    head : Head
        Turns features into outputs.

    Examples
    --------
    >>> import torch
    >>> from gaussianmlr import methods
    >>> network = make_network(methods.make("gmlr"), labels=10, channels=1)
    >>> sorted(network(torch.zeros(2, 1, 64, 64)))
    ['logvar', 'mu']
    """

    def __init__(self, backbone: Backbone, head: Head) -> None:
        super().__init__()
        self.backbone, self.head = backbone, head

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        """Outputs by name: one number a label or a pair."""
        outputs: dict[str, Tensor] = self.head(self.backbone(x))
        return outputs

    @property
    def layers(self) -> nn.ModuleDict:
        """By the name of an output, the part that belongs to it alone; see `methods.begin_stage`."""
        return self.head.layers


def make_network(
    method: Method,
    *,
    labels: int,
    channels: int,
    backbone: str | nn.Module = "fast",
    head: str = "tokens",
    backbone_settings: Mapping[str, Any] | None = None,
    head_settings: Mapping[str, Any] | None = None,
) -> Network:
    """Make the network of a method from names.

    Parameters
    ----------
    method : Method
        Says which outputs are needed.
    labels : int
        How many labels there are.
    channels : int
        Channels of the images, or columns of the table.
    backbone, backbone_settings
        As in `backbones.make`.
    head, head_settings
        As in `heads.make_head`.

    Examples
    --------
    >>> import torch
    >>> from gaussianmlr import methods
    >>> network = make_network(methods.make("crpc"), labels=3, channels=5, backbone="mlp", head="linear")
    >>> network(torch.zeros(2, 5))["pair"].shape
    torch.Size([2, 6])
    """
    made = backbones.make(backbone, channels=channels, **(backbone_settings or {}))
    return Network(
        made, make_head(head, method.outputs, labels=labels, backbone=made, **(head_settings or {}))
    )

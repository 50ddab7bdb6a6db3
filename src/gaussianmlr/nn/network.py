"""A network: a backbone and a head for a method."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from gaussianmlr.errors import DataError
from gaussianmlr.methods import Method
from gaussianmlr.nn import backbones
from gaussianmlr.nn.backbones import Backbone
from gaussianmlr.nn.heads import Head, make_head

MOST_PAIRS = (
    2_000_000  # outputs of pairs: about 2,000 labels, and some gigabytes of weights and their moments
)


class Network(nn.Module):
    """Turns inputs into a method's outputs, by name.

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
        """Outputs by name: one number per label or pair."""
        outputs: dict[str, Tensor] = self.head(self.backbone(x))
        return outputs

    @property
    def layers(self) -> nn.ModuleDict:
        """The layers that belong to one output alone, by its name; see `methods.begin_stage`."""
        return self.head.layers


class Ensemble(nn.Module):
    """The mean outputs of several networks of the same shape.

    With few data, mean scores, log-odds and significances are better than those of one network.
    Significances should be learned in the canonical gauge, which all members share.

    Parameters
    ----------
    members : sequence of Network
        Networks with the same outputs.

    Examples
    --------
    >>> import torch
    >>> from gaussianmlr import methods
    >>> make = lambda: make_network(methods.make("gmlr"), labels=3, channels=5, backbone="mlp", head="linear")
    >>> Ensemble([make(), make()])(torch.zeros(2, 5))["mu"].shape
    torch.Size([2, 3])
    """

    def __init__(self, members: Sequence[nn.Module]) -> None:
        super().__init__()
        self.members = nn.ModuleList(members)

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        """Mean outputs by name."""
        found = [member(x) for member in self.members]
        return {name: torch.stack([one[name] for one in found]).mean(0) for name in found[0]}


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
        Defines the outputs.
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
    refuse_many_pairs(method, labels)
    made = backbones.make(backbone, channels=channels, **(backbone_settings or {}))
    return Network(
        made, make_head(head, method.outputs, labels=labels, backbone=made, **(head_settings or {}))
    )


def refuse_many_pairs(method: Method, labels: int) -> None:
    """Refuse methods with an output per pair of labels where there are too many labels.

    Examples
    --------
    >>> from gaussianmlr import methods
    >>> refuse_many_pairs(methods.make("crpc"), 10_000)
    Traceback (most recent call last):
        ...
    gaussianmlr.errors.DataError: crpc has an output per pair of labels: 50,005,000 for 10,000 labels;
    expected at most 2,000,000 (1,999 labels). gmlr, ranknet and lsep compare labels too and have outputs per
    label alone
    """
    pairs = sum(output.size(labels) for output in method.outputs if output.of == "pair")
    if pairs > MOST_PAIRS:
        most = math.isqrt(2 * MOST_PAIRS) - 1
        raise DataError(
            f"{method.name} has an output per pair of labels: {pairs:,} for {labels:,} labels; expected "
            f"at most {MOST_PAIRS:,} ({most:,} labels). gmlr, ranknet and lsep compare labels too and have "
            "outputs per label alone"
        )

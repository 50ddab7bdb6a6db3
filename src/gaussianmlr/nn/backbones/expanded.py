"""Rows with codes of categories and gaps, as a network takes them."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from gaussianmlr.nn.backbones.base import Backbone, Inputs

Slots = Sequence[tuple[Sequence[int] | None, bool]]


class Expand(nn.Module):
    """Turns codes and gaps of a table into numbers.

    A gap in a number becomes 0, the mean of a standardised column, and turns on an input of its own where the
    training data had gaps. A category turns on one input; codes beyond the last count as the last.

    Parameters
    ----------
    slots : sequence of (inputs, gaps)
        Per channel: for each code the input that it turns on, -1 for none, or None for a number; and whether
        a gap has an input of its own.

    Examples
    --------
    >>> expand = Expand([(None, True), ((0, 1, -1), True)])
    >>> expand(torch.tensor([[0.5, 1.0], [float("nan"), 2.0], [2.0, float("nan")]]))
    tensor([[0.5000, 0.0000, 0.0000, 1.0000, 0.0000],
            [0.0000, 1.0000, 0.0000, 0.0000, 0.0000],
            [2.0000, 0.0000, 0.0000, 0.0000, 1.0000]])
    """

    numbers: Tensor
    gaps: Tensor
    categories: Tensor
    first: Tensor
    last: Tensor
    table: Tensor
    empty: Tensor
    owner: Tensor
    inputs: Tensor

    def __init__(self, slots: Slots) -> None:
        super().__init__()
        self.channels = len(slots)
        first: list[int] = []
        last, table, empty, owner = first[:], first[:], first[:], first[:]
        for inputs, gaps in slots:
            if inputs is None:
                continue
            own, width = len(owner), max(inputs) + 1
            first.append(len(table))
            last.append(len(inputs) - 1)
            table += [-1 if one < 0 else own + one for one in inputs]
            empty.append(own + width if gaps else -1)
            owner += [len(first) - 1] * (width + gaps)
        lists = {
            "numbers": [place for place, (inputs, _) in enumerate(slots) if inputs is None],
            "gaps": [place for place, (inputs, gaps) in enumerate(slots) if inputs is None and gaps],
            "categories": [place for place, (inputs, _) in enumerate(slots) if inputs is not None],
            "first": first,
            "last": last,
            "table": table,
            "empty": empty,
            "owner": owner,
            "inputs": range(len(owner)),
        }
        for name, values in lists.items():  # not in the state dict: the config of a model describes them
            self.register_buffer(name, torch.tensor(list(values), dtype=torch.int64), persistent=False)
        self.width = len(lists["numbers"]) + len(lists["gaps"]) + len(owner)

    def forward(self, x: Tensor) -> Tensor:
        """Rows [N, width]."""
        empty = x.isnan()
        filled = torch.where(empty, torch.zeros_like(x), x)
        parts = [filled[:, self.numbers], empty[:, self.gaps].to(x.dtype)]
        if len(self.owner):
            codes = filled[:, self.categories].round().long().clamp(min=0)
            places = self.table[torch.minimum(codes, self.last) + self.first]
            places = torch.where(empty[:, self.categories], self.empty, places)
            parts.append((places[:, self.owner] == self.inputs).to(x.dtype))
        return torch.cat(parts, 1)


class Expanded(Backbone):
    """A backbone of tables behind `Expand`.

    Parameters
    ----------
    backbone : Backbone
        Takes the expanded rows.
    expand : Expand
        Expands them.

    Examples
    --------
    >>> from gaussianmlr.nn import backbones
    >>> expand = Expand([((0, 1, 2), False)])
    >>> Expanded(backbones.make("mlp", channels=expand.width, width=4), expand)(torch.ones(2, 1)).shape
    torch.Size([2, 4])
    """

    def __init__(self, backbone: Backbone, expand: Expand) -> None:
        super().__init__(backbone.features, Inputs(expand.channels, "table"), is_map=backbone.is_map)
        self.expand, self.backbone = expand, backbone

    def extract(self, x: Tensor) -> Tensor:
        """Features of the expanded rows."""
        features: Tensor = self.backbone(self.expand(x))
        return features

    def stages(self) -> list[nn.Module]:
        """The stages of the backbone."""
        return self.backbone.stages()

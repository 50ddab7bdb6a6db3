"""An MLP for tables and embeddings."""

from __future__ import annotations

from typing import Literal

from torch import Tensor, nn

from gaussianmlr.errors import DataError
from gaussianmlr.nn.backbones.base import Backbone, Inputs
from gaussianmlr.nn.backbones.registry import register

Norm = Literal["none", "batch", "layer"]


@register("mlp")
class Mlp(Backbone):
    """Fully connected layers with ReLU: columns of a table in, a vector out.

    Parameters
    ----------
    channels : int
        Columns of the table, or length of the embeddings.
    width : int
        Units per layer.
    depth : int
        Layers. With 0 the columns themselves are the features, as cached features need it.
    dropout : float
        Share of units dropped in training, after each layer.
    norm : {"none", "batch", "layer"}
        Norm before each ReLU.

    Examples
    --------
    >>> import torch
    >>> from gaussianmlr.nn import backbones
    >>> backbones.make("mlp", channels=7, width=16)(torch.zeros(3, 7)).shape
    torch.Size([3, 16])
    """

    def __init__(
        self, channels: int, *, width: int = 256, depth: int = 1, dropout: float = 0.0, norm: Norm = "none"
    ) -> None:
        if width < 1 or depth < 0 or not 0.0 <= dropout < 1.0:
            raise DataError(
                f"width={width}, depth={depth}, dropout={dropout}; expected 1 or more, 0 or more, in [0, 1)"
            )
        norms = {"none": nn.Identity, "batch": nn.BatchNorm1d, "layer": nn.LayerNorm}
        if norm not in norms:
            raise DataError(f"norm is {norm!r}; expected one of {', '.join(norms)}")
        super().__init__(width if depth else channels, Inputs(channels, "table"), is_map=False)
        self.layers = nn.Sequential()
        for index in range(depth):
            linear = nn.Linear(width if index else channels, width, bias=norm == "none")
            self.layers.append(nn.Sequential(linear, norms[norm](width), nn.ReLU(), nn.Dropout(dropout)))

    def extract(self, x: Tensor) -> Tensor:
        """The last layer."""
        features: Tensor = self.layers(x)
        return features

    def stages(self) -> list[nn.Module]:
        """The layers."""
        return list(self.layers)

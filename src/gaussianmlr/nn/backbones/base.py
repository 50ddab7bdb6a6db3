"""What a backbone is: it turns inputs into features and describes both."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from gaussianmlr.errors import DataError, shorten

Values = Literal["unit", "half", "imagenet"] | tuple[Sequence[float], Sequence[float]]
_VALUES: dict[str, tuple[tuple[float, ...], tuple[float, ...]]] = {
    "unit": ((0.0,), (1.0,)),
    "half": ((0.5,), (1.0,)),  # the paper's
    "imagenet": ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
}


@dataclass(frozen=True)
class Inputs:
    """What a backbone expects.

    Every image backbone takes floats in [0, 1] or bytes in 0 .. 255 and scales them to the range of its
    weights, so callers need not know means and deviations.

    Parameters
    ----------
    channels : int
        Channels of an image, or columns of a table.
    kind : {"image", "table"}
        Batches [N, channels, height, width], or [N, channels].
    mean, std : tuple of float
        What the backbone subtracts from values in [0, 1], and then divides by: one number, or
        one per channel.
    size : int, optional
        Height and width the weights were trained for; others work too.

    Examples
    --------
    >>> Inputs(channels=1, mean=(0.5,))
    Inputs(channels=1, kind='image', mean=(0.5,), std=(1.0,), size=None)
    """

    channels: int
    kind: Literal["image", "table"] = "image"
    mean: tuple[float, ...] = (0.0,)
    std: tuple[float, ...] = (1.0,)
    size: int | None = None

    def __post_init__(self) -> None:
        if self.channels < 1:
            raise DataError(f"channels is {self.channels}; expected 1 or more")
        for name, numbers in (("mean", self.mean), ("std", self.std)):
            if len(numbers) not in (1, self.channels):
                raise DataError(
                    f"{name} has {len(numbers)} numbers for {self.channels} channels; expected 1 or as many"
                )

    @classmethod
    def of_values(cls, channels: int, values: Values, size: int | None = None) -> Inputs:
        """Images in a named range: "unit", "half", "imagenet", or (means, deviations)."""
        if isinstance(values, str) and values not in _VALUES:
            raise DataError(
                f"values is {shorten(values)}; expected {', '.join(_VALUES)} or (means, deviations)"
            )
        mean, std = _VALUES[values] if isinstance(values, str) else values
        return cls(channels, "image", tuple(mean), tuple(std), size)


class Backbone(nn.Module, ABC):
    """A network that turns a batch of inputs into features.

    Your own backbone sets the attributes and implements `extract`. For fine-tuning in parts it also
    implements `stages` (and `steps`, so frozen stages run only once). Register it by `register`.

    Attributes
    ----------
    features : int
        F, the number of features (at every place of a map).
    is_map : bool
        Whether features are a map [N, F, H, W] or a vector [N, F].
    inputs : Inputs
        What it expects.
    frozen : int
        How many of the first stages are frozen; see `freeze`.
    """

    features: int
    is_map: bool
    inputs: Inputs
    frozen: int = 0
    _mean: Tensor
    _std: Tensor

    def __init__(self, features: int, inputs: Inputs, *, is_map: bool) -> None:
        super().__init__()
        self.features, self.inputs, self.is_map = features, inputs, is_map
        # Not in the state dict, which has the names of published weights.
        self.register_buffer("_mean", torch.tensor(inputs.mean).view(1, -1, 1, 1), persistent=False)
        self.register_buffer("_std", torch.tensor(inputs.std).view(1, -1, 1, 1), persistent=False)

    @abstractmethod
    def extract(self, x: Tensor) -> Tensor:
        """Features of inputs that are checked and scaled."""

    def stages(self) -> list[nn.Module]:
        """The parts that can be frozen, from input to output."""
        return [module for module in self.children() if any(True for _ in module.parameters())]

    def steps(self) -> list[Callable[[Tensor], Tensor]]:
        """`extract` in pieces: one function per stage, perhaps followed by others; empty if unknown."""
        return []

    def forward(self, x: Tensor) -> Tensor:
        """Features of a batch: [N, F], or [N, F, H, W]."""
        return self.extract(self._prepared(x))

    def train(self, mode: bool = True) -> Backbone:
        """Set the mode of all parts; frozen ones stay in evaluation mode."""
        super().train(mode)
        stages = self.stages()
        if self.frozen and self.frozen == len(stages):
            super().train(False)
        for stage in stages[: self.frozen]:
            stage.eval()
        return self

    def _prepared(self, x: Tensor) -> Tensor:
        axes = 4 if self.inputs.kind == "image" else 2
        if x.dim() != axes or x.shape[1] != self.inputs.channels:
            shape = "[N, {}, height, width]" if axes == 4 else "[N, {}]"
            raise DataError(
                f"inputs have the shape {list(x.shape)}; expected {shape.format(self.inputs.channels)}"
            )
        if axes == 2:
            return x
        if x.dtype == torch.uint8:
            x = x.to(self._mean.dtype) / 255.0
        in_range = self.inputs.mean == (0.0,) and self.inputs.std == (1.0,)
        return x if in_range else (x - self._mean) / self._std


def run_steps(steps: Iterable[Callable[[Tensor], Tensor]], x: Tensor) -> Tensor:
    """Apply the steps in turn."""
    for step in steps:
        x = step(x)
    return x


def mean_of_places(x: Tensor) -> Tensor:
    """The mean of a map over its places."""
    return x.mean((2, 3))

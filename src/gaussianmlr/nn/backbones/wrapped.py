"""Any nn.Module as a backbone; its feature size is found by running it once."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from gaussianmlr.errors import DataError
from gaussianmlr.nn.backbones.base import Backbone, Inputs, Values, mean_of_places


class Wrapped(Backbone):
    """A module of the user as a backbone; made by `wrap`."""

    def __init__(
        self, module: nn.Module, inputs: Inputs, features: int, *, is_map: bool, pool: bool = False
    ) -> None:
        super().__init__(features, inputs, is_map=is_map and not pool)
        self.module = module
        self._pool = is_map and pool

    def extract(self, x: Tensor) -> Tensor:
        """The output of the module, averaged over places if requested."""
        features: Tensor = self.module(x)
        return mean_of_places(features) if self._pool else features

    def stages(self) -> list[nn.Module]:
        """The parts of a sequential module that have parameters; any other module is one stage."""
        parts = list(self.module.children()) if isinstance(self.module, nn.Sequential) else [self.module]
        return [part for part in parts if any(True for _ in part.parameters())]


def wrap(
    module: nn.Module,
    channels: int,
    *,
    kind: Literal["image", "table"] = "image",
    size: int = 224,
    values: Values = "unit",
    pool: bool = False,
) -> Wrapped:
    """Make a backbone of a module that returns a tensor [N, F] or [N, F, H, W].

    The number of features is found by running it once on zeros, in evaluation mode.

    Parameters
    ----------
    module : nn.Module
        The module. Only an `nn.Sequential` can be frozen part by part.
    channels : int
        Channels of the images, or columns of the table.
    kind : {"image", "table"}
        The kind of inputs.
    size : int
        Height and width of the images of this trial run.
    values : {"unit", "half", "imagenet"} or (means, deviations)
        How image values in [0, 1] are scaled for the module.
    pool : bool
        Whether to average a map over places.

    Examples
    --------
    >>> from torch import nn
    >>> backbone = wrap(nn.Conv2d(3, 5, 3, stride=4), channels=3, size=32)
    >>> backbone.features, backbone.is_map
    (5, True)
    """
    inputs = Inputs.of_values(channels, values, size) if kind == "image" else Inputs(channels, kind)
    found = _trial(module, Wrapped(module, inputs, 0, is_map=True), size)
    if not isinstance(found, Tensor) or found.dim() not in (2, 4) or len(found) != 1:
        got = list(found.shape) if isinstance(found, Tensor) else type(found).__name__
        raise DataError(f"{type(module).__name__} gives {got} for one input; expected [1, F] or [1, F, H, W]")
    return Wrapped(module, inputs, found.shape[1], is_map=found.dim() == 4, pool=pool)


def _trial(module: nn.Module, backbone: Wrapped, size: int) -> object:
    inputs, was_training = backbone.inputs, {part: part.training for part in module.modules()}
    shape = (1, inputs.channels, size, size) if inputs.kind == "image" else (1, inputs.channels)
    weight = next(module.parameters(), None)
    zeros = torch.zeros(shape, device=None if weight is None else weight.device)
    try:
        backbone.to(zeros.device).eval()
        with torch.no_grad():
            return backbone(zeros)
    except (RuntimeError, TypeError, ValueError) as error:
        raise DataError(f"{type(module).__name__} fails on a batch {list(shape)}: {error}") from None
    finally:
        for part, training in was_training.items():
            part.training = training

"""ResNet18, the paper's network."""

from __future__ import annotations

import os
from collections.abc import Callable

import torch
from torch import Tensor, nn

from gaussianmlr.nn.backbones.base import Backbone, Inputs, Values, mean_of_places, run_steps
from gaussianmlr.nn.backbones.registry import register
from gaussianmlr.nn.backbones.sizes import SIZES
from gaussianmlr.nn.backbones.weights import load_weights


class _Block(nn.Module):
    """Two 3x3 convolutions and a shortcut; names as in torchvision."""

    def __init__(self, width_in: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(width_in, width, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.downsample: nn.Sequential | None = None
        if stride != 1 or width_in != width:
            shortcut = nn.Conv2d(width_in, width, 1, stride, bias=False)
            self.downsample = nn.Sequential(shortcut, nn.BatchNorm2d(width))

    def forward(self, x: Tensor) -> Tensor:
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        return torch.relu(y + (x if self.downsample is None else self.downsample(x)))


@register("resnet18")
class ResNet18(Backbone):
    """ResNet18: 512 features in a map 32 times smaller than the image.

    Names and shapes of its parameters are those of torchvision, so the published ImageNet weights
    load: ``backbone.load_weights("resnet18-f37072fd.pth")``, with ``values="imagenet"``.

    Parameters
    ----------
    channels : int
        Channels of the images, 1 or 3 in the paper.
    values : {"half", "unit", "imagenet"} or (means, deviations)
        How values in [0, 1] are scaled. ``"half"`` subtracts one half, as the paper does when
        training from scratch.
    pool : bool
        Whether to average over places: a vector instead of a map.

    References
    ----------
    He, Zhang, Ren, Sun, "Deep residual learning for image recognition", 2016.

    Examples
    --------
    >>> import torch
    >>> from gaussianmlr.nn import backbones
    >>> backbone = backbones.make("resnet18", channels=1, pool=True)
    >>> backbone(torch.zeros(2, 1, 64, 64)).shape
    torch.Size([2, 512])
    """

    def __init__(self, channels: int = 3, *, values: Values = "half", pool: bool = False) -> None:
        super().__init__(512, Inputs.of_values(channels, values, SIZES["resnet18"]), is_map=not pool)
        self.conv1 = nn.Conv2d(channels, 64, 7, stride=2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, stride=2, padding=1)
        self.layer1 = nn.Sequential(_Block(64, 64, 1), _Block(64, 64, 1))
        self.layer2 = nn.Sequential(_Block(64, 128, 2), _Block(128, 128, 1))
        self.layer3 = nn.Sequential(_Block(128, 256, 2), _Block(256, 256, 1))
        self.layer4 = nn.Sequential(_Block(256, 512, 2), _Block(512, 512, 1))
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def extract(self, x: Tensor) -> Tensor:
        """The last map, or its mean over places."""
        return run_steps(self.steps(), x)

    def stages(self) -> list[nn.Module]:
        """Stem, then the four layers."""
        stem = nn.ModuleList([self.conv1, self.bn1])
        return [stem, self.layer1, self.layer2, self.layer3, self.layer4]

    def steps(self) -> list[Callable[[Tensor], Tensor]]:
        """The stages, and the mean over places if `pool`."""
        layers = [self.layer1, self.layer2, self.layer3, self.layer4]
        return [self._begin, *layers, *([] if self.is_map else [mean_of_places])]

    def _begin(self, x: Tensor) -> Tensor:
        found: Tensor = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        return found

    def load_weights(self, path: str | os.PathLike[str]) -> None:
        """Load torchvision's weights of a ResNet18 without its classifier."""
        load_weights(self, path, ignore=("fc.",))

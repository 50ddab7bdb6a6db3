"""What a backbone is: features of an input, and what it says of itself. And the registry."""

from __future__ import annotations

import importlib
import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import torch
from torch import Tensor, nn

from gaussianmlr.errors import DataError, shorten

Values = Literal["unit", "half", "imagenet"] | tuple[Sequence[float], Sequence[float]]
_VALUES: dict[str, tuple[tuple[float, ...], tuple[float, ...]]] = {
    "unit": ((0.0,), (1.0,)),
    "half": ((0.5,), (1.0,)),  # the paper's: minus one half
    "imagenet": ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
}


@dataclass(frozen=True)
class Inputs:
    """What a backbone expects.

    Every image backbone takes floats in [0, 1] or bytes in 0 .. 255, and brings them into the
    range its weights know by itself, so that no caller has to know a mean or a deviation.

    Parameters
    ----------
    channels : int
        Channels of an image, or columns of a table.
    kind : {"image", "table"}
        Batches [N, channels, height, width], or [N, channels].
    mean, std : tuple of float
        What the backbone subtracts from values in [0, 1], and then divides by: one number, or
        one a channel.
    size : int, optional
        Height and width the weights were made for; others work too.

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
        """Images in a range with a name: "unit", "half", "imagenet", or (means, deviations)."""
        if isinstance(values, str) and values not in _VALUES:
            raise DataError(
                f"values is {shorten(values)}; expected {', '.join(_VALUES)} or (means, deviations)"
            )
        mean, std = _VALUES[values] if isinstance(values, str) else values
        return cls(channels, "image", tuple(mean), tuple(std), size)


class Backbone(nn.Module, ABC):
    """A network that turns a batch of inputs into features.

    A backbone of your own sets the attributes, writes `extract` and, if it shall be fine-tuned in
    parts, `stages` (and `steps`, so that frozen ones run only once); it is made known by `register`.

    Attributes
    ----------
    features : int
        F, how many features there are (in every place of a map).
    is_map : bool
        Whether features are a map [N, F, H, W], where place matters, or a vector [N, F].
    inputs : Inputs
        What it expects.
    frozen : int
        How many of the first stages stand still; see `freeze`.
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
        # Not in the state dict, which keeps the names that published weights have.
        self.register_buffer("_mean", torch.tensor(inputs.mean).view(1, -1, 1, 1), persistent=False)
        self.register_buffer("_std", torch.tensor(inputs.std).view(1, -1, 1, 1), persistent=False)

    @abstractmethod
    def extract(self, x: Tensor) -> Tensor:
        """Features of inputs that are checked and in range."""

    def stages(self) -> list[nn.Module]:
        """The parts, from input to output, that can be frozen one after the other."""
        return [module for module in self.children() if any(True for _ in module.parameters())]

    def steps(self) -> list[Callable[[Tensor], Tensor]]:
        """`extract` in pieces: a function a stage, and perhaps more after them; empty where unknown."""
        return []

    def forward(self, x: Tensor) -> Tensor:
        """Features of a batch: [N, F], or [N, F, H, W]."""
        return self.extract(self._prepared(x))

    def train(self, mode: bool = True) -> Backbone:
        """Training mode for what is not frozen; what is frozen stays in evaluation mode."""
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
    """One step after the other."""
    for step in steps:
        x = step(x)
    return x


def mean_of_places(x: Tensor) -> Tensor:
    """A vector of a map."""
    return x.mean((2, 3))


Factory = Callable[..., Backbone]
_REGISTRY: dict[str, Factory] = {}
_ADAPTERS: dict[str, Factory] = {}
AnyFactory = TypeVar("AnyFactory", bound=Factory)


def register(name: str) -> Callable[[AnyFactory], AnyFactory]:
    """Make a backbone known by a name; use it as a decorator of a class or a factory.

    The factory is called with ``channels=`` and the settings. A name that ends with a colon is the
    prefix of a model zoo: the factory gets the rest of the name first.

    Examples
    --------
    >>> from gaussianmlr import backbones
    >>> backbones.register("fast")(lambda *, channels: None)
    Traceback (most recent call last):
        ...
    gaussianmlr.errors.DataError: a backbone named 'fast' is known already: gaussianmlr.backbones.fast
    """

    def add(factory: AnyFactory) -> AnyFactory:
        registry = _ADAPTERS if name.endswith(":") else _REGISTRY
        other = registry.setdefault(name, factory)
        if (other.__module__, other.__qualname__) != (factory.__module__, factory.__qualname__):
            raise DataError(f"a backbone named {name!r} is known already: {other.__module__}")
        registry[name] = factory  # the same one again, after a reload
        return factory

    return add


def available() -> tuple[str, ...]:
    """Names of the backbones that are known.

    Examples
    --------
    >>> from gaussianmlr import backbones
    >>> [name for name in backbones.available() if "net-" not in name]
    ['fast', 'hf:NAME', 'mlp', 'resnet18', 'timm:NAME']
    """
    return tuple(sorted([*_REGISTRY, *(f"{prefix}NAME" for prefix in _ADAPTERS)]))


def make(name: str | nn.Module, *, channels: int, **settings: Any) -> Backbone:
    """Make a backbone from its name and settings.

    Parameters
    ----------
    name : str or nn.Module
        A name in `available`; several, joined by ``+`` (see `Joined`); ``"package.module:factory"``
        for a backbone from outside; or a module of your own, which is wrapped (see `wrap`). A
        `Backbone` is given back as it is.
    channels : int
        Channels of the images, or columns of the table.
    **settings
        Settings of that backbone.

    Examples
    --------
    >>> import torch
    >>> from gaussianmlr import backbones
    >>> backbone = backbones.make("fast", channels=1)
    >>> backbone(torch.zeros(2, 1, 64, 64)).shape
    torch.Size([2, 128, 4, 4])
    """
    if isinstance(name, nn.Module):
        return _own(name, channels, settings)
    prefix = name.partition(":")[0] + ":"
    if "+" in name and ":" not in name:
        from gaussianmlr.backbones.joined import join

        return join(name, channels, settings)
    if name in _REGISTRY:
        return _called(name, _REGISTRY[name], (), channels, settings)
    if prefix in _ADAPTERS:
        return _called(name, _ADAPTERS[prefix], (name[len(prefix) :],), channels, settings)
    if ":" in name:
        return _called(name, _imported(name), (), channels, settings)
    raise DataError(f"no backbone {name!r}; known are {', '.join(available())}, or 'package.module:factory'")


def _own(module: nn.Module, channels: int, settings: dict[str, Any]) -> Backbone:
    from gaussianmlr.backbones.wrapped import wrap

    if not isinstance(module, Backbone):
        return _called(type(module).__name__, wrap, (module,), channels, settings)
    if settings:
        raise DataError(f"a backbone that is made already takes no settings, got {', '.join(settings)}")
    if module.inputs.channels != channels:
        raise DataError(f"the backbone takes {module.inputs.channels} channels, not {channels}")
    return module


def _called(
    name: str, factory: Callable[..., Any], first: tuple[Any, ...], channels: int, settings: dict[str, Any]
) -> Backbone:
    signature = inspect.signature(factory)
    try:
        signature.bind(*first, channels=channels, **settings)
    except TypeError as error:
        known = [key for key in list(signature.parameters)[len(first) :] if key != "channels"]
        raise DataError(
            f"backbone {name!r}: {error}; its settings are {', '.join(known) or 'none'}"
        ) from None
    made = factory(*first, channels=channels, **settings)
    return made if isinstance(made, Backbone) else make(made, channels=channels)


def _imported(name: str) -> Callable[..., Any]:
    module, _, attribute = name.partition(":")
    try:
        found = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise DataError(f"cannot import the backbone {name!r}: {error}") from None
    if not callable(found):
        raise DataError(f"{name!r} is no backbone: expected a class or function that gives an nn.Module")
    return found  # type: ignore[no-any-return]

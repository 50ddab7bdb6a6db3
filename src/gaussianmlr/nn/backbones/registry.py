"""Backbones by name: registered, of installed packages, joined or wrapped."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from torch import nn

from gaussianmlr._utils import trust
from gaussianmlr.errors import DataError, shorten
from gaussianmlr.nn.backbones.base import Backbone
from gaussianmlr.nn.backbones.joined import Joined
from gaussianmlr.nn.backbones.wrapped import wrap

Factory = Callable[..., Backbone]
GROUP = "gaussianmlr.backbones"  # entry points of installed packages
_REGISTRY: dict[str, Factory] = {}
_ADAPTERS: dict[str, Factory] = {}
AnyFactory = TypeVar("AnyFactory", bound=Factory)


def register(name: str) -> Callable[[AnyFactory], AnyFactory]:
    """Register a backbone under a name; use it as a decorator of a class or a factory.

    The factory is called with ``channels=`` and the settings. A name that ends with a colon is the prefix of
    a model zoo: the factory gets the rest of the name as its first argument.

    Examples
    --------
    >>> from gaussianmlr.nn import backbones
    >>> backbones.register("fast")(lambda *, channels: None)
    Traceback (most recent call last):
        ...
    gaussianmlr.errors.DataError: a backbone named 'fast' is already registered: gaussianmlr.nn.backbones.fast
    """

    def add(factory: AnyFactory) -> AnyFactory:
        registry = _ADAPTERS if name.endswith(":") else _REGISTRY
        other = registry.setdefault(name, factory)
        if (other.__module__, other.__qualname__) != (factory.__module__, factory.__qualname__):
            raise DataError(f"a backbone named {name!r} is already registered: {other.__module__}")
        registry[name] = factory  # the same one again, after a reload
        return factory

    return add


def available() -> tuple[str, ...]:
    """Names of the registered backbones, including those of installed packages.

    Examples
    --------
    >>> from gaussianmlr.nn import backbones
    >>> [name for name in backbones.available() if "net-" not in name]
    ['fast', 'hf:NAME', 'mlp', 'resnet18', 'text:NAME', 'timm:NAME']
    """
    return tuple(sorted({*_REGISTRY, *(f"{prefix}NAME" for prefix in _ADAPTERS), *trust.offered(GROUP)}))


def make(name: str | nn.Module, *, channels: int, **settings: Any) -> Backbone:
    """Make a backbone from its name and settings.

    Parameters
    ----------
    name : str or nn.Module
        A name in `available`; several, joined by ``+`` (see `Joined`); ``"package.module:factory"``
        for a backbone of another module; or your own module, which is wrapped (see `wrap`). A
        `Backbone` is returned as it is.
    channels : int
        Channels of the images, or columns of the table.
    **settings
        Settings of that backbone.

    Examples
    --------
    >>> import torch
    >>> from gaussianmlr.nn import backbones
    >>> backbone = backbones.make("fast", channels=1)
    >>> backbone(torch.zeros(2, 1, 64, 64)).shape
    torch.Size([2, 128, 4, 4])
    """
    if isinstance(name, nn.Module):
        return _own(name, channels, settings)
    if "+" in name and ":" not in name:
        return _joined(name, channels, settings)
    factory, first = find(name)
    return _called(name, factory, first, channels, settings)


def find(name: str) -> tuple[Callable[..., Any], tuple[str, ...]]:
    """The factory of a backbone and its first arguments; an installed package is imported now.

    Examples
    --------
    >>> find("hf:microsoft/resnet-18")[1]
    ('microsoft/resnet-18',)
    """
    prefix, _, rest = name.partition(":")
    if name in _REGISTRY:
        return _REGISTRY[name], ()
    if is_adapted(name):
        return _ADAPTERS[f"{prefix}:"], (rest,)
    found = trust.find(name, "backbone") if ":" in name else trust.installed(GROUP, name)
    if found is None:
        raise DataError(
            f"no backbone {name!r}; known are {', '.join(available())}, or 'package.module:factory'"
        )
    if not callable(found):
        raise DataError(f"{name!r} is not a backbone: expected a class or function that returns an nn.Module")
    return found, ()


def is_adapted(name: str) -> bool:
    """Whether a name is a model of a zoo, such as ``hf:NAME``.

    Examples
    --------
    >>> from gaussianmlr.nn import backbones
    >>> is_adapted("hf:microsoft/resnet-18"), is_adapted("package.module:factory")
    (True, False)
    """
    return name.partition(":")[0] + ":" in _ADAPTERS and ":" in name


def check_named(name: str, where: str | Path) -> None:
    """Refuse a backbone named by a file if it is code that the user has not allowed (see `trust`).

    Examples
    --------
    >>> check_named("torch.hub:load", "config.json")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    gaussianmlr.errors.DataError: config.json ...
    """
    if ":" not in name or is_adapted(name):
        return
    trust.check(name, "backbone", where)
    found = trust.find(name, "backbone")
    if not (trust.is_of(found, name) or (isinstance(found, type) and issubclass(found, nn.Module))):
        raise DataError(f"{where} names the backbone {name!r}, which that module does not define")


def _joined(names: str, channels: int, settings: dict[str, Any]) -> Joined:
    """Make the backbones of a name like ``"efficientnet-lite0+efficientnet-lite2"``.

    ``mirror`` applies to the joined backbone; every member gets the other settings.
    """
    mirror = settings.get("mirror", False)
    if not isinstance(mirror, bool):
        raise DataError(f"mirror is {shorten(mirror)}; expected true or false")
    each = {name: value for name, value in settings.items() if name != "mirror"}
    members = [make(name, channels=channels, **each) for name in names.split("+")]
    return Joined(members, mirror=mirror)


def _own(module: nn.Module, channels: int, settings: dict[str, Any]) -> Backbone:
    if not isinstance(module, Backbone):
        return _called(type(module).__name__, wrap, (module,), channels, settings)
    if settings:
        raise DataError(f"a finished backbone takes no settings, got {', '.join(settings)}")
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

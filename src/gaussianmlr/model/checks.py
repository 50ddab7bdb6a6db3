"""Checks before a model on disk is built: known names, typed settings, a network as large as its weights."""

from __future__ import annotations

import hashlib
import json
import math
import typing
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import get_ident
from typing import Any

from pydantic import PydanticSchemaGenerationError, PydanticUserError, TypeAdapter, ValidationError
from safetensors import SafetensorError, safe_open
from torch.nn.modules.module import register_module_parameter_registration_hook

from gaussianmlr.errors import DataError, shorten
from gaussianmlr.methods import base as methods
from gaussianmlr.model.recipe import Recipe
from gaussianmlr.nn import heads
from gaussianmlr.nn.backbones import registry as backbones
from gaussianmlr.nn.backbones import zoo

__all__ = ["bounded", "check_settings", "checked_recipe", "sha256", "sizes_of"]

_LONGEST = 1_000  # characters of a name; backbones joined by + are built one by one

_LONGEST_HEADER = 100 << 20  # as safetensors has it


def checked_recipe(recipe: Recipe, file: Path, *, own: bool = False) -> Recipe:
    """Check names and settings of a recipe from a file; the result downloads nothing.

    Parameters
    ----------
    recipe : Recipe
        The recipe in the file.
    file : Path
        The file, for messages.
    own : bool
        Whether a backbone is given in place of the recipe's.

    Examples
    --------
    >>> checked_recipe(Recipe(backbone="efficientnet-lite0"), Path("config.json")).backbone_settings
    {'pretrained': False}
    """
    methods.check_named(recipe.method, file)
    check_settings(methods.find(recipe.method), recipe.method_settings, f"{file}: method {recipe.method!r}")
    settings = recipe.backbone_settings
    for head in heads.available() if recipe.head == "auto" else [recipe.head]:
        check_settings(heads.kind_of(head), recipe.head_settings, f"{file}: head {head!r}")
    if own:
        return recipe
    if len(recipe.backbone) > _LONGEST:
        raise DataError(f"{file}: the backbone is {shorten(recipe.backbone)}; expected a shorter name")
    for name in [recipe.backbone] if ":" in recipe.backbone else set(recipe.backbone.split("+")):
        backbones.check_named(name, file)
        check_settings(backbones.find(name)[0], settings, f"{file}: backbone {name!r}")
    return recipe.replace(backbone_settings=zoo.offline(recipe.backbone, settings, file))


def sizes_of(weights: Path, digest: str | None = None) -> tuple[int, int]:
    """Number of tensors and of numbers in a file of weights, from its header alone; a digest is compared."""
    if not weights.is_file():
        raise DataError(f"{weights.parent} has no {weights.name}; copy the whole folder")
    try:
        # A padded file is neither mapped nor hashed for minutes.
        same = _is_whole(weights) and (digest is None or sha256(weights) == digest)
        if same:
            with safe_open(weights, "pt") as found:
                shapes = [found.get_slice(name).get_shape() for name in found.keys()]  # noqa: SIM118
    except SafetensorError:
        same = False
    except OSError as error:
        raise DataError(f"{weights} cannot be read: {error.strerror or error}") from None
    if not same:
        raise DataError(f"{weights} is not the file that was saved: it was changed or cut; copy it again")
    return len(shapes), sum(map(math.prod, shapes))


def _is_whole(weights: Path) -> bool:
    """Whether a file is as long as its header says: 8 bytes of length, JSON, and the ranges of tensors."""
    with weights.open("rb") as stream:
        length = int.from_bytes(stream.read(8), "little")
        if length > _LONGEST_HEADER:
            return False
        try:
            header = json.loads(stream.read(length))
            ends = [one["data_offsets"][1] for name, one in header.items() if name != "__metadata__"]
        except (ValueError, RecursionError, KeyError, IndexError, TypeError, AttributeError):
            return False
    return all(isinstance(end, int) for end in ends) and weights.stat().st_size == 8 + length + max(
        ends, default=0
    )


def check_settings(factory: Callable[..., Any], settings: Mapping[str, Any], what: str) -> None:
    """Refuse settings whose types do not match the type hints of a factory.

    Examples
    --------
    >>> def factory(*, width: int = 3): ...
    >>> check_settings(factory, {"width": "wide"}, "backbone 'mine'")
    Traceback (most recent call last):
        ...
    gaussianmlr.errors.DataError: backbone 'mine': width is 'wide'; Input should be a valid integer
    """
    own = isinstance(factory, type) and not hasattr(factory, "__dataclass_fields__")
    try:
        kinds = typing.get_type_hints(factory.__init__ if own else factory)
    except (NameError, TypeError, AttributeError):  # hints for type checkers only
        return
    for name in settings.keys() & kinds.keys():
        try:
            kind: TypeAdapter[Any] = TypeAdapter(kinds[name])
        except (PydanticUserError, PydanticSchemaGenerationError):  # a type that pydantic does not know
            continue
        try:
            kind.validate_json(json.dumps(settings[name]), strict=True)
        except ValidationError as error:
            message = error.errors(include_url=False)[0]["msg"]
            raise DataError(f"{what}: {name} is {shorten(settings[name])}; {message}") from None


@contextmanager
def bounded(tensors: int, numbers: int) -> Iterator[None]:
    """Refuse to build networks much larger than weights with these numbers of tensors and values.

    Every parameter is counted before it is initialised, so a config that asks for more than its weights
    costs neither memory nor time. Published networks have layers that are discarded after
    construction: up to twice the size, and a constant, is accepted.

    Examples
    --------
    >>> from torch import nn
    >>> with bounded(tensors=2, numbers=6):
    ...     nn.Linear(5_000, 5_000)
    Traceback (most recent call last):
        ...
    gaussianmlr.errors.DataError: the config describes a larger network than its weights
    """
    left, thread = [2 * tensors + 64, 2 * numbers + (4 << 20)], get_ident()

    def count(module: Any, name: str, parameter: Any) -> None:
        if parameter is None or get_ident() != thread:
            return
        left[0] -= 1
        left[1] -= parameter.numel()
        if min(left) < 0:
            raise DataError("the config describes a larger network than its weights")

    hook = register_module_parameter_registration_hook(count)
    try:
        yield
    finally:
        hook.remove()


def sha256(file: Path) -> str:
    """The checksum of a file."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()

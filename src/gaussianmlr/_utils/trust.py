"""Which code may run: what the user names, registers or installs, never what a file names."""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable
from importlib.metadata import EntryPoints, entry_points
from pathlib import Path
from typing import Any

from gaussianmlr.errors import DataError

__all__ = [
    "allow",
    "check",
    "find",
    "give",
    "installed",
    "is_of",
    "is_trusted",
    "offered",
    "see_current_folder",
    "sees_current_folder",
    "trust",
]

_TRUSTED: set[str] = set()  # modules, and single names such as "package.module:Class" or "hf:./folder"
_GIVEN: dict[str, Any] = {}  # classes and factories by "module:name"


def trust(name: str) -> None:
    """Allow files to name what a module defines; the module is imported and may register things.

    Parameters
    ----------
    name : str
        A module, also of the current folder; or ``"package.module:Class"``, which allows that name alone.

    Examples
    --------
    >>> trust("nowhere")
    Traceback (most recent call last):
        ...
    gaussianmlr.errors.DataError: cannot import 'nowhere', which is to be trusted: No module named 'nowhere'
    """
    see_current_folder()
    try:
        importlib.import_module(name.partition(":")[0])
    except (ImportError, ValueError) as error:
        raise DataError(f"cannot import {name!r}, which is to be trusted: {error}") from None
    allow(name)


def allow(name: str) -> None:
    """Allow files to use a name that needs no import, such as the backbone ``"hf:./folder"``.

    Examples
    --------
    >>> allow("hf:./mine")
    >>> is_trusted("hf:./mine"), is_trusted("hf:./other")
    (True, False)
    """
    _TRUSTED.add(name)


def give(thing: Callable[..., Any]) -> None:
    """Register a class or factory under its name in files, ``"module:name"``.

    Examples
    --------
    >>> class Mine: ...
    >>> give(Mine)
    >>> find(f"{__name__}:Mine", "backbone") is Mine
    True
    """
    if not callable(thing) or not hasattr(thing, "__qualname__"):
        raise DataError(f"expected a class or a function to register, got {thing!r}")
    _GIVEN[f"{thing.__module__}:{thing.__qualname__}"] = thing


def is_trusted(name: str) -> bool:
    """Whether the user has allowed files to use this name."""
    return name in _GIVEN or not _TRUSTED.isdisjoint((name, name.partition(":")[0]))


def check(name: str, what: str, where: str | Path) -> None:
    """Refuse a name of external code in a file unless the user has allowed it.

    Examples
    --------
    >>> check("evil:Evil", "method", "config.json")
    Traceback (most recent call last):
        ...
    gaussianmlr.errors.DataError: config.json names the method 'evil:Evil', which is code of the module \
'evil', and files do not decide what is run. If you trust that module: --trust evil on the command line, or \
gaussianmlr.load(..., register=[Evil])
    """
    if not is_trusted(name):
        module, _, attribute = name.partition(":")
        raise DataError(
            f"{where} names the {what} {name!r}, which is code of the module {module!r}, and files do not "
            f"decide what is run. If you trust that module: --trust {module} on the command line, or "
            f"gaussianmlr.load(..., register=[{attribute}])"
        )


def is_of(thing: Any, name: str) -> bool:
    """Whether a module defines a thing, rather than only importing it.

    Examples
    --------
    >>> is_of(trust, "gaussianmlr._utils.trust:trust"), is_of(Path, "gaussianmlr._utils.trust:Path")
    (True, False)
    """
    module = name.partition(":")[0]
    home = str(getattr(thing, "__module__", ""))
    return name in _GIVEN or name in _TRUSTED or home == module or home.startswith(f"{module}.")


def find(name: str, what: str) -> Any:
    """The object named ``"package.module:attribute"``; the module is imported."""
    if name in _GIVEN:
        return _GIVEN[name]
    module, _, attribute = name.partition(":")
    try:
        return getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise DataError(f"cannot import the {what} {name!r}: {error}") from None


def offered(group: str) -> tuple[str, ...]:
    """Names that installed packages have in a group of entry points; imports nothing."""
    return tuple(entry.name for entry in _entries(group))


def installed(group: str, name: str) -> Any:
    """The object that an installed package offers under this name; None if there is none."""
    for entry in _entries(group):
        if entry.name != name:
            continue
        try:
            return entry.load()
        except (ImportError, AttributeError) as error:
            raise DataError(f"cannot import {name!r} of {group}, which is {entry.value}: {error}") from None
    return None


@functools.cache
def _entries(group: str) -> EntryPoints:
    return entry_points(group=group)  # scans every installed package


def see_current_folder() -> None:
    """Make modules of the current folder importable, after all installed ones."""
    if not sees_current_folder():
        sys.path.append(str(Path.cwd()))


def sees_current_folder() -> bool:
    """Whether modules of the current folder can be imported."""
    return "" in sys.path or str(Path.cwd()) in sys.path

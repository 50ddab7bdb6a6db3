"""Lazy imports of the public names of a package."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping

__all__ = ["lazy_names"]


def lazy_names(
    package: str, homes: Mapping[str, str]
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """The ``__getattr__`` and ``__dir__`` of a package that imports its names on first use.

    Parameters
    ----------
    package : str
        Its ``__name__``.
    homes : mapping of str to str
        The module of each name, below the package. If its last part is the name itself, the name is the
        module.

    Examples
    --------
    >>> getter, lister = lazy_names("gaussianmlr", {"DataError": "errors"})
    >>> getter("DataError").__name__, "to_ranks" in lister()
    ('DataError', True)
    """

    def getter(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home = f"{package}.{homes[name]}"
        if home.endswith(f".{name}"):
            found: object = importlib.import_module(home)
        else:
            found = getattr(importlib.import_module(home), name)
        setattr(sys.modules[package], name, found)
        return found

    def lister() -> list[str]:
        return sorted({*homes, *getattr(sys.modules[package], "__all__", ())})

    return getter, lister

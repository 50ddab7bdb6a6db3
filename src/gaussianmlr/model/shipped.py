"""Models that come with the package, called ``shipped:NAME`` wherever a folder of a model is expected."""

from __future__ import annotations

import os
from pathlib import Path

from gaussianmlr.errors import DataError

__all__ = ["PREFIX", "place_of", "shipped_names"]

PREFIX = "shipped:"
_FOLDER = Path(__file__).parent / "shipped_models"


def shipped_names() -> list[str]:
    """Names of the models that come with the package, each with a card beside its weights.

    Examples
    --------
    >>> "gray-s" in shipped_names()
    True
    """
    return sorted(one.name for one in _FOLDER.iterdir() if (one / "config.json").is_file())


def place_of(path: str | os.PathLike[str]) -> Path:
    """The folder that is meant: a path as it is, or that of a model that comes with the package.

    Examples
    --------
    >>> place_of("runs/hikes").name
    'hikes'
    >>> place_of("shipped:gray-s").is_dir()
    True
    >>> place_of("shipped:birds")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    gaussianmlr.errors.DataError: no model 'birds' comes with the package; expected one of color-s, ...
    """
    text = os.fspath(path)
    if not text.startswith(PREFIX):
        return Path(path)
    name, known = text.removeprefix(PREFIX), shipped_names()
    if name not in known:
        raise DataError(
            f"no model {name!r} comes with the package; expected one of {', '.join(known)}, after {PREFIX!r}"
        )
    return _FOLDER / name

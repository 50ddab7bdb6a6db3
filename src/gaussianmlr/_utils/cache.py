"""Where downloads, unpacked archives and features are kept."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs

__all__ = ["CACHE_VARIABLE", "cache_folder"]

CACHE_VARIABLE = "GAUSSIANMLR_CACHE"


def cache_folder(name: str) -> Path:
    """A folder below ``GAUSSIANMLR_CACHE``, or below the user's cache folder.

    Examples
    --------
    >>> cache_folder("mnist").name
    'mnist'
    """
    given = os.environ.get(CACHE_VARIABLE) or platformdirs.user_cache_dir("gaussianmlr", appauthor=False)
    return Path(given).expanduser() / name

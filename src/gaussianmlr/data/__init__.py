"""Data: people's own tables and images, and the sets of the paper.

The public names are loaded on first use, so that importing one reader does not cost all of them.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gaussianmlr.data.architecture import read_avdp
    from gaussianmlr.data.check import Report, check
    from gaussianmlr.data.dataset import RankedData
    from gaussianmlr.data.images import RankedImages, read_image
    from gaussianmlr.data.manifests import read_images
    from gaussianmlr.data.scenes import read_nsid
    from gaussianmlr.data.tables import from_arrays, read_mat, read_table
    from gaussianmlr.data.transforms import Augment, Preprocess

_HOMES = {
    "Augment": "transforms",
    "Preprocess": "transforms",
    "RankedData": "dataset",
    "RankedImages": "images",
    "Report": "check",
    "check": "check",
    "from_arrays": "tables",
    "read_avdp": "architecture",
    "read_image": "images",
    "read_images": "manifests",
    "read_mat": "tables",
    "read_nsid": "scenes",
    "read_table": "tables",
}

__all__ = [
    "Augment",
    "Preprocess",
    "RankedData",
    "RankedImages",
    "Report",
    "check",
    "from_arrays",
    "read_avdp",
    "read_image",
    "read_images",
    "read_mat",
    "read_nsid",
    "read_table",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)

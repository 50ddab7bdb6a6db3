"""Data: the Ranked MNIST family, the real sets of the paper, and people's own tables and pictures.

The public names are loaded on first use, so that importing this package costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gaussianmlr.data.architecture import read_avdp
    from gaussianmlr.data.checking import Report, check
    from gaussianmlr.data.dataset import RankedData
    from gaussianmlr.data.digits import Digits, fetch_digits, load_digits
    from gaussianmlr.data.export import export_sets, load_export
    from gaussianmlr.data.images import RankedImages, read_image
    from gaussianmlr.data.manifests import read_images
    from gaussianmlr.data.probes import Probe, adjusting_sequences, calibration_set
    from gaussianmlr.data.ranked_mnist import Batch, RankedMNIST
    from gaussianmlr.data.recipes import Recipes
    from gaussianmlr.data.scenes import read_nsid
    from gaussianmlr.data.settings import SETTINGS, Setting
    from gaussianmlr.data.sheet import contact_sheet
    from gaussianmlr.data.tables import from_arrays, read_mat, read_table
    from gaussianmlr.data.transforms import Augment, Preprocess

_HOMES = {
    "Augment": "transforms",
    "Batch": "ranked_mnist",
    "Digits": "digits",
    "Preprocess": "transforms",
    "Probe": "probes",
    "RankedData": "dataset",
    "RankedImages": "images",
    "RankedMNIST": "ranked_mnist",
    "Recipes": "recipes",
    "Report": "checking",
    "SETTINGS": "settings",
    "Setting": "settings",
    "adjusting_sequences": "probes",
    "calibration_set": "probes",
    "check": "checking",
    "contact_sheet": "sheet",
    "export_sets": "export",
    "fetch_digits": "digits",
    "from_arrays": "tables",
    "load_digits": "digits",
    "load_export": "export",
    "read_avdp": "architecture",
    "read_image": "images",
    "read_images": "manifests",
    "read_mat": "tables",
    "read_nsid": "scenes",
    "read_table": "tables",
}

__all__ = [
    "SETTINGS",
    "Augment",
    "Batch",
    "Digits",
    "Preprocess",
    "Probe",
    "RankedData",
    "RankedImages",
    "RankedMNIST",
    "Recipes",
    "Report",
    "Setting",
    "adjusting_sequences",
    "calibration_set",
    "check",
    "contact_sheet",
    "export_sets",
    "fetch_digits",
    "from_arrays",
    "load_digits",
    "load_export",
    "read_avdp",
    "read_image",
    "read_images",
    "read_mat",
    "read_nsid",
    "read_table",
]


def __getattr__(name: str) -> object:
    if name in _HOMES:
        value: object = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)

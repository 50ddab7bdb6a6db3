"""Data: handwritten digits and the Ranked MNIST family made from them.

The public names are loaded on first use, so that importing this package costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gaussianmlr.data.digits import Digits, fetch_digits, load_digits
    from gaussianmlr.data.export import export_sets, load_export
    from gaussianmlr.data.probes import Probe, adjusting_sequences, calibration_set
    from gaussianmlr.data.ranked_mnist import Batch, RankedMNIST
    from gaussianmlr.data.recipes import Recipes
    from gaussianmlr.data.settings import SETTINGS, Setting
    from gaussianmlr.data.sheet import contact_sheet

_HOMES = {
    "Batch": "ranked_mnist",
    "Digits": "digits",
    "Probe": "probes",
    "RankedMNIST": "ranked_mnist",
    "Recipes": "recipes",
    "SETTINGS": "settings",
    "Setting": "settings",
    "adjusting_sequences": "probes",
    "calibration_set": "probes",
    "contact_sheet": "sheet",
    "export_sets": "export",
    "fetch_digits": "digits",
    "load_digits": "digits",
    "load_export": "export",
}

__all__ = [
    "SETTINGS",
    "Batch",
    "Digits",
    "Probe",
    "RankedMNIST",
    "Recipes",
    "Setting",
    "adjusting_sequences",
    "calibration_set",
    "contact_sheet",
    "export_sets",
    "fetch_digits",
    "load_digits",
    "load_export",
]


def __getattr__(name: str) -> object:
    if name in _HOMES:
        value: object = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)

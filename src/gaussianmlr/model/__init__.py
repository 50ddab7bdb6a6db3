"""The model: its recipe, the network in memory and on disk, what it predicts, its calibration.

The public names are loaded on first use, so that importing this package costs next to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gaussianmlr._utils.lazy import lazy_names

if TYPE_CHECKING:
    from gaussianmlr.model.calibration import Calibration
    from gaussianmlr.model.guarantees import Conformal, Guaranteed
    from gaussianmlr.model.model import Model, build, join, load, read_config
    from gaussianmlr.model.prediction import Prediction
    from gaussianmlr.model.presets import preset
    from gaussianmlr.model.recipe import Recipe

_HOMES = {
    "Calibration": "calibration",
    "Conformal": "guarantees",
    "Guaranteed": "guarantees",
    "Model": "model",
    "Prediction": "prediction",
    "Recipe": "recipe",
    "build": "model",
    "join": "model",
    "load": "model",
    "preset": "presets",
    "read_config": "model",
}

__all__ = [
    "Calibration",
    "Conformal",
    "Guaranteed",
    "Model",
    "Prediction",
    "Recipe",
    "build",
    "join",
    "load",
    "preset",
    "read_config",
]

__getattr__, __dir__ = lazy_names(__name__, _HOMES)

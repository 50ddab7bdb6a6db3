"""Multi-label ranking: which labels apply, in which order of significance, and how sure.

The public names are loaded on first use, so that importing this package costs next to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gaussianmlr._moved import install
from gaussianmlr._utils.lazy import lazy_names
from gaussianmlr._version import __version__

if TYPE_CHECKING:
    from gaussianmlr import data, losses, methods, metrics, normal, orders, plots, rankers
    from gaussianmlr.errors import DataError
    from gaussianmlr.estimators import scorers
    from gaussianmlr.estimators.classic import CalibratedRanker, DummyRanker, NeighbourRanker
    from gaussianmlr.estimators.gaussian import GaussianMLR
    from gaussianmlr.estimators.networks import MultiLabelRanker
    from gaussianmlr.estimators.texts import TextFeatures
    from gaussianmlr.model import calibration
    from gaussianmlr.model.model import load
    from gaussianmlr.model.prediction import Prediction
    from gaussianmlr.nn import backbones, heads, network
    from gaussianmlr.orders import (
        Ranks,
        densify,
        from_positions,
        pairs,
        to_lists,
        to_positions,
        to_ranks,
        to_text,
        weak,
    )
    from gaussianmlr.training import features

_HOMES = {
    "CalibratedRanker": "estimators.classic",
    "DataError": "errors",
    "DummyRanker": "estimators.classic",
    "GaussianMLR": "estimators.gaussian",
    "MultiLabelRanker": "estimators.networks",
    "NeighbourRanker": "estimators.classic",
    "TextFeatures": "estimators.texts",
    "Prediction": "model.prediction",
    "Ranks": "orders",
    "backbones": "nn.backbones",
    "calibration": "model.calibration",
    "data": "data",
    "densify": "orders",
    "features": "training.features",
    "from_positions": "orders",
    "heads": "nn.heads",
    "load": "model.model",
    "losses": "losses",
    "methods": "methods",
    "metrics": "metrics",
    "network": "nn.network",
    "normal": "normal",
    "orders": "orders",
    "pairs": "orders",
    "plots": "plots",
    "rankers": "rankers",
    "scorers": "estimators.scorers",
    "to_lists": "orders",
    "to_positions": "orders",
    "to_ranks": "orders",
    "to_text": "orders",
    "weak": "orders",
}

__all__ = [
    "CalibratedRanker",
    "DataError",
    "DummyRanker",
    "GaussianMLR",
    "MultiLabelRanker",
    "NeighbourRanker",
    "Prediction",
    "Ranks",
    "TextFeatures",
    "__version__",
    "backbones",
    "calibration",
    "data",
    "densify",
    "features",
    "from_positions",
    "heads",
    "load",
    "losses",
    "methods",
    "metrics",
    "network",
    "normal",
    "orders",
    "pairs",
    "plots",
    "rankers",
    "scorers",
    "to_lists",
    "to_positions",
    "to_ranks",
    "to_text",
    "weak",
]

__getattr__, __dir__ = lazy_names(__name__, _HOMES)

install()

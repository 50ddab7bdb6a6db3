"""Multi-label ranking: which labels apply, in which order of significance, and how sure.

The public names are loaded on first use, so that ``import gaussianmlr`` costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from gaussianmlr._version import __version__

if TYPE_CHECKING:
    from gaussianmlr.classic import CalibratedRanker, DummyRanker, NeighbourRanker
    from gaussianmlr.errors import DataError
    from gaussianmlr.estimator import GaussianMLR, MultiLabelRanker
    from gaussianmlr.model import load
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
    from gaussianmlr.prediction import Prediction

    from . import (
        backbones,
        calibration,
        data,
        features,
        heads,
        losses,
        methods,
        metrics,
        network,
        normal,
        orders,
        plots,
        rankers,
        scorers,
    )

_MODULES = (
    "backbones",
    "calibration",
    "data",
    "features",
    "heads",
    "losses",
    "methods",
    "metrics",
    "network",
    "normal",
    "orders",
    "plots",
    "rankers",
    "scorers",
)
_HOMES = {
    "CalibratedRanker": "classic",
    "DataError": "errors",
    "DummyRanker": "classic",
    "GaussianMLR": "estimator",
    "MultiLabelRanker": "estimator",
    "NeighbourRanker": "classic",
    "Prediction": "prediction",
    "Ranks": "orders",
    "densify": "orders",
    "from_positions": "orders",
    "load": "model",
    "pairs": "orders",
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


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name in _HOMES:
        value: object = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)

"""The scikit-learn face: networks, classic rivals, scorers.

The public names are loaded on first use, so that importing this package costs next to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gaussianmlr._utils.lazy import lazy_names

if TYPE_CHECKING:
    from gaussianmlr.estimators.classic import CalibratedRanker, DummyRanker, NeighbourRanker
    from gaussianmlr.estimators.gaussian import GaussianMLR
    from gaussianmlr.estimators.networks import MultiLabelRanker
    from gaussianmlr.estimators.scorers import get_scorer, get_scorers
    from gaussianmlr.estimators.texts import TextFeatures

_HOMES = {
    "CalibratedRanker": "classic",
    "DummyRanker": "classic",
    "GaussianMLR": "gaussian",
    "MultiLabelRanker": "networks",
    "NeighbourRanker": "classic",
    "TextFeatures": "texts",
    "get_scorer": "scorers",
    "get_scorers": "scorers",
}

__all__ = [
    "CalibratedRanker",
    "DummyRanker",
    "GaussianMLR",
    "MultiLabelRanker",
    "NeighbourRanker",
    "TextFeatures",
    "get_scorer",
    "get_scorers",
]

__getattr__, __dir__ = lazy_names(__name__, _HOMES)

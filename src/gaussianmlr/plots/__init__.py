"""Plots as Display objects in the style of scikit-learn: built from numbers, drawn by ``.plot(ax=None)``.

A display is made from numbers, by `from_predictions` or by `from_estimator` (a model or an estimator). `plot`
draws on the axes it is given or on new ones, and returns the display with `ax_` and `figure_`. Colours are
those of Okabe and Ito, which are safe for colour-blind readers.
"""

from gaussianmlr._moved import moved_name
from gaussianmlr.plots.critical import CriticalDifferenceDisplay
from gaussianmlr.plots.curves import CoverageDisplay, InterpolationDisplay, ReliabilityDisplay
from gaussianmlr.plots.history import HistoryDisplay
from gaussianmlr.plots.instances import GaussianDisplay, PairsDisplay, SignificanceDisplay
from gaussianmlr.plots.order_graph import OrderGraphDisplay

__all__ = [
    "CoverageDisplay",
    "CriticalDifferenceDisplay",
    "GaussianDisplay",
    "HistoryDisplay",
    "InterpolationDisplay",
    "OrderGraphDisplay",
    "PairsDisplay",
    "ReliabilityDisplay",
    "SignificanceDisplay",
]


def __getattr__(name: str) -> object:
    return moved_name(__name__, name)

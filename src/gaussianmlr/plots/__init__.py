"""Plots as Display objects: numbers first, ``.plot(ax=None)`` second, as scikit-learn has them.

A display is made from numbers, by `from_predictions` or by `from_estimator` (a model or an estimator). `plot`
draws on the axes it is given or on new ones, and returns the display with `ax_` and `figure_`. Colours are
those of Okabe and Ito, which everybody can tell apart.
"""

from gaussianmlr.plots.comparison import ComparisonDisplay
from gaussianmlr.plots.curves import CoverageDisplay, InterpolationDisplay, ReliabilityDisplay
from gaussianmlr.plots.history import HistoryDisplay
from gaussianmlr.plots.instances import GaussianDisplay, PairsDisplay, SignificanceDisplay

__all__ = [
    "ComparisonDisplay",
    "CoverageDisplay",
    "GaussianDisplay",
    "HistoryDisplay",
    "InterpolationDisplay",
    "PairsDisplay",
    "ReliabilityDisplay",
    "SignificanceDisplay",
]

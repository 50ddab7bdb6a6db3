"""Shared parts of the displays: axes, colours, shortened names, predictions."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt

from gaussianmlr._utils.extras import require
from gaussianmlr.errors import DataError, shorten
from gaussianmlr.model.prediction import Prediction
from gaussianmlr.orders.grammar import shown

# Okabe and Ito (2008), Color universal design: safe for colour-blind readers and in print.
BLUE, ORANGE, GREEN, RED = "#0072B2", "#E69F00", "#009E73", "#D55E00"
PURPLE, SKY, BLACK, GRAY = "#CC79A7", "#56B4E9", "#000000", "#999999"
COLOURS = (BLUE, RED, GREEN, PURPLE, ORANGE, SKY, BLACK)
LINES = ("-", "--", "-.", ":")  # for more labels than colours

FloatArray = npt.NDArray[np.float64]


def axes(ax: Any, size: tuple[float, float]) -> Any:
    """The given axes, or those of a new figure."""
    if ax is not None:
        return ax
    require("a plot", "matplotlib")
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=size, layout="constrained")[1]


def look(place: int) -> dict[str, Any]:
    """Colour and line style of the n-th curve."""
    return {"color": COLOURS[place % len(COLOURS)], "linestyle": LINES[place // len(COLOURS) % len(LINES)]}


def bare(ax: Any, *sides: str) -> None:
    """Hide sides of the frame."""
    ax.spines[list(sides or ("top", "right"))].set_visible(False)


def short(name: object, width: int = 22) -> str:
    """A name, shortened to a width."""
    text = str(name)
    return text if len(text) <= width else f"{text[: width - 1]}…"


def vector(values: Any, what: str, length: int | None = None) -> FloatArray:
    """A checked vector of finite numbers."""
    found = np.asarray(values, dtype=np.float64)
    if found.ndim != 1 or (length is not None and len(found) != length):
        wanted = "as a vector" if length is None else f"of {length} labels"
        raise DataError(f"expected {what} {wanted}, got shape {list(found.shape)}")
    if not np.isfinite(found).all():
        raise DataError(f"expected {what} to be finite numbers, got {shorten(found.tolist())}")
    return found


def predicted(estimator: Any, inputs: Any) -> Prediction:
    """The `Prediction` of an estimator or a model, also at the end of a pipeline or a search."""
    if hasattr(estimator, "best_estimator_"):
        return predicted(estimator.best_estimator_, inputs)
    if hasattr(estimator, "steps"):
        return predicted(estimator[-1], estimator[:-1].transform(inputs))
    predict = getattr(estimator, "predict_full", None) or getattr(estimator, "predict", None)
    found = None if predict is None else predict(inputs)
    if not isinstance(found, Prediction):
        raise DataError(f"expected a model or an estimator of gaussianmlr, got {shorten(estimator)}")
    return found


class Display:
    """Anything that draws on axes and keeps them."""

    ax_: Any
    figure_: Any

    def _drawn(self, ax: Any) -> Self:
        self.ax_, self.figure_ = ax, ax.figure
        return self

    @staticmethod
    def _set_title(ax: Any, text: str, width: int = 60, **look: Any) -> None:
        if text:
            ax.set_title(short(text, width), fontsize=10.5, loc="left", **look)

    @staticmethod
    def _legend(ax: Any, **where: Any) -> None:
        ax.legend(frameon=False, fontsize=9, **where)

    @staticmethod
    def _note(ax: Any, text: str, at: Any, shift: Any, coords: Any = "data", **look: Any) -> None:
        """A text beside a point, shifted by points of print."""
        ax.annotate(text, at, shift, xycoords=coords, textcoords="offset points", **look)


class OfPredictions(Display):
    """A display with a constructor `from_predictions`."""

    from_predictions: Any

    @classmethod
    def from_estimator(cls, estimator: Any, inputs: Any, *more: Any, **settings: Any) -> Self:
        """Predict inputs by a model or an estimator; all else as in `from_predictions`."""
        display: Self = cls.from_predictions(predicted(estimator, inputs), *more, **settings)
        return display

    @staticmethod
    def _title_of(one: Prediction) -> str:
        """Name and predicted order of a single instance."""
        return f"{short(one.names[0], 30)}: {shown(one.orders[0])}"

    @staticmethod
    def _axis_of(prediction: Prediction) -> str:
        """What the values of a prediction are; jnd are just noticeable differences."""
        if prediction.raw is None:
            return "score"
        return "significance (jnd)" if prediction.scale == "jnd" else "significance"

"""What all displays share: axes, colours, names that fit, and where predictions come from."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from gaussianmlr.errors import DataError, shorten
from gaussianmlr.prediction import Prediction

# Okabe and Ito (2008), Color universal design: told apart by everybody, and in print.
BLUE, ORANGE, GREEN, RED = "#0072B2", "#E69F00", "#009E73", "#D55E00"
PURPLE, SKY, BLACK, GRAY = "#CC79A7", "#56B4E9", "#000000", "#999999"
COLOURS = (BLUE, RED, GREEN, PURPLE, ORANGE, SKY, BLACK)
LINES = ("-", "--", "-.", ":")  # of more labels than colours

FloatArray = npt.NDArray[np.float64]


def axes(ax: Any, size: tuple[float, float]) -> Any:
    """The axes that were given, or those of a new figure."""
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=size, layout="constrained")[1]


def look(place: int) -> dict[str, Any]:
    """Colour and line of the n-th thing of a plot."""
    return {
        "color": COLOURS[place % len(COLOURS)],
        "linestyle": LINES[place // len(COLOURS) % len(LINES)],
    }


def bare(ax: Any, *sides: str) -> None:
    """Take away the frame where it says nothing."""
    ax.spines[list(sides or ("top", "right"))].set_visible(False)


def short(name: object, width: int = 22) -> str:
    """A name that fits."""
    text = str(name)
    return text if len(text) <= width else f"{text[: width - 1]}…"


def vector(values: Any, what: str, length: int | None = None) -> FloatArray:
    """Finite numbers in a row."""
    found = np.asarray(values, dtype=np.float64)
    if found.ndim != 1 or (length is not None and len(found) != length):
        wanted = "in a row" if length is None else f"of {length} labels"
        raise DataError(f"expected {what} {wanted}, got shape {list(found.shape)}")
    if not np.isfinite(found).all():
        raise DataError(f"expected {what} to be finite numbers, got {shorten(found.tolist())}")
    return found


def predicted(estimator: Any, inputs: Any) -> Prediction:
    """What an estimator or a model says, as a `Prediction`; also from the end of a pipeline or a search."""
    if hasattr(estimator, "best_estimator_"):
        return predicted(estimator.best_estimator_, inputs)
    if hasattr(estimator, "steps"):
        return predicted(estimator[-1], estimator[:-1].transform(inputs))
    predict = getattr(estimator, "predict_full", None) or getattr(estimator, "predict", None)
    found = None if predict is None else predict(inputs)
    if not isinstance(found, Prediction):
        raise DataError(f"expected a model or an estimator of gaussianmlr, got {shorten(estimator)}")
    return found

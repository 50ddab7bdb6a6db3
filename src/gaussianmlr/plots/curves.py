"""Displays over many instances: reliability, coverage, and significances along a sequence."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from gaussianmlr import metrics
from gaussianmlr.errors import DataError
from gaussianmlr.metrics import Abstention, Reliability
from gaussianmlr.model.calibration import BeforeAfter
from gaussianmlr.model.prediction import Prediction
from gaussianmlr.normal import Significance
from gaussianmlr.orders import check_labels, to_ranks
from gaussianmlr.plots._style import BLACK, GRAY, FloatArray, OfPredictions, axes, bare, look, short

__all__ = ["CoverageDisplay", "InterpolationDisplay", "ReliabilityDisplay"]

_MOST_A_COLUMN = 14  # names per column of a legend beside the axes
_MARKED = (0.5, 0.8, 0.9, 0.95, 0.99)  # confidences marked on a coverage curve


class ReliabilityDisplay(OfPredictions):
    """Predicted probabilities against observed frequencies; on the diagonal the two agree.

    Parameters
    ----------
    curves : mapping of str to Reliability
        Curves from `metrics.reliability`.
    about : str
        Subject of the probabilities.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.
    lines_ : dict of str to matplotlib Line2D
        The curves, by their names.

    Examples
    --------
    >>> curve = metrics.reliability([[0.9, 0.8, 0.7, 0.1]], [[2, 1, 0, 0]], bins=2)
    >>> display = ReliabilityDisplay({"model": curve}).plot()
    >>> display.lines_["model"].get_ydata().round(2)
    array([0. , 0.67])
    """

    lines_: dict[str, Any]

    def __init__(self, curves: Mapping[str, Reliability], *, about: str = "relevance") -> None:
        if not curves:
            raise DataError("expected one reliability curve or more, got none")
        self.curves = {name: Reliability(*map(np.asarray, curve)) for name, curve in curves.items()}
        self.about = about

    @classmethod
    def from_report(cls, report: BeforeAfter, *, about: str = "relevance") -> ReliabilityDisplay:
        """Before and after a calibration, from `calibration.compare`."""
        return cls({"before calibration": report.before, "after calibration": report.after}, about=about)

    @classmethod
    def from_predictions(
        cls,
        prediction: Prediction,
        ranks: Any,
        *,
        of: Literal["relevance", "pairs"] = "relevance",
        bins: int = 15,
        name: str | None = None,
    ) -> ReliabilityDisplay:
        """Probabilities of relevance or of pairs against true orders in any form of `to_ranks`."""
        if of not in ("relevance", "pairs"):
            raise DataError(f"of is 'relevance' or 'pairs', not {of!r}")
        chances = prediction.p_relevant if of == "relevance" else _pairs(prediction)
        curve = metrics.reliability(chances, to_ranks(ranks, prediction.labels).ranks, bins=bins)
        return cls({name or prediction.method or "model": curve}, about=of)

    def plot(self, ax: Any = None) -> ReliabilityDisplay:
        """Draw it; larger dots stand for more probabilities."""
        ax = axes(ax, (4.8, 4.8))
        ax.plot([0, 1], [0, 1], color=GRAY, linewidth=1, linestyle=":", zorder=1)
        self.lines_ = {}
        for place, (name, curve) in enumerate(self.curves.items()):
            there = curve.counts > 0
            x, y, counts = curve.predicted[there], curve.observed[there], curve.counts[there]
            gap = float(np.sum(counts * np.abs(x - y)) / max(1, counts.sum()))
            style = look(place)
            text = f"{name}: ECE {gap:.3f}"
            (self.lines_[name],) = ax.plot(x, y, **style, linewidth=1.6, label=text, zorder=2)
            sizes = 12 + 130 * counts / max(1, counts.max(initial=1))
            ax.scatter(x, y, sizes, color=style["color"], alpha=0.75, linewidths=0, zorder=3)
        ax.set_xlim(-0.02, 1.02)
        ax.set_ylim(-0.02, 1.02)
        ax.set_aspect("equal")
        ax.set_xlabel(f"predicted probability of {_WHAT.get(self.about, self.about)}")
        ax.set_ylabel("observed frequency")
        self._legend(ax, loc="upper left")
        bare(ax)
        return self._drawn(ax)


def _pairs(prediction: Prediction) -> Any:
    """The law of its pairs; without sigma, the error that says so."""
    if prediction.raw is None:
        return prediction.p_above
    return Significance(*prediction.raw)  # type: ignore[arg-type]  # arrays will do


_WHAT = {"relevance": "relevance", "pairs": "one label above another"}


class CoverageDisplay(OfPredictions):
    """Accuracy of partial orders against their coverage, at rising confidence.

    Parameters
    ----------
    curves : mapping of str to Abstention
        Curves from `metrics.abstention`.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.
    lines_ : dict of str to matplotlib Line2D
        The curves, by their names.

    Examples
    --------
    >>> sure = [[[0.5, 0.9, 0.8], [0.1, 0.5, 0.4], [0.2, 0.6, 0.5]]]
    >>> display = CoverageDisplay({"model": metrics.abstention(sure, [[2, 1, 0]], [0.5, 0.7])}).plot()
    >>> display.lines_["model"].get_xdata().round(2)
    array([1. , 0.67])
    """

    lines_: dict[str, Any]

    def __init__(self, curves: Mapping[str, Abstention]) -> None:
        if not curves:
            raise DataError("expected one coverage curve or more, got none")
        self.curves = {name: Abstention(*map(np.asarray, curve)) for name, curve in curves.items()}

    @classmethod
    def from_predictions(
        cls, prediction: Prediction, ranks: Any, *, confidences: Any = None, name: str | None = None
    ) -> CoverageDisplay:
        """Pairs of a prediction against true orders in any form of `to_ranks`; for methods with sigma."""
        truth = to_ranks(ranks, prediction.labels).ranks
        curve = metrics.abstention(_pairs(prediction), truth, confidences)
        return cls({name or prediction.method or "model": curve})

    def plot(self, ax: Any = None) -> CoverageDisplay:
        """Draw it; dots are labelled with the confidence required of comparisons."""
        from matplotlib.ticker import PercentFormatter

        ax = axes(ax, (6.0, 4.2))
        self.lines_ = {}
        for place, (name, curve) in enumerate(self.curves.items()):
            there = curve.counts > 0
            x, y, confidences = curve.coverage[there], curve.accuracy[there], curve.confidences[there]
            (self.lines_[name],) = ax.plot(x, y, **look(place), linewidth=2, label=name)
            self._mark(ax, x, y, confidences, look(place)["color"])
        if not any(curve.counts.any() for curve in self.curves.values()):
            ax.text(0.5, 0.5, "no pair is compared", transform=ax.transAxes, ha="center", color=GRAY)
            ax.set_ylim(0, 1)
        ax.set_xlim(0, 1.06)
        ax.margins(y=0.12)
        ax.set_ylim(max(-0.02, ax.get_ylim()[0]), min(1.02, ax.get_ylim()[1]))
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_major_formatter(PercentFormatter(1, decimals=None))
        ax.set_xlabel("coverage: truly ordered pairs that are compared")
        ax.set_ylabel("accuracy of these comparisons")
        self._set_title(ax, "Partial orders: coverage and accuracy")
        self._legend(ax, loc="lower left")
        bare(ax)
        return self._drawn(ax)

    def _mark(self, ax: Any, x: FloatArray, y: FloatArray, confidences: FloatArray, colour: str) -> None:
        """Label points with their confidences; one label for all those of a point."""
        names: dict[tuple[float, float], list[str]] = {}
        for marked in _MARKED:
            gaps = np.abs(confidences - marked)
            if len(gaps) and gaps.min() <= 0.006:
                at = int(gaps.argmin())
                names.setdefault((float(x[at]), float(y[at])), []).append(f"{100 * marked:.0f}%")
        for point, texts in names.items():
            ax.plot(*point, "o", color=colour, markersize=5.5)
            text = "–".join(dict.fromkeys((texts[0], texts[-1])))
            self._note(ax, text, point, (4, 5), fontsize=8.5, color=colour)


class InterpolationDisplay(OfPredictions):
    """Significances along a sequence of inputs, beside the true ones.

    Parameters
    ----------
    values : array [frames, labels]
        Significances or scores.
    labels : sequence of str
        Their names.
    sigma : array [frames, labels], optional
        Standard deviations, drawn as bands.
    truth : array [frames, labels], optional
        What the values should follow, in its own unit.
    axis, truth_axis : str
        Names of the vertical axes.

    Attributes
    ----------
    ax_, truth_ax_, figure_ : matplotlib Axes, Axes or None, and Figure
        Where it was drawn.
    lines_ : list of matplotlib Line2D
        The predicted curves, one per label.

    Examples
    --------
    >>> rising = [[-1.0, 2.0], [0.5, 1.0], [2.0, 0.0]]
    >>> display = InterpolationDisplay(rising, ["5", "8"], truth=[[1, 3], [2, 2], [3, 1]]).plot()
    >>> display.lines_[0].get_ydata()
    array([-1. ,  0.5,  2. ])
    """

    truth_ax_: Any
    lines_: list[Any]

    def __init__(
        self,
        values: Any,
        labels: Any,
        *,
        sigma: Any = None,
        truth: Any = None,
        axis: str = "significance",
        truth_axis: str = "true significance",
        title: str = "",
    ) -> None:
        self.labels = check_labels(labels)
        self.values = self._frames(values, "values")
        self.sigma = None if sigma is None else self._frames(sigma, "sigma")
        self.truth = None if truth is None else self._frames(truth, "truth")
        self.axis, self.truth_axis, self.title = axis, truth_axis, title

    def _frames(self, values: Any, what: str) -> Any:
        found = np.asarray(values, dtype=np.float64)
        if found.ndim != 2 or found.shape[1] != len(self.labels):
            raise DataError(f"expected {what} of shape [frames, {len(self.labels)}], got {list(found.shape)}")
        return found

    @classmethod
    def from_predictions(
        cls, prediction: Prediction, *, labels: Any = None, truth: Any = None, **names: str
    ) -> InterpolationDisplay:
        """From a prediction whose instances are the frames of a sequence.

        Parameters
        ----------
        prediction : Prediction
            What was predicted.
        labels : sequence of str, optional
            The labels to draw; all of them by default.
        truth : array [frames, labels], optional
            The true significances of these labels.
        **names
            ``title``, ``axis`` and ``truth_axis``.
        """
        wanted = prediction.labels if labels is None else check_labels(labels)
        strange = [label for label in wanted if label not in prediction.labels]
        if strange:
            raise DataError(f"no label {strange[0]!r}; there are {', '.join(prediction.labels[:20])}")
        columns = [prediction.labels.index(label) for label in wanted]
        names = {"axis": cls._axis_of(prediction), **names}
        if prediction.raw is None:
            return cls(prediction.scores[:, columns], wanted, truth=truth, **names)
        mu, sigma = prediction.significance[:, columns], prediction.sigma[:, columns]
        return cls(mu, wanted, sigma=sigma, truth=truth, **names)

    def plot(self, ax: Any = None, *, truth_ax: Any = None) -> InterpolationDisplay:
        """Draw it on `ax`, and the truth on `truth_ax`; by default on new axes side by side."""
        beside = math.ceil(len(self.labels) / _MOST_A_COLUMN) if self._crowded else 0  # columns of names
        if ax is None and self.truth is not None and truth_ax is None:
            import matplotlib.pyplot as plt

            size = (9.2 + 1.7 * beside, 3.8)
            _, (ax, truth_ax) = plt.subplots(1, 2, figsize=size, layout="constrained")
        ax = axes(ax, (5.6 + 1.7 * beside, 3.8))
        self.lines_ = self._curves(ax, self.values, self.sigma)
        ax.axhline(0, color=BLACK, linewidth=0.9, linestyle=":")
        ax.set_ylabel(f"{self.axis}; above 0: relevant")
        if self.truth is not None and truth_ax is not None:
            self._curves(truth_ax, self.truth)
            truth_ax.set_ylabel(self.truth_axis)
        outside = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0), "ncols": beside}
        last = truth_ax if beside and truth_ax is not None else ax
        self._legend(last, handles=self.lines_, **(outside if beside else {"ncols": 2}))
        self._set_title(ax, self.title)
        self.truth_ax_ = truth_ax
        return self._drawn(ax)

    def _curves(self, ax: Any, values: Any, sigma: Any = None) -> list[Any]:
        """One line per label, with a band of one sigma."""
        frames, lines = np.arange(len(values)), []
        for place, label in enumerate(self.labels):
            lines += ax.plot(frames, values[:, place], **look(place), linewidth=2, label=short(label))
            if sigma is not None:
                low, high = (values[:, place] + sign * sigma[:, place] for sign in (-1, 1))
                ax.fill_between(frames, low, high, color=look(place)["color"], alpha=0.14, linewidth=0)
        ax.set_xlabel("frame")
        ax.xaxis.get_major_locator().set_params(integer=True)
        ax.margins(x=0.02)
        bare(ax)
        return lines

    @property
    def _crowded(self) -> bool:
        """Whether the legend goes beside the axes."""
        return len(self.labels) > 4 or max(map(len, self.labels)) > 12

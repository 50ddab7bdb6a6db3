"""What a model is worth over many instances: reliability, coverage, and significances along a sequence."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from gaussianmlr import metrics
from gaussianmlr.calibration import BeforeAfter
from gaussianmlr.errors import DataError
from gaussianmlr.metrics import Abstention, Reliability
from gaussianmlr.orders import check_labels, to_ranks
from gaussianmlr.plots._style import BLACK, GRAY, FloatArray, axes, bare, look, predicted, short
from gaussianmlr.prediction import Prediction

__all__ = ["CoverageDisplay", "InterpolationDisplay", "ReliabilityDisplay"]

_MOST_A_COLUMN = 14  # names of a legend beside the axes
_MARKED = (0.5, 0.8, 0.9, 0.95, 0.99)  # confidences that are named on a coverage curve


class ReliabilityDisplay:
    """What was said against what came true; on the diagonal, probabilities mean what they say.

    Parameters
    ----------
    curves : mapping of str to Reliability
        As `metrics.reliability` gives them.
    about : str
        What the probabilities are of.

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

    ax_: Any
    figure_: Any
    lines_: dict[str, Any]

    def __init__(self, curves: Mapping[str, Reliability], *, about: str = "relevance") -> None:
        if not curves:
            raise DataError("expected one reliability curve or more, got none")
        self.curves = {name: Reliability(*map(np.asarray, curve)) for name, curve in curves.items()}
        self.about = about

    @classmethod
    def from_report(cls, report: BeforeAfter, *, about: str = "relevance") -> ReliabilityDisplay:
        """Before and after a calibration, as `calibration.compare` gives it."""
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
        """The probabilities of relevance, or of pairs, against true orders, as `to_ranks` reads them."""
        if of not in ("relevance", "pairs"):
            raise DataError(f"of is 'relevance' or 'pairs', not {of!r}")
        chances = prediction.p_relevant if of == "relevance" else prediction.p_above
        curve = metrics.reliability(chances, to_ranks(ranks, prediction.labels).ranks, bins=bins)
        return cls({name or prediction.method or "model": curve}, about=of)

    @classmethod
    def from_estimator(cls, estimator: Any, inputs: Any, ranks: Any, **settings: Any) -> ReliabilityDisplay:
        """What a model or an estimator says of inputs; settings as of `from_predictions`."""
        return cls.from_predictions(predicted(estimator, inputs), ranks, **settings)

    def plot(self, ax: Any = None) -> ReliabilityDisplay:
        """Draw it; the larger a dot, the more probabilities it stands for."""
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
        ax.set_ylabel("share that came true")
        ax.legend(frameon=False, fontsize=9, loc="upper left")
        bare(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self


_WHAT = {"relevance": "relevance", "pairs": "one label above another"}


class CoverageDisplay:
    """Accuracy of partial orders against how much they say, at rising confidence.

    Parameters
    ----------
    curves : mapping of str to Abstention
        As `metrics.abstention` gives them.

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

    ax_: Any
    figure_: Any
    lines_: dict[str, Any]

    def __init__(self, curves: Mapping[str, Abstention]) -> None:
        if not curves:
            raise DataError("expected one coverage curve or more, got none")
        self.curves = {name: Abstention(*map(np.asarray, curve)) for name, curve in curves.items()}

    @classmethod
    def from_predictions(
        cls, prediction: Prediction, ranks: Any, *, confidences: Any = None, name: str | None = None
    ) -> CoverageDisplay:
        """The pairs of a prediction against true orders, as `to_ranks` reads them; for methods with sigma."""
        truth = to_ranks(ranks, prediction.labels).ranks
        curve = metrics.abstention(prediction.p_above, truth, confidences)
        return cls({name or prediction.method or "model": curve})

    @classmethod
    def from_estimator(cls, estimator: Any, inputs: Any, ranks: Any, **settings: Any) -> CoverageDisplay:
        """What a model or an estimator says of inputs; settings as of `from_predictions`."""
        return cls.from_predictions(predicted(estimator, inputs), ranks, **settings)

    def plot(self, ax: Any = None) -> CoverageDisplay:
        """Draw it; dots name the confidence in percent that comparisons need."""
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
        ax.set_title("What a partial order says, and how much of it is right", fontsize=10.5, loc="left")
        ax.legend(frameon=False, fontsize=9, loc="lower left")
        bare(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    @staticmethod
    def _mark(ax: Any, x: FloatArray, y: FloatArray, confidences: FloatArray, colour: str) -> None:
        """Name confidences at the points that belong to them, all those of one point together."""
        names: dict[tuple[float, float], list[str]] = {}
        for marked in _MARKED:
            gaps = np.abs(confidences - marked)
            if len(gaps) and gaps.min() <= 0.006:
                at = int(gaps.argmin())
                names.setdefault((float(x[at]), float(y[at])), []).append(f"{100 * marked:.0f}%")
        for point, texts in names.items():
            ax.plot(*point, "o", color=colour, markersize=5.5)
            text = "–".join(dict.fromkeys((texts[0], texts[-1])))
            ax.annotate(text, point, (4, 5), textcoords="offset points", fontsize=8.5, color=colour)


class InterpolationDisplay:
    """Significances along a sequence of inputs, the true ones beside them.

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
        The predicted curves, a label each.

    Examples
    --------
    >>> rising = [[-1.0, 2.0], [0.5, 1.0], [2.0, 0.0]]
    >>> display = InterpolationDisplay(rising, ["5", "8"], truth=[[1, 3], [2, 2], [3, 1]]).plot()
    >>> display.lines_[0].get_ydata()
    array([-1. ,  0.5,  2. ])
    """

    ax_: Any
    truth_ax_: Any
    figure_: Any
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
        """A prediction whose instances are the frames of a sequence.

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
        if prediction.raw is None:
            return cls(prediction.scores[:, columns], wanted, truth=truth, **{"axis": "score", **names})
        mu, sigma = prediction.significance[:, columns], prediction.sigma[:, columns]
        return cls(mu, wanted, sigma=sigma, truth=truth, **names)

    @classmethod
    def from_estimator(cls, estimator: Any, inputs: Any, **settings: Any) -> InterpolationDisplay:
        """What a model or an estimator says of a sequence; settings as of `from_predictions`."""
        return cls.from_predictions(predicted(estimator, inputs), **settings)

    def plot(self, ax: Any = None, *, truth_ax: Any = None) -> InterpolationDisplay:
        """Draw it on `ax`, and the truth on `truth_ax`; without axes, on new ones beside each other."""
        beside = math.ceil(len(self.labels) / _MOST_A_COLUMN) if self._crowded else 0  # columns of names
        if ax is None and self.truth is not None and truth_ax is None:
            import matplotlib.pyplot as plt

            size = (9.2 + 1.7 * beside, 3.8)
            _, (ax, truth_ax) = plt.subplots(1, 2, figsize=size, layout="constrained")
        ax = axes(ax, (5.6 + 1.7 * beside, 3.8))
        frames = np.arange(len(self.values))
        self.lines_ = []
        for place, label in enumerate(self.labels):
            line = ax.plot(frames, self.values[:, place], **look(place), linewidth=2, label=short(label))
            self.lines_ += line
            if self.sigma is not None:
                low, high = (self.values[:, place] + sign * self.sigma[:, place] for sign in (-1, 1))
                ax.fill_between(frames, low, high, color=look(place)["color"], alpha=0.14, linewidth=0)
        ax.axhline(0, color=BLACK, linewidth=0.9, linestyle=":")
        ax.set_ylabel(f"{self.axis}; above 0: relevant")
        if self.truth is not None and truth_ax is not None:
            for place in range(len(self.labels)):
                truth_ax.plot(frames, self.truth[:, place], **look(place), linewidth=2)
            truth_ax.set_ylabel(self.truth_axis)
        for one in (ax,) if truth_ax is None else (ax, truth_ax):
            one.set_xlabel("frame")
            one.xaxis.get_major_locator().set_params(integer=True)
            one.margins(x=0.02)
            bare(one)
        outside = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0), "ncols": beside}
        last = truth_ax if beside and truth_ax is not None else ax
        last.legend(handles=self.lines_, frameon=False, fontsize=9, **(outside if beside else {"ncols": 2}))
        if self.title:
            ax.set_title(short(self.title, 60), fontsize=10.5, loc="left")
        self.ax_, self.truth_ax_, self.figure_ = ax, truth_ax, ax.figure
        return self

    @property
    def _crowded(self) -> bool:
        """Whether the names need a place beside the axes."""
        return len(self.labels) > 4 or max(map(len, self.labels)) > 12

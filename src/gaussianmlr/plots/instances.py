"""Displays of one instance: bars, curves, and a matrix of pairs."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from gaussianmlr.errors import DataError
from gaussianmlr.model.prediction import Prediction
from gaussianmlr.orders import check_labels
from gaussianmlr.plots._style import (
    BLACK,
    BLUE,
    GRAY,
    RED,
    FloatArray,
    OfPredictions,
    axes,
    bare,
    look,
    short,
    vector,
)

__all__ = ["GaussianDisplay", "PairsDisplay", "SignificanceDisplay"]

_MOST_BARS = 25
# Of relevant labels, of others, of thresholds.
_PALETTES = {"safe": (BLUE, GRAY, RED), "paper": ("#2e8b3d", "#c8322b", BLACK)}
_MOST_NAMES = 10
_MOST_NUMBERS = 12  # largest matrix with numbers in its cells


class SignificanceDisplay(OfPredictions):
    """Bars of the labels of one instance, the largest on top, with the threshold of relevance.

    Parameters
    ----------
    values : array [K]
        Significances, or a method's own scores.
    labels : sequence of str
        Their names.
    threshold : float or array [K]
        A label is relevant above it: one line for all (zero; the votes of a virtual label), or a mark on
        each bar (learned thresholds).
    spread : array [K], optional
        Standard deviations, drawn as whiskers.
    truth : array [K], optional
        True ranks, shown beside the bars as places: 1 is the most significant.
    title : str
        Above the bars.
    axis : str
        Below them.
    palette : {"safe", "paper"}
        Colours that are safe for colour-blind readers, or the paper's: green for relevant labels, red for
        others.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.
    order_ : array
        The labels that were drawn, from top to bottom.

    Examples
    --------
    >>> display = SignificanceDisplay([0.5, 2.0, -1.0], ["sea", "sky", "sun"]).plot()
    >>> [text.get_text() for text in display.ax_.get_yticklabels()]
    ['sky', 'sea', 'sun']
    """

    order_: npt.NDArray[np.int64]

    def __init__(
        self,
        values: Any,
        labels: Any,
        *,
        threshold: Any = 0.0,
        spread: Any = None,
        truth: Any = None,
        title: str = "",
        axis: str = "significance",
        palette: str = "safe",
    ) -> None:
        if palette not in _PALETTES:
            raise DataError(f"palette is {palette!r}; expected one of {', '.join(_PALETTES)}")
        self.palette = _PALETTES[palette]
        self.labels = check_labels(labels)
        count = len(self.labels)
        self.values = vector(values, "values", count)
        self.shared = np.ndim(threshold) == 0
        self.threshold = vector(np.full(count, threshold) if self.shared else threshold, "thresholds", count)
        self.spread = None if spread is None else vector(spread, "spread", count)
        self.truth = None if truth is None else vector(truth, "true ranks", count).astype(np.int64)
        self.title, self.axis = title, axis

    @classmethod
    def from_predictions(
        cls, prediction: Prediction, instance: int = 0, *, truth: Any = None
    ) -> SignificanceDisplay:
        """From one instance of a prediction: significances and sigmas, or scores for methods without them.

        Parameters
        ----------
        prediction : Prediction
            The prediction.
        instance : int
            Index of the instance.
        truth : array [K], optional
            The true ranks of this instance.
        """
        one = prediction[int(instance)]
        settings = {"truth": truth, "title": cls._title_of(one), "axis": cls._axis_of(one)}
        if one.raw is None:
            return cls(one.scores[0], one.labels, **settings)
        return cls(one.significance[0], one.labels, spread=one.sigma[0], **settings)

    def plot(self, ax: Any = None, *, most: int = _MOST_BARS) -> SignificanceDisplay:
        """Draw it; of many labels, the `most` that are furthest above their thresholds."""
        above = self.values - self.threshold
        best = np.argsort(-above, kind="stable")[:most]
        order = best[np.argsort(-self.values[best], kind="stable")]
        ax = axes(ax, (5.6, 1.3 + 0.32 * len(order)))
        rows = np.arange(len(order))
        accepted, rejected, threshold = self.palette
        colours = [accepted if relevant else rejected for relevant in above[order] > 0]
        ax.barh(rows, self.values[order], color=colours, height=0.72)
        if self.spread is not None:
            bars = {"fmt": "none", "ecolor": BLACK, "elinewidth": 1.1, "capsize": 2.5}
            ax.errorbar(self.values[order], rows, xerr=self.spread[order], **bars)
        if self.shared:
            low, high = ax.get_xlim()
            ax.set_xlim(low, max(high, self.threshold[0] + 0.25 * (self.threshold[0] - low)))  # for the words
            ax.axvline(self.threshold[0], color=threshold, linewidth=1.6, zorder=3)
            at, style = (self.threshold[0], 1), {"color": threshold, "fontsize": 8.5, "va": "bottom"}
            self._note(ax, "relevant →", at, (3, 3), ("data", "axes fraction"), **style)
        else:
            ends = rows - 0.46, rows + 0.46
            ax.vlines(self.threshold[order], *ends, color=threshold, linewidth=2.4, label="threshold")
            # Above the axes, where no mark is.
            self._legend(ax, loc="lower right", bbox_to_anchor=(1, 1), borderaxespad=0.1)
        ax.set_yticks(rows, [short(self.labels[label]) for label in order])
        ax.set_ylim(len(order) - 0.4, -0.6)
        if self.truth is not None:
            self._name_the_truth(ax, order)
        more = len(self.labels) - len(order)
        labels = "label" if more == 1 else "labels"
        ax.set_xlabel(f"{self.axis} ({more} more {labels} below)" if more else self.axis)
        self._set_title(ax, self.title, 42, pad=16 if self.shared else 21)
        bare(ax, "top", "right", "left")
        ax.tick_params(axis="y", length=0)
        self.order_ = order
        return self._drawn(ax)

    def _name_the_truth(self, ax: Any, order: npt.NDArray[np.int64]) -> None:
        assert self.truth is not None
        words, top = {-1: "?", 0: "–"}, int(self.truth.max())
        self._note(ax, "true place", (1, 1), (4, 3), "axes fraction", fontsize=8.5)
        for row, label in enumerate(order):
            rank = int(self.truth[label])
            # Tied labels share a place, and the next one follows without a gap.
            text, weight = words.get(rank, str(top - rank + 1)), "bold" if rank > 0 else "normal"
            beside = ("axes fraction", "data")
            self._note(ax, text, (1, row), (14, 0), beside, va="center", fontsize=9.5, weight=weight)


class GaussianDisplay(OfPredictions):
    """Density curves of the significances of one instance; labels left of zero are not relevant.

    Parameters
    ----------
    mu, sigma : array [K]
        Means and standard deviations.
    labels : sequence of str
        Their names.
    named : array of bool [K], optional
        The labels drawn strongly and with their names; by default those with mu above zero, of many the
        ten most significant.
    title : str
        Above the curves.
    axis : str
        Below them.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.
    lines_ : list of matplotlib Line2D
        One curve per label.

    Examples
    --------
    >>> display = GaussianDisplay([2.0, -1.0], [0.5, 1.0], ["sky", "sea"]).plot()
    >>> round(float(display.lines_[0].get_ydata().max()), 2)
    0.8
    """

    lines_: list[Any]

    def __init__(
        self,
        mu: Any,
        sigma: Any,
        labels: Any,
        *,
        named: Any = None,
        title: str = "",
        axis: str = "significance",
    ) -> None:
        self.labels = check_labels(labels)
        self.mu, self.sigma = (
            vector(part, name, len(self.labels)) for part, name in ((mu, "mu"), (sigma, "sigma"))
        )
        if not (self.sigma > 0).all():
            raise DataError(f"expected sigma above 0, got {self.sigma.min()}")
        if named is None:
            named = (self.mu > 0) & np.isin(np.arange(len(self.mu)), np.argsort(-self.mu)[:_MOST_NAMES])
        self.named = vector(named, "named", len(self.labels)).astype(bool)
        self.title, self.axis = title, axis

    @classmethod
    def from_predictions(
        cls, prediction: Prediction, instance: int = 0, *, named: Any = None
    ) -> GaussianDisplay:
        """One instance of a prediction, on its `scale`; for methods with sigma."""
        one = prediction[int(instance)]
        settings = {"named": named, "title": cls._title_of(one), "axis": cls._axis_of(one)}
        return cls(one.significance[0], one.sigma[0], one.labels, **settings)

    def plot(self, ax: Any = None, *, span: tuple[float, float] | None = None) -> GaussianDisplay:
        """Draw it, over `span` or the range of the curves."""
        ax = axes(ax, (6.4, 3.4))
        x = np.linspace(*(span or self._span()), 600)
        self.lines_ = []
        for label, (mu, sigma) in enumerate(zip(self.mu, self.sigma)):
            density = np.exp(-0.5 * ((x - mu) / sigma) ** 2) / (sigma * np.sqrt(2 * np.pi))
            style = (
                {**look(label), "linewidth": 2.0}
                if self.named[label]
                else {"color": GRAY, "alpha": 0.6, "linewidth": 0.8}
            )
            self.lines_ += ax.plot(x, density, zorder=2 + int(self.named[label]), **style)
        ax.axvline(0, color=BLACK, linewidth=0.9, linestyle=":")
        ax.set_xlim(x[0], x[-1])
        self._name(ax, x)
        ax.set_yticks([])
        ax.set_xlabel(f"{self.axis}; left of 0: not relevant")
        self._set_title(ax, self.title)
        bare(ax, "top", "right", "left")
        return self._drawn(ax)

    def _name(self, ax: Any, x: FloatArray) -> None:
        """Put names at the peaks; overlapping names move up, and the axes grow with them."""
        from matplotlib.patheffects import withStroke

        width, height = 72 / ax.figure.dpi * ax.bbox.size  # in points; also in a part of a figure
        peaks = np.array([line.get_ydata().max() for line in self.lines_])
        across = (np.clip(self.mu, x[0], x[-1]) - x[0]) / (x[-1] - x[0]) * width
        for room in np.linspace(1.32, 4.0, 20):
            ups = self._heights(across, peaks / (room * peaks.max()) * height)
            if max(ups.values(), default=0.0) + 10 <= height:
                break
        ax.set_ylim(0, room * peaks.max())
        for label, up in ups.items():
            raised = up - peaks[label] / (room * peaks.max()) * height
            place = float(np.clip(self.mu[label], x[0], x[-1])), peaks[label]
            style = {"color": look(label)["color"], "ha": "center", "weight": "bold", "fontsize": 9}
            style["path_effects"] = [withStroke(linewidth=2.5, foreground="white")]
            self._note(ax, short(self.labels[label], 16), place, (0, raised), zorder=5, **style)

    def _heights(self, across: FloatArray, tops: FloatArray) -> dict[int, float]:
        """Height of each name above the axis in points, by label; the highest peaks are placed first."""
        placed: dict[int, float] = {}
        wide = [6.0 * len(short(label, 16)) for label in self.labels]
        for label in sorted(np.flatnonzero(self.named).tolist(), key=lambda label: -tops[label]):
            up = float(tops[label]) + 3
            beside = [
                placed[other]
                for other in placed
                if abs(across[label] - across[other]) < (wide[label] + wide[other]) / 2
            ]
            while any(abs(up - other) < 11 for other in beside):
                up += 1
            placed[label] = up
        return placed

    def _span(self) -> tuple[float, float]:
        reach = 3.2 * self.sigma
        return min(-0.5, float((self.mu - reach).min())), max(0.5, float((self.mu + reach).max()))


class PairsDisplay(OfPredictions):
    """Probabilities that the label of a row is above the label of a column.

    Parameters
    ----------
    p_above : array [K, K]
        Probabilities; the diagonal is not drawn.
    labels : sequence of str
        Their names.
    title : str
        Above the matrix.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.
    image_ : matplotlib AxesImage
        The matrix.

    Examples
    --------
    >>> display = PairsDisplay([[0.5, 0.9], [0.1, 0.5]], ["sky", "sea"]).plot()
    >>> [text.get_text() for text in display.ax_.texts]
    ['90', '10']
    """

    image_: Any

    def __init__(self, p_above: Any, labels: Any, *, title: str = "") -> None:
        self.labels = check_labels(labels)
        self.p_above = np.asarray(p_above, dtype=np.float64)
        if self.p_above.shape != (len(self.labels),) * 2:
            wanted = [len(self.labels)] * 2
            raise DataError(f"expected probabilities of shape {wanted}, got {list(self.p_above.shape)}")
        if not ((self.p_above >= 0) & (self.p_above <= 1)).all():
            raise DataError(
                f"expected probabilities in [0, 1], got {self.p_above.min()} to {self.p_above.max()}"
            )
        self.title = title

    @classmethod
    def from_predictions(
        cls, prediction: Prediction, instance: int = 0, *, most: int = _MOST_NUMBERS
    ) -> PairsDisplay:
        """One instance of a prediction, its most significant labels first; for methods with sigma."""
        one = prediction[int(instance)]
        best = np.argsort(-one.scores[0], kind="stable")[:most]
        labels = [one.labels[label] for label in best]
        return cls(one.p_above[0][np.ix_(best, best)], labels, title=cls._title_of(one))

    def plot(self, ax: Any = None, *, colorbar: bool = True) -> PairsDisplay:
        """Draw it; numbers are percent."""
        count = len(self.labels)
        side = 2.4 + 0.5 * min(count, 20)
        ax = axes(ax, (side + 0.9, side))
        shown = np.where(np.eye(count, dtype=bool), np.nan, self.p_above)
        self.image_ = ax.imshow(shown, cmap="PuOr_r", vmin=0, vmax=1)
        if count <= _MOST_NUMBERS:
            for row, column in zip(*np.nonzero(~np.eye(count, dtype=bool))):
                chance = self.p_above[row, column]
                colour = "white" if abs(chance - 0.5) > 0.36 else "black"
                number = f"{100 * chance:.0f}"
                ax.text(column, row, number, ha="center", va="center", color=colour, fontsize=9)
        names = [short(label, 16) for label in self.labels]
        ax.set_xticks(range(count), names, rotation=45, ha="right", rotation_mode="anchor")
        ax.set_yticks(range(count), names)
        ax.set_ylabel("this label stands above ...")
        ax.set_xlabel("... this one (%)")
        self._set_title(ax, self.title)
        bare(ax, "top", "right", "left", "bottom")
        ax.tick_params(length=0)
        if colorbar:
            from matplotlib.ticker import PercentFormatter

            ax.figure.colorbar(self.image_, ax=ax, shrink=0.8, format=PercentFormatter(1, decimals=0))
        return self._drawn(ax)

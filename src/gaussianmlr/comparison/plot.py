"""A comparison in one picture: one panel per metric, one dot and interval per contender."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from gaussianmlr._utils.display import NAMES
from gaussianmlr._utils.extras import require
from gaussianmlr._utils.files import aside
from gaussianmlr.comparison.verdict import LOWER, Comparison, Summary
from gaussianmlr.errors import DataError
from gaussianmlr.plots._style import BLUE, RED, bare

__all__ = ["ComparisonDisplay"]

# The mark repeats the colour for print.
_LOOKS = {"strong": (BLUE, "o", "strong: trained on orders"), "weak": (RED, "s", "weak: on relevance only")}


class ComparisonDisplay:
    """Mean and spread of every contender, metric by metric.

    Parameters
    ----------
    summaries : dict of dict of Summary
        By metric, then by contender; None if a contender does not have the metric.
    supervisions : dict of str
        By contender: strong or weak.
    title : str
        Title of the figure.

    Attributes
    ----------
    axes_ : array of matplotlib Axes
        One panel per metric.
    figure_ : matplotlib Figure
        Their figure.

    Examples
    --------
    >>> two = {"gmlr": Summary(0.7, 0.01, (0.69, 0.71)), "lsep": Summary(0.6, 0.02, (0.58, 0.62))}
    >>> display = ComparisonDisplay({"tau_b": two}, {"gmlr": "strong", "lsep": "weak"}).plot()
    >>> [label.get_text() for label in display.axes_[0].get_yticklabels()]
    ['gmlr', 'lsep']
    """

    axes_: Any
    figure_: Any

    def __init__(
        self, summaries: dict[str, dict[str, Summary | None]], supervisions: dict[str, str], title: str = ""
    ) -> None:
        if not summaries:
            raise DataError("expected one metric or more to plot")
        self.summaries, self.supervisions, self.title = summaries, supervisions, title

    @classmethod
    def from_comparison(
        cls, comparison: Comparison, metrics: Sequence[str] | None = None
    ) -> ComparisonDisplay:
        """The display of a comparison, not yet drawn.

        Parameters
        ----------
        comparison : Comparison
            The result of `comparison.run.compare`.
        metrics : sequence of str, optional
            Metrics to show; all by default.
        """
        wanted = comparison.metrics if metrics is None else tuple(metrics)
        if strange := [name for name in wanted if name not in comparison.metrics]:
            raise DataError(f"no metric {strange[0]!r}; there are {', '.join(comparison.metrics)}")
        order = comparison.ranking
        summaries = {metric: {name: comparison.summary(name, metric) for name in order} for metric in wanted}
        supervisions = {name: comparison.of(name)[0].supervision for name in order}
        return cls(summaries, supervisions, comparison.setup())

    def plot(self, ax: Any = None) -> ComparisonDisplay:
        """Draw the mean, a bar of one standard deviation to each side, and small marks of the runs below.

        Parameters
        ----------
        ax : matplotlib Axes or sequence of them, optional
            One per metric; a new figure by default.
        """
        axes = self._figure() if ax is None else np.ravel(np.array(ax, dtype=object))
        if len(axes) != len(self.summaries):
            raise DataError(f"expected {len(self.summaries)} axes, one per metric, got {len(axes)}")
        for one, (metric, row) in zip(axes, self.summaries.items()):
            self._panel(one, metric, row)
        self.axes_, self.figure_ = axes, axes[0].figure
        if ax is None:
            self._legend()
        return self

    def save(self, file: str | os.PathLike[str]) -> None:
        """Draw, and write a PNG file atomically."""
        self.plot()
        with aside(file) as part:
            self.figure_.savefig(part, format="png", dpi=130)

    def _figure(self) -> Any:
        require("a plot", "matplotlib")
        from matplotlib.figure import Figure

        names = next(iter(self.summaries.values()))
        columns = min(4, len(self.summaries))
        rows = math.ceil(len(self.summaries) / columns)
        longest = max(map(len, names))
        size = (1.0 + 0.085 * longest + 2.6 * columns, 1.3 + rows * (0.9 + 0.28 * len(names)))
        figure = Figure(figsize=size, layout="constrained")
        panels = np.ravel(figure.subplots(rows, columns, squeeze=False, sharey=True))
        for spare in panels[len(self.summaries) :]:
            spare.set_visible(False)
        return panels[: len(self.summaries)]

    def _panel(self, ax: Any, metric: str, row: dict[str, Summary | None]) -> None:
        for place, (name, found) in enumerate(row.items()):
            if found is None:
                continue
            colour, mark, _ = _LOOKS.get(self.supervisions[name], _LOOKS["strong"])
            if len(found.values) > 1:
                values, below = 100 * np.array(found.values), np.full(len(found.values), place + 0.24)
                ax.plot(values, below, ls="", marker=mark, ms=3.5, color=colour, alpha=0.45, mew=0)
            spread = None if math.isnan(found.std) else 100 * found.std
            style: Any = {"fmt": mark, "ms": 6.5, "color": colour, "elinewidth": 1.8, "capsize": 3}
            ax.errorbar(100 * found.mean, place, xerr=spread, **style)
        ax.set_yticks(range(len(row)), list(row))
        ax.set_ylim(len(row) - 0.5, -0.5)
        ax.margins(x=0.12)
        ax.grid(axis="x", color="0.9")
        ax.set_axisbelow(True)
        bare(ax)
        better = "lower is better" if metric in LOWER else "higher is better"
        ax.set_title(NAMES.get(metric, metric), fontsize=10.5)
        ax.set_xlabel(f"percent, {better}", fontsize=8.5)
        ax.tick_params(axis="x", labelsize=8.5)

    def _legend(self) -> None:
        from matplotlib.lines import Line2D

        used = [look for name, look in _LOOKS.items() if name in self.supervisions.values()]
        marks = [Line2D([], [], color=colour, marker=mark, label=text) for colour, mark, text in used]
        self.figure_.legend(handles=marks, loc="outside lower center", ncols=2, frameon=False, fontsize=9)
        found = [one for row in self.summaries.values() for one in row.values() if one]
        several = any(len(one.values) > 1 for one in found)
        how = "mean ± standard deviation, single runs below" if several else "one run each"
        self.figure_.suptitle(f"{self.title}\n{how}" if self.title else how, fontsize=10.5)

"""A search in one picture: every trial, the best so far, and the default recipe."""

from __future__ import annotations

from typing import Any

import numpy as np

from gaussianmlr.plots._style import BLACK, BLUE, GRAY, ORANGE, Display, axes, bare
from gaussianmlr.tuning.search import Row, Search

__all__ = ["SearchDisplay"]


class SearchDisplay(Display):
    """Validation tau-b of the trials of a search in their order.

    Parameters
    ----------
    rows : sequence of Row
        The trials.
    measured_on : str
        The rows that they were measured on, as text.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.

    Examples
    --------
    >>> rows = [Row(n, "complete", value, 0.01, 1.0, {}) for n, value in enumerate([0.8, 0.78, 0.84])]
    >>> display = SearchDisplay(rows).plot()
    >>> display.ax_.get_xlabel()
    'trial'
    """

    def __init__(self, rows: Any, measured_on: str = "") -> None:
        self.rows: list[Row] = list(rows)
        self.measured_on = measured_on

    @classmethod
    def from_search(cls, search: Search) -> SearchDisplay:
        """The display of a search."""
        return cls(search.rows, search.measured_on)

    def plot(self, ax: Any = None) -> SearchDisplay:
        """Draw it."""
        ax = axes(ax, (6.4, 3.6))
        done = [row for row in self.rows if row.state == "complete"]
        numbers, values = self._points(done)
        floor = self._floor(np.array(values))
        far = [number for number, value in zip(numbers, values) if value < floor]
        self._default(ax, done[0])
        ax.scatter(numbers, values, s=22, color=BLUE, label="finished", zorder=3)
        if out_of_sight := [*far, *(row.number for row in self.rows if row.state != "complete")]:
            foot, text = ax.get_xaxis_transform(), "stopped early or far below"
            marks = {"s": 18, "marker": "x", "color": GRAY, "transform": foot, "label": text}
            ax.scatter(out_of_sight, [0.02] * len(out_of_sight), **marks)
        so_far = np.maximum.accumulate(values)
        last = self.rows[-1].number
        ax.step([*numbers, last], [*so_far, so_far[-1]], where="post", color=ORANGE, label="best so far")
        best = int(np.argmax(values))
        self._note(ax, f"{values[best]:.1f}", (numbers[best], values[best]), (0, 5), ha="center", fontsize=9)
        ax.set_xlabel("trial")
        ax.set_ylabel("validation tau-b, percent")
        ax.xaxis.get_major_locator().set_params(integer=True, min_n_ticks=1)
        ax.set_ylim(bottom=max(floor, ax.get_ylim()[0]))
        ax.margins(x=0.04)
        ax.grid(axis="y", color="0.9")
        ax.set_axisbelow(True)
        self._set_title(ax, f"on {self.measured_on}" if self.measured_on else "")
        self._legend(ax, loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2)  # where no trial is
        bare(ax)
        return self._drawn(ax)

    def _default(self, ax: Any, row: Row) -> None:
        """The default recipe as a line, with one standard error around it."""
        assert row.value is not None
        value, error = 100 * row.value, 100 * (row.standard_error or 0.0)
        ax.axhspan(value - error, value + error, color=BLACK, alpha=0.07, linewidth=0)
        ax.axhline(value, color=BLACK, linewidth=0.9, linestyle="--", label="default recipe ± standard error")

    @staticmethod
    def _points(rows: list[Row]) -> tuple[list[int], list[float]]:
        return [row.number for row in rows], [100 * row.value for row in rows if row.value is not None]

    @staticmethod
    def _floor(values: Any) -> float:
        """Where the picture ends below, so that good trials differ visibly."""
        low = float(np.percentile(values, 10))
        return low - 1.5 * max(float(values.max()) - low, 1.0)

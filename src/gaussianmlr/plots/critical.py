"""Mean ranks of methods with the difference that chance makes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from gaussianmlr.errors import DataError
from gaussianmlr.metrics.over_sets import over_sets
from gaussianmlr.plots._style import BLACK, BLUE, GRAY, Display, axes, bare, short, vector

__all__ = ["CriticalDifferenceDisplay"]


class CriticalDifferenceDisplay(Display):
    """Methods on a line of mean ranks; bars join those that are not told apart.

    Parameters
    ----------
    ranks : array [methods]
        Mean ranks; 1 is the best.
    names : sequence of str
        The methods.
    critical : float
        The critical difference.
    title : str
        Above the line.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.
    groups_ : list of tuple of str
        The largest groups of methods that are not told apart.

    References
    ----------
    Demsar (2006), Statistical comparisons of classifiers over multiple data sets. JMLR 7.

    Examples
    --------
    >>> display = CriticalDifferenceDisplay([1.2, 1.8, 3.0], ["gmlr", "crpc", "lsep"], critical=1.1).plot()
    >>> display.groups_
    [('gmlr', 'crpc')]
    """

    groups_: list[tuple[str, ...]]

    def __init__(self, ranks: Any, names: Any, *, critical: float, title: str = "") -> None:
        self.names = tuple(map(str, names))
        self.ranks = vector(ranks, "mean ranks", len(self.names))
        if len(self.names) < 2 or not critical > 0:
            raise DataError(
                f"{len(self.names)} methods and a critical difference of {critical}; expected two or more, "
                "and a number above 0"
            )
        self.critical, self.title = float(critical), title

    @classmethod
    def from_table(
        cls,
        table: npt.ArrayLike,
        names: Any,
        *,
        larger_is_better: bool = True,
        level: float = 0.05,
        title: str = "",
    ) -> CriticalDifferenceDisplay:
        """From a metric per data set and method, as `metrics.over_sets.over_sets` takes it."""
        found = over_sets(table, larger_is_better=larger_is_better, level=level)
        return cls(found.ranks, names, critical=found.critical, title=title)

    def plot(self, ax: Any = None) -> CriticalDifferenceDisplay:
        """Draw it."""
        order = np.argsort(self.ranks, kind="stable")
        ranks, names = self.ranks[order], [self.names[place] for place in order]
        spans = self._spans(ranks)
        self.groups_ = [tuple(names[first : last + 1]) for first, last in spans]
        ax = axes(ax, (6.4, 1.5 + 0.24 * len(names) + 0.12 * len(spans)))
        # The line is at 0; names hang below it on both sides, bars between line and names.
        below = 0.35 + 0.22 * len(spans)
        half = (len(names) + 1) // 2
        ax.plot(ranks, np.zeros(len(ranks)), ls="", marker="o", ms=7, color=BLUE, zorder=3, clip_on=False)
        left, right = 1 - 0.06 * len(names), len(names) + 0.06 * len(names)
        for place, (rank, name) in enumerate(zip(ranks, names)):
            is_left = place < half
            down = -(below + 0.55 * (place if is_left else len(names) - 1 - place))
            edge = left if is_left else right
            ax.plot([rank, rank, edge], [0, down, down], color=GRAY, lw=0.9, zorder=1, clip_on=False)
            text = f"{short(name)}  {rank:.2f}"
            ax.annotate(
                text, (edge, down), (-4 if is_left else 4, 0), textcoords="offset points", va="center",
                ha="right" if is_left else "left", fontsize=9.5, annotation_clip=False,
            )  # fmt: skip
        for row, (first, last) in enumerate(spans):
            high = -0.22 * (row + 1)
            ax.plot(ranks[[first, last]] + (-0.03, 0.03), [high, high], color=BLACK, lw=3.2, zorder=2)
        self._scale(ax, len(names))
        ax.set_xlim(left, right)
        ax.set_ylim(-(below + 0.55 * half), 1.15)
        self._set_title(ax, self.title)
        return self._drawn(ax)

    def _scale(self, ax: Any, count: int) -> None:
        """Ranks on the line, and the critical difference above it."""
        ax.plot([1, count], [0, 0], color=BLACK, lw=1.1, zorder=2)
        for rank in range(1, count + 1):
            ax.plot([rank, rank], [0, 0.12], color=BLACK, lw=1.1)
            ax.text(rank, 0.18, str(rank), ha="center", va="bottom", fontsize=9)
        width = min(self.critical, count - 1.0)
        ax.plot([1, 1 + width], [0.78, 0.78], color=BLACK, lw=1.6)
        for end in (1.0, 1.0 + width):
            ax.plot([end, end], [0.7, 0.86], color=BLACK, lw=1.6)
        note = f"critical difference {self.critical:.2f}"
        if self.critical > count - 1:
            note += ": more than there is room for"
        ax.text(1 + width / 2, 0.9, note, ha="center", va="bottom", fontsize=9)
        ax.set_xticks([])
        ax.set_yticks([])
        bare(ax, "top", "right", "left", "bottom")

    def _spans(self, ranks: npt.NDArray[np.float64]) -> list[tuple[int, int]]:
        """First and last place of the largest groups within the critical difference."""
        found: list[tuple[int, int]] = []
        for first in range(len(ranks)):
            last = int(np.flatnonzero(ranks - ranks[first] <= self.critical)[-1])
            if last > first and not (found and last <= found[-1][1]):
                found.append((first, last))
        return found

"""A bucket order as a graph: what the paper's first figure shows of its likelihood."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from gaussianmlr.errors import DataError
from gaussianmlr.model.prediction import Prediction
from gaussianmlr.orders import check_labels, check_ranks, to_ranks
from gaussianmlr.plots._style import BLACK, BLUE, GRAY, Display, axes, bare, predicted, short

__all__ = ["OrderGraphDisplay"]

Edges = Literal["all", "next"]
_MOST_FOR_ALL = 4  # labels whose every pair is drawn
_SIDE = 0.34  # radius of a node
_WIDE, _HIGH = 2.0, 1.15  # between buckets, and between labels of one


class OrderGraphDisplay(Display):
    """Labels as nodes, bucket by bucket from the most significant, and an arrow from each to those below it.

    Tied labels share a column and no arrow; irrelevant labels are the last column, in gray; unknown ones are
    left out. With probabilities, an arrow from u to v carries P(u is above v), as the edges of the paper's
    figure 1 do: the likelihood of the order is the product over all its arrows.

    Parameters
    ----------
    ranks : array [K]
        0 = irrelevant, larger = more significant, equal = tied, -1 = unknown.
    labels : sequence of str
        Their names.
    p_above : array [K, K], optional
        Probabilities that the label of a row is above that of a column.
    edges : {"all", "next"}, optional
        All pairs of the order, or those of neighbouring buckets, from which the others follow; by default all
        of up to four labels.
    title : str
        Above the graph.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.
    edges_ : list of tuple of str
        The arrows, from the upper to the lower label.
    positions_ : dict
        The place of every label.

    Examples
    --------
    >>> display = OrderGraphDisplay.from_order("mountain > sky = cloud").plot()
    >>> display.edges_
    [('mountain', 'cloud'), ('mountain', 'sky')]
    """

    edges_: list[tuple[str, str]]
    positions_: dict[str, tuple[float, float]]

    def __init__(
        self, ranks: Any, labels: Any, *, p_above: Any = None, edges: Edges | None = None, title: str = ""
    ) -> None:
        self.labels = check_labels(labels)
        self.ranks = check_ranks(np.atleast_2d(np.asarray(ranks)))[0]
        if len(self.ranks) != len(self.labels):
            raise DataError(f"{len(self.ranks)} ranks for {len(self.labels)} labels; expected one per label")
        self.p_above = None if p_above is None else np.asarray(p_above, dtype=np.float64)
        if self.p_above is not None and self.p_above.shape != (len(self.labels),) * 2:
            wanted = [len(self.labels)] * 2
            raise DataError(f"expected probabilities of shape {wanted}, got {list(self.p_above.shape)}")
        if edges not in (None, "all", "next"):
            raise DataError(f"edges is {edges!r}; expected 'all' or 'next'")
        known = int((self.ranks >= 0).sum())
        self.edges = edges or ("all" if known <= _MOST_FOR_ALL else "next")
        self.title = title

    @classmethod
    def from_order(cls, order: Any, labels: Any = None, **settings: Any) -> OrderGraphDisplay:
        """From one order in any form that `to_ranks` reads, such as ``"mountain > sky = cloud"``.

        Parameters
        ----------
        order : str, list or mapping
            The order.
        labels : sequence of str, optional
            Names, which also brings those that the order does not mention; by default those it mentions.
        **settings
            As of the class.
        """
        found = to_ranks([order], labels)
        return cls(found.ranks[0], found.labels, **settings)

    @classmethod
    def from_predictions(
        cls, prediction: Prediction, instance: int = 0, **settings: Any
    ) -> OrderGraphDisplay:
        """The predicted order of one instance, with the probabilities of methods that have them."""
        one = prediction[int(instance)]
        settings.setdefault("title", short(one.names[0], 30))
        chances = one.p_above[0] if one.raw is not None else None
        return cls(one.ranks[0], one.labels, p_above=chances, **settings)

    @classmethod
    def from_estimator(
        cls, estimator: Any, inputs: Any, instance: int = 0, **settings: Any
    ) -> OrderGraphDisplay:
        """Predict inputs by a model or an estimator; all else as in `from_predictions`."""
        return cls.from_predictions(predicted(estimator, inputs), instance, **settings)

    def plot(self, ax: Any = None) -> OrderGraphDisplay:
        """Draw it."""
        buckets = self._buckets()
        tallest = max(map(len, buckets), default=1)
        ax = axes(ax, (1.0 + 1.3 * max(len(buckets), 2), 1.2 + 0.75 * tallest))
        self.positions_ = {
            self.labels[label]: (_WIDE * column, _HIGH * ((len(bucket) - 1) / 2 - row))
            for column, bucket in enumerate(buckets)
            for row, label in enumerate(bucket)
        }
        self.edges_ = []
        nodes = {label: self._node(ax, label, place) for label, place in self.positions_.items()}
        for upper, bucket in enumerate(buckets):
            for lower in range(
                upper + 1, len(buckets) if self.edges == "all" else min(upper + 2, len(buckets))
            ):
                for one in bucket:
                    for other in buckets[lower]:
                        self._arrow(ax, one, other, lower - upper, nodes)
        reach = _HIGH * tallest / 2 + (
            0.5 if self.edges == "next" or len(buckets) < 3 else 0.2 * len(buckets)
        )
        ax.set_xlim(-0.8, _WIDE * (max(len(buckets), 2) - 1) + 0.8)
        ax.set_ylim(-reach, reach)
        ax.set_aspect("equal")
        ax.set_xticks([])
        ax.set_yticks([])
        bare(ax, "top", "right", "left", "bottom")
        self._set_title(ax, self.title)
        return self._drawn(ax)

    def _buckets(self) -> list[npt.NDArray[np.int64]]:
        """The labels of each rank, the most significant first."""
        ranks = sorted(set(self.ranks[self.ranks >= 0].tolist()), reverse=True)
        return [np.flatnonzero(self.ranks == rank) for rank in ranks]

    def _arrow(self, ax: Any, one: int, other: int, step: int, nodes: Mapping[str, Any]) -> None:
        upper, lower = self.labels[one], self.labels[other]
        self.edges_.append((upper, lower))
        start, end = self.positions_[upper], self.positions_[lower]
        # Arrows that pass other columns bend around them.
        bend = 0.0 if step == 1 else -0.16 - 0.05 * step
        style = {"arrowstyle": "-|>", "color": GRAY if self.ranks[other] == 0 else BLACK, "lw": 1.0}
        ends = {"patchA": nodes[upper], "patchB": nodes[lower], "shrinkA": 0, "shrinkB": 1}
        arrow = {**style, **ends, "connectionstyle": f"arc3,rad={bend}"}
        ax.annotate("", end, start, arrowprops={**arrow, "mutation_scale": 11}, zorder=1)
        if self.p_above is not None:
            along = 0.42
            x, y = (first + along * (last - first) for first, last in zip(start, end))
            length = end[0] - start[0], end[1] - start[1]
            # The middle of the curve is half the bend away from the straight line.
            x, y = x + 0.5 * bend * length[1], y - 0.5 * bend * length[0]
            box = {"boxstyle": "round,pad=0.12", "fc": "white", "ec": "none"}
            text = f"{self.p_above[one, other]:.2f}"
            ax.text(x, y, text, fontsize=7.5, ha="center", va="center", bbox=box, zorder=2)

    def _node(self, ax: Any, label: str, place: tuple[float, float]) -> Any:
        from matplotlib.patches import Circle

        relevant = self.ranks[self.labels.index(label)] > 0
        colour = BLUE if relevant else GRAY
        circle = Circle(place, _SIDE, fc="white", ec=colour, lw=1.8, zorder=3)
        ax.add_patch(circle)
        name = short(label, 12)
        size = 9 if len(name) <= 5 else 7.5 if len(name) <= 8 else 6.2
        ax.text(*place, name, ha="center", va="center", fontsize=size, color=BLACK, zorder=4)
        return circle

"""How a training went: measures by epoch, the best epoch marked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gaussianmlr.errors import DataError
from gaussianmlr.plots._style import BLACK, GRAY, axes, bare, look

__all__ = ["HistoryDisplay"]

_FEW = 25  # epochs with a dot each


class HistoryDisplay:
    """Measures of a run by epoch; stages of a method follow each other.

    Parameters
    ----------
    history : sequence of dict
        A row an epoch, as `training.Result.history` and the file ``epochs.csv`` have them.
    columns : mapping of str to str
        The measures to draw, and what they are called. Epochs without one are left out.
    best : int, optional
        The place of the best epoch in the history, from 0 on.
    axis : str
        What is measured.
    percent : bool
        Whether measures are fractions, to be shown in percent.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.
    lines_ : dict of str to matplotlib Line2D
        The curves, by column.

    Examples
    --------
    >>> rows = [{"stage": "all", "train_loss": 2.0}, {"stage": "all", "train_loss": 1.0}]
    >>> display = HistoryDisplay(rows, {"train_loss": "training"}, best=1).plot()
    >>> display.lines_["train_loss"].get_xydata()
    array([[1., 2.],
           [2., 1.]])
    """

    ax_: Any
    figure_: Any
    lines_: dict[str, Any]

    def __init__(
        self,
        history: Sequence[Mapping[str, Any]],
        columns: Mapping[str, str],
        *,
        best: int | None = None,
        axis: str = "loss",
        percent: bool = False,
    ) -> None:
        if not history:
            raise DataError("expected a history of one epoch or more, got none")
        self.history, self.columns = list(history), dict(columns)
        self.best, self.axis, self.percent = best, axis, percent

    def plot(self, ax: Any = None) -> HistoryDisplay:
        """Draw it."""
        ax = axes(ax, (5.6, 3.4))
        self.lines_ = {}
        unit = 100.0 if self.percent else 1.0
        for place, (column, name) in enumerate(self.columns.items()):
            known = [number for number, row in enumerate(self.history) if row.get(column) is not None]
            values = unit * np.array([float(self.history[number][column]) for number in known])
            dots = {"marker": "o", "markersize": 3.5} if len(self.history) <= _FEW else {}
            (self.lines_[column],) = ax.plot(
                np.array(known) + 1.0, values, **look(place), **dots, linewidth=1.8, label=name
            )
        self._mark_stages(ax)
        if self.best is not None:
            ax.axvline(self.best + 1, color=BLACK, linewidth=0.9, linestyle=":", zorder=1)
            ax.annotate(
                "best", (self.best + 1, 1), (0, 2), xycoords=("data", "axes fraction"),
                textcoords="offset points", ha="center", fontsize=8.5,
            )  # fmt: skip
        ax.set_xlabel("epoch")
        ax.set_ylabel(f"{self.axis}, percent" if self.percent else self.axis)
        if len(self.history) == 1:
            ax.set_xlim(0.5, 1.5)
        ax.xaxis.get_major_locator().set_params(integer=True, min_n_ticks=1)
        ax.grid(axis="y", color="0.9")
        ax.set_axisbelow(True)
        ax.legend(frameon=False, fontsize=9)
        bare(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _mark_stages(self, ax: Any) -> None:
        stages = [row.get("stage") for row in self.history]
        for number in range(1, len(stages)):
            if stages[number] != stages[number - 1]:
                ax.axvline(number + 0.5, color=GRAY, linewidth=0.9)
                ax.annotate(
                    f"{stages[number]} →", (number + 0.5, 0), (3, 3), xycoords=("data", "axes fraction"),
                    textcoords="offset points", color=GRAY, fontsize=8.5,
                )  # fmt: skip

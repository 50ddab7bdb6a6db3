"""The history of a training: measures by epoch, with the best epoch marked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gaussianmlr.errors import DataError
from gaussianmlr.plots._style import BLACK, GRAY, Display, axes, bare, look

__all__ = ["HistoryDisplay"]

_FEW = 25  # epochs with a dot each
_ACROSS = ("data", "axes fraction")


class HistoryDisplay(Display):
    """Measures of a run by epoch; stages of a method follow each other.

    Parameters
    ----------
    history : sequence of dict
        One row per epoch, as in `training.Result.history` and the file ``epochs.csv``.
    columns : mapping of str to str
        The measures to draw and their names. Epochs without a value are left out.
    best : int, optional
        Index of the best epoch in the history.
    axis : str
        Name of the vertical axis.
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
            self._note(ax, "best", (self.best + 1, 1), (0, 2), _ACROSS, ha="center", fontsize=8.5)
        ax.set_xlabel("epoch")
        ax.set_ylabel(f"{self.axis}, percent" if self.percent else self.axis)
        if len(self.history) == 1:
            ax.set_xlim(0.5, 1.5)
        ax.xaxis.get_major_locator().set_params(integer=True, min_n_ticks=1)
        ax.grid(axis="y", color="0.9")
        ax.set_axisbelow(True)
        self._legend(ax)
        bare(ax)
        return self._drawn(ax)

    def _mark_stages(self, ax: Any) -> None:
        stages = [row.get("stage") for row in self.history]
        for number in range(1, len(stages)):
            if stages[number] != stages[number - 1]:
                ax.axvline(number + 0.5, color=GRAY, linewidth=0.9)
                at, text = (number + 0.5, 0), f"{stages[number]} →"
                self._note(ax, text, at, (3, 3), _ACROSS, color=GRAY, fontsize=8.5)

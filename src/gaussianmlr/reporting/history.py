"""How a run went, as its folder tells it."""

from __future__ import annotations

import csv
import io
import math
from pathlib import Path
from typing import Any

from gaussianmlr.checkpoints import worth
from gaussianmlr.console import NAMES, clock
from gaussianmlr.errors import DataError
from gaussianmlr.plots import HistoryDisplay
from gaussianmlr.reporting.drawing import drawn
from gaussianmlr.reporting.html import Html, Section, details, element, figure, section, table

__all__ = ["best_epoch", "curves_section", "read_history"]

_MOST_CURVES = ("tau_b", "f1", "hamming_loss")


def read_history(folder: Path) -> list[dict[str, Any]]:
    """The rows of ``epochs.csv``, numbers as numbers; none where there is no such file."""
    file = folder / "epochs.csv"
    if not file.is_file():
        return []
    try:
        rows = list(csv.DictReader(io.StringIO(file.read_text("utf-8"))))
        return [
            {
                name: value if name == "stage" else float(value)
                for name, value in row.items()
                if value not in ("", None)
            }
            for row in rows
        ]
    except (OSError, ValueError, TypeError) as error:
        raise DataError(f"{file} cannot be read: {error}") from None


def best_epoch(history: list[dict[str, Any]], select: str) -> int | None:
    """The place of the epoch whose weights were kept: the best of the last stage, as training chooses it.

    Examples
    --------
    >>> taus = enumerate((0.5, 0.9, 0.9), 1)
    >>> rows = [{"stage": "all", "epoch": epoch, "loss": 1.0, "tau_b": tau} for epoch, tau in taus]
    >>> best_epoch(rows, "tau_b")
    1
    """
    if not history:
        return None
    stages = list(dict.fromkeys(row["stage"] for row in history))
    places = [place for place, row in enumerate(history) if row["stage"] == stages[-1]]
    ordered = any(history[place].get("tau_b") for place in places)
    only = len(stages) == 1
    return max(
        places,
        key=lambda place: (worth(history[place], select, only=only, ordered=ordered), -place),
    )


def curves_section(history: list[dict[str, Any]], select: str) -> Section:
    """Loss and validation metrics by epoch, the best one marked, and all numbers."""
    if not history:
        words = (
            "No table of epochs is there: the folder holds a model without its run, or no epoch has ended."
        )
        return section("Training", element("p", words), anchor="training")
    best = best_epoch(history, select)
    assert best is not None
    row = history[best]
    validated = "loss" in row
    parts = [_losses(history, best)]
    if validated:
        parts.append(_metrics(history, best))
    how = {"tau_b": "the largest validation tau-b", "loss": "the smallest validation loss"}
    why = how.get(select, "the last one") if validated else "the last one, without validation data"
    if validated and select == "tau_b" and (history[0]["stage"] != row["stage"] or not row.get("tau_b")):
        why = how["loss"]
    kept = (
        f"Epoch {best + 1} of {len(history)} was kept: {why}. Training took {clock(history[-1]['seconds'])}."
    )
    return section(
        "Training",
        element("p", kept),
        element("div", parts, class_="plots"),
        details("The numbers of every epoch", _table(history, best)),
        anchor="training",
    )


def _losses(history: list[dict[str, Any]], best: int) -> Html:
    columns = {"train_loss": "training", "loss": "validation"}
    shown = {name: text for name, text in columns.items() if any(name in row for row in history)}
    first, last = history[0]["train_loss"], history[-1]["train_loss"]
    words = f"Loss by epoch: training from {first:.4g} to {last:.4g}"
    if "loss" in history[best]:
        words += f", validation {history[best]['loss']:.4g} at the best epoch, {best + 1}"
    drawing = drawn("losses", words, (5.4, 3.3), HistoryDisplay(history, shown, best=best).plot)
    several = len({row["stage"] for row in history}) > 1
    return figure(drawing, "Loss; every stage has its own." if several else "Loss.")


def _metrics(history: list[dict[str, Any]], best: int) -> Html:
    shown = {name: NAMES[name] for name in _MOST_CURVES}
    values = ", ".join(f"{text} {100 * history[best][name]:.2f}" for name, text in shown.items())
    words = f"Validation metrics by epoch, in percent; at the best epoch, {best + 1}: {values}"
    display = HistoryDisplay(history, shown, best=best, axis="validation", percent=True)
    return figure(
        drawn("validation", words, (5.4, 3.3), display.plot),
        "Validation metrics. Of tau-b and F1 more is better, of Hamming loss less.",
    )


def _table(history: list[dict[str, Any]], best: int) -> Html:
    columns = [name for name in history[-1] if name not in ("stage", "epoch")]
    heads = {"train_loss": "training loss", "loss": "validation loss", **NAMES}
    several = len({row["stage"] for row in history}) > 1

    def row_of(place: int, row: dict[str, Any]) -> list[Any]:
        name = f"{row['stage']} {row['epoch']:.0f}" if several else f"{row['epoch']:.0f}"
        return [f"{name} (best)" if place == best else name, *(_shown(column, row) for column in columns)]

    head = ["epoch", *(heads.get(name, name) for name in columns)]
    rows = [row_of(place, row) for place, row in enumerate(history)]
    return table("Epochs; metrics in percent", head, rows, numbers=set(range(1, len(head))), hide=True)


def _shown(column: str, row: dict[str, Any]) -> str:
    value = row.get(column, math.nan)
    if math.isnan(value):
        return "-"
    if column in NAMES:
        return f"{100 * value:.2f}"
    if column == "images":
        return f"{value:,.0f}"
    return clock(value) if column == "seconds" else f"{value:.4g}"

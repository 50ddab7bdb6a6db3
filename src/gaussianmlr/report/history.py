"""The history of a run, read from its folder."""

from __future__ import annotations

import csv
import io
import math
from pathlib import Path
from typing import Any

from markupsafe import Markup

from gaussianmlr._utils.display import NAMES, clock
from gaussianmlr.errors import DataError
from gaussianmlr.plots import HistoryDisplay
from gaussianmlr.report.page import Data
from gaussianmlr.report.svg import drawn
from gaussianmlr.training.run_folder import worth

__all__ = ["best_epoch", "read_history", "training_section"]

_MOST_CURVES = ("tau_b", "f1", "hamming_loss")


def read_history(folder: Path) -> list[dict[str, Any]]:
    """The rows of ``epochs.csv`` with parsed numbers; empty if there is no such file."""
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
    """Index of the epoch whose weights were kept: the best of the last stage, as training chooses it.

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
    return max(places, key=lambda place: (worth(history[place], select, only=only, ordered=ordered), -place))


def training_section(history: list[dict[str, Any]], select: str) -> Data:
    """Loss and validation metrics by epoch, the best one marked, and all numbers."""
    best = best_epoch(history, select)
    if best is None:
        return {"rows": []}
    columns = [name for name in history[-1] if name not in ("stage", "epoch")]
    heads = {"train_loss": "training loss", "loss": "validation loss", **NAMES}
    stages = len({row["stage"] for row in history})
    rows = []
    for place, row in enumerate(history):
        name = f"{row['stage']} {row['epoch']:.0f}" if stages > 1 else f"{row['epoch']:.0f}"
        name += " (best)" * (place == best)
        rows.append([name, *(_shown(column, row) for column in columns)])
    return {
        "best": best + 1,
        "why": _why(history, history[best], select),
        "time": clock(history[-1]["seconds"]),
        "stages": stages,
        "losses": _losses(history, best),
        "metrics": _metrics(history, best) if "loss" in history[best] else None,
        "head": ["epoch", *(heads.get(name, name) for name in columns)],
        "rows": rows,
    }


def _why(history: list[dict[str, Any]], best: dict[str, Any], select: str) -> str:
    """Why an epoch was kept."""
    if "loss" not in best:
        return "the last one, without validation data"
    if select == "tau_b" and history[0]["stage"] == best["stage"] and best.get("tau_b"):
        return "the largest validation tau-b"
    return "the smallest validation loss" if select in ("tau_b", "loss") else "the last one"


def _losses(history: list[dict[str, Any]], best: int) -> Markup:
    columns = {"train_loss": "training", "loss": "validation"}
    shown = {name: text for name, text in columns.items() if any(name in row for row in history)}
    first, last = history[0]["train_loss"], history[-1]["train_loss"]
    words = f"Loss by epoch: training from {first:.4g} to {last:.4g}"
    if "loss" in history[best]:
        words += f", validation {history[best]['loss']:.4g} at the best epoch, {best + 1}"
    return drawn("losses", words, (5.4, 3.3), HistoryDisplay(history, shown, best=best).plot)


def _metrics(history: list[dict[str, Any]], best: int) -> Markup:
    shown = {name: NAMES[name] for name in _MOST_CURVES}
    values = ", ".join(f"{text} {100 * history[best][name]:.2f}" for name, text in shown.items())
    words = f"Validation metrics by epoch, in percent; at the best epoch, {best + 1}: {values}"
    display = HistoryDisplay(history, shown, best=best, axis="validation", percent=True)
    return drawn("validation", words, (5.4, 3.3), display.plot)


def _shown(column: str, row: dict[str, Any]) -> str:
    value = row.get(column, math.nan)
    if math.isnan(value):
        return "-"
    if column in NAMES:
        return f"{100 * value:.2f}"
    if column == "images":
        return f"{value:,.0f}"
    return clock(value) if column == "seconds" else f"{value:.4g}"

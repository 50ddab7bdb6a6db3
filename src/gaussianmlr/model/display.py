"""Predictions at a glance: as text, and as HTML for notebooks."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

import numpy as np

from gaussianmlr.orders.grammar import shown

if TYPE_CHECKING:
    from gaussianmlr.model.prediction import Prediction

_SHOWN = 8
_LABELS = 6
_HEADER = ("instance", "order", "most significant labels, probability of relevance")
_CELL = 'style="text-align:left"'


def as_text(prediction: Prediction) -> str:
    """A title, and the orders of the first instances."""
    first = prediction[:_SHOWN]
    lines = [f"  {name}  {shown(order)}" for name, order in zip(first.names, first.orders)]
    return "\n".join([_title(prediction), *lines, *(f"  {rest}" for rest in _rest(prediction))])


def as_html(prediction: Prediction) -> str:
    """One row per instance: its name, its order, and its first labels with their probabilities."""
    first, rows = prediction[:_SHOWN], []
    for name, order, scores, chances in zip(first.names, first.orders, first.scores, first.p_relevant):
        best = np.argsort(-scores, kind="stable")[:_LABELS]
        chips = " ".join(_chip(first.labels[label], chances[label]) for label in best)
        cells = (html.escape(str(name)), html.escape(shown(order)), chips)
        rows.append("<tr>" + "".join(f"<td {_CELL}>{cell}</td>" for cell in cells) + "</tr>")
    header = "".join(f"<th {_CELL}>{text}</th>" for text in _HEADER)
    body = f"<table><thead><tr>{header}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
    rest = "".join(f"<p>{line}</p>" for line in _rest(prediction))
    return f"<div><p>{html.escape(_title(prediction))}</p>{body}{rest}</div>"


def _title(prediction: Prediction) -> str:
    count, width = prediction.scores.shape
    by = f", by {prediction.method}" if prediction.method else ""
    return f"Prediction of {_counted(count, 'instance')}, {_counted(width, 'label')}{by}"


def _rest(prediction: Prediction) -> list[str]:
    """A line for the instances that are not shown, if there are any."""
    left = len(prediction) - _SHOWN
    return [f"... and {left:,} more"] if left > 0 else []


def _counted(count: int, word: str) -> str:
    return f"{count:,} {word}{'' if count == 1 else 's'}"


def _chip(label: str, chance: float) -> str:
    """A label and its probability; the darker, the likelier. Black on light blue has enough contrast."""
    colour = f"background:rgba(86,180,233,{0.08 + 0.72 * chance:.2f})"
    style = f"{colour};color:#000;border-radius:4px;padding:1px 6px;white-space:nowrap"
    return f'<span style="{style}">{html.escape(label)} {100 * chance:.0f}%</span>'

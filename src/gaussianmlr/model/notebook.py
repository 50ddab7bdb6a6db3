"""Predictions as HTML, for notebooks."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

import numpy as np

from gaussianmlr.orders.grammar import shown as show

if TYPE_CHECKING:
    from gaussianmlr.model.prediction import Prediction

_LABELS = 6
_HEADER = ("instance", "order", "most significant labels, probability of relevance")
_CELL = 'style="text-align:left"'


def table(title: str, shown: Prediction, rest: str) -> str:
    """One row per instance: its name, its order, and its first labels with their probabilities."""
    rows = []
    for name, order, scores, chances in zip(shown.names, shown.orders, shown.scores, shown.p_relevant):
        best = np.argsort(-scores, kind="stable")[:_LABELS]
        chips = " ".join(_chip(shown.labels[label], chances[label]) for label in best)
        cells = (html.escape(str(name)), html.escape(show(order)), chips)
        rows.append("<tr>" + "".join(f"<td {_CELL}>{cell}</td>" for cell in cells) + "</tr>")
    header = "".join(f"<th {_CELL}>{text}</th>" for text in _HEADER)
    body = f"<table><thead><tr>{header}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
    return f"<div><p>{html.escape(title)}</p>{body}{f'<p>{rest}</p>' if rest else ''}</div>"


def _chip(label: str, chance: float) -> str:
    """A label and its probability; the darker, the likelier. Black on light blue has enough contrast."""
    colour = f"background:rgba(86,180,233,{0.08 + 0.72 * chance:.2f})"
    style = f"{colour};color:#000;border-radius:4px;padding:1px 6px;white-space:nowrap"
    return f'<span style="{style}">{html.escape(label)} {100 * chance:.0f}%</span>'

"""The section of a report about order: confused pairs of labels, and places."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gaussianmlr.report.counts import Confusion, place_table
from gaussianmlr.report.measure import Evidence
from gaussianmlr.report.page import Data

__all__ = ["order_section"]

_MOST_LABELS = 14  # of a matrix on a page
_MOST_PLACES = 8
_MOST_PAIRS = 12


class Heat(NamedTuple):
    """A cell of a matrix, coloured by `percent`; empty without counts."""

    text: str = ""
    percent: str = ""
    said: str = ""


def order_section(evidence: Evidence) -> Data:
    """Confusion of order, and predicted against true places."""
    if len(evidence.model.labels) < 2:
        return {"labels": []}
    found = evidence.confusion
    labels = tuple(evidence.model.labels[label] for label in evidence.confused)
    wrong, total = int(found.wrong.sum()), int(found.total.sum())
    often = np.argsort(-(found.wrong.sum(0) + found.wrong.sum(1)), kind="stable")
    chosen = np.sort(often[:_MOST_LABELS])
    every = len(evidence.model.labels)
    few = len(chosen) < every
    most = int(min(_MOST_PLACES, max(1, (evidence.truth > 0).sum(1).max(initial=1))))
    places = [*map(str, range(1, most)), f"{most} or later", "not relevant"]
    return {
        "wrong": f"{wrong:,} of {total:,} truly ordered pairs ({100 * wrong / max(1, total):.2f} %)"
        + (f" of the {len(labels):,} labels that are relevant most often" if len(labels) < every else ""),
        "labels": [labels[label] for label in chosen],
        "some": f", the {len(chosen)} labels of {every} with the most mistakes" if few else "",
        "matrix": [
            [labels[row], *(_mistakes(labels, found, row, column) for column in chosen)] for row in chosen
        ],
        "pairs": _worst_pairs(labels, found),
        "places": places,
        "placed": _placed(evidence, places),
    }


def _mistakes(labels: tuple[str, ...], found: Confusion, row: int, column: int) -> Heat:
    if row == column or not found.total[row, column]:
        return Heat()
    share = float(found.share[row, column])
    largest = float(np.nanmax(np.append(found.share, 0.0))) or 1.0
    counts = f"{found.wrong[row, column]} of {found.total[row, column]}"
    return Heat(
        f"{100 * share:.1f}" if 0 < share < 0.0995 else f"{100 * share:.0f}",
        f"{55 * share / largest:.0f}",
        f"{labels[row]} above {labels[column]}: {counts}",
    )


def _worst_pairs(labels: tuple[str, ...], found: Confusion) -> list[list[str]]:
    order = np.argsort(-found.wrong, axis=None, kind="stable")[:_MOST_PAIRS]
    return [
        [
            f"{labels[row]} above {labels[column]}",
            f"{found.wrong[row, column]:,} of {found.total[row, column]:,}",
            f"{100 * found.share[row, column]:.1f}",
        ]
        for row, column in zip(*np.unravel_index(order, found.wrong.shape))
        if found.wrong[row, column]
    ]


def _placed(evidence: Evidence, places: list[str]) -> list[list[str | Heat]]:
    rows: list[list[str | Heat]] = []
    for name, counts in zip(places, place_table(evidence.prediction.ranks, evidence.truth, len(places) - 1)):
        total = max(1, counts.sum())
        cells = (
            Heat(f"{100 * count / total:.1f}", f"{60 * count / total:.0f}", f"{count:,} of {total:,}")
            for count in counts
        )
        rows.append([name, *(cells if counts.any() else (Heat() for _ in counts))])
    return rows

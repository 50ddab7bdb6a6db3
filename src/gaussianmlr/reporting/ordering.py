"""The section of a report about order: which labels stand the wrong way round, and at which places."""

from __future__ import annotations

import numpy as np

from gaussianmlr.reporting.gathering import Evidence
from gaussianmlr.reporting.html import Html, Section, details, element, section, table
from gaussianmlr.reporting.numbers import Confusion, place_table

__all__ = ["order_section"]

_MOST_LABELS = 14  # of a matrix on a page
_MOST_PLACES = 8
_MOST_PAIRS = 12
_OF_PAIRS = (
    "How often, in percent, the label of the row is predicted above the label of the column where it truly "
    "stands below."
)
_OF_PLACES = (
    "Of the labels at a true place, how many percent are predicted at each place; 1 is the most significant, "
    "and tied labels share a place."
)
_NO_MISTAKE = (
    "Pairs that the prediction ties, most often two labels that it takes for irrelevant, are no mistake here."
)


def order_section(evidence: Evidence) -> Section:
    """Confusion of order, and predicted against true places."""
    labels, found = evidence.model.labels, evidence.confusion
    if len(labels) < 2:
        return section("Order", element("p", "One label: there is nothing to order."), anchor="order")
    wrong, total = int(found.wrong.sum()), int(found.total.sum())
    share = f"{wrong:,} of {total:,} truly ordered pairs ({100 * wrong / max(1, total):.2f} %)"
    return section(
        "Order",
        element("p", f"{share} are predicted the wrong way round. {_NO_MISTAKE}"),
        element("h3", "Confusion of order"),
        element("p", _OF_PAIRS, class_="soft"),
        _matrix(labels, found),
        _worst_pairs(labels, found),
        element("h3", "Predicted place by true place"),
        element("p", _OF_PLACES, class_="soft"),
        _places(evidence),
        anchor="order",
    )


def _matrix(labels: tuple[str, ...], found: Confusion) -> Html:
    often = np.argsort(-(found.wrong.sum(0) + found.wrong.sum(1)), kind="stable")
    chosen = np.sort(often[:_MOST_LABELS])
    largest = float(np.nanmax(np.append(found.share, 0.0))) or 1.0

    def cell(row: int, column: int) -> Html:
        if row == column or not found.total[row, column]:
            return element("td", "·", class_="empty")
        share = float(found.share[row, column])
        text = f"{100 * share:.1f}" if 0 < share < 0.0995 else f"{100 * share:.0f}"
        counts = f"{found.wrong[row, column]} of {found.total[row, column]}"
        said = f"{labels[row]} above {labels[column]}: {counts}"
        return element("td", text, style=f"--heat: {55 * share / largest:.0f}%", title=said)

    rows = [[labels[row], *(cell(row, column) for column in chosen)] for row in chosen]
    few = len(chosen) < len(labels)
    some = f", the {len(chosen)} labels of {len(labels)} with the most mistakes" if few else ""
    head = ["predicted above →", *(labels[column] for column in chosen)]
    return table(f"Confusion of order, percent{some}", head, rows, class_="heat", hide=not few)


def _worst_pairs(labels: tuple[str, ...], found: Confusion) -> Html | None:
    order = np.argsort(-found.wrong, axis=None, kind="stable")[:_MOST_PAIRS]
    rows = []
    for row, column in zip(*np.unravel_index(order, found.wrong.shape)):
        if wrong := found.wrong[row, column]:
            counts = f"{wrong:,} of {found.total[row, column]:,}"
            share = f"{100 * found.share[row, column]:.1f}"
            rows.append([f"{labels[row]} above {labels[column]}", counts, share])
    if not rows:
        return None
    head = ("predicted, against the truth", "instances", "percent")
    made = table("Pairs with the most mistakes", head, rows, numbers={1, 2}, hide=True)
    return details("The pairs with the most mistakes", made)


def _places(evidence: Evidence) -> Html:
    most = int(min(_MOST_PLACES, max(1, (evidence.truth > 0).sum(1).max(initial=1))))
    counts = place_table(evidence.prediction.ranks, evidence.truth, most)
    names = [*map(str, range(1, most)), f"{most} or later", "not relevant"]

    def cell(row: int, column: int) -> Html:
        total = counts[row].sum()
        if not total:
            return element("td", "·", class_="empty")
        share = counts[row, column] / total
        said = f"{counts[row, column]:,} of {total:,}"
        return element("td", f"{100 * share:.1f}", style=f"--heat: {60 * share:.0f}%", title=said)

    rows = [[name, *(cell(row, column) for column in range(len(names)))] for row, name in enumerate(names)]
    caption, head = "Predicted place by true place, percent of the row", ["true ↓ predicted →", *names]
    return table(caption, head, rows, class_="heat good-heat", hide=True)

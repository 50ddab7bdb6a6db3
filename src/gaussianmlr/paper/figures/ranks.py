"""Mean ranks over the sets of Ranked MNIST, with critical differences."""

from __future__ import annotations

from pathlib import Path

from gaussianmlr.paper.evidence import Evidence
from gaussianmlr.paper.figures.shared import Studio, heading, sheet
from gaussianmlr.paper.pairs import RANKED, standings, title_of
from gaussianmlr.paper.tables import HEADS
from gaussianmlr.plots.critical import CriticalDifferenceDisplay

__all__ = ["draw"]

ABOUT = (
    "Mean rank of each method (1: the best) over the sets of Ranked MNIST that all of its row ran on, "
    "the critical difference of Nemenyi at 0.05, and the p-value of Friedman's test that all are alike."
)


def draw(studio: Studio) -> list[Path]:
    """One page with a diagram per metric, and the numbers."""
    evidence = Evidence(studio.landed)
    found = [one for metric in RANKED for one in standings(evidence, studio.preset, metric)]
    rows = [
        {
            "metric": one.metric,
            "sets": " ".join(one.sets),
            "critical_difference": round(one.found.critical, 4),
            "friedman_p": round(one.found.p, 6),
            "method": title_of(cell),
            "mean_rank": round(float(rank), 4),
        }
        for one in found
        for cell, rank in zip(one.methods, one.found.ranks)
    ]
    written: list[Path] = []
    if found:
        figure, axes = sheet(len(found), 1, (11, 2.6 * len(found) + 0.6))
        for one, panel in zip(found, axes[:, 0]):
            title = f"{HEADS[one.metric][0]}, {len(one.sets)} sets"
            names = [title_of(cell) for cell in one.methods]
            CriticalDifferenceDisplay(one.found.ranks, names, critical=one.found.critical, title=title).plot(
                panel
            )
        heading(figure, "Mean ranks over sets of Ranked MNIST; bars join methods that are not told apart", 12)
        written.append(studio.save(figure, "ranks"))
    return [*written, *studio.save_numbers("ranks", rows, ABOUT)]

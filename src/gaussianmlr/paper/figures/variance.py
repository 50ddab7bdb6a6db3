"""The variance that GaussianMLR predicts along adjusting sequences."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from gaussianmlr.paper.figures.shared import (
    COLOURS,
    INK,
    Studio,
    heading,
    legend_of,
    quiet,
    say_why_empty,
    sheet,
)
from gaussianmlr.paper.plans import VARIANCES
from gaussianmlr.paper.probes import SCALES

__all__ = ["draw"]

ONE = ("gmlr", "strong")
ABOUT = (
    "follows: Spearman's correlation of the predicted sigma with the true significance along a sequence, "
    "mean of the two digits that change and of all sequences. low, high: mean variance of the changing "
    "digits at their smallest and at their largest significance; middle: of the constant digit."
)


def draw(studio: Studio) -> list[Path]:
    """One page for the five sets, and its numbers."""
    probes = {dataset: studio.probe(dataset, *ONE, "adjusting") for dataset in VARIANCES}
    rows = [studio.row(dataset, ONE, probe, _numbers) for dataset, probe in probes.items()]
    pages = [studio.save(_page(probes, rows), "variance")] if any(probes.values()) else []
    return [*pages, *studio.save_numbers("variance", rows, ABOUT)]


def _numbers(probe: Any) -> dict[str, Any]:
    found = {"sequences": probe["sequences"]}
    for gauge in (scale for scale in SCALES if scale in probe):
        numbers = probe[gauge]["variance"]
        found |= {f"{name}_{gauge}": value for name, value in numbers.items() if name != "log_quartiles"}
    return found


def _page(probes: dict[str, Any], rows: list[dict[str, Any]]) -> Any:
    scales = [scale for scale in SCALES if any(probe and scale in probe for probe in probes.values())]
    size = (3.1 * len(probes), 0.6 + 2.7 * len(scales))
    figure, axes = sheet(len(scales), len(probes), size, sharex=True)
    for column, (dataset, probe) in enumerate(probes.items()):
        for row, gauge in enumerate(scales):
            panel = axes[row, column]
            name = "noticeable differences" if gauge == "jnd" else f"{gauge} gauge"
            panel.set_title(f"{dataset}, {name}", fontsize=10, color=INK)
            if probe is None or gauge not in probe:
                say_why_empty(panel, rows[column]["state"] if probe is None else "not in the cell")
                continue
            curves = np.asarray(probe[gauge]["variance"]["log_quartiles"])
            frames = np.arange(1, curves.shape[1] + 1)
            for place, colour in zip(range(3), COLOURS):
                low, middle, high = curves[:, :, place]
                panel.fill_between(frames, low, high, color=colour, alpha=0.16, lw=0)
                panel.plot(frames, middle, color=colour, lw=2)
            quiet(panel)
    legend_of(figure, ("first digit: gains", "second: keeps", "third: loses"))
    count = next(probe["sequences"] for probe in probes.values() if probe)
    about = "Log-variance that GaussianMLR (strong) predicts along adjusting sequences, frame by frame"
    heading(figure, f"{about}: median and quartiles of {count}")
    figure.supylabel("log-variance", fontsize=10)
    return figure

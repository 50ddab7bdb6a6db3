"""The variance that GaussianMLR predicts along adjusting sequences."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from gaussianmlr.data.probes import Probe
from gaussianmlr.paper.figures._studio import (
    COLOURS,
    GAUGES,
    INK,
    Floats,
    Studio,
    Track,
    legend_of,
    quiet,
    say_not_trained,
    sheet,
)
from gaussianmlr.paper.figures.adjusting import probe_of
from gaussianmlr.paper.following import rank_correlation
from gaussianmlr.paper.plans import VARIANCES

__all__ = ["draw", "follow_sigma"]

ABOUT = (
    "follows: Spearman's correlation of the predicted sigma with the true significance along a sequence, "
    "mean of the two digits that change and of all sequences. low, high: mean variance of the changing "
    "digits at their smallest and at their largest significance; middle: of the constant digit."
)


def draw(studio: Studio) -> list[Path]:
    """One page for the five sets, and its numbers."""
    probes = {dataset: probe_of(studio, dataset) for dataset in VARIANCES}
    tracks = {name: studio.track(name, "gmlr", "strong", probe) for name, probe in probes.items()}
    rows = [_row(name, track, probes[name]) for name, track in tracks.items()]
    pages = [studio.save(_page(probes, tracks), "variance")] if any(tracks.values()) else []
    return [*pages, *studio.save_numbers("variance", rows, ABOUT)]


def follow_sigma(sigma: Floats, significance: Floats) -> dict[str, float]:
    """How sigmas [sequences, frames, 3] go with the true significances."""
    follows = [
        rank_correlation(one[:, place], truth[:, place])
        for one, truth in zip(sigma, significance)
        for place in (0, 2)
    ]
    variance = sigma**2
    return {
        "follows": round(float(np.mean(follows)), 4),
        "low": round(float((variance[:, 0, 0] + variance[:, -1, 2]).mean() / 2), 5),
        "middle": round(float(variance[:, :, 1].mean()), 5),
        "high": round(float((variance[:, -1, 0] + variance[:, 0, 2]).mean() / 2), 5),
    }


def _row(dataset: str, track: Track | None, probe: Probe) -> dict[str, Any]:
    row: dict[str, Any] = {"dataset": dataset, "method": "gmlr", "supervision": "strong"}
    if track is None:
        return {**row, "state": "not trained"}
    row |= {"state": "trained", "sequences": len(probe)}
    for gauge in GAUGES:
        found = follow_sigma(getattr(track, f"sigma_{gauge}"), probe.significance)
        row |= {f"{name}_{gauge}": value for name, value in found.items()}
    return row


def _page(probes: dict[str, Probe], tracks: dict[str, Track | None]) -> Any:
    figure, axes = sheet(2, len(tracks), (3.1 * len(tracks), 6.0), sharex=True)
    for column, (dataset, track) in enumerate(tracks.items()):
        for row, gauge in enumerate(GAUGES):
            panel = axes[row, column]
            panel.set_title(f"{dataset}, {gauge} gauge", fontsize=10, color=INK)
            if track is None:
                say_not_trained(panel)
                continue
            variance = 2 * np.log(getattr(track, f"sigma_{gauge}"))
            frames = np.arange(1, variance.shape[1] + 1)
            for place, colour in zip(range(3), COLOURS):
                low, middle, high = np.quantile(variance[:, :, place], (0.25, 0.5, 0.75), axis=0)
                panel.fill_between(frames, low, high, color=colour, alpha=0.16, lw=0)
                panel.plot(frames, middle, color=colour, lw=2)
            quiet(panel)
    legend_of(figure, ("first digit: gains", "second: keeps", "third: loses"))
    count = len(next(iter(probes.values())))
    figure.suptitle(
        "Log-variance that GaussianMLR (strong) predicts along adjusting sequences, frame by frame: "
        f"median and quartiles of {count}",
        fontsize=13,
        color=INK,
    )
    figure.supylabel("log-variance", fontsize=10)
    return figure

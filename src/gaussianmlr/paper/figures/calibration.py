"""Calibration: whether scores of equal significances are alike, and those of different ones apart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from gaussianmlr.data.probes import Probe, calibration_set
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
    show_image,
)
from gaussianmlr.paper.following import correlation
from gaussianmlr.paper.plans import SIX
from gaussianmlr.paper.tables import METHODS

__all__ = ["draw", "overlap", "spread"]

ABOUT = (
    "A Gaussian is fitted to the scores of each true scale. overlap: the area that the Gaussians of two "
    "neighbouring scales share, 0 apart to 1 the same, and the mean of the three. linearity: Pearson's "
    "correlation of all scores with the true scale."
)


def draw(studio: Studio) -> list[Path]:
    """One page, and its numbers."""
    probe = calibration_set("gray-s", count=8 if studio.small else 50, digits=studio.digits())
    tracks = {one: studio.track("gray-s", *one, probe) for one in SIX}
    rows = [_row(one, track, probe) for one, track in tracks.items()]
    pages = [studio.save(_page(probe, tracks), "calibration")] if any(tracks.values()) else []
    return [*pages, *studio.save_numbers("calibration", rows, ABOUT)]


def overlap(mean: float, std: float, other_mean: float, other_std: float) -> float:
    """The area under the smaller of two Gaussian densities.

    Examples
    --------
    >>> round(overlap(0.0, 1.0, 0.0, 1.0), 6), round(overlap(0.0, 1.0, 2.0, 1.0), 4)
    (1.0, 0.3173)
    """
    from scipy.stats import norm

    low = min(mean - 8 * std, other_mean - 8 * other_std)
    high = max(mean + 8 * std, other_mean + 8 * other_std)
    x = np.linspace(low, high, 20_001)
    return float(np.trapezoid(np.minimum(norm.pdf(x, mean, std), norm.pdf(x, other_mean, other_std)), x))


def spread(scores: Floats, significance: Floats) -> dict[str, Any]:
    """Fitted Gaussians of scores [images, 4], how far neighbours overlap, and how straight they lie."""
    means, stds = scores.mean(0), np.maximum(scores.std(0, ddof=1), 1e-12)
    shared = [overlap(means[i], stds[i], means[i + 1], stds[i + 1]) for i in range(len(means) - 1)]
    return {
        "means": [round(float(value), 4) for value in means],
        "stds": [round(float(value), 4) for value in stds],
        "overlaps": [round(value, 4) for value in shared],
        "overlap": round(float(np.mean(shared)), 4),
        "linearity": round(correlation(scores.ravel(), significance.ravel()), 4),
    }


def _row(method: tuple[str, str], track: Track | None, probe: Probe) -> dict[str, Any]:
    row: dict[str, Any] = {"dataset": "gray-s", "method": method[0], "supervision": method[1]}
    if track is None:
        return {**row, "state": "not trained"}
    row |= {"state": "trained", "images": len(probe), "scales": probe.significance[0, 0].tolist()}
    for gauge in GAUGES:
        found = spread(track.gauge(gauge)[:, 0], probe.significance[:, 0])
        row |= {f"{name}_{gauge}": value for name, value in found.items()}
    return row


def _page(probe: Probe, tracks: dict[tuple[str, str], Track | None]) -> Any:
    from matplotlib.figure import Figure
    from scipy.stats import norm

    figure = Figure(figsize=(14, 6.6), layout="constrained")
    parts: Any = figure.subfigures(1, 2, width_ratios=[1, 3.2])
    left, right = parts
    for number, axes in enumerate(left.subplots(2, 1)):
        show_image(axes, probe[number][0])
        _boxes(axes, probe, number)
    panels = right.subplots(2, 3).ravel()
    scales = probe.significance[0, 0]
    for axes, ((method, supervision), track) in zip(panels, tracks.items()):
        axes.set_title(f"{METHODS[method]}, {supervision}", fontsize=11, color=INK)
        if track is None:
            say_not_trained(axes)
            continue
        found = spread(track.shown[:, 0], probe.significance[:, 0])
        reach = max(found["stds"]) * 3.5
        x = np.linspace(min(found["means"]) - reach, max(found["means"]) + reach, 600)
        for mean, std, colour in zip(found["means"], found["stds"], _colours()):
            density = norm.pdf(x, mean, std)
            axes.plot(x, density, color=colour, lw=2)
            axes.fill_between(x, density, color=colour, alpha=0.15, lw=0)
        if track.thresholds is None:
            axes.axvline(0, color=INK, lw=0.9, ls=":")
        else:
            for colour, cut in zip(_colours(), track.thresholds[:, 0].mean(0)):
                axes.axvline(cut, color=colour, lw=1.1, ls=":")
        axes.set_yticks([])
        axes.set_ylim(0, None)
        axes.margins(y=0.25)
        text = f"overlap {found['overlap']:.2f}\nlinearity {found['linearity']:.2f}"
        axes.text(0.98, 0.97, text, transform=axes.transAxes, ha="right", va="top", fontsize=8, color=INK)
        quiet(axes)
        axes.spines["left"].set_visible(False)
    legend_of(figure, (f"scale {scale:g}" for scale in scales), _colours())
    right.supxlabel(
        "score (canonical gauge; LSEP: f); dotted: threshold (LSEP: mean of its own)", fontsize=10
    )
    figure.suptitle(
        f"gray-s: Gaussians fitted to the scores of four digits of known scale, {len(probe)} images",
        fontsize=13,
        color=INK,
    )
    return figure


def _colours() -> tuple[str, ...]:
    """From the smallest scale to the largest: the paper's fourth colour first."""
    return (COLOURS[3], COLOURS[0], COLOURS[1], COLOURS[2])


def _boxes(axes: Any, probe: Probe, number: int) -> None:
    from matplotlib.patches import Rectangle

    for label, colour in zip(probe.labels[number], _colours()):
        x, y, side = (int(value) for value in probe.recipes.boxes[number, label])
        axes.add_patch(Rectangle((x, y), side, side, fill=False, color=colour, lw=1.8))

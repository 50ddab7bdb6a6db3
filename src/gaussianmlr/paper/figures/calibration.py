"""Calibration: Gaussians fitted to the scores of digits of known scale."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from gaussianmlr.data.ranked_mnist.probes import Probe
from gaussianmlr.paper.figures.shared import (
    COLOURS,
    INK,
    OTHER_DIGITS,
    One,
    Studio,
    heading,
    legend_of,
    quiet,
    say_why_empty,
    show_image,
)
from gaussianmlr.paper.probes import CALIBRATED, SCALES, calibration_probe
from gaussianmlr.paper.tables import METHODS

__all__ = ["draw"]

ABOUT = (
    "A Gaussian is fitted to the scores of each true scale; medians: of these scores; missed: digits "
    "per scale that are said to be absent, which widen the Gaussians. overlap: the area that the Gaussians "
    "of two neighbouring scales share, 0 apart to 1 the same, and the mean of the three. linearity: "
    "Pearson's correlation of all scores with the true scale."
)


def draw(studio: Studio) -> list[Path]:
    """One page, and its numbers."""
    probes = studio.probes(CALIBRATED, "calibration")
    rows = [studio.row(CALIBRATED, one, probe, _numbers) for one, probe in probes.items()]
    pages = []
    if any(probes.values()):
        pages.append(studio.save(_page(studio, probes), "calibration"))
        raw = {one: probe and {**probe, "shown": "raw"} for one, probe in probes.items()}
        pages.append(studio.save(_page(studio, raw), "calibration-raw"))
    return [*pages, *studio.save_numbers("calibration", rows, ABOUT)]


def _numbers(probe: Any) -> dict[str, Any]:
    found = {name: probe[name] for name in ("images", "scales", "missed") if name in probe}
    scales = [scale for scale in SCALES if scale in probe]
    return found | {f"{name}_{scale}": value for scale in scales for name, value in probe[scale].items()}


def _page(studio: Studio, probes: dict[One, Any]) -> Any:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(14, 6.6), layout="constrained")
    parts: Any = figure.subfigures(1, 2, width_ratios=[1, 3.2])
    left, right = parts
    shown = calibration_probe(studio.digits, studio.small)
    same = all(studio.same_digits(CALIBRATED, one) for one, probe in probes.items() if probe)
    for number, axes in enumerate(left.subplots(2, 1)):
        if not same:
            say_why_empty(axes, OTHER_DIGITS)
            continue
        show_image(axes, shown[number][0])
        _boxes(axes, shown, number)
    panels = right.subplots(2, 3).ravel()
    for axes, ((method, supervision), probe) in zip(panels, probes.items()):
        axes.set_title(f"{METHODS[method]}, {supervision}", fontsize=11, color=INK)
        if probe is None:
            say_why_empty(axes, studio.missing(CALIBRATED, (method, supervision)))
        else:
            _gaussians(axes, probe)
    first = next(probe for probe in probes.values() if probe)
    legend_of(figure, (f"scale {scale:g}" for scale in first["scales"]), _colours())
    right.supxlabel(_scale(probes), fontsize=9)
    about = "Gaussians fitted to the scores of four digits of known scale"
    heading(figure, f"gray-s: {about}, {first['images']} images")
    return figure


def _scale(probes: dict[One, Any]) -> str:
    """What the scores and marks of the page are."""
    names = {"raw": "raw mu", "canonical": "canonical gauge", "jnd": "just noticeable differences"}
    there = {one: probe for one, probe in probes.items() if probe}
    shown = {probe["shown"] for (method, _), probe in there.items() if method == "gmlr"}
    own = " or ".join(names[scale] for scale in sorted(shown))
    text = f"score (GaussianMLR: {own}; LSEP: f); " if own else "score; "
    text += "dotted: threshold (LSEP: mean of its own); triangle: median"
    if not all("medians" in probe[probe["shown"]] for probe in there.values()):
        text += "\n(cells from before medians and missed digits were kept show neither)"
    return text


def _gaussians(axes: Any, probe: dict[str, Any]) -> None:
    from scipy.stats import norm

    found = probe[probe["shown"]]
    stds = np.maximum(found["stds"], 1e-4)  # they are rounded
    reach = stds.max() * 3.5
    x = np.linspace(min(found["means"]) - reach, max(found["means"]) + reach, 600)
    for mean, std, colour in zip(found["means"], stds, _colours()):
        density = norm.pdf(x, mean, std)
        axes.plot(x, density, color=colour, lw=2)
        axes.fill_between(x, density, color=colour, alpha=0.15, lw=0)
    for colour, cut in zip(_colours(), probe.get("thresholds", ())):
        axes.axvline(cut, color=colour, lw=1.1, ls=":")
    if "thresholds" not in probe:
        axes.axvline(0, color=INK, lw=0.9, ls=":")
    axes.set_yticks([])
    axes.set_ylim(0, None)
    axes.margins(y=0.25)
    for colour, middle in zip(_colours(), found.get("medians", ())):
        axes.plot(middle, 0, marker="^", ms=7, color=colour, clip_on=False)
    text = f"overlap {found['overlap']:.2f}\nlinearity {found['linearity']:.2f}"
    if "missed" in probe:
        text += f"\nmissed {sum(probe['missed'])} of {probe['images'] * len(probe['missed'])}"
    axes.text(0.98, 0.97, text, transform=axes.transAxes, ha="right", va="top", fontsize=8, color=INK)
    quiet(axes)
    axes.spines["left"].set_visible(False)


def _colours() -> tuple[str, ...]:
    """From the smallest scale to the largest: the paper's fourth colour first."""
    return (COLOURS[3], COLOURS[0], COLOURS[1], COLOURS[2])


def _boxes(axes: Any, probe: Probe, number: int) -> None:
    from matplotlib.patches import Rectangle

    for label, colour in zip(probe.labels[number], _colours()):
        x, y, side = (int(value) for value in probe.recipes.boxes[number, label])
        axes.add_patch(Rectangle((x, y), side, side, fill=False, color=colour, lw=1.8))

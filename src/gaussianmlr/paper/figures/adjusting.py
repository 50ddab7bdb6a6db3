"""Adjusting significance: scores along sequences in which significances change."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

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
from gaussianmlr.paper.plans import SEQUENCES
from gaussianmlr.paper.probes import SCALES, adjusting_probe
from gaussianmlr.paper.tables import METHODS

__all__ = ["draw"]

FRAMES_SHOWN = 6
NUMBERS = ("monotonicity", "linearity", "drift")
ABOUT = (
    "Means over sequences. monotonicity and linearity: Spearman's and Pearson's correlation of the score "
    "with the true significance along a sequence, mean of the two digits that change. drift: standard "
    "deviation of the constant digit's score along a sequence, divided by the mean range of the other two."
)


def draw(studio: Studio) -> list[Path]:
    """One page per set with a measured cell, and the numbers of all."""
    written: list[Path] = []
    rows: list[dict[str, Any]] = []
    for dataset in SEQUENCES:
        probes = studio.probes(dataset, "adjusting")
        rows += [studio.row(dataset, one, probe, _numbers) for one, probe in probes.items()]
        if any(probes.values()):  # no page of empty axes
            written.append(studio.save(_page(studio, dataset, probes), f"adjusting-{dataset}"))
        if any(probe and "raw_curves" in probe for probe in probes.values()):
            raw = {one: _raw(probe) for one, probe in probes.items()}
            written.append(studio.save(_page(studio, dataset, raw), f"adjusting-{dataset}-raw"))
    return [*written, *studio.save_numbers("adjusting", rows, ABOUT)]


def _numbers(probe: Any) -> dict[str, Any]:
    found = {name: probe[name] for name in ("sequences", "frames")}
    scales = [scale for scale in SCALES if scale in probe]
    return found | {f"{name}_{scale}": probe[scale][name] for scale in scales for name in NUMBERS}


def _raw(probe: Any) -> Any:
    """A probe as the network's raw outputs show it; older cells keep their curves in one gauge only."""
    if not probe or probe["shown"] == "raw":
        return probe
    return {**probe, **probe["raw_curves"], "shown": "raw"} if "raw_curves" in probe else None


def _page(studio: Studio, dataset: str, probes: dict[One, Any]) -> Any:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12.5, 9.2), layout="constrained")
    parts: Any = figure.subfigures(2, 1, height_ratios=[1, 2.9])
    top, bottom = parts
    shown = adjusting_probe(dataset, studio.digits, studio.small)
    same = all(studio.same_digits(dataset, one) for one, probe in probes.items() if probe)
    _frames(top, shown[0] if same else None)
    factor = shown.setting.factor
    heading(top, f"{dataset}: the first digit gains {factor}, the second keeps it, the third loses it")
    panels = bottom.subplots(2, 3).ravel()
    for axes, ((method, supervision), probe) in zip(panels, probes.items()):
        title = f"{METHODS[method]}, {supervision}"
        if probe is None:
            axes.set_title(title, fontsize=10, color=INK)
            say_why_empty(axes, studio.missing(dataset, (method, supervision)))
            continue
        _curves(axes, probe)
        found = {name: probe[probe["shown"]][name] for name in NUMBERS}
        numbers = ", ".join(f"{name} {'-' if n is None else f'{n:.3f}'}" for name, n in found.items())
        axes.set_title(f"{title}\n{numbers}", fontsize=10, color=INK)
    digits = shown.labels[0]
    legend_of(
        figure, (f"{name} ({digit})" for name, digit in zip(("first", "second", "third"), digits.tolist()))
    )
    count = next(probe["sequences"] for probe in probes.values() if probe)
    bottom.supxlabel(
        f"frame; thin: the sequence shown, thick and shade: mean and deviation of {count}. {_scale(probes)}",
        fontsize=9,
    )
    bottom.supylabel("score; dotted: threshold", fontsize=10)
    return figure


def _scale(probes: dict[One, Any]) -> str:
    """What the scores of the page are."""
    names = {
        "raw": "mu as the network gives it",
        "canonical": "canonical gauge",
        "jnd": "just noticeable differences",
    }
    shown = {probe["shown"] for (method, _), probe in probes.items() if probe and method == "gmlr"}
    own = f"GaussianMLR: {' or '.join(names[scale] for scale in sorted(shown))}; " if shown else ""
    return f"{own}LSEP: f; CRPC: votes"


def _frames(top: Any, images: Any) -> None:
    if images is None:
        say_why_empty(top.subplots(1, 1), OTHER_DIGITS)
        return
    chosen = np.linspace(0, len(images) - 1, FRAMES_SHOWN).round().astype(int)
    for axes, frame in zip(top.subplots(1, FRAMES_SHOWN), chosen):
        show_image(axes, images[frame])
        axes.set_title(f"frame {frame + 1}", fontsize=9)


def _curves(axes: Any, probe: dict[str, Any]) -> None:
    mean, deviation, first = (np.asarray(probe[name]) for name in ("mean", "deviation", "first"))
    frames = np.arange(1, len(mean) + 1)
    for place, colour in zip(range(3), COLOURS):
        low, high = (mean[:, place] + sign * deviation[:, place] for sign in (-1, 1))
        axes.fill_between(frames, low, high, color=colour, alpha=0.16, lw=0)
        axes.plot(frames, mean[:, place], color=colour, lw=2.2)
        axes.plot(frames, first[:, place], color=colour, lw=0.8, alpha=0.9)
        if "thresholds" in probe:
            axes.plot(frames, np.asarray(probe["thresholds"])[:, place], color=colour, lw=1.1, ls=":")
    if "thresholds" not in probe:
        axes.axhline(0, color=INK, lw=0.9, ls=":")
    quiet(axes)

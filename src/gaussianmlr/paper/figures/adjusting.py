"""Adjusting significance: one digit gains, one keeps, one loses; whether the scores follow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from gaussianmlr.data.probes import Probe, adjusting_sequences
from gaussianmlr.paper.figures._studio import (
    COLOURS,
    GAUGES,
    INK,
    Studio,
    Track,
    legend_of,
    quiet,
    say_not_trained,
    show_image,
)
from gaussianmlr.paper.following import follow_score
from gaussianmlr.paper.plans import SEQUENCES, SIX
from gaussianmlr.paper.tables import METHODS

__all__ = ["draw", "probe_of"]

FRAMES_SHOWN = 6
ABOUT = (
    "Means over sequences. monotonicity and linearity: Spearman's and Pearson's correlation of the score "
    "with the true significance along a sequence, mean of the two digits that change. drift: standard "
    "deviation of the constant digit's score along a sequence, divided by the mean range of the other two."
)


def probe_of(studio: Studio, dataset: str) -> Probe:
    """The sequences of a set: 50 of 50 frames, fewer for a smoke test."""
    count, frames = (2, 6) if studio.small else (50, 50)
    return adjusting_sequences(dataset, count=count, frames=frames, digits=studio.digits())


def draw(studio: Studio) -> list[Path]:
    """One page a set that has a trained model, and the numbers of all."""
    written, rows = [], []
    for dataset in SEQUENCES:
        probe = probe_of(studio, dataset)
        tracks = {one: studio.track(dataset, *one, probe) for one in SIX}
        rows += [_row(dataset, one, track, probe) for one, track in tracks.items()]
        if any(tracks.values()):  # a page of empty places would say less than the numbers do
            written.append(studio.save(_page(dataset, probe, tracks), f"adjusting-{dataset}"))
    return [*written, *studio.save_numbers("adjusting", rows, ABOUT)]


def _row(dataset: str, method: tuple[str, str], track: Track | None, probe: Probe) -> dict[str, Any]:
    row: dict[str, Any] = {"dataset": dataset, "method": method[0], "supervision": method[1]}
    if track is None:
        return {**row, "state": "not trained"}
    row |= {"state": "trained", "sequences": len(probe), "frames": probe.significance.shape[1]}
    for gauge in GAUGES:
        found = follow_score(track.gauge(gauge), probe.significance)
        row |= {f"{name}_{gauge}": value for name, value in found.items()}
    return row


def _page(dataset: str, probe: Probe, tracks: dict[tuple[str, str], Track | None]) -> Any:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12.5, 9.2), layout="constrained")
    parts: Any = figure.subfigures(2, 1, height_ratios=[1, 2.9])
    top, bottom = parts
    images = probe[0]
    shown = np.linspace(0, len(images) - 1, FRAMES_SHOWN).round().astype(int)
    for axes, frame in zip(top.subplots(1, FRAMES_SHOWN), shown):
        show_image(axes, images[frame])
        axes.set_title(f"frame {frame + 1}", fontsize=9)
    factor = probe.setting.factor
    top.suptitle(
        f"{dataset}: the first digit gains {factor}, the second keeps it, the third loses it",
        fontsize=13,
        color=INK,
    )
    panels = bottom.subplots(2, 3).ravel()
    for axes, ((method, supervision), track) in zip(panels, tracks.items()):
        title = f"{METHODS[method]}, {supervision}"
        if track is None:
            axes.set_title(title, fontsize=10, color=INK)
            say_not_trained(axes)
            continue
        _curves(axes, track)
        found = follow_score(track.shown, probe.significance)
        numbers = ", ".join(f"{name} {value:.3f}" for name, value in found.items())
        axes.set_title(f"{title}\n{numbers}", fontsize=10, color=INK)
    digits = probe.labels[0]
    legend_of(
        figure, (f"{name} ({digit})" for name, digit in zip(("first", "second", "third"), digits.tolist()))
    )
    bottom.supxlabel(
        f"frame; thin: the sequence shown, thick and shade: mean and deviation of {len(probe)}", fontsize=10
    )
    bottom.supylabel("score (canonical gauge; LSEP: f); dotted: threshold", fontsize=10)
    return figure


def _curves(axes: Any, track: Track) -> None:
    scores = track.shown
    frames = np.arange(1, scores.shape[1] + 1)
    for place, colour in zip(range(3), COLOURS):
        mean, std = scores[:, :, place].mean(0), scores[:, :, place].std(0)
        axes.fill_between(frames, mean - std, mean + std, color=colour, alpha=0.16, lw=0)
        axes.plot(frames, mean, color=colour, lw=2.2)
        axes.plot(frames, scores[0, :, place], color=colour, lw=0.8, alpha=0.9)
        if track.thresholds is not None:
            axes.plot(frames, track.thresholds[:, :, place].mean(0), color=colour, lw=1.1, ls=":")
    if track.thresholds is None:
        axes.axhline(0, color=INK, lw=0.9, ls=":")
    quiet(axes)

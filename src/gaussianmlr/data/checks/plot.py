"""A data set as one figure: labels, positives, places, rankers."""

from __future__ import annotations

import io
import os
from typing import Any

import numpy as np

from gaussianmlr._utils.extras import require
from gaussianmlr._utils.files import write_bytes
from gaussianmlr.data.dataset import RankedData
from gaussianmlr.data.statistics import first_shares, places

# Okabe and Ito's blue and sky blue, and cividis: safe for colour-blind readers and in print.
BLUE, SKY, ORANGE = "#0072B2", "#8CCBEF", "#E69F00"
MOST_LABELS = 30
MOST_PLACES = 10


def plot(data: RankedData, statistics: dict[str, Any], file: str | os.PathLike[str]) -> None:
    """Draw label counts, relevant labels per instance, places and, if any, rankers."""
    require("a plot", "matplotlib")
    from matplotlib.figure import Figure

    counts = (data.ranks > 0).sum(axis=0)
    shown = np.argsort(-counts, kind="stable")[:MOST_LABELS]
    agreement = statistics.get("rankers", {}).get("agreement")
    height = max(4.2, 1.6 + 0.27 * len(shown))
    figure = Figure(figsize=(13, height + 0.4), dpi=130, layout="constrained")
    grid = figure.add_gridspec(2, 3, width_ratios=(1.15, 0.9, 1.15))
    names = [_short(data.labels[label]) for label in shown]
    _counts(figure.add_subplot(grid[:, 0]), names, counts[shown], first_shares(data.ranks)[shown], len(data))
    if agreement:
        _positives(figure.add_subplot(grid[0, 1]), statistics)
        _rankers(figure.add_subplot(grid[1, 1]), agreement)
    else:
        _positives(figure.add_subplot(grid[:, 1]), statistics)
    _places(figure, figure.add_subplot(grid[:, 2]), names, places(data.ranks)[:, shown])
    left_out = len(data.labels) - len(shown)
    more = f"  (the {len(shown)} commonest of {len(data.labels)} labels)" if left_out else ""
    figure.suptitle(f"{data.source or 'data'}: {len(data):,} instances{more}", fontsize=13, fontweight="bold")
    picture = io.BytesIO()
    figure.savefig(picture, format="png")
    write_bytes(file, picture.getvalue())


def _counts(axes: Any, names: list[str], counts: Any, firsts: Any, total: int) -> None:
    rows = np.arange(len(names))
    axes.barh(rows, firsts, color=BLUE, label="most significant")
    axes.barh(rows, counts - firsts, left=firsts, color=SKY, label="relevant, not first")
    for row, count in zip(rows, counts):
        axes.annotate(
            f"{count:,}", (count, row), (3, 0), textcoords="offset points", va="center", fontsize=8.5
        )
    axes.set_yticks(rows, names)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.set_xlim(0, max(1, counts.max(initial=0)) * 1.14)
    axes.set_xlabel("instances")
    axes.set_title("How often a label applies", fontsize=11)
    axes.legend(frameon=False, fontsize=9, loc="lower right")
    _bare(axes)


def _positives(axes: Any, statistics: dict[str, Any]) -> None:
    histogram = statistics["positives"]["histogram"]
    axes.bar(list(histogram), list(histogram.values()), color=BLUE, width=0.8)
    mean = statistics["positives"]["mean"]
    axes.axvline(mean, color=ORANGE, linewidth=2)
    axes.annotate(
        f"mean {mean:.2f}", (mean, 1), (4, -3), xycoords=("data", "axes fraction"),
        textcoords="offset points", va="top", fontsize=9,
    )  # fmt: skip
    if len(histogram) <= 12:
        axes.set_xticks(list(histogram))
    axes.set_ylim(0, max(histogram.values()) * 1.12)
    axes.set_xlabel("relevant labels")
    axes.set_ylabel("instances")
    axes.set_title("Relevant labels per instance", fontsize=11)
    _bare(axes)


def _rankers(axes: Any, agreement: dict[str, Any]) -> None:
    each = {name: value for name, value in agreement["tau_b_of_ranker"].items() if value is not None}
    axes.bar(range(len(each)), [100 * value for value in each.values()], color=BLUE, width=0.8)
    axes.set_yticks([0, 25, 50, 75, 100])
    axes.axhline(100 * agreement["against_rest"]["tau_b"], color=ORANGE, linewidth=2)
    if len(each) <= 20:
        axes.set_xticks(range(len(each)), [_short(name, 8) for name in each], fontsize=9)
    axes.set_ylim(100 * min(0, *each.values()), 108)
    axes.set_xlabel("ranker")
    axes.set_ylabel("tau-b, 100 = the same order")
    mean = agreement["against_rest"]["tau_b"]
    axes.set_title(f"A ranker against the rest (mean {100 * mean:.1f})", fontsize=11)
    _bare(axes)


def _places(figure: Any, axes: Any, names: list[str], place: Any) -> None:
    """Of the instances a label applies to, the share in which it stands at each place."""
    from matplotlib.ticker import PercentFormatter

    deepest = int(min(max(1, np.nanmax(place, initial=1)), MOST_PLACES))
    # Ties share a mean place such as 1.5; it counts half for each place beside it.
    shares = np.zeros((len(names), deepest))
    applies = np.maximum((~np.isnan(place)).sum(axis=0), 1)
    for column in range(deepest):
        near = 1 - np.abs(np.nan_to_num(place, nan=-9.0) - (column + 1))
        shares[:, column] = np.clip(near, 0, None).sum(axis=0) / applies
    top = max(0.25, np.ceil(4 * shares.max()) / 4)  # at least 0.25: noise is not a pattern
    image = axes.imshow(shares, cmap="cividis", vmin=0, vmax=top, aspect="auto")
    if shares.size <= 150:
        for row, column in np.ndindex(shares.shape):
            if shares[row, column] >= 0.005:
                colour = "black" if shares[row, column] > 0.55 * top else "white"
                number = f"{100 * shares[row, column]:.0f}"
                axes.text(column, row, number, ha="center", va="center", color=colour, fontsize=8.5)
    axes.set_yticks(range(len(names)), names)
    axes.set_xticks(range(deepest), range(1, deepest + 1))
    axes.set_xlabel("place in the order, 1 = most significant")
    axes.set_title("Where a label stands when it applies (%)", fontsize=11)
    figure.colorbar(image, ax=axes, shrink=0.8, format=PercentFormatter(1, decimals=0))


def _bare(axes: Any) -> None:
    axes.spines[["top", "right"]].set_visible(False)


def _short(name: str, width: int = 22) -> str:
    return name if len(name) <= width else f"{name[: width - 1]}…"

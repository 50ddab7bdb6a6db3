"""Extracted significance: pictures in the order of the significance that a method finds in them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gaussianmlr.data import RankedData
from gaussianmlr.data.images import read_image
from gaussianmlr.methods import make
from gaussianmlr.paper.cells import recipe_of
from gaussianmlr.paper.figures._studio import (
    COLOURS,
    GAUGES,
    INK,
    Floats,
    Studio,
    gauges_of,
    say_not_trained,
    sheet,
)
from gaussianmlr.paper.following import correlation, rank_correlation
from gaussianmlr.paper.photos import open_photos, read_outputs
from gaussianmlr.paper.plans import SIX
from gaussianmlr.paper.tables import METHODS

__all__ = ["checkpoints", "draw", "photo_scores"]

LABELS = ("mountain", "plant", "sun")
SHOWN = 10
ABOUT = (
    "Pictures that the network was not trained on, at equal steps of the score of a label from its least to "
    "its largest. monotonicity and linearity: Spearman's and Pearson's correlation, over all pictures, of "
    "the score with the mean rank that people gave the label (0: irrelevant). raw and canonical: the gauge."
)


def draw(studio: Studio) -> list[Path]:
    """One page a label with a strip a method, and the numbers; only the latter without pictures."""
    written, rows = [], []
    data = None if studio.sources.nsid is None else open_photos(studio.cell("nsid", *SIX[0]), studio.sources)
    for label in LABELS:
        strips: dict[tuple[str, str], tuple[list[int], Floats] | None] = {}
        for one in SIX:
            scores = None if data is None else photo_scores(studio, "nsid", *one, len(data))
            row: dict[str, Any] = {"label": label, "method": one[0], "supervision": one[1]}
            if data is None or scores is None:
                strips[one] = None
                rows.append({**row, "state": "not trained"})
                continue
            column = data.labels.index(label)
            chosen = checkpoints(scores["shown"][:, column], SHOWN)
            strips[one] = (chosen, scores["shown"][:, column])
            rows.append({**row, "state": "trained", **_numbers(scores, data, column, chosen)})
        if data is not None and any(strips.values()):
            written.append(studio.save(_page(label, data, strips), f"extracted-{label}"))
    return [*written, *studio.save_numbers("extracted", rows, ABOUT)]


def photo_scores(
    studio: Studio, dataset: str, method: str, supervision: str, count: int
) -> dict[str, Floats] | None:
    """Scores of all pictures by networks that were not trained on them; NaN where none was measured."""
    cell = studio.cell(dataset, method, supervision)
    folder = studio.places.run(cell)
    if not (studio.places.cells / f"{cell.name}.json").is_file() or not list(folder.glob("outputs-*.npz")):
        return None
    kept = read_outputs(folder)
    recipe = recipe_of(cell)
    found = gauges_of(make(recipe.method, **recipe.method_settings), kept.outputs)
    whole = {}
    for gauge in GAUGES:
        whole[gauge] = np.full((count, found[gauge].shape[1]), np.nan)
        whole[gauge][kept.where] = found[gauge]
    # As in the other figures: canonical, but for LSEP its f, which the ranking loss has trained.
    whole["shown"] = whole["raw" if "thresholds" in found else "canonical"]
    return whole


def checkpoints(scores: Floats, count: int) -> list[int]:
    """Indices of instances at equal steps from the least score to the largest, each once.

    Examples
    --------
    >>> checkpoints(np.array([0.0, 9.0, 1.0, 4.6, 10.0]), 3)
    [0, 3, 4]
    """
    left = np.flatnonzero(~np.isnan(scores)).tolist()
    chosen = []
    for goal in np.linspace(np.nanmin(scores), np.nanmax(scores), min(count, len(left))):
        nearest = min(left, key=lambda index: abs(scores[index] - goal))
        left.remove(nearest)
        chosen.append(nearest)
    return sorted(chosen, key=lambda index: float(scores[index]))


def people_say(data: RankedData) -> Floats:
    """The mean rank [N, K] that people gave each label; the one order where there is no more."""
    if data.by_ranker is None:
        return data.ranks.astype(np.float64)
    known = data.by_ranker >= 0
    mean: npt.NDArray[np.float64] = np.where(known, data.by_ranker, 0).sum(1) / np.maximum(known.sum(1), 1)
    return mean


def _numbers(scores: dict[str, Floats], data: RankedData, column: int, chosen: list[int]) -> dict[str, Any]:
    truth = people_say(data)[:, column]
    assert data.ids is not None
    found: dict[str, Any] = {"pictures": int((~np.isnan(scores["raw"][:, column])).sum())}
    for gauge in GAUGES:
        values = scores[gauge]
        there = ~np.isnan(values[:, column])
        found[f"monotonicity_{gauge}"] = round(rank_correlation(values[there, column], truth[there]), 4)
        found[f"linearity_{gauge}"] = round(correlation(values[there, column], truth[there]), 4)
    found["ids"] = [data.ids[index] for index in chosen]
    found["scores"] = [round(float(scores["shown"][index, column]), 4) for index in chosen]
    found["people"] = [round(float(truth[index]), 3) for index in chosen]
    return found


def _page(
    label: str, data: RankedData, strips: dict[tuple[str, str], tuple[list[int], Floats] | None]
) -> Any:
    figure, axes = sheet(len(strips), SHOWN, (15, 1.75 * len(strips) + 0.8))
    truth = people_say(data)[:, data.labels.index(label)]
    assert data.images is not None
    for row, ((method, supervision), strip) in enumerate(strips.items()):
        name = f"{METHODS[method]}\n{supervision}"
        axes[row, 0].set_ylabel(name, fontsize=10, rotation=0, ha="right", va="center", color=INK)
        for column in range(SHOWN):
            panel = axes[row, column]
            if strip is None or column >= len(strip[0]):
                say_not_trained(panel) if strip is None else panel.set_visible(False)
                continue
            index = strip[0][column]
            panel.set_xticks([])
            panel.set_yticks([])
            panel.imshow(_thumbnail(data.images[index]))
            panel.spines[:].set_color(COLOURS[2] if truth[index] > 0 else "#cccccc")
            panel.spines[:].set_linewidth(2)
            panel.set_title(f"{strip[1][index]:.2f}   ({truth[index]:.1f})", fontsize=8)
    figure.suptitle(
        f"{label}: pictures at equal steps of the score, least to most significant "
        "(in brackets: mean rank by people; green frame: above 0)",
        fontsize=12,
        color=INK,
    )
    return figure


def _thumbnail(file: Path) -> npt.NDArray[np.uint8]:
    from PIL import Image

    pixels = Image.fromarray(read_image(file, "RGB"))
    return np.asarray(pixels.resize((144, 108)))

"""Held-out pictures sorted by predicted significance."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from torch import Tensor

from gaussianmlr import orders
from gaussianmlr.data import RankedData
from gaussianmlr.methods import Method
from gaussianmlr.metrics.sequences import correlation, rank_correlation
from gaussianmlr.paper.probes import GAUGES, gauges_of
from gaussianmlr.paper.singles import bars_kept, bars_of, varied

__all__ = ["LABELS", "SHOWN", "checkpoints", "people_say", "probe_photos"]

Floats = npt.NDArray[np.float64]
LABELS = ("mountain", "plant", "sun")  # the paper's, of the natural scenes
SHOWN = 10  # pictures of a strip
LABELS_SHOWN = (3, 4, 5)  # relevant labels per single picture


def probe_photos(
    method: Method, data: RankedData, where: npt.NDArray[np.int64], outputs: dict[str, Tensor]
) -> dict[str, Any]:
    """Predictions for held-out pictures, as stored in a cell.

    Parameters
    ----------
    method : Method
        Reads the outputs.
    data : RankedData
        The pictures.
    where : int array [N]
        The held-out pictures.
    outputs : dict of Tensor
        Outputs of the network for them.
    """
    assert data.ids is not None
    gauges, truth = gauges_of(method, outputs), people_say(data)
    found: dict[str, Any] = {}
    strips = {label: data.labels.index(label) for label in LABELS if label in data.labels}
    if strips:
        found["extracted"] = {
            label: _strip(gauges, truth[where, column], column, [data.ids[i] for i in where])
            for label, column in strips.items()
        }
    # Sorted by picture, so that every method shows the same ones.
    rows = np.argsort(where)
    chosen = rows[varied(data.ranks[where[rows]], LABELS_SHOWN)]
    said = bars_of(method, {name: value[chosen] for name, value in outputs.items()}, data.labels)
    pictures = where[chosen]
    texts = orders.to_text(data.ranks[pictures], data.labels)
    found["bars"] = bars_kept([data.ids[picture] for picture in pictures], texts, said, data.labels)
    return found


def checkpoints(scores: Floats, count: int) -> list[int]:
    """Indices of instances at equal steps from the smallest to the largest score, each once.

    Examples
    --------
    >>> checkpoints(np.array([0.0, 9.0, 1.0, 4.6, 10.0]), 3)
    [0, 3, 4]
    """
    left = list(range(len(scores)))
    chosen = []
    for goal in np.linspace(scores.min(), scores.max(), min(count, len(left))):
        nearest = min(left, key=lambda index: abs(scores[index] - goal))
        left.remove(nearest)
        chosen.append(nearest)
    return sorted(chosen, key=lambda index: float(scores[index]))


def people_say(data: RankedData) -> Floats:
    """The mean rank [N, K] by several rankers, or the ranks themselves without them."""
    if data.by_ranker is None:
        return data.ranks.astype(np.float64)
    known = data.by_ranker >= 0
    mean: Floats = np.where(known, data.by_ranker, 0).sum(1) / np.maximum(known.sum(1), 1)
    return mean


def _strip(gauges: dict[str, Floats], truth: Floats, column: int, ids: list[str]) -> dict[str, Any]:
    # As in the other figures: canonical, except for LSEP's f, which the ranking loss trains.
    shown = gauges["raw" if "thresholds" in gauges else "canonical"][:, column]
    chosen = checkpoints(shown, SHOWN)
    found: dict[str, Any] = {"pictures": len(shown)}
    for gauge in GAUGES:
        found[f"monotonicity_{gauge}"] = round(rank_correlation(gauges[gauge][:, column], truth), 4)
        found[f"linearity_{gauge}"] = round(correlation(gauges[gauge][:, column], truth), 4)
    return found | {
        "ids": [ids[index] for index in chosen],
        "scores": shown[chosen].round(4).tolist(),
        "people": truth[chosen].round(3).tolist(),
    }

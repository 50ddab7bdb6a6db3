"""Pairs of labels in predictions: their limits, and those of the most significant labels alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from gaussianmlr import normal
from gaussianmlr._utils.arrays import FloatArray, fixed
from gaussianmlr.errors import DataError, shorten
from gaussianmlr.orders.partial import partial_text

if TYPE_CHECKING:
    from gaussianmlr.model.parts import Significances
    from gaussianmlr.model.prediction import Prediction

__all__ = ["TopPairs", "partial_texts", "refuse_pairs", "top_pairs", "top_places"]

MOST = 1 << 29  # numbers of pairs in memory at a time: 4 GB
IntArray = npt.NDArray[np.int64]


class TopPairs(NamedTuple):
    """The most significant labels of each instance, and the probabilities of their pairs."""

    places: IntArray
    """Columns [N, top] of the labels, the most significant first."""
    p_above: FloatArray
    """Probability [N, top, top] that one is above the other."""
    p_tie: FloatArray
    """Probability [N, top, top] that two relevant ones tie."""


def refuse_pairs(prediction: Prediction, name: str, instead: str, top: int | None = None) -> None:
    """Refuse what holds K^2 numbers per instance where they are too many; say what there is instead."""
    count, width = prediction.scores.shape
    width = min(width, top or width)
    numbers = count * width**2
    if numbers > MOST:
        raise DataError(
            f"{name} of {count:,} x {width:,} labels has {numbers:,} numbers, one per pair of labels; "
            f"expected at most {MOST:,}. Read fewer instances at a time, prediction[:n], or {instead}"
        )


def top_places(prediction: Prediction, top: int) -> IntArray:
    """`Prediction.top_places`."""
    if isinstance(top, bool) or not isinstance(top, int | np.integer) or top < 1:
        raise DataError(f"top is {shorten(top)}; expected a number of labels from 1 up")
    return np.argsort(-prediction.scores, axis=1, kind="stable")[:, :top]


def top_pairs(prediction: Prediction, law: Significances, top: int) -> TopPairs:
    """`Prediction.top_pairs`."""
    places = top_places(prediction, top)
    refuse_pairs(prediction, f"top_pairs({top})", "a smaller top, such as 50", top)
    thresholds = np.zeros_like(prediction.scores) if prediction.tau is None else prediction.tau
    mu, sigma, tau = (torch.tensor(np.take_along_axis(part, places, 1)) for part in (*law, thresholds))
    above = normal.p_above(mu, sigma, tau)
    return TopPairs(places, fixed(above.numpy()), fixed(normal.p_tie(mu, sigma, tau).numpy()))


def partial_texts(
    prediction: Prediction, law: Significances, confidence: float, top: int | None
) -> list[str]:
    """`Prediction.partial_text`, one instance at a time."""
    if top is None:
        places = np.broadcast_to(np.arange(len(prediction.labels)), prediction.scores.shape)
    else:
        places = top_places(prediction, top)
    refuse_pairs(prediction[:1], "partial_text", "prediction.partial_text(top=50)", top)
    texts = []
    for row, some in enumerate(places):
        mu, sigma = (torch.tensor(part[row, some]) for part in law)
        tau = None if prediction.tau is None else torch.tensor(prediction.tau[row, some])
        above = normal.partial_order(mu, sigma, confidence, tau).numpy()
        chances, scores = prediction.p_relevant[row, some], prediction.scores[row, some]
        labels = [prediction.labels[place] for place in some.tolist()]
        texts.append(partial_text(above, chances >= confidence, chances > 1.0 - confidence, labels, scores))
    return texts

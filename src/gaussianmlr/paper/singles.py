"""Predictions for single images in the quantity of each method, with its threshold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from gaussianmlr import orders
from gaussianmlr.methods import Method
from gaussianmlr.methods.crpc import votes_of
from gaussianmlr.model.scale import JndScale
from gaussianmlr.normal import canonical

__all__ = ["Bars", "bars_kept", "bars_of", "varied"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Bars:
    """Prediction for one image in the quantity of the method: values, thresholds, deviations [K]."""

    values: Floats
    thresholds: Floats
    deviations: Floats | None
    canonical: Floats
    order: str
    jnd: Floats | None = None  # on the scale of just noticeable differences
    jnd_deviations: Floats | None = None

    def to_dict(self) -> dict[str, Any]:
        """The JSON form, as stored in a cell."""
        found = {name: part for name, part in vars(self).items() if part is not None}
        return {name: p.round(4).tolist() if isinstance(p, np.ndarray) else p for name, p in found.items()}

    @classmethod
    def from_dict(cls, kept: Mapping[str, Any]) -> Bars:
        """Read the JSON form."""
        names = ("values", "thresholds", "deviations", "canonical", "jnd", "jnd_deviations")
        parts: Any = {name: np.asarray(kept[name]) if name in kept else None for name in names}
        return cls(**parts, order=kept["order"])


def bars_of(
    method: Method, outputs: dict[str, Tensor], labels: Sequence[str], jnd: JndScale | None = None
) -> list[Bars]:
    """The quantity of a method and its threshold per image, and just noticeable differences by a scale.

    Examples
    --------
    >>> from gaussianmlr.methods import make
    >>> sure = {"pair": torch.tensor([[9.0, 9.0, -9.0]])}  # a above b and above the virtual label
    >>> found = bars_of(make("crpc"), sure, ("a", "b"))[0]
    >>> found.values.round(2).tolist(), found.thresholds.round(2).tolist(), found.order
    ([2.0, 0.0], [1.0, 1.0], 'a')
    """
    reading = method.read(outputs)
    scores = reading.scores.double().numpy()
    texts = orders.to_text(orders.densify(scores), tuple(labels))
    gauged = scores
    deviations: Floats | None = None
    noticed: tuple[Floats, Floats] | None = None
    if method.name == "crpc":
        votes = votes_of(torch.sigmoid(outputs["pair"].double()), getattr(method, "vote", "correct")).numpy()
        values, thresholds = votes[:, :-1], np.repeat(votes[:, -1:], len(labels), 1)
    elif method.name == "lsep":
        values = outputs["score"].double().numpy()
        thresholds = outputs["threshold"].double().numpy()
    else:
        values, thresholds = scores, np.zeros_like(scores)
        if reading.mu is not None and reading.sigma is not None:
            deviations = reading.sigma.double().numpy()
            mu, sigma = (part.numpy() for part in canonical(reading.mu.double(), reading.sigma.double()))
            gauged = mu
            noticed = None if jnd is None else jnd.apply(mu, sigma)
    return [
        Bars(
            values[i],
            thresholds[i],
            None if deviations is None else deviations[i],
            gauged[i],
            texts[i],
            *((None, None) if noticed is None else (noticed[0][i], noticed[1][i])),
        )
        for i in range(len(scores))
    ]


def bars_kept(
    images: Sequence[int | str], true: Sequence[str], said: Sequence[Bars], labels: Sequence[str]
) -> dict[str, Any]:
    """The JSON form of several images: names, true orders and predictions."""
    rows = [{"image": name, "true": order, **one.to_dict()} for name, order, one in zip(images, true, said)]
    return {"labels": list(labels), "images": rows}


def varied(ranks: npt.NDArray[np.int64], wanted: Sequence[int]) -> list[int]:
    """The first instances with about the wanted numbers of relevant labels, each once.

    Examples
    --------
    >>> varied(np.array([[1, 0, 0], [1, 2, 0], [1, 2, 0], [1, 2, 3]]), (2, 3))
    [1, 3]
    """
    counts = (ranks > 0).sum(1)
    chosen: list[int] = []
    for count in wanted:
        left = [index for index in range(len(counts)) if index not in chosen]
        if left:
            chosen.append(min(left, key=lambda index: abs(int(counts[index]) - count)))
    return chosen

"""The truth about images as flat columns (`scale_0`, `left_7`, ...) and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from gaussianmlr.data.ranked_mnist.drawing import Bytes
from gaussianmlr.data.ranked_mnist.sets import LABELS, Batch
from gaussianmlr.orders import to_ranks

Column = Sequence[float | int | None]

_REALS = ("scale", "brightness")
_PIXELS = ("left", "top", "side")
KINDS: dict[str, type[float] | type[int]] = {
    **{f"{what}_{label}": float for what in _REALS for label in LABELS},
    **{f"{what}_{label}": int for what in _PIXELS for label in LABELS},
}
NAMES = tuple(KINDS)


def to_columns(batch: Batch) -> dict[str, Column]:
    """One column per digit and property; None for absent digits."""
    present = batch.boxes[..., 2] > 0
    arrays = [batch.scale, batch.brightness, *np.moveaxis(batch.boxes, -1, 0)]
    columns: dict[str, Column] = {}
    for what, array in zip((*_REALS, *_PIXELS), arrays):
        for digit, label in enumerate(LABELS):
            # tolist gives Python numbers, whose text reads back to the same bits.
            pairs = zip(array[:, digit].tolist(), present[:, digit].tolist())
            columns[f"{what}_{label}"] = [value if there else None for value, there in pairs]
    return columns


def to_batch(images: Bytes, rankings: Sequence[str], columns: Mapping[str, Column]) -> Batch:
    """The batch that `to_columns` came from."""
    n = len(images)
    real = np.full((2, n, len(LABELS)), np.nan)
    pixel = np.zeros((3, n, len(LABELS)), np.int32)
    for digit, label in enumerate(LABELS):
        for at, what in enumerate(_REALS):
            column = columns[f"{what}_{label}"]
            real[at, :, digit] = [np.nan if value is None else value for value in column]
        for at, what in enumerate(_PIXELS):
            pixel[at, :, digit] = [value or 0 for value in columns[f"{what}_{label}"]]
    ranks = to_ranks(list(rankings), LABELS).ranks
    return Batch(images, ranks, real[0], real[1], np.ascontiguousarray(np.moveaxis(pixel, 0, -1)))

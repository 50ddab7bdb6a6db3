"""The film of `gmlr play`: one digit gains significance, one keeps it, one loses it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from gaussianmlr.data.ranked_mnist.digits import Digits
from gaussianmlr.data.ranked_mnist.drawing import Bytes
from gaussianmlr.data.ranked_mnist.probes import Probe, adjusting_sequences
from gaussianmlr.data.ranked_mnist.settings import DIGIT_SIDE, Setting
from gaussianmlr.metrics.sequences import follow_score
from gaussianmlr.model.prediction import Prediction
from gaussianmlr.orders import to_text

__all__ = ["MOST_MODELS", "ROLES", "Shooting", "film_probe", "film_setting", "followed", "sheet"]

ROLES = ("gains", "keeps", "loses")  # in the order of the places of a probe
MOST_MODELS = 4  # that a page shows side by side
_MOST_FRAMES = 60
_WIDE = 10  # frames in a row of a sheet


class Shooting(BaseModel):
    """The film to make."""

    model_config = ConfigDict(extra="forbid", strict=True)

    factor: Literal["scale", "brightness"] = "scale"
    digits: list[Annotated[int, Field(ge=0, le=9)]] | None = Field(
        None,
        min_length=3,
        max_length=3,
        description="Which gain, keep and lose; by default drawn by the seed.",
    )
    seed: int = Field(0, ge=0, lt=1 << 31, description="Another seed, another sequence.")
    frames: int = Field(50, ge=2, le=_MOST_FRAMES)
    models: list[int] | None = Field(
        None, min_length=1, max_length=MOST_MODELS, description="Models to ask; all by default."
    )


def film_setting(canvas: Setting, factor: Literal["scale", "brightness"]) -> Setting:
    """The paper's set of a factor, brought to a canvas: its ranges, or less where the canvas is small.

    Examples
    --------
    >>> play = Setting(name="play", factor="scale", scale=(0.5, 1.0))
    >>> film_setting(play, "scale").scale, film_setting(play, "brightness").brightness
    ((1.0, 3.0), (0.0, 1.0))
    """
    room = canvas.canvas / (2 * DIGIT_SIDE)  # the scale at which two digits side by side fill it
    common: dict[str, Any] = {"name": "film", "colour": canvas.colour, "canvas": canvas.canvas}
    if factor == "scale":
        most = min(3.0, room)
        return Setting(factor="scale", scale=(most / 3, most), **common)
    still = min(1.0, room)
    return Setting(factor="brightness", scale=(still, still), brightness=(0.0, 1.0), **common)


def film_probe(asked: Shooting, canvas: Setting, digits: Digits) -> Probe:
    """The paper's adjusting sequence for a request; see `data.adjusting_sequences`.

    Colours are constant, because changing ones would flicker.

    Examples
    --------
    >>> from gaussianmlr.data import load_digits
    >>> play = Setting(name="play", factor="scale", scale=(0.5, 1.0))
    >>> probe = film_probe(Shooting(digits=[5, 4, 8], frames=3), play, load_digits("test", "embedded"))
    >>> probe.labels.tolist(), probe.significance[0].tolist()
    ([[5, 4, 8]], [[1.0, 2.0, 3.0], [2.0, 2.0, 2.0], [3.0, 2.0, 1.0]])
    """
    setting = film_setting(canvas, asked.factor)
    return adjusting_sequences(
        setting,
        count=1,
        frames=asked.frames,
        seed=asked.seed,
        digits=digits,
        labels=asked.digits,
        steady=True,
    )


def sheet(images: Bytes) -> Bytes:
    """Frames [N, channels, side, side] as one image [channels, height, width], ten in a row.

    Examples
    --------
    >>> sheet(np.zeros((12, 1, 4, 4), np.uint8)).shape
    (1, 8, 40)
    """
    count, channels, high, wide = images.shape
    across = min(count, _WIDE)
    down = -(-count // across)
    found = np.zeros((down * across, channels, high, wide), np.uint8)
    found[:count] = images
    grid = found.reshape(down, across, channels, high, wide)
    return np.ascontiguousarray(grid.transpose(2, 0, 3, 1, 4).reshape(channels, down * high, across * wide))


def followed(probe: Probe, answers: Sequence[Prediction]) -> dict[str, Any]:
    """The JSON of a film: digits, true significances and orders, and each model's scores and orders.

    Parameters
    ----------
    probe : Probe
        Of one sequence.
    answers : sequence of Prediction
        Predictions for its frames, one per model; column d is the digit d.
    """
    return {
        "factor": probe.setting.factor,
        "range": getattr(probe.setting, probe.setting.factor),
        "digits": probe.labels[0].tolist(),
        "roles": ROLES,
        "true": probe.significance[0].tolist(),
        "orders": to_text(probe.ranks, range(10)),
        "answers": [_track(probe, answer) for answer in answers],
    }


def _track(probe: Probe, answer: Prediction) -> dict[str, Any]:
    """Scores and sigmas [frames, 3] of the digits in a film, orders, and how well the scores follow."""
    columns = probe.labels[0]
    scores = answer.scores if answer.raw is None else answer.significance
    return {
        "significance": scores[:, columns].tolist(),
        "sigma": None if answer.raw is None else answer.sigma[:, columns].tolist(),
        "scale": answer.scale,
        "orders": answer.orders,
        "numbers": follow_score(scores[None, :, columns], probe.significance),
    }

"""Predictions as frames, and as dicts for JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from gaussianmlr.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

    from gaussianmlr.model.prediction import Prediction

__all__ = ["dict_of", "frame_of"]


def frame_of(prediction: Prediction, more: Sequence[str], confidence: float | None) -> pd.DataFrame:
    """`Prediction.to_frame`."""
    import pandas as pd

    count, width = prediction.scores.shape
    table: dict[str, Any] = {
        "instance": np.repeat(pd.Index(prediction.names, dtype=object if count == 0 else None), width),
        "label": np.tile(np.array(prediction.labels, dtype=object), count),
    }
    table |= {name: values.ravel() for name, values in _columns(prediction, more, confidence).items()}
    return pd.DataFrame(table)


def dict_of(prediction: Prediction, more: Sequence[str], confidence: float | None) -> dict[str, Any]:
    """`Prediction.to_dict`."""
    columns = {name: values.tolist() for name, values in _columns(prediction, more, confidence).items()}
    partial = [] if confidence is None else prediction.partial_text(confidence)
    instances = []
    for row, (name, order) in enumerate(zip(prediction.names or (), prediction.orders)):
        labels = {
            label: {key: values[row][place] for key, values in columns.items()}
            for place, label in enumerate(prediction.labels)
        }
        sure = {"partial": partial[row]} if partial else {}
        instances.append({"name": _plain(name), "order": order, **sure, "labels": labels})
    scale = {} if prediction.scale is None else {"scale": prediction.scale}
    return {"method": prediction.method, **scale, "labels": list(prediction.labels), "instances": instances}


def _columns(
    prediction: Prediction, more: Sequence[str], confidence: float | None
) -> dict[str, npt.NDArray[Any]]:
    found: dict[str, npt.NDArray[Any]] = {"rank": prediction.ranks, "score": prediction.scores}
    if prediction.raw is not None:
        found |= {"significance": prediction.significance, "sigma": prediction.sigma}
    found["p_relevant"] = prediction.p_relevant
    for name in more:
        if name not in ("p_first", "expected_rank"):
            raise DataError(f"no column {name!r}; further ones are 'p_first' and 'expected_rank'")
        found[name] = getattr(prediction, name)
    if confidence is not None:
        found["rank_low"], found["rank_high"] = prediction.rank_interval(confidence)
    return found


def _plain(name: Any) -> Any:
    """A name as JSON knows it: whole numbers and texts; anything else as its text."""
    if isinstance(name, np.integer):
        return int(name)
    return name if isinstance(name, str | int) and not isinstance(name, np.generic) else str(name)

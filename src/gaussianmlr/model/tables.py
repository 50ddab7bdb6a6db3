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

__all__ = ["FURTHER", "columns_of", "dict_of", "frame_of", "places_of", "plain"]

FURTHER = ("p_first", "expected_rank", "degree")  # columns on request


def frame_of(
    prediction: Prediction, more: Sequence[str], confidence: float | None, top: int | None
) -> pd.DataFrame:
    """`Prediction.to_frame`."""
    import pandas as pd

    count, places = len(prediction), places_of(prediction, top)
    kind = object if count == 0 else None
    table: dict[str, Any] = {
        "instance": np.repeat(pd.Index(prediction.names, dtype=kind), places.shape[1]),
        "label": np.array(prediction.labels, dtype=object)[places].ravel(),
    }
    columns = columns_of(prediction, more, confidence, places, whole=top is None)
    return pd.DataFrame(table | {name: values.ravel() for name, values in columns.items()})


def dict_of(
    prediction: Prediction, more: Sequence[str], confidence: float | None, top: int | None
) -> dict[str, Any]:
    """`Prediction.to_dict`."""
    places = places_of(prediction, top)
    found = columns_of(prediction, more, confidence, places, whole=top is None)
    columns = {name: values.tolist() for name, values in found.items()}
    partial = [] if confidence is None else prediction.partial_text(confidence, top)
    instances = []
    for row, (name, order) in enumerate(zip(prediction.names or (), prediction.orders)):
        labels = {
            prediction.labels[place]: {key: values[row][number] for key, values in columns.items()}
            for number, place in enumerate(places[row].tolist())
        }
        sure = {"partial": partial[row]} if partial else {}
        instances.append({"name": plain(name), "order": order, **sure, "labels": labels})
    scale = {} if prediction.scale is None else {"scale": prediction.scale}
    known = [prediction.labels[place] for place in np.unique(places).tolist()]
    return {"method": prediction.method, **scale, "labels": known, "instances": instances}


def places_of(prediction: Prediction, top: int | None) -> npt.NDArray[np.int64]:
    """Columns [N, top] of the labels to give."""
    if top is not None:
        return prediction.top_places(top)
    return np.broadcast_to(np.arange(len(prediction.labels)), prediction.scores.shape)


def columns_of(
    prediction: Prediction,
    more: Sequence[str],
    confidence: float | None,
    places: npt.NDArray[np.int64],
    *,
    whole: bool,
) -> dict[str, npt.NDArray[Any]]:
    """The numbers of the labels at these places [N, P], column by column."""
    found: dict[str, npt.NDArray[Any]] = {"rank": prediction.ranks, "score": prediction.scores}
    if prediction.raw is not None:
        found |= {"significance": prediction.significance, "sigma": prediction.sigma}
    found["p_relevant"] = prediction.p_relevant
    for name in more:
        if name not in FURTHER:
            raise DataError(f"no column {name!r}; further ones are {', '.join(FURTHER)}")
        found[name] = getattr(prediction, name)
    if whole:
        if confidence is not None:
            found["rank_low"], found["rank_high"] = prediction.rank_interval(confidence)
        return found
    return {name: np.take_along_axis(values, places, 1) for name, values in found.items()}


def plain(name: Any) -> Any:
    """A name as JSON knows it: whole numbers and texts; anything else as its text."""
    if isinstance(name, np.integer):
        return int(name)
    return name if isinstance(name, str | int) and not isinstance(name, np.generic) else str(name)

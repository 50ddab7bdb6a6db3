"""Per-instance values of a cell: scores and ranks of its test instances, compressed beside its JSON file.

Scores are float32 with the last bits of the mantissa dropped wherever that changes neither the order of an
instance's labels nor the side of zero they are on: every metric stays what it is, at half the size.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gaussianmlr import metrics
from gaussianmlr._utils.files import write_bytes
from gaussianmlr.data.readers.arrays import load_npz
from gaussianmlr.errors import DataError

__all__ = ["MEASURES", "Values", "measured", "measures_of", "read_values", "thinned", "write_values"]

Floats = npt.NDArray[np.float64]
_DROPPED = 13  # bits of the mantissa, which leaves the ten of half precision
_MOST = 1 << 30  # bytes of a file of values; more would be a mistake


@dataclass(frozen=True)
class Values:
    """Scores [N, K] whose zero is the threshold, true ranks [N, K], and the names of the instances."""

    scores: npt.NDArray[np.float32]
    ranks: npt.NDArray[np.int16]
    ids: tuple[str, ...] = ()  # of pictures; images of Ranked MNIST are known by their place


# Means over instances; micro F1 alone is not one.
MEASURES: Mapping[str, Callable[..., Any]] = {
    "tau_b": metrics.kendall_tau_b,
    "spearman_rho": metrics.spearman_rho,
    "gamma": metrics.gamma,
    "hamming_loss": metrics.hamming_loss,
    "max1_error": metrics.max1_error,
    "f1_instance": lambda scores, ranks, reduction: metrics.f1(
        scores, ranks, average="instance", reduction=reduction
    ),
    "positives_tau": metrics.positives_tau,
}


def measured(values: Values) -> dict[str, float]:
    """The paper's six metrics, F1 per instance, and tau-b among the positives; as fractions.

    Examples
    --------
    >>> values = Values(np.float32([[3.0, 1.5, -2.0, -7.0]]), np.int16([[2, 1, 0, 0]]))
    >>> found = measured(values)
    >>> found["tau_b"], found["f1_instance"], found["positives_tau"]
    (1.0, 1.0, 1.0)
    """
    found = metrics.evaluate(values.scores, values.ranks)
    for name in ("f1_instance", "positives_tau"):
        found[name] = float(MEASURES[name](values.scores, values.ranks, reduction="mean"))
    return found


def measures_of(values: Values) -> dict[str, tuple[Floats, Floats]]:
    """Per metric, a numerator and a denominator per instance: the metric is the ratio of their sums.

    Examples
    --------
    >>> values = Values(np.float32([[3.0, -1.0], [1.0, 2.0]]), np.int16([[2, 1], [1, 2]]))
    >>> {name: float(above.sum() / below.sum()) for name, (above, below) in measures_of(values).items()}["f1"]
    0.8571428571428571
    """
    ordered, known = _orders_positives(values.ranks), values.ranks >= 0
    found: dict[str, tuple[Floats, Floats]] = {}
    for name, measure in MEASURES.items():
        weights: Floats = np.asarray(ordered if name == "positives_tau" else known.any(1), dtype=np.float64)
        each: Floats = np.asarray(measure(values.scores, values.ranks, reduction="none"), dtype=np.float64)
        found[name] = (each * weights, weights)
    said, true = (values.scores > 0) & known, values.ranks > 0
    hits: Floats = np.sum(said & true, axis=1, dtype=np.float64)
    misses: Floats = np.sum((said != true) & known, axis=1, dtype=np.float64)
    found["f1"] = (hits, hits + misses / 2)
    return found


def _orders_positives(ranks: npt.NDArray[np.int16]) -> npt.NDArray[np.bool_]:
    """Whether two positives of an instance have different ranks."""
    least = np.where(ranks > 0, ranks, np.iinfo(np.int16).max).min(1)
    found: npt.NDArray[np.bool_] = (ranks > 0).any(1) & (ranks.max(1) > least)
    return found


def thinned(scores: npt.ArrayLike) -> npt.NDArray[np.float32]:
    """Scores with short mantissas, but for instances whose order or signs that would change.

    Examples
    --------
    >>> thinned([[1.00001, 2.71828], [1.00001, 1.00002]]).tolist() == [
    ...     [1.0, 2.71875],
    ...     [float(np.float32(1.00001)), float(np.float32(1.00002))],
    ... ]
    True
    """
    exact = np.ascontiguousarray(scores, dtype=np.float32)
    bits = exact.view(np.uint32)
    kept = np.uint32(0xFFFFFFFF) << np.uint32(_DROPPED)
    short = ((bits + np.uint32(1 << (_DROPPED - 1))) & kept).view(np.float32)
    short = np.where(np.isfinite(short) & np.isfinite(exact), short, exact)
    same = (np.sign(short) == np.sign(exact)).all(1) & (_places(short) == _places(exact)).all(1)
    found: npt.NDArray[np.float32] = np.where(same[:, None], short, exact)
    return found


def _places(scores: npt.NDArray[np.float32]) -> npt.NDArray[np.int64]:
    """The place of every label in its instance's order; tied labels share theirs."""
    order = np.argsort(scores, axis=1, kind="stable")
    ordered = np.take_along_axis(scores, order, 1)
    steps = np.zeros(scores.shape, dtype=np.int64)
    steps[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    places = np.empty_like(steps)
    np.put_along_axis(places, order, steps.cumsum(1), 1)
    return places


def write_values(file: Path, values: Values) -> dict[str, Any]:
    """Write values as a compressed NPZ, and return what a cell says of it: name, checksum, size."""
    parts: dict[str, Any] = {"scores": thinned(values.scores), "ranks": values.ranks.astype(np.int16)}
    if values.ids:
        parts["ids"] = np.array(values.ids)
    stream = io.BytesIO()
    np.savez_compressed(stream, **parts)
    data = stream.getvalue()
    write_bytes(file, data)
    return {"file": file.name, "instances": len(values.ranks), "sha256": hashlib.sha256(data).hexdigest()}


def read_values(folder: Path, facts: Mapping[str, Any]) -> Values | None:
    """The values of a cell by its facts; None for cells from before cells kept them.

    Raises
    ------
    DataError
        If the file is missing, or not the one that the cell was written with.
    """
    about = facts.get("values")
    if about is None:
        return None
    file = folder / Path(str(about["file"])).name
    try:
        if file.stat().st_size > _MOST:
            raise ValueError("it is too large")
        data = file.read_bytes()
        if hashlib.sha256(data).hexdigest() != about["sha256"]:
            raise ValueError("its checksum is wrong: it was changed")
        parts = load_npz(file)
        return Values(parts["scores"], parts["ranks"], tuple(parts.get("ids", np.array([])).tolist()))
    except (OSError, ValueError, KeyError) as error:
        raise DataError(
            f"{file}: the values of a cell cannot be read ({error}); restore it, or remove the cell"
        ) from None

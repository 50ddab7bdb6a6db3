"""The inputs of a model, stored with it, and how files and rows become tensors."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

import numpy as np
import torch
from torch import Tensor

from gaussianmlr._utils.magnitude import LARGEST, LARGEST_INPUT, expected_below, refuse_large
from gaussianmlr.errors import DataError, shorten

__all__ = ["Inputs", "columns_of", "number_of", "read_row", "read_rows", "scaled", "scaling_of"]


class Inputs(TypedDict, total=False):
    """What a model takes: kind, channels or columns, and how files become tensors."""

    kind: str  # "image" or "table"
    channels: int
    size: list[int]  # height and width of the training images
    columns: list[str]  # of a table
    preprocess: dict[str, Any]  # how image files were read
    scaling: dict[str, list[float]]  # mean and std that table columns were standardised by


def columns_of(inputs: Inputs) -> list[str]:
    """The columns of a table that a model takes: their names, or their numbers."""
    return inputs.get("columns") or [str(number) for number in range(inputs["channels"])]


def scaling_of(features: Any, weights: Any = None) -> dict[str, list[float]]:
    """Mean and standard deviation per column, by which `scaled` standardises.

    Sparse columns are not centred, so that they stay sparse; constant columns have the deviation 1.

    Examples
    --------
    >>> scaling_of(np.array([[1.0, 5.0], [3.0, 5.0]]))
    {'mean': [2.0, 5.0], 'std': [1.0, 1.0]}
    """
    sparse = hasattr(features, "toarray")
    if weights is None and not sparse:
        values = np.asarray(features, dtype=np.float64)
        mean, std = values.mean(0), values.std(0)
        std[std < 1e-12] = 1.0
        return {"mean": mean.tolist(), "std": std.tolist()}
    from sklearn.preprocessing import StandardScaler

    scaler = StandardScaler(with_mean=not sparse).fit(features, sample_weight=weights)
    mean = np.zeros(features.shape[1]) if sparse else scaler.mean_
    return {"mean": mean.tolist(), "std": scaler.scale_.tolist()}


def scaled(features: Any, inputs: Inputs) -> Tensor:
    """Rows of a table, dense or sparse, as the model takes them: standardised, in single precision.

    Examples
    --------
    >>> scaled([[3.0, 5.0]], {"scaling": {"mean": [1.0, 5.0], "std": [2.0, 1.0]}})
    tensor([[1., 0.]])
    """
    raw = np.asarray(features.toarray() if hasattr(features, "toarray") else features, dtype=np.float64)
    values, unit = raw, ""
    if "scaling" in inputs:
        with np.errstate(over="ignore"):  # refused below
            values = (raw - np.array(inputs["scaling"]["mean"])) / np.array(inputs["scaling"]["std"])
        unit = "standard deviations from the mean of the training data"
    refuse_large(values, inputs.get("columns"), most=LARGEST_INPUT, raw=raw, unit=unit)
    return torch.from_numpy(values.astype(np.float32))


def read_row(row: Mapping[str, Any], inputs: Inputs) -> Tensor:
    """One row of numbers or texts by column, as the model takes it.

    Examples
    --------
    >>> read_row({"b": 2, "a": "1.5", "id": "x"}, {"channels": 2, "columns": ["a", "b"]})
    tensor([1.5000, 2.0000])
    """
    return scaled([[number_of(row, column) for column in columns_of(inputs)]], inputs)[0]


def read_rows(rows: Sequence[Any], inputs: Inputs) -> Tensor:
    """Rows of JSON, lists or objects, as the model takes them.

    Raises
    ------
    DataError
        With the row, if a column is missing or is not a finite number.
    """
    columns, numbers = columns_of(inputs), []
    for place, row in enumerate(rows):
        if isinstance(row, list):
            if len(row) != len(columns):
                raise DataError(f"row {place} has {len(row):,} numbers; expected {len(columns):,}")
            row = dict(zip(columns, row))
        elif not isinstance(row, dict):
            raise DataError(f"row {place} is {shorten(row)}; expected a list of numbers, or an object")
        try:
            numbers.append([number_of(row, column) for column in columns])
        except DataError as error:
            raise DataError(f"row {place}: {error}") from None
    return scaled(numbers, inputs)


def number_of(row: Mapping[str, Any], column: str) -> float:
    """The finite number in a column of a row, or an error that shows what is there.

    Examples
    --------
    >>> number_of({"a": "1.5"}, "a")
    1.5
    >>> number_of({"a": "two"}, "a")
    Traceback (most recent call last):
        ...
    gaussianmlr.errors.DataError: 'two' in column 'a'; expected a number
    """
    if column not in row:
        raise DataError(f"no {column!r}; expected a number")
    value = row[column]
    try:
        number = float(value)
    except OverflowError:  # an integer beyond every float
        raise DataError(f"{shorten(value)} in column {column!r} {expected_below(LARGEST)}") from None
    except (TypeError, ValueError):
        shown = "nothing" if value is None or value == "" else shorten(value)
        raise DataError(f"{shown} in column {column!r}; expected a number") from None
    if not math.isfinite(number):
        raise DataError(f"{value} in column {column!r}; expected a finite number")
    if abs(number) > LARGEST:
        raise DataError(f"{number:g} in column {column!r} {expected_below(LARGEST)}")
    return number

"""The inputs of a model, stored with it, and how files and rows become tensors."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import chain, compress
from typing import Any, TypedDict

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from gaussianmlr._utils.magnitude import LARGEST, LARGEST_INPUT, expected_below, refuse_large
from gaussianmlr.data.cells import EXPECTED
from gaussianmlr.data.columns import (
    Column,
    Encoding,
    Unseen,
    channels_of,
    codes_of,
    fit_columns,
    parse_encoding,
    spans,
    unseen,
)
from gaussianmlr.errors import DataError, shorten

__all__ = [
    "Inputs",
    "RowReader",
    "columns_of",
    "encoding_of",
    "read_row",
    "read_rows",
    "scaled",
    "scaling_of",
    "shown_inputs",
    "table_inputs",
    "text_column",
]


class Inputs(TypedDict, total=False):
    """What a model takes: kind, channels or columns, and how files become tensors."""

    kind: str  # "image" or "table"
    channels: int
    size: list[int]  # height and width of the training images
    columns: list[str]  # of a table
    preprocess: dict[str, Any]  # how image files were read
    encoding: list[dict[str, Any]]  # per column of a table, what it holds; numbers without gaps if left out
    scaling: dict[str, list[float]]  # mean and std that the channels of a table were standardised by


def columns_of(inputs: Inputs) -> list[str]:
    """The columns of a table that a model takes: their names, or their numbers."""
    return inputs.get("columns") or [str(number) for number in range(inputs["channels"])]


def text_column(inputs: Inputs) -> str | None:
    """The column of texts of a model that takes nothing else; None for any other model.

    Examples
    --------
    >>> text_column({"kind": "table", "channels": 1, "columns": ["height"]}) is None
    True
    """
    encoding = encoding_of(inputs) or ()
    alone = len(encoding) == 1 and encoding[0].text is not None
    return columns_of(inputs)[0] if alone else None


def shown_inputs(inputs: Inputs) -> dict[str, Any]:
    """Inputs for people, without vocabularies and scales of texts, which have thousands of entries."""
    found: dict[str, Any] = dict(inputs)
    encoding = encoding_of(inputs) or ()
    if not any(one.text is not None for one in encoding):
        return found
    plain = [one.text is None for one in encoding for _ in range(one.width)]
    if "scaling" in found and any(plain):
        found["scaling"] = {name: list(compress(each, plain)) for name, each in inputs["scaling"].items()}
    else:
        found.pop("scaling", None)
    found["encoding"] = [
        one.to_dict() | ({} if one.text is None else {"text": one.text.described()}) for one in encoding
    ]
    return found


def encoding_of(inputs: Inputs) -> Encoding | None:
    """What the columns of a table hold; None for numbers without gaps."""
    return parse_encoding(inputs.get("encoding"))


def table_inputs(
    features: Any,
    names: Sequence[str],
    columns: Encoding | None,
    weights: Any = None,
    *,
    scale: bool = True,
    encoder: str | None = None,
) -> Inputs:
    """Inputs of a model of a table, from its training rows.

    Parameters
    ----------
    features : array or sparse matrix [N, D]
        Training rows.
    names : sequence of str
        Names of the columns.
    columns : Encoding, optional
        What the columns hold; numbers if left out.
    weights : array [N], optional
        Weights of the rows.
    scale : bool
        Whether columns are standardised.
    encoder : str, optional
        The backbone that takes texts, see `columns.fit_columns`.

    Examples
    --------
    >>> found = table_inputs(np.array([[1.0, 0.0], [3.0, np.nan]]), ["a", "b"], None)
    >>> found["channels"], found["encoding"]
    (2, [{'kind': 'number'}, {'kind': 'number', 'gaps': True}])
    """
    encoding = fit_columns(features, columns, encoder)
    found: Inputs = {"kind": "table", "channels": features.shape[1], "columns": list(names)}
    if encoding is not None:
        found["encoding"] = [column.to_dict() for column in encoding]
        found["channels"] = sum(column.width for column in encoding)
        features = channels_of(_without_texts(features, columns, encoding), encoding)
    if scale:
        found["scaling"] = scaling_of(features, weights)
        place = 0
        for column in encoding or ():
            if column.kind in ("category", "text"):
                span = slice(place, place + column.width)
                found["scaling"]["mean"][span] = [0.0] * column.width
                found["scaling"]["std"][span] = [1.0] * column.width
            place += column.width
    return found


def _without_texts(features: Any, columns: Encoding | None, encoding: Encoding) -> Any:
    """Rows with zeros in place of texts, as many as they have tokens; their scale is not learned."""
    if columns is None or all(one.text is None for one in encoding):
        return features
    matrix = np.asarray(features, dtype=np.float64)
    parts = [
        matrix[:, span] if one.text is None else np.zeros((len(matrix), one.width))
        for span, one in zip(spans(columns), encoding)
    ]
    return np.concatenate(parts, axis=1)


def scaling_of(features: Any, weights: Any = None) -> dict[str, list[float]]:
    """Mean and standard deviation per column, by which `scaled` standardises; gaps do not count.

    Sparse columns are not centred, so that they stay sparse; constant columns have the deviation 1.

    Examples
    --------
    >>> scaling_of(np.array([[1.0, 5.0], [3.0, 5.0]]))
    {'mean': [2.0, 5.0], 'std': [1.0, 1.0]}
    """
    sparse = hasattr(features, "toarray")
    if weights is None and not sparse:
        values = np.asarray(features, dtype=np.float64)
        gaps = np.isnan(values)
        if gaps.any():
            values = np.ma.masked_array(values, gaps)
            mean, std = (np.ma.filled(one, 0.0) for one in (values.mean(0), values.std(0)))
        else:
            mean, std = values.mean(0), values.std(0)
        std[std < 1e-12] = 1.0
        return {"mean": mean.tolist(), "std": std.tolist()}
    from sklearn.preprocessing import StandardScaler

    with np.errstate(invalid="ignore"):  # a column of gaps alone
        scaler = StandardScaler(with_mean=not sparse).fit(features, sample_weight=weights)
    mean = np.zeros(features.shape[1]) if sparse else np.nan_to_num(scaler.mean_)  # NaN if all are gaps
    return {"mean": mean.tolist(), "std": np.nan_to_num(scaler.scale_, nan=1.0).tolist()}


def scaled(features: Any, inputs: Inputs, encoding: Encoding | None = None) -> Tensor:
    """Rows of a table, dense or sparse, as the model takes them: standardised, in single precision.

    Codes of categories stay as they are. A gap stays NaN where the training rows had gaps, and counts as the
    mean elsewhere.

    Parameters
    ----------
    features : array or sparse matrix [N, D]
        Rows, coded as the model codes them.
    inputs : Inputs
        What the model takes.
    encoding : Encoding, optional
        That of the inputs, where it is at hand.

    Examples
    --------
    >>> scaled([[3.0, 5.0]], {"scaling": {"mean": [1.0, 5.0], "std": [2.0, 1.0]}})
    tensor([[1., 0.]])
    """
    encoding = encoding_of(inputs) if encoding is None else encoding
    dense = features.toarray() if hasattr(features, "toarray") else features
    raw = channels_of(np.asarray(dense, dtype=np.float64), encoding)
    values, unit = raw, ""
    if "scaling" in inputs:
        # JSON may hold whole numbers beyond 64 bits, which would make arrays of objects.
        mean, std = (np.array(inputs["scaling"][name], dtype=np.float64) for name in ("mean", "std"))
        with np.errstate(over="ignore"):  # refused below
            values = (raw - mean) / std
        unit = "standard deviations from the mean of the training data"
    gaps = np.isnan(values)
    if gaps.any():
        values = _filled(values, gaps, inputs, encoding)
    refuse_large(values, _channel_names(inputs, encoding), most=LARGEST_INPUT, raw=raw, unit=unit)
    return torch.from_numpy(values.astype(np.float32))


def _filled(values: Any, gaps: Any, inputs: Inputs, encoding: Encoding | None) -> Any:
    """Gaps as the mean, in columns that are numbers without gaps in the training rows."""
    kept = np.zeros(values.shape[1], dtype=bool)
    if encoding is not None:
        kept = np.repeat(
            [one.gaps or one.kind == "category" for one in encoding], [one.width for one in encoding]
        )
    if "scaling" not in inputs and (gaps & ~kept).any():
        row, place = np.argwhere(gaps & ~kept)[0].tolist()
        names = _channel_names(inputs, encoding) or list(map(str, range(values.shape[1])))
        message = f"nothing in column {names[place]!r}; expected a number, as the model knows no mean"
        raise DataError.of_rows("rows have gaps", [(row, message)], len(values))
    return np.where(gaps & ~kept, 0.0, values)


def _channel_names(inputs: Inputs, encoding: Encoding | None) -> Sequence[str] | None:
    names = inputs.get("columns")
    if names is None or encoding is None:
        return names
    return [name for name, one in zip(names, encoding) for _ in range(one.width)]


class RowReader:
    """Reads rows of cells by column, as numbers or texts, for a model with these inputs.

    Parameters
    ----------
    inputs : Inputs
        What the model takes.
    tally : Counter, optional
        Counts cells that no training row had, see `columns.unseen`.

    Attributes
    ----------
    columns : list of str
        The columns of the model.
    texts : list of str
        Those of texts.

    Examples
    --------
    >>> reader = RowReader({"channels": 2, "columns": ["a", "b"]})
    >>> reader.tensor([reader.coded({"b": 2, "a": "1.5", "id": "x"})])
    tensor([[1.5000, 2.0000]])
    """

    def __init__(self, inputs: Inputs, tally: Unseen | None = None) -> None:
        self.tally = tally
        self.inputs, self.columns, self.encoding = inputs, columns_of(inputs), encoding_of(inputs)
        self.texts = [name for name, one in zip(self.columns, self.encoding or ()) if one.text is not None]
        self._held = tuple(zip(self.columns, self.encoding or (Column(),) * len(self.columns)))

    def coded(self, row: Mapping[str, Any]) -> list[float]:
        """The numbers that stand for the cells of a row."""
        found = [_cell(row, name, column) for name, column in self._held]
        if self.tally is not None:
            for numbers, (name, column) in zip(found, self._held):
                if message := unseen(numbers[0], column):
                    self.tally[name, message] += 1
        return list(chain.from_iterable(found))

    def read(self, rows: Sequence[Any]) -> Tensor:
        """Rows of JSON, lists or objects, as the model takes them; see `read_rows`."""
        found = self._plain(rows)
        return self.tensor(
            [self._listed(place, row) for place, row in enumerate(rows)] if found is None else found
        )

    def _plain(self, rows: Sequence[Any]) -> npt.NDArray[np.float64] | None:
        """Rows of numbers alone, at once; None if a cell must be looked at by itself."""
        if any(one.kind != "number" for one in self.encoding or ()):
            return None
        try:
            lists = [row if type(row) is list else [row[name] for name in self.columns] for row in rows]
            if not set(map(type, chain.from_iterable(lists))) <= {float, int}:
                return None
            found = np.array(lists, dtype=np.float64)
        except (KeyError, TypeError, ValueError, OverflowError):
            return None
        fits = found.shape == (len(rows), len(self.columns)) and not (np.abs(found) > LARGEST).any()
        return found if fits else None

    def _listed(self, place: int, row: Any) -> list[float]:
        if isinstance(row, list):
            if len(row) != len(self.columns):
                raise DataError(f"row {place} has {len(row):,} cells; expected {len(self.columns):,}")
            row = dict(zip(self.columns, row))
        elif not isinstance(row, dict):
            raise DataError(f"row {place} is {shorten(row)}; expected a list of cells, or an object")
        try:
            return self.coded(row)
        except DataError as error:
            raise DataError(f"row {place}: {error}") from None

    def tensor(self, rows: Sequence[Sequence[float]] | npt.NDArray[np.float64]) -> Tensor:
        """Coded rows as the model takes them."""
        return scaled(np.asarray(rows, dtype=np.float64), self.inputs, self.encoding)


def read_row(row: Mapping[str, Any], inputs: Inputs) -> Tensor:
    """One row of numbers or texts by column, as the model takes it.

    Examples
    --------
    >>> read_row({"b": 2, "a": "1.5", "id": "x"}, {"channels": 2, "columns": ["a", "b"]})
    tensor([1.5000, 2.0000])
    """
    reader = RowReader(inputs)
    return reader.tensor([reader.coded(row)])[0]


def read_rows(rows: Sequence[Any], inputs: Inputs) -> Tensor:
    """Rows of JSON, lists or objects, as the model takes them.

    Raises
    ------
    DataError
        With the row, if a column is missing or its cell is of another kind.
    """
    return RowReader(inputs).read(rows)


def _cell(row: Mapping[str, Any], name: str, column: Column) -> list[float]:
    """The numbers that stand for a cell, or an error that shows what is there."""
    if name not in row:
        raise DataError(f"no {name!r}; expected {EXPECTED[column.kind]}")
    value = row[name]
    try:
        numbers = codes_of(value, column)
    except DataError:
        raise DataError(f"{shorten(value)} in column {name!r}; expected {EXPECTED[column.kind]}") from None
    number = numbers[0]
    if math.isinf(number):
        if isinstance(value, int):  # beyond every float
            raise DataError(f"{shorten(value)} in column {name!r} {expected_below(LARGEST)}")
        raise DataError(f"{value} in column {name!r}; expected a finite number")
    if abs(number) > LARGEST:
        raise DataError(f"{number:g} in column {name!r} {expected_below(LARGEST)}")
    return numbers

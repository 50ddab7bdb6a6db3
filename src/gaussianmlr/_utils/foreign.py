"""Frames of other libraries as pandas frames."""

from __future__ import annotations

from typing import Any

__all__ = ["as_pandas", "is_polars"]


def is_polars(value: object) -> bool:
    """Whether a value is a frame or series of polars.

    Examples
    --------
    >>> import polars as pl
    >>> is_polars(pl.DataFrame({"a": [1]})), is_polars([1])
    (True, False)
    """
    kind = type(value)
    return kind.__module__.partition(".")[0] == "polars" and kind.__name__ in (
        "DataFrame",
        "LazyFrame",
        "Series",
    )


def as_pandas(value: Any) -> Any:
    """A frame or series of polars as one of pandas; anything else unchanged.

    polars' own conversion needs pyarrow, which is optional here.

    Examples
    --------
    >>> import polars as pl
    >>> as_pandas(pl.DataFrame({"a": [1, None], "b": ["x", "y"]}))
         a  b
    0  1.0  x
    1  NaN  y
    """
    if not is_polars(value):
        return value
    import pandas as pd

    if type(value).__name__ == "LazyFrame":
        value = value.collect()
    if type(value).__name__ == "Series":
        return pd.Series(_values(value), name=value.name or None)
    columns = [pd.Series(_values(column), name=column.name) for column in value.get_columns()]
    return pd.concat(columns, axis=1) if columns else pd.DataFrame()


def _values(column: Any) -> Any:
    """Numbers and dates as arrays, where gaps are NaN; everything else as a list of objects."""
    import numpy as np
    import polars as pl

    if isinstance(column.dtype, pl.Decimal):
        column = column.cast(pl.Float64)
    if column.dtype.is_numeric() or column.dtype.is_temporal() or column.dtype == pl.Boolean:
        values = column.to_numpy()
        return np.array(values)  # polars' arrays are read-only
    found = np.empty(len(column), dtype=object)
    found[:] = column.to_list()
    return found

"""The one gate for ranks of several rankers."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from gaussianmlr.errors import DataError, shorten
from gaussianmlr.orders.reading import UNKNOWN, IntArray


def check_ranks(ranks: npt.ArrayLike) -> IntArray:
    """The ranks [N, R, K] as integers; refuse what is not."""
    try:
        table = np.asarray(ranks)
    except (TypeError, ValueError) as error:
        raise DataError(f"expected ranks of shape [N, R, K]: {error}") from None
    if table.ndim != 3 or table.shape[1] == 0 or table.shape[2] == 0:
        raise DataError(
            f"expected ranks of shape [N, R, K] (instances, rankers, labels), got shape {list(table.shape)}"
        )
    if table.dtype.kind not in "biuf":
        raise DataError(f"expected ranks to be integers, got {table.dtype} such as {shorten(table.flat[0])}")
    whole = np.isfinite(table) & (table >= UNKNOWN) if table.dtype.kind == "f" else table >= UNKNOWN
    bad = ~whole | (np.where(whole, table, 0) % 1 != 0)
    problems = [
        (
            f"{row}, ranker {ranker}",
            f"{table[row, ranker, label]} for label {label}; expected 0, 1, 2, ..., or -1",
        )
        for row, ranker, label in np.argwhere(bad).tolist()
    ]
    if problems:
        raise DataError.of_rows("ranks cannot be read", problems, table.size)
    return table.astype(np.int64)

"""Ranks of very many labels, of which each instance has a few: rows of a sparse matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from gaussianmlr.errors import DataError, shorten

__all__ = ["SparseRanks"]

IntArray = npt.NDArray[np.int64]


class SparseRanks:
    """Ranks [N, K] that hold the relevant (and the unknown) labels of each instance alone.

    Parameters
    ----------
    matrix : scipy sparse matrix [N, K]
        Ranks: larger = more significant, equal = tied, -1 = unknown; what is not stored is irrelevant. Ranks
        of an instance may have gaps, which are closed. Entries of one place are summed, as scipy does.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> ranks = SparseRanks(csr_array([[0, 5, 2, 0], [0, 0, 0, 1]]))
    >>> ranks.dense([0])
    array([[0, 2, 1, 0]])
    >>> ranks[[1]].shape, len(ranks)
    ((1, 4), 2)
    """

    ndim = 2

    def __init__(self, matrix: Any) -> None:
        from scipy.sparse import csr_array

        found = csr_array(matrix, copy=True)  # sorted in place, which must not reach the caller's
        if found.ndim != 2 or found.shape[1] == 0:
            raise DataError(f"expected sparse ranks of shape [N, K] with K >= 1, got {list(found.shape)}")
        found.sum_duplicates()
        self.matrix = csr_array((_checked(found), found.indices, found.indptr), shape=found.shape)

    @property
    def shape(self) -> tuple[int, int]:
        """Number of instances and of labels."""
        rows, labels = self.matrix.shape
        return int(rows), int(labels)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> SparseRanks:
        """The ranks of some instances: a slice, indices or booleans."""
        found = object.__new__(SparseRanks)
        found.matrix = self.matrix[rows if isinstance(rows, slice) else np.asarray(rows)]
        return found

    def dense(self, rows: Any = slice(None)) -> IntArray:
        """Ranks [n, K] of some instances as an array."""
        found: IntArray = self[rows].matrix.toarray()
        return found


def _checked(matrix: Any) -> IntArray:
    """The stored ranks as dense ones, 1 = the least significant of the instance."""
    values = np.asarray(matrix.data)
    if values.dtype.kind not in "biuf":
        raise DataError(f"expected sparse ranks to be numbers, got {values.dtype}")
    row = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    with np.errstate(invalid="ignore"):
        bad = np.flatnonzero(~((values >= -1) & (values == np.round(values)) & np.isfinite(values)))
    if len(bad):
        told = [(int(row[one]), f"{shorten(values[one].item())}; expected -1, 0, 1, 2, ...") for one in bad]
        raise DataError.of_rows("sparse ranks cannot be used", told, matrix.shape[0])
    order = np.lexsort((values, row))
    sorted_ranks, sorted_row = values[order], row[order]
    new_row = np.r_[True, sorted_row[1:] != sorted_row[:-1]][: len(order)]
    step = np.r_[True, sorted_ranks[1:] != sorted_ranks[:-1]][: len(order)] | new_row
    steps = np.cumsum(step & (sorted_ranks > 0))  # places, counted on over all rows
    before = np.maximum.accumulate(np.where(new_row, np.r_[0, steps[:-1]][: len(order)], 0))
    found = np.empty(len(order), dtype=np.int64)
    found[order] = np.where(sorted_ranks > 0, steps - before, sorted_ranks)
    return found

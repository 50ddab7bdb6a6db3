"""Data of very many labels or columns, of which each instance has a few."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from gaussianmlr._utils.magnitude import refuse_large
from gaussianmlr.data.dataset import RankedData
from gaussianmlr.data.statistics import describe_ranks
from gaussianmlr.errors import DataError
from gaussianmlr.orders import SparseRanks, check_labels
from gaussianmlr.orders.grammar import Buckets, write

__all__ = ["MOST_DENSE", "SparseRankedData", "dense_rows", "made_dense"]

MOST_DENSE = 1 << 25  # ranks and features of instances that are dense at once


class SparseRankedData(RankedData):
    """`RankedData` whose ranks and features are sparse matrices; only batches become dense.

    Parameters
    ----------
    ranks : SparseRanks or sparse matrix [N, K]
        One order per instance.
    labels : sequence of str
        The names of the K columns.
    features : sparse matrix [N, D]
        Numbers; what is not stored is 0.

    Notes
    -----
    Of the other parameters of `RankedData`, it takes `feature_names`, `split`, `weights`, `ids`, `source`,
    `notes` and `read_from`.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> ranks, features = csr_array([[0, 2, 1], [1, 0, 0]]), csr_array([[0.5, 0.0], [0.0, 1.0]])
    >>> data = SparseRankedData(ranks, ("a", "b", "c"), features)
    >>> data
    SparseRankedData: 2 instances of 2 features, 3 labels (a, b, c)
    >>> data.subset([0]).orders()
    ['b > c']
    """

    ranks: SparseRanks  # type: ignore[assignment]  # what uses it takes either form, or is refused
    features: Any

    def __post_init__(self) -> None:
        from scipy.sparse import csr_array

        labels = check_labels(self.labels)
        ranks = self.ranks if isinstance(self.ranks, SparseRanks) else SparseRanks(self.ranks)
        if ranks.shape[1] != len(labels):
            raise DataError(f"expected {len(labels)} columns of ranks, one per label, got {ranks.shape[1]}")
        features = csr_array(self.features)
        if features.shape[0] != len(ranks):
            raise DataError(f"expected {len(ranks)} rows of features, one per order, got {features.shape[0]}")
        if not np.isfinite(features.data).all():
            raise DataError("features hold NaN or infinite numbers; expected finite ones")
        refuse_large(features)
        plain = {"images": self.images, "by_ranker": self.by_ranker, "encoding": self.encoding}
        if unused := [name for name, value in plain.items() if value is not None]:
            raise DataError(f"sparse data has no {unused[0]}; expected features and one order per instance")
        self._set("labels", labels)
        self._set("ranks", ranks)
        self._set("features", features)
        self._set("ids", tuple(map(str, range(len(ranks)) if self.ids is None else self.ids)))
        self._set("notes", tuple(self.notes))
        self._set("split", None if self.split is None else np.asarray(self.split, dtype=np.str_))
        names = None if self.feature_names is None else tuple(map(str, self.feature_names))
        self._set("feature_names", names)
        sizes = {"split": len(ranks), "weights": len(ranks), "ids": len(ranks)}
        for name, size in {**sizes, "feature_names": features.shape[1]}.items():
            value = getattr(self, name)
            if value is not None and len(value) != size:
                raise DataError(f"expected {size} {name}, got {len(value)}")

    def orders(self) -> list[str]:
        """The orders as texts."""
        matrix, found = self.ranks.matrix, []
        for start, stop in zip(matrix.indptr[:-1].tolist(), matrix.indptr[1:].tolist()):
            ranks, places = matrix.data[start:stop].tolist(), matrix.indices[start:stop].tolist()
            buckets = Buckets([[] for _ in range(max(ranks, default=0))], [])
            for rank, place in sorted(zip(ranks, places), key=lambda pair: pair[1]):
                if rank:
                    bucket = buckets.ranked[-rank] if rank > 0 else buckets.unknown
                    bucket.append(self.labels[place])
            found.append(write(buckets))
        return found

    def fingerprint(self, *, files: bool = True) -> str:
        """A SHA-256 of the contents, the same on every machine."""
        digest = hashlib.sha256(repr((self.ranks.shape, self.features.shape, self.labels)).encode())
        for matrix in (self.ranks.matrix, self.features):
            for part, kind in ((matrix.indptr, "<i8"), (matrix.indices, "<i8"), (matrix.data, "")):
                stored = kind or ("<f8" if part.dtype.kind == "f" else "<i8")
                digest.update(np.ascontiguousarray(part, dtype=stored).tobytes())
        digest.update("\0".join((*(self.ids or ()), *(self.feature_names or ()))).encode())
        for part in (self.split, self.weights):
            digest.update(b"" if part is None else "\0".join(map(str, part.tolist())).encode())
        return digest.hexdigest()

    def describe(self) -> dict[str, Any]:
        """Counts of labels, positives, ties, unknowns and splits, ready for JSON."""
        found = {
            "instances": len(self),
            "kind": self.kind,
            **describe_ranks(self.ranks, self.labels),
            "splits": self.splits,
            "features": int(self.features.shape[1]),
            "values": int(self.features.nnz),
        }
        if self.weights is not None and len(self):
            found["weights"] = {"sum": float(self.weights.sum()), "max": float(self.weights.max())}
        return found


def dense_rows(data: SparseRankedData) -> int:
    """How many instances may be dense at once.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> labels = tuple(map(str, range(90_000)))
    >>> dense_rows(SparseRankedData(csr_array((3, 90_000)), labels, csr_array((3, 9))))
    372
    """
    return max(1, MOST_DENSE // (len(data.labels) + int(data.features.shape[1])))


def made_dense(data: Any, what: str) -> Any:
    """The data in dense arrays, for what needs all of it at once; refused where it is too large.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> data = SparseRankedData(csr_array([[1, 0]]), ("a", "b"), csr_array([[0.5]]), source="a.txt")
    >>> made_dense(data, "compare")
    RankedData: 1 instances of 1 features, 2 labels (a, b), from a.txt
    """
    if not isinstance(data, SparseRankedData):
        return data
    if len(data) > (most := dense_rows(data)):
        raise DataError(
            f"{data.source}: {what} has all of {len(data):,} instances x {len(data.labels):,} labels and "
            f"{data.features.shape[1]:,} columns in memory; expected at most {most:,} such instances. train, "
            "tune, evaluate and predict take more"
        )
    kept = {
        name: getattr(data, name) for name in ("feature_names", "split", "weights", "ids", "source", "notes")
    }
    return RankedData(
        data.ranks.dense(), data.labels, data.features.toarray(), read_from=data.read_from, **kept
    )

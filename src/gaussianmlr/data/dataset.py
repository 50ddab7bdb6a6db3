"""`RankedData`, which every reader returns: inputs with their orders."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from gaussianmlr._moved import moved_name
from gaussianmlr._utils.magnitude import LARGEST_WEIGHT, refuse_large
from gaussianmlr.data.columns import Column, Encoding
from gaussianmlr.data.statistics import describe_columns, describe_rankers, describe_ranks
from gaussianmlr.errors import DataError, shorten
from gaussianmlr.orders import check_labels, check_ranks, to_text

if TYPE_CHECKING:
    from gaussianmlr.data.readers.layout import ReadFrom

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.floating[Any]]
ORDERS_ALONE = "holds orders alone; expected feature columns or pictures to learn from"


@dataclass(frozen=True, eq=False, repr=False)
class RankedData:
    """Inputs, the order of each, and where they come from.

    Parameters
    ----------
    ranks : array-like [N, K]
        One order per instance; the orders of several rankers are already aggregated.
    labels : sequence of str
        The names of the K columns.
    features : array [N, D], optional
        Numbers, NaN for a gap. Data has features, or images, or orders alone.
    images : sequence of path-like, optional
        One file per instance, read when needed.
    feature_names : sequence of str, optional
        The names of the D columns.
    by_ranker : array-like [N, R, K], optional
        The order of each ranker. A ranker who did not see an instance has -1 everywhere.
    rankers : sequence of str, optional
        The names of the R rankers, ``"1"`` to ``"R"`` if left out.
    split : sequence of str, optional
        The part each instance belongs to, such as ``"train"`` and ``"test"``.
    weights : array-like [N], optional
        How much an instance counts, finite and not negative.
    ids : sequence of str, optional
        One name per instance, ``"0"`` to ``"N-1"`` if left out.
    source : str
        What was read.
    notes : sequence of str
        What the reader left out or decided, and why.
    read_from : ReadFrom, optional
        The file, if a reader read one.
    encoding : tuple of Column, optional
        What the D columns hold, see `gaussianmlr.data.columns`; numbers if left out.

    Examples
    --------
    >>> import numpy as np
    >>> from gaussianmlr.data import RankedData
    >>> data = RankedData(
    ...     ranks=[[2, 1, 0], [0, 1, 1], [0, 0, 1]],
    ...     labels=["mountain", "sky", "sun"],
    ...     features=np.eye(3),
    ...     split=["train", "train", "test"],
    ... )
    >>> data
    RankedData: 3 instances of 3 features, 3 labels (mountain, sky, sun), split train 2, test 1
    >>> data.subset("train").orders()
    ['mountain > sky', 'sky = sun']
    >>> data.describe()["positives"]["mean"]
    1.6666666666666667
    """

    ranks: IntArray
    labels: tuple[str, ...]
    features: FloatArray | None = None
    images: tuple[Path, ...] | None = None
    feature_names: tuple[str, ...] | None = None
    by_ranker: IntArray | None = None
    rankers: tuple[str, ...] | None = None
    split: npt.NDArray[np.str_] | None = None
    weights: npt.NDArray[np.float64] | None = None
    ids: tuple[str, ...] | None = None
    source: str = ""
    notes: tuple[str, ...] = ()
    read_from: ReadFrom | None = None
    encoding: Encoding | None = None

    def __post_init__(self) -> None:
        labels = check_labels(self.labels)
        ranks = (
            np.zeros((0, len(labels)), dtype=np.int64) if len(self.ranks) == 0 else check_ranks(self.ranks)
        )
        if ranks.shape[1] != len(labels):
            raise DataError(f"expected {len(labels)} columns of ranks, one per label, got {ranks.shape[1]}")
        if self.features is not None and self.images is not None:
            raise DataError("an instance is features or an image, not both; give one of them")
        self._set("labels", labels)
        self._set("ranks", ranks)
        self._set("features", _check_features(self.features, len(ranks), self.feature_names))
        self._set("images", None if self.images is None else tuple(Path(image) for image in self.images))
        self._set("feature_names", _check_names(self.feature_names, self.features))
        self._set("encoding", _check_encoding(self.encoding, self.features))
        self._set("by_ranker", _check_by_ranker(self.by_ranker, ranks.shape))
        self._set("rankers", _check_rankers(self.rankers, self.by_ranker))
        self._set("split", None if self.split is None else np.asarray(self.split, dtype=np.str_))
        self._set("weights", _check_weights(self.weights))
        self._set("ids", tuple(map(str, range(len(ranks)) if self.ids is None else self.ids)))
        self._set("notes", tuple(self.notes))
        for name in ("images", "split", "weights", "ids"):
            value = getattr(self, name)
            if value is not None and len(value) != len(ranks):
                raise DataError(f"expected {len(ranks)} {name}, one per instance, got {len(value)}")

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)  # the dataclass is frozen

    def __len__(self) -> int:
        return len(self.ranks)

    @property
    def kind(self) -> str:
        """What the inputs are: ``"features"``, ``"images"`` or ``"orders"`` (no inputs)."""
        if self.features is not None:
            return "features"
        return "orders" if self.images is None else "images"

    @property
    def splits(self) -> dict[str, int]:
        """How many instances each part has, in the order of their first instance."""
        return {} if self.split is None else dict(Counter(self.split.tolist()))

    def orders(self) -> list[str]:
        """The orders as texts."""
        return to_text(self.ranks, self.labels) if len(self) else []

    def subset(self, which: str | npt.ArrayLike) -> RankedData:
        """Some of the instances.

        Parameters
        ----------
        which : str or array-like
            The name of a split, a mask of N booleans, or the numbers of the instances wanted.
        """
        index = self._index(which)
        rows = ("ranks", "features", "by_ranker", "split", "weights")
        changes: dict[str, Any] = {
            name: getattr(self, name)[index] for name in rows if getattr(self, name) is not None
        }
        for name in ("images", "ids"):
            value = getattr(self, name)
            changes[name] = None if value is None else tuple(value[i] for i in index.tolist())
        return replace(self, **changes)

    def _index(self, which: str | npt.ArrayLike) -> npt.NDArray[np.intp]:
        if isinstance(which, str):
            if self.split is None or which not in self.splits:
                raise DataError(f"there is no split {which!r}; the data has {list(self.splits) or 'none'}")
            return np.flatnonzero(self.split == which)
        chosen = np.asarray(which)
        if chosen.dtype == bool:
            if chosen.shape != (len(self),):
                raise DataError(f"expected a mask of {len(self)} booleans, got shape {list(chosen.shape)}")
            return np.flatnonzero(chosen)
        if chosen.size == 0:
            return np.zeros(0, dtype=np.intp)
        if chosen.ndim != 1 or chosen.dtype.kind not in "iu":
            raise DataError(
                f"expected the name of a split, a mask or a list of numbers, got {shorten(which)}"
            )
        if chosen.min() < -len(self) or chosen.max() >= len(self):
            raise DataError(f"expected numbers below {len(self)}, got {shorten(chosen.tolist())}")
        return chosen.astype(np.intp) % len(self)

    def fingerprint(self, *, files: bool = True) -> str:
        """A SHA-256 of the contents, the same on every machine.

        Parameters
        ----------
        files : bool
            Read the image files. If False, only their ids count: fast, but blind to changed
            pictures. Paths, `source` and `notes` never count.
        """
        digest = hashlib.sha256()

        def add(name: str, value: bytes) -> None:
            digest.update(f"{name} {len(value)}\n".encode())
            digest.update(value)

        for field in fields(self):
            value = getattr(self, field.name)
            if value is None or field.name in ("images", "source", "notes", "read_from"):
                continue
            if field.name == "encoding":
                if any(column.kind in ("category", "date") for column in value):  # others are as they are
                    add(field.name, json.dumps([column.to_dict() for column in value]).encode())
            elif isinstance(value, tuple):
                add(field.name, "\0".join(value).encode())
            elif field.name == "split":
                add(field.name, "\0".join(value.tolist()).encode())
            else:
                add(f"{field.name} {list(value.shape)}", _bytes(value))
        if self.images is not None and files:
            for image in self.images:
                add("image", _file_digest(image))
        return digest.hexdigest()

    def describe(self) -> dict[str, Any]:
        """Counts of labels, positives, ties, unknowns, splits and rankers, ready for JSON.

        A label's `first` counts the instances it leads, shared firsts in equal parts; its
        `mean_place` is the mean place (1 = most significant, ties share the mean of their places) where
        it applies. `ties` counts instances with two relevant labels of one rank.
        """
        found: dict[str, Any] = {
            "instances": len(self),
            "kind": self.kind,
            **describe_ranks(self.ranks, self.labels),
            "splits": self.splits,
        }
        if self.features is not None:
            found["features"] = int(self.features.shape[1])
            if columns := describe_columns(self.features, self.encoding, self.feature_names):
                found["columns"] = columns
        if self.weights is not None and len(self):
            found["weights"] = {"sum": float(self.weights.sum()), "max": float(self.weights.max())}
        if self.by_ranker is not None and self.rankers is not None:
            found["rankers"] = describe_rankers(self.by_ranker, self.rankers)
        return found

    def __repr__(self) -> str:
        if self.features is not None:
            what = f"{len(self)} instances of {self.features.shape[1]} features"
        else:
            what = f"{len(self)} {self.kind}"
        shown = ", ".join(self.labels[:5]) + (", ..." if len(self.labels) > 5 else "")
        parts = [what, f"{len(self.labels)} labels ({shown})"]
        if self.rankers is not None:
            parts.append(f"{len(self.rankers)} rankers")
        if self.split is not None:
            parts.append("split " + ", ".join(f"{name} {count}" for name, count in self.splits.items()))
        if self.source:
            parts.append(f"from {self.source}")
        return f"{type(self).__name__}: {', '.join(parts)}"


def _bytes(values: npt.NDArray[Any]) -> bytes:
    """The same bytes for the same numbers, whatever the type and the machine."""
    if values.dtype.kind == "f" and np.isnan(values).any():  # NaN has many forms
        values = np.where(np.isnan(values), np.nan, values)
    return np.ascontiguousarray(values, dtype="<f8" if values.dtype.kind == "f" else "<i8").tobytes()


def _file_digest(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").digest()
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from None


def _check_features(features: Any, count: int, names: Iterable[str] | None) -> FloatArray | None:
    if features is None:
        return None
    try:
        matrix = np.asarray(features)
        if matrix.dtype not in (np.float32, np.float64):
            matrix = matrix.astype(np.float64)
    except (TypeError, ValueError):
        raise DataError(
            "expected features to be numbers; `from_arrays` reads texts, categories and dates"
        ) from None
    if matrix.ndim != 2 or len(matrix) != count:
        raise DataError(f"expected features of shape [{count}, D], got shape {list(matrix.shape)}")
    if np.isinf(matrix).any():
        rows, columns = np.nonzero(np.isinf(matrix))
        problems = [
            (row, f"{matrix[row, column]} in column {column}; expected a finite number")
            for row, column in dict(zip(rows.tolist(), columns.tolist())).items()
        ]
        raise DataError.of_rows("rows of features are not finite", problems, count)
    named = () if names is None else tuple(names)
    refuse_large(matrix, named if len(named) == matrix.shape[1] else None)
    return matrix


def _check_encoding(encoding: Encoding | None, features: FloatArray | None) -> Encoding | None:
    if encoding is None or features is None or all(column == Column() for column in encoding):
        return None
    if len(encoding) != features.shape[1]:
        raise DataError(f"expected {features.shape[1]} columns in the encoding, got {len(encoding)}")
    return tuple(encoding)


def _check_names(names: Iterable[str] | None, features: FloatArray | None) -> tuple[str, ...] | None:
    if names is None or features is None:
        return None
    found = tuple(map(str, names))
    if len(found) != features.shape[1]:
        raise DataError(f"expected {features.shape[1]} feature names, got {len(found)}")
    return found


def _check_by_ranker(by_ranker: Any, shape: tuple[int, ...]) -> IntArray | None:
    if by_ranker is None:
        return None
    array = np.asarray(by_ranker)
    if array.ndim != 3 or (len(array), array.shape[2]) != shape:
        expected = f"[{shape[0]}, rankers, {shape[1]}]"
        raise DataError(f"expected ranks by ranker of shape {expected}, got shape {list(array.shape)}")
    return check_ranks(array.reshape(-1, shape[1])).reshape(array.shape)


def _check_rankers(rankers: Iterable[object] | None, by_ranker: IntArray | None) -> tuple[str, ...] | None:
    if by_ranker is None:
        return None
    count = by_ranker.shape[1]
    names = tuple(map(str, range(1, count + 1) if rankers is None else rankers))
    if len(names) != count or len(set(names)) != count:
        raise DataError(f"expected {count} different names of rankers, got {shorten(names)}")
    return names


def _check_weights(weights: Any) -> npt.NDArray[np.float64] | None:
    if weights is None:
        return None
    try:
        array = np.asarray(weights, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError(f"expected weights to be numbers, got {shorten(weights)}") from None
    bad = np.flatnonzero(~((array >= 0) & (array <= LARGEST_WEIGHT)))
    if array.ndim != 1:
        raise DataError(f"expected one weight per instance, got shape {list(array.shape)}")
    if bad.size:
        problems = [
            (row, f"weight {array[row]}; expected a number from 0 to {LARGEST_WEIGHT:g}")
            for row in bad.tolist()
        ]
        raise DataError.of_rows("weights cannot be used", problems, len(array))
    return array


def __getattr__(name: str) -> object:
    return moved_name(__name__, name)

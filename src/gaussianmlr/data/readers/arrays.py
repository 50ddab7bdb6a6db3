"""Data from arrays: given ones, and those in NPZ and MATLAB files, read within limits."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np
import numpy.typing as npt

from gaussianmlr._utils.bounded import check_file, check_unpacked
from gaussianmlr.data.dataset import RankedData
from gaussianmlr.data.matrices import read_matrix
from gaussianmlr.data.readers.frames import suffix_of
from gaussianmlr.data.readers.grades import Grading
from gaussianmlr.data.readers.instances import aggregated
from gaussianmlr.data.readers.layout import Missing
from gaussianmlr.data.readers.matlab import load_mat
from gaussianmlr.data.readers.parts import LABEL_PREFIX, check_wanted
from gaussianmlr.errors import DataError, shorten
from gaussianmlr.orders import to_ranks


def load_arrays(path: Path, names: Sequence[str] = ("features", "labels")) -> dict[str, npt.NDArray[Any]]:
    """The arrays of an NPZ file, or those of some names of a MATLAB file."""
    return load_mat(path, names) if suffix_of(path) == ".mat" else load_npz(path)


def load_npz(path: Path) -> dict[str, npt.NDArray[Any]]:
    """The arrays of an NPZ file by name."""
    check_file(path, "an NPZ file")
    try:
        with zipfile.ZipFile(path) as archive:  # no more of an entry is read than it declares
            check_unpacked(path, sum(entry.file_size for entry in archive.infolist()))
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except DataError:
        raise
    except Exception as error:  # a damaged file can make zip, zlib and numpy raise anything
        raise DataError(f"{path}: cannot be read as NPZ: {error}") from None


def from_arrays(
    features: npt.ArrayLike | None,
    orders: object,
    *,
    labels: Iterable[str] | None = None,
    threshold: float | None = None,
    tolerance: float = 0.0,
    missing: Missing = "error",
    aggregate: str = "mean_rank",
    split: Sequence[str] | None = None,
    weights: npt.ArrayLike | None = None,
    ids: Sequence[object] | None = None,
    feature_names: Sequence[str] | None = None,
    source: str = "arrays",
) -> RankedData:
    """Data from arrays.

    Parameters
    ----------
    features : array-like or frame [N, D], or None
        Numbers; texts, booleans and dates are read as in `read_table`. NaN and None are gaps.
    orders : array-like [N, K] or [N, R, K], or any form `to_ranks` reads
        Ranks; ranks of R rankers; or, with a threshold, grades.
    labels : iterable of str, optional
        The names of the K labels.
    threshold, tolerance, missing, aggregate
        As in `read_table`.
    split, weights, ids, feature_names, source
        As in `RankedData`.

    Examples
    --------
    >>> import numpy as np
    >>> from gaussianmlr.data import from_arrays
    >>> from_arrays(np.eye(2), [[0.7, 0.3, 0.0], [0.0, 0.5, 0.5]], labels="abc", threshold=0).orders()
    ['a > b', 'b = c']
    """
    wanted = None if labels is None else tuple(labels)
    grading = Grading(threshold, tolerance, missing)
    if threshold is not None and wanted is None and hasattr(orders, "columns"):
        wanted = tuple(map(str, orders.columns))
    array = _several(orders)
    by_ranker = None
    if array is not None:
        by_ranker = grading.ranks(array.reshape(-1, array.shape[2])).reshape(array.shape)
        orders = aggregated(by_ranker, aggregate)
    elif threshold is not None or missing != "error":
        orders = grading.ranks(orders)
    ranks, found = to_ranks(orders, wanted)
    matrix = None if features is None else read_matrix(features)
    if feature_names is None and (named := getattr(features, "columns", None)) is not None:
        feature_names = list(map(str, named))
    if matrix is not None and matrix.used is not None and feature_names is not None:
        feature_names = [feature_names[place] for place in matrix.used]
    return RankedData(
        ranks=ranks,
        labels=found,
        features=None if matrix is None else matrix.values,
        encoding=None if matrix is None else matrix.columns,
        notes=() if matrix is None else matrix.notes,
        by_ranker=by_ranker,
        split=None if split is None else np.asarray(split, dtype=np.str_),
        weights=None if weights is None else np.asarray(weights),
        ids=None if ids is None else tuple(map(str, ids)),
        feature_names=None if feature_names is None else tuple(feature_names),
        source=source,
    )


def _several(orders: Any) -> npt.NDArray[Any] | None:
    """Numbers of three dimensions as an array: the orders of several rankers."""
    if hasattr(orders, "detach"):
        orders = orders.detach().cpu().numpy()
    if isinstance(orders, list | tuple):
        try:
            orders = np.asarray(orders)
        except ValueError:  # ragged
            return None
    is_array = isinstance(orders, np.ndarray) and orders.ndim == 3 and orders.dtype.kind in "biuf"
    return orders if is_array else None


def read_mat(
    path: str | os.PathLike[str],
    *,
    features: str = "features",
    degrees: str = "labels",
    labels: Sequence[str] | None = None,
    threshold: float = 0.0,
    tolerance: float = 0.0,
) -> RankedData:
    """Read a label-distribution data set: a MATLAB file with features and degrees of labels.

    Parameters
    ----------
    path : path-like
        A MATLAB file of version 4 to 7.2.
    features, degrees : str
        The names of the matrices [N, D] and [N, K].
    labels : sequence of str, optional
        The K names, ``"1"`` to ``"K"`` if left out: such files carry none.
    threshold, tolerance : float
        Labels with a degree above the threshold are relevant; degrees that differ by no more than
        the tolerance tie.

    Examples
    --------
    >>> import tempfile, numpy as np, scipy.io
    >>> from gaussianmlr.data import read_mat
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     scipy.io.savemat(f"{folder}/a.mat", {"features": np.eye(2), "labels": [[0.7, 0.3], [0.0, 1.0]]})
    ...     read_mat(f"{folder}/a.mat", labels=["joy", "fear"]).orders()
    ['joy > fear', 'fear']
    """
    path = Path(path)
    check_wanted(labels)
    arrays = load_mat(path, (features, degrees))
    grades = np.asarray(arrays[degrees])
    names = labels or [str(number + 1) for number in range(grades.shape[-1])]
    return _named(path, arrays[features], grades, labels=names, threshold=threshold, tolerance=tolerance)


def array_frame(path: Path, labels: Sequence[str] | None) -> Any | None:
    """The arrays of an NPZ or MATLAB file as a frame, so that every bad row can be named; or None."""
    import pandas as pd

    arrays = load_arrays(path)
    if suffix_of(path) == ".mat":  # degrees under the name "labels", and nothing else
        names_of = {"features": "features", "labels": "ranks"}
        arrays = {new: arrays[old] for old, new in names_of.items() if old in arrays}
    features, orders = arrays.get("features"), arrays.get("ranks")
    if not _is_matrix(features) or not _is_matrix(orders) or len(features) != len(orders):
        return None
    names = _labels_of(arrays, labels) or [str(number + 1) for number in range(orders.shape[1])]
    if len(names) != orders.shape[1]:
        return None
    parts = {name: arrays[name] for name in ("split", "weight", "id") if name in arrays}
    columns = [
        pd.DataFrame(features, columns=[str(column) for column in range(features.shape[1])]),
        pd.DataFrame(orders, columns=[LABEL_PREFIX + str(name) for name in names]),
    ]
    return pd.concat([*columns, pd.DataFrame(parts)] if parts else columns, axis=1)


def _is_matrix(values: Any) -> TypeGuard[npt.NDArray[Any]]:
    return values is not None and values.ndim == 2 and values.dtype.kind != "O"


def _labels_of(arrays: Mapping[str, Any], labels: Sequence[str] | None) -> Sequence[str] | None:
    """The labels that were given, or those of the file."""
    return arrays["labels"].tolist() if labels is None and "labels" in arrays else labels


def read_npz(path: Path, labels: Sequence[str] | None, grading: Grading, aggregate: str) -> RankedData:
    """Read an NPZ file with the arrays ``features`` and ``ranks``."""
    arrays = load_npz(path)
    for name in ("features", "ranks"):
        if name not in arrays:
            raise DataError(f"{path}: no array {name!r}; it holds {shorten(sorted(arrays))}")
    return _named(
        path,
        arrays["features"],
        arrays["ranks"],
        labels=_labels_of(arrays, labels),
        threshold=grading.threshold,
        tolerance=grading.tolerance,
        missing=grading.missing,
        aggregate=aggregate,
        split=arrays.get("split"),
        weights=arrays.get("weight"),
        ids=arrays.get("id"),
    )


def _named(path: Path, features: Any, orders: Any, **settings: Any) -> RankedData:
    try:
        return from_arrays(features, orders, source=path.name, **settings)
    except DataError as error:
        raise DataError(f"{path}: {error}") from None

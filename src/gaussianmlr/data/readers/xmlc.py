"""Sparse rows with sparse labels: the format of the extreme classification repository and LibMultiLabel."""

from __future__ import annotations

import os
import re
from array import array
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gaussianmlr._utils.bounded import lines_of, open_text
from gaussianmlr._utils.files import write_text
from gaussianmlr.data.dataset import RankedData
from gaussianmlr.data.problems import Problems
from gaussianmlr.data.readers.layout import Layout, ReadFrom
from gaussianmlr.data.sparse import MOST_DENSE, SparseRankedData
from gaussianmlr.errors import DataError, shorten
from gaussianmlr.orders.sparse import SparseRanks

__all__ = ["SparseData", "is_xmlc", "ranked_xmlc", "read_xmlc", "row_of", "write_xmlc", "xmlc_lines"]

_SUFFIXES = (".txt", ".svm", ".libsvm", ".xmlc")
_LINE = re.compile(r"(\d+(,\d+)*)?\s+\d+:\S|\d+:\S", re.ASCII)
_LABELS_ALONE = re.compile(r"\s*(\d+(,\d+)*)?\s*", re.ASCII)
_LOOKED_AT = 1 << 16  # characters that tell what a file is
_DENSE_LABELS = 300  # up to which data is dense
_LARGEST = 10_000_000  # columns and labels of a file: every one has a name


class SparseData(NamedTuple):
    """Rows and orders of a file, as `GaussianMLR.fit` takes them."""

    X: Any
    """Features, a CSR array [N, D]."""
    y: Any
    """Ranks, a CSR array of integers [N, K]: larger = more significant, not stored = irrelevant."""


def read_xmlc(
    path: str | os.PathLike[str],
    *,
    ordered: bool = False,
    features: int | None = None,
    labels: int | None = None,
) -> SparseData:
    r"""Read lines ``LABEL,LABEL,... COLUMN:VALUE COLUMN:VALUE ...``, gzipped if the name ends in ``.gz``.

    Labels and columns are numbers from 0 up. The extreme classification repository puts the numbers of
    instances, columns and labels in the first line; LibMultiLabel and LIBSVM have no such line. A line that
    begins with a blank has no label. Empty lines at the end are skipped.

    Parameters
    ----------
    path : path-like
        The file.
    ordered : bool
        Whether the labels of a line come in an order of significance, the first one most significant. By
        default they are all tied: the files of the repository say which labels apply and no more.
    features, labels : int, optional
        Numbers of columns and labels where the first line does not say them, such as those of the training
        file when a test file is read; by default the largest number in the file and one.

    References
    ----------
    Bhatia et al., "The extreme classification repository: multi-label datasets and code", 2016.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "train.txt"
    >>> _ = file.write_text("2 3 5\n4,1 0:0.5 2:1\n 1:2\n")
    >>> data = read_xmlc(file, ordered=True)
    >>> data.X.toarray().tolist(), data.y.toarray().tolist()
    ([[0.5, 0.0, 1.0], [0.0, 2.0, 0.0]], [[0, 1, 0, 0, 2], [0, 0, 0, 0, 0]])
    """
    file, problems = Path(path), Problems()
    found = _read(file, problems, ordered, features, labels)
    problems.raise_errors(str(file))
    return found


def is_xmlc(path: Path) -> bool:
    """Whether a file begins as `read_xmlc` reads it.

    Examples
    --------
    >>> is_xmlc(Path("table.csv"))
    False
    """
    name = path.name.lower().removesuffix(".gz")
    if not name.endswith(_SUFFIXES) or not path.is_file():
        return False
    try:
        with open_text(path, held=False) as stream:
            lines = stream.read(_LOOKED_AT).splitlines()
    except (OSError, UnicodeDecodeError, DataError):  # said by whoever reads it
        return False
    rest = lines[1:] if lines and _header(lines[0]) is not None else lines
    return bool(_LINE.match(next((line for line in rest if not _LABELS_ALONE.fullmatch(line)), "")))


def ranked_xmlc(
    path: Path,
    problems: Problems,
    *,
    labels: Sequence[str] | None = None,
    features: Sequence[str] | None = None,
    layout: Layout | None = None,
) -> RankedData:
    """A file as a data set, sparse above 300 labels or 33 million cells; see `SparseRankedData`.

    Labels and columns are named by their numbers, or have the names that are given. The first label of a
    line is the most significant one where the layout has the order separator ``,``; else they are tied.
    """
    layout = layout or Layout()
    ordered = layout.order_separator is not None
    if layout.order_separator not in (None, ","):
        raise DataError(f"{path}: order_separator is {layout.order_separator!r}; labels stand between commas")
    sizes = [None if known is None else len(known) for known in (features, labels)]
    X, y = _read(path, problems, ordered, *sizes)
    for matrix, wanted, what in ((X, features, "columns"), (y, labels, "labels")):
        if wanted is not None and matrix.shape[1] > len(wanted):
            raise DataError(f"{path}: {matrix.shape[1]:,} {what}; expected {len(wanted):,}")
        if wanted is not None:
            matrix.resize(matrix.shape[0], len(wanted))
    X.sort_indices()
    names = tuple(labels or map(str, range(y.shape[1])))
    columns = tuple(features or map(str, range(X.shape[1])))
    about: dict[str, Any] = {
        "feature_names": columns,
        "source": str(path),
        "read_from": ReadFrom(str(path), layout=layout),
        "notes": () if ordered else ("the labels of a line are tied; --order-separator , orders them",),
    }
    if y.shape[1] <= _DENSE_LABELS and X.shape[0] * X.shape[1] <= MOST_DENSE:
        return RankedData(y.toarray(), names, X.toarray(), **about)
    return SparseRankedData(y, names, X, **about)


def xmlc_lines(path: Path) -> Iterator[str]:
    """The lines of the instances of a file."""
    for number, line in _lines(path):
        if number > 1 or _header(line) is None:
            yield line


def row_of(line: str, width: int) -> Any:
    """The features [1, D] of a line, a CSR array.

    Examples
    --------
    >>> row_of("4,1 0:0.5 2:1", 3).toarray().tolist()
    [[0.5, 0.0, 1.0]]
    """
    from scipy.sparse import csr_array

    columns, values, places, ranks = array("q"), array("d"), array("q"), array("q")
    try:
        _read_line(line, columns, values, places, ranks, False, (width, _LARGEST))
    except ValueError as error:
        raise DataError(str(error)) from None
    where = (np.zeros(len(columns), dtype=np.int64), np.asarray(columns))
    return csr_array((np.asarray(values), where), shape=(1, width))


def _read(
    file: Path, problems: Problems, ordered: bool, features: int | None, labels: int | None
) -> SparseData:
    """The rows of a file that can be used; the others are problems."""
    from scipy.sparse import csr_array

    header, sizes = None, (features or _LARGEST, labels or _LARGEST)
    values, ranks = array("d"), array("q")
    columns, places = array("q"), array("q")
    ends: tuple[array[int], array[int]] = (array("q", [0]), array("q", [0]))
    for number, line in _lines(file):
        if number == 1 and (header := _header(line)) is not None:
            sizes = header[1:]
            if max(sizes) > _LARGEST:
                raise DataError(f"{file}: {shorten(line)}; expected at most {_LARGEST:,} columns and labels")
            continue
        try:
            _read_line(line, columns, values, places, ranks, ordered, sizes)
        except ValueError as error:
            problems.add("feature", f"line {number}", str(error))
        ends[0].append(len(columns))
        ends[1].append(len(places))
    count = len(ends[0]) - 1
    known = (features, labels) if header is None else sizes
    wide, many = (size or max(found, default=0) + 1 for size, found in zip(known, (columns, places)))
    if header is not None and header[0] != count:
        problems.add("row", "line 1", f"{header[0]:,} instances; there are {count:,}")
    if count == 0:
        problems.raise_errors(str(file))
        raise DataError(f"{file}: no instance; expected lines such as '4,1 0:0.5 2:1'")
    X = csr_array((np.asarray(values), np.asarray(columns), np.asarray(ends[0])), shape=(count, wide))
    y = csr_array((np.asarray(ranks), np.asarray(places), np.asarray(ends[1])), shape=(count, many))
    return SparseData(X, y)


def write_xmlc(path: str | os.PathLike[str], X: Any, y: Any, *, header: bool = True) -> None:
    """Write rows and orders as `read_xmlc` reads them, the most significant label of a line first.

    The format has no ties: of tied labels the one with the smaller number comes first. Unknown labels (-1)
    cannot be written.

    Parameters
    ----------
    path : path-like
        The file; it appears when it is whole.
    X : array or sparse matrix [N, D]
        Features; zeros are left out.
    y : array or sparse matrix [N, K]
        Ranks.
    header : bool
        Whether the first line gives the numbers of instances, columns and labels.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_xmlc(f"{folder}/train.txt", [[0.5, 0.0]], [[0, 2, 1]])
    ...     print(Path(f"{folder}/train.txt").read_text(), end="")
    1 2 3
    1,2 0:0.5
    """
    from scipy.sparse import csr_array

    rows, orders = csr_array(X, copy=True), SparseRanks(y).matrix
    rows.sum_duplicates()
    if rows.shape[0] != orders.shape[0]:
        raise DataError(f"X has {rows.shape[0]:,} rows and y {orders.shape[0]:,}; expected the same number")
    if not np.isfinite(rows.data).all():
        raise DataError("X holds NaN or infinite numbers; expected finite ones")
    if (orders.data < 0).any():
        raise DataError("y has unknown labels (-1), which the format cannot hold; expected ranks from 0 up")
    lines = [f"{rows.shape[0]} {rows.shape[1]} {orders.shape[1]}"] if header else []
    for row in range(rows.shape[0]):
        some = slice(orders.indptr[row], orders.indptr[row + 1])
        ranks, places = orders.data[some], orders.indices[some]
        first = [str(places[one]) for one in np.lexsort((places, -ranks)) if ranks[one] > 0]
        cells = slice(rows.indptr[row], rows.indptr[row + 1])
        pairs = [
            f"{column}:{value!r}"
            for column, value in zip(rows.indices[cells].tolist(), rows.data[cells].tolist())
            if value != 0
        ]
        lines.append(f"{','.join(first)} {' '.join(pairs)}")
    write_text(Path(path), "\n".join(lines) + "\n")


def _lines(file: Path) -> Iterator[tuple[int, str]]:
    """The lines of a file with their numbers, without empty ones at its end."""
    empty: list[tuple[int, str]] = []
    number = 0
    with open_text(file, held=False) as stream:
        try:
            for number, line in enumerate(lines_of(stream, str(file)), 1):
                if not line.rstrip("\r\n"):
                    empty.append((number, line))
                    continue
                yield from empty
                empty.clear()
                yield number, line
        except UnicodeDecodeError as error:
            raise DataError(f"{file}, near line {number + 1}: {error}; expected numbers in ASCII") from None


def _header(line: str) -> tuple[int, int, int] | None:
    """Numbers of instances, columns and labels of a first line that has them."""
    words = line.split()
    if len(words) != 3 or not all(word.isascii() and word.isdigit() for word in words):
        return None
    count, width, labels = map(int, words)
    return count, width, labels


def _read_line(
    line: str,
    columns: array[int],
    values: array[float],
    places: array[int],
    ranks: array[int],
    ordered: bool,
    sizes: tuple[int, int],
) -> None:
    """Append a line; raise ValueError with what was expected, given the numbers of columns and labels."""
    words = line.split()
    if not words and not line.rstrip("\r\n"):
        raise ValueError("empty; expected labels and COLUMN:VALUE")
    width, labels = sizes
    named: list[int] = []
    if words and not line[0].isspace() and ":" not in words[0]:
        named = [_number(word, labels, "label") for word in words.pop(0).split(",")]
    if len(set(named)) != len(named):
        raise ValueError(f"a label is there twice in {shorten(named)}")
    cells: dict[int, float] = {}
    for word in words:
        column, _, value = word.partition(":")
        place = _number(column, width, "column")
        try:
            cell = float(value)
        except ValueError:
            cell = float("nan")
        if not np.isfinite(cell) or place in cells:
            raise ValueError(f"{shorten(word)}; expected COLUMN:VALUE with a finite number, each column once")
        cells[place] = cell
    places.extend(named)
    ranks.extend(range(len(named), 0, -1) if ordered else [1] * len(named))
    columns.extend(cells)
    values.extend(cells.values())


def _number(word: str, count: int, what: str) -> int:
    if not (word.isascii() and word.isdigit() and len(word) <= len(str(_LARGEST)) and int(word) < count):
        raise ValueError(f"{what} {shorten(word)}; expected whole numbers from 0 to {count - 1:,}")
    return int(word)

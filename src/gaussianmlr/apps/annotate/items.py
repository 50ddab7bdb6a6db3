"""Readers of items (pictures, texts or rows) and of labels."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from gaussianmlr._utils.bounded import check_file
from gaussianmlr.data.readers.frames import read_frame
from gaussianmlr.data.readers.manifests import locate
from gaussianmlr.errors import DataError, shorten
from gaussianmlr.orders import check_labels

__all__ = ["Found", "Kind", "read_items", "read_labels"]

Kind = Literal["image", "text", "row"]
_TEXTS = ("id", "image", "text", "ranking", "ranker", "split")
_LARGEST = 1 << 24  # bytes of a file of labels
_NOT_SHOWN = ("id", "ranking", "ranker", "split", "weight")


class Found(NamedTuple):
    """Items of one kind: names and contents (a path, a text, or cells by column)."""

    kind: Kind
    source: str
    items: dict[str, Any]


def read_items(source: str | os.PathLike[str]) -> Found:
    r"""Read the items to rank.

    Parameters
    ----------
    source : path-like
        A folder of pictures (with subfolders); or a table (CSV, TSV, JSON lines, Parquet) with a column
        ``image`` (paths below its folder), a column ``text``, or otherwise rows whose cells are shown. Items
        are named by their path, the column ``id``, or the number of the row.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "poems.csv").write_text("id,text\na,an old silent pond\n")
    ...     found = read_items(Path(folder, "poems.csv"))
    >>> found.kind, found.items
    ('text', {'a': 'an old silent pond'})
    """
    path = Path(source)
    if not path.exists():
        raise DataError(f"{path}: does not exist; expected a folder of pictures, a manifest or a table")
    if path.is_dir():
        return Found("image", str(path.resolve()), _pictures(path))
    frame, _ = read_frame(path, _TEXTS)
    rows = frame.to_dict("records")
    if "image" in frame.columns:
        return Found("image", str(path.resolve()), _listed(path, rows))
    kind: Kind = "text" if "text" in frame.columns else "row"
    shown = ["text"] if kind == "text" else [name for name in frame.columns if name not in _NOT_SHOWN]
    if not shown:
        raise DataError(f"{path}: has no column to show; it has {shorten(list(frame.columns))}")
    found: dict[str, Any] = {}
    for number, row in enumerate(rows):
        name = str(row["id"]) if str(row.get("id", "")).strip() else str(number)
        # An instance of several rankers has several rows.
        found.setdefault(
            name, str(row["text"]) if kind == "text" else {key: _cell(row[key]) for key in shown}
        )
    return Found(kind, str(path.resolve()), found)


def _cell(value: Any) -> Any:
    """A cell as JSON; missing values are None, and infinity is a text."""
    if isinstance(value, np.ndarray):
        return str(value.tolist())
    plain = value.item() if hasattr(value, "item") else value
    if isinstance(plain, float) and not math.isfinite(plain):
        return None if math.isnan(plain) else str(plain)
    return plain if plain is None or isinstance(plain, str | int | float | bool) else str(plain)


def _pictures(folder: Path) -> dict[str, str]:
    from gaussianmlr.inference.streams import Unread, located

    found = {}
    for one in located([folder], {"kind": "image", "preprocess": {}}):
        if isinstance(one, Unread):
            found[one.file.relative_to(folder).as_posix()] = str(one.file.resolve())
    if bad := [name for name in found if not _is_text(name)]:
        raise DataError(f"{folder}: the name {shorten(bad[0])} is not UTF-8; rename the file")
    if not found:
        raise DataError(f"{folder}: holds no pictures; expected files such as .jpg, .png or .tif")
    return found


def _is_text(name: str) -> bool:
    """Whether a name is valid UTF-8."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _listed(manifest: Path, rows: list[dict[str, Any]]) -> dict[str, str]:
    found: dict[str, str] = {}
    problems: list[tuple[object, str]] = []
    for number, row in enumerate(rows):
        file, trouble = locate(manifest.parent, str(row["image"]))
        if trouble:
            problems.append((number, f"image {shorten(row['image'])} {trouble}"))
        found[str(row["image"])] = str(file.resolve())
    if problems:
        raise DataError.of_rows(f"rows of {manifest} have no picture", problems, len(rows))
    return found


def read_labels(path: str | os.PathLike[str]) -> tuple[str, ...]:
    r"""Read labels from a file, one per line; empty lines and lines that start with ``#`` are ignored.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "labels.txt").write_text("sky\n\nsea\n")
    ...     read_labels(Path(folder, "labels.txt"))
    ('sky', 'sea')
    """
    file = check_file(path, "a text file with one label per line")
    if (size := file.stat().st_size) > _LARGEST:
        raise DataError(f"{file}: {size:,} bytes; expected a text file with one label per line")
    try:
        lines = [line.strip() for line in file.read_text("utf-8-sig").splitlines()]
    except UnicodeDecodeError as error:
        raise DataError(f"{file}: byte {error.start} is not UTF-8; save the labels as UTF-8") from None
    labels = [line for line in lines if line and not line.startswith("#")]
    if not labels:
        raise DataError(f"{file}: holds no label; expected one per line")
    try:
        return check_labels(labels)
    except DataError as error:
        raise DataError(f"{file}: {error}") from None

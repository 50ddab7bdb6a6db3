"""What people rank labels for: pictures of a folder, texts or rows of a table; and the labels."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Literal, NamedTuple

from gaussianmlr.errors import DataError, shorten
from gaussianmlr.orders import check_labels

__all__ = ["Found", "Kind", "read_items", "read_labels"]

Kind = Literal["image", "text", "row"]
_TEXTS = ("id", "image", "text", "ranking", "ranker", "split")
_NOT_SHOWN = ("id", "ranking", "ranker", "split", "weight")


class Found(NamedTuple):
    """Items of one kind: names, and what is shown of each (a path, a text, or cells by column)."""

    kind: Kind
    source: str
    items: dict[str, Any]


def read_items(source: str | os.PathLike[str]) -> Found:
    r"""Find what there is to rank.

    Parameters
    ----------
    source : path-like
        A folder of pictures (with all below); or a table (CSV, TSV, JSON lines, Parquet) with a column
        ``image`` (paths below its folder), a column ``text``, or else rows whose cells are shown. Items
        are called by their path, or by the column ``id``, or by the number of the row.

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
    from gaussianmlr.data._frames import read_frame

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
    """A cell as JSON keeps it; what is missing is nothing."""
    plain = value.item() if hasattr(value, "item") else value
    if isinstance(plain, float) and plain != plain:
        return None
    return plain if plain is None or isinstance(plain, str | int | float | bool) else str(plain)


def _pictures(folder: Path) -> dict[str, str]:
    from gaussianmlr.streams import Unread, located

    found = {}
    for one in located([folder], {"kind": "image", "preprocess": {}}):
        if isinstance(one, Unread):
            found[one.file.relative_to(folder).as_posix()] = str(one.file.resolve())
    if not found:
        raise DataError(f"{folder}: holds no pictures; expected files such as .jpg, .png or .tif")
    return found


def _listed(manifest: Path, rows: list[dict[str, Any]]) -> dict[str, str]:
    from gaussianmlr.data.manifests import locate

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
    r"""Labels of a file, one a line; empty lines and lines that start with ``#`` do not count.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "labels.txt").write_text("sky\n\nsea\n")
    ...     read_labels(Path(folder, "labels.txt"))
    ('sky', 'sea')
    """
    file = Path(path)
    if not file.is_file():
        what = "is a folder" if file.is_dir() else "does not exist"
        raise DataError(f"{file}: {what}; expected a text file with one label a line")
    try:
        lines = [line.strip() for line in file.read_text("utf-8-sig").splitlines()]
    except UnicodeDecodeError as error:
        raise DataError(f"{file}: byte {error.start} is not UTF-8; save the labels as UTF-8") from None
    labels = [line for line in lines if line and not line.startswith("#")]
    if not labels:
        raise DataError(f"{file}: holds no label; expected one a line")
    try:
        return check_labels(labels)
    except DataError as error:
        raise DataError(f"{file}: {error}") from None

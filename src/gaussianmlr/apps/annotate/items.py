"""Readers of items: pictures, texts or rows."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from gaussianmlr.data.readers.frames import read_frame
from gaussianmlr.data.readers.layout import Layout, match_name
from gaussianmlr.data.readers.manifests import image_column, locate, pictures_below
from gaussianmlr.data.readers.parts import leave_out
from gaussianmlr.errors import DataError, shorten

__all__ = ["Found", "Kind", "read_items"]

Kind = Literal["image", "text", "row"]
_TEXTS = ("id", "image", "text", "ranking", "ranker", "split")
_NOT_SHOWN = ("id", "ranking", "ranker", "split", "weight")


class Found(NamedTuple):
    """Items of one kind: names and contents (a path, a text, or cells by column)."""

    kind: Kind
    source: str
    items: dict[str, Any]


def read_items(source: str | os.PathLike[str], layout: Layout | None = None) -> Found:
    r"""Read the items to rank.

    Parameters
    ----------
    source : path-like
        A folder of pictures (with subfolders); or a table (any that `read_table` reads from a file) with a
        column ``image`` (paths below its folder), a column ``text``, or otherwise rows whose cells are shown.
        Items are named by their path, the column ``id``, or the number of the row.
    layout : Layout, optional
        The format of a table, and its column of ids; found out if left out.

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
    layout = layout or Layout()
    frame = leave_out(read_frame(path, (*_TEXTS, layout.id or "id"), layout).frame, layout, str(path), [])
    roles = {match_name(name, list(frame.columns)) or name: name for name in _TEXTS if name != layout.id}
    if layout.id is not None and (ids := match_name(layout.id, list(frame.columns))) is not None:
        roles[ids] = "id"
    if (image := image_column(path, layout)) is not None:
        roles[image] = "image"
    frame = frame.rename(columns=roles)
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
    found = {file.relative_to(folder).as_posix(): str(file.resolve()) for file in pictures_below(folder)}
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

"""Readers of items: pictures, texts or rows."""

from __future__ import annotations

import csv
import difflib
import math
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

import numpy as np

from gaussianmlr.data.readers.frames import read_frame
from gaussianmlr.data.readers.layout import Layout, did_you_mean, match_name
from gaussianmlr.data.readers.manifests import image_column, locate, pictures_below
from gaussianmlr.data.readers.parts import leave_out
from gaussianmlr.errors import DataError, shorten

__all__ = ["Found", "Kind", "check_candidates", "read_items"]

Kind = Literal["image", "text", "row"]
_TEXTS = ("id", "image", "text", "ranking", "ranker", "split")
_NOT_SHOWN = ("id", "ranking", "ranker", "split", "weight")


class Found(NamedTuple):
    """Items of one kind: names and contents (a path, a text, or cells by column).

    `candidates` holds the labels that an item offers, for items that do not offer all of them.
    """

    kind: Kind
    source: str
    items: dict[str, Any]
    candidates: Mapping[str, tuple[str, ...]] = MappingProxyType({})


def read_items(
    source: str | os.PathLike[str], layout: Layout | None = None, *, candidates: str | None = None
) -> Found:
    r"""Read the items to rank.

    Parameters
    ----------
    source : path-like
        A folder of pictures (with subfolders); or a table (any that `read_table` reads from a file) with a
        column ``image`` (paths below its folder), a column ``text``, or otherwise rows whose cells are shown.
        Items are named by their path, the column ``id``, or the number of the row.
    layout : Layout, optional
        The format of a table, and its column of ids; found out if left out.
    candidates : str, optional
        Column of a table that lists the labels an item offers, as ``sky, sea``; an empty cell offers all.

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
        if candidates is not None:
            raise DataError(f"{path}: a folder has no column {candidates!r}; give a manifest or a table")
        return Found("image", str(path.resolve()), _pictures(path))
    layout = layout or Layout()
    frame = leave_out(read_frame(path, (*_TEXTS, layout.id or "id"), layout).frame, layout, str(path), [])
    roles = {match_name(name, list(frame.columns)) or name: name for name in _TEXTS if name != layout.id}
    if layout.id is not None and (ids := match_name(layout.id, list(frame.columns))) is not None:
        roles[ids] = "id"
    if (image := image_column(path, layout)) is not None:
        roles[image] = "image"
    column = None if candidates is None else _column(candidates, list(frame.columns), path)
    frame = frame.rename(columns=roles)
    rows = frame.to_dict("records")
    if "image" in frame.columns:
        offered = _offered(rows, [str(row["image"]) for row in rows], column)
        return Found("image", str(path.resolve()), _listed(path, rows), offered)
    kind: Kind = "text" if "text" in frame.columns else "row"
    not_shown = (*_NOT_SHOWN, column)
    shown = ["text"] if kind == "text" else [name for name in frame.columns if name not in not_shown]
    if not shown:
        raise DataError(f"{path}: has no column to show; it has {shorten(list(frame.columns))}")
    found: dict[str, Any] = {}
    names = [str(row["id"]) if str(row.get("id", "")).strip() else str(n) for n, row in enumerate(rows)]
    for name, row in zip(names, rows):
        # An instance of several rankers has several rows.
        found.setdefault(
            name, str(row["text"]) if kind == "text" else {key: _cell(row[key]) for key in shown}
        )
    return Found(kind, str(path.resolve()), found, _offered(rows, names, column))


def _column(wanted: str, columns: list[str], path: Path) -> str:
    column = match_name(wanted, columns)
    if column is None:
        raise DataError(f"{path}: has no column {wanted!r}; {did_you_mean(wanted, columns)}")
    return column


def _offered(rows: list[dict[str, Any]], names: list[str], column: str | None) -> dict[str, tuple[str, ...]]:
    """The labels that each item offers, of the first row that says so."""
    found: dict[str, tuple[str, ...]] = {}
    if column is None:
        return found
    for number, (name, row) in enumerate(zip(names, rows)):
        text = "" if _cell(row[column]) is None else str(row[column]).strip()
        if text and name not in found:
            try:
                (cells,) = csv.reader([text], skipinitialspace=True, strict=True)
            except (csv.Error, ValueError) as error:
                raise DataError(
                    f"row {number}: {column} is {shorten(text)}: {error}; expected a, b"
                ) from None
            found[name] = tuple(dict.fromkeys(cell.strip() for cell in cells if cell.strip()))
    return found


def check_candidates(found: Found, labels: Iterable[str]) -> None:
    """Refuse candidates that are no labels.

    Examples
    --------
    >>> check_candidates(Found("text", "poems", {"a": "..."}, {"a": ("calm", "sadd")}), ["calm", "sad"])
    Traceback (most recent call last):
        ...
    gaussianmlr.errors.DataError: item 'a' offers 'sadd', which is no label; did you mean 'sad'?
    """
    known = list(labels)
    for name, offered in found.candidates.items():
        if strange := [label for label in offered if label not in known]:
            near = difflib.get_close_matches(strange[0], known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"the labels are {shorten(known)}"
            raise DataError(f"item {shorten(name)} offers {shorten(strange[0])}, which is no label; {hint}")


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

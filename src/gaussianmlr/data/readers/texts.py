"""Folders of text files with a manifest of their orders."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from gaussianmlr._utils.bounded import read_regular
from gaussianmlr.data.cells import Kind
from gaussianmlr.data.dataset import RankedData
from gaussianmlr.data.matrices import TEXT
from gaussianmlr.data.problems import Problems
from gaussianmlr.data.readers.chunks import first_cells
from gaussianmlr.data.readers.frames import FRAME_SUFFIXES, header_of, read_frame, suffix_of
from gaussianmlr.data.readers.grades import Grading
from gaussianmlr.data.readers.layout import Layout, ReadFrom, match_name
from gaussianmlr.data.readers.manifests import find_manifest, locate
from gaussianmlr.data.readers.tables import assemble
from gaussianmlr.errors import DataError, shorten

__all__ = ["assemble_texts", "file_column", "read_text", "read_texts", "text_files"]

COLUMNS = (TEXT, "path", "file", "filename", "file_name", "text_file", "document")
SUFFIX = ".txt"
_LONGEST = 4 << 20  # bytes of a file


def text_files(folder: Path) -> Iterator[Path]:
    """The text files in a folder and below, in order."""
    for place, below, names in os.walk(folder):
        below.sort()
        for name in sorted(names):
            if name.lower().endswith(SUFFIX) and not name.startswith("."):
                yield Path(place, name)


def read_text(file: Path) -> str:
    """The text of a file, in UTF-8.

    Raises
    ------
    DataError
        If it cannot be read, is longer than 4 MB, or is not UTF-8.
    """
    try:
        return read_regular(file, _LONGEST).decode("utf-8-sig").strip()
    except OSError as error:
        raise DataError(f"{file}: {error.strerror or error}; expected a text file") from None
    except UnicodeDecodeError as error:
        raise DataError(f"{file}: byte {error.start} is not UTF-8; expected a text file") from None


def file_column(path: Path, layout: Layout) -> str | None:
    """The column of a table that names text files, if there is one."""
    if suffix_of(path) not in FRAME_SUFFIXES:
        return None
    names = header_of(path, layout)
    roles = (layout.ranking, layout.split, layout.weight, layout.ranker)
    for wanted in COLUMNS:
        column = match_name(wanted, names)
        if column is not None and column not in roles:
            cells = first_cells(path, column, layout)
            if len(cells) and bool(cells.str.lower().str.strip().str.endswith(SUFFIX).mean() > 0.5):
                return column
    return None


def with_texts(path: Path, layout: Layout, problems: Problems) -> tuple[Any, Layout]:
    """The frame of a manifest with the texts of the files that it names; files name the rows.

    Files must be below the folder of the manifest; those that cannot be read are problems.
    """
    column = file_column(path, layout)
    if column is None:
        raise DataError(f"{path}: no column names text files; expected one of {', '.join(COLUMNS)}")
    columns = [layout.ranking, layout.split, layout.ranker, layout.id, column]
    table = read_frame(path, [name for name in columns if name is not None], layout)
    problems.notes += [*table.notes, f"column {column!r} names text files, which are read"]
    problems += table.problems
    frame = table.frame
    texts, kept = [], []
    for row, name in enumerate(frame[column].tolist()):
        file, trouble = locate(path.parent, name) if isinstance(name, str) else (path, "nothing is named")
        try:
            if trouble:
                raise DataError(trouble)
            texts.append(read_text(file))
            kept.append(row)
        except DataError as error:
            problems.add("text", shorten(name), str(error).removeprefix(f"{file}: "))
    if not kept:
        problems.raise_errors(path.name)
    names = list(frame.columns)
    frame = frame.iloc[kept].reset_index(drop=True)
    if match_name(layout.id or "id", names) is None:
        frame = frame.rename(columns={column: layout.id or "id"})
    else:
        frame = frame.drop(columns=[column])
    frame[TEXT] = texts
    return frame, replace(layout, texts=(TEXT, *layout.texts))


def assemble_texts(
    manifest: Path, problems: Problems, *, layout: Layout, grading: Grading, **settings: Any
) -> RankedData:
    """The readable part of a manifest of text files; problems are noted."""
    frame, known = with_texts(manifest, layout, problems)
    data = assemble(frame, problems, layout=known, grading=grading, **settings)
    read_from = ReadFrom(os.fspath(manifest), grading.threshold, grading.tolerance, layout)
    return replace(data, source=manifest.name, read_from=read_from)


def read_texts(
    path: str | os.PathLike[str],
    *,
    labels: str | Sequence[str] | None = None,
    threshold: float | None = None,
    tolerance: float = 0.0,
    layout: Layout | None = None,
    kinds: Mapping[str, Kind] | None = None,
) -> RankedData:
    r"""Read a manifest of text files and their orders.

    Parameters
    ----------
    path : path-like
        A table with a column ``text``, ``path``, ``file`` or the like that names files ending in ``.txt`` (in
        UTF-8, below its folder), or a folder that holds such a manifest.
    labels, threshold, tolerance, kinds
        As in `read_table`.
    layout : Layout, optional
        Further options of `read_table`.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a.txt").write_text("so happy")
    ...     _ = Path(folder, "manifest.csv").write_text("file,ranking\na.txt,joy > surprise\n")
    ...     data = read_texts(folder)
    >>> data, data.encoding[0].categories
    (RankedData: 1 instances of 1 features, 2 labels (joy, surprise), from manifest.csv, ('so happy',))
    """
    problems, layout = Problems(), layout or Layout()
    manifest = find_manifest(Path(path))
    grading = Grading(threshold, tolerance, layout.missing, layout.positions)
    data = assemble_texts(manifest, problems, layout=layout, grading=grading, labels=labels, kinds=kinds)
    problems.raise_errors(manifest.name)
    return data

"""What the first rows of a table say about all: columns, what they hold, and how numbers are written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gaussianmlr.data.cells import Kind
from gaussianmlr.data.coding import Column
from gaussianmlr.data.dataset import ORDERS_ALONE, RankedData
from gaussianmlr.data.problems import Problems
from gaussianmlr.data.readers.chunks import first_frames
from gaussianmlr.data.readers.frames import header_of
from gaussianmlr.data.readers.layout import Layout, fold
from gaussianmlr.data.readers.manifests import image_column, locate
from gaussianmlr.data.readers.numerals import with_numbers
from gaussianmlr.data.readers.parts import Columns, find_columns, index_column
from gaussianmlr.data.readers.separated import has_commas
from gaussianmlr.data.readers.tables import FilePart, assemble
from gaussianmlr.data.streaming.files import RowFiles
from gaussianmlr.errors import DataError, shorten

__all__ = ["Look", "look", "refuse_others"]

_CELLS, _FEWEST = 1 << 24, 50  # of the first file, at most; and rows of it, at least
_ROWS, _OF_OTHERS, _OTHERS = 20_000, 1_000, 15  # rows of the first file and of others, and how many others
Frames = list[tuple[Path, Any, Any | None]]


@dataclass(frozen=True)
class Look:
    """What the first rows say about all.

    Attributes
    ----------
    sample : RankedData
        These rows; its notes are those of the reader.
    layout : Layout
        How all rows are read, with feature columns and decimal sign settled.
    columns : Columns
        The role of each column.
    kinds : dict
        What the feature columns hold.
    texts : tuple of str
        Columns that stay texts.
    """

    sample: RankedData
    layout: Layout
    columns: Columns
    kinds: dict[str, Kind]
    texts: tuple[str, ...]


def look(rows: RowFiles) -> Look:
    """Settle the columns from 20,000 rows of the first file and 1,000 of each of up to 15 others."""
    layout = rows.layout
    if rows.kind == "images":
        image = image_column(rows.files[0], layout) or "image"
        layout = replace(layout, id=image, features=(), drop=())
    said = [name for name, kind in rows.kinds.items() if kind in ("category", "text")]
    roles = [layout.ranking, layout.split, layout.ranker, layout.id]
    texts = [name for name in (*roles, *layout.categories, *layout.texts, *said) if name is not None]
    most = max(_FEWEST, min(_ROWS, _CELLS // len(header_of(rows.files[0], layout))))
    frames = first_frames(rows.files, layout, texts, most, min(most, _OF_OTHERS), _OTHERS)
    if not frames:
        raise DataError(f"{rows.path}: no rows; expected at least one instance")
    if layout.decimal is None:
        commas = any(has_commas(frame, {fold(name) for name in texts}) for _, frame, _ in frames)
        layout = replace(layout, decimal="," if commas else ".")
        if commas:
            frames = first_frames(rows.files, layout, texts, most, min(most, _OF_OTHERS), _OTHERS)
    names, source = list(frames[0][1].columns), rows.name(frames[0][0])
    columns = find_columns(names, source, layout, rows.listed)
    if columns.ranker is not None:
        raise DataError(
            f"{rows.path}: by column {columns.ranker!r}, several rankers order an instance. Their rows are "
            "joined in memory (--no-stream); streamed data has one row per instance"
        )
    for file, frame, _ in frames[1:]:
        here = find_columns(list(frame.columns), rows.name(file), layout, rows.listed)
        refuse_others(rows.name(file), "label", here.labels or (), columns.labels or ())
    index = None if layout.features is not None else index_column(frames[0][1], columns.features)
    if index is not None:
        layout = replace(layout, drop=(*layout.drop, index))
    sample = _read(rows, layout, texts, frames)
    if index is not None:
        note = f"column {index!r} only numbers the rows and is left out (--features keeps it)"
        sample = replace(sample, notes=(note, *sample.notes))
    sample = replace(sample, notes=(*_left_out(rows), *sample.notes))
    return _settled(rows, sample, layout, columns, texts)


def _left_out(rows: RowFiles) -> list[str]:
    """Notes on what a folder of Parquet files holds that is not read."""
    if len(rows.files) == 1 or rows.files[0].suffix.lower() != ".parquet":
        return []
    notes, read = [], set(rows.files)
    paths = (file.relative_to(rows.path) for file in rows.path.rglob("*.parquet") if file not in read)
    if others := [path for path in paths if not any(name[0] in "._" for name in path.parts)]:
        notes.append(f"not read: {len(others):,} in folders below, such as {min(others).as_posix()}")
    folders = rows.files[0].relative_to(rows.path).parts[:-1]
    if named := [name for name in folders if "=" in name]:
        notes.append(f"folders such as {named[0]!r} are not read as columns")
    return notes


def refuse_others(name: str, what: str, found: Sequence[str], expected: Sequence[str]) -> None:
    """Refuse a file whose columns are not those of the first ones, in whatever sequence."""
    if differ := set(found) ^ set(expected):
        raise DataError(
            f"{name}: its {what} columns are {shorten([*found])}, those of the first files "
            f"{shorten([*expected])}; {shorten(min(differ))} is not in both"
        )


def _read(rows: RowFiles, layout: Layout, texts: list[str], frames: Frames) -> RankedData:
    import pandas as pd

    problems, notes = Problems(), list[str]()
    folded = {fold(name) for name in texts}
    pieces = [
        with_numbers(frame, frame if written is None else written, folded, layout.decimal, notes, problems)
        for _, frame, written in frames
    ]
    whole = pieces[0] if len(pieces) == 1 else pd.concat(pieces, ignore_index=True)
    sample = assemble(
        whole,
        problems,
        layout=layout,
        grading=rows.grading,
        labels=rows.listed,
        kinds=rows.kinds,
        part=FilePart(rows.path.name, 0),
    )
    # Problems of rows are raised with file and row when all rows are read.
    Problems(
        one
        for one in problems
        if not one.where.startswith("row ") and not one.message.startswith(("row ", "nothing in row"))
    ).raise_errors(rows.path.name)
    return replace(sample, notes=(*dict.fromkeys(notes), *sample.notes))


def _settled(rows: RowFiles, sample: RankedData, layout: Layout, columns: Columns, texts: list[str]) -> Look:
    if rows.kind == "images":
        folder = rows.files[0].parent
        files = tuple(locate(folder, name)[0] for name in sample.ids or ())
        return Look(replace(sample, images=files), layout, columns, {}, tuple(texts))
    if sample.features is None:
        raise DataError(f"{rows.path}: {ORDERS_ALONE}")
    used = sample.feature_names or ()
    kinds: dict[str, Kind] = {
        name: column.kind for name, column in zip(used, sample.encoding or (Column(),) * len(used))
    }
    if free := [name for name, kind in kinds.items() if kind == "text"]:
        raise DataError(
            f"{rows.path}: column {free[0]!r} holds texts, which are read in memory only (--no-stream); "
            f"leave it out (--drop) or read it as categories (--categories {free[0]!r})"
        )
    if len(rows.files) > 1 or len(sample) >= _ROWS:
        sample = replace(
            sample, notes=(*sample.notes, f"what columns hold was told from {len(sample):,} rows")
        )
    categories = [name for name, kind in kinds.items() if kind == "category"]
    return Look(sample, replace(layout, features=used), columns, kinds, (*texts, *categories))

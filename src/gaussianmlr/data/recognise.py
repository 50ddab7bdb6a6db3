"""What a path holds: a table, pictures, one of the published sets."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal, NamedTuple

from gaussianmlr._utils.bounded import check_file, is_folder
from gaussianmlr.data.ranked_mnist.export import ABOUT, export_format
from gaussianmlr.data.readers.archives import find_file, folder_of, is_archive
from gaussianmlr.data.readers.avdp import LABELS_FILE
from gaussianmlr.data.readers.chunks import CHUNKED
from gaussianmlr.data.readers.frames import FRAME_SUFFIXES, OLD_SUFFIXES, suffix_of, unknown_suffix
from gaussianmlr.data.readers.layout import Layout
from gaussianmlr.data.readers.manifests import (
    MANIFEST_NAMES,
    find_manifest,
    image_column,
    manifest_below,
    pictures_below,
    tables_in,
)
from gaussianmlr.data.readers.nsid import ORDERS_FILE
from gaussianmlr.data.readers.tables import TABLE_SUFFIXES
from gaussianmlr.data.readers.texts import file_column
from gaussianmlr.data.readers.xmlc import is_xmlc
from gaussianmlr.data.splits import PARTS, part_name
from gaussianmlr.errors import DataError

Kind = Literal["table", "images", "texts", "nsid", "avdp", "export", "xmlc", "parts"]  # parts: several files


class Recognised(NamedTuple):
    """What a path holds, the folder or file to read, and notes."""

    kind: Kind
    root: Path
    notes: tuple[str, ...] = ()


def recognise(path: Path, layout: Layout | None = None) -> Recognised:
    """What a path holds, and the folder or file to read."""
    layout = layout or Layout()
    if is_folder(path) or is_archive(path):
        return _in_folder(path, folder_of(path), layout)
    if path.name == ORDERS_FILE:
        return Recognised("nsid", path.parent)
    check_file(path, "a folder, an archive or a table")
    if is_xmlc(path):
        return Recognised("xmlc", path)
    if suffix_of(path) not in TABLE_SUFFIXES:
        if suffix_of(path) in OLD_SUFFIXES:
            raise DataError(f"{path}: {unknown_suffix(suffix_of(path))}")
        raise DataError(f"{path}: expected a folder, an archive or a table ({', '.join(TABLE_SUFFIXES)})")
    return _table(path, layout)


def part_files(folder: Path) -> list[Path]:
    """The tables in a folder that are one table in several files: those directly in it, all of one kind.

    Without a table in the folder, Parquet files in subfolders count. Names that begin with ``_`` or ``.`` do
    not, and files named after different splits, such as ``train.csv`` beside ``test.csv``, are not one table.
    """
    found = [file for file in tables_in(folder) if not file.name.startswith("_")]
    if not found:
        found = sorted(
            file
            for file in folder.rglob("*.parquet")
            if file.is_file() and not any(name[0] in "._" for name in file.relative_to(folder).parts)
        )
    kinds = {suffix_of(file) for file in found}
    splits = {_split_named(file.relative_to(folder)) for file in found}
    return found if len(kinds) == 1 and kinds <= {*CHUNKED} and len(splits) == 1 else []


def _split_named(path: Path) -> str:
    """The split that a path is named after, if any.

    Examples
    --------
    >>> [_split_named(Path(name)) for name in ("train-0.csv", "Val.csv", "test/0.csv", "trains.csv")]
    ['train', 'validation', 'test', '']
    """
    words = [part_name(re.split(r"[^a-z]", name.lower(), maxsplit=1)[0]) for name in path.parts]
    return next((word for word in words if word in PARTS), "")


def _table(path: Path, layout: Layout, notes: tuple[str, ...] = ()) -> Recognised:
    if suffix_of(path) in FRAME_SUFFIXES and image_column(path, layout) is not None:
        return Recognised("images", path, notes)
    return Recognised("table" if file_column(path, layout) is None else "texts", path, notes)


def _in_folder(path: Path, folder: Path, layout: Layout) -> Recognised:
    if find_file(folder, LABELS_FILE):
        return Recognised("avdp", folder)
    if find_file(folder, ORDERS_FILE):
        return Recognised("nsid", folder)
    if (manifest := manifest_below(folder, path)) is not None:
        notes = () if manifest.parent == folder else (f"read {manifest.relative_to(folder).as_posix()}",)
        return Recognised("images" if file_column(manifest, layout) is None else "texts", manifest, notes)
    if (note := find_file(folder, ABOUT)) and export_format(note.parent) is not None:
        return Recognised("export", note.parent)
    if len(part_files(folder)) > 1:
        return Recognised("parts", folder)
    if tables_in(folder):
        table = find_manifest(folder)
        return _table(table, layout, (f"read {table.name}",))
    if next(pictures_below(folder), None) is not None:
        raise DataError(
            f"{path}: pictures without orders; expected a table with columns image,ranking beside them, such "
            f"as manifest.csv. To rank them on a page: gmlr annotate {path} --labels sky,sea --out answers"
        )
    names = f"{', '.join(MANIFEST_NAMES)}, or one table"
    expected = f"{LABELS_FILE} (AVDP), {ORDERS_FILE} (NSID) or a manifest ({names})"
    raise DataError(f"{path}: no data set; expected {expected}")

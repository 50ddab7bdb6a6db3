"""What a path holds: a table, pictures, one of the published sets."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, NamedTuple

from gaussianmlr._utils.bounded import check_file, is_folder
from gaussianmlr.data.checks.exports import export_format
from gaussianmlr.data.ranked_mnist.export import ABOUT
from gaussianmlr.data.readers.archives import find_file, folder_of, is_archive
from gaussianmlr.data.readers.avdp import LABELS_FILE
from gaussianmlr.data.readers.frames import FRAME_SUFFIXES, read_frame, suffix_of
from gaussianmlr.data.readers.manifests import MANIFEST_NAMES, manifest_below
from gaussianmlr.data.readers.nsid import ORDERS_FILE
from gaussianmlr.data.readers.tables import TABLE_SUFFIXES
from gaussianmlr.errors import DataError

Kind = Literal["table", "images", "nsid", "avdp", "export"]


class Recognised(NamedTuple):
    """What a path holds, the folder or file to read, and notes."""

    kind: Kind
    root: Path
    notes: tuple[str, ...] = ()


def recognise(path: Path) -> Recognised:
    """What a path holds, and the folder or file to read."""
    if is_folder(path) or is_archive(path):
        return _in_folder(path, folder_of(path))
    if path.name == ORDERS_FILE:
        return Recognised("nsid", path.parent)
    check_file(path, "a folder, an archive or a table")
    if suffix_of(path) not in TABLE_SUFFIXES:
        raise DataError(f"{path}: expected a folder, an archive or a table ({', '.join(TABLE_SUFFIXES)})")
    if suffix_of(path) in FRAME_SUFFIXES and "image" in read_frame(path)[0].columns:
        return Recognised("images", path)
    return Recognised("table", path)


def _in_folder(path: Path, folder: Path) -> Recognised:
    if find_file(folder, LABELS_FILE):
        return Recognised("avdp", folder)
    if find_file(folder, ORDERS_FILE):
        return Recognised("nsid", folder)
    if (manifest := manifest_below(folder, path)) is not None:
        notes = () if manifest.parent == folder else (f"read {manifest.relative_to(folder).as_posix()}",)
        return Recognised("images", manifest, notes)
    if (note := find_file(folder, ABOUT)) and export_format(note.parent) is not None:
        return Recognised("export", note.parent)
    expected = f"{LABELS_FILE} (AVDP), {ORDERS_FILE} (NSID) or a manifest ({', '.join(MANIFEST_NAMES)})"
    raise DataError(f"{path}: no data set; expected {expected}")

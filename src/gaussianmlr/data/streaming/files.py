"""Which files are one table, and whether it is streamed."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from gaussianmlr._utils.bounded import is_folder
from gaussianmlr.data.cells import Kind
from gaussianmlr.data.ranked_mnist.settings import SETTINGS
from gaussianmlr.data.readers.chunks import CHUNKED, cells_in
from gaussianmlr.data.readers.frames import suffix_of
from gaussianmlr.data.readers.grades import Grading
from gaussianmlr.data.readers.layout import Layout
from gaussianmlr.data.readers.manifests import image_column
from gaussianmlr.data.recognise import part_files, recognise
from gaussianmlr.errors import DataError

__all__ = ["STREAM_ABOVE", "STREAM_ABOVE_MANIFEST", "RowFiles", "find_rows"]

STREAM_ABOVE = 512 << 20  # bytes of a table; below, it is read whole
STREAM_ABOVE_MANIFEST = 64 << 20  # of a manifest: about a million pictures


@dataclass(frozen=True)
class RowFiles:
    """The files of one table, and how they are read.

    Attributes
    ----------
    path : Path
        What was named.
    files : tuple of Path
        The files, in order.
    kind : {"features", "images"}
        What the inputs are.
    layout : Layout
        How the files are written.
    labels : tuple of str, optional
        The labels, if they were listed.
    threshold, tolerance
        How grades are read.
    kinds : mapping
        What feature columns hold, where it was said.
    """

    path: Path
    files: tuple[Path, ...]
    kind: str
    layout: Layout = field(default_factory=Layout)
    labels: tuple[str, ...] | None = None
    threshold: float | None = None
    tolerance: float = 0.0
    kinds: Mapping[str, Kind] = field(default_factory=dict)

    @property
    def grading(self) -> Grading:
        """How numbers in label columns become orders."""
        return Grading(self.threshold, self.tolerance, self.layout.missing, self.layout.positions)

    @property
    def listed(self) -> list[str] | None:
        """The labels as a list, if there is one."""
        return None if self.labels is None else list(self.labels)

    def name(self, file: Path) -> str:
        """A file as messages name it."""
        return file.name if len(self.files) == 1 else file.relative_to(self.path).as_posix()

    def key(self) -> str:
        """A digest of files (paths, sizes, times of change) and options."""
        told = [
            (str(file.resolve()), (found := file.stat()).st_size, found.st_mtime_ns) for file in self.files
        ]
        said = [
            self.kind,
            self.layout,
            self.labels,
            self.threshold,
            self.tolerance,
            sorted(self.kinds.items()),
        ]
        return hashlib.sha256(repr((told, said)).encode("utf-8", "surrogatepass")).hexdigest()


def find_rows(
    name: str | os.PathLike[str],
    *,
    stream: bool | None = None,
    labels: Sequence[str] | None = None,
    features: Sequence[str] | None = None,
    threshold: float | None = None,
    tolerance: float = 0.0,
    layout: Layout | None = None,
    kinds: Mapping[str, Kind] | None = None,
) -> RowFiles | None:
    """The files of data that is streamed; None for data that is read whole.

    Parameters
    ----------
    name : str or path
        As in `find_data`.
    stream : bool, optional
        Whether to stream; if left out, tables above 512 MB (eight bytes per cell of Parquet files, otherwise
        the size of the text) and manifests of pictures above 64 MB.
    labels, features, threshold, tolerance, layout, kinds
        As in `find_data`.

    Raises
    ------
    DataError
        If data that is asked to be streamed cannot be.
    """
    if stream is False:
        return None
    if str(name) in SETTINGS:
        if stream:
            raise DataError(f"{name} is drawn, not read: there is nothing to stream")
        return None
    path, layout = Path(name), layout or Layout()
    found = _files(path, layout)
    if found is None:
        if stream:
            raise DataError(f"{path}: cannot be streamed; expected tables ({', '.join(CHUNKED)}) of one kind")
        return None
    files, kind = found
    most = STREAM_ABOVE_MANIFEST if kind == "images" else STREAM_ABOVE
    if stream is None and cells_in(files) <= most:
        return None
    if features is not None:
        layout = replace(layout, features=tuple(features))
    listed = None if labels is None else tuple(labels)
    return RowFiles(path, files, kind, layout, listed, threshold, tolerance, dict(kinds or {}))


def _files(path: Path, layout: Layout) -> tuple[tuple[Path, ...], str] | None:
    if is_folder(path):
        kind, root, _ = recognise(path, layout)
        if kind not in ("table", "images", "parts"):
            return None
        files = part_files(root) if kind == "parts" else [root]
    else:
        # A file that is missing is refused with the names of what there is, where it is read.
        if suffix_of(path) not in CHUNKED or not os.path.isfile(path):  # noqa: PTH113 (raises for long names)
            return None
        kind, root, _ = recognise(path, layout)
        files = [root]
    if kind not in ("table", "images", "parts") or any(suffix_of(file) not in CHUNKED for file in files):
        return None
    pictures = kind == "images" or image_column(files[0], layout) is not None
    return tuple(files), "images" if pictures else "features"

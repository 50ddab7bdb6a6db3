"""Folders of pictures with a manifest of their orders."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from gaussianmlr._utils.bounded import is_folder
from gaussianmlr.data.dataset import RankedData
from gaussianmlr.data.problems import Problems
from gaussianmlr.data.readers.chunks import first_cells
from gaussianmlr.data.readers.frames import FRAME_SUFFIXES, header_of, suffix_of
from gaussianmlr.data.readers.grades import Grading
from gaussianmlr.data.readers.layout import Layout, Missing, match_name
from gaussianmlr.data.readers.tables import assemble
from gaussianmlr.errors import SHOWN_ROWS, DataError

IMAGE_COLUMNS = ("images", "path", "file", "filename", "file_name", "image_path", "img", "picture", "photo")
IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".ppm", ".pgm")
MANIFEST_NAMES = tuple(f"manifest{suffix}" for suffix in FRAME_SUFFIXES)


def pictures_below(folder: Path) -> Iterator[Path]:
    """All pictures in a folder and its subfolders, by name; hidden files are left out."""
    for parent, below, names in os.walk(folder):
        below.sort()
        for name in sorted(names):
            if name.lower().endswith(IMAGE_SUFFIXES) and not name.startswith("."):
                yield Path(parent, name)


def read_images(
    path: str | os.PathLike[str],
    *,
    folder: str | os.PathLike[str] | None = None,
    image: str | None = None,
    ranking: str | None = "ranking",
    labels: str | Sequence[str] | None = None,
    split: str | None = "split",
    weight: str | None = "weight",
    ranker: str | None = "ranker",
    threshold: float | None = None,
    tolerance: float = 0.0,
    missing: Missing = "error",
    aggregate: str = "mean_rank",
    allow_outside: bool = False,
    layout: Layout | None = None,
) -> RankedData:
    r"""Read a manifest of pictures and their orders.

    Parameters
    ----------
    path : path-like
        A manifest (any file that `read_table` reads), or a folder that holds one called ``manifest``, or no
        other table than one.
    folder : path-like, optional
        Where the pictures are; the manifest's folder if left out.
    image : str, optional
        The column with the paths, relative to the folder; by default ``image``, or ``path``, ``file`` or the
        like where it names pictures. Several rankers are several rows of one image.
    ranking, labels, split, weight, ranker, threshold, tolerance, missing, aggregate
        As in `read_table`. Other columns are not used.
    allow_outside : bool
        Allow pictures outside the folder, by an absolute path or ``..``.
    layout : Layout, optional
        Further options of `read_table`; replaces `ranking`, `split`, `weight`, `ranker` and `missing`.

    Raises
    ------
    DataError
        Naming every row whose order cannot be read or whose picture does not exist. The
        pictures are read later; `gaussianmlr.data.check` reads them all.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from PIL import Image
    >>> from gaussianmlr.data import read_images
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Image.new("RGB", (60, 40), "blue").save(f"{folder}/a.png")
    ...     _ = pathlib.Path(folder, "manifest.csv").write_text("image,ranking\na.png,sky > sea\n")
    ...     data = read_images(folder)
    >>> data
    RankedData: 1 images, 2 labels (sea, sky), from manifest.csv
    """
    problems = Problems()
    manifest = find_manifest(Path(path))
    if layout is None:
        layout = Layout(ranking=ranking, split=split, weight=weight, ranker=ranker, missing=missing)
    data = assemble_images(
        manifest,
        Path(folder) if folder is not None else manifest.parent,
        problems,
        image=image,
        labels=labels,
        layout=layout,
        grading=Grading(threshold, tolerance, layout.missing, layout.positions),
        aggregate=aggregate,
        allow_outside=allow_outside,
    )
    problems.raise_errors(manifest.name)
    return data


def find_manifest(path: Path) -> Path:
    """The manifest itself, or the one a folder holds: called so, or its only table."""
    if not is_folder(path):
        return path
    found = [path / name for name in MANIFEST_NAMES if (path / name).is_file()] or tables_in(path)
    if len(found) == 1:
        return found[0]
    if found:
        raise DataError(f"{path}: holds {_listed(found, path)}; name the one to read")
    raise DataError(f"{path}: no manifest; expected one of {', '.join(MANIFEST_NAMES)}, or one table")


def tables_in(folder: Path) -> list[Path]:
    """The tables in a folder, by their suffix; texts (.txt) may be anything and do not count."""
    with os.scandir(folder) as entries:
        files = sorted(Path(entry.path) for entry in entries if entry.is_file())
    suffixes = {*FRAME_SUFFIXES} - {".txt"}
    return [file for file in files if suffix_of(file) in suffixes and not file.name.startswith((".", "~$"))]


def _listed(files: Sequence[Path], folder: Path) -> str:
    names = [file.relative_to(folder).as_posix() for file in files]
    more = f" and {len(names) - SHOWN_ROWS} more" if len(names) > SHOWN_ROWS else ""
    return ", ".join(names[:SHOWN_ROWS]) + more


def image_column(path: Path, layout: Layout) -> str | None:
    """The column of a table with paths of pictures: ``image``, or one of another name that holds such."""
    names = header_of(path, layout)
    roles = (layout.ranking, layout.id, layout.split, layout.weight, layout.ranker)
    column = match_name("image", names)
    if column is not None or suffix_of(path) not in FRAME_SUFFIXES:
        return column
    for other in IMAGE_COLUMNS:
        column = match_name(other, names)
        if column is not None and column not in roles:
            cells = first_cells(path, column, layout)
            if bool(cells.str.lower().str.strip().str.endswith(IMAGE_SUFFIXES).mean() > 0.5):
                return column
    return None


def manifest_below(folder: Path, name: Path) -> Path | None:
    """The manifest in a folder, or the only one anywhere below it; `name` is the folder in messages."""
    if any((folder / manifest).is_file() for manifest in MANIFEST_NAMES):
        return find_manifest(folder)
    found = sorted(
        file for file in folder.rglob("manifest.*") if file.name in MANIFEST_NAMES and file.is_file()
    )
    if len(found) > 1:
        raise DataError(f"{name}: holds {_listed(found, folder)}; name the one to read")
    return found[0] if found else None


def assemble_images(
    manifest: Path,
    folder: Path,
    problems: Problems,
    *,
    image: str | None,
    layout: Layout,
    allow_outside: bool,
    **settings: Any,
) -> RankedData:
    """The readable part of a manifest; problems are noted."""
    if image is None:
        image = image_column(manifest, layout) or "image"
    data = assemble(manifest, problems, layout=replace(layout, id=image, features=(), drop=()), **settings)
    assert data.ids is not None  # RankedData fills them in
    files: list[Path] = []
    keep = np.ones(len(data), dtype=bool)
    for number, name in enumerate(data.ids):
        file, trouble = locate(folder, name, allow_outside)
        files.append(file)
        if trouble:
            problems.add("image", name, trouble)
            keep[number] = False
    if not keep.any():
        problems.raise_errors(manifest.name)
    return replace(data, images=tuple(files)).subset(keep)


def locate(folder: Path, name: str, allow_outside: bool = False) -> tuple[Path, str]:
    """The file of a name in a manifest, and its problem or an empty text.

    Examples
    --------
    >>> locate(Path("pictures"), "../secret.png")[1]
    'leads out of the folder; keep pictures below it or allow_outside=True'
    """
    # Manifests written on Windows separate folders by backslashes.
    there = os.path.lexists(folder / name)  # says no to any name
    file = folder / (name.replace("\\", "/") if os.sep == "/" and not there else name)
    if not allow_outside:
        try:
            inside = file.resolve().is_relative_to(folder.resolve())
        except (OSError, RuntimeError, ValueError):
            return file, "is not a path that can be followed"
        if not inside:
            return file, "leads out of the folder; keep pictures below it or allow_outside=True"
    try:
        if file.is_dir():
            return file, "is a folder; expected a picture"
        if not file.exists():
            return file, "does not exist"
        if not file.is_file():
            return file, "is a pipe or device; expected a picture"
    except (OSError, ValueError) as error:
        return file, f"is not a path: {getattr(error, 'strerror', None) or error}"
    return file, ""

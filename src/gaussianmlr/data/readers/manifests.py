"""Folders of pictures with a manifest of their orders."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from gaussianmlr._utils.bounded import is_folder
from gaussianmlr.data.dataset import RankedData
from gaussianmlr.data.problems import Problems
from gaussianmlr.data.readers.assembly import Grading, Missing
from gaussianmlr.data.readers.frames import FRAME_SUFFIXES
from gaussianmlr.data.readers.tables import assemble
from gaussianmlr.errors import SHOWN_ROWS, DataError

MANIFEST_NAMES = tuple(f"manifest{suffix}" for suffix in FRAME_SUFFIXES)


def read_images(
    path: str | os.PathLike[str],
    *,
    folder: str | os.PathLike[str] | None = None,
    image: str = "image",
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
) -> RankedData:
    r"""Read a manifest of pictures and their orders.

    Parameters
    ----------
    path : path-like
        A manifest (CSV, TSV, Parquet or JSON lines), or a folder that holds one called ``manifest``.
    folder : path-like, optional
        Where the pictures are; the manifest's folder if left out.
    image : str
        The column with the paths, relative to the folder. Several rankers are several rows of one image.
    ranking, labels, split, weight, ranker, threshold, tolerance, missing, aggregate
        As in `read_table`. Other columns are not used.
    allow_outside : bool
        Allow pictures outside the folder, by an absolute path or ``..``.

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
    data = assemble_images(
        manifest,
        Path(folder) if folder is not None else manifest.parent,
        problems,
        image=image,
        ranking=ranking,
        labels=labels,
        parts={"split": split, "weight": weight, "ranker": ranker},
        grading=Grading(threshold, tolerance, missing),
        aggregate=aggregate,
        allow_outside=allow_outside,
    )
    problems.raise_errors(manifest.name)
    return data


def find_manifest(path: Path) -> Path:
    """The manifest itself, or the one a folder holds."""
    if not is_folder(path):
        return path
    found = [path / name for name in MANIFEST_NAMES if (path / name).is_file()]
    if len(found) == 1:
        return found[0]
    if found:
        names = ", ".join(file.name for file in found)
        raise DataError(f"{path}: holds {names}; name the one to read")
    raise DataError(f"{path}: no manifest; expected one of {', '.join(MANIFEST_NAMES)}")


def manifest_below(folder: Path, name: Path) -> Path | None:
    """The manifest in a folder, or the only one anywhere below it; `name` is the folder in messages."""
    if any((folder / manifest).is_file() for manifest in MANIFEST_NAMES):
        return find_manifest(folder)
    found = sorted(
        file for file in folder.rglob("manifest.*") if file.name in MANIFEST_NAMES and file.is_file()
    )
    if len(found) > 1:
        names = [file.relative_to(folder).as_posix() for file in found]
        more = f" and {len(names) - SHOWN_ROWS} more" if len(names) > SHOWN_ROWS else ""
        raise DataError(f"{name}: holds {', '.join(names[:SHOWN_ROWS])}{more}; name the one to read")
    return found[0] if found else None


def assemble_images(
    manifest: Path,
    folder: Path,
    problems: Problems,
    *,
    image: str,
    parts: Mapping[str, str | None],
    allow_outside: bool,
    **settings: Any,
) -> RankedData:
    """The readable part of a manifest; problems are noted."""
    data = assemble(manifest, problems, features=(), parts={**parts, "id": image}, **settings)
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

"""Write Ranked MNIST as PNG, NPZ or Parquet, and read it back without loss.

A folder is written beside its final place and renamed when complete. Running an interrupted export again
resumes it.
"""

from __future__ import annotations

import csv
import dataclasses
import hashlib
import json
import os
import shutil
import zipfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from pathlib import Path
from typing import Any, Literal, cast, get_args

import numpy as np

from gaussianmlr._utils import files
from gaussianmlr._utils.extras import require
from gaussianmlr._utils.progress import progress
from gaussianmlr._utils.strict_json import loads
from gaussianmlr._version import __version__
from gaussianmlr.data.ranked_mnist import columns as _columns
from gaussianmlr.data.ranked_mnist.card import data_card
from gaussianmlr.data.ranked_mnist.drawing import Bytes
from gaussianmlr.data.ranked_mnist.sets import Batch, RankedMNIST, Split
from gaussianmlr.errors import DataError, shorten

Format = Literal["png", "npz", "parquet"]
ABOUT = "about.json"
MANIFEST = "manifest.csv"
CARD, SUMS = "README.md", "SHA256SUMS"
_CHUNK = 256
_PNG_END = b"IEND\xaeB`\x82"


def export_sets(
    sets: Sequence[RankedMNIST],
    out: str | os.PathLike[str],
    to: Format = "png",
    *,
    shown: bool = False,
) -> Path:
    """Write splits of one set into a new folder.

    ``png`` makes ``<split>/00000.png`` and ``manifest.csv`` with the columns `image`, `split`, `ranking` (an
    order text such as ``7 > 3 > 1``) and the truth: `scale_0` to `scale_9`, `brightness_0` ..., `left_0` ...,
    `top_0` ..., `side_0` ..., empty where a digit is absent. ``npz`` makes ``<split>.npz`` with the arrays of
    `Batch`; ``parquet`` makes ``<split>.parquet`` with the columns of the manifest, `image` holding PNG
    bytes. ``about.json`` says what it is, ``README.md`` is a data card, and ``SHA256SUMS`` holds the
    checksums of all other files, as ``sha256sum --check`` reads them.

    Parameters
    ----------
    sets : sequence of RankedMNIST
        One for each split to write, all of the same setting.
    out : path-like
        The folder to make; it must not exist, or be empty.
    to : {"png", "npz", "parquet"}
        The form.
    shown : bool
        Whether to draw a progress bar.

    Returns
    -------
    pathlib.Path
        The folder.

    Examples
    --------
    >>> import tempfile
    >>> data = RankedMNIST("gray-s", "test", size=3, digits="embedded")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     made = export_sets([data], Path(folder) / "gray-s", "png")
    ...     print(sorted(path.name for path in made.rglob("*.*")))
    ...     back = load_export(made, "test")
    ['00000.png', '00001.png', '00002.png', 'README.md', 'about.json', 'manifest.csv']
    >>> bool((back.images == data.batch(range(3)).images).all())
    True
    """
    if to not in get_args(Format):
        raise DataError(f"the format is {shorten(to)}; expected one of {', '.join(get_args(Format))}")
    splits = [one.split for one in sets]
    if not sets or len(set(splits)) < len(splits) or len({one.setting for one in sets}) > 1:
        raise DataError(f"the splits are {splits}; expected different splits of one setting")
    final = Path(out)
    if final.exists() and (not final.is_dir() or any(final.iterdir())):
        raise DataError(f"{str(final)!r} exists already; expected a new or empty folder")
    growing = final.with_name(f".{final.name}.partial")
    _begin(growing, json.dumps(_about(sets, to), indent=2, ensure_ascii=False) + "\n")
    write = {"png": _write_png, "npz": _write_npz, "parquet": _write_parquet}[to]
    with progress("writing", sum(map(len, sets)), shown=shown) as advance:
        write(sets, growing, advance)
    files.write_text(growing / CARD, data_card(sets, to))
    _write_sums(growing)
    if final.exists():
        final.rmdir()
    files.publish(growing, final)
    return final


def load_export(folder: str | os.PathLike[str], split: Split) -> Batch:
    """Read a split that `export_sets` wrote, all of it into memory.

    Parameters
    ----------
    folder : path-like
        What `export_sets` made.
    split : {"train", "validation", "test"}
        Which split.

    Examples
    --------
    >>> load_export("nowhere", "test")
    Traceback (most recent call last):
    gaussianmlr.errors.DataError: 'nowhere' holds no about.json; expected a folder made by an export
    """
    place = Path(folder)
    if not (place / ABOUT).is_file():
        raise DataError(f"{str(place)!r} holds no {ABOUT}; expected a folder made by an export")
    about = json.loads((place / ABOUT).read_text(encoding="utf-8"))
    if split not in about["splits"]:
        raise DataError(f"{str(place)!r} holds {', '.join(about['splits'])}; expected {shorten(split)}")
    read = {"png": _read_png, "npz": _read_npz, "parquet": _read_parquet}[about["format"]]
    return read(place, split)


def _write_sums(folder: Path) -> None:
    """The checksums of all files but their own, by name."""
    lines = []
    for file in sorted(path for path in folder.rglob("*") if path.is_file() and path.name != SUMS):
        with file.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
        lines.append(f"{digest}  {file.relative_to(folder).as_posix()}\n")
    files.write_text(folder / SUMS, "".join(lines))


def check_export(folder: str | os.PathLike[str]) -> int:
    """Compare the files of an export with their checksums, and return how many there are.

    Parameters
    ----------
    folder : path-like
        What `export_sets` made.

    Raises
    ------
    DataError
        Naming the first file that is missing or was changed.

    Examples
    --------
    >>> import tempfile
    >>> data = RankedMNIST("gray-s", "test", size=2, digits="embedded")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     check_export(export_sets([data], Path(folder) / "gray-s", "npz"))
    3
    """
    place = Path(folder)
    if not (place / SUMS).is_file():
        raise DataError(f"{str(place)!r} holds no {SUMS}; expected a folder made by an export")
    lines = (place / SUMS).read_text(encoding="utf-8").splitlines()
    for line in lines:
        digest, _, name = line.partition("  ")
        file = place / name
        if not file.is_file():
            raise DataError(f"{file} is missing; export the set again")
        with file.open("rb") as stream:
            if hashlib.file_digest(stream, "sha256").hexdigest() != digest:
                raise DataError(f"{file} was changed: its checksum is another one; export the set again")
    return len(lines)


def _about(sets: Sequence[RankedMNIST], to: Format) -> dict[str, Any]:
    first = sets[0]
    return {
        "made_by": f"gaussianmlr {__version__}",
        "format": to,
        "setting": dataclasses.asdict(first.setting),
        "labels": list(first.labels),
        "splits": {
            one.split: {
                "size": len(one),
                "seed": one.seed,
                "start": one.start,
                "shared_digits": one.shared_digits,
                "digits": one.digits.source,
            }
            for one in sets
        },
    }


def _begin(growing: Path, about: str) -> None:
    """Keep the files of an interrupted run of the same export; remove anything else."""
    note = growing / ABOUT
    if not (note.is_file() and note.read_text(encoding="utf-8") == about):
        shutil.rmtree(growing, ignore_errors=True)
        growing.mkdir(parents=True)
        files.write_text(note, about)
    for leftover in growing.rglob("*.part"):  # of a run that was killed while writing a file
        leftover.unlink()


def _chunks(data: RankedMNIST) -> Iterator[tuple[np.ndarray[Any, np.dtype[np.int64]], Batch]]:
    for first in range(0, len(data), _CHUNK):
        where = np.arange(first, min(first + _CHUNK, len(data)))
        yield where, data.batch(where)


# --- PNG -----------------------------------------------------------------------------------------


def encode_png(image: Bytes) -> bytes:
    """PNG bytes of one image [channels, height, width].

    Examples
    --------
    >>> decode_png(encode_png(np.zeros((3, 4, 5), np.uint8))).shape
    (3, 4, 5)
    """
    require("writing pictures", "PIL", extra="ranked-mnist")
    from PIL import Image

    buffer = BytesIO()
    picture = image[0] if len(image) == 1 else np.moveaxis(image, 0, -1)
    # Level 1 is nearly twice as fast as the default, and a tenth larger.
    Image.fromarray(np.ascontiguousarray(picture)).save(buffer, "PNG", compress_level=1)
    return buffer.getvalue()


def decode_png(data: bytes) -> Bytes:
    """The image [channels, height, width] in PNG bytes.

    Examples
    --------
    >>> decode_png(encode_png(np.zeros((1, 4, 5), np.uint8))).shape
    (1, 4, 5)
    """
    from PIL import Image

    with Image.open(BytesIO(data), formats=["PNG"]) as picture:
        array = np.asarray(picture)
    return array[None] if array.ndim == 2 else np.ascontiguousarray(np.moveaxis(array, -1, 0))


def _write_png(sets: Sequence[RankedMNIST], folder: Path, advance: Callable[[int], None]) -> None:
    # PNG compression runs outside the interpreter's lock.
    with files.aside(folder / MANIFEST) as part, part.open("w", encoding="utf-8", newline="") as file:
        manifest = csv.DictWriter(file, ["image", "split", "ranking", *_columns.NAMES])
        manifest.writeheader()
        with ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool:
            for data in sets:
                (folder / data.split).mkdir(exist_ok=True)
                for where, batch in _chunks(data):
                    names = [f"{data.split}/{index:05d}.png" for index in where]
                    list(pool.map(_write_one, [folder / name for name in names], batch.images))
                    manifest.writerows(_rows(data, batch, names))
                    advance(len(where))


def _write_one(path: Path, image: Bytes) -> None:
    if path.is_file() and path.read_bytes().endswith(_PNG_END):
        return  # complete: written by an earlier run
    part = path.with_suffix(".part")
    part.write_bytes(encode_png(image))
    part.replace(path)


def _rows(data: RankedMNIST, batch: Batch, names: list[str]) -> Iterator[dict[str, object]]:
    columns = _columns.to_columns(batch)
    for row, (name, ranking) in enumerate(zip(names, data.texts(batch.ranks))):
        truth = {key: "" if (value := column[row]) is None else value for key, column in columns.items()}
        yield {"image": name, "split": data.split, "ranking": ranking, **truth}


def _read_png(folder: Path, split: Split) -> Batch:
    with (folder / MANIFEST).open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["split"] == split]
    images = [decode_png((folder / row["image"]).read_bytes()) for row in rows]
    columns = {
        name: [kind(row[name]) if row[name] else None for row in rows]
        for name, kind in _columns.KINDS.items()
    }
    return _columns.to_batch(_stack(folder, images), [row["ranking"] for row in rows], columns)


# --- NPZ -----------------------------------------------------------------------------------------


def _write_npz(sets: Sequence[RankedMNIST], folder: Path, advance: Callable[[int], None]) -> None:
    for data in sets:
        final = folder / f"{data.split}.npz"
        if final.exists():
            advance(len(data))
            continue
        table = data.recipes(np.arange(len(data)))
        side = data.setting.canvas
        shape = (len(data), data.setting.channels, side, side)
        with (
            files.aside(final) as part,
            zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        ):
            # Chunk by chunk: the images of a whole split are gigabytes.
            with archive.open("images.npy", "w", force_zip64=True) as file:
                header = {"descr": "|u1", "fortran_order": False, "shape": shape}
                np.lib.format.write_array_header_1_0(cast(Any, file), header)
                for where, batch in _chunks(data):
                    file.write(batch.images.data)
                    advance(len(where))
            for name in ("ranks", "scale", "brightness", "boxes"):
                with archive.open(f"{name}.npy", "w") as file:
                    np.lib.format.write_array(cast(Any, file), getattr(table, name))


def _read_npz(folder: Path, split: Split) -> Batch:
    # Opened here: numpy leaves a file that is cut off open.
    with (folder / f"{split}.npz").open("rb") as file, np.load(file, allow_pickle=False) as arrays:
        return Batch(**{name: arrays[name] for name in Batch._fields})


# --- Parquet -------------------------------------------------------------------------------------


def _write_parquet(sets: Sequence[RankedMNIST], folder: Path, advance: Callable[[int], None]) -> None:
    require("Parquet", "pyarrow")
    import pyarrow as pa
    import pyarrow.parquet as pq

    truth = [(name, pa.float64() if kind is float else pa.int32()) for name, kind in _columns.KINDS.items()]
    schema = pa.schema([("image", pa.binary()), ("split", pa.string()), ("ranking", pa.string()), *truth])
    for data in sets:
        final = folder / f"{data.split}.parquet"
        if final.exists():
            advance(len(data))
            continue
        with (
            files.aside(final) as part,
            pq.ParquetWriter(part, schema) as writer,
            ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool,
        ):
            for where, batch in _chunks(data):
                columns: dict[str, Any] = {
                    "image": list(pool.map(encode_png, batch.images)),
                    "split": [data.split] * len(where),
                    "ranking": data.texts(batch.ranks),
                    **_columns.to_columns(batch),
                }
                writer.write_table(pa.table(columns, schema=schema))
                advance(len(where))


def _read_parquet(folder: Path, split: Split) -> Batch:
    import pyarrow.parquet as pq

    table = pq.read_table(folder / f"{split}.parquet")
    images = [decode_png(cell.as_py()) for cell in table["image"]]
    columns = {name: table[name].to_pylist() for name in _columns.NAMES}
    return _columns.to_batch(_stack(folder, images), table["ranking"].to_pylist(), columns)


def _stack(folder: Path, images: list[Bytes]) -> Bytes:
    if images:
        return np.stack(images)
    setting = json.loads((folder / ABOUT).read_text(encoding="utf-8"))["setting"]
    side = setting["canvas"]
    return np.zeros((0, 3 if setting["colour"] else 1, side, side), np.uint8)


def export_format(folder: Path) -> str | None:
    """The format of an export in this folder, or None if there is none."""
    try:
        about = loads((folder / ABOUT).read_text("utf-8"))
        made = str(about["made_by"]).startswith("gaussianmlr ") and isinstance(about["splits"], dict)
        return str(about["format"]) if made else None
    except (OSError, ValueError, KeyError, TypeError):
        return None

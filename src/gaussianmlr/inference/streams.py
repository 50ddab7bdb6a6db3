"""Inputs of a prediction, one after the other: pictures, folders, tables, rows on standard input.

Only one instance (or row group of a Parquet file) is in memory at a time.
"""

from __future__ import annotations

import csv
import itertools
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

from torch import Tensor

from gaussianmlr._utils.bounded import check_file, is_folder, lines_of, open_text
from gaussianmlr._utils.extras import require
from gaussianmlr._utils.strict_json import loads
from gaussianmlr.data import Preprocess
from gaussianmlr.data.inputs import Inputs, columns_of, read_row
from gaussianmlr.data.readers.arrays import load_arrays
from gaussianmlr.data.readers.frames import FRAME_SUFFIXES, JSON_LINES, SEPARATORS, suffix_of
from gaussianmlr.data.readers.images import read_tensor
from gaussianmlr.data.readers.manifests import locate
from gaussianmlr.errors import DataError, shorten

__all__ = ["Bad", "Item", "Unread", "check", "located", "read", "stream"]

STANDARD_INPUT = "-"
_ARRAYS = (".npz", ".mat")
_IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".ppm", ".pgm")
_LONGEST = 1 << 24  # characters of a cell


class Item(NamedTuple):
    """An instance: its name, and its tensor."""

    name: str
    value: Tensor


class Bad(NamedTuple):
    """An instance that cannot be used, and why."""

    name: str
    reason: str


class Unread(NamedTuple):
    """A picture that is not opened yet."""

    name: str
    file: Path


Row = tuple[str, Mapping[str, Any] | str]  # a name, and the cells or what is wrong with them


def stream(
    sources: Iterable[str | os.PathLike[str]], inputs: Inputs, standard_input: IO[str] | None = None
) -> Iterator[Item | Bad]:
    r"""Every instance of the inputs in order; unusable ones with the reason.

    Parameters
    ----------
    sources : iterable of str or path
        For a model of pictures: pictures, folders of them (with all below), manifests. For a model of
        tables: CSV, TSV, JSON lines, Parquet, NPZ or MATLAB files. Or ``-``: rows on standard input, CSV
        or JSON lines; for pictures, rows with the column ``image``.
    inputs : Inputs
        What the model takes.
    standard_input : text stream, optional
        The input of ``-``.

    Raises
    ------
    DataError
        If an input does not exist or lacks columns of the model.

    Examples
    --------
    >>> import io
    >>> rows = io.StringIO("id,a,b\nx,1,2\ny,1,two\n")
    >>> for one in stream(["-"], {"kind": "table", "channels": 2, "columns": ["a", "b"]}, rows):
    ...     print(one)
    Item(name='x', value=tensor([1., 2.]))
    Bad(name='y', reason="'two' in column 'b'; expected a number")
    """
    for one in located(sources, inputs, standard_input):
        yield read(one, inputs)


def check(sources: Iterable[str | os.PathLike[str]], inputs: Inputs) -> list[str]:
    """The inputs as texts; those that do not exist are refused before any work.

    Examples
    --------
    >>> check(["-", "holyday"], {"kind": "table"})
    Traceback (most recent call last):
        ...
    gaussianmlr.errors.DataError: holyday: does not exist; expected pictures, folders, tables or '-'
    """
    if inputs["kind"] != "table" and "preprocess" not in inputs:
        raise DataError(
            "the model does not say how image files become its inputs; train it with `gmlr train`"
        )
    chosen = [str(source) for source in sources]
    for source in chosen:
        if source != STANDARD_INPUT and not is_folder(source):
            check_file(source, "pictures, folders, tables or '-'")
    return chosen


def located(
    sources: Iterable[str | os.PathLike[str]], inputs: Inputs, standard_input: IO[str] | None = None
) -> Iterator[Item | Bad | Unread]:
    """Like `stream`, but pictures are not opened yet, so that instances are cheap to send.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Path(folder, "a.png").touch()
    ...     found = list(located([folder], {"kind": "image", "preprocess": {}}))
    >>> [type(one).__name__ for one in found], found[0].file.name
    (['Unread'], 'a.png')
    """
    chosen = check(sources, inputs)
    for source in chosen:
        if inputs["kind"] == "table":
            yield from _table(source, inputs, standard_input, several=len(chosen) > 1)
        else:
            for name, file, trouble in _files(source, standard_input):
                yield Bad(name, trouble) if trouble else Unread(name, file)


def read(one: Item | Bad | Unread, inputs: Inputs) -> Item | Bad:
    """A `located` instance, its picture opened and made a tensor.

    Examples
    --------
    >>> from gaussianmlr.data import Preprocess
    >>> inputs = {"kind": "image", "preprocess": Preprocess(size=(8, 8)).to_dict()}
    >>> read(Unread("a", Path("nowhere.png")), inputs)
    Bad(name='a', reason='No such file or directory; expected a picture')
    """
    if not isinstance(one, Unread):
        return one
    try:
        return Item(one.name, read_tensor(one.file, Preprocess.from_dict(inputs["preprocess"])))
    except DataError as error:
        return Bad(one.name, str(error).removeprefix(f"{one.file}: "))


def _files(source: str, standard_input: IO[str] | None) -> Iterator[tuple[str, Path, str]]:
    path = Path(source)
    if source != STANDARD_INPUT and is_folder(path):
        for folder, below, names in os.walk(path):
            below.sort()
            for name in sorted(names):
                if name.lower().endswith(_IMAGE_SUFFIXES) and not name.startswith("."):
                    file = Path(folder, name)
                    yield str(file), file, ""
    elif source == STANDARD_INPUT or suffix_of(path) in FRAME_SUFFIXES:
        folder_of_rows = Path() if source == STANDARD_INPUT else path.parent
        for number, row in _rows(source, ["image"], standard_input):
            if isinstance(row, str):
                yield number, path, row
                continue
            value = row.get("image")
            if not isinstance(value, str) or not value.strip():
                yield number, path, "nothing in column 'image'; expected a path"
                continue
            # Standard input may name any file; a manifest only files below its folder.
            file, trouble = locate(folder_of_rows, value, allow_outside=source == STANDARD_INPUT)
            yield value, file, trouble
    else:
        yield source, path, ""


def _table(
    source: str, inputs: Inputs, standard_input: IO[str] | None, several: bool
) -> Iterator[Item | Bad]:
    columns = columns_of(inputs)
    prefix = f"{source}:" if several else ""
    arrays = source != STANDARD_INPUT and suffix_of(Path(source)) in _ARRAYS
    rows = _arrays(Path(source), columns) if arrays else _rows(source, columns, standard_input)
    for name, row in rows:
        if isinstance(row, str):
            yield Bad(prefix + name, row)
            continue
        try:
            yield Item(prefix + name, read_row(row, inputs))
        except DataError as error:
            yield Bad(prefix + name, error.rows[0][1] if error.rows else str(error))


def _arrays(path: Path, columns: Sequence[str]) -> Iterator[Row]:
    features = load_arrays(path, ("features",)).get("features")
    if features is None or features.ndim != 2 or features.shape[1] != len(columns):
        shape = "none" if features is None else list(features.shape)
        raise DataError(f"{path}: expected an array 'features' [N, {len(columns)}], got {shape}")
    for number, values in enumerate(features):
        yield str(number), dict(zip(columns, values.tolist()))


def _rows(source: str, columns: Sequence[str], standard_input: IO[str] | None) -> Iterator[Row]:
    """Rows and their names: the id, or the number."""
    path = Path(source)
    suffix = "" if source == STANDARD_INPUT else suffix_of(path)
    if suffix == ".parquet":
        yield from _parquet(path, columns)
        return
    if source != STANDARD_INPUT and suffix not in FRAME_SUFFIXES:
        raise DataError(f"{path}: expected a table ({', '.join((*FRAME_SUFFIXES, *_ARRAYS))}) or '-'")
    try:
        if source == STANDARD_INPUT:
            yield from _standard_rows(standard_input, columns)
            return
        with open_text(path, held=False) as text:
            if suffix in JSON_LINES:
                yield from _json_lines(lines_of(text, source))
            else:
                yield from _separated(text, SEPARATORS[suffix], source, columns)
    except UnicodeDecodeError as error:
        name = "standard input" if source == STANDARD_INPUT else source
        raise DataError(f"{name}: byte {error.start} is not UTF-8; save the table as UTF-8") from None


def _standard_rows(standard_input: IO[str] | None, columns: Sequence[str]) -> Iterator[Row]:
    if standard_input is None:
        raise DataError("'-' needs rows on standard input")
    lines = lines_of(standard_input, "standard input")
    first = next((line for line in lines if line.strip()), "")
    lines = itertools.chain([first], lines) if first else iter(())
    if first.lstrip("\ufeff \t").startswith("{"):
        yield from _json_lines(lines)
    else:
        separator = "\t" if "\t" in first and "," not in first else ","
        yield from _separated(lines, separator, "standard input", columns)


def _separated(lines: Iterable[str], separator: str, source: str, columns: Sequence[str]) -> Iterator[Row]:
    csv.field_size_limit(_LONGEST)
    reader = csv.reader(lines, delimiter=separator)
    try:
        header = [name.strip() for name in next(reader, [])]
    except csv.Error as error:
        raise DataError(f"{source}: the header cannot be read: {error}") from None
    if header:
        header[0] = header[0].removeprefix("\ufeff")
    if missing := [column for column in columns if column not in header]:
        raise DataError(f"{source}: no columns {shorten(missing)}; it has {shorten(header)}")
    twice = sorted({name for name in columns if header.count(name) > 1})
    if twice:
        raise DataError(f"{source}: columns must differ, but {shorten(twice)} occur more than once")
    number = 0
    while True:
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise DataError(f"{source}: cannot be read after row {number - 1}: {error}") from None
        if not cells:
            continue
        if len(cells) == len(header):
            row = dict(zip(header, cells))
            yield row.get("id") or str(number), row
        else:
            yield str(number), f"{len(cells)} cells; expected {len(header)}, as in the header"
        number += 1


def _json_lines(lines: Iterable[str]) -> Iterator[Row]:
    number = 0
    for line in lines:
        if not line.strip():
            continue
        try:
            row = loads(line.lstrip("\ufeff"))
        except ValueError as error:
            yield str(number), f"{shorten(line.strip())} is not JSON: {error}"
        else:
            named = isinstance(row, dict)
            wrong = f"{shorten(row)}; expected an object, {{...}}"
            yield str(row.get("id", number)) if named else str(number), row if named else wrong
        number += 1


def _parquet(path: Path, columns: Sequence[str]) -> Iterator[Row]:
    require("Parquet", "pyarrow")
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            names = file.schema_arrow.names
            if missing := [column for column in columns if column not in names]:
                raise DataError(f"{path}: no columns {shorten(missing)}; it has {shorten(names)}")
            wanted = [*columns, *(["id"] if "id" in names else [])]
            number = 0
            for group in range(file.num_row_groups):
                # One group at a time, to bound the memory.
                for batch in file.iter_batches(batch_size=1024, row_groups=[group], columns=wanted):
                    for row in batch.to_pylist():
                        yield str(row.get("id", number)), row
                        number += 1
    except DataError:
        raise
    except Exception as error:  # a damaged file can make pyarrow raise anything
        raise DataError(f"{path}: cannot be read as parquet: {error}") from None

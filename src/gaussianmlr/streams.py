"""Inputs of a prediction, one after the other: pictures, folders, tables, rows on standard input.

Nothing is held but the instance at hand (a row group of a Parquet file), whatever the size of the input.
"""

from __future__ import annotations

import contextlib
import csv
import gzip
import itertools
import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from torch import Tensor

from gaussianmlr.data import Preprocess
from gaussianmlr.data._frames import FRAME_SUFFIXES, JSON_LINES, SEPARATORS, suffix_of
from gaussianmlr.data.manifests import locate
from gaussianmlr.errors import DataError, shorten
from gaussianmlr.model import Inputs
from gaussianmlr.sources import picture, scaled

__all__ = ["Bad", "Item", "Unread", "check", "located", "number_of", "read", "stream"]

STANDARD_INPUT = "-"
_ARRAYS = (".npz", ".mat")
_IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".ppm", ".pgm")
_LONGEST = 1 << 24  # characters of a cell


class Item(NamedTuple):
    """An instance: what to call it, and the tensor that the model takes."""

    name: str
    value: Tensor


class Bad(NamedTuple):
    """An instance that cannot be used, and why."""

    name: str
    reason: str


class Unread(NamedTuple):
    """A picture that nobody has opened yet."""

    name: str
    file: Path


Row = tuple[str, Mapping[str, Any] | str]  # a name, and the cells or what is wrong with them


def stream(
    sources: Iterable[str | os.PathLike[str]], inputs: Inputs, standard_input: IO[str] | None = None
) -> Iterator[Item | Bad]:
    r"""Every instance of some inputs, in their order; those that cannot be used with the reason.

    Parameters
    ----------
    sources : iterable of str or path
        For a model of pictures: pictures, folders of them (with all below), manifests. For a model of
        tables: CSV, TSV, JSON lines, Parquet, NPZ or MATLAB files. Or ``-``: rows on standard input, CSV
        or JSON lines; for pictures, rows with the column ``image``.
    inputs : Inputs
        What the model takes.
    standard_input : text stream, optional
        What ``-`` reads.

    Raises
    ------
    DataError
        Where a whole input cannot be used: it is not there, or has not the model's columns.

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
    """The inputs as texts; what cannot be used is found out before any work.

    Examples
    --------
    >>> check(["-", "holyday"], {"kind": "table"})
    Traceback (most recent call last):
        ...
    gaussianmlr.errors.DataError: holyday: does not exist; expected pictures, folders, tables or '-'
    """
    if inputs["kind"] != "table" and "preprocess" not in inputs:
        raise DataError("the model does not say how image files become its inputs; train it by `gmlr train`")
    chosen = [str(source) for source in sources]
    for source in chosen:
        if source != STANDARD_INPUT and not Path(source).exists():
            raise DataError(f"{source}: does not exist; expected pictures, folders, tables or '-'")
    return chosen


def located(
    sources: Iterable[str | os.PathLike[str]], inputs: Inputs, standard_input: IO[str] | None = None
) -> Iterator[Item | Bad | Unread]:
    """What `stream` gives, pictures not opened yet: light enough to be sent to whoever reads them.

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
    """An instance that was `located`, its picture opened and made a tensor.

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
        return Item(one.name, picture(one.file, Preprocess.from_dict(inputs["preprocess"])))
    except DataError as error:
        return Bad(one.name, str(error).removeprefix(f"{one.file}: "))


def _files(source: str, standard_input: IO[str] | None) -> Iterator[tuple[str, Path, str]]:
    path = Path(source)
    if source != STANDARD_INPUT and path.is_dir():
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
            # Who names files on standard input may name any; a manifest stays below its folder.
            file, trouble = locate(folder_of_rows, value, allow_outside=source == STANDARD_INPUT)
            yield value, file, trouble
    else:
        yield source, path, ""


def _table(
    source: str, inputs: Inputs, standard_input: IO[str] | None, several: bool
) -> Iterator[Item | Bad]:
    columns = inputs.get("columns") or [str(number) for number in range(inputs["channels"])]
    if source != STANDARD_INPUT and suffix_of(Path(source)) in _ARRAYS:
        yield from _arrays(Path(source), inputs, several)
        return
    prefix = f"{source}:" if several else ""
    for name, row in _rows(source, columns, standard_input):
        if isinstance(row, str):
            yield Bad(prefix + name, row)
            continue
        try:
            numbers = [number_of(row, column) for column in columns]
        except DataError as error:
            yield Bad(prefix + name, str(error))
            continue
        yield Item(prefix + name, scaled([numbers], inputs)[0])


def _arrays(path: Path, inputs: Inputs, several: bool) -> Iterator[Item | Bad]:
    from gaussianmlr.data.tables import load_arrays

    features = load_arrays(path).get("features")
    if features is None or features.ndim != 2 or features.shape[1] != inputs["channels"]:
        shape = "none" if features is None else list(features.shape)
        raise DataError(f"{path}: expected an array 'features' [N, {inputs['channels']}], got {shape}")
    prefix = f"{path}:" if several else ""
    for number, values in enumerate(features):
        if not np.isfinite(values.astype(np.float64)).all():
            yield Bad(f"{prefix}{number}", "a feature is no finite number")
        else:
            yield Item(f"{prefix}{number}", scaled(values[None], inputs)[0])


def number_of(row: Mapping[str, Any], column: str) -> float:
    """The finite number in a column of a row, or an error that shows what is there.

    Examples
    --------
    >>> number_of({"a": "1.5"}, "a")
    1.5
    >>> number_of({"a": "two"}, "a")
    Traceback (most recent call last):
        ...
    gaussianmlr.errors.DataError: 'two' in column 'a'; expected a number
    """
    if column not in row:
        raise DataError(f"no {column!r}; expected a number")
    value = row[column]
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        shown = "nothing" if value is None or value == "" else shorten(value)
        raise DataError(f"{shown} in column {column!r}; expected a number") from None
    if not math.isfinite(number):
        raise DataError(f"{value} in column {column!r}; expected a finite number")
    return number


def _rows(source: str, columns: Sequence[str], standard_input: IO[str] | None) -> Iterator[Row]:
    """Rows and what to call them: their id, or their number."""
    path = Path(source)
    suffix = "" if source == STANDARD_INPUT else suffix_of(path)
    if suffix == ".parquet":
        yield from _parquet(path, columns)
        return
    if source == STANDARD_INPUT:
        if standard_input is None:
            raise DataError("'-' needs rows on standard input")
        lines: Iterator[str] = iter(standard_input)
        first = next((line for line in lines if line.strip()), "")
        lines = itertools.chain([first], lines) if first else iter(())
        if first.lstrip("\ufeff \t").startswith("{"):
            yield from _json_lines(lines)
        else:
            separator = "\t" if "\t" in first and "," not in first else ","
            yield from _separated(lines, separator, "standard input", columns)
        return
    if suffix not in FRAME_SUFFIXES:
        raise DataError(f"{path}: expected a table ({', '.join((*FRAME_SUFFIXES, *_ARRAYS))}) or '-'")
    with contextlib.closing(_opened(path)) as text:
        try:
            if suffix in JSON_LINES:
                yield from _json_lines(text)
            else:
                yield from _separated(text, SEPARATORS[suffix], str(path), columns)
        except UnicodeDecodeError as error:
            raise DataError(f"{path}: byte {error.start} is not UTF-8; save the table as UTF-8") from None


def _opened(path: Path) -> IO[str]:
    if path.suffix.lower() == ".gz":
        return gzip.open(path, "rt", encoding="utf-8-sig", newline="")
    return path.open(encoding="utf-8-sig", newline="")


def _separated(lines: Iterable[str], separator: str, source: str, columns: Sequence[str]) -> Iterator[Row]:
    csv.field_size_limit(_LONGEST)
    reader = csv.reader(lines, delimiter=separator)
    header = [name.strip() for name in next(reader, [])]
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
            row = json.loads(line.lstrip("\ufeff"))
        except ValueError as error:
            yield str(number), f"{shorten(line.strip())} is no JSON: {error}"
        else:
            named = isinstance(row, dict)
            wrong = f"{shorten(row)}; expected an object, {{...}}"
            yield str(row.get("id", number)) if named else str(number), row if named else wrong
        number += 1


def _parquet(path: Path, columns: Sequence[str]) -> Iterator[Row]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            names = file.schema_arrow.names
            if missing := [column for column in columns if column not in names]:
                raise DataError(f"{path}: no columns {shorten(missing)}; it has {shorten(names)}")
            wanted = [*columns, *(["id"] if "id" in names else [])]
            number = 0
            for group in range(file.num_row_groups):
                # A group at a time: what was read of one is let go before the next.
                for batch in file.iter_batches(batch_size=1024, row_groups=[group], columns=wanted):
                    for row in batch.to_pylist():
                        yield str(row.get("id", number)), row
                        number += 1
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{path}: cannot be read as parquet: {error}") from None

"""Inputs of a prediction, one after the other: pictures, folders, tables, rows on standard input.

Only one instance (or row group of a Parquet file) is in memory at a time.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, NamedTuple

from torch import Tensor

from gaussianmlr._utils.bounded import check_file, is_folder
from gaussianmlr.data import Preprocess
from gaussianmlr.data.columns import Column, Unseen
from gaussianmlr.data.inputs import Inputs, RowReader, scaled, text_column
from gaussianmlr.data.readers.arrays import load_arrays
from gaussianmlr.data.readers.chunks import CHUNKED
from gaussianmlr.data.readers.frames import FRAME_SUFFIXES, suffix_of
from gaussianmlr.data.readers.images import read_tensor
from gaussianmlr.data.readers.layout import Layout
from gaussianmlr.data.readers.manifests import image_column, locate, pictures_below
from gaussianmlr.data.readers.texts import read_text, text_files
from gaussianmlr.data.readers.xmlc import is_xmlc, row_of, xmlc_lines
from gaussianmlr.data.recognise import part_files
from gaussianmlr.errors import DataError
from gaussianmlr.inference.rows import STANDARD_INPUT, Row, check_suffix, read_rows

__all__ = ["Bad", "Item", "Unread", "check", "located", "read", "stream"]

_ARRAYS = (".npz", ".mat")
Say = Callable[[str], None]


def _silent(_: str) -> None:
    """Say nothing."""


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


def stream(
    sources: Iterable[str | os.PathLike[str]],
    inputs: Inputs,
    standard_input: IO[str] | None = None,
    tally: Unseen | None = None,
    *,
    layout: Layout | None = None,
    say: Say = _silent,
) -> Iterator[Item | Bad]:
    r"""Every instance of the inputs in order; unusable ones with the reason.

    Parameters
    ----------
    sources : iterable of str or path
        For a model of pictures: pictures, folders of them (with all below), manifests. For a model of
        tables: CSV, TSV, JSON lines, Parquet, Excel, NPZ or MATLAB files, those that `read_xmlc` reads, or
        folders of tables of one kind;
        for a model of texts alone also folders of .txt files. Or ``-``: rows on standard input, CSV or JSON
        lines; for pictures, rows with the column ``image``; for texts also one text per line.
    inputs : Inputs
        What the model takes.
    standard_input : text stream, optional
        The input of ``-``.
    tally : Counter, optional
        Counts cells of tables that no training row had, see `gaussianmlr.data.columns.unseen`.
    layout : Layout, optional
        The format of tables and their column of ids; found out if left out.
    say : callable
        Called with what was found out.

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
    for one in located(sources, inputs, standard_input, tally, layout=layout, say=say):
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
    sources: Iterable[str | os.PathLike[str]],
    inputs: Inputs,
    standard_input: IO[str] | None = None,
    tally: Unseen | None = None,
    *,
    layout: Layout | None = None,
    say: Say = _silent,
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
    chosen, layout = check(sources, inputs), layout or Layout()
    for source in chosen:
        if inputs["kind"] == "table":
            prefix = f"{source}:" if len(chosen) > 1 else ""
            reader = RowReader(inputs, tally)
            if source != STANDARD_INPUT and is_xmlc(Path(source)):
                yield from _sparse(Path(source), reader, prefix)
                continue
            rows = _rows_of(source, reader, standard_input, layout, say)
            yield from _table(reader, rows, prefix)
        else:
            for name, file, trouble in _files(source, standard_input, layout, say):
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


def _files(
    source: str, standard_input: IO[str] | None, layout: Layout, say: Say
) -> Iterator[tuple[str, Path, str]]:
    path = Path(source)
    if source != STANDARD_INPUT and is_folder(path):
        for file in pictures_below(path):
            yield str(file), file, ""
    elif source == STANDARD_INPUT or suffix_of(path) in FRAME_SUFFIXES:
        folder_of_rows = Path() if source == STANDARD_INPUT else path.parent
        column = (None if source == STANDARD_INPUT else image_column(path, layout)) or "image"
        for number, row in read_rows(source, [column], standard_input, layout, say):
            if isinstance(row, str):
                yield number, path, row
                continue
            value = row.get(column)
            if not isinstance(value, str) or not value.strip():
                yield number, path, f"nothing in column {column!r}; expected a path"
                continue
            # Standard input may name any file; a manifest only files below its folder.
            file, trouble = locate(folder_of_rows, value, allow_outside=source == STANDARD_INPUT)
            yield value, file, trouble
    else:
        yield source, path, ""


def _rows_of(
    source: str, reader: RowReader, standard_input: IO[str] | None, layout: Layout, say: Say
) -> Iterator[Row]:
    path, columns = Path(source), reader.columns
    if source != STANDARD_INPUT:
        column = text_column(reader.inputs)
        if column is not None and is_folder(path) and next(iter(text_files(path)), None) is not None:
            return _text_rows(path, column)
        if is_folder(path):
            return _folder_rows(path, reader, standard_input, layout, say)
        if suffix_of(path) in _ARRAYS:
            return _arrays(path, columns)
        check_suffix(path, _ARRAYS)
    return read_rows(source, columns, standard_input, layout, say, reader.texts)


def _folder_rows(
    folder: Path, reader: RowReader, standard_input: IO[str] | None, layout: Layout, say: Say
) -> Iterator[Row]:
    """The rows of all tables of a folder that are one table in parts."""
    files = part_files(folder)
    if not files:
        texts = "" if text_column(reader.inputs) is None else ".txt files, or "
        raise DataError(f"{folder}: expected {texts}tables ({', '.join(CHUNKED)}), all of one kind")
    for file in files:
        name = file.relative_to(folder).as_posix()
        for number, row in read_rows(str(file), reader.columns, standard_input, layout, say, reader.texts):
            yield f"{name}:{number}", row


def _text_rows(folder: Path, column: str) -> Iterator[Row]:
    """The files of texts below a folder, each one row."""
    for file in text_files(folder):
        try:
            yield str(file), {column: read_text(file)}
        except DataError as error:
            yield str(file), str(error).removeprefix(f"{file}: ")


def _table(reader: RowReader, rows: Iterator[Row], prefix: str) -> Iterator[Item | Bad]:
    for name, row in rows:
        if isinstance(row, str):
            yield Bad(prefix + name, row)
            continue
        try:
            yield Item(prefix + name, reader.tensor([reader.coded(row)])[0])
        except DataError as error:
            yield Bad(prefix + name, error.rows[0][1] if error.rows else str(error))


def _sparse(path: Path, reader: RowReader, prefix: str) -> Iterator[Item | Bad]:
    """The lines of a file of the extreme classification repository, one after the other."""
    if reader.encoding is not None:
        held = next(one.shown for one in reader.encoding if one != Column())
        raise DataError(f"{path} holds numbers alone; the model takes columns of other kinds, such as {held}")
    for number, line in enumerate(xmlc_lines(path)):
        try:
            yield Item(f"{prefix}{number}", scaled(row_of(line, len(reader.columns)), reader.inputs)[0])
        except DataError as error:
            yield Bad(f"{prefix}{number}", str(error))


def _arrays(path: Path, columns: Sequence[str]) -> Iterator[Row]:
    features = load_arrays(path, ("features",)).get("features")
    if features is None or features.ndim != 2 or features.shape[1] != len(columns):
        shape = "none" if features is None else list(features.shape)
        raise DataError(f"{path}: expected an array 'features' [N, {len(columns)}], got {shape}")
    for number, values in enumerate(features):
        yield str(number), dict(zip(columns, values.tolist()))

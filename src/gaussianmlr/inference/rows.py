"""Rows of tables and of standard input, one after the other, with columns matched by name."""

from __future__ import annotations

import csv
import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from gaussianmlr._utils.bounded import lines_of, open_text
from gaussianmlr._utils.extras import require
from gaussianmlr._utils.strict_json import loads
from gaussianmlr.data.readers.dialects import (
    find_dialect,
    find_encoding,
    find_separator,
    open_table,
    refuse_encoding,
)
from gaussianmlr.data.readers.excel import EXCEL, sheet_rows
from gaussianmlr.data.readers.frames import FRAME_SUFFIXES, JSON_LINES, suffix_of
from gaussianmlr.data.readers.layout import Layout, did_you_mean, fold, match_name
from gaussianmlr.data.readers.numerals import decide, evidence_of, kind_of, with_point
from gaussianmlr.data.readers.separated import SEPARATORS, named
from gaussianmlr.errors import DataError, shorten

__all__ = ["STANDARD_INPUT", "Row", "read_rows"]

STANDARD_INPUT = "-"
Row = tuple[str, Mapping[str, Any] | str]  # a name, and the cells or what is wrong with them
Say = Callable[[str], None]
_LONGEST = 1 << 24  # characters of a cell
_LOOKED_AT = 1000  # rows that decide how numbers are written


def read_rows(
    source: str,
    columns: Sequence[str],
    standard_input: IO[str] | None,
    layout: Layout,
    say: Say,
    texts: Collection[str] = (),
) -> Iterator[Row]:
    """Rows and their names: the id, or the number.

    Parameters
    ----------
    source : str
        A file, or ``-``.
    columns : sequence of str
        The columns that are needed; other cells may be there too.
    standard_input : text stream or None
        The input of ``-``.
    layout : Layout
        The format of the file, and its column of ids.
    say : callable
        Called with what was found out about the format.
    texts : collection of str
        Columns of texts, in which nothing is a number. If only one is needed, lines of standard input are
        texts where the first is neither JSON nor a header with that column.
    """
    plain = columns[0] if len(columns) == 1 and columns[0] in texts else None
    ahead = 1 if source == STANDARD_INPUT else _LOOKED_AT  # the first rows do not wait for later ones
    rows = _rows(source, columns, standard_input, layout, say, plain)
    head = list(itertools.islice(rows, ahead))
    cells = [row for _, row in head if not isinstance(row, str)]
    numbers = [column for column in columns if column not in texts]
    found = {column: evidence_of(row.get(column) for row in cells) for column in numbers}
    verdict = decide(
        found, layout.decimal, any(_is_fraction(row.get(one)) for row in cells for one in numbers)
    )
    name = "standard input" if source == STANDARD_INPUT else source
    for column, problem in verdict.problems.items():
        if found[column].has("comma or thousands", "dot or thousands"):
            raise DataError(f"{name}: column {column!r}: {problem}")
    if verdict.commas:
        say(f"{name}: decimal commas are read in {shorten(list(verdict.commas))[1:-1]} (--decimal)")
    certain = layout.decimal == "," or bool(verdict.commas)
    numeric = [column for column in found if found[column].numeric or not found[column].counts]
    for number, row in itertools.chain(head, rows):
        yield number, row if isinstance(row, str) else _settled(row, numeric, layout.decimal, certain)


def _is_fraction(value: object) -> bool:
    return isinstance(value, float) and value % 1 != 0


def _settled(
    row: Mapping[str, Any], numeric: Iterable[str], decimal: str | None, certain: bool
) -> Mapping[str, Any]:
    """A row with decimal points; a number that may have a separator of thousands stays and is refused."""
    changes = {}
    for column in numeric:
        value = row.get(column)
        if isinstance(value, str) and "," in value and decimal != ".":
            kind = kind_of(value)
            if kind == "comma" or (certain and kind == "comma or thousands"):
                changes[column] = with_point(value)
    return {**row, **changes} if changes else row


def _rows(
    source: str,
    columns: Sequence[str],
    standard_input: IO[str] | None,
    layout: Layout,
    say: Say,
    plain: str | None = None,
) -> Iterator[Row]:
    path = Path(source)
    suffix = "" if source == STANDARD_INPUT else suffix_of(path)
    if source == STANDARD_INPUT:
        yield from _standard_rows(standard_input, columns, layout, plain)
        return
    if suffix == ".parquet":
        yield from _parquet(path, columns, layout)
        return
    notes: list[str] = []
    try:
        if suffix in EXCEL:
            yield from _cells(sheet_rows(path, layout.sheet, notes), source, columns, layout, notes, say)
        elif suffix in JSON_LINES:
            encoding, _ = find_encoding(path, layout)
            with open_text(path, held=False, encoding=encoding) as text:
                yield from _json_lines(lines_of(text, source), columns, layout)
        else:
            if suffix == ".txt" and plain is not None:
                _refuse_lines(path, plain, layout)
            dialect = find_dialect(path, layout, SEPARATORS[suffix])
            notes += dialect.notes
            with open_table(path, dialect, held=False) as text:
                yield from _cells(
                    _separated(text, dialect.separator, source), source, columns, layout, notes, say
                )
    except UnicodeDecodeError:
        refuse_encoding(path, layout.encoding or "utf-8")


def _standard_rows(
    standard_input: IO[str] | None, columns: Sequence[str], layout: Layout, plain: str | None
) -> Iterator[Row]:
    name = "standard input"
    if standard_input is None:
        raise DataError("'-' needs rows on standard input")
    lines = lines_of(standard_input, name)
    try:
        head = list(itertools.islice((line for line in lines if line.strip()), 1))
        if head and head[0].lstrip("\ufeff \t").startswith("{"):
            yield from _json_lines(itertools.chain(head, lines), columns, layout)
            return
        if plain is not None and head and not _is_header(head[0], plain, layout):
            yield from _lines_of_texts(itertools.chain(head, lines), plain)
            return
        separator = layout.sep or (find_separator(head, ",", name) if head else ",")
        rows = _separated(itertools.chain(head, lines), separator, name)
        yield from _cells(rows, name, columns, layout, [], lambda _: None)
    except UnicodeDecodeError as error:
        raise DataError(f"{name}: byte {error.start} is not UTF-8; pass --encoding") from None


def _refuse_lines(path: Path, column: str, layout: Layout) -> None:
    """Refuse a file of texts without a header: it may hold one text, or one per line."""
    encoding, _ = find_encoding(path, layout)
    with open_text(path, held=False, encoding=encoding) as text:
        head = next((line for line in lines_of(text, str(path)) if line.strip()), "")
    if not _is_header(head.removeprefix("\ufeff"), column, layout):
        raise DataError(
            f"{path}: expected a table with a column {column!r}, got {shorten(head.strip())}; for one text "
            "per line pass '-' and the file as standard input, for one text per file its folder"
        )


def _is_header(line: str, column: str, layout: Layout) -> bool:
    """Whether a line names a column of texts, alone or beside others."""
    signs = [layout.sep] if layout.sep else [",", ";", "\t", "|"]
    return any(match_name(column, named(next(csv.reader([line], delimiter=sign), []))) for sign in signs)


def _lines_of_texts(lines: Iterable[str], column: str) -> Iterator[Row]:
    """One text per line, also an empty one; a quote is a character like any other."""
    for number, line in enumerate(lines):
        text = line.rstrip("\r\n")
        yield str(number), {column: text.removeprefix("\ufeff") if number == 0 else text}


def _separated(lines: Iterable[str], separator: str, source: str) -> Iterator[list[str]]:
    csv.field_size_limit(_LONGEST)
    reader = csv.reader(lines, delimiter=separator)
    number = -1
    while True:
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            where = "the header cannot be read" if number < 0 else f"cannot be read after row {number - 1}"
            raise DataError(f"{source}: {where}: {error}") from None
        if cells:
            yield cells
            number += 1


def _cells(
    rows: Iterator[list[Any]],
    source: str,
    columns: Sequence[str],
    layout: Layout,
    notes: list[str],
    say: Say,
) -> Iterator[Row]:
    """Rows under a header, by the names of the columns that are needed."""
    header = named(next(rows, []))
    if header:
        header[0] = header[0].removeprefix("\ufeff")
    places = {column: header.index(name) for column, name in matched(columns, header, source).items()}
    twice = sorted({header[place] for place in places.values() if header.count(header[place]) > 1})
    if twice:
        raise DataError(f"{source}: columns must differ, but {shorten(twice)} occur more than once")
    ids = id_column(header, layout, source)
    for note in notes:
        say(f"{source}: {note}")
    for number, cells in enumerate(rows):
        if len(cells) != len(header):
            yield str(number), f"{len(cells)} cells; expected {len(header)}, as in the header"
            continue
        row = dict(zip(header, cells)) | {column: cells[place] for column, place in places.items()}
        name = None if ids is None else row[ids]
        yield str(number) if name is None or name == "" else str(name), row


def matched(columns: Sequence[str], names: Sequence[str], source: str) -> dict[str, str]:
    """The column of a table for each that is needed.

    Examples
    --------
    >>> matched(["age"], ["Age", "sex"], "people.csv")
    {'age': 'Age'}
    """
    known = set(names)
    found = {column: column if column in known else match_name(column, names) for column in columns}
    missing = [column for column, name in found.items() if name is None]
    if missing:
        hint = (
            did_you_mean(missing[0], names)
            .replace("the columns are", "it has")
            .replace("The columns are", "It has")
        )
        raise DataError(f"{source}: no columns {shorten(missing)}; {hint}")
    return {column: name for column, name in found.items() if name is not None}


def id_column(names: Sequence[str], layout: Layout, source: str) -> str | None:
    """The column of ids; one that was asked for must be there."""
    if layout.id is None:
        return None
    found = match_name(layout.id, names)
    if found is None and layout.id != Layout().id:
        raise DataError(f"{source}: no column {layout.id!r} (id); {did_you_mean(layout.id, names)}")
    return found


def _json_lines(lines: Iterable[str], columns: Sequence[str], layout: Layout) -> Iterator[Row]:
    number = 0
    for line in lines:
        if not line.strip():
            continue
        try:
            row = loads(line.lstrip("\ufeff"))
        except ValueError as error:
            yield str(number), f"{shorten(line.strip())} is not JSON: {error}"
        else:
            if isinstance(row, dict):
                name = row.get(layout.id or "id", number)
                yield str(name), _renamed(row, columns)
            else:
                yield str(number), f"{shorten(row)}; expected an object, {{...}}"
        number += 1


def _renamed(row: dict[str, Any], columns: Sequence[str]) -> dict[str, Any]:
    """A row with its keys under the names of the columns, where case or spaces differ."""
    if all(column in row for column in columns):
        return row
    folded = {fold(name): name for name in row}
    others = {
        column: folded[fold(column)] for column in columns if column not in row and fold(column) in folded
    }
    return {**row, **{column: row[name] for column, name in others.items()}}


def _parquet(path: Path, columns: Sequence[str], layout: Layout) -> Iterator[Row]:
    require("Parquet", "pyarrow")
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path, buffer_size=1 << 20, pre_buffer=False) as file:
            names = file.schema_arrow.names
            places = matched(columns, names, str(path))
            ids = id_column(names, layout, str(path))
            wanted = list(dict.fromkeys([*places.values(), *([ids] if ids else [])]))
            number = 0
            for group in range(file.num_row_groups):
                # One group at a time, to bound the memory.
                for batch in file.iter_batches(batch_size=1024, row_groups=[group], columns=wanted):
                    for row in batch.to_pylist():
                        cells = {**row, **{column: row[name] for column, name in places.items()}}
                        yield str(number if ids is None else row[ids]), cells
                        number += 1
    except DataError:
        raise
    except Exception as error:  # a damaged file can make pyarrow raise anything
        raise DataError(f"{path}: cannot be read as parquet: {error}") from None


def check_suffix(path: Path, arrays: Sequence[str]) -> None:
    """Refuse files that are no table by their name."""
    if suffix_of(path) not in FRAME_SUFFIXES:
        raise DataError(f"{path}: expected a table ({', '.join((*FRAME_SUFFIXES, *arrays))}) or '-'")

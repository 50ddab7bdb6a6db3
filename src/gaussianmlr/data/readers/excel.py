"""Sheets of Excel files, row by row."""

from __future__ import annotations

import warnings
import zipfile
from array import array
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, BinaryIO

from gaussianmlr._utils.bounded import check_unpacked
from gaussianmlr._utils.extras import require
from gaussianmlr.errors import DataError, shorten

EXCEL = (".xlsx", ".xlsm")
_ERRORS = ("#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!", "#NULL!")
_OLD = b"\xd0\xcf\x11\xe0"
_ROWS, _COLUMNS = 1 << 20, 1 << 14  # of Excel
_CELLS = 5_000_000  # that any file may have, empty ones included; and for large files
_CELLS_PER_BYTE = 100
_MARKS = 500_000  # tags and attributes that are parsed of any file; and for large files
_MARKS_PER_BYTE = 12  # sheets of zeros alone have 4
_LONGEST_TAG = 1 << 20  # bytes; older parsers take quadratic time


def sheet_rows(path: Path, sheet: str | None, notes: list[str]) -> Iterator[list[Any]]:
    """The header and the rows of a sheet, the first one if none is named; blank rows are left out.

    Formulas are read as the values that the program which saved the file computed.

    Raises
    ------
    DataError
        For files that are not Excel's or unpack to too much, unknown sheets, cells with an error, and
        formulas without a value.
    """
    require("Excel", "openpyxl")
    _check(path)
    with _workbook(path, values=True) as book:
        chosen = _chosen(book, sheet, path, notes)
        width, left = 0, _most_cells(path)
        gaps = array("q")  # places of empty cells, in order
        for number, row in enumerate(_rows(path, chosen), 1):
            if all(value is None or value == "" for value in row):
                continue
            if not width:
                width = max(place for place, value in enumerate(row, 1) if value not in (None, ""))
                yield list(row[:width])
                continue
            left -= width  # rows are stored as wide as the header
            if left < 0:
                raise _beyond(path, number)
            cells = list(row[:width]) + [None] * (width - len(row))
            _refuse_errors(cells, number, path)
            if extra := [value for value in row[width:] if value not in (None, "")]:
                raise DataError(
                    f"{path}: row {number} holds {shorten(extra[0])} behind the last column of the header"
                )
            gaps.extend(number * _COLUMNS + place for place, value in enumerate(cells) if value is None)
            yield cells
        title = chosen.title
    if gaps:
        _refuse_uncomputed(path, title, gaps)


def _check(path: Path) -> None:
    try:
        with path.open("rb") as file:
            if file.read(4) == _OLD:
                raise DataError(
                    f"{path}: is an old Excel file (.xls) or one with a password; save it as .xlsx or CSV"
                )
        with zipfile.ZipFile(path) as packed:
            check_unpacked(path, sum(entry.file_size for entry in packed.infolist()))
    except (zipfile.BadZipFile, OSError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{path}: cannot be read as Excel: {error}") from None


class _Archive(zipfile.ZipFile):
    """The parts of a file, with a limit on the tags and attributes in all that is read of them.

    The limit on bytes is not enough: five bytes of XML may take a hundred of memory, and microseconds.
    """

    def __init__(self, file: BinaryIO, path: Path) -> None:
        super().__init__(file)
        self.path, self.left = path, max(_MARKS, _MARKS_PER_BYTE * path.stat().st_size)

    def open(self, *arguments: Any, **options: Any) -> Any:
        return _Counted(super().open(*arguments, **options), self)


class _Counted:
    def __init__(self, stream: Any, archive: _Archive) -> None:
        self.stream, self.archive, self.since = stream, archive, 0

    def read(self, size: int = -1) -> bytes:
        data: bytes = self.stream.read(size)
        self.archive.left -= data.count(b"<") + data.count(b"=")
        self.since = len(data) - place - 1 if (place := data.rfind(b">")) >= 0 else self.since + len(data)
        if self.archive.left < 0 or (self.since > _LONGEST_TAG and size > 0):
            raise DataError(
                f"{self.archive.path}: unpacks to many more or longer tags than a file of this size has; "
                "save it as CSV"
            )
        return data

    def close(self) -> None:
        self.stream.close()

    def __enter__(self) -> _Counted:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _line(error: BaseException) -> str:
    """What an error says, in one short line."""
    return " ".join(str(error).split())[:200]


@contextmanager
def _workbook(path: Path, *, values: bool) -> Iterator[Any]:
    from openpyxl.reader.excel import ExcelReader

    # The file is closed here, whatever openpyxl leaves open when it fails.
    with warnings.catch_warnings(), path.open("rb") as file:
        warnings.simplefilter("ignore")  # of styles and extensions that do not matter here
        try:
            reader = ExcelReader(file, read_only=True, data_only=values, keep_links=False)
            reader.archive = _Archive(file, path)
            reader.read()
            book = reader.wb
        except Exception as error:  # a damaged file can make openpyxl raise anything
            if isinstance(found := error.__cause__ or error, DataError):  # openpyxl adds words of its own
                raise found from None
            raise DataError(f"{path}: cannot be read as Excel: {_line(found)}") from None
        try:
            yield book
        finally:
            book.close()


def _chosen(book: Any, sheet: str | None, path: Path, notes: list[str]) -> Any:
    titles = [one.title for one in book.worksheets]
    if not titles:
        raise DataError(f"{path}: has no sheet with cells")
    if sheet is None:
        if len(titles) > 1:
            notes.append(
                f"read the sheet {titles[0]!r}, the first of {shorten(titles)}; --sheet takes another"
            )
        return book.worksheets[0]
    if sheet in titles:
        return book.worksheets[titles.index(sheet)]
    folded = [title.strip().casefold() for title in titles]
    if folded.count(sheet.strip().casefold()) == 1:
        return book.worksheets[folded.index(sheet.strip().casefold())]
    if sheet.isdecimal() and 1 <= int(sheet) <= len(titles):
        return book.worksheets[int(sheet) - 1]
    raise DataError(f"{path}: no sheet {sheet!r}; it has {shorten(titles)}, numbered from 1")


def _rows(path: Path, sheet: Any) -> Iterator[Sequence[Any]]:
    sheet.reset_dimensions()  # the stated size may be wrong
    rows = sheet.iter_rows(max_row=_ROWS + 1, values_only=True)
    left = _most_cells(path)
    for number in count(1):
        try:
            row = next(rows)
        except StopIteration:
            return
        except DataError:
            raise
        except Exception as error:  # a damaged file can make openpyxl raise anything
            raise DataError(f"{path}: cannot be read as Excel: {_line(error)}") from None
        left -= len(row)
        if number > _ROWS or len(row) > _COLUMNS or left < 0:
            raise _beyond(path, number)
        yield row


def _most_cells(path: Path) -> int:
    return max(_CELLS, _CELLS_PER_BYTE * path.stat().st_size)


def _beyond(path: Path, number: int) -> DataError:
    return DataError(
        f"{path}: row {number} lies beyond {_ROWS:,} rows, {_COLUMNS:,} columns, or as many cells "
        "as a file of this size has"
    )


def _refuse_errors(cells: list[Any], number: int, path: Path) -> None:
    for place, value in enumerate(cells):
        if isinstance(value, str) and value in _ERRORS:
            raise DataError(
                f"{path}: cell {_name(number, place)} holds {value}, the error of a formula; expected a value"
            )


def _refuse_uncomputed(path: Path, title: str, gaps: array[int]) -> None:
    """Refuse formulas without a value, which a program wrote that does not compute."""
    with _workbook(path, values=False) as book:
        for number, row in enumerate(_rows(path, book[title]), 1):
            for place, value in enumerate(row):
                if value is not None and _holds(gaps, number * _COLUMNS + place):
                    raise DataError(
                        f"{path}: cell {_name(number, place)} holds the formula {shorten(str(value))} "
                        "without a value; open and save the file in a spreadsheet program first"
                    )


def _holds(places: array[int], place: int) -> bool:
    found = bisect_left(places, place)
    return found < len(places) and places[found] == place


def _name(row: int, column: int) -> str:
    """The name of a cell, from the number of its row and its place in it.

    Examples
    --------
    >>> _name(3, 0), _name(1, 27)
    ('A3', 'AB1')
    """
    letters = ""
    column += 1
    while column:
        column, letter = divmod(column - 1, 26)
        letters = chr(65 + letter) + letters
    return f"{letters}{row}"

"""Sheets of Excel files, row by row."""

from __future__ import annotations

import warnings
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gaussianmlr._utils.bounded import check_unpacked
from gaussianmlr._utils.extras import require
from gaussianmlr.errors import DataError, shorten

EXCEL = (".xlsx", ".xlsm")
_ERRORS = ("#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!", "#NULL!")
_OLD = b"\xd0\xcf\x11\xe0"


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
        width = 0
        gaps: list[tuple[int, int]] = []
        for number, row in enumerate(_rows(path, chosen), 1):
            if all(value is None or value == "" for value in row):
                continue
            if not width:
                width = max(place for place, value in enumerate(row, 1) if value not in (None, ""))
                yield list(row[:width])
                continue
            cells = list(row[:width]) + [None] * (width - len(row))
            _refuse_errors(cells, number, path)
            if extra := [value for value in row[width:] if value not in (None, "")]:
                raise DataError(
                    f"{path}: row {number} holds {shorten(extra[0])} behind the last column of the header"
                )
            gaps += [(number, place) for place, value in enumerate(cells) if value is None]
            yield cells
        title = chosen.title
    if gaps:
        _refuse_uncomputed(path, title, set(gaps))


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


@contextmanager
def _workbook(path: Path, *, values: bool) -> Iterator[Any]:
    import openpyxl

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of styles and extensions that do not matter here
        try:
            book = openpyxl.load_workbook(path, read_only=True, data_only=values, keep_links=False)
        except Exception as error:  # a damaged file can make openpyxl raise anything
            raise DataError(f"{path}: cannot be read as Excel: {str(error).strip()}") from None
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
    rows = sheet.iter_rows(values_only=True)
    while True:
        try:
            yield next(rows)
        except StopIteration:
            return
        except Exception as error:  # a damaged file can make openpyxl raise anything
            raise DataError(f"{path}: cannot be read as Excel: {str(error).strip()}") from None


def _refuse_errors(cells: list[Any], number: int, path: Path) -> None:
    for place, value in enumerate(cells):
        if isinstance(value, str) and value in _ERRORS:
            raise DataError(
                f"{path}: cell {_name(number, place)} holds {value}, the error of a formula; expected a value"
            )


def _refuse_uncomputed(path: Path, title: str, gaps: set[tuple[int, int]]) -> None:
    """Refuse formulas without a value, which a program wrote that does not compute."""
    with _workbook(path, values=False) as book:
        for number, row in enumerate(_rows(path, book[title]), 1):
            for place, value in enumerate(row):
                if (number, place) in gaps and value is not None:
                    raise DataError(
                        f"{path}: cell {_name(number, place)} holds the formula {shorten(str(value))} "
                        "without a value; open and save the file in a spreadsheet program first"
                    )


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

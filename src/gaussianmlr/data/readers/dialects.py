"""The encoding and the separator of a text file, found from its first lines."""

from __future__ import annotations

import codecs
import csv
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, NoReturn, TextIO

from gaussianmlr._utils.bounded import LONGEST_LINE, open_bytes, open_text
from gaussianmlr.data.readers.layout import Layout
from gaussianmlr.errors import DataError, shorten

MARKS = (",", ";", "\t", "|")
_HEAD = 1 << 18  # bytes that the separator is found from
_ROWS = 200
_NOT_LATIN = 0.4  # share of bytes above 127; texts in Latin letters have fewer
_EXCEL_HINT = re.compile(r'"?sep=(.)"?\s*$', re.IGNORECASE)  # a first line that spreadsheets write
_OTHER_FORMATS = {
    b"PK\x03\x04": "a ZIP file, as Excel writes; is it an .xlsx file?",
    b"\xd0\xcf\x11\xe0": "an old Excel file (.xls) or one with a password; save it as .xlsx or CSV",
    b"PAR1": "a Parquet file; name it .parquet",
    b"\x1f\x8b": "gzipped; its name must end in .gz",
}


class Dialect(NamedTuple):
    """How the text of a file becomes cells."""

    encoding: str
    separator: str
    preamble: bool = False  # whether the first line only names the separator
    notes: tuple[str, ...] = ()


def find_dialect(path: Path, layout: Layout, usual: str) -> Dialect:
    """The dialect of a file; `usual` is the separator that its suffix promises.

    Raises
    ------
    DataError
        For another encoding or another kind of file, with the guess, and where two separators fit.
    """
    encoding, notes = find_encoding(path, layout)
    lines, whole = _first_lines(path, encoding)
    hint = _EXCEL_HINT.match(lines[0]) if lines else None
    if layout.sep is not None:
        return Dialect(encoding, layout.sep, hint is not None, notes)
    if hint is not None:
        separator = hint[1]
    else:
        separator = find_separator(lines if whole else lines[:-1], usual, str(path))
    if separator != usual:
        name = "tabs" if separator == "\t" else repr(separator)
        notes = (*notes, f"columns are separated by {name} (--sep)")
    return Dialect(encoding, separator, hint is not None, notes)


def find_encoding(path: Path, layout: Layout) -> tuple[str, tuple[str, ...]]:
    """The encoding of a text file and notes; without `layout.encoding`, UTF-8, or UTF-16 with its mark."""
    with open_bytes(path) as stream:
        head = stream.read(_HEAD)
    for magic, what in _OTHER_FORMATS.items():
        if head.startswith(magic):
            raise DataError(f"{path}: is {what}")
    if layout.encoding is not None:
        chosen = layout.encoding
        is_utf8 = codecs.lookup(chosen).name in ("utf-8", "utf-8-sig")
        return ("utf-8-sig" if is_utf8 else chosen), ()
    if head.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        return "utf-32", ("read as UTF-32, by its byte order mark",)
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16", ("read as UTF-16, by its byte order mark",)
    if b"\0" in head:
        guess = "utf-16-be" if head[:1] == b"\0" else "utf-16-le"
        what = "holds NUL bytes; it looks like UTF-16 without a byte order mark"
        raise DataError(f"{path}: {what}: pass --encoding {guess}")
    return "utf-8-sig", ()


def open_table(path: Path, dialect: Dialect, *, held: bool = True) -> TextIO:
    """The text of a file from its header on."""
    lines = open_text(path, held=held, encoding=dialect.encoding)
    if dialect.preamble:
        lines.readline(LONGEST_LINE)
    return lines


def refuse_encoding(path: Path, encoding: str) -> NoReturn:
    """Raise the error of a file that cannot be decoded, with the line and a guess of its encoding."""
    with open_bytes(path) as stream:
        if codecs.lookup(encoding).name not in ("utf-8", "utf-8-sig"):
            raise DataError(f"{path}: cannot be decoded as {encoding}; expected another --encoding")
        for number, line in enumerate(_byte_lines(stream), 1):
            try:
                line.decode()
            except UnicodeDecodeError as error:
                rest = line[error.start :] + stream.read(_HEAD)
                shown = shorten(line[max(0, error.start - 10) : error.end + 10])
                where = f"line {number}, {shown}, is not UTF-8"
                raise DataError(f"{path}: {where}; it looks like {_guess(line + rest)}") from None
    raise DataError(f"{path}: is not UTF-8; pass --encoding")


def _byte_lines(stream: object) -> Iterator[bytes]:
    read = stream.readline  # type: ignore[attr-defined]
    return iter(lambda: read(LONGEST_LINE), b"")


def _guess(raw: bytes) -> str:
    high = [byte for byte in raw if byte > 127]
    letters = sum(chr(byte).isalpha() for byte in raw if byte < 128)
    if len(high) > _NOT_LATIN * (len(high) + letters):
        return "an encoding of another script: pass --encoding cp1251, gbk, shift_jis, ..."
    name = "cp1252" if any(byte < 0xA0 for byte in high) else "latin-1"
    return f"Latin-1 (cp1252): pass --encoding {name}"


def _first_lines(path: Path, encoding: str) -> tuple[list[str], bool]:
    """The first lines, and whether they are the whole file."""
    with open_bytes(path) as stream:
        head = stream.read(_HEAD)
        whole = not stream.read(1)
    try:
        text = codecs.getincrementaldecoder(encoding)().decode(head, final=False)
    except UnicodeDecodeError:
        refuse_encoding(path, encoding)
    lines = re.split(r"(?<=\n)|(?<=\r)(?!\n)", text)
    return [line for line in lines if line] or [""], whole


def find_separator(lines: list[str], usual: str, name: str) -> str:
    r"""The separator of the first lines: the one that gives every row as many cells as the header.

    Examples
    --------
    >>> find_separator(["height, m;slope\n", "1,5;2\n"], ",", "hikes.csv")
    Traceback (most recent call last):
        ...
    gaussianmlr.errors.DataError: hikes.csv: may be separated by ',' or ';'; say which with --sep
    >>> find_separator(["height, m;slope;id\n", "1,5;2,5;a\n"], ",", "hikes.csv")
    ';'
    """
    widths = {mark: _widths(lines, mark) for mark in MARKS}
    wide = {mark: found[0] for mark, found in widths.items() if found and found[0] > 1}
    even = {mark: width for mark, width in wide.items() if set(widths[mark]) == {width}}
    if even:
        best = [mark for mark, width in even.items() if width == max(even.values())]
        if len(best) > 1 and len(widths[best[0]]) > 1:
            marks = " or ".join("tab" if mark == "\t" else repr(mark) for mark in best)
            raise DataError(f"{name}: may be separated by {marks}; say which with --sep")
        return usual if usual in best else best[0]
    if usual in wide or not wide:  # rows of other lengths are reported by the reader
        return usual
    return max(wide, key=lambda mark: wide[mark])


def _widths(lines: list[str], separator: str) -> list[int]:
    """The number of cells of the first rows that are not blank."""
    csv.field_size_limit(LONGEST_LINE)
    found: list[int] = []
    try:
        for cells in csv.reader(lines, delimiter=separator):
            if len(cells) > 1 or (cells and cells[0].strip()):
                found.append(len(cells))
            if len(found) > _ROWS:
                break
    except csv.Error:
        return []
    return found

"""Text files with separators as pandas frames, whole or some rows at a time, and the names of columns."""

from __future__ import annotations

import contextlib
import csv
import warnings
from collections import Counter
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from gaussianmlr._utils.bounded import LONGEST_LINE
from gaussianmlr.data.readers.dialects import MARKS, Dialect, find_dialect, open_table
from gaussianmlr.data.readers.layout import Layout, fold
from gaussianmlr.data.readers.numerals import evidence_in
from gaussianmlr.errors import DataError, shorten

SEPARATORS = {".csv": ",", ".tsv": "\t", ".txt": "\t"}  # the usual one of each kind of file
# What pandas reads as missing, for columns of numbers; texts such as "NA" may well be labels.
MISSING = ["", "NA", "N/A", "n/a", "NaN", "nan", "null", "NULL", "None", "#N/A", "<NA>"]
_MOST_COLUMNS = 1_000_000
_LONGEST_NAME = 1000  # characters of the name of a column
NAMELESS = "Unnamed: "  # pandas' name for a column without one, followed by its place


def check_names(names: list[str], source: str) -> None:
    """Refuse names of columns that occur twice or are too long."""
    twice = [column for column, count in Counter(names).items() if count > 1]
    if twice:
        raise DataError(f"{source}: columns must differ, but {shorten(twice)} occur more than once")
    long = next((column for column in names if len(column) > _LONGEST_NAME), None)
    if long is not None:
        what = f"the name of a column has {len(long):,} characters, {shorten(long, 40)}"
        raise DataError(f"{source}: {what}; expected at most {_LONGEST_NAME:,}")


def named(header: list[Any]) -> list[str]:
    """The names of columns, without outer spaces; a column without one is called as pandas does.

    Examples
    --------
    >>> named([None, " age ", 2024])
    ['Unnamed: 0', 'age', '2024']
    """
    texts = ["" if name is None else str(name).strip() for name in header]
    taken = {*texts}
    for place, name in enumerate(texts):
        if not name:
            new = f"{NAMELESS}{place}"
            texts[place] = f"{new}.1" if new in taken else new
    return texts


def read_separated(
    path: Path, usual: str, texts: Collection[str], layout: Layout, notes: list[str]
) -> tuple[Any, Any | None]:
    """The frame of a text file and, if it has decimal commas, its cells as they were written."""
    dialect = find_dialect(path, layout, usual)
    notes += dialect.notes
    with parser_errors(path, dialect):
        frame = parse(path, dialect, texts)
        # Beside decimal commas, 1.234 may be 1234: every column is looked at as it was written.
        looked_at = layout.decimal == "," or (layout.decimal is None and has_commas(frame, texts))
        written = parse(path, dialect, texts, as_texts=True) if looked_at else None
    if ends_in_gaps(frame):
        refuse_lengths(path, dialect)
    return frame, written


def has_commas(frame: Any, texts: Collection[str]) -> bool:
    """Whether some column of numbers has decimal commas."""
    return any(found.numeric and found.has("comma") for found in evidence_in(frame, texts).values())


def ends_in_gaps(frame: Any) -> bool:
    """Whether a last cell is empty: pandas fills short rows with empty cells."""
    last = frame.iloc[:, -1]
    return bool((last.isna() | (last == "")).any())


@contextlib.contextmanager
def parser_errors(path: Path, dialect: Dialect) -> Iterator[None]:
    """Turn the errors of pandas' parser into one that names rows."""
    import pandas as pd

    try:
        yield
    except pd.errors.EmptyDataError:
        raise DataError(f"{path}: is empty; expected a header and rows") from None
    except (pd.errors.ParserError, pd.errors.ParserWarning) as error:
        if "EOF inside string" in str(error):
            *_, (line, _) = _records(path, dialect)
            raise DataError(f"{path}: a quote in the row from line {line} on is never closed") from None
        refuse_lengths(path, dialect)
        raise


def first_names(path: Path, dialect: Dialect) -> list[str]:
    """The names of the columns of a text file."""
    import pandas as pd

    separator = dialect.separator
    # The header is read separately: pandas would silently rename a second "age" to "age.1".
    with open_table(path, dialect) as lines:
        if (columns := lines.readline(LONGEST_LINE).count(separator)) > _MOST_COLUMNS:
            raise DataError(f"{path}: {columns:,} columns; expected at most {_MOST_COLUMNS:,}")
    try:
        with open_table(path, dialect) as lines:
            first = pd.read_csv(lines, sep=separator, header=None, nrows=1, dtype=str, keep_default_na=False)
    except pd.errors.EmptyDataError:
        raise DataError(f"{path}: is empty; expected a header and rows") from None
    header = [str(name).strip() for name in first.iloc[0]]
    other = next((mark for mark in MARKS if mark in header[0]), None)
    if len(header) == 1 and other is not None:
        what = f"one column, {shorten(header[0])}; expected columns separated by {separator!r}"
        raise DataError(f"{path}: {what}; is it separated by {other!r}?")
    return named(header)


def parse(
    path: Path,
    dialect: Dialect,
    texts: Collection[str],
    *,
    as_texts: bool = False,
    rows: int | None = None,
) -> Any:
    """The frame of a text file, or of its first rows."""
    with parser(path, dialect, texts, as_texts=as_texts, rows=rows) as frame:
        return frame


@contextlib.contextmanager
def parser(
    path: Path,
    dialect: Dialect,
    texts: Collection[str],
    *,
    as_texts: bool = False,
    rows: int | None = None,
    at_once: int | None = None,
) -> Iterator[Any]:
    """The frame of a text file, of its first `rows`, or an iterator of frames of so many rows `at_once`."""
    import pandas as pd

    header = first_names(path, dialect)
    check_names(header, str(path))
    records = _records(path, dialect)
    next(records, None)
    # pandas makes a column per cell of the first row, and only then warns; it accepts one more, an empty one.
    if next(records, (0, 0))[1] > len(header) + 1:
        refuse_lengths(path, dialect)
    held = at_once is None and rows is None
    with warnings.catch_warnings(), open_table(path, dialect, held=held) as lines:
        warnings.simplefilter("error", pd.errors.ParserWarning)  # a row longer than the header
        yield pd.read_csv(
            lines,
            sep=dialect.separator,
            header=0,
            names=header,
            index_col=False,
            dtype={name: str for name in header if as_texts or fold(name) in texts},
            na_values={name: MISSING for name in header if fold(name) not in texts},
            keep_default_na=False,
            low_memory=False,
            quoting=csv.QUOTE_MINIMAL,
            nrows=rows,
            chunksize=at_once,
        )


def refuse_lengths(path: Path, dialect: Dialect) -> None:
    """Name every row that has more or fewer cells than the header."""
    records = _records(path, dialect)
    _, width = next(records, (0, 0))
    problems: list[tuple[object, str]] = []
    longer, total = False, 0
    for number, (line, cells) in enumerate(records):
        total += 1
        if cells != width:
            what = f"{cells} cell{'' if cells == 1 else 's'}; expected {width}, as in the header"
            problems.append((f"{number} (line {line})", what))
            longer = longer or cells > width
    if problems:
        error = DataError.of_rows(f"rows of {path} have another length than the header", problems, total)
        hint = f"\na cell that holds {dialect.separator!r} must be quoted" if longer else ""
        raise DataError(f"{error}{hint}")


def _records(path: Path, dialect: Dialect) -> Iterator[tuple[int, int]]:
    """Where each row that is not blank begins, and how many cells it has."""
    csv.field_size_limit(LONGEST_LINE)  # Python's own limit is 131,072 characters of a cell
    with open_table(path, dialect) as lines:
        reader = csv.reader(lines, delimiter=dialect.separator)
        skipped = int(dialect.preamble)
        begin = 1
        try:
            for cells in reader:
                if len(cells) > 1 or (cells and cells[0].strip()):
                    yield begin + skipped, len(cells)
                begin = reader.line_num + 1
        except csv.Error as error:
            raise DataError(f"{path}: line {begin + skipped}: cannot be read: {error}") from None

"""Reads tables into pandas frames, leaving texts as they are."""

from __future__ import annotations

import csv
import os
import warnings
from collections import Counter
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from gaussianmlr._utils.bounded import LONGEST_LINE, check_file, check_unpacked, lines_of, open_text
from gaussianmlr._utils.extras import require
from gaussianmlr._utils.foreign import as_pandas, is_polars
from gaussianmlr._utils.strict_json import loads
from gaussianmlr.data.problems import Problem
from gaussianmlr.data.readers.dialects import (
    MARKS,
    Dialect,
    find_dialect,
    find_encoding,
    open_table,
    refuse_encoding,
)
from gaussianmlr.data.readers.excel import EXCEL, sheet_rows
from gaussianmlr.data.readers.layout import Layout, fold
from gaussianmlr.data.readers.numerals import evidence_in, with_numbers
from gaussianmlr.errors import DataError, shorten

SEPARATORS = {".csv": ",", ".tsv": "\t", ".txt": "\t"}  # the usual one of each kind of file
JSON_LINES = (".jsonl", ".ndjson")
FRAME_SUFFIXES = (*SEPARATORS, *JSON_LINES, ".parquet", *EXCEL)
# What pandas reads as missing, for columns of numbers; texts such as "NA" may well be labels.
_MISSING = ["", "NA", "N/A", "n/a", "NaN", "nan", "null", "NULL", "None", "#N/A", "<NA>"]
OLD_SUFFIXES = {
    ".xls": "an old Excel file; save it as .xlsx or CSV",
    ".ods": "OpenDocument; save it as .xlsx or CSV",
}
_MOST_COLUMNS = 1_000_000
_LOOKED_AT = 1000  # rows of a text file whose cells are looked at as texts
_LONGEST_NAME = 1000  # characters of the name of a column
NAMELESS = "Unnamed: "  # pandas' name for a column without one, followed by its place


class Table(NamedTuple):
    """A frame, its name for messages, and what was noted while it was read."""

    frame: Any
    name: str
    notes: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()


def suffix_of(path: Path) -> str:
    """The suffix that tells the format, in lower case; ``.csv.gz`` is a ``.csv``."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes[-1:] == [".gz"] and suffixes[-2:-1] and suffixes[-2] in SEPARATORS:
        return suffixes[-2]
    return suffixes[-1] if suffixes else ""


def read_frame(
    source: str | os.PathLike[str] | Any, texts: Collection[str] = (), layout: Layout | None = None
) -> Table:
    """A table as a frame; the columns named in `texts` stay texts."""
    import pandas as pd

    layout = layout or Layout()
    notes: list[str] = []
    problems: list[Problem] = []
    wanted = {fold(name) for name in texts}
    written = None  # the cells as texts, where they were needed
    if isinstance(source, pd.DataFrame) or (is_polars(source) and hasattr(source, "columns")):
        frame, name = as_pandas(source), "the frame"
    elif isinstance(source, str | os.PathLike):
        path = Path(source)
        (frame, written), name = _read_file(path, wanted, layout, notes), path.name
    else:
        raise DataError(
            f"expected a path or a pandas or polars frame, got {type(source).__name__}; "
            "arrays go through from_arrays"
        )
    names = [str(column) for column in frame.columns]
    _check_names(names, name)
    frame = frame.set_axis(names, axis=1)
    if len(frame) == 0:
        raise DataError(f"{name}: no rows; expected at least one instance")
    frame = with_numbers(
        frame, frame if written is None else written, wanted, layout.decimal, notes, problems
    )
    return Table(frame, name, tuple(notes), tuple(problems))


def _check_names(names: list[str], source: str) -> None:
    twice = [column for column, count in Counter(names).items() if count > 1]
    if twice:
        raise DataError(f"{source}: columns must differ, but {shorten(twice)} occur more than once")
    long = next((column for column in names if len(column) > _LONGEST_NAME), None)
    if long is not None:
        what = f"the name of a column has {len(long):,} characters, {shorten(long, 40)}"
        raise DataError(f"{source}: {what}; expected at most {_LONGEST_NAME:,}")


def _read_file(
    path: Path, texts: Collection[str], layout: Layout, notes: list[str]
) -> tuple[Any, Any | None]:
    """The frame of a file and, if it has decimal commas, its cells as they were written."""
    check_file(path, f"a table ({', '.join(FRAME_SUFFIXES)})")
    suffix = suffix_of(path)
    _refuse_unused(path, suffix, layout)
    try:
        if suffix in SEPARATORS:
            return _read_separated(path, texts, layout, notes)
        if suffix in JSON_LINES:
            encoding, said = find_encoding(path, layout)
            notes += said
            return _read_json_lines(path, encoding), None
        if suffix == ".parquet":
            return _read_parquet(path), None
        if suffix in EXCEL:
            return _read_excel(path, texts, layout, notes), None
    except UnicodeDecodeError:
        refuse_encoding(path, layout.encoding or "utf-8")
    except (OSError, ValueError, Warning) as error:  # pandas' errors are ValueErrors
        if isinstance(error, DataError):
            raise
        raise DataError(f"{path}: cannot be read as {suffix[1:]}: {str(error).strip()}") from None
    raise DataError(f"{path}: {unknown_suffix(suffix)}")


def unknown_suffix(suffix: str) -> str:
    """What to say of a file that is no table by its suffix."""
    if suffix in OLD_SUFFIXES:
        return OLD_SUFFIXES[suffix]
    return f"unknown kind of table {suffix!r}; expected {', '.join(FRAME_SUFFIXES)}"


def _refuse_unused(path: Path, suffix: str, layout: Layout) -> None:
    """Refuse options of the format that this kind of file does not have."""
    text = suffix in SEPARATORS
    unused = {
        "sep": layout.sep is not None and not text,
        "encoding": layout.encoding is not None and not (text or suffix in JSON_LINES),
        "sheet": layout.sheet is not None and suffix not in EXCEL,
    }
    for name, wrong in unused.items():
        if wrong:
            raise DataError(f"{path}: --{name} {getattr(layout, name)} is not for files of the kind {suffix}")


def _read_parquet(path: Path) -> Any:
    require("Parquet", "pyarrow")
    import pandas as pd
    import pyarrow.parquet as pq

    try:
        about = pq.read_metadata(path)
        # A constant column is tiny in the file, but takes a number per row in memory.
        check_unpacked(path, 8 * about.num_rows * about.num_columns)
        frame = pd.read_parquet(path)
        for name in frame.columns[[kind.kind == "O" for kind in frame.dtypes]]:
            frame[name].to_numpy(dtype=object)  # decodes texts, which are lazy
        return frame
    except DataError:
        raise
    except Exception as error:  # a damaged file can make pyarrow and pandas raise anything
        raise DataError(f"{path}: cannot be read as parquet: {str(error).strip()}") from None


def _parquet_schema(path: Path) -> Any:
    require("Parquet", "pyarrow")
    import pyarrow.parquet as pq

    try:
        return pq.read_schema(path)
    except Exception as error:  # a damaged file can make pyarrow raise anything
        raise DataError(f"{path}: cannot be read as parquet: {str(error).strip()}") from None


def _read_excel(path: Path, texts: Collection[str], layout: Layout, notes: list[str]) -> Any:
    import pandas as pd

    rows = sheet_rows(path, layout.sheet, notes)
    header = named(next(rows, []))
    if not header:
        raise DataError(f"{path}: the sheet is empty; expected a header and rows")
    _check_names(header, str(path))
    columns: dict[str, list[Any]] = {name: [] for name in header}
    for row in rows:
        for name, value in zip(header, row):
            columns[name].append(_excel_text(value) if fold(name) in texts else _excel_value(value))
    return pd.DataFrame({name: pd.Series(values) for name, values in columns.items()}, columns=header)


def _excel_value(value: Any) -> Any:
    return None if isinstance(value, str) and value.strip() in _MISSING else value


def _excel_text(value: Any) -> str:
    return "" if value is None else str(value)


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


def _read_separated(
    path: Path, texts: Collection[str], layout: Layout, notes: list[str]
) -> tuple[Any, Any | None]:
    import pandas as pd

    dialect = find_dialect(path, layout, SEPARATORS[suffix_of(path)])
    notes += dialect.notes
    try:
        frame = _parse(path, dialect, texts)
        commas = any(found.numeric and found.has("comma") for found in evidence_in(frame, texts).values())
        # Beside decimal commas, 1.234 may be 1234: every column is looked at as it was written.
        looked_at = layout.decimal == "," or (layout.decimal is None and commas)
        written = _parse(path, dialect, texts, as_texts=True) if looked_at else None
    except pd.errors.EmptyDataError:
        raise DataError(f"{path}: is empty; expected a header and rows") from None
    except (pd.errors.ParserError, pd.errors.ParserWarning) as error:
        if "EOF inside string" in str(error):
            *_, (line, _) = _records(path, dialect)
            raise DataError(f"{path}: a quote in the row from line {line} on is never closed") from None
        _refuse_lengths(path, dialect)
        raise
    last = frame.iloc[:, -1]
    # pandas fills short rows with empty cells, so they are searched for only if a last cell is empty.
    if bool((last.isna() | (last == "")).any()):
        _refuse_lengths(path, dialect)
    return frame, written


def header_of(path: Path, layout: Layout) -> list[str]:
    """The names of the columns of a table, without reading all of it where that can be avoided."""
    suffix = suffix_of(path)
    check_file(path, f"a table ({', '.join(FRAME_SUFFIXES)})")
    if suffix in SEPARATORS:
        return _header(path, find_dialect(path, layout, SEPARATORS[suffix]))
    if suffix in EXCEL:
        return named(next(sheet_rows(path, layout.sheet, []), []))
    if suffix == ".parquet":
        return [str(name) for name in _parquet_schema(path).names]
    return list(read_frame(path, layout=layout).frame.columns)


def _header(path: Path, dialect: Dialect) -> list[str]:
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


def written_cells(source: Any, frame: Any, layout: Layout) -> Any:
    """The first rows of a text file with cells as they were written; of anything else, its frame."""
    if not isinstance(source, str | os.PathLike) or (suffix := suffix_of(Path(source))) not in SEPARATORS:
        return frame
    dialect = find_dialect(Path(source), layout, SEPARATORS[suffix])
    rows = min(_LOOKED_AT, max(20, 100 * _LOOKED_AT // max(1, len(frame.columns))))
    return _parse(Path(source), dialect, (), as_texts=True, rows=rows)


def _parse(
    path: Path,
    dialect: Dialect,
    texts: Collection[str],
    *,
    as_texts: bool = False,
    rows: int | None = None,
) -> Any:
    import pandas as pd

    header = _header(path, dialect)
    _check_names(header, str(path))
    records = _records(path, dialect)
    next(records, None)
    # pandas makes a column per cell of the first row, and only then warns; it accepts one more, an empty one.
    if next(records, (0, 0))[1] > len(header) + 1:
        _refuse_lengths(path, dialect)
    with warnings.catch_warnings(), open_table(path, dialect) as lines:
        warnings.simplefilter("error", pd.errors.ParserWarning)  # a row longer than the header
        return pd.read_csv(
            lines,
            sep=dialect.separator,
            header=0,
            names=header,
            index_col=False,
            dtype={name: str for name in header if as_texts or fold(name) in texts},
            na_values={name: _MISSING for name in header if fold(name) not in texts},
            keep_default_na=False,
            low_memory=False,
            quoting=csv.QUOTE_MINIMAL,
            nrows=rows,
        )


def _refuse_lengths(path: Path, dialect: Dialect) -> None:
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


def _read_json_lines(path: Path, encoding: str) -> Any:
    import pandas as pd

    rows: list[dict[str, Any]] = []
    problems: list[tuple[object, str]] = []
    with open_text(path, encoding=encoding) as text:
        for number, line in enumerate(lines_of(text, str(path))):
            if not line.strip():
                continue
            try:
                row = loads(line)
            except ValueError as error:
                problems.append((number, f"{shorten(line.strip())}: {error}"))
                continue
            if isinstance(row, dict):
                rows.append(row)
            else:
                problems.append((number, f"{shorten(line.strip())}: expected an object, {{...}}"))
    if problems:
        raise DataError.of_rows(f"lines of {path} are not JSON objects", problems, len(problems) + len(rows))
    return pd.DataFrame(rows)

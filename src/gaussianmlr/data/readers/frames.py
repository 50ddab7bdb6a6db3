"""Reads tables into pandas frames, leaving texts as they are."""

from __future__ import annotations

import csv
import os
import warnings
from collections import Counter
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from gaussianmlr._utils.bounded import LONGEST_LINE, check_file, check_unpacked, lines_of, open_text
from gaussianmlr._utils.extras import require
from gaussianmlr._utils.strict_json import loads
from gaussianmlr.errors import DataError, shorten

SEPARATORS = {".csv": ",", ".tsv": "\t"}
JSON_LINES = (".jsonl", ".ndjson")
FRAME_SUFFIXES = (*SEPARATORS, *JSON_LINES, ".parquet")
# What pandas reads as missing, for columns of numbers; texts such as "NA" may well be labels.
_MISSING = ["", "NA", "N/A", "n/a", "NaN", "nan", "null", "NULL", "None", "#N/A", "<NA>"]
_MOST_COLUMNS = 1_000_000
_LONGEST_NAME = 1000  # characters of the name of a column


def suffix_of(path: Path) -> str:
    """The suffix that tells the format, in lower case; ``.csv.gz`` is a ``.csv``."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes[-1:] == [".gz"] and suffixes[-2:-1] and suffixes[-2] in SEPARATORS:
        return suffixes[-2]
    return suffixes[-1] if suffixes else ""


def read_frame(source: str | os.PathLike[str] | Any, texts: Collection[str] = ()) -> tuple[Any, str]:
    """A frame and its name for messages; the columns named in `texts` stay texts."""
    import pandas as pd

    if isinstance(source, pd.DataFrame):
        frame, name = source, "the frame"
    elif isinstance(source, str | os.PathLike):
        path = Path(source)
        frame, name = _read_file(path, texts), path.name
    else:
        raise DataError(
            f"expected a path or a pandas frame, got {type(source).__name__}; arrays go through from_arrays"
        )
    twice = [column for column, count in Counter(map(str, frame.columns)).items() if count > 1]
    if twice:
        raise DataError(f"{name}: columns must differ, but {shorten(twice)} occur more than once")
    long = next((str(column) for column in frame.columns if len(str(column)) > _LONGEST_NAME), None)
    if long is not None:
        what = f"the name of a column has {len(long):,} characters, {shorten(long, 40)}"
        raise DataError(f"{name}: {what}; expected at most {_LONGEST_NAME:,}")
    frame = frame.set_axis([str(column) for column in frame.columns], axis=1)
    if len(frame) == 0:
        raise DataError(f"{name}: no rows; expected at least one instance")
    return frame, name


def _read_file(path: Path, texts: Collection[str]) -> Any:
    check_file(path, f"a table ({', '.join(FRAME_SUFFIXES)})")
    suffix = suffix_of(path)
    try:
        if suffix in SEPARATORS:
            return _read_separated(path, SEPARATORS[suffix], texts)
        if suffix in JSON_LINES:
            return _read_json_lines(path)
        if suffix == ".parquet":
            return _read_parquet(path)
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: byte {error.start} is not UTF-8; save the table as UTF-8") from None
    except (OSError, ValueError, Warning) as error:  # pandas' errors are ValueErrors
        if isinstance(error, DataError):
            raise
        raise DataError(f"{path}: cannot be read as {suffix[1:]}: {str(error).strip()}") from None
    raise DataError(f"{path}: unknown kind of table {suffix!r}; expected {', '.join(FRAME_SUFFIXES)}")


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


def _read_separated(path: Path, separator: str, texts: Collection[str]) -> Any:
    import pandas as pd

    try:
        frame = _parse(path, separator, texts)
    except pd.errors.EmptyDataError:
        raise DataError(f"{path}: is empty; expected a header and rows") from None
    except (pd.errors.ParserError, pd.errors.ParserWarning) as error:
        if "EOF inside string" in str(error):
            *_, (line, _) = _records(path, separator)
            raise DataError(f"{path}: a quote in the row from line {line} on is never closed") from None
        _refuse_lengths(path, separator)
        raise
    last = frame.iloc[:, -1]
    # pandas fills short rows with empty cells, so they are searched for only if a last cell is empty.
    if bool((last.isna() | (last == "")).any()):
        _refuse_lengths(path, separator)
    return frame


def _parse(path: Path, separator: str, texts: Collection[str]) -> Any:
    import pandas as pd

    # The header is read separately: pandas would silently rename a second "age" to "age.1".
    with open_text(path) as lines:
        if (columns := lines.readline(LONGEST_LINE).count(separator)) > _MOST_COLUMNS:
            raise DataError(f"{path}: {columns:,} columns; expected at most {_MOST_COLUMNS:,}")
    with open_text(path) as lines:
        first = pd.read_csv(lines, sep=separator, header=None, nrows=1, dtype=str, keep_default_na=False)
    header = [str(name).strip() for name in first.iloc[0]]
    other = next((mark for mark in (";", "\t", ",") if mark in header[0]), None)
    if len(header) == 1 and other is not None:
        what = f"one column, {shorten(header[0])}; expected columns separated by {separator!r}"
        raise DataError(f"{path}: {what}; is it separated by {other!r}?")
    twice = [column for column, count in Counter(header).items() if count > 1]
    if twice:
        raise DataError(f"{path}: columns must differ, but {shorten(twice)} occur more than once")
    with warnings.catch_warnings(), open_text(path) as lines:
        warnings.simplefilter("error", pd.errors.ParserWarning)  # a row longer than the header
        return pd.read_csv(
            lines,
            sep=separator,
            header=0,
            names=header,
            index_col=False,
            dtype={name: str for name in header if name in texts},
            na_values={name: _MISSING for name in header if name not in texts},
            keep_default_na=False,
            low_memory=False,
            quoting=csv.QUOTE_MINIMAL,
        )


def _refuse_lengths(path: Path, separator: str) -> None:
    """Name every row that has more or fewer cells than the header."""
    records = _records(path, separator)
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
        hint = f"\na cell that holds {separator!r} must be quoted" if longer else ""
        raise DataError(f"{error}{hint}")


def _records(path: Path, separator: str) -> Iterator[tuple[int, int]]:
    """Where each row that is not blank begins, and how many cells it has."""
    csv.field_size_limit(LONGEST_LINE)  # Python's own limit is 131,072 characters of a cell
    with open_text(path) as lines:
        reader = csv.reader(lines, delimiter=separator)
        begin = 1
        try:
            for cells in reader:
                if len(cells) > 1 or (cells and cells[0].strip()):
                    yield begin, len(cells)
                begin = reader.line_num + 1
        except csv.Error as error:
            raise DataError(f"{path}: line {begin}: cannot be read: {error}") from None


def _read_json_lines(path: Path) -> Any:
    import pandas as pd

    rows: list[dict[str, Any]] = []
    problems: list[tuple[object, str]] = []
    with open_text(path) as text:
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

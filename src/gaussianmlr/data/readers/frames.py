"""Reads tables into pandas frames, leaving texts as they are."""

from __future__ import annotations

import itertools
import os
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from gaussianmlr._utils.bounded import check_file, check_unpacked, lines_of, open_text
from gaussianmlr._utils.extras import require
from gaussianmlr._utils.foreign import as_pandas, is_polars
from gaussianmlr._utils.strict_json import loads
from gaussianmlr.data.problems import Problem
from gaussianmlr.data.readers.dialects import (
    find_dialect,
    find_encoding,
    refuse_encoding,
)
from gaussianmlr.data.readers.excel import EXCEL, sheet_rows
from gaussianmlr.data.readers.layout import Layout, fold
from gaussianmlr.data.readers.numerals import with_numbers
from gaussianmlr.data.readers.separated import (
    MISSING,
    SEPARATORS,
    check_names,
    first_names,
    named,
    parse,
    read_separated,
)
from gaussianmlr.errors import DataError, shorten

JSON_LINES = (".jsonl", ".ndjson")
FRAME_SUFFIXES = (*SEPARATORS, *JSON_LINES, ".parquet", *EXCEL)
OLD_SUFFIXES = {
    ".xls": "an old Excel file; save it as .xlsx or CSV",
    ".ods": "OpenDocument; save it as .xlsx or CSV",
}
_LOOKED_AT = 1000  # rows of a text file whose cells are looked at as texts


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
    check_names(names, name)
    frame = frame.set_axis(names, axis=1)
    if len(frame) == 0:
        raise DataError(f"{name}: no rows; expected at least one instance")
    frame = with_numbers(
        frame, frame if written is None else written, wanted, layout.decimal, notes, problems
    )
    return Table(frame, name, tuple(notes), tuple(problems))


def _read_file(
    path: Path, texts: Collection[str], layout: Layout, notes: list[str]
) -> tuple[Any, Any | None]:
    """The frame of a file and, if it has decimal commas, its cells as they were written."""
    check_file(path, f"a table ({', '.join(FRAME_SUFFIXES)})")
    suffix = suffix_of(path)
    _refuse_unused(path, suffix, layout)
    try:
        if suffix in SEPARATORS:
            return read_separated(path, SEPARATORS[suffix], texts, layout, notes)
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
    check_names(header, str(path))
    columns: dict[str, list[Any]] = {name: [] for name in header}
    for row in rows:
        for name, value in zip(header, row):
            columns[name].append(_excel_text(value) if fold(name) in texts else _excel_value(value))
    return pd.DataFrame({name: pd.Series(values) for name, values in columns.items()}, columns=header)


def _excel_value(value: Any) -> Any:
    return None if isinstance(value, str) and value.strip() in MISSING else value


def _excel_text(value: Any) -> str:
    return "" if value is None else str(value)


def header_of(path: Path, layout: Layout) -> list[str]:
    """The names of the columns of a table, without reading all of it where that can be avoided."""
    suffix = suffix_of(path)
    check_file(path, f"a table ({', '.join(FRAME_SUFFIXES)})")
    if suffix in SEPARATORS:
        return first_names(path, find_dialect(path, layout, SEPARATORS[suffix]))
    if suffix in EXCEL:
        return named(next(sheet_rows(path, layout.sheet, []), []))
    if suffix == ".parquet":
        return [str(name) for name in _parquet_schema(path).names]
    return list(read_frame(path, layout=layout).frame.columns)


def written_cells(source: Any, frame: Any, layout: Layout) -> Any:
    """The first rows of a text file with cells as they were written; of anything else, its frame."""
    if not isinstance(source, str | os.PathLike) or (suffix := suffix_of(Path(source))) not in SEPARATORS:
        return frame
    dialect = find_dialect(Path(source), layout, SEPARATORS[suffix])
    rows = min(_LOOKED_AT, max(20, 100 * _LOOKED_AT // max(1, len(frame.columns))))
    return parse(Path(source), dialect, (), as_texts=True, rows=rows)


def _read_json_lines(path: Path, encoding: str) -> Any:
    import pandas as pd

    with open_text(path, encoding=encoding) as text:
        frames = [*frames_of_json(lines_of(text, str(path)), path)]
    return frames[0] if frames else pd.DataFrame()


def frames_of_json(lines: Iterable[str], path: Path, at_once: int | None = None) -> Iterator[Any]:
    """The frame of lines of JSON objects, or frames of so many lines `at_once`."""
    import pandas as pd

    numbered = enumerate(lines)
    while part := list(itertools.islice(numbered, at_once)):
        rows: list[dict[str, Any]] = []
        problems: list[tuple[object, str]] = []
        for number, line in part:
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
            total = len(problems) + len(rows)
            raise DataError.of_rows(f"lines of {path} are not JSON objects", problems, total)
        yield pd.DataFrame(rows)

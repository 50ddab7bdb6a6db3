"""Tables of any size as frames of some rows at a time."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

from gaussianmlr._utils.bounded import check_file, lines_of, open_text
from gaussianmlr._utils.extras import require
from gaussianmlr.data.readers.dialects import find_dialect, find_encoding, refuse_encoding
from gaussianmlr.data.readers.frames import JSON_LINES, frames_of_json, read_frame, suffix_of
from gaussianmlr.data.readers.layout import Layout, fold
from gaussianmlr.data.readers.separated import (
    SEPARATORS,
    check_names,
    ends_in_gaps,
    parser,
    parser_errors,
    refuse_lengths,
)
from gaussianmlr.errors import DataError

__all__ = ["CHUNKED", "cells_in", "first_cells", "first_frames", "frames_in", "known_rows"]

CHUNKED = (*SEPARATORS, *JSON_LINES, ".parquet")  # suffixes of tables that are read in parts
_UNPACKED = 4  # gzipped texts are about so many times as large


def frames_in(
    path: Path, texts: Collection[str] = (), layout: Layout | None = None, rows: int = 65_536
) -> Iterator[tuple[Any, Any | None]]:
    r"""The rows of a table as frames; beside each, with decimal commas, its cells as they were written.

    Parameters
    ----------
    path : Path
        CSV, TSV, TXT (gzipped too), JSON lines or Parquet.
    texts : collection of str
        Columns that stay texts.
    layout : Layout, optional
        How the file is written; cells are given as they were written if its `decimal` is a comma.
    rows : int
        Rows per frame, at most.

    Raises
    ------
    DataError
        If the file cannot be read.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "hikes.csv"
    ...     _ = file.write_text("height,ranking\n3.1,sky\n0.2,sea\n1.4,sky\n")
    ...     [frame["height"].tolist() for frame, _ in frames_in(file, rows=2)]
    [[3.1, 0.2], [1.4]]
    """
    layout = layout or Layout()
    check_file(path, f"a table ({', '.join(CHUNKED)})")
    suffix = suffix_of(path)
    if suffix not in CHUNKED:
        raise DataError(f"{path}: cannot be read in parts; expected a table ({', '.join(CHUNKED)})")
    try:
        if suffix == ".parquet":
            yield from ((frame, None) for frame in _parquet(path, rows))
        elif suffix in JSON_LINES:
            encoding, _ = find_encoding(path, layout)
            with open_text(path, held=False, encoding=encoding) as text:
                lines = lines_of(text, str(path))
                yield from ((_with_texts(frame), None) for frame in frames_of_json(lines, path, rows))
        else:
            yield from _separated(path, SEPARATORS[suffix], {fold(name) for name in texts}, layout, rows)
    except UnicodeDecodeError:
        refuse_encoding(path, layout.encoding or "utf-8")


def _with_texts(frame: Any) -> Any:
    return frame.set_axis([str(name) for name in frame.columns], axis=1)


def _separated(
    path: Path, usual: str, texts: Collection[str], layout: Layout, rows: int
) -> Iterator[tuple[Any, Any | None]]:
    dialect = find_dialect(path, layout, usual)
    searched = False
    with parser_errors(path, dialect):
        if layout.decimal == ",":
            with (
                parser(path, dialect, texts, at_once=rows) as frames,
                parser(path, dialect, texts, as_texts=True, at_once=rows) as written,
            ):
                pairs: Iterator[tuple[Any, Any | None]] = zip(frames, written)
                for pair in pairs:
                    searched = searched or _searched(path, dialect, pair[0])
                    yield pair
            return
        with parser(path, dialect, texts, at_once=rows) as frames:
            for frame in frames:
                searched = searched or _searched(path, dialect, frame)
                yield frame, None


def _searched(path: Path, dialect: Any, frame: Any) -> bool:
    """Whether the file was searched for rows of another length, as a last cell is empty."""
    if not ends_in_gaps(frame):
        return False
    refuse_lengths(path, dialect)
    return True


def _parquet(path: Path, rows: int) -> Iterator[Any]:
    require("Parquet", "pyarrow")
    import pyarrow.parquet as pq

    try:
        # A buffered stream reads pages when they are needed, and not whole row groups.
        with pq.ParquetFile(path, buffer_size=1 << 20, pre_buffer=False) as file:
            for batch in file.iter_batches(batch_size=rows, use_threads=False):
                frame = batch.to_pandas(split_blocks=True)
                frame = frame.reset_index() if frame.index.name is not None else frame
                for name in frame.columns[[kind.kind == "O" for kind in frame.dtypes]]:
                    frame[name].to_numpy(dtype=object)  # decodes texts, which are lazy
                yield _with_texts(frame)
    except DataError:
        raise
    except Exception as error:  # a damaged file can make pyarrow and pandas raise anything
        raise DataError(f"{path}: cannot be read as parquet: {str(error).strip()}") from None


def known_rows(files: Sequence[Path]) -> int:
    """Number of rows of Parquet files, 0 if some are of another kind."""
    return sum(_shape(file)[0] for file in files) if _are_parquet(files) else 0


def cells_in(files: Sequence[Path]) -> int:
    """Estimated bytes of tables in memory: eight per cell of Parquet files, otherwise those of the text.

    Examples
    --------
    >>> cells_in([Path("nowhere.csv")])
    Traceback (most recent call last):
        ...
    gaussianmlr.errors.DataError: nowhere.csv: does not exist; expected a table
    """
    if _are_parquet(files):
        return sum(8 * rows * columns for rows, columns in map(_shape, files))
    packed = {".gz": _UNPACKED}
    return sum(
        check_file(file, "a table").stat().st_size * packed.get(file.suffix.lower(), 1) for file in files
    )


def _are_parquet(files: Sequence[Path]) -> bool:
    return all(suffix_of(file) == ".parquet" for file in files)


def _shape(path: Path) -> tuple[int, int]:
    require("Parquet", "pyarrow")
    import pyarrow.parquet as pq

    check_file(path, "a table")
    try:
        about = pq.read_metadata(path)
    except Exception as error:  # a damaged file can make pyarrow raise anything
        raise DataError(f"{path}: cannot be read as parquet: {str(error).strip()}") from None
    return about.num_rows, about.num_columns


def first_frames(
    files: Sequence[Path], layout: Layout, texts: Collection[str], rows: int, others: int, most: int
) -> list[tuple[Path, Any, Any | None]]:
    """The first rows of the first file, and some of up to `most` others that are evenly spaced."""
    step = max(1, -(-(len(files) - 1) // most))
    found = []
    for number, file in enumerate([files[0], *files[1::step]]):
        parts = list(itertools.islice(frames_in(file, texts, layout, rows if number == 0 else others), 1))
        for frame, written in parts:
            check_names(list(frame.columns), str(file))
            found.append((file, frame, written))
    return found


def first_cells(path: Path, column: str, layout: Layout, rows: int = 1_000) -> Any:
    """The cells of a column in the first rows of a table, as texts without gaps."""
    if suffix_of(path) not in CHUNKED:
        frames = [read_frame(path, [column], layout).frame]
    else:
        frames = [frame for frame, _ in itertools.islice(frames_in(path, [column], layout, rows), 1)]
    if not frames:
        raise DataError(f"{path.name}: no rows; expected at least one instance")
    return frames[0][column].dropna().astype(str)

"""Predictions as text, CSV, JSON lines or Parquet, written as they come."""

from __future__ import annotations

import csv
import io
import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

from gaussianmlr.errors import DataError
from gaussianmlr.predicting import Predictions

__all__ = ["FORMATS", "Writer", "format_of", "make_writer"]

FORMATS = ("text", "csv", "jsonl", "parquet")
_ROW_GROUP = 8192
_SUFFIXES = {".txt": "text", ".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet"}


def format_of(file: Path | None, asked: str | None) -> str:
    """The format that was asked for, or the one that the name of the file says.

    Examples
    --------
    >>> format_of(Path("found.parquet"), None), format_of(None, None)
    ('parquet', 'text')
    """
    found = asked or ("text" if file is None else _SUFFIXES.get(file.suffix.lower()))
    if found is None:
        raise DataError(f"{file} does not say its format; end it with {', '.join(_SUFFIXES)} or give one")
    if found not in FORMATS:
        raise DataError(f"format is {found!r}; expected one of {', '.join(FORMATS)}")
    if found == "parquet" and file is None:
        raise DataError("parquet goes to a file; name one")
    return found


class Writer(ABC):
    """Writes predictions a batch at a time."""

    @abstractmethod
    def write(self, found: Predictions) -> None:
        """Write a batch."""

    def close(self) -> None:
        """Finish the file; most have nothing to finish."""
        return


class TextWriter(Writer):
    """A line an instance: its name, its order and, where a confidence was given, what is sure of it."""

    def __init__(self, stream: IO[str]) -> None:
        self.stream = stream

    def write(self, found: Predictions) -> None:
        """Write a batch."""
        for index, name in enumerate(found.names):
            parts = [name, found.orders[index], *([found.partial[index]] if found.partial else [])]
            self.stream.write("\t".join(parts) + "\n")
        self.stream.flush()


class JsonWriter(Writer):
    """An object a line; the numbers of a label stand together."""

    def __init__(self, stream: IO[str], labels: Sequence[str]) -> None:
        self.stream, self.labels = stream, labels

    def write(self, found: Predictions) -> None:
        """Write a batch."""
        for index, name in enumerate(found.names):
            row: dict[str, Any] = {"name": name, "order": found.orders[index]}
            if found.partial is not None:
                row["partial"] = found.partial[index]
            row["labels"] = {
                label: {
                    "rank": int(found.ranks[index, place]),
                    **{key: _short(values[index, place]) for key, values in found.values.items()},
                }
                for place, label in enumerate(self.labels)
            }
            self.stream.write(json.dumps(row, ensure_ascii=False) + "\n")
        self.stream.flush()


class CsvWriter(Writer):
    """A row an instance, a column a label and number: ``rank:sky``, ``significance:sky``, ..."""

    def __init__(self, stream: IO[str], labels: Sequence[str]) -> None:
        self.stream, self.labels = stream, labels
        self.begun = False

    def write(self, found: Predictions) -> None:
        """Write a batch, below a header if it is the first."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        table = columns(found, self.labels)
        if not self.begun:
            writer.writerow(table)
            self.begun = True
        writer.writerows(zip(*([_short(v) for v in column] for column in table.values())))
        self.stream.write(text.getvalue())
        self.stream.flush()


class ParquetWriter(Writer):
    """The columns of `CsvWriter`, in row groups of some thousand instances."""

    def __init__(self, file: Path, labels: Sequence[str]) -> None:
        self.file, self.labels = file, labels
        self.writer: Any = None
        self.waiting: list[Any] = []

    def write(self, found: Predictions) -> None:
        """Take a batch, and write a row group where there is enough for one."""
        import pyarrow as pa

        self.waiting.append(pa.table(columns(found, self.labels)))
        if sum(map(len, self.waiting)) >= _ROW_GROUP:
            self._flush()

    def close(self) -> None:
        """Write what waits and what ends a Parquet file; one without rows has no columns but these."""
        import pyarrow as pa

        if self.writer is None and not self.waiting:
            nothing = pa.array([], pa.string())
            self.waiting.append(pa.table({"name": nothing, "order": nothing}))
        self._flush()
        self.writer.close()

    def _flush(self) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        if self.waiting:
            table = pa.concat_tables(self.waiting)
            self.waiting = []
            self.writer = self.writer or pq.ParquetWriter(self.file, table.schema)
            self.writer.write_table(table)


def columns(found: Predictions, labels: Sequence[str]) -> dict[str, Any]:
    """Predictions as flat columns."""
    table: dict[str, Any] = {"name": found.names, "order": found.orders}
    if found.partial is not None:
        table["partial"] = found.partial
    numbers: dict[str, Any] = {"rank": found.ranks, **found.values}
    for key, values in numbers.items():
        table |= {f"{key}:{label}": values[:, place] for place, label in enumerate(labels)}
    return table


def _short(value: Any) -> Any:
    """As many digits as a single-precision number has; texts and whole numbers as they are."""
    return float(f"{value:.7g}") if hasattr(value, "dtype") and value.dtype.kind == "f" else value


def make_writer(form: str, target: IO[str] | Path, labels: Sequence[str]) -> Writer:
    """A writer of a format; Parquet goes to a path, all else to a text stream."""
    if form == "parquet":
        assert isinstance(target, Path)
        return ParquetWriter(target, labels)
    assert not isinstance(target, Path)
    if form == "text":
        return TextWriter(target)
    return CsvWriter(target, labels) if form == "csv" else JsonWriter(target, labels)

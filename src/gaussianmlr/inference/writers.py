"""Predictions as text, CSV, JSON lines, Parquet or sparse lines, written as they come."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

from gaussianmlr._utils.extras import require
from gaussianmlr._utils.strict_json import dumps
from gaussianmlr._utils.tables import csv_lines
from gaussianmlr.errors import DataError
from gaussianmlr.inference.predict import Predictions
from gaussianmlr.orders.grammar import shown

__all__ = ["FORMATS", "Writer", "format_of", "make_writer"]

FORMATS = ("text", "csv", "jsonl", "parquet", "xmlc")
_ROW_GROUP = 8192
_SUFFIXES = {
    ".txt": "text",
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".xmlc": "xmlc",
}


def format_of(file: Path | None, asked: str | None) -> str:
    """The given format, or the one that the file name ends with.

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
        raise DataError("parquet needs a file; name one")
    return found


class Writer(ABC):
    """Writes predictions batch by batch."""

    @abstractmethod
    def write(self, found: Predictions) -> None:
        """Write a batch."""

    def close(self) -> None:
        """Finish the file; most have nothing to finish."""
        return


class TextWriter(Writer):
    """One line per instance: name, order and, if asked for, the certain and the guaranteed part of it."""

    def __init__(self, stream: IO[str]) -> None:
        self.stream = stream

    def write(self, found: Predictions) -> None:
        """Write a batch."""
        for index, name in enumerate(found.names):
            orders = [found.orders[index], *([found.partial[index]] if found.partial else [])]
            orders += [found.guaranteed[index]] if found.guaranteed else []
            self.stream.write("\t".join([name, *map(shown, orders)]) + "\n")
        self.stream.flush()


class JsonWriter(Writer):
    """One object per line, with the numbers grouped by label."""

    def __init__(self, stream: IO[str], labels: Sequence[str]) -> None:
        self.stream, self.labels = stream, labels

    def write(self, found: Predictions) -> None:
        """Write a batch."""
        for index, name in enumerate(found.names):
            row: dict[str, Any] = {"name": name, "order": found.orders[index]}
            if found.partial is not None:
                row["partial"] = found.partial[index]
            if found.guaranteed is not None:
                row["guaranteed"] = found.guaranteed[index]
            row["labels"] = {
                label: {
                    "rank": int(found.ranks[index, place]),
                    **{key: _short(values[index, place]) for key, values in found.values.items()},
                }
                for place, label in enumerate(_named(found, index, self.labels))
            }
            self.stream.write(dumps(row, ensure_ascii=False) + "\n")
        self.stream.flush()


class CsvWriter(Writer):
    """One row per instance, one column per label and number: ``rank:sky``, ``significance:sky``, ..."""

    def __init__(self, stream: IO[str], labels: Sequence[str], escape_formulas: bool = False) -> None:
        self.stream, self.labels, self.escape_formulas = stream, labels, escape_formulas
        self.begun = False

    def write(self, found: Predictions) -> None:
        """Write a batch, below a header if it is the first."""
        table = columns(found, self.labels)
        rows: list[Sequence[Any]] = [] if self.begun else [list(table)]
        self.begun = True
        rows += zip(*([_short(v) for v in column] for column in table.values()))
        self.stream.write(csv_lines(rows, escape_formulas=self.escape_formulas))
        self.stream.flush()


class ParquetWriter(Writer):
    """The columns of `CsvWriter`, in row groups of some thousand instances."""

    def __init__(self, file: Path, labels: Sequence[str]) -> None:
        require("Parquet", "pyarrow")
        self.file, self.labels = file, labels
        self.writer: Any = None
        self.waiting: list[Any] = []

    def write(self, found: Predictions) -> None:
        """Take a batch, and write a row group if it is full."""
        import pyarrow as pa

        self.waiting.append(pa.table(columns(found, self.labels)))
        if sum(map(len, self.waiting)) >= _ROW_GROUP:
            self._flush()

    def close(self) -> None:
        """Write the last row group and the footer."""
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


class SparseWriter(Writer):
    """One line per instance as `read_xmlc` reads it: relevant labels by number, then scores by label.

    The most significant label comes first; read with ``ordered=True``, the ranks are those of the prediction,
    and the features are the significances (scores of methods without sigma) of the labels that are given.
    Ties become an order.
    """

    def __init__(self, stream: IO[str]) -> None:
        self.stream = stream

    def write(self, found: Predictions) -> None:
        """Write a batch."""
        values = found.values.get("significance", found.values.get("score"))
        assert values is not None
        for index, ranks in enumerate(found.ranks):
            places = np.arange(len(ranks)) if found.places is None else found.places[index]
            best = np.lexsort((places, -values[index], -ranks))
            first = ",".join(str(places[one]) for one in best if ranks[one] > 0)
            rising = np.argsort(places)  # readers of LIBSVM files want them so
            scores = " ".join(f"{places[one]}:{_short(values[index, one])!r}" for one in rising)
            self.stream.write(f"{first} {scores}\n")
        self.stream.flush()


def _named(found: Predictions, index: int, labels: Sequence[str]) -> Sequence[str]:
    """The labels that are given of an instance."""
    return labels if found.places is None else [labels[place] for place in found.places[index].tolist()]


def columns(found: Predictions, labels: Sequence[str]) -> dict[str, Any]:
    """Predictions as flat columns."""
    table: dict[str, Any] = {"name": found.names, "order": found.orders}
    if found.partial is not None:
        table["partial"] = found.partial
    if found.guaranteed is not None:
        table["guaranteed"] = found.guaranteed
    numbers: dict[str, Any] = {"rank": found.ranks, **found.values}
    if found.places is not None:
        for place in range(found.places.shape[1]):
            table[f"label:{place + 1}"] = [labels[column] for column in found.places[:, place].tolist()]
            table |= {f"{key}:{place + 1}": values[:, place] for key, values in numbers.items()}
        return table
    for key, values in numbers.items():
        table |= {f"{key}:{label}": values[:, place] for place, label in enumerate(labels)}
    return table


def _short(value: Any) -> Any:
    """As many digits as a single-precision number has; texts, whole numbers and booleans as they are."""
    if not hasattr(value, "dtype"):
        return value
    return float(f"{value:.7g}") if value.dtype.kind == "f" else value.item()


def make_writer(
    form: str, target: IO[str] | Path, labels: Sequence[str], *, escape_formulas: bool = False
) -> Writer:
    """A writer of a format; Parquet goes to a path, all else to a text stream.

    `escape_formulas` is for CSV: texts that a spreadsheet would execute get an apostrophe in front.
    """
    if escape_formulas and form != "csv":
        raise DataError(f"format is {form!r}; formulas are escaped in csv alone")
    if form == "parquet":
        assert isinstance(target, Path)
        return ParquetWriter(target, labels)
    assert not isinstance(target, Path)
    if form in ("text", "xmlc"):
        return TextWriter(target) if form == "text" else SparseWriter(target)
    return CsvWriter(target, labels, escape_formulas) if form == "csv" else JsonWriter(target, labels)

"""Tables: feature columns, and one text column of orders or one column per label."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, cast

from gaussianmlr.data.cells import KINDS, Kind
from gaussianmlr.data.dataset import RankedData
from gaussianmlr.data.problems import Problems
from gaussianmlr.data.readers.arrays import read_mat, read_npz
from gaussianmlr.data.readers.assembly import read_rows
from gaussianmlr.data.readers.doubts import code_doubts, role_doubts
from gaussianmlr.data.readers.frames import FRAME_SUFFIXES, read_frame, suffix_of, written_cells
from gaussianmlr.data.readers.grades import Grading
from gaussianmlr.data.readers.instances import build, join
from gaussianmlr.data.readers.layout import Layout, Missing, ReadFrom, did_you_mean, match_name
from gaussianmlr.data.readers.parts import (
    check_wanted,
    find_columns,
    index_column,
    leave_out,
)
from gaussianmlr.errors import DataError

TABLE_SUFFIXES = (*FRAME_SUFFIXES, ".npz", ".mat")


class FilePart(NamedTuple):
    """Where a frame comes from that holds some rows of a file."""

    name: str
    first: int


def read_table(
    source: str | os.PathLike[str] | Any,
    *,
    ranking: str | None = "ranking",
    labels: str | Sequence[str] | None = None,
    features: str | Sequence[str] | None = None,
    split: str | None = "split",
    weight: str | None = "weight",
    ranker: str | None = "ranker",
    id: str | None = "id",  # noqa: A002
    threshold: float | None = None,
    tolerance: float = 0.0,
    missing: Missing = "error",
    aggregate: str = "mean_rank",
    drop: Sequence[str] = (),
    order_separator: str | None = None,
    positions: bool = False,
    sep: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    sheet: str | None = None,
    kinds: Mapping[str, Kind] | None = None,
) -> RankedData:
    """Read a table of features and orders.

    Column names match without regard to case and outer spaces where only one fits. A first column that only
    numbers the rows, as pandas writes its index, is left out. `RankedData.notes` says what was found out
    (separator, decimal commas, encoding, sheet) and left out.

    Parameters
    ----------
    source : path, pandas.DataFrame or polars.DataFrame
        CSV, TSV or TXT (gzipped too), Parquet, JSON lines, Excel; an NPZ with the arrays ``features`` and
        ``ranks`` (optionally ``labels``, ``split``, ``weight``, ``id``); a MATLAB file, see `read_mat`; or a
        frame.
    ranking : str, optional
        The column with orders as texts, ``mountain > sky = cloud``. An empty or missing cell says that no
        label applies.
    labels : sequence of str or str, optional
        Without a ranking column: the columns with one number per label, by name or by a prefix they share
        and lose (``"label:"`` unless said otherwise; ``label:sky`` is found by the name ``sky`` too).
        With a ranking column: the labels, in the order of the columns of ranks.
    features : sequence of str or str, optional
        The feature columns, by name or by prefix; every column without another role if left out.
    split, weight, ranker, id : str, optional
        The columns with the part (train, test, ...), the weight, who gave the order, and which rows are
        one instance. A column with the default name is used where it exists; None never uses it.
        Several rankers are several rows with one id; features, split and weight must agree in them.
    threshold : float, optional
        Read label columns as grades (degrees, stars): relevant are values above it. Without it
        they must be ranks: 0, 1, 2, ..., or -1 for unknown.
    tolerance : float
        Grades that differ by no more than it tie.
    missing : {"error", "unknown", "irrelevant"}
        What an empty cell in a label column means.
    aggregate : str
        How several rankers are aggregated, see `gaussianmlr.rankers.aggregate`.
    drop : sequence of str
        Columns to leave out.
    order_separator : str, optional
        What stands between labels in the ranking column, beside ``>``: ``","`` reads ``sky, sea``.
    positions : bool
        Read label columns as positions: 1 = best, equal = tied, 0 or empty = not relevant
        (or unknown, with ``missing="unknown"``).
    sep, decimal, encoding, sheet : str, optional
        Separator, decimal sign and encoding of a text file, and sheet of an Excel file (its name, or its
        number from 1); found out if left out.
    kinds : mapping of str to {"number", "boolean", "category", "date", "text"}, optional
        What feature columns hold, found from their cells if left out. Words are categories, but those of a
        column called "text" are texts; true, false, yes and no are booleans; dates are written as 2024-12-31.
        Empty columns are left out, and so is one of many different texts that has another name and is not
        the only one, see `RankedData.notes`.

    Raises
    ------
    DataError
        Naming every row that cannot be read, equal problems in one line.

    Examples
    --------
    >>> import pandas as pd
    >>> from gaussianmlr.data import read_table
    >>> frame = pd.DataFrame(
    ...     {"height": [3.1, 0.2], "slope": [0.5, 0.1], "ranking": ["mountain > sky", "sea"]}
    ... )
    >>> read_table(frame)
    RankedData: 2 instances of 2 features, 3 labels (mountain, sea, sky), from the frame
    >>> stars = pd.DataFrame({"age": [31, 64], "label:jazz": [5, 1], "label:rock": [2, 4]})
    >>> read_table(stars, threshold=1).orders()
    ['jazz > rock', 'rock']
    """
    layout = Layout(
        sep=sep,
        decimal=decimal,
        encoding=encoding,
        sheet=sheet,
        ranking=ranking,
        id=id,
        weight=weight,
        split=split,
        ranker=ranker,
        features=features if features is None or isinstance(features, str) else tuple(features),
        drop=tuple(drop),
        order_separator=order_separator,
        positions=positions,
        missing=missing,
    )
    return read_with(
        source,
        layout,
        labels=labels,
        threshold=threshold,
        tolerance=tolerance,
        aggregate=aggregate,
        kinds=kinds,
    )


def read_with(
    source: str | os.PathLike[str] | Any,
    layout: Layout,
    *,
    labels: str | Sequence[str] | None = None,
    threshold: float | None = None,
    tolerance: float = 0.0,
    aggregate: str = "mean_rank",
    kinds: Mapping[str, Kind] | None = None,
) -> RankedData:
    """`read_table` with a layout instead of single options."""
    read_from, suffix = None, ""
    if isinstance(source, str | os.PathLike):
        read_from = ReadFrom(os.fspath(source), threshold, tolerance, layout)
        suffix = suffix_of(Path(source))
    if suffix == ".mat":
        data = read_mat(source, labels=_names(labels), threshold=threshold or 0.0, tolerance=tolerance)
        return replace(data, read_from=read_from)
    grading = Grading(threshold, tolerance, layout.missing, layout.positions)
    if suffix == ".npz":
        return replace(read_npz(Path(source), _names(labels), grading, aggregate), read_from=read_from)
    problems = Problems()
    data = assemble(
        source, problems, layout=layout, grading=grading, aggregate=aggregate, labels=labels, kinds=kinds
    )
    problems.raise_errors(data.source)
    return replace(data, read_from=read_from)


def assemble(
    source: Any,
    problems: Problems,
    *,
    layout: Layout,
    grading: Grading,
    aggregate: str = "mean_rank",
    labels: str | Sequence[str] | None = None,
    kinds: Mapping[str, Kind] | None = None,
    part: FilePart | None = None,
) -> RankedData:
    """The readable part of a table; problems are noted. A frame may be a `part` of a file."""
    said = dict.fromkeys(layout.categories, "category") | dict.fromkeys(layout.texts, "text")
    kinds = {**cast(dict[str, Kind], said), **(kinds or {})}
    _check_kinds(kinds)
    texts = [layout.ranking, layout.split, layout.ranker, layout.id]
    texts += [name for name, kind in kinds.items() if kind in ("category", "text")]  # 007 is not 7
    table = read_frame(source, [name for name in texts if name is not None], layout)
    if part is not None:
        table = table._replace(name=part.name)
    problems.notes += table.notes
    problems += table.problems
    frame = leave_out(table.frame, layout, table.name, problems.notes)
    columns = find_columns(list(frame.columns), table.name, layout, labels, problems.notes)
    if layout.features is None and (index := index_column(frame, columns.features)) is not None:
        problems.notes.append(f"column {index!r} only numbers the rows and is left out (--features keeps it)")
        columns = replace(columns, features=columns.features[1:])
    held = {_known_name(name, list(frame.columns), table.name): kind for name, kind in kinds.items()}
    first = 0 if part is None else part.first
    rows = read_rows(frame, columns, grading, problems, layout.order_separator, held, first)
    if not rows.good.any():
        problems.raise_errors(table.name)
    unsaid = [name for name in rows.table.names if name not in held]
    problems.notes += code_doubts(written_cells(source, frame, layout), unsaid)
    if layout.features is None:
        problems.notes += role_doubts(frame, unsaid, rows.labels)
    return build(join(rows, aggregate, problems), table.name, problems.notes)


def _known_name(name: str, names: Sequence[str], source: str) -> str:
    found = match_name(name, names)
    if found is None:
        raise DataError(
            f"{source}: no column {name!r} (categories, texts, kinds); {did_you_mean(name, names)}"
        )
    return found


def _check_kinds(kinds: Mapping[str, Kind]) -> None:
    for name, kind in kinds.items():
        if kind not in KINDS:
            raise DataError(f"kinds says {kind!r} of column {name!r}; expected one of {', '.join(KINDS)}")


def _names(labels: str | Sequence[str] | None) -> Sequence[str] | None:
    if isinstance(labels, str):
        raise DataError(f"expected a list of labels for this kind of table, got the text {labels!r}")
    check_wanted(labels)
    return labels

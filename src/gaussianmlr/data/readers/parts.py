"""The role of each column of a table."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gaussianmlr.data.readers.layout import Layout, did_you_mean, fold, match_name
from gaussianmlr.data.readers.separated import NAMELESS
from gaussianmlr.errors import DataError, shorten
from gaussianmlr.orders import check_labels

LABEL_PREFIX = "label:"
ROLES = ("ranking", "split", "weight", "ranker", "id")
_DEFAULTS = Layout()
_ORDERS = ("order", "orders", "rank", "rankings", "labels", "label", "tags")  # other names of their column
_INDEX = ("index", "idx", "row", "row_number", "rownum", "no", "nr", "#", "level_0")
_LONG = 10  # rows, from which on 0, 1, 2, ... is no accident


@dataclass(frozen=True)
class Columns:
    """The role of each column of a frame."""

    ranking: str | None
    label_columns: tuple[str, ...]
    labels: tuple[str, ...] | None
    features: tuple[str, ...]
    split: str | None
    weight: str | None
    ranker: str | None
    id: str | None


def find_columns(
    names: Sequence[str],
    source: str,
    layout: Layout,
    labels: str | Sequence[str] | None = None,
    notes: list[str] | None = None,
) -> Columns:
    """Give every column its role; a column with the default name may be absent, any other must exist."""
    if not isinstance(labels, str) or not labels:  # a text is the prefix of columns
        check_wanted(labels)
    found = {role: _role(role, names, source, layout, notes) for role in ROLES}
    taken = {name for name in found.values() if name is not None}
    known: tuple[str, ...] | None = None
    label_columns: tuple[str, ...] = ()
    if found["ranking"] is not None:
        known = None if labels is None or isinstance(labels, str) else tuple(labels)
    else:
        label_columns, known = _label_columns(names, labels, source)
    free = [name for name in names if name not in taken and name not in label_columns]
    return Columns(
        ranking=found["ranking"],
        label_columns=label_columns,
        labels=known,
        features=_feature_columns(free, layout.features, source),
        split=found["split"],
        weight=found["weight"],
        ranker=found["ranker"],
        id=found["id"],
    )


def _role(
    role: str, names: Sequence[str], source: str, layout: Layout, notes: list[str] | None
) -> str | None:
    """The column with a role, or None."""
    wanted: str | None = getattr(layout, role)
    if wanted is None:
        return None
    if wanted != getattr(_DEFAULTS, role):
        column = match_name(wanted, names)
        if column is None:
            raise DataError(f"{source}: no column {wanted!r} ({role}); {did_you_mean(wanted, names)}")
        return column
    if wanted not in names and sum(fold(name) == wanted for name in names) != 1:
        return None
    column = match_name(wanted, names)
    features = layout.features if isinstance(layout.features, tuple) else ()
    if column is None or column in features:  # what is named a feature is one
        return None
    if column != wanted and notes is not None:
        otherwise = "" if role == "ranking" else "; name it in --features to use it as a feature"
        notes.append(f"column {column!r} is read as the {role}{otherwise}")
    return column


def leave_out(frame: Any, layout: Layout, source: str, notes: list[str]) -> Any:
    """The frame without the columns to drop and those without a name."""
    names = list(frame.columns)
    dropped = []
    for wanted in layout.drop:
        column = match_name(wanted, names)
        if column is None:
            raise DataError(f"{source}: no column {wanted!r} to drop; {did_you_mean(wanted, names)}")
        dropped.append(column)
    if dropped:
        frame = frame.drop(columns=dropped)
    kept = {*layout.features} if isinstance(layout.features, tuple) else set()
    kept |= {getattr(layout, role) for role in ROLES}
    leading = True
    for place, name in enumerate(frame.columns):
        nameless = re.fullmatch(rf"({NAMELESS}\d+(\.\d+)?)?", name) is not None and name not in kept
        leading = leading and nameless
        if not nameless:
            continue
        if leading:
            notes.append(
                f"the first column has no name and is left out: the index of a data frame ({name!r})"
            )
        elif bool(frame[name].isna().all()):
            notes.append(f"column {place + 1} has no name and no values, and is left out")
        else:
            value = frame[name].dropna().tolist()[0]
            what = f"column {place + 1} has no name, but holds {shorten(value)}"
            raise DataError(f"{source}: {what}; give it one, or leave it out with --drop {name!r}")
        dropped.append(name)
    return frame.drop(columns=[name for name in dropped if name in frame.columns])


def index_column(frame: Any, features: Sequence[str]) -> str | None:
    """The first column, if it only numbers the rows.

    Examples
    --------
    >>> import pandas as pd
    >>> index_column(pd.DataFrame({"index": [0, 1, 2], "age": [31, 64, 22]}), ("index", "age"))
    'index'
    """
    if len(features) < 2 or features[0] != frame.columns[0] or frame.iloc[:, 0].dtype.kind not in "iu":
        return None
    numbers, rows = frame.iloc[:, 0].to_numpy(), range(len(frame))
    from_zero = bool((numbers == list(rows)).all())
    if from_zero and len(frame) >= _LONG:
        return features[0]
    from_one = bool((numbers - 1 == list(rows)).all())
    called_so = fold(features[0]) in _INDEX and len(frame) > 1
    return features[0] if called_so and (from_zero or from_one) else None


def check_wanted(labels: str | Sequence[str] | None) -> None:
    """Refuse impossible labels, before any row is read."""
    if labels is not None and not check_labels(labels):
        raise DataError("labels is empty; expected one or more, or none at all: those that occur")


def _label_columns(
    names: Sequence[str], labels: str | Sequence[str] | None, source: str
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    if labels is None or isinstance(labels, str):
        prefix = LABEL_PREFIX if labels is None else labels
        columns = tuple(name for name in names if fold(name).startswith(prefix.casefold()))
        if not columns:
            likely = next((name for name in names if fold(name) in _ORDERS), None)
            hint = "" if likely is None else f"; is it the column {likely!r}? Say --ranking {likely!r}"
            raise DataError(
                f"{source}: no column 'ranking' and none that starts with {prefix!r}; say where the orders "
                "are: --ranking COLUMN or --labels a,b,c (in Python, ranking=... or labels=[...])"
                f"{hint}; the columns are {shorten(list(names))}"
            )
        return columns, tuple(name.strip()[len(prefix) :].strip() for name in columns)
    found = [match_name(label, names) or match_name(LABEL_PREFIX + label, names) for label in labels]
    missing = [label for label, column in zip(labels, found) if column is None]
    if missing or not found:
        raise DataError(
            f"{source}: no column 'ranking', and no columns for the labels {shorten(missing)}; "
            f"{did_you_mean(missing[0], names) if missing else ''}"
        )
    return tuple(column for column in found if column is not None), tuple(labels)


def _feature_columns(free: list[str], features: str | Sequence[str] | None, source: str) -> tuple[str, ...]:
    if features is None:
        return tuple(free)
    if isinstance(features, str):
        wanted = [name for name in free if name.startswith(features)]
        if not wanted:
            raise DataError(f"{source}: no feature columns {shorten(features)} among {shorten(free)}")
        return tuple(wanted)
    found = {name: match_name(name, free) for name in features}
    missing = [name for name, column in found.items() if column is None]
    if missing:
        hint = did_you_mean(missing[0], free) if free else "every column has another role"
        raise DataError(f"{source}: no feature columns {shorten(missing)}; {hint}")
    return tuple(column for column in found.values() if column is not None)

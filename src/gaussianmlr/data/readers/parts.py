"""The role of each column of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gaussianmlr.errors import DataError, shorten
from gaussianmlr.orders import check_labels

LABEL_PREFIX = "label:"


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
    *,
    ranking: str | None,
    labels: str | Sequence[str] | None,
    features: str | Sequence[str] | None,
    defaults: dict[str, str],
    parts: Mapping[str, str | None],
) -> Columns:
    """Give every column its role; a column with the default name may be absent, any other must exist."""
    if not isinstance(labels, str) or not labels:  # a text is the prefix of columns
        check_wanted(labels)
    found: dict[str, str | None] = {}
    for part, name in {"ranking": ranking, **parts}.items():
        if name is not None and name not in names:
            if name != defaults.get(part):
                raise DataError(
                    f"{source}: no column {name!r} ({part}); the columns are {shorten(list(names))}"
                )
            name = None
        found[part] = name
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
        features=_feature_columns(free, features, source),
        split=found.get("split"),
        weight=found.get("weight"),
        ranker=found.get("ranker"),
        id=found.get("id"),
    )


def check_wanted(labels: str | Sequence[str] | None) -> None:
    """Refuse impossible labels, before any row is read."""
    if labels is not None and not check_labels(labels):
        raise DataError("labels is empty; expected one or more, or none at all: those that occur")


def _label_columns(
    names: Sequence[str], labels: str | Sequence[str] | None, source: str
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    if labels is None or isinstance(labels, str):
        prefix = LABEL_PREFIX if labels is None else labels
        columns = tuple(name for name in names if name.startswith(prefix))
        if not columns:
            raise DataError(
                f"{source}: no column 'ranking' and none that starts with {prefix!r}; name the column of "
                "orders so (in Python, say where they are with ranking=... or labels=[...]); "
                f"the columns are {shorten(list(names))}"
            )
        return columns, tuple(name.removeprefix(prefix) for name in columns)
    columns = tuple(label if label in names else LABEL_PREFIX + label for label in labels)
    missing = [label for label, column in zip(labels, columns) if column not in names]
    if missing or not columns:
        raise DataError(f"{source}: no columns for the labels {shorten(missing)} in {shorten(list(names))}")
    return columns, tuple(labels)


def _feature_columns(free: list[str], features: str | Sequence[str] | None, source: str) -> tuple[str, ...]:
    if features is None:
        return tuple(free)
    wanted = (
        [name for name in free if name.startswith(features)] if isinstance(features, str) else [*features]
    )
    missing = [name for name in wanted if name not in free]
    if missing or (isinstance(features, str) and not wanted):
        raise DataError(f"{source}: no feature columns {shorten(missing or features)} among {shorten(free)}")
    return tuple(wanted)

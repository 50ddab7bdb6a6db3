"""Joins the rows of one instance: the orders of several rankers become one."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import numpy.typing as npt

from gaussianmlr.data.dataset import IntArray, RankedData
from gaussianmlr.data.problems import Problems
from gaussianmlr.data.readers.assembly import Rows
from gaussianmlr.errors import DataError
from gaussianmlr.orders import UNKNOWN
from gaussianmlr.rankers import aggregation

NO_ROW = "no row can be used"


def join(rows: Rows, aggregate: str, problems: Problems) -> dict[str, Any]:
    """One instance per id: the rows of several rankers become `by_ranker` and one order."""
    good = np.flatnonzero(rows.good)
    if rows.id is None:
        if rows.ranker is not None:
            raise DataError(
                "several rankers need a column that says which rows are one instance; give id=..."
            )
        return _pick(rows, good)
    _, first, instance = np.unique(rows.id[good], return_index=True, return_inverse=True)
    order = np.argsort(first)  # instances stay in the order of their first row
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    instance, heads = place[instance.reshape(-1)], good[first[order]]
    if rows.ranker is None:
        for row, number in zip(good.tolist(), instance.tolist()):
            if heads[number] != row:
                message = f"id {str(rows.id[row])!r} is also in row {rows.first + heads[number]}"
                message += "; several rankers need a column 'ranker'"
                problems.add("duplicate", f"row {rows.first + row}", message)
        return _pick(rows, heads)
    _same_in_every_row(rows, good, heads[instance], problems)
    column = {name: number for number, name in enumerate(dict.fromkeys(rows.ranker[good].tolist()))}
    by_ranker = np.full((len(heads), len(column), rows.ranks.shape[1]), UNKNOWN, dtype=np.int64)
    seen: dict[tuple[int, str], int] = {}
    for row, number in zip(good.tolist(), instance.tolist()):
        name = str(rows.ranker[row])
        if (number, name) in seen:
            already = f"ordered id {str(rows.id[row])!r} in row {seen[number, name]} already"
            problems.add("duplicate", f"row {row}", f"ranker {name!r} {already}")
            continue
        seen[number, name] = row
        by_ranker[number, column[name]] = rows.ranks[row]
    parts = _pick(rows, heads)
    return parts | {
        "ranks": aggregated(by_ranker, aggregate),
        "by_ranker": by_ranker,
        "rankers": tuple(column),
    }


def aggregated(by_ranker: IntArray, method: str) -> IntArray:
    """One order per instance, aggregated from the orders of its rankers."""
    return aggregation.aggregate(by_ranker, cast(Any, method))  # refuses unknown methods


def _pick(rows: Rows, index: npt.NDArray[np.intp]) -> dict[str, Any]:
    everything = len(index) == len(rows.good) and bool((index == np.arange(len(index))).all())
    return {
        "ranks": rows.ranks if everything else rows.ranks[index],
        "labels": rows.labels,
        "features": None if rows.features is None else rows.features[index],
        "feature_names": rows.table.names or None,
        "encoding": rows.table.encoding,
        "notes": rows.table.notes,
        "split": None if rows.split is None else rows.split[index],
        "weights": None if rows.weight is None else rows.weight[index],
        "ids": index.tolist() if rows.id is None else rows.id[index].tolist(),
    }


def _same_in_every_row(
    rows: Rows, good: npt.NDArray[np.intp], heads: npt.NDArray[np.intp], problems: Problems
) -> None:
    """Rows of one instance must agree in all but ranker and order."""
    parts = {"splits": rows.split, "weights": rows.weight, "features": rows.features}
    for name, values in parts.items():
        if values is None:
            continue
        differs = values[good] != values[heads]
        if name == "features":
            differs &= ~(np.isnan(values[good]) & np.isnan(values[heads]))
        for number in np.flatnonzero(differs if differs.ndim == 1 else differs.any(axis=1)).tolist():
            where, message = (
                f"row {good[number]}",
                f"its {name} differ from row {heads[number]} of the same id",
            )
            problems.add("instance", where, message)


def build(parts: dict[str, Any], source: str, notes: list[str]) -> RankedData:
    """`RankedData` of checked parts; notes on the file come before those on its columns."""
    if len(parts["ranks"]) == 0:
        raise DataError(f"{source}: {NO_ROW}")
    return RankedData(**{**parts, "notes": (*notes, *parts["notes"])}, source=source)

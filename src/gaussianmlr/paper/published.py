"""The numbers printed in the paper."""

from __future__ import annotations

import csv
import functools
import importlib.resources
from collections.abc import Mapping
from typing import NamedTuple

from gaussianmlr.paper.cells import METRICS

_SEEDS = 5  # of the error bars

__all__ = ["Number", "published"]


class Number(NamedTuple):
    """A mean in percent, its standard deviation if known, and the number of seeds."""

    mean: float
    std: float | None = None
    seeds: int = 1


@functools.cache
def published() -> Mapping[tuple[str, str, str, str], dict[str, Number]]:
    """The six metrics of the paper by table, data set, method and supervision.

    Examples
    --------
    >>> published()["gray", "gray-s", "gmlr", "strong"]["tau_b"].mean
    94.23
    """
    text = (importlib.resources.files(__package__) / "published.csv").read_text("utf-8")
    found = {}
    for row in csv.DictReader(text.splitlines()):
        found[row["table"], row["dataset"], row["method"], row["supervision"]] = {
            name: _number(row[name], row[f"{name}_std"]) for name in METRICS
        }
    return found


def _number(mean: str, std: str) -> Number:
    return Number(float(mean), float(std), _SEEDS) if std else Number(float(mean))

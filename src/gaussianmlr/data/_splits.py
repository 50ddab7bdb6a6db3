"""The names of the parts of a data set that training knows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from gaussianmlr.data.dataset import RankedData

PARTS = ("train", "validation", "test")
ALIASES = {"val": "validation", "valid": "validation", "dev": "validation"}
_SHOWN = 3


def part_name(split: str) -> str:
    """The part that a split stands for.

    Examples
    --------
    >>> part_name("Val"), part_name("tset")
    ('validation', 'tset')
    """
    return ALIASES.get(split.lower(), split.lower())


def unknown_splits(data: RankedData) -> dict[str, int]:
    """How many instances have each split that is no part training knows."""
    splits = () if data.split is None else data.split.tolist()
    return {name: count for name, count in Counter(splits).items() if part_name(name) not in PARTS}


def left_out(unknown: Mapping[str, int], total: int) -> str:
    """What becomes of instances with unknown splits, and which splits are known.

    Examples
    --------
    >>> left_out({"tset": 40}, 200)
    "40 of 200 instances are in 'tset', which training leaves out; known are train, val, valid, dev, \
validation, test"
    """
    names = ", ".join(map(repr, [*unknown][:_SHOWN]))
    more = f" and {len(unknown) - _SHOWN} more" if len(unknown) > _SHOWN else ""
    known = [name for part in PARTS for name in (*(a for a in ALIASES if ALIASES[a] == part), part)]
    verb = "is" if sum(unknown.values()) == 1 else "are"
    return (
        f"{sum(unknown.values())} of {total} instances {verb} in {names}{more}, which training leaves out; "
        f"known are {', '.join(known)}"
    )

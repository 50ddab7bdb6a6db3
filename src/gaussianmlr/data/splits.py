"""Parts of a data set: their names, and every way in which training, validation and test rows are drawn."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from gaussianmlr.data.dataset import RankedData
from gaussianmlr.data.ranked_mnist.settings import Setting
from gaussianmlr.errors import DataError

IntArray = npt.NDArray[np.int64]

PARTS = ("train", "validation", "test")
CONFORMAL = "conformal"  # instances that calibrate guarantees, and nothing else
STAMP = "{}\x00conformal"  # of their draw, see `hold_out`
ALIASES = {"val": "validation", "valid": "validation", "dev": "validation"}
HELD_OUT = 0.2  # share of the training data, if no validation split is given
_LEAST_HELD_OUT = 10  # fewer rows cannot tell which epoch is best
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
    """The number of instances per split that training does not know."""
    splits = () if data.split is None else data.split.tolist()
    return {name: count for name, count in Counter(splits).items() if part_name(name) not in PARTS}


def left_out(unknown: Mapping[str, int], total: int) -> str:
    """A message about instances with unknown splits.

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


def part_names(data: RankedData) -> npt.NDArray[np.object_]:
    """The part of every instance; all are training instances if the data has no splits."""
    splits = ["train"] * len(data) if data.split is None else data.split.tolist()
    return np.array([part_name(name) for name in splits], dtype=object)


def has_test(data: RankedData | Setting) -> bool:
    """Whether the data has a test part."""
    return isinstance(data, Setting) or "test" in part_names(data).tolist()


def hold_out(
    parts: npt.NDArray[np.object_],
    ids: Sequence[str],
    into: str,
    stamp: str,
    *,
    fold: int | None = None,
    folds: int | None = None,
    share: float = HELD_OUT,
) -> int:
    """Move a share of the training instances, or one of `folds` parts, into another part; how many moved.

    The draw depends on ids and stamp alone, not on the order of the rows or on versions of libraries.
    Rows of one id stay together, which prevents leakage between parts.

    Parameters
    ----------
    parts : object array [N]
        Names of the parts, changed in place.
    ids : sequence of str
        Ids of the instances.
    into : str
        The part that is drawn.
    stamp : str
        The text whose SHA-256 orders the ids, with ``{}`` in the place of the id: another stamp,
        another draw.
    fold, folds : int, optional
        Number of the fold to take, and number of folds.
    share : float
        Share of the ids, otherwise; a fifth by default.
    """
    trained = parts == "train"
    names = np.array(ids, dtype=object)
    pool = sorted(set(names[trained]), key=lambda name: _digest(stamp.replace("{}", name)))
    chosen = set(pool[: held_out_size(len(pool), share)] if fold is None else pool[fold::folds])
    # A set: numpy compares objects pair by pair.
    moved = trained & np.fromiter((name in chosen for name in names), dtype=bool, count=len(names))
    parts[moved] = into
    return int(moved.sum())


def held_out_size(count: int, share: float = HELD_OUT) -> int:
    """Size of the held-out set: a fifth by default, one at the least."""
    return max(1, round(share * count))


def split(data: RankedData, *, conformal: float = 0.0) -> tuple[dict[str, RankedData], list[str]]:
    """Train, validation and test parts, and notes for people; missing validation data is held out by id.

    Parameters
    ----------
    data : RankedData
        The data.
    conformal : float
        Share of the remaining training instances that becomes a further part, ``"conformal"``.

    Examples
    --------
    >>> from gaussianmlr.data import from_arrays
    >>> parts, notes = split(from_arrays(np.arange(20.0).reshape(10, 2), [["a", "b"]] * 5 + [["b"]] * 5))
    >>> {name: len(part) for name, part in parts.items()}
    {'train': 8, 'validation': 2}
    """
    unknown = unknown_splits(data)
    notes = [left_out(unknown, len(data))] if unknown else []
    names = part_names(data)
    train = names == "train"
    if train.any() and "validation" not in names.tolist():
        assert data.ids is not None
        if train.sum() < 2:
            raise DataError(
                f"{data.source}: one instance to train on; expected two or more, some to validate on"
            )
        if len({data.ids[place] for place in np.flatnonzero(train)}) < 2:
            first = data.ids[int(np.flatnonzero(train)[0])]
            raise DataError(f"{data.source}: all rows have the id {first!r}; expected two ids or more")
        held = hold_out(names, data.ids, "validation", "{}\x000")
        why = "no split" if data.split is None else "no validation split"
        note = f"{why}: {held} of {train.sum()} training instances are held out for validation"
        notes.insert(0, note)
    if conformal:
        assert data.ids is not None
        left = int((names == "train").sum())
        held = hold_out(names, data.ids, CONFORMAL, STAMP, share=conformal)
        if held == left:
            raise DataError(
                f"{data.source}: conformal {conformal:g} leaves none of {left} instances to train on"
            )
        notes.append(f"{held} of {left} training instances are held out to calibrate guarantees")
    return {name: data.subset(names == name) for name in _in_order(names)}, notes


def _in_order(names: npt.NDArray[np.object_]) -> list[str]:
    """Names of the parts: those that training knows first."""
    found = dict.fromkeys(names.tolist())
    return [*(part for part in PARTS if part in found), *(name for name in found if name not in PARTS)]


def rolling_hold_out(rows: int, share: float, turn: int, seed: int) -> tuple[IntArray, IntArray]:
    """Rows to train on, and the share held out at a turn; the next turn holds out the next rows.

    Examples
    --------
    >>> kept, held = rolling_hold_out(100, 0.25, turn=0, seed=0)
    >>> len(kept), len(held), set(held) & set(rolling_hold_out(100, 0.25, turn=1, seed=0)[1])
    (75, 25, set())
    >>> len(rolling_hold_out(30, 0.25, turn=0, seed=0)[1])  # too few to choose anything by
    0
    """
    order = np.random.default_rng(seed).permutation(rows)
    count = round(share * rows)
    if count < _LEAST_HELD_OUT:
        count = 0
    turned = np.roll(order, -turn * count)
    return np.sort(turned[count:]), np.sort(turned[:count])


def shuffled_folds(rows: int, folds: int, seed: int) -> list[tuple[IntArray, IntArray]]:
    """Cross-validation of shuffled rows: for each fold, the rows of the others and its own.

    Examples
    --------
    >>> [len(tested) for _, tested in shuffled_folds(11, 3, seed=0)]
    [4, 4, 3]
    """
    parts = np.array_split(np.random.default_rng(seed).permutation(rows), folds)
    return [
        (np.concatenate([*parts[:number], *parts[number + 1 :]]), part) for number, part in enumerate(parts)
    ]


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()

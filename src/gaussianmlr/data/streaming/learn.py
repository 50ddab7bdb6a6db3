"""Parts of a store, and what a model takes of it, learned from its training rows in one pass."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from gaussianmlr.data.channels import channels_of
from gaussianmlr.data.coding import Column, Encoding
from gaussianmlr.data.columns import fitted_categories
from gaussianmlr.data.dates import PARTS, part_of
from gaussianmlr.data.inputs import Inputs
from gaussianmlr.data.splits import CONFORMAL, STAMP, held_out_size, left_out, part_name
from gaussianmlr.data.splits import PARTS as KNOWN
from gaussianmlr.data.streaming.sets import rows_of
from gaussianmlr.data.streaming.store import Store
from gaussianmlr.errors import DataError, shorten

__all__ = ["MOST_HELD", "choose_part", "divide", "learn_inputs"]

MOST_HELD = 100_000  # rows of a part that is held in memory
_MOST_BYTES = 256 << 20  # of such a part
_UNUSED, _DRAWS, _SPARE = "not used", "draws.bin", 100_000
FloatArray = npt.NDArray[np.float64]


def divide(store: Store, *, conformal: float = 0.0) -> list[str]:
    """Name the parts of a store, and hold out what is missing; returns notes.

    Validation rows are a fifth of the training rows, as of a table in memory and by the same draw, but
    100,000 at most; of a validation part that is larger, so many are drawn. So is what calibrates guarantees.
    """
    about, notes = store.about, list[str]()
    codes = [part_name(name) for name in about.parts]
    unknown = {
        name: int(count)
        for name, part, count in zip(about.parts, codes, store.counts.sum(1))
        if part not in KNOWN
    }
    if unknown:
        notes.append(left_out(unknown, len(store)))
    if "train" not in codes:
        raise DataError(
            f"{about.source}: no instance has the split 'train'; it has {shorten(list(about.parts))}"
        )
    _rename(store, codes)
    most = most_held(store)
    total = _count(store, "train")
    if "validation" not in about.parts:
        if total < 2:
            raise DataError(f"{about.source}: one instance to train on; expected two or more")
        held = _move(store, "train", "validation", "{}\x000", min(most, held_out_size(total)))
        why = "no validation split" if about.split else "no split"
        notes.insert(0, f"{why}: {held:,} of {total:,} training instances are held out for validation")
    elif (there := _count(store, "validation")) > most:
        _move(store, "validation", _UNUSED, "{}\x000", there - most)
        notes.append(f"{most:,} of {there:,} validation instances are used")
    if conformal:
        left = _count(store, "train")
        count = min(most, held_out_size(left, conformal))
        if count >= left:
            raise DataError(
                f"{about.source}: conformal {conformal:g} leaves none of {left} instances to train on"
            )
        held = _move(store, "train", CONFORMAL, STAMP, count)
        notes.append(f"{held:,} of {left:,} training instances are held out to calibrate guarantees")
    code = about.parts.index("train")
    if about.weighted and not any(
        (rows_of(store, shard, code, named=False).weights > 0).any() for shard in range(store.shards)
    ):
        raise DataError("all weights of the training instances are 0; expected one above it")
    return notes


def choose_part(store: Store, split: str) -> tuple[str | None, list[str]]:
    """The part to measure on, None for all rows, and notes; rows are held out as for training if need be."""
    about, wanted = store.about, part_name(split)
    if split == "all" or (wanted == "test" and not about.split):
        why = f"no split: all {len(store):,} instances are used; --split validation takes those held out"
        return None, [] if split == "all" else [why]
    names = [part_name(name) for name in about.parts]
    notes = list[str]()
    if wanted in ("train", "validation") and "validation" not in names and "train" in names:
        notes = divide(store)
    else:
        _rename(store, names)
    if wanted not in about.parts or not _count(store, wanted):
        raise DataError(
            f"{about.source}: no split {split!r}; it has {', '.join(about.parts)}, and 'all' takes "
            "everything; --split-column says which column holds the splits"
        )
    return wanted, notes


def most_held(store: Store) -> int:
    """Rows of a part that may be held in memory."""
    row = 8 * (len(store.about.columns) + len(store.about.labels))
    return max(1, min(MOST_HELD, _MOST_BYTES // row))


def _count(store: Store, part: str) -> int:
    return int(store.counts[store.about.parts.index(part)].sum()) if part in store.about.parts else 0


def _rename(store: Store, names: list[str]) -> None:
    """Give the parts their names; those of one name become one."""
    known = list(dict.fromkeys(names))
    places = np.array([known.index(name) for name in names], dtype=np.uint8)
    changed = known != store.about.parts
    store.about.parts = known
    counts = np.zeros((len(known), store.shards), dtype=np.int64)
    np.add.at(counts, places, store.counts)
    store.counts = counts
    for shard in range(store.shards) if changed else ():
        store.set_parts(shard, places[store.parts_of(shard)])


def _move(store: Store, part: str, into: str, stamp: str, count: int) -> int:
    """Move rows from a part into another: those of the smallest digests, as `splits.hold_out` draws them."""
    if into not in store.about.parts:
        store.about.parts.append(into)
        store.counts = np.append(store.counts, np.zeros((1, store.shards), dtype=np.int64), axis=0)
    old, new = store.about.parts.index(part), store.about.parts.index(into)
    kept, moved = np.zeros(0, dtype=np.uint64), 0
    file = store.folder / _DRAWS
    with file.open("wb") as written:
        for shard, drawn in _draws(store, stamp):
            written.write(drawn.tobytes())
            kept = np.concatenate([kept, drawn[store.parts_of(shard) == old]])
            if len(kept) > 2 * count + _SPARE:
                kept = np.partition(kept, count)[:count]
    last = np.partition(kept, count - 1)[count - 1]
    size = store.about.shard_rows
    for shard in range(store.shards):
        parts = store.parts_of(shard)
        drawn = np.fromfile(file, np.uint64, len(parts), offset=8 * shard * size)
        chosen = (parts == old) & (drawn <= last)
        if chosen.any():
            store.set_parts(shard, np.where(chosen, np.uint8(new), parts))
            moved += int(chosen.sum())
    file.unlink()
    return moved


def _draws(store: Store, stamp: str) -> Iterator[tuple[int, npt.NDArray[np.uint64]]]:
    """The beginning of the digest of each row's name, shard by shard; of a row without one, its number's."""
    row = 0
    for shard in range(store.shards):
        count = int(store.index[shard, 1])
        names = store.names(shard) if store.about.named else map(str, range(row, row + count))
        digests = b"".join(hashlib.sha256(stamp.replace("{}", name).encode()).digest()[:8] for name in names)
        yield shard, np.frombuffer(digests, ">u8").astype(np.uint64)
        row += count


def learn_inputs(store: Store) -> Inputs:
    """The inputs of a model of a table, from its training rows; as `inputs.table_inputs`, in one pass."""
    about = store.about
    if not any(column.kind != "number" for column in about.held) and not any(
        np.isnan(rows).any() for rows in _training(store)
    ):
        encoding = None
    else:
        encoding = _fitted(store)
    found: Inputs = {"kind": "table", "channels": len(about.columns), "columns": list(about.columns)}
    if encoding is not None:
        found["encoding"] = [column.to_dict() for column in encoding]
        found["channels"] = sum(column.width for column in encoding)
    found["scaling"] = _scaling(store, encoding)
    return found


def _training(store: Store) -> Iterator[FloatArray]:
    code = store.about.parts.index("train")
    for shard in np.flatnonzero(store.counts[code]).tolist():
        yield np.asarray(rows_of(store, shard, code, named=False).features, dtype=np.float64)


def _fitted(store: Store) -> Encoding:
    """How a model codes the columns: gaps, categories by how often they occur, parts of dates that vary."""
    held = store.about.held
    gaps = np.zeros(len(held), dtype=bool)
    counts = {
        place: np.zeros(len(one.categories) + 1, dtype=np.int64)
        for place, one in enumerate(held)
        if one.kind == "category"
    }
    ends = {
        (place, part): [np.inf, -np.inf]
        for place, one in enumerate(held)
        if one.kind == "date"
        for part in PARTS
    }
    for rows in _training(store):
        empty = np.isnan(rows)
        gaps |= empty.any(axis=0)
        for place, count in counts.items():
            codes = rows[~empty[:, place], place].astype(np.int64)
            count += np.bincount(codes, minlength=len(count))
        for (place, part), both in ends.items():
            numbers = part_of(rows[~empty[:, place], place], part)
            if len(numbers):
                both[:] = min(both[0], numbers.min()), max(both[1], numbers.max())
    found = []
    for place, one in enumerate(held):
        if one.kind == "category":
            order = sorted(range(len(one.categories)), key=one.categories.__getitem__)
            known = Column("category", tuple(one.categories[code] for code in order))
            found.append(fitted_categories(known, np.append(counts[place][order], 0), bool(gaps[place])))
        elif one.kind == "date":
            varying = [
                part for part in PARTS if part == "days" or ends[place, part][0] < ends[place, part][1]
            ]
            found.append(Column("date", parts=tuple(varying), gaps=bool(gaps[place])))
        else:
            found.append(Column(one.kind, gaps=bool(gaps[place])))
    return tuple(found)


def _scaling(store: Store, encoding: Encoding | None) -> dict[str, list[float]]:
    """Mean and deviation of the channels, shard by shard (Chan, Golub and LeVeque, 1983)."""
    count: FloatArray | None = None
    mean = square = np.zeros(0)
    for rows in _training(store):
        values = channels_of(rows, encoding)
        held = ~np.isnan(values)
        many = held.sum(axis=0).astype(np.float64)
        here = np.where(held, values, 0.0).sum(axis=0) / np.maximum(many, 1)
        spread = (np.where(held, values - here, 0.0) ** 2).sum(axis=0)
        if count is None:
            count, mean, square = many, here, spread
            continue
        both = np.maximum(count + many, 1)
        apart = here - mean
        mean = mean + apart * many / both
        square = square + spread + apart**2 * count * many / both
        count = count + many
    assert count is not None
    std = np.sqrt(square / np.maximum(count, 1))
    std[std < 1e-12] = 1.0
    place = 0
    for column in encoding or ():
        if column.kind == "category":
            mean[place], std[place] = 0.0, 1.0
        place += column.width
    return {"mean": mean.tolist(), "std": std.tolist()}

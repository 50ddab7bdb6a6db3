"""Rows of a store as a data set for training and evaluation, in bounded memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from gaussianmlr.data.coding import Column, Encoding
from gaussianmlr.data.columns import recode
from gaussianmlr.data.dataset import RankedData
from gaussianmlr.data.inputs import Inputs, columns_of, encoding_of, scaled
from gaussianmlr.data.loading import Arrays, RankedSet
from gaussianmlr.data.readers.images import RankedImages, read_tensor
from gaussianmlr.data.readers.manifests import locate
from gaussianmlr.data.streaming.shuffle import LANES, ShardOrder
from gaussianmlr.data.streaming.store import Block, Store
from gaussianmlr.data.transforms import Preprocess
from gaussianmlr.errors import DataError

__all__ = ["BUFFER_BYTES", "BUFFER_ROWS", "StreamedRows", "held_part", "rows_of", "rows_of_peers"]

IntArray = npt.NDArray[np.int64]
BUFFER_BYTES, BUFFER_ROWS = 128 << 20, 1 << 18  # of the shuffle, over all lanes
_AT_ONCE = 4_096
_SPARE = 2  # shards per lane that are cut by the ends of its buffer


class StreamedRows:
    """Rows of one part of a store, or of all, as a model takes them.

    The shards that were used last are kept, about 160 MB of them, so memory does not grow with the number of
    rows. `order` gives the order of an epoch, in which that suffices.

    Parameters
    ----------
    store : Store
        The rows.
    inputs : Inputs
        Inputs of the model.
    part : str, optional
        Name of the part; all rows if left out.
    weights : bool
        Whether rows have their weights.
    """

    def __init__(
        self, store: Store, inputs: Inputs, part: str | None = None, *, weights: bool = False
    ) -> None:
        self.store, self.inputs = store, inputs
        self.weighted = weights and store.about.weighted
        self.ties = store.about.ties
        self.labels = tuple(store.about.labels)
        self.code = None if part is None else store.about.parts.index(part)
        self.sizes = store.counts.sum(0) if self.code is None else store.counts[self.code].copy()
        self._ends = np.cumsum(self.sizes)
        self.pictures = store.about.kind == "images"
        self._encoding = encoding_of(inputs)
        self._codes = {} if self.pictures else _codes_of(store, inputs)
        rows = store.about.shard_rows
        bytes_of_row = 8 * len(store.about.columns) + 2 * len(self.labels) + 4
        per_lane = min(BUFFER_BYTES // (rows * bytes_of_row), BUFFER_ROWS // rows) // LANES
        self._per_lane = max(1, per_lane)
        self._slots = min(max(1, store.shards), LANES * (self._per_lane + _SPARE))
        self._kept: _Kept | None = None

    def __len__(self) -> int:
        return int(self._ends[-1]) if len(self._ends) else 0

    def __getitem__(self, index: int) -> tuple[Tensor, ...]:
        return tuple(part[0] for part in self.tensors_at([index]))

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_kept": None}  # a loader process keeps shards of its own

    def fingerprint(self) -> str:
        """A SHA-256 of the contents of the whole store, and the part."""
        return f"{self.store.about.fingerprint} {self.code}"

    def order(self, seed: int, stage: int, epoch: int) -> ShardOrder:
        """The order of an epoch; the same for the same arguments."""
        used = self.sizes[self.sizes > 0]
        rows = int(used.mean()) * self._per_lane if len(used) else 1
        return ShardOrder(self.sizes, seed, stage, epoch, rows)

    def tensors_at(self, indices: Sequence[int], epoch: int = 0) -> tuple[Tensor, ...]:
        """A batch: inputs, ranks and, if any, weights."""
        found = self.read(indices)
        ranks = torch.from_numpy(found.ranks.astype(np.int64))
        x = self._images(found.names) if self.pictures else self._rows(found.features)
        return (x, ranks, torch.from_numpy(found.weights)) if self.weighted else (x, ranks)

    def read(self, indices: Sequence[int] | IntArray) -> Block:
        """Some rows as they are in the store."""
        where = np.asarray(indices, dtype=np.int64)
        shard = np.searchsorted(self._ends, where, side="right")
        row = where - np.where(shard > 0, self._ends[shard - 1], 0)
        if self._kept is None:
            self._kept = _Kept(self)
        return self._kept.take(shard, row)

    def in_memory(self) -> RankedSet:
        """All rows in memory, without weights; pictures are still read when they are needed."""
        if self.pictures:
            assert self.code is not None
            data = replace(held_part(self.store, self.store.about.parts[self.code]), weights=None)
            return RankedImages(data, Preprocess.from_dict(self.inputs["preprocess"]))
        x = torch.empty(len(self), self.inputs["channels"])
        ranks = torch.empty(len(self), len(self.labels), dtype=torch.int64)
        for start in range(0, len(self), _AT_ONCE):
            stop = min(start + _AT_ONCE, len(self))
            found = self.read(np.arange(start, stop))
            x[start:stop] = self._rows(found.features)
            ranks[start:stop] = torch.from_numpy(found.ranks.astype(np.int64))
        self._kept = None
        return Arrays(x, ranks)

    def for_peers(self, count: int = 20_000) -> Arrays:
        """Evenly spaced rows in memory, to compare with; zeros in place of pictures, which are not read."""
        where = np.linspace(0, len(self) - 1, min(count, len(self))).round().astype(np.int64)
        found = self.read(where)
        x = torch.zeros(len(where), 1) if self.pictures else self._rows(found.features)
        ranks = torch.from_numpy(found.ranks.astype(np.int64))
        return Arrays(x, ranks, torch.from_numpy(found.weights) if self.weighted else None)

    def _rows(self, features: npt.NDArray[Any]) -> Tensor:
        for column, codes in self._codes.items():
            held = features[:, column]
            features[:, column] = np.append(codes, np.nan)[
                np.where(np.isnan(held), len(codes), held).astype(np.intp)
            ]
        return scaled(features, self.inputs, self._encoding)

    def _images(self, names: Sequence[str]) -> Tensor:
        preprocess = Preprocess.from_dict(self.inputs["preprocess"])
        folder = Path(self.store.about.folder)
        pictures = [read_tensor(locate(folder, name)[0], preprocess) for name in names]
        size = (preprocess.channels, *preprocess.size)
        return torch.stack(pictures) if pictures else torch.zeros(0, *size)


def rows_of_peers(data: RankedSet) -> RankedSet:
    """The rows that peers of a model learn from or are measured on: of streamed rows, 20,000."""
    return data.for_peers() if isinstance(data, StreamedRows) else data


class _Kept:
    """The shards that were used last."""

    def __init__(self, rows: StreamedRows) -> None:
        store = rows.store
        self.rows, size = rows, store.about.shard_rows
        kind = np.float32 if store.about.single else np.float64
        slots = rows._slots
        # Pages of empty arrays take no memory until they are written.
        self.features = np.empty((slots, size, len(store.about.columns)), dtype=kind)
        self.ranks = np.empty((slots, size, len(rows.labels)), dtype=np.int16)
        self.weights = np.empty((slots, size if rows.weighted else 0), dtype=np.float32)
        self.names: list[list[str]] = [[] for _ in range(slots)]
        self.slot = np.full(store.shards, -1, dtype=np.int64)  # of each shard, -1 if it is not kept
        self.shard = np.full(slots, -1, dtype=np.int64)
        self.used = np.zeros(slots, dtype=np.int64)
        self.turn = 0

    def take(self, shard: IntArray, row: IntArray) -> Block:
        wanted = np.unique(shard)
        if len(wanted) > len(self.shard):  # more than can be kept: some at a time
            half = len(wanted) // 2
            return _merged(self, shard, row, shard < wanted[half])
        self.turn += 1
        self.used[self.slot[wanted[self.slot[wanted] >= 0]]] = self.turn
        for one in wanted[self.slot[wanted] < 0].tolist():
            self._load(one)
        slot = self.slot[shard]
        names = [self.names[s][r] for s, r in zip(slot.tolist(), row.tolist())] if self.rows.pictures else []
        weights = self.weights[slot, row] if self.rows.weighted else self.weights[0][:0]
        return Block(self.features[slot, row], self.ranks[slot, row], weights, names)

    def _load(self, shard: int) -> None:
        slot = int(self.used.argmin())
        if self.shard[slot] >= 0:
            self.slot[self.shard[slot]] = -1
        found = rows_of(self.rows.store, shard, self.rows.code, named=self.rows.pictures)
        count = len(found.ranks)
        self.features[slot, :count], self.ranks[slot, :count] = found.features, found.ranks
        if self.rows.weighted:
            self.weights[slot, :count] = found.weights
        self.names[slot] = found.names
        self.slot[shard], self.shard[slot], self.used[slot] = slot, shard, self.turn


def _merged(kept: _Kept, shard: IntArray, row: IntArray, first: npt.NDArray[np.bool_]) -> Block:
    """Rows of many shards, read in two halves."""
    halves = [kept.take(shard[one], row[one]) for one in (first, ~first)]
    back = np.argsort(np.concatenate([np.flatnonzero(first), np.flatnonzero(~first)]), kind="stable")
    names = [*halves[0].names, *halves[1].names]
    features, ranks, weights = (np.concatenate([a, b]) for a, b in zip(halves[0][:3], halves[1][:3]))
    return Block(
        features[back],
        ranks[back],
        weights[back] if len(weights) else weights,
        [names[place] for place in back.tolist()] if names else [],
    )


def rows_of(store: Store, shard: int, code: int | None, *, named: bool = True) -> Block:
    """The rows of a shard that belong to a part, or all of them."""
    whole = store.block(shard, named=named)
    if code is None:
        return whole
    where = np.flatnonzero(store.parts_of(shard) == code)
    if len(where) == len(whole.ranks):
        return whole
    return Block(
        whole.features[where],
        whole.ranks[where],
        whole.weights[where] if len(whole.weights) else whole.weights,
        [whole.names[place] for place in where.tolist()] if whole.names else [],
    )


def held_part(store: Store, part: str | None) -> RankedData:
    """A part of a store, or all of it, in memory."""
    code = None if part is None else store.about.parts.index(part)
    shards = range(store.shards) if code is None else np.flatnonzero(store.counts[code]).tolist()
    blocks = [rows_of(store, shard, code) for shard in shards]
    if not blocks:
        raise DataError(f"{store.about.source}: no instance has the split {part!r}")
    about, names = store.about, [name for block in blocks for name in block.names]
    splits = None
    if code is None and about.split:
        codes = np.concatenate([store.parts_of(shard) for shard in shards])
        splits = np.array(about.parts)[codes]
    pictures = about.kind == "images"
    features = np.concatenate([block.features for block in blocks])
    return RankedData(
        ranks=np.concatenate([block.ranks for block in blocks]).astype(np.int64),
        labels=tuple(about.labels),
        features=None if pictures else features,
        images=tuple(locate(Path(about.folder), name)[0] for name in names) if pictures else None,
        feature_names=None if pictures else tuple(about.columns),
        encoding=None if pictures else _sorted(features, about.held),
        split=splits,
        weights=np.concatenate([block.weights for block in blocks]).astype(np.float64)
        if about.weighted
        else None,
        ids=tuple(names) if names else None,
        source=about.source,
        notes=tuple(about.notes),
    )


def _sorted(features: npt.NDArray[Any], encoding: Encoding) -> Encoding:
    """The encoding with sorted categories, by which the codes of the features are changed."""
    found = list(encoding)
    for place, column in enumerate(encoding):
        if column.kind == "category":
            found[place] = Column("category", tuple(sorted(column.categories)))
            features[:, place] = recode(features[:, [place]], (column,), (found[place],), ["x"])[:, 0]
    return tuple(found)


def _codes_of(store: Store, inputs: Inputs) -> dict[int, npt.NDArray[np.float64]]:
    """Of each column of categories, the model's code of each code of the store."""
    names, wanted = columns_of(inputs), encoding_of(inputs)
    if names != store.about.columns:
        raise DataError(f"{store.about.source}: the columns are {store.about.columns}; expected {names}")
    found = {}
    for place, column in enumerate(store.about.held):
        if column.kind == "category":
            codes = np.arange(len(column.categories), dtype=np.float64)[:, None]
            new = None if wanted is None else (wanted[place],)
            found[place] = np.asarray(recode(codes, (column,), new, [names[place]]), dtype=np.float64)[:, 0]
    return found

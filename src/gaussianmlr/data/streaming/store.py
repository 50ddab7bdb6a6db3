"""Rows on disk in shards: written once in order, read shard by shard."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gaussianmlr._utils.files import write_text
from gaussianmlr._utils.strict_json import dumps, read_json
from gaussianmlr.data.coding import Column, Encoding
from gaussianmlr.errors import DataError

__all__ = ["About", "Block", "Store", "StoreWriter"]

IntArray = npt.NDArray[np.int64]
SHARD = 1 << 20  # bytes of a shard, about
_FEWEST, _MOST = 64, 4_096  # rows of a shard
_MOST_RANKS = 32_767  # of 16 bits
_VERSION = 1
_ROWS, _PARTS, _INDEX, _ABOUT = "rows.bin", "parts.bin", "index.npy", "about.json"


class Block(NamedTuple):
    """Some rows."""

    features: npt.NDArray[Any]  # [n, columns], as the columns were read
    ranks: npt.NDArray[Any]  # [n, labels], 16 bits
    weights: npt.NDArray[Any]  # [n], 32 bits; [0] where no row has one
    names: list[str]  # ids, or paths of pictures; empty where rows have none


@dataclass
class About:
    """What the rows of a store are.

    Attributes
    ----------
    source : str
        What was read.
    key : str
        Files and options that it was made from.
    found : list of str
        The labels in the order in which they were found.
    labels : list of str
        The labels in the order of the columns of ranks.
    columns : list of str
        The feature columns.
    encoding : list of dict
        What they hold, categories by their codes.
    parts : list of str
        Names of the parts, by their codes.
    kind : {"features", "images"}
        What the inputs are.
    folder : str
        Folder that the paths of pictures are relative to.
    rows, shard_rows : int
        Rows of all, and of a shard.
    single : bool
        Whether features are in single precision.
    weighted, named, split : bool
        Whether rows have weights, names, and parts of their own.
    ties : bool
        Whether any order ties two relevant labels.
    notes : list of str
        What was found out.
    fingerprint : str
        SHA-256 of the contents.
    inputs : dict
        Inputs of a model for these rows, once they are known.
    """

    source: str
    key: str = ""
    found: list[str] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    columns: list[str] = field(default_factory=list)
    encoding: list[dict[str, Any]] = field(default_factory=list)
    parts: list[str] = field(default_factory=list)
    kind: str = "features"
    folder: str = ""
    rows: int = 0
    shard_rows: int = _MOST
    single: bool = False
    weighted: bool = False
    named: bool = False
    split: bool = False
    ties: bool = False
    notes: list[str] = field(default_factory=list)
    fingerprint: str = ""
    inputs: dict[str, Any] = field(default_factory=dict)
    version: int = _VERSION

    @property
    def held(self) -> Encoding:
        """What the feature columns hold."""
        return tuple(Column.from_dict(one) for one in self.encoding)


def shard_rows(row_bytes: int) -> int:
    """Rows of a shard of about a megabyte.

    Examples
    --------
    >>> shard_rows(400), shard_rows(1), shard_rows(1 << 30)
    (2621, 4096, 64)
    """
    return min(_MOST, max(_FEWEST, SHARD // max(1, row_bytes)))


class StoreWriter:
    """Writes rows to a folder, shard by shard."""

    def __init__(self, folder: Path, about: About) -> None:
        self.folder, self.about = folder, about
        self.index: list[
            tuple[int, int, int, int]
        ] = []  # of each shard: offset, rows, labels, bytes of names
        self._waiting: list[Block] = []
        self._count = 0
        self._offset = 0
        folder.mkdir(parents=True)
        self._rows = (folder / _ROWS).open("wb")
        self._parts = (folder / _PARTS).open("wb")

    def add(self, block: Block, parts: npt.NDArray[np.uint8]) -> None:
        """Add rows; labels may have been added since the rows before."""
        self._parts.write(parts.tobytes())
        self._waiting.append(block)
        self._count += len(block.ranks)
        self.about.rows += len(block.ranks)
        if self._count >= self.about.shard_rows:
            whole = _joined(self._waiting)
            size, start = self.about.shard_rows, 0
            while self._count - start >= size:
                self._write(_cut(whole, start, start + size))
                start += size
            self._waiting, self._count = [_cut(whole, start, self._count)], self._count - start

    def _write(self, block: Block) -> None:
        names = "\0".join(block.names).encode("utf-8", "surrogatepass") if block.names else b""
        pieces = [block.features.tobytes(), block.ranks.tobytes(), block.weights.tobytes(), names]
        self.index.append((self._offset, len(block.ranks), block.ranks.shape[1], len(names)))
        for piece in pieces:
            self._rows.write(piece)
            self._offset += len(piece)

    def close(self) -> None:
        """Write what is left."""
        if self._count:
            self._write(_joined(self._waiting))
            self._waiting, self._count = [], 0
        self._rows.close()
        self._parts.close()
        np.save(self.folder / _INDEX, np.array(self.index, dtype=np.int64).reshape(-1, 4))


def _joined(blocks: list[Block]) -> Block:
    if len(blocks) == 1:
        return blocks[0]
    width = blocks[-1].ranks.shape[1]  # labels are only ever added
    ranks = [np.pad(one.ranks, ((0, 0), (0, width - one.ranks.shape[1]))) for one in blocks]
    return Block(
        np.concatenate([one.features for one in blocks]),
        np.concatenate(ranks),
        np.concatenate([one.weights for one in blocks]),
        [name for one in blocks for name in one.names],
    )


def _cut(block: Block, start: int, stop: int) -> Block:
    return Block(
        block.features[start:stop],
        block.ranks[start:stop],
        block.weights[start:stop],
        block.names[start:stop],
    )


def as_ranks(ranks: npt.NDArray[Any]) -> npt.NDArray[np.int16]:
    """Ranks in 16 bits."""
    if ranks.size and ranks.max() > _MOST_RANKS:
        raise DataError(f"an order has {int(ranks.max()):,} ranks; streamed data has at most {_MOST_RANKS:,}")
    return np.ascontiguousarray(ranks, dtype=np.int16)


class Store:
    """The rows of a folder that a `StoreWriter` wrote.

    Attributes
    ----------
    about : About
        What the rows are.
    counts : int array [parts, shards]
        Rows of each part in each shard.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            self.about = About(**read_json(folder / _ABOUT, 1 << 30))
            self.index = np.load(folder / _INDEX, allow_pickle=False)
            if self.about.version != _VERSION:
                raise ValueError(f"version {self.about.version}")
        except (OSError, ValueError, TypeError) as error:
            raise DataError(f"{folder} holds no rows that can be used: {error}; remove it") from None
        places = {label: place for place, label in enumerate(self.about.labels)}
        # Of each label as it was found, its column.
        self.place = np.array([places[label] for label in self.about.found], dtype=np.intp)
        self.counts = self._counted()

    @classmethod
    def make(cls, folder: Path, about: About) -> Store:
        """The store of a folder whose rows have just been written."""
        write_text(folder / _ABOUT, dumps(asdict(about), ensure_ascii=False))
        return cls(folder)

    def save(self) -> None:
        """Write what was found out about the rows."""
        write_text(self.folder / _ABOUT, dumps(asdict(self.about), ensure_ascii=False))

    def _counted(self) -> IntArray:
        found = np.zeros((len(self.about.parts), len(self.index)), dtype=np.int64)
        for shard in range(len(self.index)):
            found[:, shard] = np.bincount(self.parts_of(shard), minlength=len(found))
        return found

    def __len__(self) -> int:
        return self.about.rows

    @property
    def shards(self) -> int:
        """Number of shards."""
        return len(self.index)

    def parts_of(self, shard: int) -> npt.NDArray[np.uint8]:
        """The codes of the parts of a shard's rows."""
        rows = int(self.index[shard, 1])
        return np.fromfile(self.folder / _PARTS, np.uint8, count=rows, offset=shard * self.about.shard_rows)

    def set_parts(self, shard: int, parts: npt.NDArray[np.uint8]) -> None:
        """Change the parts of a shard's rows."""
        with (self.folder / _PARTS).open("r+b") as file:
            file.seek(shard * self.about.shard_rows)
            file.write(parts.tobytes())
        self.counts[:, shard] = np.bincount(parts, minlength=len(self.counts))

    def block(self, shard: int, *, named: bool = True) -> Block:
        """The rows of a shard; with their names, if they have any, unless they are not needed."""
        offset, rows, width, names = self.index[shard].tolist()
        columns, kind = len(self.about.columns), np.dtype(np.float32 if self.about.single else np.float64)
        weights = rows if self.about.weighted else 0
        size = rows * columns * kind.itemsize + 2 * rows * width + 4 * weights + names
        try:
            with (self.folder / _ROWS).open("rb", buffering=0) as file:
                file.seek(offset)
                data = file.read(size)
        except OSError as error:
            raise DataError(
                f"{self.folder / _ROWS} cannot be read: {error.strerror or error}; the same command "
                "reads the data again, and resumes"
            ) from None
        if len(data) != size:
            raise DataError(f"{self.folder / _ROWS} is cut off; remove the folder to read the data again")
        ends = np.cumsum([0, rows * columns * kind.itemsize, 2 * rows * width, 4 * weights])
        ranks = np.zeros((rows, len(self.place)), dtype=np.int16)
        ranks[:, self.place[:width]] = np.frombuffer(data, np.int16, rows * width, ends[1]).reshape(
            rows, width
        )
        return Block(
            np.frombuffer(data, kind, rows * columns, ends[0]).reshape(rows, columns),
            ranks,
            np.frombuffer(data, np.float32, weights, ends[2]),
            data[ends[3] :].decode("utf-8", "surrogatepass").split("\0")
            if named and self.about.named
            else [],
        )

    def names(self, shard: int) -> list[str]:
        """The names of a shard's rows."""
        offset, rows, width, size = self.index[shard].tolist()
        end = offset + rows * self.row_bytes + 2 * rows * width
        with (self.folder / _ROWS).open("rb", buffering=0) as file:
            file.seek(end)
            return file.read(size).decode("utf-8", "surrogatepass").split("\0")

    @property
    def row_bytes(self) -> int:
        """Bytes of a row without its ranks and name."""
        about = self.about
        return len(about.columns) * (4 if about.single else 8) + (4 if about.weighted else 0)

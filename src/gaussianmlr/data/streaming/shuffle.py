"""The order of an epoch over shards: a function of its arguments, computed where it is needed."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

__all__ = ["LANES", "InOrder", "ShardOrder"]

IntArray = npt.NDArray[np.int64]
LANES = 8  # streams of shards whose rows alternate; processes that divide it read shards of their own


class ShardOrder:
    """The rows of some shards in the order of an epoch, each once; a slice is computed when it is read.

    The shards are put in random order and cut into eight lanes of equal length, and the rows of a lane are
    permuted within buffers of `buffer` consecutive ones. Lanes take turns: place p of the order is in lane
    p mod 8. So P processes that divide eight, and a batch size that P divides, read lanes of their own, and
    the batches of all processes together do not depend on P. A run resumes anywhere by reading the buffers
    of that place alone.

    Parameters
    ----------
    sizes : array [shards]
        Number of rows of each shard.
    seed, stage, epoch : int
        What the order depends on.
    buffer : int
        Rows of a lane that are permuted together.

    Examples
    --------
    >>> order = ShardOrder(np.array([3, 2, 4]), seed=0, stage=0, epoch=0, buffer=2)
    >>> len(order), sorted(order[0:9].tolist())
    (9, [0, 1, 2, 3, 4, 5, 6, 7, 8])
    >>> order[4:6].tolist() == order[0:9].tolist()[4:6]
    True
    """

    def __init__(self, sizes: IntArray, seed: int, stage: int, epoch: int, buffer: int) -> None:
        self.stamp = (seed, stage, epoch)
        self.buffer = max(1, buffer)
        first = np.concatenate([[0], np.cumsum(sizes)])
        self.size = int(first[-1])
        shards = np.random.default_rng(self.stamp).permutation(len(sizes))
        self._first = first[shards]  # row that each shard begins with, in the order of the shards
        self._ends = np.cumsum(sizes[shards])
        self._begins = np.concatenate([[0], np.cumsum([self._length(lane) for lane in range(LANES)])])
        self._permuted: dict[int, tuple[int, IntArray]] = {}  # of each lane, the buffer that is in use

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, where: slice) -> Tensor:
        place = np.arange(*where.indices(self.size))
        lane, within = place % LANES, place // LANES
        number, offset = within // self.buffer, within % self.buffer
        row = np.empty(len(place), dtype=np.int64)
        both = number * LANES + lane
        for one in np.unique(both).tolist():
            buffer, which = divmod(one, LANES)
            chosen = both == one
            start = self._begins[which] + buffer * self.buffer
            row[chosen] = start + self._permutation(which, buffer)[offset[chosen]]
        shard = np.searchsorted(self._ends, row, side="right")
        before = np.where(shard > 0, self._ends[shard - 1], 0)
        return torch.from_numpy(self._first[shard] + row - before)

    def _length(self, lane: int) -> int:
        return (self.size - lane + LANES - 1) // LANES

    def _permutation(self, lane: int, number: int) -> IntArray:
        held = self._permuted.get(lane)
        if held is None or held[0] != number:
            rows = min(self.buffer, self._length(lane) - number * self.buffer)
            held = number, np.random.default_rng((*self.stamp, lane, number)).permutation(rows)
            self._permuted[lane] = held
        return held[1]


class InOrder:
    """The order 0, 1, 2, ..., without a tensor of that length.

    Examples
    --------
    >>> InOrder(5)[3:9].tolist()
    [3, 4]
    """

    def __init__(self, size: int) -> None:
        self.size, self.stamp = size, (size,)

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, where: slice) -> Tensor:
        start, stop, step = where.indices(self.size)
        return torch.arange(start, max(start, stop), step)

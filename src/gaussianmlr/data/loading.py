"""Batches for training, determined by seed and epoch, whatever the number of processes."""

from __future__ import annotations

import hashlib
import math
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from gaussianmlr.data.inputs import Inputs, scaled
from gaussianmlr.errors import DataError
from gaussianmlr.orders.sparse import SparseRanks

__all__ = ["Arrays", "Batch", "Order", "RankedSet", "batches", "epoch_order", "order_of", "ranked_rows"]


class RankedSet(Protocol):
    """A map-style data set: item i is ``(input, ranks)`` or ``(input, ranks, weight)``.

    Whole batches are read by ``tensors(indices)`` or ``tensors_at(indices, epoch)`` if the set has either,
    which is faster.
    """

    def __len__(self) -> int: ...
    def __getitem__(self, index: int, /) -> Any: ...


class Order(Protocol):
    """The order of instances; a slice gives their numbers. A tensor is one."""

    def __len__(self) -> int: ...
    def __getitem__(self, where: slice, /) -> Tensor: ...


class Batch(NamedTuple):
    """A process's share of a batch."""

    inputs: Tensor
    ranks: Tensor
    weights: Tensor | None
    whole: int  # instances in the batch of all processes together


@dataclass(frozen=True)
class Arrays:
    """Inputs and ranks that are in memory, as a data set.

    Parameters
    ----------
    inputs : array or tensor [N, ...]
        Features, or images.
    ranks : array or tensor [N, K], or [N, R, K]
        Ranks; of several rankers, one of those who ordered the instance is drawn per epoch.
    weights : array or tensor [N], optional
        Weights of instances.
    seed : int
        Seed of that draw.
    shares : array or tensor [R], optional
        Relative probability of each ranker in that draw, above 0; equal by default.

    Examples
    --------
    >>> data = Arrays(np.zeros((5, 3), np.float32), np.ones((5, 2), int))
    >>> inputs, ranks = data.tensors([0, 4])
    >>> inputs.shape, ranks.shape
    (torch.Size([2, 3]), torch.Size([2, 2]))
    """

    inputs: Any
    ranks: Any
    weights: Any = None
    seed: int = 0
    shares: Any = None

    def __post_init__(self) -> None:
        for name in ("inputs", "ranks", "weights", "shares"):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, as_tensor(value))
        object.__setattr__(self, "inputs", as_input(self.inputs))
        self._check()

    def _check(self) -> None:
        lengths = {len(part) for part in (self.inputs, self.ranks, self.weights) if part is not None}
        if len(lengths) != 1:
            raise DataError(f"inputs, ranks and weights must have one length, got {sorted(lengths)}")
        if self.inputs.ndim < 2:
            raise DataError(f"expected inputs of shape [N, ...], got shape {list(self.inputs.shape)}")
        if self.ranks.ndim not in (2, 3) or self.ranks.is_floating_point():
            raise DataError(
                "expected ranks to be integers of shape [N, K] or [N, R, K], "
                f"got {self.ranks.dtype} of shape {list(self.ranks.shape)}"
            )
        if len(self.ranks) and self.ranks.min() < -1:
            row = int((self.ranks < -1).flatten(1).any(1).nonzero()[0])
            raise DataError(
                f"row {row} holds the rank {self.ranks[row].min()}; expected -1 (unknown), 0, 1, 2, ..."
            )
        if self.weights is not None and not bool(((self.weights >= 0) & self.weights.isfinite()).all()):
            row = int((~((self.weights >= 0) & self.weights.isfinite())).nonzero()[0])
            raise DataError(
                f"row {row} has the weight {self.weights[row]}; expected a finite number from 0 up"
            )

    def fingerprint(self) -> str:
        """A SHA-256 of the contents."""
        digest = hashlib.sha256()
        for part in (self.inputs, self.ranks, self.weights):
            if part is not None:
                digest.update(f"{part.dtype} {list(part.shape)}".encode())
                digest.update(part.contiguous().numpy().tobytes())
        return digest.hexdigest()

    def __len__(self) -> int:
        return len(self.inputs)

    def __getitem__(self, index: int) -> tuple[Tensor, ...]:
        return tuple(part[0] for part in self.tensors([index]))

    def tensors(self, indices: Sequence[int], epoch: int = 0) -> tuple[Tensor, ...]:
        """A batch; of several rankers, the one drawn for the epoch."""
        where = torch.as_tensor(indices)
        return self.inputs[where], *truth_at(where, self.ranks, self.weights, self.seed, epoch, self.shares)

    def rows(self, where: Tensor) -> Arrays:
        """A subset."""
        weights = None if self.weights is None else self.weights[where]
        return Arrays(self.inputs[where], self.ranks[where], weights, self.seed, self.shares)


class SparseRows:
    """A sparse table, or one with sparse ranks, as a data set; rows are scaled and made dense per batch."""

    def __init__(self, matrix: Any, about: Inputs, ranks: Any, weights: Any = None, seed: int = 0) -> None:
        self.matrix, self.about, self.seed = matrix, about, seed
        self.ranks = ranks if isinstance(ranks, SparseRanks) else torch.from_numpy(ranks)
        self.weights = None if weights is None else torch.as_tensor(weights)
        self.shares: Tensor | None = None  # as in `Arrays`

    def __len__(self) -> int:
        return len(self.ranks)

    def __getitem__(self, index: int) -> tuple[Tensor, ...]:
        return tuple(part[0] for part in self.tensors_at([index]))

    def tensors_at(self, indices: Sequence[int], epoch: int = 0) -> tuple[Tensor, ...]:
        """A batch: inputs, ranks (of one ranker, drawn for the epoch) and, if any, weights."""
        where = torch.as_tensor(indices, dtype=torch.int64)
        rows = scaled(self.matrix[where.numpy()], self.about)
        return rows, *truth_at(where, self.ranks, self.weights, self.seed, epoch, self.shares)

    def rows(self, where: Tensor) -> SparseRows:
        """A subset."""
        weights = None if self.weights is None else self.weights[where]
        ranks = self.ranks[where] if isinstance(self.ranks, SparseRanks) else self.ranks[where].numpy()
        return SparseRows(self.matrix[where.numpy()], self.about, ranks, weights, self.seed)

    def fingerprint(self) -> str:
        """A SHA-256 of the contents."""
        digest = hashlib.sha256(repr(self.matrix.shape).encode())
        held: list[Any] = [self.matrix]
        held.append(self.ranks.matrix if isinstance(self.ranks, SparseRanks) else self.ranks.numpy())
        for one in held:
            sparse = hasattr(one, "indptr")
            for part in (one.data, one.indices, one.indptr) if sparse else (one,):
                digest.update(np.ascontiguousarray(part).tobytes())
        return digest.hexdigest()


def ranked_rows(features: Any, inputs: Inputs, ranks: Any, weights: Any = None, seed: int = 0) -> RankedSet:
    """Rows of a table, dense or sparse, with their ranks, as a model with these inputs takes them."""
    if weights is not None:
        weights = np.asarray(weights, dtype=np.float32)
    if hasattr(features, "toarray") or isinstance(ranks, SparseRanks):
        return SparseRows(features, inputs, ranks, weights, seed)
    return Arrays(scaled(features, inputs), ranks, weights, seed)


def as_tensor(values: Any) -> Tensor:
    """Arrays of any layout, frames and tensors as a tensor."""
    if hasattr(values, "to_numpy"):
        values = values.to_numpy()
    if isinstance(values, np.ndarray):
        if values.dtype.kind not in "biuf":
            raise DataError(f"expected numbers, got an array of {values.dtype}")
        values = np.ascontiguousarray(values)  # torch does not support negative strides
    return torch.as_tensor(values).detach()


def as_input(x: Tensor) -> Tensor:
    """Inputs as networks take them: bytes stay bytes, every other number is in single precision."""
    if x.dtype in (torch.float32, torch.float16, torch.bfloat16) or (x.dtype == torch.uint8 and x.ndim == 4):
        return x
    return x.float()


def truth_at(
    where: Tensor,
    ranks: Tensor | SparseRanks,
    weights: Tensor | None,
    seed: int,
    epoch: int,
    shares: Tensor | None = None,
) -> tuple[Tensor, ...]:
    """Ranks of a batch, of several rankers those of one drawn for the epoch; and weights, if any."""
    found = torch.from_numpy(ranks.dense(where)) if isinstance(ranks, SparseRanks) else ranks[where]
    if found.ndim == 3:
        found = one_ranker(found, where, seed, epoch, shares)
    return (found,) if weights is None else (found, weights[where])


def one_ranker(ranks: Tensor, where: Tensor, seed: int, epoch: int, shares: Tensor | None = None) -> Tensor:
    """Ranks [N, K] of the ranker drawn for an epoch, out of those who ordered the instance.

    With `shares`, the probability is proportional to them: the largest ``u ** (1 / share)`` wins
    (Efraimidis and Spirakis, 2006), which equal shares leave as it is without them.
    """
    if len(where) == 0:
        return ranks[:, 0]
    present = (ranks >= 0).any(-1)
    draws = np.stack([np.random.default_rng((seed, epoch, i)).random(ranks.shape[1]) for i in where.tolist()])
    if shares is not None:
        draws = draws ** (1 / shares.double().numpy())
    chosen = torch.where(present, torch.from_numpy(draws), -1.0).argmax(1)
    return ranks[torch.arange(len(ranks)), chosen]


def epoch_order(size: int, seed: int, stage: int, epoch: int) -> Tensor:
    """The order of the training instances in an epoch; it depends on the arguments alone.

    Examples
    --------
    >>> epoch_order(5, seed=0, stage=0, epoch=1).tolist() == epoch_order(5, 0, 0, 1).tolist()
    True
    """
    return torch.from_numpy(np.random.default_rng((seed, stage, epoch)).permutation(size))


def order_of(data: RankedSet, seed: int, stage: int, epoch: int) -> Order:
    """The order of an epoch: the set's own, if it has a method ``order(seed, stage, epoch)``."""
    own = getattr(data, "order", None)
    found: Order = own(seed, stage, epoch) if callable(own) else epoch_order(len(data), seed, stage, epoch)
    return found


def batches(
    data: RankedSet,
    order: Order,
    batch_size: int,
    *,
    first: int = 0,
    rank: int = 0,
    world: int = 1,
    epoch: int = 0,
    workers: int = 0,
) -> Iterator[Batch]:
    """One process's share of the batches of an epoch, from batch `first` on.

    Parameters
    ----------
    data : RankedSet
        The instances.
    order : Tensor or other Order
        Their order.
    batch_size : int
        Instances per batch, over all processes.
    first : int
        The first batch, to resume within an epoch.
    rank, world : int
        Which of how many processes this is.
    epoch : int
        Passed to sets with `set_epoch` or ``tensors_at(indices, epoch)``.
    workers : int
        Loader processes.
    """
    if hasattr(data, "set_epoch"):
        data.set_epoch(epoch)  # for augmentation
    fetch = _Fetch(data, order, batch_size, first, (rank, world), epoch)
    if workers == 0:
        return (fetch[number] for number in range(len(fetch)))
    # Seeds of the loader processes come from the order, which differs per epoch: drawn from the global
    # generator, they would change what dropout draws, and differently in a run resumed within an epoch.
    stamp = (
        order.numpy().tobytes() if isinstance(order, Tensor) else repr(getattr(order, "stamp", 0)).encode()
    )
    seeds = torch.Generator().manual_seed(zlib.crc32(stamp, epoch))
    loader: DataLoader[Batch] = DataLoader(fetch, batch_size=None, num_workers=workers, generator=seeds)
    return iter(loader)


def batch_count(size: int, batch_size: int) -> int:
    """Batches per epoch."""
    return math.ceil(size / batch_size)


class _Fetch(Dataset[Batch]):
    """The batches of an epoch from number `first` on, of which a process takes its share."""

    def __init__(
        self, data: RankedSet, order: Order, size: int, first: int, share: tuple[int, int], epoch: int
    ) -> None:
        self.data, self.order, self.size, self.first, self.epoch = data, order, size, first, epoch
        self.rank, self.world = share

    def __len__(self) -> int:
        return max(0, batch_count(len(self.order), self.size) - self.first)

    def __getitem__(self, number: int) -> Batch:
        start = (self.first + number) * self.size
        whole = self.order[start : start + self.size]
        parts = fetch(self.data, whole[self.rank :: self.world].tolist(), self.epoch)
        return Batch(as_input(parts[0]), parts[1], parts[2] if len(parts) > 2 else None, len(whole))


def fetch(data: RankedSet, indices: list[int], epoch: int = 0) -> tuple[Tensor, ...]:
    """Inputs, ranks and, if any, weights of a batch."""
    if isinstance(data, Arrays):
        return data.tensors(indices, epoch)
    if hasattr(data, "tensors_at"):
        return tuple(data.tensors_at(indices, epoch))
    whole = getattr(data, "tensors", None)
    if callable(whole):  # torch's TensorDataset has a tuple of that name
        return tuple(whole(np.asarray(indices, dtype=np.int64)))
    many = getattr(data, "__getitems__", None)
    items = many(indices) if many else [data[index] for index in indices]
    if not items:  # a process may have no share of the last batch
        empty = data[0]
        return tuple(torch.as_tensor(part)[None][:0] for part in empty)
    return tuple(torch.stack([torch.as_tensor(part) for part in column]) for column in zip(*items))

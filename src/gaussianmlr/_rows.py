"""Rows of tables for training networks: dense or sparse, held out by turns, random generators left alone."""

from __future__ import annotations

import hashlib
import math
import os
import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from gaussianmlr.batches import Arrays, RankedSet, truth_at
from gaussianmlr.model import Inputs
from gaussianmlr.sources import scaled

IntArray = npt.NDArray[np.int64]
_LEAST_HELD_OUT = 10  # fewer rows say nothing about which epoch is best
_SEEDS = ("PL_GLOBAL_SEED", "PL_SEED_WORKERS")  # where Lightning keeps the seed for other processes


class SparseRows:
    """A sparse table as a data set: rows are scaled and made dense when a batch asks for them."""

    def __init__(
        self, matrix: Any, about: Inputs, ranks: IntArray, weights: Any = None, seed: int = 0
    ) -> None:
        self.matrix, self.about, self.seed = matrix, about, seed
        self.ranks = torch.from_numpy(ranks)
        self.weights = None if weights is None else torch.as_tensor(weights)

    def __len__(self) -> int:
        return len(self.ranks)

    def __getitem__(self, index: int) -> tuple[Tensor, ...]:
        return tuple(part[0] for part in self.tensors_at([index]))

    def tensors_at(self, indices: Sequence[int], epoch: int = 0) -> tuple[Tensor, ...]:
        """Some instances: inputs, ranks (of one ranker, drawn for the epoch) and perhaps weights."""
        where = torch.as_tensor(indices, dtype=torch.int64)
        rows = as_rows(self.matrix[where.numpy()], self.about)
        return rows, *truth_at(where, self.ranks, self.weights, self.seed, epoch)

    def fingerprint(self) -> str:
        """A SHA-256 of the contents."""
        digest = hashlib.sha256(repr(self.matrix.shape).encode())
        for part in (self.matrix.data, self.matrix.indices, self.matrix.indptr, self.ranks.numpy()):
            digest.update(np.ascontiguousarray(part).tobytes())
        return digest.hexdigest()


def as_rows(inputs: Any, about: Inputs) -> Tensor:
    """Dense or sparse rows as the network takes them."""
    return scaled(inputs.toarray() if hasattr(inputs, "toarray") else inputs, about)


def as_set(inputs: Any, about: Inputs, ranks: IntArray, weights: Any = None, seed: int = 0) -> RankedSet:
    """Rows and their ranks, ready for batches."""
    if weights is not None:
        weights = np.asarray(weights, dtype=np.float32)
    if hasattr(inputs, "toarray"):
        return SparseRows(inputs, about, ranks, weights, seed)
    return Arrays(as_rows(inputs, about), ranks, weights, seed)


def held_out(rows: int, share: float, turn: int, seed: int) -> tuple[IntArray, IntArray]:
    """Rows to train on, and the share held out at a turn; the next turn holds out the next rows.

    Examples
    --------
    >>> kept, held = held_out(100, 0.25, turn=0, seed=0)
    >>> len(kept), len(held), set(held) & set(held_out(100, 0.25, turn=1, seed=0)[1])
    (75, 25, set())
    >>> len(held_out(30, 0.25, turn=0, seed=0)[1])  # too few to choose anything by
    0
    """
    order = np.random.default_rng(seed).permutation(rows)
    count = round(share * rows)
    if count < _LEAST_HELD_OUT:
        count = 0
    turned = np.roll(order, -turn * count)
    return np.sort(turned[count:]), np.sort(turned[:count])


def batch_for(rows: int, per_epoch: int, least: int, most: int) -> int:
    """The power of two that makes about so many batches of the rows, within limits.

    Examples
    --------
    >>> [batch_for(rows, 30, 32, 512) for rows in (100, 2000, 7000, 100_000)]
    [32, 64, 256, 512]
    """
    power = max(0, round(math.log2(max(rows, 1) / per_epoch)))
    return min(max(1 << power, least), most)


@contextmanager
def generators_kept() -> Iterator[None]:
    """Leave the random generators of the process, and what Lightning writes down of them, as they were."""
    python, legacy, tensors = random.getstate(), np.random.get_state(), torch.get_rng_state()  # noqa: NPY002
    noted = {name: os.environ.get(name) for name in _SEEDS}
    try:
        yield
    finally:
        random.setstate(python)
        np.random.set_state(legacy)  # noqa: NPY002
        torch.set_rng_state(tensors)
        for name, value in noted.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value

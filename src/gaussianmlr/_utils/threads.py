"""How many threads torch uses: one for small work, where waiting for each other costs more than it saves."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from gaussianmlr.errors import DataError

__all__ = ["asked_threads", "threads_for", "threads_in_use"]

# About 50 ms of one core: hundreds of operations per step share the work, and each of them waits for all.
WORK_PER_THREAD = 1e10
_asked: list[int] = []  # of the process: a server computes in another thread than the one that set it


@contextmanager
def asked_threads(count: int | None) -> Iterator[None]:
    """Use this many threads for all work inside, whatever its size; None leaves it to `threads_for`.

    Examples
    --------
    >>> import torch
    >>> before = torch.get_num_threads()
    >>> with asked_threads(3), threads_for(1e6):
    ...     torch.get_num_threads()
    3
    >>> torch.get_num_threads() == before
    True
    """
    if count is None:
        yield
        return
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise DataError(f"threads is {count!r}; expected a whole number from 1 up")
    _asked.append(count)
    try:
        with _set(count):
            yield
    finally:
        _asked.remove(count)


@contextmanager
def threads_for(work: float) -> Iterator[None]:
    """Use as many threads as suit the size of a step, and restore the number at the end.

    That is one per 10 billion floating-point operations of the step, at least one and never more than torch
    is set to (``OMP_NUM_THREADS``, `torch.set_num_threads`, or the number of cores).

    Parameters
    ----------
    work : float
        Floating-point operations of one step: `gaussianmlr.nn.work.work_of` times the batch size, and three
        times that for training, whose backward pass costs twice its forward pass.

    Examples
    --------
    >>> import torch
    >>> with threads_for(1e6):
    ...     torch.get_num_threads()
    1
    """
    count = _asked[-1] if _asked else min(torch.get_num_threads(), max(1, round(work / WORK_PER_THREAD)))
    with _set(count):
        yield


def threads_in_use() -> int:
    """Threads for work that needs no waiting, such as pictures of their own: what was asked for, or torch's.

    Examples
    --------
    >>> with asked_threads(2):
    ...     threads_in_use()
    2
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return _asked[-1] if _asked else min(torch.get_num_threads(), cores)


@contextmanager
def _set(count: int) -> Iterator[None]:
    # OpenMP keeps the number per thread, so that each thread restores its own.
    before = torch.get_num_threads()
    if count == before:
        yield
        return
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)

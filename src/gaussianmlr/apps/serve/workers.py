"""Threads that prepare inputs and write answers, so that long requests do not delay short ones."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, ThreadPoolExecutor
from typing import TypeVar

from gaussianmlr.normal import checking

__all__ = ["Workers"]

T = TypeVar("T")
_END = object()


class Workers:
    """Two small thread pools: one runs short work at once, the other runs long work step by step.

    Each step of long work queues behind the steps of other requests, so all of them advance in turn.
    Cancelling the caller cancels the remaining steps, and ends the running one at its next check (see
    `gaussianmlr.normal.checking`).

    Parameters
    ----------
    short, long : int
        Threads per pool.

    Examples
    --------
    >>> import asyncio
    >>> workers = Workers()
    >>> asyncio.run(workers.run((number**2 for number in range(4)), long=True))
    [0, 1, 4, 9]
    >>> workers.close()
    """

    def __init__(self, short: int = 1, long: int = 2) -> None:
        self._short, self._long = _Pool(short, "short"), _Pool(long, "long")

    async def run(self, steps: Iterator[T], *, long: bool) -> list[T]:
        """Run the steps in order and return their results."""
        cancelled = threading.Event()
        try:
            if not long:
                return await self._short.run(lambda: list(steps), cancelled)
            found = []
            while (one := await self._long.run(lambda: next(steps, _END), cancelled)) is not _END:
                found.append(one)
            return found  # type: ignore[return-value]  # what is not the end is a T
        finally:
            cancelled.set()

    def stuck(self, seconds: float) -> bool:
        """Whether all threads of a pool have been running one step for longer than this."""
        return self._short.stuck(seconds) or self._long.stuck(seconds)

    def close(self) -> None:
        """Finish the running steps and stop the threads."""
        self._short.pool.shutdown()
        self._long.pool.shutdown()


class _Pool:
    def __init__(self, threads: int, name: str) -> None:
        self.threads = threads
        self.pool = ThreadPoolExecutor(threads, name)
        self._began: dict[object, float] = {}

    async def run(self, work: Callable[[], T], cancelled: threading.Event) -> T:
        def check() -> None:
            if cancelled.is_set():
                raise CancelledError

        def timed() -> T:
            key = object()
            self._began[key] = time.monotonic()
            try:
                with checking(check):
                    return work()
            finally:
                del self._began[key]

        return await asyncio.get_running_loop().run_in_executor(self.pool, timed)

    def stuck(self, seconds: float) -> bool:
        limit = time.monotonic() - seconds
        return sum(began < limit for began in list(self._began.values())) >= self.threads

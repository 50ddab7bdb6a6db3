"""One thread runs the model; requests that wait together are read in one batch."""

from __future__ import annotations

import asyncio
import math
import queue
import threading
import time
from concurrent.futures import Future
from typing import NamedTuple

import numpy as np
import torch
from starlette.exceptions import HTTPException
from torch import Tensor

from gaussianmlr._utils.arrays import FloatArray
from gaussianmlr.methods import Reading
from gaussianmlr.model.model import Model

__all__ = ["Batcher"]

_QUICK = 0.002  # seconds that the caller may be held up
_ENDED = "the model's thread has ended; start the server again"


class _Job(NamedTuple):
    inputs: Tensor
    answer: Future[Reading]


class Batcher:
    """Reads inputs with a model; inputs that arrive while it is busy form one batch.

    An idle batcher starts at once, so batches grow only with the load. The caller must limit how many
    inputs wait. Inputs that take less than 2 ms (`measure` finds out how many these are) are read by the
    caller where nothing else is being read: waking a thread would take as long.

    Parameters
    ----------
    model : Model
        The model; no other thread may use it meanwhile.
    batch_size : int
        Maximum number of instances per batch.
    tally : float array [2], optional
        Where instances and batches are counted.

    Attributes
    ----------
    quick : int
        Number of instances that are read by the caller.

    Examples
    --------
    >>> from gaussianmlr.model.model import build
    >>> from gaussianmlr.model.recipe import Recipe
    >>> inputs = {"kind": "table", "channels": 2}
    >>> recipe = Recipe(backbone="mlp")
    >>> model = Model(*build(recipe, 3, inputs), ("sky", "sea", "sun"), recipe, inputs)
    >>> batcher = Batcher(model)
    >>> batcher.submit(torch.zeros(5, 2)).result().scores.shape
    torch.Size([5, 3])
    >>> batcher.close()
    """

    def __init__(self, model: Model, batch_size: int = 64, tally: FloatArray | None = None) -> None:
        self.model, self.batch_size = model, batch_size
        self.tally = np.zeros(2) if tally is None else tally
        self.quick = 0
        self._reading = threading.Lock()
        self._began: float | None = None
        self._waiting: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="model", daemon=True)
        self._thread.start()

    @property
    def alive(self) -> bool:
        """Whether the thread still runs."""
        return self._thread.is_alive()

    def stuck(self, seconds: float) -> bool:
        """Whether it has been reading one batch for longer than this."""
        began = self._began
        return began is not None and time.monotonic() - began > seconds

    async def read(self, inputs: Tensor) -> Reading:
        """The reading of any number of inputs, batch by batch; other requests may come in between.

        Cancelling the caller cancels the batches that have not started.
        """
        if len(inputs) <= self.quick and self.alive and self._reading.acquire(blocking=False):
            try:
                return self._read(inputs)
            finally:
                self._reading.release()
        if len(inputs) <= self.batch_size:
            return await asyncio.wrap_future(self.submit(inputs))
        parts = torch.split(inputs, self.batch_size)
        return Reading.join([await asyncio.wrap_future(self.submit(part)) for part in parts])

    def measure(self, one: Tensor) -> None:
        """Find out how many instances like this one [1, ...] are `quick`."""
        few = self._seconds(one)
        if few >= _QUICK:
            return
        size = max(2, self.batch_size)
        each = (self._seconds(torch.cat([one] * size)) - few) / (size - 1)
        self.quick = min(4 * self.batch_size, int(1 + (_QUICK - few) / max(each, 1e-9)))

    def _seconds(self, inputs: Tensor) -> float:
        """Processor time, the shortest of three or one that is long: others may keep the machine busy."""
        shortest = math.inf
        for _ in range(3):
            began = time.thread_time()
            with self._reading:
                self.model.read(inputs, self.batch_size)
            shortest = min(shortest, time.thread_time() - began)
            if shortest > 100 * _QUICK:
                break
        return shortest

    def submit(self, inputs: Tensor) -> Future[Reading]:
        """Queue inputs [N, ...] for reading; cancel the future to remove them."""
        if not self.alive:
            raise HTTPException(503, _ENDED)
        answer: Future[Reading] = Future()
        self._waiting.put(_Job(inputs, answer))
        return answer

    def close(self) -> None:
        """Answer the waiting inputs, then stop."""
        self._waiting.put(None)
        self._thread.join()

    def _work(self) -> None:
        kept: _Job | None = None
        while True:
            job = kept or self._waiting.get()
            kept = None
            if job is None:
                return
            jobs, count, ending = [job], len(job.inputs), False
            while count < self.batch_size and not ending:
                try:
                    another = self._waiting.get_nowait()
                except queue.Empty:
                    break
                if another is None:
                    ending = True
                elif count + len(another.inputs) > self.batch_size:
                    kept = another
                    break
                else:
                    jobs.append(another)
                    count += len(another.inputs)
            self._answer([one for one in jobs if one.answer.set_running_or_notify_cancel()])
            if ending:
                return

    def _read(self, inputs: Tensor) -> Reading:
        reading = self.model.read(inputs, self.batch_size)
        self.tally += len(inputs), -(-len(inputs) // self.batch_size)
        return reading

    def _answer(self, jobs: list[_Job]) -> None:
        if not jobs:
            return
        self._began = time.monotonic()
        try:
            whole = torch.cat([job.inputs for job in jobs])
            with self._reading:
                reading = self._read(whole)
        except Exception as error:  # only the request at fault fails
            if len(jobs) == 1:
                jobs[0].answer.set_exception(error)
            else:
                for job in jobs:
                    self._answer([job])
            return
        except BaseException:  # the thread ends
            for job in jobs:
                job.answer.set_exception(HTTPException(503, _ENDED))
            raise
        finally:
            self._began = None
        start = 0
        for job in jobs:
            part = slice(start, start + len(job.inputs))
            job.answer.set_result(reading.rows(part))  # type: ignore[arg-type]  # a slice will do
            start += len(job.inputs)

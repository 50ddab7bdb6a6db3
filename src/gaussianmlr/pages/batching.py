"""Requests that wait together go through the network together: one thread has the model."""

from __future__ import annotations

import queue
import threading
from concurrent.futures import Future
from typing import NamedTuple

import torch
from torch import Tensor

from gaussianmlr.methods import Reading
from gaussianmlr.model import Model

__all__ = ["Batcher"]


class _Job(NamedTuple):
    inputs: Tensor
    answer: Future[Reading]


class Batcher:
    """Reads inputs with a model, those that wait while it is busy in one batch.

    Nothing waits for company: an input that comes while nothing is under way is read at once, so batches
    grow with the load and with nothing else. How many may wait is for the caller to bound.

    Parameters
    ----------
    model : Model
        What reads; no other thread may use it meanwhile.
    batch_size : int
        Instances that go through the network at once, at most.

    Attributes
    ----------
    batches, instances : int
        How much went through the network so far.

    Examples
    --------
    >>> from gaussianmlr.model import build
    >>> from gaussianmlr.recipe import Recipe
    >>> inputs = {"kind": "table", "channels": 2}
    >>> recipe = Recipe(backbone="mlp")
    >>> model = Model(*build(recipe, 3, inputs), ("sky", "sea", "sun"), recipe, inputs)
    >>> batcher = Batcher(model)
    >>> batcher.submit(torch.zeros(5, 2)).result().scores.shape
    torch.Size([5, 3])
    >>> batcher.close()
    """

    def __init__(self, model: Model, batch_size: int = 64) -> None:
        self.model, self.batch_size = model, batch_size
        self.batches = self.instances = 0
        self._waiting: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="model", daemon=True)
        self._thread.start()

    @property
    def alive(self) -> bool:
        """Whether it still answers."""
        return self._thread.is_alive()

    def submit(self, inputs: Tensor) -> Future[Reading]:
        """Ask for the reading of inputs [N, ...]; cancel the future to take them back."""
        answer: Future[Reading] = Future()
        self._waiting.put(_Job(inputs, answer))
        return answer

    def close(self) -> None:
        """Answer what waits, then end."""
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

    def _answer(self, jobs: list[_Job]) -> None:
        if not jobs:
            return
        try:
            whole = torch.cat([job.inputs for job in jobs])
            reading = self.model.read(whole, self.batch_size)
            self.batches += -(-len(whole) // self.batch_size)
            self.instances += len(whole)
        except Exception as error:  # whoever asked is told, and the others are answered
            if len(jobs) == 1:
                jobs[0].answer.set_exception(error)
            else:
                for job in jobs:
                    self._answer([job])
            return
        start = 0
        for job in jobs:
            job.answer.set_result(_rows(reading, start, start + len(job.inputs)))
            start += len(job.inputs)


def _rows(reading: Reading, start: int, end: int) -> Reading:
    parts = (None if part is None else part[start:end] for part in reading)
    return Reading(*parts)  # type: ignore[arg-type]  # scores and p_relevant are never None

"""Small requests that arrive together are read by one call of the model, and written together."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

import torch
from torch import Tensor

from gaussianmlr.apps.serve.answers import instances, opening
from gaussianmlr.apps.serve.batches import Batcher

__all__ = ["Rounds", "Wanted"]


class Wanted(NamedTuple):
    """What an answer holds."""

    readings: tuple[str, ...]
    confidence: float | None
    top: int | None


class _Asked(NamedTuple):
    inputs: Tensor
    names: Sequence[str] | None
    wanted: Wanted
    answer: asyncio.Future[bytes]


class Rounds:
    """Answers requests of few instances where they arrive, without the threads of larger ones.

    Requests that want the same and have arrived by the time that the first of them would be read share a call
    of the model, up to the number of instances that it reads in 2 ms (`Batcher.quick`).

    Parameters
    ----------
    batcher : Batcher
        Reads inputs.
    """

    def __init__(self, batcher: Batcher) -> None:
        self.batcher = batcher
        self._waiting: deque[_Asked] = deque()
        self._tasks: set[asyncio.Task[None]] = set()

    async def answer(self, inputs: Tensor, names: Sequence[str] | None, wanted: Wanted) -> bytes:
        """The answer as JSON."""
        loop = asyncio.get_running_loop()
        asked = _Asked(inputs, names, wanted, loop.create_future())
        if not self._waiting:
            loop.call_soon(self._round)
        self._waiting.append(asked)
        return await asked.answer

    def _round(self) -> None:
        chosen = [self._waiting.popleft()]
        count = len(chosen[0].inputs)
        while self._waiting and self._waiting[0].wanted == chosen[0].wanted:
            count += len(self._waiting[0].inputs)
            if count > self.batcher.quick:
                break
            chosen.append(self._waiting.popleft())
        if self._waiting:
            asyncio.get_running_loop().call_soon(self._round)
        task = asyncio.ensure_future(self._serve(chosen))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, chosen: list[_Asked]) -> None:
        chosen = [one for one in chosen if not one.answer.done()]  # else the client has left
        if not chosen:
            return
        try:
            answers = await self._read(chosen)
        except Exception as error:
            if len(chosen) == 1:
                chosen[0].answer.set_exception(error)
                return
            for one in chosen:  # only the request at fault fails
                await self._serve([one])
            return
        for one, answer in zip(chosen, answers):
            if not one.answer.done():
                one.answer.set_result(answer)

    async def _read(self, chosen: list[_Asked]) -> list[bytes]:
        inputs = torch.cat([one.inputs for one in chosen]) if len(chosen) > 1 else chosen[0].inputs
        names = chain.from_iterable(one.names or range(len(one.inputs)) for one in chosen)
        reading = await self.batcher.read(inputs)
        found, wanted = self.batcher.model.prediction_of(reading, names), chosen[0].wanted
        texts = instances(found, wanted.readings, wanted.confidence, None, wanted.top)
        head, place, answers = opening(found, wanted.top), 0, []
        for one in chosen:
            answers.append(b"%b%b]}" % (head, b",".join(texts[place : place + len(one.inputs)])))
            place += len(one.inputs)
        return answers

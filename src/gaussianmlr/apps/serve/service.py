"""A model that answers requests: their inputs, one thread of the model, threads for all other work."""

from __future__ import annotations

import binascii
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import torch
from fastapi import Response
from torch import Tensor

from gaussianmlr.apps.serve.answers import STEP, check_pairs, cost, pieces
from gaussianmlr.apps.serve.batches import Batcher
from gaussianmlr.apps.serve.rounds import Rounds, Wanted
from gaussianmlr.apps.serve.workers import Workers
from gaussianmlr.apps.web.counts import RequestCounts
from gaussianmlr.data import Preprocess
from gaussianmlr.data.inputs import RowReader, text_column
from gaussianmlr.data.readers.images import decode_image
from gaussianmlr.errors import DataError, shorten
from gaussianmlr.inference.predict import check_guarantee
from gaussianmlr.model.model import Model

__all__ = ["Limits", "Service", "read_picture", "takes_of"]

_SHORT = 200_000  # bytes of pictures, or cells, that count as short work
# Work of a millisecond or two is done where requests arrive: waking a thread costs a third of that.
_QUICK_CELLS = 3_000
_QUICK_ANSWER = 4_000  # as `cost` counts


@dataclass(frozen=True)
class Limits:
    """Limits of a server.

    Attributes
    ----------
    requests : int
        Concurrent requests; more are answered 503.
    count : int
        Instances per request.
    body : int
        Bytes per request.
    pixels : int
        Pixels of a picture, before it is resized.
    seconds : float
        Maximum time for a request to arrive, and to be answered.
    batch_size : int
        Instances per batch of the network.
    """

    requests: int = 64
    count: int = 256
    body: int = 16 << 20
    pixels: int = 32_000_000
    seconds: float = 30.0
    batch_size: int = 64

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if not value > 0:
                raise DataError(f"{name} is {value}; expected a number above 0")


class Service:
    """The model's thread, and the threads that prepare inputs and write answers."""

    def __init__(self, model: Model, limits: Limits, counts: RequestCounts) -> None:
        self.model, self.limits, self.counts = model, limits, counts
        self.has_sigma = False  # known once the model has answered
        self._batcher: Batcher | None = None
        self._reader = RowReader(model.inputs) if model.inputs["kind"] == "table" else None
        self._workers = Workers()

    def __enter__(self) -> None:
        self._batcher = Batcher(self.model, self.limits.batch_size, self.counts.model)
        self._rounds = Rounds(self._batcher)
        one = torch.zeros(1, *_shape(self.model))
        reading = self._batcher.submit(one).result()
        # Pictures take a thread anyway, to be decoded; and who knows how long another class of models takes.
        if self._reader is not None and type(self.model) is Model:
            self._batcher.measure(one)
        self.has_sigma = reading.sigma is not None
        list(pieces(self.model.prediction_of(reading), (), None))  # loads what is imported on first use

    def __exit__(self, *_: object) -> None:
        assert self._batcher is not None
        self._batcher.close()
        self._workers.close()

    def broken(self) -> str | None:
        """Why requests cannot be answered now, or None."""
        if self._batcher is None or not self._batcher.alive:
            return "the model's thread has ended"
        if self._batcher.stuck(self.limits.seconds) or self._workers.stuck(self.limits.seconds):
            return f"the same work has been under way for more than {self.limits.seconds:g} s"
        return None

    async def answer(
        self,
        given: Sequence[Any],
        names: Sequence[str] | None,
        readings: Sequence[str],
        confidence: float | None,
        guarantee: float | None,
        top: int | None = None,
    ) -> Response:
        """Prepare inputs, read them with the model, write the answer."""
        assert self._batcher is not None
        if names is not None and len(names) != len(given):
            raise DataError(f"expected a name for each of {len(given)} instances, got {len(names)}")
        width = len(self.model.labels)
        check_pairs(len(given), width, readings, confidence, top)
        if guarantee is not None:
            check_guarantee(self.model, guarantee)
            check_pairs(len(given), width, ["p_above"], None)  # it holds as many statements
        spent, size = len(given) * cost(width, readings, confidence or guarantee, top), _size(given)
        small = size <= _QUICK_CELLS and spent <= _QUICK_ANSWER and guarantee is None
        if small and len(given) <= self._batcher.quick:
            wanted = Wanted(tuple(readings), confidence, top)
            text = await self._rounds.answer(next(self._prepared(given)), names, wanted)
            return Response(text, media_type="application/json")
        ready = await self._workers.run(self._prepared(given), long=size > _SHORT)
        inputs = torch.cat(ready) if len(ready) > 1 else ready[0]
        if inputs.ndim > 2:  # pictures
            inputs = _preprocess_of(self.model).normalise(inputs)
        found = self.model.prediction_of(await self._batcher.read(inputs), names or ())
        parts = pieces(found, readings, confidence, guarantee, top)
        if spent > _QUICK_ANSWER:
            parts = iter(await self._workers.run(parts, long=spent > STEP))
        return Response(b"".join(parts), media_type="application/json")

    def check_count(self, count: int, what: str) -> None:
        """Refuse a request of too many instances, or of none."""
        if not 1 <= count <= self.limits.count:
            raise DataError(f"{count:,} {what}; expected 1 to {self.limits.count:,} in a request")

    def inputs(self, given: Mapping[str, list[Any] | None]) -> Sequence[Any]:
        """The inputs of a request by field, of the kind that the model takes."""
        said = [name for name, value in given.items() if value is not None]
        takes = takes_of(self.model)
        found = given[said[0]] if len(said) == 1 and said[0] in takes else None
        if found is None:
            expected = " or ".join(f"'{name}'" for name in takes)
            raise DataError(f"the model takes {self.model.inputs['kind']} inputs: expected {expected} alone")
        self.check_count(len(found), said[0])
        return [[text] for text in found] if said[0] == "texts" else found

    def _prepared(self, given: Sequence[Any]) -> Iterator[Tensor]:
        """Tensors for the model: all rows at once, pictures one by one."""
        if self._reader is not None and not isinstance(given[0], tuple):
            yield self._reader.read(given)
            return
        preprocess = _preprocess_of(self.model)
        for place, one in enumerate(given):
            name, data = (f"image {place}", _from_base64(one, place)) if isinstance(one, str) else one
            yield _unit(data, preprocess, name, self.limits.pixels)[None]


def takes_of(model: Model) -> list[str]:
    """The fields of a request that a model takes, the shortest one first."""
    if model.inputs["kind"] != "table":
        return ["images"]
    return ["rows"] if text_column(model.inputs) is None else ["texts", "rows"]


def read_picture(data: bytes, model: Model, name: str, max_pixels: int) -> Tensor:
    """The bytes of an image file as a tensor for a model."""
    preprocess = _preprocess_of(model)
    return preprocess.normalise(_unit(data, preprocess, name, max_pixels))


def _preprocess_of(model: Model) -> Preprocess:
    if model.inputs["kind"] != "image" or "preprocess" not in model.inputs:
        raise DataError(f"the model takes {model.inputs['kind']} inputs; expected 'rows'")
    return Preprocess.from_dict(model.inputs["preprocess"])


def _unit(data: bytes, preprocess: Preprocess, name: str, max_pixels: int) -> Tensor:
    """A picture on the scale 0..1; those of a request are normalised together."""
    mode: Literal["L", "RGB"] = "L" if preprocess.channels == 1 else "RGB"
    return preprocess.unit(decode_image(data, mode, name=name[:100], max_pixels=max_pixels))


def _size(given: Sequence[Any]) -> int:
    """Bytes of pictures, or numbers of rows."""
    return sum(
        len(one[1]) if isinstance(one, tuple) else len(one) if hasattr(one, "__len__") else 1 for one in given
    )


def _from_base64(text: str, place: int) -> bytes:
    try:
        return binascii.a2b_base64(text, strict_mode=True)
    except (binascii.Error, ValueError):
        raise DataError(f"image {place} is {shorten(text, 40)}; expected base64 of an image file") from None


def _shape(model: Model) -> list[int]:
    if model.inputs["kind"] == "table":
        return [model.inputs["channels"]]
    return [model.inputs["channels"], *model.inputs.get("size", [224, 224])]

"""`gmlr serve`: a model behind an HTTP JSON API."""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import Annotated, Any, Literal, TypeVar

import numpy as np
import torch
from fastapi import FastAPI, File, Form, HTTPException, Response, UploadFile
from fastapi.responses import JSONResponse, PlainTextResponse
from fastapi.routing import APIRoute
from pydantic import BaseModel, ConfigDict, Field
from starlette.middleware import Middleware
from torch import Tensor

from gaussianmlr._version import __version__
from gaussianmlr.data import Preprocess
from gaussianmlr.data.images import decode_image
from gaussianmlr.errors import DataError, shorten
from gaussianmlr.methods import Reading
from gaussianmlr.model import Model
from gaussianmlr.pages.base import make_app
from gaussianmlr.pages.batching import Batcher
from gaussianmlr.pages.desk import Desk, Tally, exposition
from gaussianmlr.prediction import Prediction
from gaussianmlr.sources import scaled
from gaussianmlr.streams import number_of

__all__ = ["Limits", "read_picture", "read_rows", "serving_app", "written"]

T = TypeVar("T")
More = Literal["buckets", "p_first", "expected_rank", "p_rank", "p_above", "partial_order"]
Confidence = Annotated[float | None, Field(gt=0.5, lt=1, description="Says what is sure of each order.")]
_CELLS = 4_000_000  # numbers in an answer
_FEW = 1_000  # numbers of a request that needs no other thread than the model's
_PREPARING = 2  # pictures that are unpacked at the same time: each may take max_pixels * 4 bytes


@dataclass(frozen=True)
class Limits:
    """What a server takes on.

    Attributes
    ----------
    requests : int
        Requests under way at a time; more are answered 503.
    count : int
        Instances in a request.
    body : int
        Bytes in a request.
    pixels : int
        Pixels of a picture, before it is made smaller.
    seconds : float
        How long a request may take to arrive, and how long to be answered.
    batch_size : int
        Instances that go through the network at once.
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


class Asked(BaseModel):
    """What is asked of a model."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    rows: list[Any] | None = Field(
        None, description="For models of tables: lists of numbers in the order of the columns, or objects."
    )
    images: list[str] | None = Field(None, description="For models of images: image files as base64.")
    names: list[str] | None = Field(None, description="What to call the instances.")
    readings: list[More] = Field([], description="What to say beside order, ranks and probabilities.")
    confidence: Confidence = None


def serving_app(model: Model, limits: Limits | None = None, token: str | None = None) -> FastAPI:
    """An application that answers for a model; run it by `base.run_server`.

    Parameters
    ----------
    model : Model
        What predicts.
    limits : Limits, optional
        What the server takes on.
    token : str, optional
        What requests must know.

    Examples
    --------
    >>> from gaussianmlr.model import build
    >>> from gaussianmlr.recipe import Recipe
    >>> inputs = {"kind": "table", "channels": 2}
    >>> recipe = Recipe(backbone="mlp")
    >>> model = Model(*build(recipe, 3, inputs), ("sky", "sea", "sun"), recipe, inputs)
    >>> sorted(serving_app(model).openapi()["paths"])
    ['/', '/health', '/info', '/metrics', '/predict', '/predict/files', '/ready']
    """
    bounds = limits or Limits()
    tally, service = Tally(), _Service(model, bounds)

    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        with service:
            yield

    app = make_app(
        "gaussianmlr",
        description=f"Multi-label ranking by {model!r}.",
        token=token,
        max_body=bounds.body,
        body_seconds=bounds.seconds,
        open_paths=("/health", "/ready"),
        inner=[Middleware(Desk, tally=tally, places=bounds.requests, below="/predict")],
        lifespan=lifespan,
    )

    @app.get("/health", summary="Whether the process lives")
    async def health() -> dict[str, str]:
        return {"status": "alive"}

    @app.get("/ready", summary="Whether requests would be answered now")
    async def ready() -> Response:
        if not service.alive:
            return JSONResponse({"status": "the model's thread has ended"}, 503)
        if tally.under_way >= bounds.requests:
            return JSONResponse({"status": "busy"}, 503, {"retry-after": "1"})
        return JSONResponse({"status": "ready"})

    @app.get("/", summary="What can be asked here")
    async def root() -> dict[str, str]:
        found = [one for one in app.routes if isinstance(one, APIRoute)]
        return {f"{' '.join(sorted(one.methods or ()))} {one.path}": one.summary or "" for one in found}

    @app.get("/info", summary="What the model takes and knows, and the limits")
    async def info() -> dict[str, Any]:
        return _about(model) | {"limits": asdict(bounds)}

    @app.get("/metrics", summary="Counters for Prometheus", response_class=PlainTextResponse)
    async def metrics() -> Response:
        return PlainTextResponse(
            exposition(tally, service.counters()), media_type="text/plain; version=0.0.4"
        )

    @app.post("/predict", summary="Predict rows, or images as base64", responses=_ERRORS)
    async def predict(asked: Asked) -> Response:
        return await service.answer(
            lambda: service.tensors(asked), asked.names, asked.readings, asked.confidence
        )

    @app.post("/predict/files", summary="Predict image files of a form", responses=_ERRORS)
    async def predict_files(
        images: Annotated[list[UploadFile], File(description="Image files.")],
        readings: Annotated[list[More] | None, Form()] = None,
        confidence: Annotated[Confidence, Form()] = None,
    ) -> Response:
        service.check_count(len(images), "images")
        named = [(file.filename or str(place), await file.read()) for place, file in enumerate(images)]
        names = [name for name, _ in named]
        return await service.answer(lambda: service.pictures(named), names, readings or [], confidence)

    return app


class Problem(BaseModel):
    """What went wrong."""

    error: str


_ERRORS: dict[int | str, dict[str, Any]] = {
    code: {"model": Problem, "description": text}
    for code, text in {
        400: "Something in the request cannot be used; `error` says what.",
        401: "The token is missing or wrong.",
        408: "The body came too slowly.",
        413: "The body is too long.",
        422: "The request has not the form that is expected.",
        503: "Too many requests are under way; try again after `Retry-After` seconds.",
    }.items()
}


class _Service:
    """The model's thread and two that prepare inputs and write answers."""

    def __init__(self, model: Model, limits: Limits) -> None:
        self.model, self.limits = model, limits
        self._batcher: Batcher | None = None
        self._helpers = ThreadPoolExecutor(_PREPARING, "preparing")

    def __enter__(self) -> None:
        self._batcher = Batcher(self.model, self.limits.batch_size)
        shape = _shape(self.model)
        reading = self._batcher.submit(torch.zeros(1, *shape)).result()
        self._written(reading, None, (), None)  # what is loaded on first use is there

    def __exit__(self, *_: object) -> None:
        assert self._batcher is not None
        self._batcher.close()
        self._helpers.shutdown()

    @property
    def alive(self) -> bool:
        return self._batcher is not None and self._batcher.alive

    def counters(self) -> list[tuple[str, str, str, float]]:
        assert self._batcher is not None
        return [
            (
                "gmlr_instances_total",
                "counter",
                "Instances that went through the model.",
                self._batcher.instances,
            ),
            ("gmlr_batches_total", "counter", "Batches they went in.", self._batcher.batches),
            ("process_cpu_seconds_total", "counter", "Processor time of the server.", time.process_time()),
        ]

    async def answer(
        self,
        prepare: Callable[[], Tensor],
        names: Sequence[str] | None,
        readings: Sequence[str],
        confidence: float | None,
        small: bool = False,
    ) -> Response:
        assert self._batcher is not None
        try:
            async with asyncio.timeout(self.limits.seconds):
                inputs = prepare() if small else await self._aside(prepare)
                if names is not None and len(names) != len(inputs):
                    raise DataError(f"expected a name for each of {len(inputs)} instances, got {len(names)}")
                reading = await asyncio.wrap_future(self._batcher.submit(inputs))
                more = (reading, names, readings, confidence)
                return self._written(*more) if small else await self._aside(lambda: self._written(*more))
        except TimeoutError:
            message = f"no answer within {self.limits.seconds:g} s; try again, or ask for less at once"
            raise HTTPException(503, message, {"retry-after": "1"}) from None

    async def _aside(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._helpers, work)

    def _written(
        self, reading: Reading, names: Sequence[str] | None, readings: Sequence[str], confidence: float | None
    ) -> Response:
        found = Prediction.from_reading(
            reading, self.model.labels, method=self.model.method.name, names=names or ()
        )
        return JSONResponse(written(found, readings, confidence))

    def check_count(self, count: int, what: str) -> None:
        if not 1 <= count <= self.limits.count:
            raise DataError(f"{count:,} {what}; expected 1 to {self.limits.count:,} in a request")

    def tensors(self, asked: Asked) -> Tensor:
        """The inputs of a request as the model takes them."""
        table = self.model.inputs["kind"] == "table"
        wanted, given, other = ("rows", asked.rows, asked.images)
        if not table:
            wanted, given, other = ("images", asked.images, asked.rows)
        if given is None or other is not None:
            raise DataError(f"the model takes {self.model.inputs['kind']} inputs: expected '{wanted}' alone")
        self.check_count(len(given), wanted)
        if table:
            return read_rows(given, self.model)
        return self.pictures(
            [(f"image {place}", _from_base64(text, place)) for place, text in enumerate(given)]
        )

    def pictures(self, named: Sequence[tuple[str, bytes]]) -> Tensor:
        """Image files as the model takes them."""
        end = time.monotonic() + self.limits.seconds
        found = []
        for name, data in named:
            if time.monotonic() > end:  # nobody waits any more, and others do
                raise TimeoutError
            found.append(read_picture(data, self.model, name, self.limits.pixels))
        return torch.stack(found)


def read_rows(rows: Sequence[Any], model: Model) -> Tensor:
    """Rows of JSON, lists or objects, as a model takes them.

    Raises
    ------
    DataError
        With the row, for a column that is missing or holds no finite number.
    """
    columns = model.inputs.get("columns") or [str(number) for number in range(model.inputs["channels"])]
    numbers = []
    for place, row in enumerate(rows):
        if isinstance(row, list):
            if len(row) != len(columns):
                raise DataError(f"row {place} has {len(row):,} numbers; expected {len(columns):,}")
            row = dict(zip(columns, row))
        elif not isinstance(row, dict):
            raise DataError(f"row {place} is {shorten(row)}; expected a list of numbers, or an object")
        try:
            numbers.append([number_of(row, column) for column in columns])
        except DataError as error:
            raise DataError(f"row {place}: {error}") from None
    with np.errstate(over="ignore"):
        found = scaled(numbers, model.inputs)
    large = (~found.isfinite()).nonzero().tolist()
    if large:
        place, column = large[0]
        value = numbers[place][column]
        raise DataError(f"row {place}: {value} in column {columns[column]!r} is too large")
    return found


def read_picture(data: bytes, model: Model, name: str, max_pixels: int) -> Tensor:
    """The bytes of an image file as a model takes them."""
    if model.inputs["kind"] != "image" or "preprocess" not in model.inputs:
        raise DataError(f"the model takes {model.inputs['kind']} inputs; expected 'rows'")
    preprocess = Preprocess.from_dict(model.inputs["preprocess"])
    mode: Literal["L", "RGB"] = "L" if preprocess.channels == 1 else "RGB"
    return preprocess(decode_image(data, mode, name=name[:100], max_pixels=max_pixels))


def written(found: Prediction, readings: Sequence[str], confidence: float | None) -> dict[str, Any]:
    """A prediction as an answer: `Prediction.to_dict`, and the readings that are no column.

    Examples
    --------
    >>> import numpy as np
    >>> found = Prediction(np.array([[2.0, 3.0]]), np.array([[0.9, 0.95]]), ("a", "b"))
    >>> written(found, ["buckets"], None)["instances"][0]["buckets"]
    [['b'], ['a']]
    """
    count, width = found.scores.shape
    pairs = count * width**2
    if pairs > _CELLS and not {"p_rank", "p_above", "partial_order"}.isdisjoint(readings):
        raise DataError(
            f"{count:,} instances of {width:,} labels have {pairs:,} pairs; expected at most {_CELLS:,}"
        )
    if "partial_order" in readings and confidence is None:
        raise DataError("partial_order needs a confidence, such as 0.9")
    columns = [name for name in ("p_first", "expected_rank") if name in readings]
    whole = found.to_dict(*columns, confidence=confidence)
    more: dict[str, Any] = {"buckets": found.lists} if "buckets" in readings else {}
    more |= {name: getattr(found, name).tolist() for name in ("p_rank", "p_above") if name in readings}
    if "partial_order" in readings and confidence is not None:
        more["partial_order"] = found.partial_order(confidence).tolist()
    for place, instance in enumerate(whole["instances"]):
        instance |= {name: values[place] for name, values in more.items()}
    return whole


def _from_base64(text: str, place: int) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise DataError(f"image {place} is {shorten(text, 40)}; expected base64 of an image file") from None


def _shape(model: Model) -> list[int]:
    if model.inputs["kind"] == "table":
        return [model.inputs["channels"]]
    return [model.inputs["channels"], *model.inputs.get("size", [224, 224])]


def _about(model: Model) -> dict[str, Any]:
    return {
        "gaussianmlr": __version__,
        "method": model.method.name,
        "supervision": model.method.supervision,
        "backbone": model.recipe.backbone,
        "labels": list(model.labels),
        "inputs": model.inputs,
        "calibration": None if model.calibration is None else vars(model.calibration),
        "metrics": model.about.get("metrics", {}),
    }

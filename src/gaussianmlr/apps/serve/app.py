"""`gmlr serve`: a model behind an HTTP JSON API, and a page to try it."""

from __future__ import annotations

import base64
import binascii
import contextlib
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import torch
from fastapi import FastAPI, File, Form, Request, Response, UploadFile
from fastapi.responses import PlainTextResponse
from fastapi.routing import APIRoute
from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.registry import Collector
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor

from gaussianmlr._version import __version__
from gaussianmlr.apps.serve.batches import Batcher
from gaussianmlr.apps.serve.workers import Workers
from gaussianmlr.apps.web.answers import Json, encoded, finite
from gaussianmlr.apps.web.limits import RequestCounts, exposition
from gaussianmlr.apps.web.server import make_app, page
from gaussianmlr.data import Preprocess
from gaussianmlr.data.columns import Column
from gaussianmlr.data.inputs import columns_of, encoding_of, read_rows
from gaussianmlr.data.readers.images import decode_image
from gaussianmlr.errors import DataError, shorten
from gaussianmlr.inference.predict import check_guarantee
from gaussianmlr.methods import Reading
from gaussianmlr.model.model import Model
from gaussianmlr.model.prediction import Prediction

__all__ = ["Limits", "pieces", "read_picture", "serving_app"]

More = Literal["buckets", "p_first", "expected_rank", "p_rank", "p_above", "partial_order"]
Confidence = Annotated[
    float | None, Field(gt=0.5, lt=1, description="Adds the part of each order that is certain.")
]
Guarantee = Annotated[
    float | None,
    Field(gt=0, le=0.5, description="Adds what is guaranteed at this level alpha, for calibrated models."),
]
_STATIC = Path(__file__).parent / "static"
_CELLS = 4_000_000  # numbers per answer
_STEP = 50_000  # cost of one step, about 50 ms; see `_cost`
_EXAMPLES = {"number": 1.5, "boolean": True, "category": "", "date": "2024-12-31"}
_SHORT = 200_000  # bytes of pictures, or numbers, that count as short work
_MOST_DESCRIBED = 500  # columns in the schema
_MATRICES = ("p_rank", "p_above", "partial_order")


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


class Asked(BaseModel):
    """A prediction request."""

    model_config = ConfigDict(extra="forbid", strict=True, hide_input_in_errors=True)

    rows: list[Any] | None = Field(
        None,
        description="For models of tables: lists of cells in the order of the columns, or objects. "
        "A cell is a number, a text (of a category or a date), true, false, or null for a gap.",
    )
    images: list[str] | None = Field(None, description="For models of images: image files as base64.")
    names: list[str] | None = Field(None, description="Names of the instances.")
    readings: list[More] = Field([], description="Readings in addition to order, ranks and probabilities.")
    confidence: Confidence = None
    guarantee: Guarantee = None


def serving_app(model: Model, limits: Limits | None = None, token: str | None = None) -> FastAPI:
    """An application that serves a model; run it with `web.server.run_server`.

    Parameters
    ----------
    model : Model
        The model.
    limits : Limits, optional
        Limits of the server.
    token : str, optional
        Token that requests must send.

    Examples
    --------
    >>> from gaussianmlr.model.model import build
    >>> from gaussianmlr.model.recipe import Recipe
    >>> inputs = {"kind": "table", "channels": 2}
    >>> recipe = Recipe(backbone="mlp")
    >>> model = Model(*build(recipe, 3, inputs), ("sky", "sea", "sun"), recipe, inputs)
    >>> sorted(serving_app(model).openapi()["paths"])
    ['/', '/health', '/info', '/metrics', '/predict', '/predict/files', '/ready']
    """
    bounds = limits or Limits()
    counts, service = RequestCounts(), _Service(model, bounds)

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
        places=bounds.requests,
        below="/predict",
        seconds=bounds.seconds,
        counts=counts,
        broken=service.broken,
        lifespan=lifespan,
        static=_STATIC,
    )
    in_browsers: dict[int | str, dict[str, Any]] = {200: {"content": {"text/html": {}}}}

    @app.get("/", summary="The routes of this server; in a browser, a page to try it", responses=in_browsers)
    async def root(request: Request) -> Response:
        if "text/html" in request.headers.get("accept", ""):
            return page(_STATIC / "try.html")
        found = [one for one in app.routes if isinstance(one, APIRoute) and one.include_in_schema]
        return Json({f"{' '.join(sorted(one.methods or ()))} {one.path}": one.summary or "" for one in found})

    @app.get("/info", summary="Inputs, labels and readings of the model, and the limits")
    async def info() -> dict[str, Any]:
        return _about(model) | {"readings": service.readings, "limits": finite(asdict(bounds))}

    @app.get("/metrics", summary="Counters for Prometheus", response_class=PlainTextResponse)
    async def metrics() -> Response:
        return PlainTextResponse(exposition(counts, service), media_type=CONTENT_TYPE_PLAIN_0_0_4)

    @app.post("/predict", summary="Predict rows, or images as base64")
    async def predict(asked: Asked) -> Response:
        return await service.answer(
            service.inputs(asked), asked.names, asked.readings, asked.confidence, asked.guarantee
        )

    @app.post("/predict/files", summary="Predict image files of a form")
    async def predict_files(
        images: Annotated[list[UploadFile], File(description="Image files.")],
        readings: Annotated[list[More] | None, Form()] = None,
        confidence: Annotated[Confidence, Form()] = None,
        guarantee: Annotated[Guarantee, Form()] = None,
    ) -> Response:
        service.check_count(len(images), "images")
        named = [(file.filename or str(place), await file.read()) for place, file in enumerate(images)]
        names = [name for name, _ in named]
        return await service.answer(named, names, readings or [], confidence, guarantee)

    _describe_rows(app, model)
    return app


def _describe_rows(app: FastAPI, model: Model) -> None:
    """Describe the columns of a table in the OpenAPI schema."""
    if model.inputs["kind"] != "table":
        return
    plain = app.openapi
    names = columns_of(model.inputs)[:_MOST_DESCRIBED]
    held = encoding_of(model.inputs) or (Column(),) * len(names)
    cells = {name: _cell_schema(column) for name, column in zip(names, held)}
    as_object = {"type": "object", "properties": cells, "required": list(cells)}
    example = {name: _EXAMPLES[column.kind] for name, column in zip(names, held)}
    example |= {name: column.categories[0] for name, column in zip(names, held) if column.categories}
    as_list = {"type": "array", "items": {"type": ["number", "string", "boolean", "null"]}}

    def described() -> dict[str, Any]:
        found = plain()
        rows = found["components"]["schemas"]["Asked"]["properties"]["rows"]
        rows["anyOf"][0]["items"] = {"anyOf": [as_list, as_object]}
        if len(columns_of(model.inputs)) == len(names):
            found["components"]["schemas"]["Asked"]["example"] = {"rows": [example]}
        return found

    app.openapi = described  # type: ignore[method-assign]


def _cell_schema(column: Column) -> dict[str, Any]:
    types = ["string", "null"] if column.kind == "date" else ["number", "string", "boolean", "null"]
    found: dict[str, Any] = {"type": types, "description": column.shown}
    if column.kind == "category":
        found["examples"] = list(column.categories[:5])
    elif column.kind == "date":
        found["examples"] = ["2024-12-31", "2024-12-31T12:00:00"]
    return found


class _Service(Collector):
    """The model's thread, and the threads that prepare inputs and write answers."""

    def __init__(self, model: Model, limits: Limits) -> None:
        self.model, self.limits = model, limits
        self.readings = ["buckets"]  # those that the model has
        self._batcher: Batcher | None = None
        self._workers = Workers()

    def __enter__(self) -> None:
        self._batcher = Batcher(self.model, self.limits.batch_size)
        shape = _shape(self.model)
        reading = self._batcher.submit(torch.zeros(1, *shape)).result()
        if reading.sigma is not None:
            self.readings = list(get_args(More))
        list(pieces(self._prediction(reading, None), (), None))  # loads what is imported on first use

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

    def collect(self) -> Iterator[Metric]:
        """Counters for Prometheus."""
        instances, batches = (self._batcher.instances, self._batcher.batches) if self._batcher else (0, 0)
        yield CounterMetricFamily("gmlr_instances", "Instances that went through the model.", instances)
        yield CounterMetricFamily("gmlr_batches", "Batches they went in.", batches)
        yield CounterMetricFamily("process_cpu_seconds", "Processor time of the server.", time.process_time())

    async def answer(
        self,
        given: Sequence[Any],
        names: Sequence[str] | None,
        readings: Sequence[str],
        confidence: float | None,
        guarantee: float | None,
    ) -> Response:
        """Prepare inputs, read them with the model, write the answer."""
        assert self._batcher is not None
        if names is not None and len(names) != len(given):
            raise DataError(f"expected a name for each of {len(given)} instances, got {len(names)}")
        width = len(self.model.labels)
        check_pairs(len(given), width, readings, confidence)
        if guarantee is not None:
            check_guarantee(self.model, guarantee)
            check_pairs(len(given), width, ["p_above"], None)  # it holds as many statements
        ready = await self._workers.run(self._prepared(given), long=_size(given) > _SHORT)
        inputs = torch.cat(ready) if len(ready) > 1 else ready[0]
        found = self._prediction(await self._batcher.read(inputs), names)
        long = len(found) * _cost(width, readings, confidence or guarantee) > _STEP
        parts = await self._workers.run(pieces(found, readings, confidence, guarantee), long=long)
        return Response(b"".join(parts), media_type="application/json")

    def _prediction(self, reading: Reading, names: Sequence[str] | None) -> Prediction:
        return Prediction.from_reading(
            reading,
            self.model.labels,
            method=self.model.method.name,
            names=names or (),
            jnd=self.model.jnd,
            conformal=self.model.guarantees,
        )

    def check_count(self, count: int, what: str) -> None:
        if not 1 <= count <= self.limits.count:
            raise DataError(f"{count:,} {what}; expected 1 to {self.limits.count:,} in a request")

    def inputs(self, asked: Asked) -> Sequence[Any]:
        """The inputs of a request, of the kind that the model takes."""
        kind = self.model.inputs["kind"]
        wanted, given, other = ("rows", asked.rows, asked.images)
        if kind != "table":
            wanted, given, other = ("images", asked.images, asked.rows)
        if given is None or other is not None:
            raise DataError(f"the model takes {kind} inputs: expected '{wanted}' alone")
        self.check_count(len(given), wanted)
        return given

    def _prepared(self, given: Sequence[Any]) -> Iterator[Tensor]:
        """Tensors for the model: all rows at once, pictures one by one."""
        if self.model.inputs["kind"] == "table" and not isinstance(given[0], tuple):
            yield read_rows(given, self.model.inputs)
            return
        for place, one in enumerate(given):
            name, data = (f"image {place}", _from_base64(one, place)) if isinstance(one, str) else one
            yield read_picture(data, self.model, name, self.limits.pixels)[None]


def read_picture(data: bytes, model: Model, name: str, max_pixels: int) -> Tensor:
    """The bytes of an image file as a tensor for a model."""
    if model.inputs["kind"] != "image" or "preprocess" not in model.inputs:
        raise DataError(f"the model takes {model.inputs['kind']} inputs; expected 'rows'")
    preprocess = Preprocess.from_dict(model.inputs["preprocess"])
    mode: Literal["L", "RGB"] = "L" if preprocess.channels == 1 else "RGB"
    return preprocess(decode_image(data, mode, name=name[:100], max_pixels=max_pixels))


def check_pairs(count: int, width: int, readings: Sequence[str], confidence: float | None) -> None:
    """Refuse readings that are too large for one answer, or that lack a confidence."""
    pairs = count * width**2
    if pairs > _CELLS and not set(_MATRICES).isdisjoint(readings):
        raise DataError(
            f"{count:,} instances of {width:,} labels have {pairs:,} pairs; expected at most {_CELLS:,}"
        )
    if "partial_order" in readings and confidence is None:
        raise DataError("partial_order needs a confidence, such as 0.9")


def pieces(
    found: Prediction, readings: Sequence[str], confidence: float | None, guarantee: float | None = None
) -> Iterator[bytes]:
    """A prediction as JSON, a few instances at a time.

    It is `Prediction.to_dict` with further readings.

    Examples
    --------
    >>> import numpy as np
    >>> import numpy as np
    >>> found = Prediction(np.array([[2.0, 3.0]]), np.array([[0.9, 0.95]]), ("a", "b"), method="br")
    >>> print(b"".join(pieces(found, ["buckets"], None)).decode()[-26:])
    "buckets":[["b"],["a"]]}]}
    """
    yield b'{"method":%b,"labels":%b,"instances":[' % (encoded(found.method), encoded(list(found.labels)))
    step = max(1, _STEP // _cost(len(found.labels), readings, confidence or guarantee))
    for start in range(0, len(found), step):
        part = found[start : start + step] if step < len(found) else found
        yield (b"," if start else b"") + _instances(part, readings, confidence, guarantee)
    yield b"]}" if guarantee is None else b'],"guarantee":%b}' % encoded(_promise(found, guarantee))


def _promise(found: Prediction, guarantee: float) -> dict[str, Any]:
    promised = found.guaranteed(guarantee)
    return {"alpha": guarantee, "rows": promised.rows, "statement": promised.statement}


def _instances(
    found: Prediction, readings: Sequence[str], confidence: float | None, guarantee: float | None
) -> bytes:
    columns = [name for name in ("p_first", "expected_rank") if name in readings]
    instances = found.to_dict(*columns, confidence=confidence)["instances"]
    if "buckets" in readings:
        for instance, buckets in zip(instances, found.lists):
            instance["buckets"] = buckets
    if guarantee is not None:
        for instance, promised in zip(instances, found.guaranteed(guarantee).to_dict()["instances"]):
            instance["guaranteed"] = promised
    matrices = {name: getattr(found, name) for name in ("p_rank", "p_above") if name in readings}
    if "partial_order" in readings and confidence is not None:
        matrices["partial_order"] = found.partial_order(confidence)
    texts = []
    for place, instance in enumerate(instances):
        more = [b',"%b":%b' % (name.encode(), _rows(whole[place])) for name, whole in matrices.items()]
        texts.append(b"".join([encoded(instance)[:-1], *more, b"}"]))
    return b",".join(texts)


def _rows(matrix: Any) -> bytes:
    # Row by row: encoding a large matrix at once would block all threads.
    return b"[%b]" % b",".join(encoded(row) for row in matrix.tolist())


def _cost(width: int, readings: Sequence[str], confidence: float | None) -> int:
    """Approximate cost of reading and writing one instance, in microseconds."""
    quick = confidence is None and set(readings) <= {"buckets"}
    return 8 * width if quick else 4 * width**2


def _size(given: Sequence[Any]) -> int:
    """Bytes of pictures, or numbers of rows."""
    return sum(
        len(one[1]) if isinstance(one, tuple) else len(one) if hasattr(one, "__len__") else 1 for one in given
    )


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
    found = {
        "gaussianmlr": __version__,
        "method": model.method.name,
        "supervision": model.method.supervision,
        "backbone": model.recipe.backbone,
        "labels": list(model.labels),
        "inputs": model.inputs,
        "calibration": None if model.calibration is None else vars(model.calibration),
        "guarantees": None if model.guarantees is None else {"rows": model.guarantees.rows},
        "metrics": model.about.get("metrics", {}),
    }
    return finite(found)  # type: ignore[no-any-return]  # a dict, as it was given

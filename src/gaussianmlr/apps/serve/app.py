"""`gmlr serve`: a model behind an HTTP JSON API, and a page to try it."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from fastapi import FastAPI, File, Form, Request, Response, UploadFile
from fastapi.responses import PlainTextResponse
from fastapi.routing import APIRoute
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.middleware import Middleware
from starlette.types import ASGIApp, Receive, Scope, Send

from gaussianmlr._version import __version__
from gaussianmlr.apps.serve.service import Limits, Service, takes_of
from gaussianmlr.apps.web.answers import Json, finite
from gaussianmlr.apps.web.bodies import replayed
from gaussianmlr.apps.web.counts import RequestCounts, exposition
from gaussianmlr.apps.web.server import HANDLERS, make_app, page, refusal
from gaussianmlr.data.columns import Column
from gaussianmlr.data.inputs import columns_of, encoding_of, shown_inputs
from gaussianmlr.model.model import Model

__all__ = ["Limits", "serving_app"]

More = Literal["buckets", "p_first", "expected_rank", "degree", "p_rank", "p_above", "p_tie", "partial_order"]
Confidence = Annotated[
    float | None, Field(gt=0.5, lt=1, description="Adds the part of each order that is certain.")
]
Guarantee = Annotated[
    float | None,
    Field(gt=0, le=0.5, description="Adds what is guaranteed at this level alpha, for calibrated models."),
]
Top = Annotated[
    int | None,
    Field(
        gt=0, description="Gives so many labels of each instance, the most significant ones, first one first."
    ),
]
_STATIC = Path(__file__).parent / "static"
_EXAMPLES = {"number": 1.5, "boolean": True, "category": "", "date": "2024-12-31", "text": "so happy today"}
_MOST_DESCRIBED = 500  # columns in the schema


class Asked(BaseModel):
    """A prediction request."""

    model_config = ConfigDict(extra="forbid", strict=True, hide_input_in_errors=True)

    rows: list[Any] | None = Field(
        None,
        description="For models of tables: lists of cells in the order of the columns, or objects. "
        "A cell is a number, a text (of a category or a date), true, false, or null for a gap.",
    )
    texts: list[str] | None = Field(None, description="For models of one column of texts: the texts.")
    images: list[str] | None = Field(None, description="For models of images: image files as base64.")
    names: list[str] | None = Field(None, description="Names of the instances.")
    readings: list[More] = Field([], description="Readings in addition to order, ranks and probabilities.")
    confidence: Confidence = None
    guarantee: Guarantee = None
    top: Top = None


class _Quick:
    """ASGI middleware that answers valid requests as JSON; FastAPI says what is wrong with any other.

    Of a small model, this takes a fifth off the cost of a request.
    """

    def __init__(self, app: ASGIApp, *, predict: Callable[[Asked], Awaitable[Response]]) -> None:
        self.app, self.predict = app, predict

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or (scope["method"], scope["path"]) != ("POST", "/predict"):
            await self.app(scope, receive, send)
            return
        message = await receive()  # `AccessControl` gives the whole body at once
        try:
            json = (b"content-type", b"application/json") in scope["headers"]
            asked = Asked.model_validate_json(message.get("body", b"")) if json else None
        except ValidationError:
            asked = None
        if asked is None:
            await self.app(scope, replayed(message.get("body", b""), receive), send)
            return
        try:
            found = await self.predict(asked)
        except tuple(HANDLERS) as error:
            found = refusal(error)
        await found(scope, receive, send)


def serving_app(
    model: Model, limits: Limits | None = None, token: str | None = None, counts: RequestCounts | None = None
) -> FastAPI:
    """An application that serves a model; run it with `web.server.run_server`.

    Parameters
    ----------
    model : Model
        The model.
    limits : Limits, optional
        Limits of the server.
    token : str, optional
        Token that requests must send.
    counts : RequestCounts, optional
        Counters that are shared with other processes.

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
    counts = counts or RequestCounts()
    service = Service(model, bounds, counts)

    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        with service:
            yield

    async def predict(asked: Asked) -> Response:
        return await service.answer(
            service.inputs({"rows": asked.rows, "texts": asked.texts, "images": asked.images}),
            asked.names,
            asked.readings,
            asked.confidence,
            asked.guarantee,
            asked.top,
        )

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
        inside=Middleware(_Quick, predict=predict),
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
        readings = get_args(More) if service.has_sigma else ["buckets"]
        return _about(model) | {"readings": readings, "limits": finite(asdict(bounds))}

    @app.get("/metrics", summary="Counters for Prometheus", response_class=PlainTextResponse)
    async def metrics() -> Response:
        return PlainTextResponse(exposition(counts), media_type=CONTENT_TYPE_PLAIN_0_0_4)

    app.post("/predict", summary="Predict rows, texts, or images as base64")(predict)

    @app.post("/predict/files", summary="Predict image files of a form")
    async def predict_files(
        images: Annotated[list[UploadFile], File(description="Image files.")],
        readings: Annotated[list[More] | None, Form()] = None,
        confidence: Annotated[Confidence, Form()] = None,
        guarantee: Annotated[Guarantee, Form()] = None,
        top: Annotated[Top, Form()] = None,
    ) -> Response:
        service.check_count(len(images), "images")
        named = [(file.filename or str(place), await file.read()) for place, file in enumerate(images)]
        names = [name for name, _ in named]
        return await service.answer(named, names, readings or [], confidence, guarantee, top)

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


def _about(model: Model) -> dict[str, Any]:
    found = {
        "gaussianmlr": __version__,
        "method": model.method.name,
        "supervision": model.method.supervision,
        "backbone": model.recipe.backbone,
        "labels": list(model.labels),
        "inputs": shown_inputs(model.inputs),
        "takes": takes_of(model),
        "calibration": None if model.calibration is None else model.calibration.to_dict(),
        "guarantees": None if model.guarantees is None else {"rows": model.guarantees.rows},
        "metrics": model.about.get("metrics", {}),
    }
    return finite(found)  # type: ignore[no-any-return]  # a dict, as it was given

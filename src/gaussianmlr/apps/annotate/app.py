"""`gmlr annotate`: the page where people rank labels, and its HTTP API."""

from __future__ import annotations

import logging
import threading
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import APIRouter, FastAPI, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import FileResponse, Response

from gaussianmlr.apps.annotate.connections import StoreError
from gaussianmlr.apps.annotate.exports import csv_of, manifest_of
from gaussianmlr.apps.annotate.guide import Guide
from gaussianmlr.apps.annotate.project import Project, Show, WriteQueue, answer_view
from gaussianmlr.apps.annotate.store import Store
from gaussianmlr.apps.annotate.thumbnails import jpeg_of
from gaussianmlr.apps.web.answers import described, problem
from gaussianmlr.apps.web.server import make_app, page
from gaussianmlr.errors import DataError

__all__ = ["make_annotate_app"]

_STATIC = Path(__file__).parent / "static"
_RETRY = {"retry-after": "2"}

_Number = Annotated[int, Field(ge=1, le=2**63 - 1)]  # SQLite's row numbers
_Label = Annotated[str, Field(max_length=1_000)]


class Name(BaseModel):
    """The name of a person who wants to rank."""

    model_config = ConfigDict(strict=True)

    name: str = Field(min_length=1, max_length=400)


class Given(BaseModel):
    """An answer: buckets of labels, most significant first, or a skip."""

    model_config = ConfigDict(strict=True)

    person: _Number
    token: str = Field(min_length=8, max_length=100)
    state: Literal["ranked", "skipped"] = "ranked"
    order: list[list[_Label]] = Field(default=[], max_length=10_000)
    note: str = Field(default="", max_length=4_000)
    seconds: float = Field(default=0.0, ge=0, le=1e6, allow_inf_nan=False)


class Who(BaseModel):
    """The number of a person."""

    model_config = ConfigDict(strict=True)

    person: _Number


_ERRORS = described(
    {
        503: "The store is locked by another program, or damaged. Nothing was saved.",
        507: "The disk of the store is full, read-only or failing. Nothing was saved.",
    }
)


def make_annotate_app(
    store: Store,
    *,
    title: str = "Rank labels",
    wanted: int = 0,
    token: str | None = None,
    background: Callable[[threading.Event], None] | None = None,
    guide: Guide | None = None,
    candidates: Mapping[str, Sequence[str]] | None = None,
) -> FastAPI:
    """The application of `gmlr annotate`.

    Parameters
    ----------
    store : Store
        Items and answers.
    title : str
        Shown at the top of the page.
    wanted : int
        How many people rank each item; 0 = everybody ranks everything.
    token : str, optional
        Token that requests must send; see `gaussianmlr.apps.web.access.AccessControl`.
    background : callable, optional
        Runs in its own thread while the application runs, such as a model that suggests orders. It is given
        an event that is set when it should stop.
    guide : Guide, optional
        Instructions and descriptions of labels, shown beside the items.
    candidates : mapping of str to sequence of str, optional
        By name of an item: the labels that it offers. Others offer all.
    """

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        ended = threading.Event()
        thread = threading.Thread(target=background or (lambda _: None), args=(ended,), daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join(timeout=20)

    app = make_app(f"gaussianmlr: {title}", token=token, max_body=1 << 20, lifespan=lifespan, static=_STATIC)
    app.add_exception_handler(StoreError, _unavailable)
    project = Project(store, title, wanted, guide or Guide(), candidates or {})

    @app.get("/", include_in_schema=False)
    def start() -> FileResponse:
        return page(_STATIC / "annotate.html")

    for routes in (_ranking_routes(project), _review_routes(project)):
        app.include_router(routes)
    return app


def _unavailable(_: Request, error: Exception) -> Response:
    assert isinstance(error, StoreError)
    logging.getLogger("uvicorn.error").warning("%s", error)
    status = 507 if error.cause == "full" else 503
    return problem(str(error), status, _RETRY if error.cause == "locked" else None)


def _ranking_routes(project: Project) -> APIRouter:
    routes = APIRouter(responses=_ERRORS)
    store, writes = project.store, WriteQueue()

    @routes.get("/api/project")
    def about() -> dict[str, Any]:
        """What there is to rank, and the labels."""
        return project.about()

    @routes.post("/api/people")
    async def person(who: Name) -> dict[str, Any]:
        """A person by name, new or known."""
        return (await writes.run(lambda: store.person(who.name)))._asdict()

    @routes.get("/api/next")
    def next_item(person: _Number) -> dict[str, Any]:
        """The item for the person to rank now, the ones after it, and the person's progress."""
        return project.work_view(project.next_items(person), person)

    @routes.get("/api/items/{number}")
    def item(number: _Number, person: _Number, others: bool = False) -> dict[str, Any]:
        """One item with the person's own answer and, for a second look, the answers of others."""
        found = project.work_view([store.item(number)], person)
        if others:
            found["item"]["others"] = project.others_view(number, person)
        return found

    @routes.post("/api/items/{number}/answers")
    async def answer(number: _Number, given: Given) -> dict[str, Any]:
        """Save an answer. After status 200 it is on disk."""
        order = given.order if given.state == "ranked" else None

        def save() -> dict[str, Any]:
            project.check_offered(number, order or ())
            saved = store.answer(
                number, given.person, order, token=given.token, note=given.note, seconds=given.seconds
            )
            return {"saved": answer_view(saved), "progress": project.progress(given.person)}

        return await writes.run(save)

    @routes.post("/api/undo")
    async def undo(who: Who) -> dict[str, Any]:
        """Take back the person's last answer; the item it was about, with that answer."""
        return await writes.run(lambda: project.undo(who.person))

    return routes


def _review_routes(project: Project) -> APIRouter:
    """Routes of pictures, the overview and the export."""
    routes = APIRouter(responses=_ERRORS)
    store = project.store

    @routes.get(
        "/api/items/{number}/picture",
        response_class=Response,
        responses={200: {"content": {"image/jpeg": {}}}},
    )
    def picture(number: _Number, size: Literal["small", "view", "full"] = "view") -> Response:
        """The picture of an item as a JPEG: small, view or full."""
        if store.kind != "image":
            raise DataError(f"items are of kind {store.kind!r} and have no pictures")
        made = jpeg_of(Path(store.item(number).content), store.folder / "thumbnails", size)
        return Response(made, media_type="image/jpeg", headers={"cache-control": "private, max-age=3600"})

    @routes.get("/api/items")
    def items(
        person: _Number, first: Annotated[int, Field(ge=0, le=2**63 - 1)] = 0, show: Show = "all"
    ) -> dict[str, Any]:
        """A page of items: all, disputed ones, or those that the person has ranked or skipped."""
        return project.page_view(person, first, show)

    @routes.get("/api/overview")
    def overview() -> dict[str, Any]:
        """Progress, time per item, and agreement between people."""
        seen = project.overview()
        return {
            "items": seen.items,
            "ranked": seen.ranked,
            "people": seen.people,
            "agreement": seen.agreement,
            "disputed": len(seen.disputed),
        }

    @routes.get("/api/export.csv", response_class=Response, responses={200: {"content": {"text/csv": {}}}})
    def export(
        aggregate: Literal["none", "mean_rank", "borda", "kemeny", "thurstone"] = "none",
        escape_formulas: bool = False,
    ) -> Response:
        """The manifest that `gmlr train` reads, as CSV; save it next to the pictures."""
        frame = manifest_of(store, None if aggregate == "none" else aggregate)
        headers = {"content-disposition": 'attachment; filename="manifest.csv"'}
        return Response(
            csv_of(frame, escape_formulas=escape_formulas),
            media_type="text/csv; charset=utf-8",
            headers=headers,
        )

    return routes

"""`gmlr annotate`: the page where people rank labels, and what it asks the server."""

from __future__ import annotations

import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from fastapi import FastAPI, Query
from pydantic import BaseModel, Field
from starlette.responses import FileResponse, Response

from gaussianmlr._grammar import parse
from gaussianmlr.annotations.agreeing import Overview, Read, overview
from gaussianmlr.annotations.exporting import manifest_of
from gaussianmlr.annotations.store import Answer, Item, Store
from gaussianmlr.annotations.thumbnails import picture_file
from gaussianmlr.errors import DataError
from gaussianmlr.pages.base import make_app, page

__all__ = ["make_annotate_app"]

_AHEAD = 3  # items that the browser fetches before they are asked for
_CLAIM = 120.0  # seconds that an item is left to the person it was shown to
_REST = 2.0  # seconds that an overview is good enough for
_PAGE = 60


class Name(BaseModel):
    """Who wants to rank."""

    name: str = Field(max_length=400)


class Given(BaseModel):
    """An answer: buckets of labels, most significant first, or a skip."""

    person: int
    token: str = Field(min_length=8, max_length=100)
    state: Literal["ranked", "skipped"] = "ranked"
    order: list[list[str]] = Field(default=[], max_length=10_000)
    note: str = ""
    seconds: float = Field(default=0.0, ge=0, le=1e6)


class Who(BaseModel):
    """Who asks."""

    person: int


class _Seen(NamedTuple):
    """An overview, of which state of the store it is, and until when it is good enough."""

    revision: tuple[int, int, int]
    good_until: float
    overview: Overview


class _Room:
    """What the server knows beside the store: who looks at what, and the last overview."""

    def __init__(self, store: Store, wanted: int) -> None:
        self.store, self.wanted = store, wanted
        self._lock = threading.Lock()
        self._claims: dict[int, tuple[int, float]] = {}  # person -> item, when
        self._computing = threading.Lock()
        self._read: Read = {}
        self._seen: _Seen | None = None

    def next_items(self, person: int) -> list[Item]:
        """What the person shall see now, and what comes then."""
        waiting = self.store.waiting(person, _AHEAD + 1 + len(self._claims), wanted=self.wanted)
        with self._lock:
            now = time.monotonic()
            # Where one answer is enough, nobody is shown what somebody else is at.
            taken = {item for who, (item, at) in self._claims.items() if who != person and now - at < _CLAIM}
            if self.wanted:
                free = [item for item in waiting if item.id not in taken]
                waiting = free or waiting
            if waiting:
                self._claims[person] = (waiting[0].id, now)
        return waiting[: _AHEAD + 1]

    def overview(self) -> Overview:
        """The overview, computed anew when something changed; while one computes, others get the last."""
        revision = self.store.revision()
        seen = self._seen
        if seen is not None and (seen.revision == revision or time.monotonic() < seen.good_until):
            return seen.overview
        if seen is not None and not self._computing.acquire(blocking=False):
            return seen.overview
        if seen is None:
            self._computing.acquire()
        try:
            if self._seen is None or self._seen.revision != revision:
                began = time.monotonic()
                found = overview(self.store, self._read)
                ended = time.monotonic()
                # A large store may spend a fifth of a core on it, no more.
                self._seen = _Seen(revision, ended + max(_REST, 4 * (ended - began)), found)
            return self._seen.overview
        finally:
            self._computing.release()


def make_annotate_app(
    store: Store,
    *,
    title: str = "Rank labels",
    wanted: int = 0,
    token: str | None = None,
    background: Callable[[threading.Event], None] | None = None,
) -> FastAPI:
    """The application of `gmlr annotate`.

    Parameters
    ----------
    store : Store
        Where items are and answers go.
    title : str
        Shown at the top of the page.
    wanted : int
        How many people shall rank each item; 0 = everybody ranks everything.
    token : str, optional
        What requests must know; see `gaussianmlr.pages.guard.Guard`.
    background : callable, optional
        Runs in a thread of its own while the application lives, such as a model that suggests orders; it is
        given an event that says when to end.
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

    app = make_app(f"gaussianmlr: {title}", token=token, max_body=1 << 20, lifespan=lifespan)
    room = _Room(store, wanted)
    _add_work(app, room, title)
    _add_looks(app, room)
    return app


def _add_work(app: FastAPI, room: _Room, title: str) -> None:
    """What ranking needs."""
    store = room.store

    @app.get("/", include_in_schema=False)
    def start() -> FileResponse:
        return page("annotate.html")

    @app.get("/api/project")
    def project() -> dict[str, Any]:
        """What there is to rank, and the labels."""
        return {"title": title, "kind": store.kind, "labels": store.labels, "items": store.count()}

    @app.post("/api/people")
    def person(who: Name) -> dict[str, Any]:
        """Somebody by their name, new or known."""
        return store.person(who.name)._asdict()

    @app.get("/api/next")
    def next_item(person: int) -> dict[str, Any]:
        """The item that the person shall rank now, the ones after it, and how far they are."""
        items = room.next_items(person)
        first = _shown(store, items[0], person) if items else None
        return {"item": first, "ahead": [item.id for item in items[1:]], "progress": _progress(room, person)}

    @app.get("/api/items/{number}")
    def item(number: int, person: int, others: bool = False) -> dict[str, Any]:
        """One item, with the person's own answer; and, for a second look, what the others say."""
        shown = _shown(store, store.item(number), person)
        if others:
            names = {one.id: one.name for one in store.people()}
            shown["others"] = [
                {"name": names[answer.person], **_answer(answer)}
                for answer in store.answers(number)
                if answer.person != person and answer.state == "ranked"
            ]
        return {"item": shown, "ahead": [], "progress": _progress(room, person)}

    @app.post("/api/items/{number}/answers")
    def answer(number: int, given: Given) -> dict[str, Any]:
        """Keep an answer. When this has answered, the answer is on the disk."""
        order = given.order if given.state == "ranked" else None
        saved = store.answer(
            number, given.person, order, token=given.token, note=given.note, seconds=given.seconds
        )
        return {"saved": _answer(saved), "progress": _progress(room, given.person)}

    @app.post("/api/undo")
    def undo(who: Who) -> dict[str, Any]:
        """Take back the person's last answer; the item it was about, with what they said."""
        taken = store.undo(who.person)
        if taken is None:
            raise DataError("there is nothing to undo")
        shown = _shown(store, store.item(taken.item), who.person)
        return {
            "item": shown,
            "taken": _answer(taken),
            "ahead": [],
            "progress": _progress(room, who.person),
        }


def _add_looks(app: FastAPI, room: _Room) -> None:
    """What looking over the work needs."""
    store = room.store

    @app.get("/api/items/{number}/picture")
    def picture(number: int, size: str = "view") -> FileResponse:
        """The picture of an item as a JPEG: small, view or full."""
        if store.kind != "image":
            raise DataError(f"items are of kind {store.kind!r} and have no pictures")
        file = picture_file(Path(store.item(number).content), store.folder / "thumbnails", size)
        return FileResponse(file, media_type="image/jpeg", headers={"cache-control": "private, max-age=3600"})

    @app.get("/api/items")
    def items(
        person: int,
        first: Annotated[int, Query(ge=0)] = 0,
        show: Literal["all", "disputed", "mine", "skipped"] = "all",
    ) -> dict[str, Any]:
        """A page of items: all, those people disagree on, those the person has ranked or skipped."""
        mine = {answer.item: answer for answer in store.answers(person=person)}
        apart = dict(room.overview().disputed)
        if show == "all":
            some, total = store.items(first=first, count=_PAGE), store.count()
        else:
            state = "ranked" if show == "mine" else "skipped"
            numbers = list(apart) if show == "disputed" else [n for n, a in mine.items() if a.state == state]
            total = len(numbers)
            some = [store.item(number) for number in numbers[first : first + _PAGE]]
        rows = [
            {
                "id": one.id,
                "name": one.name,
                "text": _excerpt(one) if store.kind != "image" else "",
                "answer": _answer(mine[one.id]) if one.id in mine else None,
                "disagreement": apart.get(one.id),
            }
            for one in some
        ]
        return {"items": rows, "first": first, "page": _PAGE, "total": total}

    @app.get("/api/overview")
    def look() -> dict[str, Any]:
        """Progress, time an item, and agreement between people."""
        seen = room.overview()
        return {
            "items": seen.items,
            "ranked": seen.ranked,
            "people": seen.people,
            "agreement": seen.agreement,
            "disputed": len(seen.disputed),
        }

    @app.get("/api/export.csv")
    def export(aggregate: Literal["none", "mean_rank", "borda", "kemeny"] = "none") -> Response:
        """The manifest that `gmlr train` reads, as CSV; it belongs beside the pictures."""
        frame = manifest_of(store, None if aggregate == "none" else aggregate)
        headers = {"content-disposition": 'attachment; filename="manifest.csv"'}
        return Response(frame.to_csv(index=False), media_type="text/csv; charset=utf-8", headers=headers)


def _shown(store: Store, item: Item, person: int) -> dict[str, Any]:
    mine = store.answers(item.id, person)
    found = store.suggestion(item.id)
    suggestion = None
    if found is not None:
        suggestion = {"order": parse(found.ranking).ranked, "bits": found.uncertainty, "model": found.model}
    return {
        "id": item.id,
        "name": item.name,
        "content": None if store.kind == "image" else item.content,
        "answer": _answer(mine[0]) if mine else None,
        "suggestion": suggestion,
    }


def _answer(answer: Answer) -> dict[str, Any]:
    return {
        "id": answer.id,
        "state": answer.state,
        "order": parse(answer.ranking).ranked,
        "ranking": answer.ranking,
        "note": answer.note,
    }


def _progress(room: _Room, person: int) -> dict[str, int]:
    ranked, skipped = room.store.done(person)
    return {"ranked": ranked, "skipped": skipped, "items": room.store.count()}


def _excerpt(item: Item) -> str:
    if isinstance(item.content, dict):
        text = ", ".join(f"{key} {value}" for key, value in item.content.items())
    else:
        text = str(item.content)
    return text if len(text) <= 160 else f"{text[:157]}..."

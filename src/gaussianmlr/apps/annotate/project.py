"""A store while people work on it: who gets which item, writes in turn, the overview, JSON views."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, TypeVar

from starlette.concurrency import run_in_threadpool

from gaussianmlr.apps.annotate.agreement import Overview, Read, overview
from gaussianmlr.apps.annotate.connections import StoreError
from gaussianmlr.apps.annotate.guide import Guide
from gaussianmlr.apps.annotate.orders import read_order
from gaussianmlr.apps.annotate.store import Answer, Item, Store
from gaussianmlr.errors import DataError, shorten

__all__ = ["Project", "Show", "WriteQueue", "answer_view"]

Show = Literal["all", "disputed", "mine", "skipped"]
_Result = TypeVar("_Result")
_NO_GUIDE = Guide()
_ALL: Mapping[str, Sequence[str]] = MappingProxyType({})  # every item offers every label
_AHEAD = 3  # items that the browser fetches in advance
_CLAIM = 120.0  # seconds for which an item is reserved for the person who sees it
_REST = 2.0  # seconds for which an overview is reused
_PAGE = 60  # items per page
_QUEUE = 5.0  # seconds that an answer waits for the ones before it


class WriteQueue:
    """Runs changes of the store in turn; waiting ones hold no thread, so reads are never blocked."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()

    async def run(self, change: Callable[[], _Result]) -> _Result:
        """Run a change once the earlier ones are done."""
        try:
            async with asyncio.timeout(_QUEUE):
                await self._lock.acquire()
        except TimeoutError:
            raise StoreError("other answers are still being saved; try again in a moment", "locked") from None
        try:
            return await run_in_threadpool(change)
        finally:
            self._lock.release()


class _Cached(NamedTuple):
    """An overview, the revision of the store it describes, and the time until which it is reused."""

    revision: tuple[int, int, int]
    good_until: float
    overview: Overview


class Project:
    """A store, and what the server keeps beside it: who looks at which item, and the last overview."""

    def __init__(
        self,
        store: Store,
        title: str = "",
        wanted: int = 0,
        guide: Guide = _NO_GUIDE,
        candidates: Mapping[str, Sequence[str]] = _ALL,
    ) -> None:
        self.store, self.title, self.wanted = store, title, wanted
        self.guide, self.candidates = guide, candidates
        self._lock = threading.Lock()
        self._claims: dict[int, tuple[int, float]] = {}  # person -> item, since when
        self._computing = threading.Lock()
        self._read: Read = {}
        self._cached: _Cached | None = None

    def about(self) -> dict[str, Any]:
        """What there is to rank."""
        store = self.store
        return {
            "title": self.title,
            "kind": store.kind,
            "labels": store.labels,
            "items": store.count(),
            "guide": self.guide.html,
            "about": self.guide.about,
        }

    def check_offered(self, item: int, order: Sequence[Sequence[str]]) -> None:
        """Refuse an order with labels that the item does not offer."""
        name = self.store.item(item).name
        offered = self.candidates.get(name)
        strange = [label for bucket in order for label in bucket if offered and label not in offered]
        if strange:
            raise DataError(
                f"{shorten(name)} does not offer {shorten(strange[0])}; it offers {shorten(offered)}"
            )

    def next_items(self, person: int) -> list[Item]:
        """The item to show to the person now, and the ones after it."""
        waiting = self.store.waiting(person, _AHEAD + 1 + len(self._claims), wanted=self.wanted)
        with self._lock:
            now = time.monotonic()
            # Where one answer is enough, no item is shown to two people at a time.
            taken = {item for who, (item, at) in self._claims.items() if who != person and now - at < _CLAIM}
            if self.wanted:
                free = [item for item in waiting if item.id not in taken]
                waiting = free or waiting
            if waiting:
                self._claims[person] = (waiting[0].id, now)
        return waiting[: _AHEAD + 1]

    def overview(self) -> Overview:
        """The overview, recomputed after a change; while one thread computes it, others get the last one."""
        revision = self.store.revision()
        cached = self._cached
        if cached is not None and (cached.revision == revision or time.monotonic() < cached.good_until):
            return cached.overview
        if not self._computing.acquire(blocking=cached is None):
            assert cached is not None
            return cached.overview
        try:
            if self._cached is None or self._cached.revision != revision:
                began = time.monotonic()
                found = overview(self.store, self._read)
                ended = time.monotonic()
                # A large store spends at most a fifth of a core on it.
                self._cached = _Cached(revision, ended + max(_REST, 4 * (ended - began)), found)
            return self._cached.overview
        finally:
            self._computing.release()

    # JSON views

    def work_view(self, items: list[Item], person: int) -> dict[str, Any]:
        """The first item to rank, the ids of the ones after it, and the person's progress."""
        return {
            "item": self._item_view(items[0], person) if items else None,
            "ahead": [item.id for item in items[1:]],
            "progress": self.progress(person),
        }

    def progress(self, person: int) -> dict[str, int]:
        """How many items the person has ranked and skipped, of how many."""
        ranked, skipped = self.store.done(person)
        return {"ranked": ranked, "skipped": skipped, "items": self.store.count()}

    def others_view(self, item: int, person: int) -> list[dict[str, Any]]:
        """The orders that other people gave to an item."""
        names = {one.id: one.name for one in self.store.people()}
        return [
            {"name": names[answer.person], **answer_view(answer)}
            for answer in self.store.answers(item)
            if answer.person != person and answer.state == "ranked"
        ]

    def undo(self, person: int) -> dict[str, Any]:
        """Take back the person's last answer; the item it was about, with that answer."""
        taken = self.store.undo(person)
        if taken is None:
            raise DataError("there is nothing to undo")
        return {**self.work_view([self.store.item(taken.item)], person), "taken": answer_view(taken)}

    def page_view(self, person: int, first: int, show: Show) -> dict[str, Any]:
        """One page of the list of items."""
        store = self.store
        mine = {answer.item: answer for answer in store.answers(person=person)}
        apart = dict(self.overview().disputed)
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
                "answer": answer_view(mine[one.id]) if one.id in mine else None,
                "disagreement": apart.get(one.id),
            }
            for one in some
        ]
        return {"items": rows, "first": first, "page": _PAGE, "total": total}

    def _item_view(self, item: Item, person: int) -> dict[str, Any]:
        mine = self.store.answers(item.id, person)
        found, offered = self.store.suggestion(item.id), self.candidates.get(item.name)
        suggestion = None
        if found is not None:
            order = read_order(found.ranking)
            if offered:
                kept = ([label for label in bucket if label in offered] for bucket in order)
                order = [bucket for bucket in kept if bucket]
            suggestion = {"order": order, "bits": found.uncertainty, "model": found.model}
        before, after = self.store.neighbours(item.id)
        return {
            "id": item.id,
            "name": item.name,
            "content": None if self.store.kind == "image" else item.content,
            "answer": answer_view(mine[0]) if mine else None,
            "suggestion": suggestion,
            "offered": offered,
            "before": before,
            "after": after,
        }


def answer_view(answer: Answer) -> dict[str, Any]:
    """An answer as JSON."""
    return {
        "id": answer.id,
        "state": answer.state,
        "order": read_order(answer.ranking),
        "ranking": answer.ranking,
        "note": answer.note,
    }


def _excerpt(item: Item) -> str:
    if isinstance(item.content, dict):
        text = ", ".join(f"{key} {value}" for key, value in item.content.items())
    else:
        text = str(item.content)
    return text if len(text) <= 160 else f"{text[:157]}..."

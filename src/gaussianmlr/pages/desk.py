"""The desk of a server: so many requests at a time and no more, each counted and timed."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["Desk", "Tally", "exposition"]

BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_RETRY = {"retry-after": "1"}


class Tally:
    """What happened at a desk so far: answers by status, seconds of answers, requests under way."""

    def __init__(self) -> None:
        self.statuses: Counter[int] = Counter()
        self.buckets = [0] * len(BOUNDS)
        self.seconds = 0.0
        self.under_way = 0

    def add(self, status: int, seconds: float) -> None:
        """Count an answer."""
        self.statuses[status] += 1
        self.seconds += seconds
        for place, bound in enumerate(BOUNDS):
            self.buckets[place] += seconds <= bound


class Desk:
    """ASGI middleware that lets some requests in and answers the others 503, before they cost memory.

    Parameters
    ----------
    app : ASGI application
        What comes behind it.
    tally : Tally
        Where requests are counted.
    places : int
        Requests under way at a time.
    below : str
        Paths that begin so need a place; others are not held up.
    """

    def __init__(self, app: ASGIApp, *, tally: Tally, places: int, below: str) -> None:
        self.app, self.tally, self.places, self.below = app, tally, places, below

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let in, or send away."""
        if scope["type"] != "http" or not scope["path"].startswith(self.below):
            await self.app(scope, receive, send)
            return
        began, status = time.perf_counter(), 500

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        has_place = self.tally.under_way < self.places
        self.tally.under_way += has_place
        try:
            if has_place:
                await self.app(scope, receive, answer)
            else:
                await _send_away(scope, receive, answer)
        finally:
            self.tally.under_way -= has_place
            self.tally.add(status, time.perf_counter() - began)


async def _send_away(scope: Scope, receive: Receive, send: Send) -> None:
    """503, once the body was thrown away: who still sends does not listen."""
    found = JSONResponse({"error": "too many requests are under way; try again"}, 503, _RETRY)
    try:
        while True:
            message = await receive()
            if message["type"] != "http.request" or not message.get("more_body", False):
                break
    except HTTPException as error:
        found = JSONResponse({"error": error.detail}, error.status_code, error.headers)
    await found(scope, receive, send)


def exposition(tally: Tally, more: Iterable[tuple[str, str, str, float]] = ()) -> str:
    """The tally in the text format of Prometheus.

    Parameters
    ----------
    tally : Tally
        What was counted.
    more : iterable of (name, kind, help, value)
        Further counters and gauges.

    Examples
    --------
    >>> tally = Tally()
    >>> tally.add(200, 0.03)
    >>> print(exposition(tally).splitlines()[2])
    gmlr_requests_total{status="200"} 1
    """
    lines: list[str] = []

    def metric(name: str, kind: str, about: str, rows: Mapping[str, Any]) -> None:
        lines.extend([f"# HELP {name} {about}", f"# TYPE {name} {kind}"])
        lines.extend(f"{name}{key} {value}" for key, value in rows.items())

    answers = {f'{{status="{status}"}}': count for status, count in sorted(tally.statuses.items())}
    metric("gmlr_requests_total", "counter", "Answers to prediction requests, by status.", answers)
    rows: dict[str, Any] = {f'_bucket{{le="{le}"}}': count for le, count in zip(BOUNDS, tally.buckets)}
    count = sum(tally.statuses.values())
    rows |= {'_bucket{le="+Inf"}': count, "_sum": round(tally.seconds, 6), "_count": count}
    metric("gmlr_request_seconds", "histogram", "How long prediction requests took.", rows)
    metric("gmlr_requests_under_way", "gauge", "Prediction requests under way.", {"": tally.under_way})
    for name, kind, about, value in more:
        metric(name, kind, about, {"": value})
    return "\n".join(lines) + "\n"

"""A limit on the number and the time of requests."""

from __future__ import annotations

import asyncio
import time

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gaussianmlr.apps.web.answers import problem
from gaussianmlr.apps.web.counts import RequestCounts

__all__ = ["RETRY", "RequestLimit"]

RETRY = {"retry-after": "1"}


class RequestLimit:
    """ASGI middleware that limits the number of concurrent requests; any beyond it are answered 503.

    It runs behind `AccessControl`, so only requests whose bodies have arrived count. A request is cancelled
    when its time is over or its client has left.

    Parameters
    ----------
    app : ASGI application
        The application to protect.
    counts : RequestCounts
        Where requests are counted.
    places : int
        Maximum number of concurrent requests, of all processes together.
    below : str
        Prefix of the paths that are limited and counted.
    seconds : float, optional
        Maximum time until the answer begins; unlimited by default.
    """

    def __init__(
        self, app: ASGIApp, *, counts: RequestCounts, places: int, below: str, seconds: float | None = None
    ) -> None:
        self.app, self.counts, self.places = app, counts, places
        self.below, self.seconds = below, seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle the request, or answer 503."""
        if scope["type"] != "http" or not scope["path"].startswith(self.below):
            await self.app(scope, receive, send)
            return
        began, status = time.perf_counter(), 499  # as nginx counts clients that left

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        if self.counts.under_way >= self.places:
            await problem("too many requests are under way; try again", 503, RETRY)(scope, receive, answer)
            self.counts.add(status, time.perf_counter() - began)
            return
        self.counts.begin()
        try:
            await self._work(scope, receive, answer)
        except Exception:
            status = 500
            raise
        finally:
            self.counts.end()
            self.counts.add(status, time.perf_counter() - began)

    async def _work(self, scope: Scope, receive: Receive, send: Send) -> None:
        body: list[Message] = [await receive()]
        gone = asyncio.ensure_future(receive())  # the body is in: nothing else can come
        begun = False

        async def once() -> Message:
            return body.pop() if body else await asyncio.shield(gone)

        async def answer(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        work = asyncio.ensure_future(self.app(scope, once, answer))
        try:
            await asyncio.wait((work, gone), timeout=self.seconds, return_when=asyncio.FIRST_COMPLETED)
            if work.done() or begun:
                await work
                return
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)
            if not gone.done() and not begun:
                told = f"no answer within {self.seconds:g} s; try again, or ask for less at once"
                await problem(told, 503, RETRY)(scope, receive, send)
        finally:
            work.cancel()
            gone.cancel()

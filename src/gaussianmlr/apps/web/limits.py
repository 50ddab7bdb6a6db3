"""A limit on the number and the time of requests, and counters for Prometheus."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gaussianmlr.apps.web.answers import problem

__all__ = ["RequestCounts", "RequestLimit", "exposition"]

BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
RETRY = {"retry-after": "1"}


class RequestCounts(Collector):
    """Counters of requests: answers by status, seconds until the answer, requests under way."""

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

    def collect(self) -> Iterator[Metric]:
        """The counts as metrics of Prometheus."""
        answers = CounterMetricFamily(
            "gmlr_requests", "Answers to prediction requests, by status.", labels=["status"]
        )
        for status, count in sorted(self.statuses.items()):
            answers.add_metric([str(status)], count)
        yield answers
        buckets = [(str(bound), count) for bound, count in zip(BOUNDS, self.buckets)]
        buckets.append(("+Inf", sum(self.statuses.values())))
        yield HistogramMetricFamily(
            "gmlr_request_seconds", "How long prediction requests took.", buckets, self.seconds
        )
        yield GaugeMetricFamily("gmlr_requests_under_way", "Prediction requests under way.", self.under_way)


def exposition(*collectors: Collector) -> str:
    """The metrics of collectors, in the text format of Prometheus.

    Examples
    --------
    >>> counts = RequestCounts()
    >>> counts.add(200, 0.03)
    >>> print(exposition(counts).splitlines()[2])
    gmlr_requests_total{status="200"} 1.0
    """
    registry = CollectorRegistry()
    for collector in collectors:
        registry.register(collector)
    return generate_latest(registry).decode()


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
        Maximum number of concurrent requests.
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
        self.counts.under_way += 1
        try:
            await self._work(scope, receive, answer)
        except Exception:
            status = 500
            raise
        finally:
            self.counts.under_way -= 1
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

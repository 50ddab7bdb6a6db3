"""Connections of a server: limits of their number, and of the time to send headers and to read answers."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Iterable
from typing import Any, Literal, cast

from uvicorn.protocols.http.h11_impl import H11Protocol

__all__ = ["Connection", "most_connections", "sweep"]

Phase = Literal["waiting", "sending", "working", "answering"]
_MOST = 1024


def most_connections() -> int:
    """Maximum number of connections: 1,024, or half of the open files that the system allows.

    Examples
    --------
    >>> 0 < most_connections() <= 1024
    True
    """
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return _MOST
    allowed = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return _MOST if allowed == resource.RLIM_INFINITY else max(8, min(_MOST, allowed // 2))


class Connection(H11Protocol):
    """uvicorn's connection, with a limit on connections that does not lock new clients out.

    Beyond the limit, the connections that have waited longest for a complete request are closed, so normal
    clients are answered however many half-sent requests are open. uvicorn's own ``limit_concurrency`` would
    answer 503 to everybody.
    """

    most = most_connections()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.since = self.loop.time()
        self._seen: tuple[Phase, Any] = ("waiting", None)

    @property
    def phase(self) -> Phase:
        """What it waits for: headers, a body, the application, or the client to read the answer."""
        cycle = self.cycle
        if cycle is None or (cycle.response_complete and not self.transport.get_write_buffer_size()):
            return "waiting"
        if cycle.response_started:
            return "answering"
        return "sending" if cycle.more_body else "working"

    def age(self, now: float) -> tuple[Phase, float]:
        """The phase, and the seconds since it was first observed for this request."""
        state = (self.phase, self.cycle)
        if state != self._seen:
            self._seen, self.since = state, now
        return state[0], now - self.since

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Accept the connection, and close old ones if there are too many."""
        super().connection_made(transport)
        if len(self.connections) <= self.most:
            return
        now = self.loop.time()
        ages = [(one.age(now), one) for one in _ours(self.connections) if one is not self]
        unfinished = [(age, one) for (phase, age), one in ages if phase in ("waiting", "sending")]
        # Several at once, so that a flood does not cost one search per connection.
        oldest = heapq.nlargest(max(1, self.most // 16), unfinished, key=lambda pair: pair[0])
        for _, one in oldest:
            one.transport.abort()
        if not oldest:
            transport.abort()


def sweep(connections: Iterable[Any], now: float, header_seconds: float, answer_seconds: float) -> None:
    """Close connections that take too long to send headers or to read an answer.

    `AccessControl` limits the time of bodies, `RequestLimit` that of the application.
    """
    allowed = {"waiting": header_seconds, "answering": answer_seconds}
    for one in _ours(connections):
        phase, age = one.age(now)
        if age > allowed.get(phase, float("inf")):
            one.transport.abort()


def _ours(connections: Iterable[Any]) -> list[Connection]:
    return cast("list[Connection]", list(connections))

"""Bodies of requests: limits of size, time and total memory."""

from __future__ import annotations

import asyncio

from starlette.exceptions import HTTPException
from starlette.types import Message, Receive

__all__ = ["BodyReader", "replayed"]

_CLOSE = {"connection": "close"}  # the rest of the body is not read


class BodyReader:
    """Reads complete bodies before their requests are handled.

    Parameters
    ----------
    most : int
        Maximum size of a body in bytes.
    seconds : float
        Maximum time for a body to arrive.
    together : int
        Maximum total size of unfinished bodies; beyond it, the oldest ones are refused.
    """

    def __init__(self, most: int, seconds: float, together: int) -> None:
        self.most, self.seconds, self.together = most, seconds, max(most, together)
        self._held: dict[asyncio.Timeout, int] = {}  # oldest first

    @property
    def too_long(self) -> str:
        """The message for a body that is too long."""
        return f"the body is too long; expected at most {self.most:,} bytes"

    async def read(self, receive: Receive) -> bytes | None:
        """The complete body, or None if the client left before its end.

        Raises
        ------
        HTTPException
            413 if it is too long, 408 if it is too slow.
        """
        parts: list[bytes] = []
        clock = asyncio.timeout(self.seconds)
        try:
            async with clock:
                self._held[clock] = 0
                while True:
                    message = await receive()
                    if message["type"] != "http.request":
                        return None
                    parts.append(message.get("body", b""))
                    if not message.get("more_body", False):
                        break
                    self._hold(clock, len(parts[-1]))
        except TimeoutError:
            raise HTTPException(408, f"the body took more than {self.seconds:g} s", _CLOSE) from None
        finally:
            self._held.pop(clock, None)
        body = b"".join(parts)
        if len(body) > self.most:
            raise HTTPException(413, self.too_long, _CLOSE)
        return body

    def _hold(self, clock: asyncio.Timeout, size: int) -> None:
        self._held[clock] = self._held.get(clock, 0) + size
        if self._held[clock] > self.most:
            raise HTTPException(413, self.too_long, _CLOSE)
        while sum(self._held.values()) > self.together:
            oldest = next(iter(self._held))
            del self._held[oldest]
            if not oldest.expired():
                oldest.reschedule(asyncio.get_running_loop().time())


def replayed(body: bytes, receive: Receive) -> Receive:
    """A `receive` that returns a body that was read, then further messages of the client."""
    left: list[bytes] = [body]

    async def replay() -> Message:
        return {"type": "http.request", "body": left.pop(), "more_body": False} if left else await receive()

    return replay

"""What every request passes before a page sees it: who may ask, from where, how much and how slowly."""

from __future__ import annotations

import asyncio
import ipaddress
import secrets
from collections.abc import Iterable
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qsl, urlencode, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["Guard", "is_loopback"]

COOKIE = "gmlr_token"
POLICY = (
    "default-src 'self'; img-src 'self' data: blob:; object-src 'none'; base-uri 'none'; "
    "form-action 'self'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
}
_READS = ("GET", "HEAD", "OPTIONS")


def is_loopback(host: str) -> bool:
    """Whether an address or the name of a host can only be this machine.

    Examples
    --------
    >>> [is_loopback(host) for host in ("localhost", "127.0.0.1", "[::1]", "0.0.0.0", "127.0.0.1.evil.org")]
    [True, True, True, False, False]
    """
    name = host.removeprefix("[").removesuffix("]").lower()
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return name == "localhost"


class Guard:
    """ASGI middleware that refuses what no page should see, and adds the headers that browsers heed.

    - Without a token, a request must name this machine in its ``Host``: a foreign name that resolves to
      loopback (DNS rebinding) gets 421. With a token, what the attacker lacks is the token.
    - With a token, ``Authorization: Bearer TOKEN`` is asked for. A browser is let in by ``?token=TOKEN``,
      which becomes a cookie that scripts and other sites cannot use, and leaves the address bar.
    - A request that changes something and comes from another site's page (``Origin``) gets 403.
    - A body that is too long gets 413, one that comes too slowly 408.

    Parameters
    ----------
    app : ASGI application
        What comes behind it.
    token : str, optional
        What requests must know.
    max_body : int
        Bytes of a request's body.
    body_seconds : float
        How long a body may take to come.
    open_paths : iterable of str
        Paths that need no token, such as ``/health``.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        token: str | None = None,
        max_body: int = 32 << 20,
        body_seconds: float = 60.0,
        open_paths: Iterable[str] = (),
    ) -> None:
        self.app, self.token = app, token
        self.max_body, self.body_seconds = max_body, body_seconds
        self.open_paths = frozenset(open_paths)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse, or pass on."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":  # no page uses anything else
            await send({"type": f"{scope['type']}.close"})
            return

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                headers.setdefault("cache-control", "no-store")
            await send(message)

        refusal = self._refusal(scope)
        if refusal is not None:
            await refusal(scope, receive, answer)
        else:
            await self.app(scope, self._limited(receive), answer)

    def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if self.token is None and not is_loopback(_name(host)):
            return _refused(421, f"the host {host[:100]!r} is not this machine; use 127.0.0.1 or localhost")
        origin = headers.get("origin")
        if origin is not None and scope["method"] not in _READS and urlsplit(origin).netloc != host:
            return _refused(403, f"requests from pages of {origin[:100]!r} are refused")
        if self.token is not None and scope["path"] not in self.open_paths:
            query = parse_qsl(scope["query_string"].decode("latin-1"))
            given = dict(query).get("token")
            if given is not None and scope["method"] == "GET" and self._knows(given):
                return self._let_in(scope["path"], query)
            if not self._knows(_bearer(headers)) and not self._knows(_cookie(headers)):
                found = _refused(401, "expected the server's token, as 'Authorization: Bearer TOKEN'")
                found.headers["www-authenticate"] = "Bearer"
                return found
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > self.max_body:
            return _refused(413, self._too_long)
        return None

    @property
    def _too_long(self) -> str:
        return f"the body is too long; expected at most {self.max_body:,} bytes"

    def _knows(self, given: str) -> bool:
        return secrets.compare_digest(given.encode(), (self.token or "").encode())

    def _let_in(self, path: str, query: list[tuple[str, str]]) -> Response:
        rest = urlencode([(name, value) for name, value in query if name != "token"])
        # One slash: a path of two would be read as another site's name.
        target = "/" + path.lstrip("/\\") + (f"?{rest}" if rest else "")
        found = RedirectResponse(target, 303)
        found.set_cookie(COOKIE, self.token or "", httponly=True, samesite="strict")
        return found

    def _limited(self, receive: Receive) -> Receive:
        """The body as it comes, until it is too long or too late."""
        got = 0
        end = asyncio.get_running_loop().time() + self.body_seconds
        whole = False

        async def limited() -> Message:
            nonlocal got, whole
            if whole:  # what comes now is that the client has gone; nobody knows when
                return await receive()
            try:
                async with asyncio.timeout_at(end):
                    message = await receive()
            except TimeoutError:
                raise HTTPException(
                    408, f"the body took more than {self.body_seconds:g} s", {"connection": "close"}
                ) from None
            got += len(message.get("body", b""))
            if got > self.max_body:
                raise HTTPException(413, self._too_long, {"connection": "close"})
            whole = message["type"] == "http.request" and not message.get("more_body", False)
            return message

        return limited


def _refused(status: int, message: str) -> Response:
    return JSONResponse({"error": message}, status)


def _name(host: str) -> str:
    """A host without its port."""
    if host.startswith("["):
        return host.partition("]")[0] + "]"
    return host.partition(":")[0]


def _bearer(headers: Headers) -> str:
    scheme, _, given = headers.get("authorization", "").partition(" ")
    return given.strip() if scheme.lower() == "bearer" else ""


def _cookie(headers: Headers) -> str:
    try:
        found = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
    except CookieError:
        return ""
    return "" if found is None else found.value

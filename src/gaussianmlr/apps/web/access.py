"""Access control: host, origin, token and body of every request."""

from __future__ import annotations

import ipaddress
import re
import secrets
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import cookie_parser
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gaussianmlr.apps.web.answers import problem
from gaussianmlr.apps.web.bodies import BodyReader, replayed

__all__ = ["AccessControl", "Authority", "is_loopback"]

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
_AUTHORITY = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::([0-9]{1,5}))?", re.IGNORECASE | re.ASCII)
_PORTS = {"http": 80, "https": 443}
_TOGETHER = 64 << 20  # bytes of unfinished bodies


@lru_cache(maxsize=64)
def is_loopback(host: str) -> bool:
    """Whether an address or host name is always this machine.

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


class Authority(NamedTuple):
    """A host, with its port if given."""

    name: str
    port: int | None

    @classmethod
    def parse(cls, text: str) -> Authority | None:
        """Parse a ``Host`` header; None if it is malformed.

        Examples
        --------
        >>> Authority.parse("LocalHost:8000"), Authority.parse("[::1]")
        (Authority(name='localhost', port=8000), Authority(name='[::1]', port=None))
        >>> [Authority.parse(text) for text in ("localhost:80@evil.org", "[::1]evil.org", "a b", "")]
        [None, None, None, None]
        """
        found = _AUTHORITY.fullmatch(text)
        return found and cls(found[1].lower(), int(found[2]) if found[2] else None)

    def is_origin(self, origin: str) -> bool:
        """Whether an ``Origin`` header is this host.

        Examples
        --------
        >>> here = Authority("example.org", None)
        >>> [here.is_origin(text) for text in ("https://example.org:443", "http://example.org:8000", "null")]
        [True, False, False]
        """
        scheme, _, rest = origin.partition("://")
        page, usual = Authority.parse(rest), _PORTS.get(scheme)
        if page is None or usual is None:
            return False
        return (page.name, page.port or usual) == (self.name, self.port or usual)


class AccessControl:
    """ASGI middleware that refuses unwanted requests and adds security headers.

    - A malformed ``Host``, several of them, or a target that is not a path get 400. Without a token, the host
      must be this machine: another name that resolves to loopback (DNS rebinding) gets 421.
    - With a token, requests must send ``Authorization: Bearer TOKEN``. Browsers may open ``?token=TOKEN``,
      which stores the token in a cookie that scripts and other sites cannot use, and redirects.
    - A request that changes something and comes from a page of another site (``Origin``) gets 403.
    - A body that is too long gets 413, a slow one 408. The application sees a request only once its body has
      arrived, so slow clients hold only a connection.

    Parameters
    ----------
    app : ASGI application
        The application to protect.
    token : str, optional
        Token that requests must send.
    max_body : int
        Maximum size of a body in bytes.
    body_seconds : float
        Maximum time for a body to arrive.
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
        self.bodies = BodyReader(max_body, body_seconds, together=max(_TOGETHER, 4 * max_body))
        self.open_paths = frozenset(open_paths)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse the request, or pass it on."""
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

        try:
            entry = self._checked(scope)
            body = b"" if entry is not None else await self.bodies.read(receive)
        except HTTPException as error:
            await problem(error.detail, error.status_code, error.headers)(scope, receive, answer)
            return
        if entry is not None:
            await entry(scope, receive, answer)
        elif body is not None:  # else the client has left
            await self.app(scope, replayed(body, receive), answer)

    def _checked(self, scope: Scope) -> Response | None:
        """Raise a refusal; return the redirect of a browser with the token in its address."""
        headers = Headers(scope=scope)
        if not scope["path"].startswith("/") or not scope["path"].isprintable():
            raise HTTPException(400, "expected a path of printable characters that begins with /")
        hosts = headers.getlist("host")
        here = Authority.parse(hosts[0]) if len(hosts) == 1 else None
        if here is None:
            raise HTTPException(
                400, f"expected one Host header with a name and a port, got {str(hosts)[:100]}"
            )
        if self.token is None and not is_loopback(here.name):
            told = f"the host {hosts[0][:100]!r} is not this machine; use 127.0.0.1 or localhost"
            raise HTTPException(421, told)
        origins = headers.getlist("origin")
        if scope["method"] not in _READS and not all(map(here.is_origin, origins)):
            raise HTTPException(403, f"requests from pages of {str(origins)[:100]} are refused")
        if self.token is not None and scope["path"] not in self.open_paths:
            query = parse_qsl(scope["query_string"].decode("latin-1"))
            given = dict(query).get("token")
            if given is not None and scope["method"] == "GET" and self._knows(given):
                return self._let_in(scope["path"], query)
            if not self._knows(_bearer(headers)) and not self._knows(_cookie(headers)):
                told = "expected the server's token, as 'Authorization: Bearer TOKEN'"
                raise HTTPException(401, told, {"www-authenticate": "Bearer"})
        length = headers.get("content-length", "0")
        if not re.fullmatch(r"[0-9]{1,18}", length) or int(length) > self.bodies.most:
            raise HTTPException(413, self.bodies.too_long)
        return None

    def _knows(self, given: str) -> bool:
        return secrets.compare_digest(given.encode(), (self.token or "").encode())

    def _let_in(self, path: str, query: list[tuple[str, str]]) -> Response:
        rest = urlencode([(name, value) for name, value in query if name != "token"])
        # One slash: browsers read two as the name of another site.
        target = "/" + path.lstrip("/\\") + (f"?{rest}" if rest else "")
        found = RedirectResponse(target, 303)
        found.set_cookie(COOKIE, self.token or "", httponly=True, samesite="strict")
        return found


def _bearer(headers: Headers) -> str:
    scheme, _, given = headers.get("authorization", "").partition(" ")
    return given.strip() if scheme.lower() == "bearer" else ""


def _cookie(headers: Headers) -> str:
    return cookie_parser(headers.get("cookie", "")).get(COOKIE, "")

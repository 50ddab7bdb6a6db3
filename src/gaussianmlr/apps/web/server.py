"""An application with safe defaults, and a server that finishes its requests before it stops."""

from __future__ import annotations

import asyncio
import copy
import logging
import mimetypes
import signal
import socket
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

import uvicorn
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.responses import FileResponse, Response
from starlette.staticfiles import StaticFiles

from gaussianmlr import _utils
from gaussianmlr._version import __version__
from gaussianmlr.apps.web.access import AccessControl, is_loopback
from gaussianmlr.apps.web.answers import ERRORS, Json, problem
from gaussianmlr.apps.web.connections import Connection, sweep
from gaussianmlr.apps.web.counts import RequestCounts
from gaussianmlr.apps.web.limits import RETRY, RequestLimit
from gaussianmlr.errors import DataError, shorten

__all__ = [
    "HANDLERS",
    "SHARED",
    "check_listening",
    "listen",
    "make_app",
    "page",
    "refusal",
    "run_server",
    "shown_address",
]

SHARED = Path(_utils.__file__).parent / "static"  # of reports too
_STATIC = Path(__file__).parent / "static"
_BACKLOG = 128  # connections accepted at a time, so that a burst cannot use up all files before any is closed
_LEVELS = ("critical", "error", "warning", "info", "debug")  # uvicorn's "trace" shows headers


def make_app(
    title: str,
    *,
    token: str | None = None,
    max_body: int = 32 << 20,
    body_seconds: float = 60.0,
    places: int = 256,
    below: str = "/api/",
    seconds: float | None = None,
    counts: RequestCounts | None = None,
    broken: Callable[[], str | None] = lambda: None,
    description: str = "",
    lifespan: Callable[[FastAPI], Any] | None = None,
    static: Path | None = None,
    inside: Middleware | None = None,
) -> FastAPI:
    """An application with access control, limits, static files, errors as JSON, health, readiness and /docs.

    Every error is ``{"error": MESSAGE}``: a `DataError` is 400, and an unexpected error is 500
    without its traceback, which goes to standard error. ``/health`` and ``/ready`` need no token.

    Parameters
    ----------
    title, description : str
        For the description of the API at ``/openapi.json``.
    token, max_body, body_seconds
        As in `AccessControl`.
    places, below, seconds, counts
        As in `RequestLimit`.
    broken : callable, optional
        Returns why requests cannot be answered now, for ``/ready``, or None.
    lifespan : callable, optional
        As in FastAPI: an async context manager around the application's lifetime.
    static : path, optional
        A folder of files that the page loads from ``/static/NAME``; NAME is the folder's parent.
    inside : Middleware, optional
        A middleware behind access control and limits.

    Examples
    --------
    >>> from starlette.routing import Mount
    >>> app = make_app("a page")
    >>> [route.path for route in app.routes if isinstance(route, Mount)]
    ['/static/web', '/static']
    """
    counts = counts or RequestCounts()
    access = Middleware(
        AccessControl,
        token=token,
        max_body=max_body,
        body_seconds=body_seconds,
        open_paths=("/health", "/ready"),
    )
    limit = Middleware(RequestLimit, counts=counts, places=places, below=below, seconds=seconds)
    app = FastAPI(
        title=title,
        description=description,
        version=__version__,
        docs_url=None,  # FastAPI's pages load scripts from other hosts
        redoc_url=None,
        lifespan=lifespan,
        middleware=[access, limit, *([] if inside is None else [inside])],
        responses=ERRORS,
    )
    for kind in HANDLERS:
        app.add_exception_handler(kind, _refused)
    app.add_exception_handler(RequestValidationError, _validation_error)
    app.add_exception_handler(Exception, _surprise)
    mimetypes.add_type("text/javascript", ".js")  # text/plain on some systems, which browsers refuse
    if static is not None:
        app.mount(f"/static/{static.parent.name}", _Static(directory=static))
    app.mount("/static/web", _Static(directory=_STATIC))
    app.mount("/static", _Static(directory=SHARED))

    @app.get("/docs", include_in_schema=False)
    async def docs() -> Response:
        return page(_STATIC / "docs.html")

    @app.get("/health", summary="Whether the process is alive")
    async def health() -> dict[str, str]:
        return {"status": "alive"}

    @app.get("/ready", summary="Whether requests would be answered now")
    async def ready() -> Response:
        if why := broken():
            return problem(why, 503, RETRY)
        if counts.under_way >= places:
            return problem(f"busy: {places} requests are under way", 503, RETRY)
        return Json({"status": "ready"})

    return app


class _Static(StaticFiles):
    """Files that browsers cache but revalidate, so updates are seen at once."""

    def file_response(self, *args: Any, **kwargs: Any) -> Response:
        found = super().file_response(*args, **kwargs)
        found.headers["cache-control"] = "no-cache"
        return found


def page(file: Path) -> FileResponse:
    """An HTML file as an answer."""
    return FileResponse(file, media_type="text/html", headers={"cache-control": "no-cache"})


def check_listening(host: str, token: str | None) -> None:
    """Refuse to listen where others can reach the server, unless there is a token.

    Examples
    --------
    >>> check_listening("127.0.0.1", None)
    >>> check_listening("0.0.0.0", None)
    Traceback (most recent call last):
        ...
    gaussianmlr.errors.DataError: 0.0.0.0 can be reached by others: give a --token that they must know
    """
    if token is not None and (len(token) < 8 or not token.isascii() or not token.isprintable()):
        raise DataError("expected a token of 8 or more printable ASCII characters")
    if token is not None and not set(token).isdisjoint(' ",;\\'):
        raise DataError('expected a token without spaces and any of " , ; \\')
    if token is None and not is_loopback(host):
        raise DataError(f"{host} can be reached by others: give a --token that they must know")


def run_server(
    app: FastAPI,
    host: str = "127.0.0.1",
    port: int = 8000,
    *,
    token: str | None = None,
    say: Callable[[str], None] | None = None,
    grace: float = 30.0,
    log_level: str = "warning",
    listener: socket.socket | None = None,
    header_seconds: float = 10.0,
    answer_seconds: float = 120.0,
    lifeline: int | None = None,
) -> None:
    """Serve until SIGINT or SIGTERM; requests under way are finished first.

    Parameters
    ----------
    app : FastAPI
        An application of `make_app`, with the same token.
    host : str
        Address to listen at. Any but loopback needs a token.
    port : int
        0 takes a free one.
    token : str, optional
        As given to `make_app`.
    say : callable, optional
        Called with the address once connections are accepted; it is printed by default. The address includes
        the token only if standard output is a terminal.
    grace : float
        Seconds that requests under way have to finish.
    log_level : str
        Of uvicorn; requests are logged at ``"info"``, without their query.
    listener : socket, optional
        The result of `listen` for this address, if it was opened earlier.
    header_seconds : float
        Maximum time to send the headers of a request, and of an idle connection.
    answer_seconds : float
        Maximum time to read an answer.
    lifeline : int, optional
        A file descriptor: the server also stops when it reaches its end; see `processes.run_processes`.

    Raises
    ------
    DataError
        If it is not possible to listen at the address.
    """
    check_listening(host, token)
    if log_level not in _LEVELS:
        raise DataError(f"log_level is {shorten(log_level)}; expected one of {', '.join(_LEVELS)}")
    listener = listen(host, port) if listener is None else listener
    address, shown = _address(host, listener), shown_address(host, listener, token)
    config = uvicorn.Config(
        app,
        http=Connection,
        backlog=_BACKLOG,
        log_config=_log_config(),
        log_level=log_level,
        access_log=log_level in ("info", "debug"),
        server_header=False,
        proxy_headers=False,
        ws="none",
        timeout_keep_alive=max(1, round(header_seconds)),
        timeout_graceful_shutdown=max(1, round(grace)),
    )
    tell = say or (lambda text: print(text, flush=True))  # pipes are buffered
    server = _Server(config, lambda: tell(shown), (header_seconds, answer_seconds), lifeline)
    if threading.current_thread() is threading.main_thread():
        # uvicorn sends itself the signal again at the end, when nothing is left to stop.
        signal.signal(signal.SIGTERM, lambda *_: None)
    try:
        server.run(sockets=[listener])
    except KeyboardInterrupt:
        pass
    finally:
        listener.close()
    if not server.started:
        raise DataError(f"the server at {address} could not start; see the message above")


class _Server(uvicorn.Server):
    """Reports its address once it can be reached, and closes connections that take too long."""

    def __init__(
        self,
        config: uvicorn.Config,
        began: Callable[[], None],
        patience: tuple[float, float],
        lifeline: int | None,
    ) -> None:
        super().__init__(config)
        self._began, self._patience, self._lifeline = began, patience, lifeline

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._began()
            if self._lifeline is not None:
                asyncio.get_running_loop().add_reader(self._lifeline, self._leave)

    def _leave(self) -> None:
        self.should_exit = True
        asyncio.get_running_loop().remove_reader(cast(int, self._lifeline))

    async def on_tick(self, counter: int) -> bool:
        if counter % 5 == 0:  # twice per second
            sweep(self.server_state.connections, asyncio.get_running_loop().time(), *self._patience)
        return await super().on_tick(counter)


def _log_config() -> dict[str, Any]:
    """Logging of uvicorn, without the queries of URLs."""
    found: dict[str, Any] = copy.deepcopy(uvicorn.config.LOGGING_CONFIG)
    found["filters"] = {"no_query": {"()": lambda: _without_query}}
    found["loggers"]["uvicorn.access"]["filters"] = ["no_query"]
    return found


def _without_query(record: logging.LogRecord) -> bool:
    if isinstance(record.args, tuple):
        record.args = tuple(one.partition("?")[0] if isinstance(one, str) else one for one in record.args)
    return True


def listen(host: str, port: int) -> socket.socket:
    """A listening socket; port 0 takes a free one.

    Raises
    ------
    DataError
        If it is not possible to listen at the address.
    """
    plain = host.removeprefix("[").removesuffix("]")
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(plain, port, type=socket.SOCK_STREAM)[0]
        # asyncio sets TCP_NODELAY only where the protocol is named; else answers wait 40 ms for an ACK.
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise DataError(f"{host} is not an address to listen at: {error.strerror or error}") from None
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(place)
        listener.listen(1024)
    except OSError as error:
        listener.close()
        raise DataError(f"cannot listen at {host}, port {port}: {error.strerror or error}") from None
    return listener


def _address(host: str, listener: socket.socket) -> str:
    plain, port = host.removeprefix("[").removesuffix("]"), listener.getsockname()[1]
    return f"http://[{plain}]:{port}/" if ":" in plain else f"http://{plain}:{port}/"


def shown_address(host: str, listener: socket.socket, token: str | None) -> str:
    """The address to open, with the token on a terminal only: other output may be kept as a log."""
    address = _address(host, listener)
    return f"{address}?token={token}" if token is not None and sys.stdout.isatty() else address


def _data_error(error: Any) -> Response:
    return problem(str(error), 400)


def _beyond(error: Any) -> Response:
    """Values of JSON that files and databases cannot store: 10 ** 400, half a surrogate pair."""
    return problem(f"a number is too large, or a text is not Unicode: {error}", 400)


def _http_error(error: Any) -> Response:
    return problem(error.detail, error.status_code, error.headers)


HANDLERS: dict[type[Exception], Callable[[Any], Response]] = {
    DataError: _data_error,
    HTTPException: _http_error,
    OverflowError: _beyond,
    UnicodeEncodeError: _beyond,
}


def refusal(error: Exception) -> Response:
    """The answer to a request that raised one of the errors of `HANDLERS`."""
    return next(handle for kind, handle in HANDLERS.items() if isinstance(error, kind))(error)


def _refused(_: Request, error: Exception) -> Response:
    return refusal(error)


def _validation_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    return problem("; ".join(map(_invalid, error.errors()[:10])), 422)


def _invalid(one: Mapping[str, Any]) -> str:
    if one["type"] == "json_invalid":
        return f"the body is not JSON: {one['ctx']['error']}, at character {one['loc'][-1]}"
    where, given = ".".join(map(str, one["loc"]))[:200], one.get("input")
    # The repr of a long list may be expensive.
    got = f"{type(given).__name__} of {len(given):,}" if isinstance(given, list | dict) else shorten(given)
    wanted = "expected a file" if "UploadFile" in one["msg"] else one["msg"]
    return f"{where}: {wanted}, got {got}"


def _surprise(_: Request, error: Exception) -> Response:
    return problem("something went wrong in the server; see its log", 500)

"""What all pages share: an application with safe defaults, and a server that ends what it began."""

from __future__ import annotations

import mimetypes
import signal
import socket
import threading
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.staticfiles import StaticFiles

from gaussianmlr._version import __version__
from gaussianmlr.errors import DataError, shorten
from gaussianmlr.pages.guard import Guard, is_loopback

__all__ = ["STATIC", "check_listening", "listen", "make_app", "page", "run_server"]

STATIC = Path(__file__).parent / "static"
_CONNECTIONS = 1024  # more at a time are sent away before they cost memory


def make_app(
    title: str,
    *,
    token: str | None = None,
    max_body: int = 32 << 20,
    body_seconds: float = 60.0,
    open_paths: Iterable[str] = (),
    inner: Iterable[Middleware] = (),
    description: str = "",
    lifespan: Callable[[FastAPI], Any] | None = None,
) -> FastAPI:
    """An application behind a `Guard`, with the shared files below ``/static`` and errors as JSON.

    Every error is ``{"error": MESSAGE}``: a `DataError` is 400, and what nobody expected is 500
    without its traceback, which goes to standard error.

    Parameters
    ----------
    title, description : str
        For the description of the API at ``/openapi.json``.
    token, max_body, body_seconds, open_paths
        As of `Guard`.
    inner : iterable of Middleware
        What requests pass after the guard.
    lifespan : callable, optional
        As of FastAPI: an async context manager around the life of the application.

    Examples
    --------
    >>> from starlette.routing import Mount
    >>> app = make_app("a page")
    >>> [route.path for route in app.routes if isinstance(route, Mount)]
    ['/static']
    """
    limits: dict[str, Any] = {"token": token, "max_body": max_body, "body_seconds": body_seconds}
    limits["open_paths"] = tuple(open_paths)
    # The pages for humans that FastAPI brings load scripts from elsewhere.
    app = FastAPI(
        title=title,
        description=description,
        version=__version__,
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
        middleware=[Middleware(Guard, **limits), *inner],
    )
    app.add_exception_handler(DataError, _data_error)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(RequestValidationError, _validation_error)
    app.add_exception_handler(Exception, _surprise)
    mimetypes.add_type("text/javascript", ".js")  # some systems say text/plain, which browsers refuse
    app.mount("/static", _Static(directory=STATIC))
    return app


class _Static(StaticFiles):
    """Files that browsers keep, but ask about: an update is seen at once."""

    def file_response(self, *args: Any, **kwargs: Any) -> Response:
        found = super().file_response(*args, **kwargs)
        found.headers["cache-control"] = "no-cache"
        return found


def page(name: str) -> FileResponse:
    """An HTML file of ``pages/static`` as an answer.

    Parameters
    ----------
    name : str
        Its name, such as ``"play.html"``.
    """
    return FileResponse(STATIC / name, media_type="text/html", headers={"cache-control": "no-cache"})


def check_listening(host: str, token: str | None) -> None:
    """Refuse to listen where others can reach the server, without a token that they must know.

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
) -> None:
    """Serve until SIGINT or SIGTERM; what is under way by then is finished first.

    Parameters
    ----------
    app : FastAPI
        What `make_app` made, with the same token.
    host : str
        Address to listen at. Any but loopback needs a token.
    port : int
        0 takes a free one.
    token : str, optional
        As given to `make_app`.
    say : callable, optional
        Is told the address, once connections are accepted; it is printed without this.
    grace : float
        Seconds that requests under way have at the end.
    log_level : str
        Of uvicorn; requests are logged at ``"info"``.
    listener : socket, optional
        What `listen` gave for this address, where that came before other work.

    Raises
    ------
    DataError
        Where the address cannot be listened at.
    """
    check_listening(host, token)
    listener = listen(host, port) if listener is None else listener
    address = _address(host, listener.getsockname()[1])
    config = uvicorn.Config(
        app,
        log_level=log_level,
        access_log=log_level in ("info", "debug", "trace"),
        server_header=False,
        proxy_headers=False,
        ws="none",
        limit_concurrency=_CONNECTIONS,
        timeout_graceful_shutdown=max(1, round(grace)),
    )
    tell = say or (lambda text: print(text, flush=True))  # a pipe would keep it back
    server = _Server(config, lambda: tell(address if token is None else f"{address}?token={token}"))
    if threading.current_thread() is threading.main_thread():
        # uvicorn sends itself the signal again once all is done; there is nothing left to end by then.
        signal.signal(signal.SIGTERM, lambda *_: None)
    try:
        server.run(sockets=[listener])
    except KeyboardInterrupt:
        pass
    finally:
        listener.close()
    if not server.started:
        raise DataError(f"the server at {address} could not begin; the reason stands above")


class _Server(uvicorn.Server):
    """Says where it is once it can be reached."""

    def __init__(self, config: uvicorn.Config, began: Callable[[], None]) -> None:
        super().__init__(config)
        self._began = began

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._began()


def listen(host: str, port: int) -> socket.socket:
    """A socket that accepts connections; 0 takes a free port.

    Raises
    ------
    DataError
        Where the address cannot be listened at.
    """
    plain = host.removeprefix("[").removesuffix("]")
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(plain, port, type=socket.SOCK_STREAM)[0]
        # asyncio sets TCP_NODELAY only where the protocol is named; else answers wait 40 ms for an ACK.
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise DataError(f"{host} is no address to listen at: {error.strerror or error}") from None
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(place)
        listener.listen(1024)
    except OSError as error:
        listener.close()
        raise DataError(f"cannot listen at {host}, port {port}: {error.strerror or error}") from None
    return listener


def _address(host: str, port: int) -> str:
    plain = host.removeprefix("[").removesuffix("]")
    return f"http://[{plain}]:{port}/" if ":" in plain else f"http://{plain}:{port}/"


def _data_error(_: Request, error: Exception) -> Response:
    return JSONResponse({"error": str(error)}, 400)


def _http_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return JSONResponse({"error": error.detail}, error.status_code, error.headers)


def _validation_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    return JSONResponse({"error": "; ".join(map(_problem, error.errors()[:10]))}, 422)


def _problem(one: Mapping[str, Any]) -> str:
    if one["type"] == "json_invalid":
        return f"the body is no JSON: {one['ctx']['error']}, at character {one['loc'][-1]}"
    where, got = ".".join(map(str, one["loc"])), shorten(one.get("input"))
    wanted = "expected a file" if "UploadFile" in one["msg"] else one["msg"]
    return f"{where}: {wanted}, got {got}"


def _surprise(_: Request, error: Exception) -> Response:
    return JSONResponse({"error": "something went wrong in the server; its log says what"}, 500)

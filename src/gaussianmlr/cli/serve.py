"""`gmlr serve`: a model behind an HTTP JSON API; `gmlr try`: its page."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gaussianmlr.cli.options import (
    BatchSize,
    Host,
    ModelFolder,
    Port,
    Threads,
    Token,
    Trust,
    need_pages,
    working,
)

if TYPE_CHECKING:
    from gaussianmlr.apps.serve.app import Limits
    from gaussianmlr.model.model import Model


def serve_command(
    model: ModelFolder,
    host: Host = "127.0.0.1",
    port: Port = 8000,
    token: Token = None,
    requests: Annotated[int, typer.Option(min=1, help="Concurrent requests; more are answered 503.")] = 64,
    count: Annotated[int, typer.Option(min=1, help="Instances per request.")] = 256,
    megabytes: Annotated[float, typer.Option(min=0.001, help="Size of a request.")] = 16.0,
    pixels: Annotated[int, typer.Option(min=1, help="Pixels of a picture.")] = 32_000_000,
    seconds: Annotated[float, typer.Option(min=0.01, help="To send a request, and to answer it.")] = 30.0,
    batch_size: BatchSize = 64,
    workers: Annotated[
        int, typer.Option(min=1, max=256, help="Processes that answer; they share one model in memory.")
    ] = 1,
    threads: Threads = None,
    trust: Trust = None,
    log: Annotated[bool, typer.Option("--log", help="Show each request on standard error.")] = False,
) -> None:
    """Answer predictions over HTTP: rows, or images as files or base64; described at /docs.

    Example: `gmlr serve runs/photos`, then `curl -F images=@a.jpg http://127.0.0.1:8000/predict/files`; in a
    browser, the address is a page to try the model.

    Ctrl-C or SIGTERM ends it after the requests under way. Exit code: 0, or 2 for something to fix.
    """
    need_pages("gmlr serve")
    from gaussianmlr.apps.serve.app import Limits

    limits = Limits(requests, count, round(megabytes * (1 << 20)), pixels, seconds, batch_size)
    more = "" if workers == 1 else f", {workers} workers"
    _serve(
        model,
        limits,
        host,
        port,
        token,
        threads,
        log,
        lambda loaded, address: f"{loaded!r} at {address}{more}",
        workers,
    )


def try_command(
    model: ModelFolder,
    host: Host = "127.0.0.1",
    port: Port = 8000,
    token: Token = None,
    threads: Threads = None,
    trust: Trust = None,
) -> None:
    """Open a page to try a model: drop a picture or fill in a row, and see what the model says of it.

    Example: `gmlr try runs/photos`, then open the printed address. It is the page of `gmlr serve`.
    """
    need_pages("gmlr try")
    from gaussianmlr.apps.serve.app import Limits

    _serve(model, Limits(), host, port, token, threads, False, lambda _, address: f"Open {address}")


def _serve(
    folder: Path,
    limits: Limits,
    host: str,
    port: int,
    token: str | None,
    threads: int | None,
    log: bool,
    say: Callable[[Model, str], str],
    workers: int = 1,
) -> None:
    from gaussianmlr.apps.serve.app import serving_app
    from gaussianmlr.apps.serve.together import serve_together
    from gaussianmlr.apps.web.server import check_listening, run_server
    from gaussianmlr.inference.matching import open_model
    from gaussianmlr.model.quick import quickened

    level = "info" if log else "warning"
    if workers > 1:
        serve_together(
            lambda: open_model(folder),
            workers,
            limits,
            host,
            port,
            token=token,
            threads=threads,
            say=lambda loaded, address: typer.echo(say(loaded, address)),
            log_level=level,
        )
        return
    check_listening(host, token)
    loaded = open_model(folder)
    with working(threads):
        run_server(
            serving_app(quickened(loaded), limits, token),
            host,
            port,
            say=lambda address: typer.echo(say(loaded, address)),
            token=token,
            grace=2 * limits.seconds,
            log_level=level,
        )

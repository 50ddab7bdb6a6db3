"""`gmlr serve`: a model behind an HTTP JSON API."""

from __future__ import annotations

from typing import Annotated

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
    threads: Threads = None,
    trust: Trust = None,
    log: Annotated[bool, typer.Option("--log", help="Show each request on standard error.")] = False,
) -> None:
    """Answer predictions over HTTP: rows, or images as files or base64; described at /openapi.json.

    Example: `gmlr serve runs/photos`, then `curl -F images=@a.jpg http://127.0.0.1:8000/predict/files`.

    Ctrl-C or SIGTERM ends it after the requests under way. Exit code: 0, or 2 for something to fix.
    """
    need_pages("gmlr serve")
    from gaussianmlr.apps.serve.app import Limits, serving_app
    from gaussianmlr.apps.web.server import check_listening, run_server
    from gaussianmlr.inference.matching import open_model
    from gaussianmlr.model.quick import quickened

    check_listening(host, token)
    limits = Limits(requests, count, round(megabytes * (1 << 20)), pixels, seconds, batch_size)
    loaded = open_model(model)
    with working(threads):
        run_server(
            serving_app(quickened(loaded), limits, token),
            host,
            port,
            say=lambda address: typer.echo(f"{loaded!r} at {address}"),
            token=token,
            grace=2 * seconds,
            log_level="info" if log else "warning",
        )

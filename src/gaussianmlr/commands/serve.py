"""`gmlr serve`: a model behind an HTTP JSON API."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Host = Annotated[str, typer.Option(help="Address to listen at; any but loopback needs --token.")]
Port = Annotated[int, typer.Option(min=0, max=65_535, help="0 takes a free one.")]
Token = Annotated[
    str | None,
    typer.Option(envvar="GMLR_TOKEN", help="What requests must know: 'Authorization: Bearer TOKEN'."),
]


def serve_command(
    model: Annotated[Path, typer.Argument(help="Folder of a model, or of the run that made it.")],
    host: Host = "127.0.0.1",
    port: Port = 8000,
    token: Token = None,
    requests: Annotated[int, typer.Option(min=1, help="Requests under way; more are answered 503.")] = 64,
    count: Annotated[int, typer.Option(min=1, help="Instances in a request.")] = 256,
    megabytes: Annotated[float, typer.Option(min=0.001, help="Size of a request.")] = 16.0,
    pixels: Annotated[int, typer.Option(min=1, help="Pixels of a picture.")] = 32_000_000,
    seconds: Annotated[float, typer.Option(min=0.01, help="To send a request, and to answer it.")] = 30.0,
    batch_size: Annotated[int, typer.Option(min=1, help="Instances through the network at once.")] = 64,
    log: Annotated[bool, typer.Option("--log", help="Show each request on standard error.")] = False,
) -> None:
    """Answer predictions over HTTP: rows, or images as files or base64; described at /openapi.json.

    Example: `gmlr serve runs/photos`, then `curl -F images=@a.jpg http://127.0.0.1:8000/predict/files`.

    Ctrl-C or SIGTERM ends it, after what is under way. Exit code: 0, or 2 where something is to mend.
    """
    need_pages("gmlr serve")
    from gaussianmlr.measuring import open_model
    from gaussianmlr.pages.base import check_listening, run_server
    from gaussianmlr.pages.serving import Limits, serving_app

    check_listening(host, token)
    limits = Limits(requests, count, round(megabytes * (1 << 20)), pixels, seconds, batch_size)
    loaded = open_model(model)
    run_server(
        serving_app(loaded, limits, token),
        host,
        port,
        say=lambda address: typer.echo(f"{loaded!r} at {address}"),
        token=token,
        grace=2 * seconds,
        log_level="info" if log else "warning",
    )


def need_pages(what: str) -> None:
    """Say what to install, where the packages of the pages are missing."""
    from importlib.util import find_spec

    from gaussianmlr.errors import DataError

    if missing := [name for name in ("fastapi", "uvicorn", "python_multipart") if find_spec(name) is None]:
        raise DataError(f"{what} needs {', '.join(missing)}: pip install 'gaussianmlr[pages]'")

"""`gmlr play`: a page where people move digits and see what a model says."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gaussianmlr.commands.serve import Host, Port, Token, need_pages


def play_command(
    model: Annotated[
        Path | None,
        typer.Option(help="Folder of a model of digits, or of its run; without it, one trained on gray-s."),
    ] = None,
    host: Host = "127.0.0.1",
    port: Port = 8000,
    token: Token = None,
    digits: Annotated[str, typer.Option(help="Where digits come from, as in gmlr data.")] = "auto",
) -> None:
    """Open a page to move digits on a canvas and see what a model says of them, live.

    Examples: `gmlr play`, or with a model of your own, `gmlr train color-s --out runs/color` and then
    `gmlr play --model runs/color`.
    """
    need_pages("gmlr play")
    from gaussianmlr.data import load_digits
    from gaussianmlr.measuring import open_model
    from gaussianmlr.pages.base import check_listening, run_server
    from gaussianmlr.pages.playing import SHIPPED, playing_app

    check_listening(host, token)
    app = playing_app(open_model(model or SHIPPED), load_digits("test", digits), token)
    run_server(app, host, port, token=token, say=lambda address: typer.echo(f"Open {address}"))

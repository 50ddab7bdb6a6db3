"""`gmlr play`: a page to move digits or see a film of them, with the predictions of models."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from gaussianmlr.cli.options import Host, Port, Token, Trust, need_pages

PLAYED = ("shipped:gray-s", "shipped:gray-s-crpc")  # side by side


def play_command(
    model: Annotated[
        list[Path] | None,
        typer.Option(
            help="Folder of a model of digits, or of its run; up to four are shown side by side. "
            "By default those that come with the package, trained on gray-s."
        ),
    ] = None,
    host: Host = "127.0.0.1",
    port: Port = 8000,
    token: Token = None,
    digits: Annotated[str, typer.Option(help="Source of the digits, as in gmlr data.")] = "auto",
    trust: Trust = None,
) -> None:
    """Serve a page to move digits on a canvas, or see them in a film, with live predictions of models.

    Examples: `gmlr play`, or with models of your own, `gmlr train color-s --out runs/color` and then
    `gmlr play --model runs/color`, or `gmlr play --model runs/gmlr --model runs/lsep` to compare two.
    """
    need_pages("gmlr play")
    from gaussianmlr.apps.play.app import playing_app
    from gaussianmlr.apps.web.server import check_listening, run_server
    from gaussianmlr.data import load_digits
    from gaussianmlr.inference.matching import open_model
    from gaussianmlr.model.shipped import place_of

    check_listening(host, token)
    models = {name: open_model(folder) for name, folder in _named(map(place_of, model or PLAYED)).items()}
    app = playing_app(models, load_digits("test", digits), token)
    run_server(app, host, port, token=token, say=lambda address: typer.echo(f"Open {address}"))


def _named(folders: Iterable[Path]) -> dict[str, Path]:
    """Folders by names that tell them apart: their own or, for a run's ``model``, the run's."""
    found: dict[str, Path] = {}
    for folder in folders:
        place = folder.resolve()
        name = place.parent.name if place.name == "model" else place.name
        same = sum(one == name or one.startswith(f"{name}, ") for one in found)
        found[name if not same else f"{name}, {same + 1}"] = folder
    return found

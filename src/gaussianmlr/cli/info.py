"""`gmlr info`: what a model or a run contains."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from gaussianmlr.cli.options import AsJson, print_json


def info_command(
    path: Annotated[Path, typer.Argument(help="Folder of a model, or of a run.")],
    as_json: AsJson = False,
) -> None:
    """Show inputs and labels of a model, its training, and the progress of a run."""
    from gaussianmlr.training.describe import describe

    found = describe(path)
    if as_json:
        print_json(found)
        return
    for name, value in found.items():
        if name == "metrics":
            from gaussianmlr._utils.display import metrics_table

            typer.echo(metrics_table({str(found.get("measured on", "measured")): value}))
        elif value not in ({}, [], None) and name not in ("recipe", "measured on"):
            typer.echo(f"{name + ':':<15} {_shown(value)}")


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {_shown(one)}" for key, one in value.items())
    if isinstance(value, list):
        more = f", ... ({len(value)})" if len(value) > 20 else ""
        return ", ".join(map(str, value[:20])) + more
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)

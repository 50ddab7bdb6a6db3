"""`gmlr info`: what a model or a run says of itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer


def info_command(
    path: Annotated[Path, typer.Argument(help="Folder of a model, or of a run.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for machines.")] = False,
) -> None:
    """Show what a model takes and knows, how it was trained, and how far a run has come."""
    from gaussianmlr.describing import describe

    found = describe(path)
    if as_json:
        typer.echo(json.dumps(found, indent=2, ensure_ascii=False))
        return
    for name, value in found.items():
        if name == "metrics":
            from gaussianmlr.console import metrics_table

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

"""`gmlr info`: what a model or a run contains."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from gaussianmlr.cli.options import AsJson, print_json

_MOST_COLUMNS = 50  # that are shown


def info_command(
    path: Annotated[Path, typer.Argument(help="Folder of a model, or of a run, or shipped:NAME.")],
    as_json: AsJson = False,
) -> None:
    """Show inputs and labels of a model, its training, and the progress of a run."""
    from gaussianmlr.training.describe import describe

    found = describe(path)
    if as_json:
        print_json(found)
        return
    for name, value in found.items():
        if name == "metrics" and value:
            typer.echo(_metrics(found))
        elif name == "columns" and value:
            typer.echo(_columns(value))
        elif name == "last tau_b":
            typer.echo(f"{'last tau-b:':<15} {100 * value:.2f}")
        elif name == "calibration error" and value:
            errors = (f"{what} {_percent(error)}" for what, error in value.items())
            typer.echo(f"{name + ':':<15} {', '.join(errors)}")
        elif value not in ({}, [], None) and name not in ("recipe", "measured on", "peers"):
            typer.echo(f"{name + ':':<15} {_shown(value)}")


def _metrics(found: dict[str, Any]) -> str:
    """The metrics of a model and of its peers, in percent."""
    from gaussianmlr._utils.display import LEGEND, metrics_table
    from gaussianmlr.comparison.peers import Peers

    rows = {str(found.get("measured on") or "measured"): found["metrics"]}
    rows |= Peers.of_training(found.get("peers")).metrics
    return f"{metrics_table(rows)}\n({LEGEND})"


def _columns(columns: dict[str, str]) -> str:
    """What the first columns hold, one per line."""
    shown = [f"  {column}: {held}" for column, held in list(columns.items())[:_MOST_COLUMNS]]
    left = len(columns) - len(shown)
    return "\n".join(["columns:", *shown, *([f"  ... and {left:,} more; --json shows all"] if left else [])])


def _percent(error: dict[str, float | None]) -> str:
    return ", ".join(f"{100 * value:.2f} {when}" for when, value in error.items() if value is not None)


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {_shown(one)}" for key, one in value.items())
    if isinstance(value, list):
        more = f", ... ({len(value)})" if len(value) > 20 else ""
        return ", ".join(map(str, value[:20])) + more
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)

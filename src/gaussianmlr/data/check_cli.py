"""`gmlr data check`: every problem of a data set at once."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from gaussianmlr.commands.options import Labels, Threshold, Tolerance, listed


def check_command(
    path: Annotated[
        Path,
        typer.Argument(
            help="A table, a manifest of pictures or a folder with one, NSID or AVDP; or an archive."
        ),
    ],
    labels: Labels = None,
    threshold: Threshold = None,
    tolerance: Tolerance = 0.0,
    plot: Annotated[Path | None, typer.Option(help="Draw the statistics into this PNG.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Warnings count as problems too.")] = False,
) -> None:
    """List every problem of a data set and what it holds.

    Exit code: 0 nothing to mend, 1 problems found, 2 it cannot be read.
    """
    from gaussianmlr.data.checking import check

    report = check(
        path,
        labels=listed(labels),
        threshold=threshold,
        tolerance=tolerance,
        shown=sys.stderr.isatty(),
    )
    typer.echo(json.dumps(report.to_dict(), indent=2, allow_nan=False) if as_json else repr(report))
    if plot is not None and report.data is not None:
        report.plot(plot)
        typer.echo(f"plot: {plot}", err=True)
    if report.errors or (strict and report.warnings):
        raise typer.Exit(1)

"""`gmlr data check`: every problem of a data set at once."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from gaussianmlr.cli.options import AsJson, Labels, Threshold, Tolerance, listed, print_json
from gaussianmlr.cli.tables import reads_tables


@reads_tables()
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
    as_json: AsJson = False,
    strict: Annotated[bool, typer.Option("--strict", help="Warnings count as problems too.")] = False,
    layout: Any = None,
) -> None:
    """List every problem of a data set and what it holds.

    Exit code: 0 nothing to fix, 1 problems found, 2 it cannot be read.
    """
    from gaussianmlr.data.checks.run import check

    report = check(
        path,
        labels=listed(labels),
        threshold=threshold,
        tolerance=tolerance,
        layout=layout,
        shown=sys.stderr.isatty(),
    )
    print_json(report.to_dict()) if as_json else typer.echo(repr(report))
    if plot is not None and report.data is not None:
        report.plot(plot)
        typer.echo(f"plot: {plot}", err=True)
    if report.errors or (strict and report.warnings):
        raise typer.Exit(1)

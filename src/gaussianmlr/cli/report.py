"""`gmlr report`: a run or a comparison as one page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from gaussianmlr.cli.options import (
    BatchSize,
    Digits,
    EscapeFormulas,
    NoPeers,
    Quiet,
    Threads,
    Threshold,
    Tolerance,
    Trust,
    working,
)
from gaussianmlr.cli.tables import OF_A_MODEL, reads_tables


@reads_tables(*OF_A_MODEL, part=True)
def report_command(
    folder: Annotated[
        Path,
        typer.Argument(metavar="RUN|COMPARISON", help="Folder that `gmlr train` or `gmlr compare` made."),
    ],
    out: Annotated[Path | None, typer.Option(help="The file; by default report.html in the folder.")] = None,
    data: Annotated[
        str | None,
        typer.Option(help="Of a run: data with orders to measure on; by default the run's own."),
    ] = None,
    split: Annotated[
        str | None,
        typer.Option(
            help="The part to measure on: test, validation, train, any other name, or all. By default "
            "validation for the run's own data, and test for --data if it has one."
        ),
    ] = None,
    size: Annotated[int | None, typer.Option(min=1, help="Ranked MNIST: how many images.")] = None,
    digits: Digits = "auto",
    threshold: Threshold = None,
    tolerance: Tolerance = 0.0,
    items: Annotated[
        int,
        typer.Option(min=1, help="Maximum number of instances; of more, a sample is drawn."),
    ] = 2_000,
    examples: Annotated[int, typer.Option(min=0, max=50, help="Best and worst instances to show.")] = 6,
    batch_size: BatchSize = 64,
    no_peers: NoPeers = False,
    threads: Threads = None,
    trust: Trust = None,
    quiet: Quiet = False,
    escape_formulas: EscapeFormulas = False,
    layout: Any = None,
) -> None:
    """Write one HTML page about a run or a comparison, which needs no other files.

    Of a run: recipe, curves, metrics, reliability, confusion of order, abstention, best and worst examples;
    of a comparison: table, tests, picture, cells. The numbers can be saved from the page.

    Examples: `gmlr report runs/hikes`, `gmlr report runs/photos --data photos/ --split test`,
    `gmlr report runs/who --out who.html`.
    """
    from gaussianmlr.report import Wanted, write_report

    wanted = Wanted(data, split, size, digits, threshold, tolerance, items, batch_size, layout, not no_peers)
    with working(threads, quiet) as watcher:
        file = write_report(
            folder,
            out,
            wanted=wanted,
            examples=examples,
            progress=watcher.measured,
            escape_formulas=escape_formulas,
        )
    typer.echo(str(file))

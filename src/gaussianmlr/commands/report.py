"""`gmlr report`: a run or a comparison as one page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gaussianmlr.commands.options import Digits, Quiet, Threshold, Tolerance


def report_command(
    folder: Annotated[
        Path,
        typer.Argument(metavar="RUN|COMPARISON", help="Folder that `gmlr train` or `gmlr compare` made."),
    ],
    out: Annotated[Path | None, typer.Option(help="The file; report.html in the folder without it.")] = None,
    data: Annotated[
        str | None,
        typer.Option(help="Of a run: data with orders to measure on; the run's own without it."),
    ] = None,
    split: Annotated[
        str | None,
        typer.Option(
            help="The part to measure on: test, validation, train, any other name, or all. Without it, "
            "validation of the run's own data, and of --data test where it has one."
        ),
    ] = None,
    size: Annotated[int | None, typer.Option(min=1, help="Ranked MNIST: how many images.")] = None,
    digits: Digits = "auto",
    threshold: Threshold = None,
    tolerance: Tolerance = 0.0,
    items: Annotated[
        int, typer.Option(min=1, help="Instances to measure on at most; of more, a sample is drawn.")
    ] = 2_000,
    examples: Annotated[int, typer.Option(min=0, max=50, help="Best and worst instances to show.")] = 6,
    batch_size: Annotated[int, typer.Option(min=1, help="Instances at once.")] = 64,
    quiet: Quiet = False,
) -> None:
    """Write one HTML page about a run or a comparison, which opens anywhere and needs nothing else.

    Of a run: recipe, curves, metrics, reliability, confusion of order, abstention, best and worst examples;
    of a comparison: table, tests, picture, cells. The numbers can be saved from the page.

    Examples: `gmlr report runs/hikes`, `gmlr report runs/photos --data photos/ --split test`,
    `gmlr report runs/who --out who.html`.
    """
    from gaussianmlr.console import ConsoleWatcher
    from gaussianmlr.reporting import Wanted, write_report

    wanted = Wanted(data, split, size, digits, threshold, tolerance, items, batch_size)
    watcher = ConsoleWatcher(quiet)
    try:
        file = write_report(folder, out, wanted=wanted, examples=examples, progress=watcher.measured)
    finally:
        watcher.close()
    typer.echo(str(file))

"""`gmlr evaluate`: the metrics of a model on data."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from gaussianmlr.cli import options
from gaussianmlr.cli.tables import OF_A_MODEL, reads_tables


@reads_tables(*OF_A_MODEL, part=True)
def evaluate_command(
    model: options.ModelFolder,
    data: Annotated[str, typer.Argument(help="Data with orders, as for `gmlr train`.")],
    split: Annotated[
        str, typer.Option(help="The part to measure on: test, validation, train, any other name, or all.")
    ] = "test",
    size: Annotated[int | None, typer.Option(help="Ranked MNIST: how many images.")] = None,
    digits: options.Digits = "auto",
    stream: options.Stream = None,
    threshold: options.Threshold = None,
    tolerance: options.Tolerance = 0.0,
    batch_size: options.BatchSize = 64,
    no_peers: options.NoPeers = False,
    threads: options.Threads = None,
    trust: options.Trust = None,
    as_json: options.AsJson = False,
    layout: Any = None,
) -> None:
    """Measure a model: the paper's six metrics, in percent, and how far its probabilities are off.

    Labels and columns are matched by name. Beside the model: a constant order and, for tables, a random
    forest, both learned from the run's training part.

    Examples: `gmlr evaluate runs/hikes hikes.csv`, `gmlr evaluate runs/gray gray-s --size 2000 --json`.
    """
    from gaussianmlr.comparison.peers import NO_PEERS, measure_peers
    from gaussianmlr.data.streaming.sets import rows_of_peers
    from gaussianmlr.inference.matching import open_model, open_test
    from gaussianmlr.training.fit import evaluate_calibration

    loaded = open_model(model)
    with options.working(threads) as watcher:
        found, notes = open_test(
            loaded,
            data,
            split,
            size=size,
            digits=digits,
            threshold=threshold,
            tolerance=tolerance,
            layout=layout,
            stream=stream,
            progress=watcher.rows,
        )
        for note in notes:
            typer.echo(note, err=True)
        metrics, errors = evaluate_calibration(loaded, found, batch_size, progress=watcher.measured)
    peers = NO_PEERS if no_peers else measure_peers(loaded, model, rows_of_peers(found))
    if as_json:
        shown = {
            "split": split,
            "instances": len(found),
            "metrics": metrics,
            "calibration_error": errors,
            "peers": peers.metrics,
        }
        options.print_json(shown)
        return
    options.show_metrics(f"{split}, {len(found):,} instances", metrics, peers)
    for what, error in errors.items():
        before = f" ({100 * error['before']:.2f} without calibration)" if loaded.calibration else ""
        typer.echo(f"calibration error of {what}: {100 * error['after']:.2f}{before}")

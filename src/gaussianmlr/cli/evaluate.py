"""`gmlr evaluate`: the metrics of a model on data."""

from __future__ import annotations

from typing import Annotated

import typer

from gaussianmlr.cli import options


def evaluate_command(
    model: options.ModelFolder,
    data: Annotated[str, typer.Argument(help="Data with orders, as for `gmlr train`.")],
    split: Annotated[
        str, typer.Option(help="The part to measure on: test, validation, train, any other name, or all.")
    ] = "test",
    size: Annotated[int | None, typer.Option(help="Ranked MNIST: how many images.")] = None,
    digits: options.Digits = "auto",
    threshold: options.Threshold = None,
    tolerance: options.Tolerance = 0.0,
    batch_size: options.BatchSize = 64,
    trust: options.Trust = None,
    as_json: options.AsJson = False,
) -> None:
    """Measure a model: the paper's six metrics, in percent, and how far its probabilities are off.

    Labels and columns are matched by name.

    Examples: `gmlr evaluate runs/hikes hikes.csv`, `gmlr evaluate runs/gray gray-s --size 2000 --json`.
    """
    from gaussianmlr._utils.display import metrics_table
    from gaussianmlr.inference.matching import open_model, open_test
    from gaussianmlr.training.fit import evaluate_calibration

    loaded = open_model(model)
    found, notes = open_test(
        loaded, data, split, size=size, digits=digits, threshold=threshold, tolerance=tolerance
    )
    for note in notes:
        typer.echo(note, err=True)
    metrics, errors = evaluate_calibration(loaded, found, batch_size)
    if as_json:
        shown = {
            "split": split,
            "instances": len(found),
            "metrics": metrics,
            "calibration_error": errors,
        }
        options.print_json(shown)
        return
    typer.echo(metrics_table({f"{split}, {len(found):,} instances": metrics}))
    for what, error in errors.items():
        before = f" ({100 * error['before']:.2f} without calibration)" if loaded.calibration else ""
        typer.echo(f"calibration error of {what}: {100 * error['after']:.2f}{before}")

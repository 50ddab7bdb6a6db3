"""`gmlr calibrate`: guarantees for a model, from data that it was not made from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gaussianmlr.cli import options


def calibrate_command(
    model: options.ModelFolder,
    data: Annotated[str, typer.Argument(help="Data with orders, as for `gmlr train`.")],
    out: Annotated[Path | None, typer.Option(help="Folder to write; by default the model itself.")] = None,
    split: Annotated[
        str, typer.Option(help="The part to calibrate on: test, any other name, or all.")
    ] = "test",
    size: Annotated[int | None, typer.Option(help="Ranked MNIST: how many images.")] = None,
    digits: options.Digits = "auto",
    threshold: options.Threshold = None,
    tolerance: options.Tolerance = 0.0,
    batch_size: options.BatchSize = 64,
    trust: options.Trust = None,
    as_json: options.AsJson = False,
) -> None:
    """Calibrate guarantees, which `gmlr predict --guarantee` then gives.

    The data must be new to the model: neither trained on, nor used to choose its epoch or its temperatures.
    Do not measure the guarantees on the same rows afterwards.

    Examples: `gmlr calibrate runs/hikes more-hikes.csv`, `gmlr calibrate runs/gray gray-s --size 1000`.
    """
    from gaussianmlr.data.sparse import made_dense
    from gaussianmlr.inference.guarantee import calibrate_on
    from gaussianmlr.inference.matching import find_part, open_model

    loaded = open_model(model)
    part = find_part(loaded, data, split, size=size, digits=digits, threshold=threshold, tolerance=tolerance)
    part = part._replace(data=made_dense(part.data, "calibrate"))
    for note in part.notes:
        typer.echo(note, err=True)
    found = calibrate_on(loaded, part, batch_size)
    inner = Path(model) / "model" if (Path(model) / "run.json").is_file() else Path(model)
    place = loaded.save(inner if out is None else out, overwrite=out is None)
    smallest = found.smallest_alpha
    if as_json:
        options.print_json({"model": str(place), "rows": found.rows, "smallest_alpha": smallest})
        return
    typer.echo(f"{place}: calibrated on {found.rows:,} rows, for every alpha from {smallest:.2g} to 0.5")

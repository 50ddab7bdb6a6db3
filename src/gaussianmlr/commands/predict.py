"""`gmlr predict`: what a model says of pictures, folders, tables or standard input."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from gaussianmlr.predicting import Predictions
    from gaussianmlr.streams import Bad
    from gaussianmlr.writing import Writer


class FormatName(StrEnum):
    """The forms predictions are written in."""

    text = "text"
    csv = "csv"
    jsonl = "jsonl"
    parquet = "parquet"


class OnError(StrEnum):
    """What happens to an instance that cannot be used."""

    skip = "skip"
    stop = "stop"


class Engine(StrEnum):
    """Where predictions are made."""

    local = "local"
    ray = "ray"


def predict_command(
    model: Annotated[Path, typer.Argument(help="Folder of a model, or of the run that made it.")],
    inputs: Annotated[
        list[str], typer.Argument(help="Pictures, folders, manifests, tables; - reads standard input.")
    ],
    out: Annotated[
        Path | None, typer.Option(help="File to write, whole or not at all; standard output without it.")
    ] = None,
    form: Annotated[
        FormatName | None, typer.Option("--format", help="By the name of the file, else text.")
    ] = None,
    confidence: Annotated[
        float | None, typer.Option(help="Say also what is sure of each order with this probability.")
    ] = None,
    calibrated: Annotated[
        bool,
        typer.Option(
            "--calibrated/--uncalibrated",
            help="Probabilities at the temperatures fitted after training, or as learned.",
        ),
    ] = True,
    on_error: Annotated[
        OnError, typer.Option(help="Skip what cannot be used and go on, or stop at once.")
    ] = OnError.skip,
    batch_size: Annotated[int, typer.Option(min=1, help="Instances at once.")] = 64,
    engine: Annotated[
        Engine, typer.Option(help="This process, or the machines of a Ray cluster (needs gaussianmlr[ray]).")
    ] = Engine.local,
    ray_address: Annotated[
        str | None,
        typer.Option(help="Ray cluster to join: auto or HOST:PORT; else one is started for the run."),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Of Ray: batches at the same time; as many as it has cores.")
    ] = None,
) -> None:
    """Predict orders, significances and probabilities.

    Examples: `gmlr predict runs/photos holiday/ --out found.csv`, `gmlr predict runs/hikes - < new.csv`,
    `gmlr predict runs/photos a.jpg b.jpg --format jsonl --confidence 0.9`.

    Exit code: 0 all predicted, 1 some could not be used and were skipped, 2 something to mend.
    """
    from gaussianmlr.errors import DataError
    from gaussianmlr.measuring import open_model
    from gaussianmlr.predicting import predict
    from gaussianmlr.streams import stream
    from gaussianmlr.writing import format_of

    if engine is Engine.local and (ray_address is not None or workers is not None):
        raise DataError("--ray-address and --workers are for --engine ray")
    chosen = format_of(out, None if form is None else form.value)
    if out is not None and out.is_file():
        for one in inputs:
            if Path(one).is_file() and out.samefile(one):
                raise DataError(f"{out} is what is read; choose another name for --out")
    loaded = open_model(model)
    if not calibrated:
        loaded.calibration = None
    skipped = 0

    def report(bad: Bad) -> None:
        nonlocal skipped
        skipped += 1
        typer.echo(f"skipped {bad.name}: {bad.reason}", err=True)

    settings: Any = {
        "batch_size": batch_size,
        "confidence": confidence,
        "bad": report if on_error is OnError.skip else None,
    }
    if engine is Engine.ray:
        from gaussianmlr.cluster import LOCAL, predict_on_ray

        settings |= {"standard_input": sys.stdin, "address": ray_address or LOCAL, "workers": workers}
        found = predict_on_ray(loaded, inputs, **settings)
    else:
        found = predict(loaded, stream(inputs, loaded.inputs, sys.stdin), **settings)
    done = _write(found, out, chosen, loaded.labels)
    if out is not None:
        typer.echo(f"{out}: {done:,} predicted", err=True)
    if skipped:
        typer.echo(f"{skipped:,} skipped", err=True)
        raise typer.Exit(1)


def _write(found: Iterable[Predictions], out: Path | None, form: str, labels: tuple[str, ...]) -> int:
    from gaussianmlr.files import aside
    from gaussianmlr.writing import make_writer

    results = sys.stdout
    # They alone go there: Ray, for one, prints where it lost a machine.
    with contextlib.redirect_stdout(sys.stderr):
        if out is None:
            return _pour(found, make_writer(form, results, labels))
        with aside(out) as part:
            if form == "parquet":
                return _pour(found, make_writer(form, part, labels))
            with part.open("w", encoding="utf-8", newline="") as text:
                return _pour(found, make_writer(form, text, labels))


def _pour(found: Iterable[Predictions], writer: Writer) -> int:
    done = 0
    try:
        for batch in found:
            writer.write(batch)
            done += len(batch.names)
    finally:
        writer.close()
    return done

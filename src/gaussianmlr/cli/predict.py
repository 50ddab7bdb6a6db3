"""`gmlr predict`: predictions for pictures, folders, tables or standard input."""

from __future__ import annotations

import contextlib
import io
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gaussianmlr.cli.options import (
    BatchSize,
    EngineName,
    EscapeFormulas,
    ModelFolder,
    OnEngine,
    RayAddress,
    Threads,
    Trust,
    Workers,
    engine_of,
    working,
)
from gaussianmlr.cli.tables import FORMAT, reads_tables

if TYPE_CHECKING:
    from gaussianmlr._utils.progress import ConsoleWatcher
    from gaussianmlr.data.columns import Unseen
    from gaussianmlr.inference.predict import Predictions
    from gaussianmlr.inference.streams import Bad
    from gaussianmlr.inference.writers import Writer


_TOP = 50  # labels of each instance in sparse lines


class FormatName(StrEnum):
    """The forms predictions are written in."""

    text = "text"
    csv = "csv"
    jsonl = "jsonl"
    parquet = "parquet"
    xmlc = "xmlc"


class OnError(StrEnum):
    """What happens to an instance that cannot be used."""

    skip = "skip"
    stop = "stop"


@reads_tables(*FORMAT)
def predict_command(
    model: ModelFolder,
    inputs: Annotated[
        list[str], typer.Argument(help="Pictures, folders, manifests, tables; - reads standard input.")
    ],
    out: Annotated[Path | None, typer.Option(help="File to write; standard output by default.")] = None,
    form: Annotated[
        FormatName | None, typer.Option("--format", help="By default from the file name, else text.")
    ] = None,
    confidence: Annotated[
        float | None,
        typer.Option(help="Also give what is certain of each order with this probability."),
    ] = None,
    guarantee: Annotated[
        float | None,
        typer.Option(
            help="Also give relevance sets, places and partial orders guaranteed at this level alpha, "
            "such as 0.1; for models with a conformal calibration."
        ),
    ] = None,
    top: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Give so many labels of each instance, the most significant ones; 50 with --format xmlc.",
        ),
    ] = None,
    calibrated: Annotated[
        bool,
        typer.Option(
            "--calibrated/--uncalibrated",
            help="Probabilities at the temperatures fitted after training, or as learned.",
        ),
    ] = True,
    on_error: Annotated[
        OnError, typer.Option(help="Skip instances that cannot be used, or stop.")
    ] = OnError.skip,
    batch_size: BatchSize = 64,
    threads: Threads = None,
    engine: OnEngine = EngineName.local,
    ray_address: RayAddress = None,
    workers: Workers = None,
    trust: Trust = None,
    escape_formulas: EscapeFormulas = False,
    layout: Any = None,
) -> None:
    """Predict orders, significances and probabilities.

    Examples: `gmlr predict runs/photos holiday/ --out found.csv`, `gmlr predict runs/hikes - < new.csv`,
    `gmlr predict runs/photos a.jpg b.jpg --format jsonl --confidence 0.9`.

    Exit code: 0 all predicted, 1 some could not be used and were skipped, 2 something to fix.
    """
    from functools import partial

    from gaussianmlr.data.columns import unseen_lines
    from gaussianmlr.inference.matching import open_model
    from gaussianmlr.inference.predict import predict
    from gaussianmlr.inference.streams import stream
    from gaussianmlr.inference.writers import format_of

    engine_of(engine, ray_address, workers, threads)  # refuses what does not belong together
    chosen = format_of(out, None if form is None else form.value)
    top = _top(top, chosen, engine)
    _check_output(out, inputs, chosen, escape_formulas)
    if layout.encoding is not None and "-" in inputs and isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(encoding=layout.encoding)
    loaded = open_model(model)
    if not calibrated:
        loaded.jnd, loaded.calibration = loaded.scale(calibrated=False), None
    skipped = 0
    tally: Unseen = Counter()

    def report(bad: Bad) -> None:
        nonlocal skipped
        skipped += 1
        typer.echo(f"skipped {bad.name}: {bad.reason}", err=True)

    settings: Any = {
        "batch_size": batch_size,
        "confidence": confidence,
        "guarantee": guarantee,
        "bad": report if on_error is OnError.skip else None,
    }
    if engine is EngineName.ray:
        from gaussianmlr.engines.cluster import LOCAL
        from gaussianmlr.inference.cluster import predict_on_ray

        settings |= {"standard_input": sys.stdin, "address": ray_address or LOCAL, "workers": workers}
        settings["layout"] = layout
        found = predict_on_ray(loaded, inputs, **settings)
    else:
        items = stream(
            inputs, loaded.inputs, sys.stdin, tally, layout=layout, say=partial(typer.echo, err=True)
        )
        found = predict(loaded, items, top=top, **settings)
    with working(threads) as watcher:
        counted = _counted(found, watcher) if out is not None or not sys.stdout.isatty() else found
        done = _write(counted, out, chosen, loaded.labels, escape_formulas)
    for line in unseen_lines(tally):
        typer.echo(f"note: {line}", err=True)
    if out is not None:
        typer.echo(f"{out}: {done:,} predicted", err=True)
    if skipped:
        typer.echo(f"{skipped:,} skipped", err=True)
        raise typer.Exit(1)


def _top(asked: int | None, form: str, engine: EngineName) -> int | None:
    """How many labels of each instance are given; None for all."""
    from gaussianmlr.errors import DataError

    top = _TOP if asked is None and form == "xmlc" else asked
    if engine is EngineName.ray and top is not None:
        raise DataError("--top and --format xmlc are for this process; leave out --engine ray")
    return top


def _check_output(out: Path | None, inputs: list[str], form: str, escape_formulas: bool) -> None:
    from gaussianmlr.errors import DataError

    if escape_formulas and form != "csv":
        raise DataError(f"--escape-formulas is for --format csv, not {form}")
    if out is not None and out.is_file() and any(Path(one).is_file() and out.samefile(one) for one in inputs):
        raise DataError(f"{out} is what is read; choose another name for --out")


def _counted(found: Iterable[Predictions], watcher: ConsoleWatcher) -> Iterator[Predictions]:
    done = 0
    for batch in found:
        yield batch
        done += len(batch.names)
        watcher.predicted(done)


def _write(
    found: Iterable[Predictions], out: Path | None, form: str, labels: tuple[str, ...], escape_formulas: bool
) -> int:
    from functools import partial

    from gaussianmlr._utils.files import aside
    from gaussianmlr.inference.writers import make_writer

    make = partial(make_writer, form, labels=labels, escape_formulas=escape_formulas)
    results = sys.stdout
    # Only results go to standard output; Ray also prints there.
    with contextlib.redirect_stdout(sys.stderr):
        if out is None:
            return _pour(found, make(results))
        with aside(out) as part:
            if form == "parquet":
                return _pour(found, make(part))
            with part.open("w", encoding="utf-8", newline="") as text:
                return _pour(found, make(text))


def _pour(found: Iterable[Predictions], writer: Writer) -> int:
    done = 0
    try:
        for batch in found:
            writer.write(batch)
            done += len(batch.names)
    finally:
        writer.close()
    return done

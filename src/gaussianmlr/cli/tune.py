"""`gmlr tune`: search recipes by validation data."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gaussianmlr.cli import options
from gaussianmlr.cli.tables import OPTIONS, reads_tables

if TYPE_CHECKING:
    from gaussianmlr.tuning.search import Search

_OF_DATA = ("size", "digits", "image_size", "channels", "labels", "threshold", "tolerance")


@reads_tables()
def tune_command(
    context: typer.Context,
    data: options.Data,
    out: Annotated[Path, typer.Option(help="Folder of the search: trials, the best recipe, the picture.")],
    trials: Annotated[
        int, typer.Option(help="Trials in all, those of earlier calls and the default recipe included.")
    ] = 30,
    timeout: Annotated[
        float | None, typer.Option(help="Minutes after which no further trial begins.")
    ] = None,
    folds: Annotated[
        int | None,
        typer.Option(
            help="Folds to measure on; by default 3 for tables and texts, else one part of a fifth."
        ),
    ] = None,
    test: Annotated[
        bool,
        typer.Option(
            "--test",
            help="At the end train the best and the default recipe, and measure them once on the test part.",
        ),
    ] = False,
    no_prune: Annotated[bool, typer.Option("--no-prune", help="Finish bad trials too.")] = False,
    preset: Annotated[
        str | None, typer.Option(help="Default recipe by name: cpu, paper or smoke, and tuned for texts.")
    ] = None,
    recipe: options.RecipeFile = None,
    settings: options.Settings = None,
    method: Annotated[
        str | None, typer.Option(help="See `gmlr methods`; or package.module:Class.", callback=options.named)
    ] = None,
    supervision: Annotated[str | None, typer.Option(help="strong (the order) or weak (relevance).")] = None,
    backbone: options.Backbone = None,
    epochs: options.Epochs = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the search, the folds and the trainings.")] = 0,
    size: options.Size = None,
    digits: options.Digits = "auto",
    image_size: options.ImageSize = None,
    channels: options.Channels = None,
    labels: options.Labels = None,
    threshold: options.Threshold = None,
    tolerance: options.Tolerance = 0.0,
    accelerator: options.Accelerator = "auto",
    engine: options.OnEngine = options.EngineName.local,
    ray_address: options.RayAddress = None,
    workers: options.Workers = None,
    threads: options.Threads = None,
    trust: options.Trust = None,
    quiet: options.Quiet = False,
    as_json: options.AsJson = False,
    layout: Any = None,
) -> None:
    """Search settings around the default recipe, by validation data; the test part is left alone.

    What --set and --epochs say is the same in all trials. After Ctrl-C, a crash or a kill, the same command
    resumes; a larger --trials continues a search.

    Examples: `gmlr tune hikes.csv --out runs/search --trials 50`, `gmlr tune photos/ --out runs/search
    --timeout 60 --set epochs=40`, `gmlr tune hikes.csv --out runs/search --engine ray --ray-address auto`.

    Exit code: 0 done, 2 something to fix, 130 stopped by Ctrl-C, 143 by SIGTERM.
    """
    from gaussianmlr._utils.extras import require
    from gaussianmlr.data.open import find_data
    from gaussianmlr.data.splits import has_test
    from gaussianmlr.errors import DataError
    from gaussianmlr.model.settings import recipe_of
    from gaussianmlr.training.defaults import default_recipe, with_default_model, with_default_ties
    from gaussianmlr.tuning.files import measure_once, write_search
    from gaussianmlr.tuning.search import tune

    require("gmlr tune", "optuna", "matplotlib")
    place = options.engine_of(engine, ray_address, workers, threads, accelerator)
    said = f"stopped; what is finished is kept, and the same command resumes from {out}"
    with options.resumable(said, quiet, lines=False, threads=threads) as watcher:
        found = find_data(
            data, labels=options.listed(labels), threshold=threshold, tolerance=tolerance, layout=layout
        )
        if test and not has_test(found):
            raise DataError(f"{data} has no test part; leave --test out")
        own = options.names_backbone(backbone, recipe, settings)
        base = default_recipe(found, preset, method or "gmlr", named=own)
        if preset is None and recipe is None and backbone is None:
            base = with_default_model(base, found, out)
        base = recipe_of(
            with_default_ties(base, found, out, preset),
            file=recipe,
            settings=settings or (),
            supervision=supervision,
            method=method,
            backbone=backbone,
            epochs=epochs,
            seed=seed,
        )
        fixed = [text.partition("=")[0].strip() for text in settings or ()]
        opening: dict[str, Any] = {
            "size": size,
            "digits": digits,
            "image_size": image_size,
            "channels": channels,
        }
        search = tune(
            found,
            out=out,
            recipe=base,
            trials=trials,
            timeout=None if timeout is None else 60 * timeout,
            folds=folds,
            seed=seed,
            fixed=fixed if epochs is None else [*fixed, "epochs"],
            prune=not no_prune,
            accelerator=accelerator,
            engine=place,
            watcher=watcher,
            say=watcher.note,
            **opening,
        )
        write_search(search, out)
        metrics = {}
        if test:
            watcher.note("training the default and the best recipe to measure them on the test part")
            metrics = measure_once(search, found, out, accelerator=accelerator, watcher=watcher, **opening)
        watcher.close()
    if as_json:
        options.print_json({**search.to_dict(), "test": metrics or None})
        return
    _show(search, data, out, metrics, has_test(found), _given(context))


def _show(
    search: Search,
    data: str,
    out: Path,
    metrics: dict[str, dict[str, float]],
    there_is_test: bool,
    given: list[str],
) -> None:
    from gaussianmlr._utils.display import metrics_table

    for name, value in search.best.changes.items():
        typer.echo(f"  {name} = {value:.4g}" if isinstance(value, float) else f"  {name} = {value}")
    typer.echo(search.verdict())
    if metrics:
        typer.echo("on the test part, once:\n" + metrics_table(metrics))
    elif there_is_test:
        typer.echo("No trial saw the test part; --test measures on it once, at the end.")
    typer.echo(f"\ntrials and picture: {out}/trials.csv, search.json, search.db and search.png")
    command = [
        "gmlr",
        "train",
        data,
        "--recipe",
        str(out / "best.json"),
        "--out",
        str(out / "best"),
        *given,
    ]
    typer.echo(f"train the best: {shlex.join(command)}")


def _given(context: typer.Context) -> list[str]:
    """The options of this call that say how data is read, for the command that trains on it."""
    names = {*_OF_DATA, *OPTIONS}
    words = []
    for one in context.command.params:
        value = context.params.get(one.name or "")
        source = context.get_parameter_source(one.name or "")
        if one.name in names and source is not None and source.name == "COMMANDLINE":
            words += [one.opts[0]] if value is True else [one.opts[0], str(getattr(value, "value", value))]
    return words

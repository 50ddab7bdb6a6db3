"""`gmlr train`: from data to a model on disk."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gaussianmlr.cli import options
from gaussianmlr.cli.tables import reads_tables

if TYPE_CHECKING:
    from gaussianmlr._utils.progress import ConsoleWatcher
    from gaussianmlr.data import RankedData, Setting
    from gaussianmlr.data.open import Source
    from gaussianmlr.model.recipe import Recipe
    from gaussianmlr.training.engine import Result
    from gaussianmlr.training.fit import Fitted


@reads_tables()
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
    ties: Annotated[
        str | None,
        typer.Option(
            help="Predict ties: none, learned, or auto: where training data has some and validation favours "
            "them (the default of gmlr)."
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            help="Tables: network, trees, both, or auto: what validation favours (the default of gmlr)."
        ),
    ] = None,
    backbone: options.Backbone = None,
    epochs: options.Epochs = None,
    seed: Annotated[int | None, typer.Option(help="Seed of everything random.")] = None,
    conformal: Annotated[
        float | None,
        typer.Option(help="Share of the training data that calibrates guarantees, such as 0.1."),
    ] = None,
    size: options.Size = None,
    digits: options.Digits = "auto",
    image_size: options.ImageSize = None,
    channels: options.Channels = None,
    stream: options.Stream = None,
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
    no_peers: options.NoPeers = False,
    threads: options.Threads = None,
    trust: options.Trust = None,
    quiet: options.Quiet = False,
    as_json: options.AsJson = False,
    layout: Any = None,
) -> None:
    """Train a model. After Ctrl-C, a crash or a kill, the same command resumes where it was.

    Examples: `gmlr train hikes.csv --out runs/hikes`, `gmlr train gray-s --size 6000 --out runs/gray`,
    `gmlr train photos/ --out runs/photos` (colour pictures: a head on the features of pretrained networks).

    Exit code: 0 done, 2 something to fix, 130 stopped by Ctrl-C, 143 by SIGTERM.
    """
    from gaussianmlr.data import RankedData
    from gaussianmlr.data.open import find_data, open_data
    from gaussianmlr.data.streamed import PLACE, open_rows
    from gaussianmlr.data.streaming.files import find_rows
    from gaussianmlr.data.streaming.look import look
    from gaussianmlr.data.tokens import encoder_of
    from gaussianmlr.model.settings import recipe_of
    from gaussianmlr.training.defaults import (
        default_recipe,
        picture_options,
        with_default_model,
        with_default_ties,
    )
    from gaussianmlr.training.kinds import fit_kinds
    from gaussianmlr.training.loggers import open_loggers
    from gaussianmlr.training.origin import Origin

    loggers = open_loggers(log or (), out)
    said = f"stopped; the same command resumes from {out}" if _is_first() else ""
    with options.resumable(said, quiet, threads=threads) as watcher:
        reading: dict[str, Any] = {"labels": options.listed(labels), "layout": layout}
        reading |= {"threshold": threshold, "tolerance": tolerance}
        rows = None if size is not None and stream is None else find_rows(data, stream=stream, **reading)
        seen = None if rows is None else look(rows)
        found = find_data(data, **reading) if seen is None else seen.sample
        own = options.names_backbone(backbone, recipe, settings)
        base = default_recipe(found, preset, method or "gmlr", named=own)
        alone = rows is None and (devices, nodes) == ("1", 1)
        if preset is None and recipe is None and backbone is None and alone:
            base = with_default_model(base, found, out)
        base = with_default_ties(base, found, out, preset)
        chosen = recipe_of(
            base,
            file=recipe,
            settings=settings or (),
            supervision=supervision,
            ties=ties,
            method=method,
            backbone=backbone,
            epochs=epochs,
            seed=seed,
            conformal=conformal,
            model=model,
        )
        shape: dict[str, Any] = {"image_size": image_size, "channels": channels}
        pictures = isinstance(found, RankedData) and found.images is not None
        if isinstance(found, RankedData) and pictures:
            shape = picture_options(found, chosen, **shape)
        held = {"conformal": chosen.conformal, **shape}
        if rows is not None and seen is not None:
            source = open_rows(rows, seen, out / PLACE, **held, progress=watcher.rows)
        else:
            held |= {"size": size, "digits": digits, "rankers": chosen.rankers, "seed": chosen.seed}
            source = open_data(found, **held, encoder=encoder_of(chosen.backbone))
        origin = None  # a Ranked MNIST set knows its own
        if isinstance(found, RankedData):
            origin = Origin(
                data,
                digest=source.fingerprint,
                threshold=threshold,
                tolerance=tolerance,
                layout=layout,
                streamed=rows is not None,
            )
        if _is_first():
            _tell(watcher, chosen, source, found)

        fitted = fit_kinds(
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
            conformal=source.conformal,
            facts=None if no_peers else _peers_of(source, out, chosen.seed),
        )
        watcher.close()
        if rows is not None and _is_first() and not fitted.result.interrupted:
            shutil.rmtree(out / PLACE, ignore_errors=True)  # as large as the data
        if _is_first():
            _show(fitted, out, as_json)
        if fitted.result.interrupted:
            raise KeyboardInterrupt


def _tell(watcher: ConsoleWatcher, chosen: Recipe, source: Source, found: RankedData | Setting) -> None:
    """Say what is trained on what."""
    from gaussianmlr.data import RankedData
    from gaussianmlr.data.streaming.sets import StreamedRows
    from gaussianmlr.model.network import built_of
    from gaussianmlr.training.defaults import why_small, why_terms

    watcher.note(
        f"{chosen.method} on {built_of(chosen.backbone, chosen.model)}: "
        f"{len(source.train):,} instances to train on, {len(source.validation):,} to validate, "
        f"{len(source.labels)} labels"
    )
    for note in source.notes:
        watcher.note(note)
    if why := why_terms(found, chosen):
        watcher.note(why)
    if isinstance(found, RankedData) and found.images is not None and chosen.backbone == "fast":
        watcher.note(why_small())
    if isinstance(source.train, StreamedRows) and not source.train.pictures:
        watcher.note("the rows are streamed: a network learns them; trees need them in memory (--no-stream)")


def _peers_of(source: Source, out: Path, seed: int) -> Callable[[Result], dict[str, Any]]:
    """What a finished training adds to its model: simple peers on the same instances."""
    from gaussianmlr.comparison.peers import known_peers, learn_peers
    from gaussianmlr.data.streaming.sets import rows_of_peers
    from gaussianmlr.model.network import has_texts
    from gaussianmlr.orders import SparseRanks

    def peers(result: Result) -> dict[str, Any]:
        if result.interrupted or isinstance(getattr(source.train, "ranks", None), SparseRanks):
            return {}  # the peers need dense ranks
        table = source.inputs["kind"] == "table" and not has_texts(source.inputs)  # tokens are no features
        found = known_peers(out / "model", source.fingerprint)  # by an earlier call of a finished run
        learned = found or learn_peers(
            rows_of_peers(source.train), source.validation, table=table, seed=seed, seconds=result.seconds
        )
        return {"peers": learned}

    return peers


def _show(fitted: Fitted, out: Path, as_json: bool) -> None:
    from gaussianmlr.comparison.peers import Peers

    about = fitted.model.about
    metrics: dict[str, float] = about.get("metrics", {})
    peers = Peers.of_training(about.get("peers"))
    there = (out / "model").is_dir()  # not after a stop in the first epoch
    if as_json:
        result: dict[str, Any] = {
            "model": str(out / "model") if there else None,
            "metrics": metrics,
            "measured_on": about.get("measured_on"),
            "peers": peers.metrics,
            "instances_seen": fitted.result.images,
            "seconds": round(fitted.result.seconds, 3),
            "interrupted": fitted.result.interrupted,
        }
        options.print_json(result)
        return
    if metrics:
        options.show_metrics("validation", metrics, peers)
    if there:
        typer.echo(f"model: {out / 'model'}")


def _is_first() -> bool:
    """Whether this is the main process of those that Lightning may have started."""
    from lightning.fabric.utilities.rank_zero import rank_zero_only

    return int(getattr(rank_zero_only, "rank", None) or 0) == 0

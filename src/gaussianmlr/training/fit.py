"""Train a model from a recipe and data: used by commands, estimators, comparisons and the paper."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from gaussianmlr._utils.files import held
from gaussianmlr._utils.progress import Watcher
from gaussianmlr._utils.threads import threads_for
from gaussianmlr.data import RankedData
from gaussianmlr.data.inputs import Inputs
from gaussianmlr.data.loading import RankedSet, as_input, fetch
from gaussianmlr.errors import DataError, shorten
from gaussianmlr.losses import Weights
from gaussianmlr.methods import Method
from gaussianmlr.model.evaluate import evaluate, evaluate_calibration
from gaussianmlr.model.guarantees import refuse_many_labels
from gaussianmlr.model.model import Model, build
from gaussianmlr.model.recipe import Recipe
from gaussianmlr.nn.backbones import divide, parameter_groups
from gaussianmlr.nn.network import Network
from gaussianmlr.nn.work import work_of
from gaussianmlr.training.engine import Result, train
from gaussianmlr.training.epochs import for_training
from gaussianmlr.training.finish import choose_ties, finish, measure_and_calibrate, save_model
from gaussianmlr.training.frozen import features_of, stands_still
from gaussianmlr.training.loggers import Logs
from gaussianmlr.training.origin import Origin, origin_of
from gaussianmlr.training.run_folder import RunFolder
from gaussianmlr.training.sets import fingerprint_of, part_off, ready_sets, table_inputs_of
from gaussianmlr.training.ties import asks_for_choice, settled

if TYPE_CHECKING:
    from lightning.fabric import Fabric

__all__ = ["Fitted", "described", "evaluate", "evaluate_calibration", "fit", "weights_of"]


_OF_GUARANTEES = 1  # a stream of its own beside the recipe's seed


@dataclass(frozen=True)
class Fitted:
    """A model and the result of its training."""

    model: Model
    result: Result


def fit(
    recipe: Recipe,
    data: RankedSet | RankedData,
    validation: RankedSet | RankedData | None,
    *,
    labels: tuple[str, ...] | None = None,
    out: str | Path | None = None,
    inputs: Inputs | None = None,
    fingerprint: str = "",
    origin: Origin | None = None,
    backbone: nn.Module | None = None,
    accelerator: str = "auto",
    devices: int | str = 1,
    nodes: int = 1,
    strategy: str = "auto",
    loggers: Any = None,
    cache: str | Path | bool = True,
    watcher: Watcher | None = None,
    conformal: RankedSet | RankedData | None = None,
    facts: Callable[[Result], Mapping[str, Any]] | None = None,
    keep: bool = True,
    decide: bool = True,
) -> Fitted:
    """Train the network of a recipe; for boosted trees and the choice between both see `fit_kinds`.

    Parameters
    ----------
    recipe : Recipe
        All settings.
    data, validation : RankedSet
        Items ``(input, ranks)`` or ``(input, ranks, weight)``, see `data.loading.RankedSet`; or
        `RankedData` with features. Several rankers of validation data are aggregated.
    labels : tuple of str, optional
        Names of the columns of ranks; `RankedData` knows them.
    out : path-like, optional
        Folder of the run. The same call resumes an interrupted run; the model is written to
        ``out/model``.
    inputs : Inputs, optional
        Further description of the inputs, stored with the model.
    fingerprint : str
        Fingerprint of the data, computed by default. A folder with a run on other data is refused.
    origin : Origin, optional
        Location of the data, recorded in the run folder for `gmlr report`. Found by default for `RankedData`
        that `read_table` read from a file, and for `RankedMNIST`.
    backbone : nn.Module, optional
        A backbone of your own, in place of the recipe's.
    accelerator, devices, nodes, strategy
        Options of Lightning Fabric.
    loggers : Lightning loggers, optional
        One or several, as returned by `loggers.open_loggers`; they receive one row per epoch.
    cache : path-like or bool
        Cache of the features of a frozen backbone: a folder; True for the user's cache folder; False
        for no cache.
    watcher : Watcher, optional
        Receives the progress.
    conformal : RankedSet, optional
        Instances that calibrate the guarantees of `Prediction.guaranteed` and nothing else. Without
        them, the recipe's share `conformal` of `data` is held out.
    facts : callable, optional
        Called with the result of the training before the model is saved, on the main process; what it returns
        is added to `Model.about`, such as ``{"peers": learn_peers(...)}``.
    keep : bool
        Whether the model of a finished run is written to ``out/model``; one of an interrupted run always is.
    decide : bool
        Whether a method with ``ties="auto"`` drops a threshold that gains nothing on validation data.

    Examples
    --------
    >>> import numpy as np
    >>> from gaussianmlr.data.loading import Arrays
    >>> x = np.random.default_rng(0).normal(size=(64, 3)).astype(np.float32)
    >>> data = Arrays(x, (x > 0) * x.argsort(1).argsort(1))
    >>> recipe = Recipe(backbone="mlp", epochs=2)
    >>> fit(recipe, data, data, labels=("a", "b", "c")).model
    Model(gmlr strong, mlp, 3 labels, table inputs)
    """
    labels = labels or getattr(data, "labels", None)
    if labels is None:
        raise DataError("expected labels, the names of the columns of ranks")
    if origin is None and out is not None:
        origin = origin_of(data, validation)
    if recipe.conformal or conformal is not None:
        refuse_many_labels(len(labels))
    if recipe.conformal and conformal is None:
        data, conformal = part_off(data, recipe)
    inputs = {**table_inputs_of(data, recipe.backbone), **(inputs or {})}
    data, validation = ready_sets(recipe, data, validation, inputs)
    fingerprint = fingerprint or f"{fingerprint_of(data)} {fingerprint_of(validation)}"
    asked, recipe = recipe, settled(recipe, data)
    data = for_training(data, recipe)
    about, known = described(data, labels, inputs, fingerprint)
    fabric = _launch(recipe, accelerator=accelerator, devices=devices, nodes=nodes, strategy=strategy)
    network, method = build(recipe, len(labels), about, backbone)
    weights = weights_of(recipe, method, labels)
    with held(Path(out)) if out is not None and fabric.is_global_zero else nullcontext():
        # Claimed once the recipe is known to work; otherwise a corrected one would be refused.
        folder = None if out is None else RunFolder(out, asked, known)
        if out is not None and origin is not None and fabric.is_global_zero:
            origin.write(out)
        trained, sets = _still(network, recipe, data, validation, fabric, cache, watcher)
        first = as_input(fetch(sets[0], [0])[0])
        step = 3 * work_of(trained.cpu(), first) * recipe.batch_size  # forward once, backward twice
        with threads_for(step):
            result = train(
                trained,
                method,
                recipe,
                *sets,
                folder=folder,
                fabric=fabric,
                groups=lambda rate, factor: parameter_groups(trained, rate, factor),
                weights=weights,
                logs=Logs(loggers, out),
                watcher=watcher,
            )
    network.eval()
    known_facts: dict[str, Any] = {
        "images": result.images,
        "seconds": round(result.seconds, 1),
        "fingerprint": fingerprint,
        "interrupted": result.interrupted,
    }
    model = Model(network, method, labels, recipe, about, known_facts)
    reached_last_stage = any(row["stage"] == method.stages[-1].name for row in result.history)
    if reached_last_stage and sets[1] is not None:
        reader = replace(model, network=trained)
        measure_and_calibrate(model, sets[1], reader)
        note = choose_ties(model, sets[1], reader) if decide and asks_for_choice(asked) else None
        if note and watcher is not None:
            watcher.note(note)
    finish(model, result, conformal, facts if fabric.is_global_zero else None)
    if out is not None and fabric.is_global_zero and (keep or result.interrupted):
        save_model(model, Path(out) / "model", result)
    return Fitted(model, replace(result, network=network))


def described(
    data: RankedSet, labels: tuple[str, ...], inputs: Inputs | None, fingerprint: str
) -> tuple[Inputs, dict[str, Any]]:
    """The inputs of a model, and the description of its data by which a run is known again."""
    about: Inputs = {**_inputs(data, labels), **(inputs or {})}
    return about, {
        "labels": list(labels),
        "inputs": about,
        "fingerprint": fingerprint,
        "instances": len(data),
    }


def _inputs(data: RankedSet, labels: tuple[str, ...]) -> Inputs:
    """Kind and shape of the inputs, from the first instance."""
    first = fetch(data, [0])
    width = first[1].shape[-1]
    if width != len(labels):
        raise DataError(f"the data has ranks for {width} labels, but {len(labels)} labels are named")
    channels, *size = first[0].shape[1:]
    if len(size) == 2:
        return {"kind": "image", "channels": channels, "size": size}
    return {"kind": "table", "channels": channels}


def _launch(recipe: Recipe, *, accelerator: str, devices: int | str, nodes: int, strategy: str) -> Fabric:
    """Lightning Fabric, with its processes started and its generators seeded."""
    from lightning.fabric import Fabric

    try:
        fabric = Fabric(
            accelerator=accelerator,
            devices=devices,
            num_nodes=nodes,
            strategy=strategy,
            precision=recipe.precision,
        )
    except (ValueError, TypeError, RuntimeError) as error:  # Lightning's errors for unsupported settings
        asked = f"accelerator {accelerator!r}, devices {devices!r}, nodes {nodes}, strategy {strategy!r}"
        raise DataError(f"{asked}: {error}") from None
    fabric.launch()
    fabric.seed_everything(recipe.seed, verbose=False)
    return fabric


def weights_of(recipe: Recipe, method: Method, labels: tuple[str, ...]) -> Weights | None:
    """The loss weights of a recipe, if any; refused if the method does not support them."""
    if not recipe.label_weights and recipe.order_weight == 1:
        return None
    if unknown := [name for name in recipe.label_weights if name not in labels]:
        raise DataError(f"label_weights names {shorten(unknown)}; the labels are {shorten(labels)}")
    each = torch.tensor([float(recipe.label_weights.get(label, 1.0)) for label in labels])
    weights = Weights(each, recipe.order_weight)
    nothing = {output.name: torch.zeros(0, output.size(len(labels))) for output in method.outputs}
    if "weights" not in inspect.signature(method.loss).parameters:
        raise DataError(f"the method {method.name!r} has no weights: its loss takes no argument of that name")
    method.loss(nothing, torch.zeros(0, len(labels), dtype=torch.int64), weights=weights)
    return weights


def _still(
    network: Network,
    recipe: Recipe,
    data: RankedSet,
    validation: RankedSet | None,
    fabric: Fabric,
    cache: str | Path | bool,
    watcher: Watcher | None,
) -> tuple[Network, tuple[RankedSet, RankedSet | None]]:
    """The part that is trained and its data: for a frozen backbone, its features, computed once."""
    sets = [one for one in (data, validation) if one is not None]
    halves = divide(network.backbone) if all(stands_still(recipe, one) for one in sets) else None
    if halves is None:
        return network, (data, validation)
    teller = watcher if watcher is not None and fabric.is_global_zero else Watcher()
    halves.still.to(fabric.device)
    found: list[RankedSet] = []
    with fabric.rank_zero_first(local=True):  # the others read the cache of the first
        for one in sets:
            made = features_of(halves.still, one, cache=cache, progress=teller.features, note=teller.note)
            if made is None:
                teller.note("the features of the frozen part do not fit in memory: computed in every epoch")
                return network, (data, validation)
            found.append(made)
    return Network(halves.free, network.head), (found[0], found[1] if len(found) > 1 else None)

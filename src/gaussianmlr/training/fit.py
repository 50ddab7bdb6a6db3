"""Train a model from a recipe and data: used by commands, estimators, comparisons and the paper."""

from __future__ import annotations

import inspect
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from gaussianmlr._utils.files import held
from gaussianmlr._utils.leftovers import sweep
from gaussianmlr._utils.progress import Watcher
from gaussianmlr.data import RankedData
from gaussianmlr.data.inputs import Inputs
from gaussianmlr.data.loading import Arrays, RankedSet, fetch
from gaussianmlr.errors import DataError, shorten
from gaussianmlr.losses import Weights
from gaussianmlr.methods import Method
from gaussianmlr.model.calibration import calibrate
from gaussianmlr.model.evaluate import calibration_errors, evaluate, evaluate_calibration, measure
from gaussianmlr.model.model import Model, build, read_config
from gaussianmlr.model.recipe import Recipe
from gaussianmlr.nn.backbones import divide, parameter_groups
from gaussianmlr.nn.network import Network
from gaussianmlr.rankers import aggregate
from gaussianmlr.training.engine import Result, train
from gaussianmlr.training.epochs import for_training
from gaussianmlr.training.frozen import features_of, stands_still
from gaussianmlr.training.loggers import Logs
from gaussianmlr.training.origin import Origin, origin_of
from gaussianmlr.training.run_folder import RunFolder

if TYPE_CHECKING:
    from lightning.fabric import Fabric

__all__ = ["Fitted", "evaluate", "evaluate_calibration", "fit", "weights_of"]


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
) -> Fitted:
    """Train the model of a recipe.

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
    data, validation = _sets(recipe, data, validation)
    fingerprint = fingerprint or f"{_fingerprint(data)} {_fingerprint(validation)}"
    data = for_training(data, recipe)
    about: Inputs = {**_inputs(data, labels), **(inputs or {})}
    fabric = _launch(recipe, accelerator=accelerator, devices=devices, nodes=nodes, strategy=strategy)
    network, method = build(recipe, len(labels), about, backbone)
    weights = weights_of(recipe, method, labels)
    known = {"labels": list(labels), "inputs": about, "fingerprint": fingerprint, "instances": len(data)}
    with held(Path(out)) if out is not None and fabric.is_global_zero else nullcontext():
        # Claimed once the recipe is known to work; otherwise a corrected one would be refused.
        folder = None if out is None else RunFolder(out, recipe, known)
        if out is not None and origin is not None and fabric.is_global_zero:
            origin.write(out)
        trained, sets = _still(network, recipe, data, validation, fabric, cache, watcher)
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
    facts: dict[str, Any] = {
        "images": result.images,
        "seconds": round(result.seconds, 1),
        "fingerprint": fingerprint,
        "interrupted": result.interrupted,
    }
    model = Model(network, method, labels, recipe, about, facts)
    reached_last_stage = any(row["stage"] == method.stages[-1].name for row in result.history)
    if reached_last_stage and validation is not None:
        _measure(model, validation)
    if out is not None and fabric.is_global_zero:
        _save(model, Path(out) / "model", result)
    return Fitted(model, replace(result, network=network))


def _sets(
    recipe: Recipe, data: RankedSet | RankedData, validation: RankedSet | RankedData | None
) -> tuple[RankedSet, RankedSet | None]:
    """Training and validation data as sets; refused if there is nothing to learn from."""
    data = _as_set(data, drawn=recipe.rankers == "all", seed=recipe.seed)
    if len(data) == 0:
        raise DataError("expected at least one instance to train on, got none")
    weights = getattr(data, "weights", None)
    if isinstance(weights, Tensor) and not bool((weights > 0).any()):
        raise DataError("all weights of the training instances are 0; expected one above it")
    return data, None if validation is None else _as_set(validation, drawn=False, seed=recipe.seed)


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


def _measure(model: Model, validation: RankedSet) -> None:
    """Add metrics on validation data to the facts of a model, and calibrate it if its recipe says so."""
    metrics, reading, truth = measure(model, validation, model.recipe.batch_size)
    model.about |= {"metrics": metrics, "measured_on": "validation"}
    if model.recipe.calibrate:
        model.calibration = calibrate(reading, truth, supervision=model.method.supervision)
        model.about["calibration_error"] = calibration_errors(reading, truth, model.calibration)


def _save(model: Model, place: Path, result: Result) -> None:
    """Save the model of a run; an existing one is never replaced by a worse one."""
    if not result.history:  # nothing was learned yet
        return
    sweep(place.parent)
    about = read_config(place).get("about", {}) if place.exists() else {"interrupted": True}
    ended = not about.get("interrupted", True)
    if result.interrupted and (ended or about.get("images", 0) > result.images):
        return
    if result.unproven and ended and not _same_weights(model, place):
        raise DataError(
            f"the best weights of the run, {place.parent / 'best.pt'}, are not those that {place} was made "
            f"from. Nothing was changed. Restore the file, or remove {place} to make it from these"
        )
    model.save(place, overwrite=True)


def _same_weights(model: Model, place: Path) -> bool:
    """Whether the weights on disk are those of the model, or cannot be read."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        there = load_file(place / "model.safetensors")
    except (OSError, SafetensorError):
        return True
    now = model.network.state_dict()
    return there.keys() == now.keys() and all(torch.equal(now[name].cpu(), there[name]) for name in now)


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
) -> tuple[nn.Module, tuple[RankedSet, RankedSet | None]]:
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
            made = features_of(halves.still, one, cache=cache, progress=teller.features)
            if made is None:
                teller.note("the features of the frozen part do not fit in memory: computed in every epoch")
                return network, (data, validation)
            found.append(made)
    return Network(halves.free, network.head), (found[0], found[1] if len(found) > 1 else None)


def _as_set(data: RankedSet | RankedData, *, drawn: bool, seed: int) -> RankedSet:
    """Data as a set; with `drawn`, one of several rankers is drawn in each epoch."""
    if isinstance(data, RankedData):
        if data.features is None:
            raise DataError(f"expected features, got {data!r}; for pictures use data.RankedImages")
        several = drawn and data.by_ranker is not None
        ranks = data.by_ranker if several else data.ranks
        weights = None if data.weights is None else data.weights.astype("float32")
        return Arrays(data.features, ranks, weights, seed)
    if isinstance(data, Arrays) and data.ranks.ndim == 3 and not drawn:
        return Arrays(data.inputs, aggregate(data.ranks.numpy()), data.weights, data.seed)
    return data


def _fingerprint(data: RankedSet | None) -> str:
    """The fingerprint of data; for sets without one, type and length."""
    if data is None:
        return "none"
    known = getattr(data, "fingerprint", None)
    return str(known()) if callable(known) else f"{type(data).__name__} {len(data)}"

"""From a recipe and data to a model: the one way in for commands, estimators and tables."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from gaussianmlr.backbones import parameter_groups
from gaussianmlr.batches import Arrays, RankedSet, batches, fetch
from gaussianmlr.checkpoints import RunFolder
from gaussianmlr.data import RankedData
from gaussianmlr.epochs import for_training
from gaussianmlr.errors import DataError
from gaussianmlr.metrics import PaperMetrics
from gaussianmlr.model import Inputs, Model, build
from gaussianmlr.rankers import aggregate
from gaussianmlr.recipe import Recipe
from gaussianmlr.training import Result, Watcher, train

__all__ = ["Fitted", "evaluate", "fit"]


@dataclass(frozen=True)
class Fitted:
    """A model, and how its training went."""

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
    backbone: nn.Module | None = None,
    accelerator: str = "auto",
    devices: int | str = 1,
    nodes: int = 1,
    strategy: str = "auto",
    loggers: Any = None,
    watcher: Watcher | None = None,
) -> Fitted:
    """Train the model of a recipe.

    Parameters
    ----------
    recipe : Recipe
        Every setting.
    data, validation : RankedSet
        Items ``(input, ranks)`` or ``(input, ranks, weight)``, see `batches.RankedSet`; or
        `RankedData` with features. Several rankers of validation data are made one.
    labels : tuple of str, optional
        Names of the columns of ranks; `RankedData` knows them.
    out : path-like, optional
        Folder of the run. The same call goes on where an earlier one was cut; the model ends up in
        ``out/model``.
    inputs : Inputs, optional
        More about what the model takes, kept with it.
    fingerprint : str
        Of the data; a folder of a run on other data is refused. Found where it is not given.
    backbone : nn.Module, optional
        A backbone of your own, in place of the recipe's.
    accelerator, devices, nodes, strategy, loggers
        Lightning Fabric's.
    watcher : Watcher, optional
        Is told what happens.

    Examples
    --------
    >>> import numpy as np
    >>> from gaussianmlr.batches import Arrays
    >>> x = np.random.default_rng(0).normal(size=(64, 3)).astype(np.float32)
    >>> data = Arrays(x, (x > 0) * x.argsort(1).argsort(1))
    >>> recipe = Recipe(backbone="mlp", epochs=2)
    >>> fit(recipe, data, data, labels=("a", "b", "c")).model
    Model(gmlr strong, mlp, 3 labels, table inputs)
    """
    from lightning.fabric import Fabric

    labels = labels or getattr(data, "labels", None)
    if labels is None:
        raise DataError("expected labels, the names of the columns of ranks")
    data = _as_set(data, drawn=recipe.rankers == "all", seed=recipe.seed)
    validation = None if validation is None else _as_set(validation, drawn=False, seed=recipe.seed)
    if len(data) == 0:
        raise DataError("expected at least one instance to train on, got none")
    fingerprint = fingerprint or f"{_fingerprint(data)} {_fingerprint(validation)}"
    data = for_training(data, recipe)
    first = fetch(data, [0])
    width = first[1].shape[-1]
    if width != len(labels):
        raise DataError(f"the data has ranks for {width} labels, but {len(labels)} labels are named")
    shape = list(first[0].shape[1:])
    about: Inputs = {"kind": "image" if len(shape) == 3 else "table", "channels": shape[0]}
    if len(shape) == 3:
        about["size"] = shape[1:]
    about = {**about, **(inputs or {})}
    fabric = Fabric(
        accelerator=accelerator,
        devices=devices,
        num_nodes=nodes,
        strategy=strategy,
        precision=recipe.precision,
        loggers=loggers,
    )
    fabric.launch()
    folder = None
    if out is not None:
        known = {"labels": list(labels), "inputs": about, "fingerprint": fingerprint, "instances": len(data)}
        folder = RunFolder(out, recipe, known)
    fabric.seed_everything(recipe.seed, verbose=False)
    network, method = build(recipe, len(labels), about, backbone)
    result = train(
        network,
        method,
        recipe,
        data,
        validation,
        folder=folder,
        fabric=fabric,
        groups=lambda rate, factor: parameter_groups(network, rate, factor),
        watcher=watcher,
    )
    whole = any(row["stage"] == method.stages[-1].name for row in result.history)
    facts: dict[str, Any] = {
        "images": result.images,
        "seconds": round(result.seconds, 1),
        "fingerprint": fingerprint,
        "interrupted": result.interrupted,
    }
    model = Model(network, method, labels, recipe, about, facts)
    if whole and validation is not None:
        facts["metrics"], facts["measured_on"] = evaluate(model, validation, recipe.batch_size), "validation"
    if out is not None and fabric.is_global_zero:
        model.save(Path(out) / "model", overwrite=True)
    return Fitted(model, result)


def _as_set(data: RankedSet | RankedData, *, drawn: bool, seed: int) -> RankedSet:
    """Data in a form that batches can be taken of; a ranker is drawn each epoch where it is asked for."""
    if isinstance(data, RankedData):
        if data.features is None:
            raise DataError(f"expected features, got {data!r}; data.RankedImages makes a set of pictures")
        several = drawn and data.by_ranker is not None
        ranks = data.by_ranker if several else data.ranks
        weights = None if data.weights is None else data.weights.astype("float32")
        return Arrays(data.features, ranks, weights, seed)
    if isinstance(data, Arrays) and data.ranks.ndim == 3 and not drawn:
        return Arrays(data.inputs, aggregate(data.ranks.numpy()), data.weights, data.seed)
    return data


def _fingerprint(data: RankedSet | None) -> str:
    """What tells data from other data; a set that cannot say it is known by its description."""
    if data is None:
        return "none"
    known = getattr(data, "fingerprint", None)
    return str(known()) if callable(known) else f"{type(data).__name__} {len(data)}"


@torch.no_grad()
def evaluate(model: Model, data: RankedSet, batch_size: int = 256, workers: int = 0) -> dict[str, float]:
    """The paper's six metrics of a model on data, by the names of its tables, as fractions."""
    measures = PaperMetrics()
    for batch in batches(data, torch.arange(len(data)), batch_size, workers=workers):
        measures.update(model.read(batch.inputs, batch_size).scores.float(), batch.ranks)
    return {name: float(value) for name, value in measures.compute().items()}

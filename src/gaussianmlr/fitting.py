"""From a recipe and data to a model: the one way in for commands, estimators and tables."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from gaussianmlr.backbones import parameter_groups
from gaussianmlr.batches import RankedSet, batches, fetch
from gaussianmlr.checkpoints import RunFolder
from gaussianmlr.errors import DataError
from gaussianmlr.metrics import PaperMetrics
from gaussianmlr.model import Inputs, Model, build
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
    data: RankedSet,
    validation: RankedSet | None,
    *,
    labels: tuple[str, ...],
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
        Items ``(input, ranks)`` or ``(input, ranks, weight)``; see `batches.RankedSet`.
    labels : tuple of str
        Names of the columns of ranks.
    out : path-like, optional
        Folder of the run. The same call goes on where an earlier one was cut; the model ends up in
        ``out/model``.
    inputs : Inputs, optional
        More about what the model takes, kept with it.
    fingerprint : str
        Of the data; a folder of a run on other data is refused.
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

    if len(data) == 0:
        raise DataError("expected at least one instance to train on, got none")
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
    history = [row for row in result.history if "tau_b" in row]
    last_stage = [row for row in history if row["stage"] == method.stages[-1].name]
    facts: dict[str, Any] = {
        "images": result.images,
        "seconds": round(result.seconds, 1),
        "fingerprint": fingerprint,
        "interrupted": result.interrupted,
    }
    model = Model(network, method, labels, recipe, about, facts)
    if last_stage and validation is not None:
        facts["metrics"], facts["measured_on"] = evaluate(model, validation, recipe.batch_size), "validation"
    if out is not None and fabric.is_global_zero:
        model.save(Path(out) / "model", overwrite=True)
    return Fitted(model, result)


@torch.no_grad()
def evaluate(model: Model, data: RankedSet, batch_size: int = 256, workers: int = 0) -> dict[str, float]:
    """The paper's six metrics of a model on data, by the names of its tables, as fractions."""
    measures = PaperMetrics()
    for batch in batches(data, torch.arange(len(data)), batch_size, workers=workers):
        measures.update(model.read(batch.inputs, batch_size).scores.float(), batch.ranks)
    return {name: float(value) for name, value in measures.compute().items()}

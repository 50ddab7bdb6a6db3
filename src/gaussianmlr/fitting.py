"""From a recipe and data to a model: the one way in for commands, estimators and tables."""

from __future__ import annotations

import inspect
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from gaussianmlr.backbones import divide, parameter_groups
from gaussianmlr.batches import Arrays, RankedSet, batches, fetch
from gaussianmlr.calibration import Calibration, calibrate, compare
from gaussianmlr.checkpoints import RunFolder
from gaussianmlr.data import RankedData
from gaussianmlr.epochs import for_training
from gaussianmlr.errors import DataError, shorten
from gaussianmlr.files import held
from gaussianmlr.frozen import features_of, stands_still
from gaussianmlr.logs import Logs
from gaussianmlr.losses import Weights
from gaussianmlr.methods import Method, Reading
from gaussianmlr.metrics import PaperMetrics
from gaussianmlr.model import Inputs, Model, build
from gaussianmlr.network import Network
from gaussianmlr.rankers import aggregate
from gaussianmlr.recipe import Recipe
from gaussianmlr.training import Result, Watcher, train

if TYPE_CHECKING:
    from lightning.fabric import Fabric

__all__ = ["Fitted", "evaluate", "evaluate_calibration", "fit", "weights_of"]

_CALIBRATED_ON = 5_000  # instances: two numbers need no more


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
    cache: str | Path | bool = True,
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
    accelerator, devices, nodes, strategy
        Lightning Fabric's.
    loggers : Lightning loggers, optional
        One, several, or by name as `logs.open_loggers` makes them; they get a row an epoch.
    cache : path-like or bool
        Where the features of a frozen backbone are kept between runs: a folder; True for the user's
        cache folder; False for nowhere.
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
    weights = getattr(data, "weights", None)
    if isinstance(weights, Tensor) and not bool((weights > 0).any()):
        raise DataError("all weights of the training instances are 0; expected one above it")
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
    try:
        fabric = Fabric(
            accelerator=accelerator,
            devices=devices,
            num_nodes=nodes,
            strategy=strategy,
            precision=recipe.precision,
        )
    except (ValueError, TypeError, RuntimeError) as error:  # what Lightning raises for what it cannot do
        asked = f"accelerator {accelerator!r}, devices {devices!r}, nodes {nodes}, strategy {strategy!r}"
        raise DataError(f"{asked}: {error}") from None
    fabric.launch()
    fabric.seed_everything(recipe.seed, verbose=False)
    network, method = build(recipe, len(labels), about, backbone)
    weights = weights_of(recipe, method, labels)
    known = {"labels": list(labels), "inputs": about, "fingerprint": fingerprint, "instances": len(data)}
    with held(Path(out)) if out is not None and fabric.is_global_zero else nullcontext():
        # Claimed when the recipe is known to work, or the mended one would be refused.
        folder = None if out is None else RunFolder(out, recipe, known)
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
    whole = any(row["stage"] == method.stages[-1].name for row in result.history)
    facts: dict[str, Any] = {
        "images": result.images,
        "seconds": round(result.seconds, 1),
        "fingerprint": fingerprint,
        "interrupted": result.interrupted,
    }
    model = Model(network, method, labels, recipe, about, facts)
    if whole and validation is not None:
        facts["metrics"], reading, truth = _measured(model, validation, recipe.batch_size)
        facts["measured_on"] = "validation"
        if recipe.calibrate:
            model.calibration = calibrate(reading, truth, supervision=method.supervision)
            facts["calibration_error"] = _errors(reading, truth, model.calibration)
    if out is not None and fabric.is_global_zero:
        model.save(Path(out) / "model", overwrite=True)
    return Fitted(model, replace(result, network=network))


def weights_of(recipe: Recipe, method: Method, labels: tuple[str, ...]) -> Weights | None:
    """The weights that a recipe names, if any; refused where the method cannot use them."""
    if not recipe.label_weights and recipe.order_weight == 1:
        return None
    if unknown := [name for name in recipe.label_weights if name not in labels]:
        raise DataError(f"label_weights names {shorten(unknown)}; the labels are {shorten(labels)}")
    each = torch.tensor([float(recipe.label_weights.get(label, 1.0)) for label in labels])
    weights = Weights(each, recipe.order_weight)
    nothing = {output.name: torch.zeros(0, output.size(len(labels))) for output in method.outputs}
    if "weights" not in inspect.signature(method.loss).parameters:
        raise DataError(f"the method {method.name!r} knows no weights: its loss has no argument of that name")
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
    """What is trained and on what: all but the frozen part, on what that part gives, computed once."""
    sets = [one for one in (data, validation) if one is not None]
    halves = divide(network.backbone) if all(stands_still(recipe, one) for one in sets) else None
    if halves is None:
        return network, (data, validation)
    teller = watcher if watcher is not None and fabric.is_global_zero else Watcher()
    halves.still.to(fabric.device)
    found: list[RankedSet] = []
    with fabric.rank_zero_first(local=True):  # the others read what the first has kept
        for one in sets:
            made = features_of(halves.still, one, cache=cache, progress=teller.features)
            if made is None:
                teller.note("features of what is frozen would fill the memory: computed in every epoch")
                return network, (data, validation)
            found.append(made)
    return Network(halves.free, network.head), (found[0], found[1] if len(found) > 1 else None)


@torch.no_grad()
def _measured(
    model: Model, data: RankedSet, batch_size: int, workers: int = 0
) -> tuple[dict[str, float], Reading, Tensor]:
    """In one pass, the metrics of all instances; of some thousand from all over, reading and truth."""
    some = torch.zeros(len(data), dtype=torch.bool)
    some[torch.linspace(0, len(data) - 1, min(len(data), _CALIBRATED_ON)).round().long()] = True
    measures, readings, truth, start = PaperMetrics(), [], [], 0
    for batch in batches(data, torch.arange(len(data)), batch_size, workers=workers):
        reading = model.read(batch.inputs, batch_size, calibrated=False)
        measures.update(reading.scores.float(), batch.ranks)
        kept = some[start : start + len(batch.ranks)]
        readings.append(reading.rows(kept))
        truth.append(batch.ranks[kept])
        start += len(batch.ranks)
    metrics = {name: float(value) for name, value in measures.compute().items()}
    return metrics, Reading.join(readings), torch.cat(truth)


def _errors(reading: Reading, truth: Tensor, calibration: Calibration) -> dict[str, dict[str, float]]:
    return {
        name: {"before": round(both.ece_before, 5), "after": round(both.ece_after, 5)}
        for name, both in compare(reading, truth, calibration).items()
    }


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


def evaluate(model: Model, data: RankedSet, batch_size: int = 256, workers: int = 0) -> dict[str, float]:
    """The paper's six metrics of a model on data, by the names of its tables, as fractions."""
    return _measured(model, data, batch_size, workers)[0]


def evaluate_calibration(
    model: Model, data: RankedSet, batch_size: int = 256
) -> tuple[dict[str, float], dict[str, dict[str, float]]]:
    """The metrics of `evaluate`, and expected calibration errors before and after calibration.

    The errors are of relevance, and of pairs where a method has sigma. Of large data, 5,000 instances
    from all over it are looked at. A model without calibration has the same errors before and after.

    Parameters
    ----------
    model : Model
        What is measured.
    data : RankedSet
        Instances that it was neither trained nor calibrated on.
    batch_size : int
        Instances at once.

    Examples
    --------
    >>> from gaussianmlr.batches import Arrays
    >>> x = torch.randn(64, 2, generator=torch.Generator().manual_seed(0))
    >>> data = Arrays(x, (x > 0) * (x.argsort(1).argsort(1) + 1))
    >>> model = fit(Recipe(backbone="mlp", epochs=2), data, data, labels=("sky", "sea")).model
    >>> {what: sorted(errors) for what, errors in evaluate_calibration(model, data)[1].items()}
    {'relevance': ['after', 'before'], 'pairs': ['after', 'before']}
    """
    metrics, reading, truth = _measured(model, data, batch_size)
    return metrics, _errors(reading, truth, model.calibration or Calibration())

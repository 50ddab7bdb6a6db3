"""A run that trains a network, boosted trees or both: what `gmlr train` does with tables."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from gaussianmlr._utils.files import held, write_text
from gaussianmlr._utils.progress import Watcher
from gaussianmlr._utils.strict_json import dumps
from gaussianmlr._utils.typed import read_typed
from gaussianmlr.data.inputs import Inputs
from gaussianmlr.data.loading import Arrays, RankedSet, SparseRows, fetch
from gaussianmlr.data.streaming.sets import StreamedRows
from gaussianmlr.errors import DataError
from gaussianmlr.model.model import Model, join
from gaussianmlr.model.network import has_texts
from gaussianmlr.model.recipe import Recipe
from gaussianmlr.nn.trees import MOST_BYTES
from gaussianmlr.orders.sparse import SparseRanks
from gaussianmlr.rankers import aggregate
from gaussianmlr.training.choice import KINDS, Choice, Kind, choose
from gaussianmlr.training.engine import Result
from gaussianmlr.training.finish import choose_ties, finish, measure_and_calibrate, save_model
from gaussianmlr.training.fit import Fitted, described, fit
from gaussianmlr.training.origin import Origin
from gaussianmlr.training.run_folder import CHOICE, OLD_TREES, RunFolder
from gaussianmlr.training.sets import fingerprint_of
from gaussianmlr.training.ties import asks_for_choice, settled
from gaussianmlr.training.trees import fit_trees, no_trees

__all__ = ["fit_kinds"]

_COMPARISON = "comparison"  # folder of what is trained for a choice, until it is made
_Table = Arrays | SparseRows


def fit_kinds(
    recipe: Recipe,
    data: RankedSet,
    validation: RankedSet,
    *,
    labels: tuple[str, ...],
    inputs: Inputs,
    out: str | Path,
    fingerprint: str,
    origin: Origin | None = None,
    watcher: Watcher | None = None,
    conformal: RankedSet | None = None,
    facts: Callable[[Result], Mapping[str, Any]] | None = None,
    **options: Any,
) -> Fitted:
    """Train what the field `model` of a recipe says; the same call resumes and keeps finished parts.

    Parameters
    ----------
    recipe : Recipe
        All settings.
    data, validation : RankedSet
        Instances to train on; instances to choose the best epoch and round, and to calibrate on.
    labels, inputs, out, fingerprint, origin, watcher, conformal, facts
        As in `fit`.
    **options
        Further options of `fit`.
    """
    told = watcher or Watcher()
    arguments: dict[str, Any] = {"labels": labels, "inputs": inputs}
    network = {**arguments, **options, "out": out, "fingerprint": fingerprint, "origin": origin}
    if _is_network(recipe, data):
        return fit(recipe, data, validation, **network, watcher=watcher, conformal=conformal, facts=facts)
    if not isinstance(data, Arrays | SparseRows) or inputs["kind"] != "table":
        raise DataError(f"model is {recipe.model!r}, but the data are pictures: only tables have trees")
    if has_texts(inputs):
        raise DataError(f"model is {recipe.model!r}, but trees take no texts; expected 'network'")
    folder, about = Path(out), described(data, labels, inputs, fingerprint)
    with held(folder):
        run = RunFolder(folder, recipe, about[1])
        if origin is not None:
            origin.write(folder)
        choice = _choice(recipe, data, folder, told, arguments | options)
    told.note(f"{choice.kind}: {choice.why}")
    parts, result = [], Result(torch.nn.Identity(), [], 0, 0.0)
    if choice.kind != "trees":
        found = fit(
            recipe,
            data,
            validation,
            **network,
            watcher=watcher,
            conformal=conformal,
            keep=False,
            decide=False,
        )
        if found.result.interrupted:
            return found
        parts, result = [found.model], found.result
    with held(folder):
        if choice.kind != "network":
            parts.append(_trees(settled(recipe, data), data, validation, run, told, arguments))
        model = join(parts)
        model.about |= {"fingerprint": fingerprint, "interrupted": False, "chosen": choice.to_dict()}
        if len(parts) > 1:
            measure_and_calibrate(model, validation)
        if asks_for_choice(recipe) and (note := choose_ties(model, validation)):
            told.note(note)
        seen, spent = model.about["images"], model.about["seconds"]
        history = result.history or [{"stage": "trees", "images": seen, "seconds": spent}]
        result = replace(result, network=model.network, images=seen, seconds=spent, history=history)
        finish(model, result, conformal, facts)
        save_model(model, folder / "model", result)
    return Fitted(model, result)


def _is_network(recipe: Recipe, data: RankedSet) -> bool:
    """Whether a network alone is trained; refused if trees are asked for and cannot be."""
    if recipe.model == "network":
        return True
    if isinstance(data, StreamedRows):
        if recipe.model == "auto":
            return True
        raise DataError(
            f"model is {recipe.model!r}, but the rows are streamed and trees need all of them in memory; "
            "expected 'network', or data that is read whole (--no-stream)"
        )
    return recipe.model == "auto" and recipe.method != "gmlr"


def _choice(
    recipe: Recipe, data: _Table, folder: Path, watcher: Watcher, arguments: dict[str, Any]
) -> Choice:
    """The kind that is trained: the one asked for, the one chosen before, or the one chosen now."""
    if recipe.model != "auto":
        return Choice(recipe.model, f"model={recipe.model!r} was asked for")
    file = folder / CHOICE
    if file.is_file():
        try:
            found = read_typed(Choice, file)
        except (OSError, ValueError) as error:
            raise DataError(f"{file} was changed: {error}; remove it to choose again") from None
        if found.kind not in KINDS:
            raise DataError(f"{file} was changed: kind is {found.kind!r}; remove it to choose again")
        return found
    why = no_trees(len(data), fetch(data, [0])[0].shape[1], len(arguments["labels"]))
    place = folder / _COMPARISON
    found = Choice("network", why) if why else _compared(recipe, data, place, watcher, arguments)
    write_text(file, dumps(found.to_dict(), indent=2, ensure_ascii=False) + "\n")
    shutil.rmtree(place, ignore_errors=True)
    return found


def _compared(
    recipe: Recipe, data: _Table, place: Path, watcher: Watcher, arguments: dict[str, Any]
) -> Choice:
    """The choice between network and trees; what is trained for it resumes from runs in a folder."""
    if place.is_symlink():
        raise DataError(f"{place} is a link; expected a folder of the run. Nothing was changed")
    orders = data.ranks.dense() if isinstance(data.ranks, SparseRanks) else data.ranks.numpy()
    recipe = recipe.replace(conformal=0.0)
    known = {name: arguments[name] for name in ("labels", "inputs")}

    def outputs(kind: Kind, kept: Any, tested: Any) -> Any:
        watcher.note(f"comparing network and trees: {kind} on {len(kept):,} rows")
        count = max(1, round(len(kept) / 5))  # the first rows of a fold are in random order
        train, stop = (data.rows(torch.from_numpy(rows)) for rows in (kept[count:], kept[:count]))
        stop = replace(stop, weights=None) if isinstance(stop, Arrays) else stop
        if kind == "trees":
            fingerprint = f"{fingerprint_of(train)} {fingerprint_of(stop)}"
            run = RunFolder(place / kind, recipe, described(train, **known, fingerprint=fingerprint)[1])
            model = _trees(settled(recipe, data), train, stop, run, watcher, known)
        else:
            fitted = fit(recipe, train, stop, **{**arguments, "loggers": None}, out=place / kind, keep=False)
            if fitted.result.interrupted:
                raise KeyboardInterrupt
            model = fitted.model
        return model.read(fetch(data, tested.tolist())[0]).scores.double().numpy()

    ranks = aggregate(orders) if orders.ndim == 3 else orders
    return choose(outputs, np.asarray(ranks), members=1, seed=recipe.seed)


def _trees(
    recipe: Recipe,
    data: RankedSet,
    validation: RankedSet,
    folder: RunFolder,
    watcher: Watcher,
    arguments: dict[str, Any],
) -> Model:
    """The trees of a run: those that it has, or new ones."""
    file, kept = folder.path / OLD_TREES, None
    if file.is_file():
        if file.stat().st_size > MOST_BYTES:
            raise DataError(f"{file} was changed: it is larger than {MOST_BYTES:,} bytes; remove it")
        kept = file.read_bytes()
    try:
        model = fit_trees(recipe, data, validation, **arguments, watcher=watcher, kept=kept, folder=folder)
    except DataError as error:
        raise error if kept is None else DataError(f"{file}: {error}; remove it to train again") from None
    assert model.trees is not None
    watcher.note(f"trees: {len(model.trees.roots)} rounds, {model.about['seconds']} s")
    return model

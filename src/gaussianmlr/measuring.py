"""What a model is measured on: data with the model's labels and columns, matched by name."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from gaussianmlr.batches import RankedSet
from gaussianmlr.data import RankedData, RankedMNIST, Setting
from gaussianmlr.errors import DataError, shorten
from gaussianmlr.model import Model, load
from gaussianmlr.sources import ALIASES, find_data, ranked_set, split_of

__all__ = ["Part", "find_part", "open_model", "open_test", "ready"]


class Part(NamedTuple):
    """Instances to measure a model on, labels and columns matched, and where they come from."""

    data: RankedData | RankedMNIST
    split: str
    """The part that they are, "all" for everything."""
    notes: tuple[str, ...]
    """For people."""


def open_model(path: str | os.PathLike[str]) -> Model:
    """A model from its folder, or from the folder of the run that made it."""
    folder = Path(path)
    if (folder / "run.json").is_file():
        if not (folder / "model").is_dir():
            raise DataError(f"the run in {folder} has no model yet; train it to its end first")
        folder = folder / "model"
    return load(folder)


def open_test(
    model: Model,
    name: str | os.PathLike[str],
    split: str = "test",
    *,
    size: int | None = None,
    digits: str = "auto",
    threshold: float | None = None,
    tolerance: float = 0.0,
) -> tuple[RankedSet, tuple[str, ...]]:
    """Instances to measure a model on, labels and columns matched by name; and notes for people.

    Parameters
    ----------
    model : Model
        What shall be measured.
    name : str or path
        As in `find_data`.
    split : str
        The part of the data; "all" takes everything. Data without a split is taken whole, but for
        "validation": the part that training holds out.
    size, digits
        Of Ranked MNIST: how many images, of which digits.
    threshold, tolerance
        As in `find_data`.
    """
    part = find_part(model, name, split, size=size, digits=digits, threshold=threshold, tolerance=tolerance)
    return ready(part.data, model), part.notes


def ready(data: RankedData | RankedMNIST, model: Model) -> RankedSet:
    """Instances as a model takes them; all of them count the same."""
    if not isinstance(data, RankedData):
        return data
    if data.images is not None and "preprocess" not in model.inputs:
        raise DataError(
            f"{data.source}: the model was trained on tensors and does not know how to read files"
        )
    return ranked_set(replace(data, weights=None), model.inputs)


def find_part(
    model: Model,
    name: str | os.PathLike[str],
    split: str | None = "test",
    *,
    size: int | None = None,
    digits: str = "auto",
    threshold: float | None = None,
    tolerance: float = 0.0,
) -> Part:
    """The instances of `open_test`, before they are made inputs of the model.

    Parameters
    ----------
    model, name, size, digits, threshold, tolerance
        As in `open_test`.
    split : str, optional
        As there; without it, the test part where there is one, else the validation part of data that has
        any part or that the model was trained on, else everything.
    """
    grading: dict[str, Any] = {"threshold": threshold, "tolerance": tolerance}
    columns = model.inputs.get("columns")
    found = find_data(name, features=columns, **grading)
    kind = "table" if isinstance(found, RankedData) and found.features is not None else "image"
    if kind != model.inputs["kind"]:
        raise DataError(f"{name} holds {kind} data, and the model takes {model.inputs['kind']} inputs")
    if isinstance(found, Setting):
        drawn, notes = _drawn_test(model, found, split or "test", size, digits)
        return Part(drawn, drawn.split, notes)
    if size is not None:
        raise DataError(f"{name} has the instances it has; --size is for Ranked MNIST, which is drawn")
    if extra := [label for label in found.labels if label not in model.labels]:
        raise DataError(
            f"{name}: the model does not know the labels {shorten(extra)}; it knows {_listed(model)}"
        )
    if set(found.labels) != set(model.labels):
        found = _with_all_labels(found, model, name, columns, grading)
    trained_on = found.split is None and found.fingerprint() == model.about.get("fingerprint")
    split = split or _usual(found, trained_on)
    order = [found.labels.index(label) for label in model.labels]
    found = replace(found, labels=model.labels, ranks=found.ranks[:, order], by_ranker=None, rankers=None)
    if columns is not None and found.feature_names is None and found.features is not None:
        width = found.features.shape[1]
        if width != len(columns):
            raise DataError(f"{name}: {width} features; the model takes {len(columns)}")
    part, notes = _part(found, split, str(name))
    if part is found and split != "all" and trained_on:
        notes = (*notes, "the model was trained on most of these instances: it looks better here than it is")
    return Part(part, "all" if part is found else ALIASES.get(split.lower(), split.lower()), notes)


def _usual(found: RankedData, trained_on: bool) -> str:
    """The part that says most about a model, where nobody says which."""
    names = {ALIASES.get(name.lower(), name.lower()) for name in found.splits}
    if "test" in names:
        return "test"
    # Of what was trained on, training held a part out.
    return "validation" if trained_on or names & {"train", "validation"} else "all"


def _part(found: RankedData, split: str, name: str) -> tuple[RankedData, tuple[str, ...]]:
    if split == "all":
        return found, ()
    if found.split is None and split == "test":
        note = f"no split: all {len(found)} instances are used; --split validation takes those held out"
        return found, (note,)
    parts, notes = split_of(found)
    wanted = ALIASES.get(split.lower(), split.lower())
    if wanted not in parts:
        raise DataError(f"{name}: no split {split!r}; it has {', '.join(parts)}, and 'all' takes everything")
    return parts[wanted], tuple(notes) if wanted != "test" else ()


def _with_all_labels(
    found: RankedData, model: Model, name: Any, columns: Sequence[str] | None, grading: dict[str, Any]
) -> RankedData:
    """Read again with the model's labels: a text need not name them all, columns must be there."""
    missing = [label for label in model.labels if label not in found.labels]
    if Path(name).suffix.lower() in (".npz", ".mat"):  # their labels are renamed, not matched
        raise DataError(f"{name}: no ranks of the labels {shorten(missing)}, which the model knows")
    again = find_data(name, labels=model.labels, features=columns, **grading)
    assert isinstance(again, RankedData)
    if set(again.labels) != set(model.labels):
        raise DataError(f"{name}: no ranks of the labels {shorten(missing)}, which the model knows")
    return again


def _drawn_test(
    model: Model, setting: Setting, split: str, size: int | None, digits: str
) -> tuple[RankedMNIST, tuple[str, ...]]:
    wanted: Any = ALIASES.get(split.lower(), split.lower())
    data = RankedMNIST(setting, wanted, size=size, digits=digits)
    channels = 3 if setting.colour else 1
    if data.labels != model.labels or channels != model.inputs["channels"]:
        raise DataError(
            f"{setting.name} has {channels} channels and the labels {', '.join(data.labels)}; "
            f"the model takes {model.inputs['channels']} channels and knows {_listed(model)}"
        )
    return data, (f"made from {data.digits.source}",)


def _listed(model: Model) -> str:
    more = " ..." if len(model.labels) > 20 else ""
    return ", ".join(model.labels[:20]) + more

"""Test data for a model, with labels and columns matched by name."""

from __future__ import annotations

import os
import shutil
import weakref
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from gaussianmlr._utils.cache import cache_folder
from gaussianmlr._utils.leftovers import sweep, temporary
from gaussianmlr.data import SETTINGS, RankedData, RankedMNIST, Setting
from gaussianmlr.data.columns import count_unseen, unseen_lines
from gaussianmlr.data.inputs import columns_of, encoding_of
from gaussianmlr.data.loading import RankedSet
from gaussianmlr.data.open import find_data, ranked_set, recoded
from gaussianmlr.data.readers.layout import Layout
from gaussianmlr.data.readers.xmlc import is_xmlc
from gaussianmlr.data.sparse import SparseRankedData
from gaussianmlr.data.splits import part_name
from gaussianmlr.data.splits import split as split_parts
from gaussianmlr.data.streaming.build import build
from gaussianmlr.data.streaming.files import RowFiles, find_rows
from gaussianmlr.data.streaming.learn import choose_part
from gaussianmlr.data.streaming.look import look
from gaussianmlr.data.streaming.sets import StreamedRows
from gaussianmlr.errors import DataError, shorten
from gaussianmlr.model.model import Model, load
from gaussianmlr.model.shipped import place_of
from gaussianmlr.training.origin import Origin

__all__ = ["Part", "find_part", "open_model", "open_test", "ready"]


class Part(NamedTuple):
    """Test instances, with labels and columns matched to a model."""

    data: RankedData | RankedMNIST
    split: str
    """The part of the data, "all" for everything."""
    notes: tuple[str, ...]
    """Notes for the user."""
    trained_on: bool = False
    """Whether the whole data is what the model was trained on."""


def open_model(path: str | os.PathLike[str]) -> Model:
    """A model from its folder, from the folder of the run that made it, or ``shipped:NAME``."""
    folder = place_of(path)
    if (folder / "run.json").is_file():
        sweep(folder)  # puts back a model that a dead process had moved aside
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
    layout: Layout | None = None,
    stream: bool | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[RankedSet, tuple[str, ...]]:
    """Test instances for a model, labels and columns matched by name, and notes for the user.

    Parameters
    ----------
    model : Model
        The model.
    name : str or path
        As in `find_data`.
    split : str
        The part of the data; "all" takes everything. Data without a split is taken whole, but for
        "validation": the part that training holds out.
    size, digits
        Ranked MNIST: number of images, and their digits.
    threshold, tolerance, layout
        As in `find_data`.
    stream : bool, optional
        Whether rows are read in parts; if left out, those of large data, see `find_rows`.
    progress : callable, optional
        Called with the numbers of rows of such data that are read, and of all.
    """
    columns = {"labels": model.labels, "layout": layout, **_columns(model)}
    rows = find_rows(name, stream=stream, threshold=threshold, tolerance=tolerance, **columns)
    if rows is not None:
        return _streamed_test(model, rows, split, progress)
    part = find_part(
        model,
        name,
        split,
        size=size,
        digits=digits,
        threshold=threshold,
        tolerance=tolerance,
        layout=layout,
    )
    return ready(part.data, model), part.notes


def _streamed_test(
    model: Model, rows: RowFiles, split: str, progress: Callable[[int, int], None] | None
) -> tuple[RankedSet, tuple[str, ...]]:
    """The instances of `open_test` in a folder of the user's cache, which is removed in the end."""
    kind = "table" if rows.kind == "features" else "image"
    if kind != model.inputs["kind"]:
        raise DataError(f"{rows.path} holds {kind} data, and the model takes {model.inputs['kind']} inputs")
    cache = cache_folder("rows")
    cache.mkdir(parents=True, exist_ok=True)
    sweep(cache)
    folder = temporary(cache / "evaluated")
    try:
        store = build(rows, look(rows), folder, progress)
        part, notes = choose_part(store, split)
        found = StreamedRows(store, model.inputs, part)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    weakref.finalize(found, shutil.rmtree, folder, ignore_errors=True)
    return found, (*store.about.notes, *notes)


def ready(data: RankedData | RankedMNIST, model: Model) -> RankedSet:
    """Instances as a model takes them, without weights."""
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
    layout: Layout | None = None,
) -> Part:
    """The instances of `open_test`, before they become inputs of the model.

    Parameters
    ----------
    model, name, size, digits, threshold, tolerance, layout
        As in `open_test`.
    split : str, optional
        As there; without it, the test part where there is one, else the validation part of data that has
        any part or that the model was trained on, else everything.
    """
    reading: dict[str, Any] = {"threshold": threshold, "tolerance": tolerance, "layout": layout}
    found = _found(name, model, reading)
    kind = "table" if isinstance(found, RankedData) and found.features is not None else "image"
    if kind != model.inputs["kind"]:
        raise DataError(f"{name} holds {kind} data, and the model takes {model.inputs['kind']} inputs")
    if isinstance(found, Setting):
        drawn, notes = _drawn_test(model, found, split or "test", size, digits)
        return Part(drawn, drawn.split, notes)
    if size is not None:
        raise DataError(f"{name} has the instances it has; --size is for Ranked MNIST, which is drawn")
    found = _with_all_labels(found, model, name, reading)
    same = found.fingerprint() == model.about.get("fingerprint")
    trained_on = found.split is None and same
    split = split or _usual(found, trained_on)
    found = _in_order(found, model, name)
    part, notes = _part(found, split, str(name))
    if part is found and split != "all" and trained_on:
        notes = (*notes, "the model was trained on most of these instances, so its scores are too high")
    return Part(
        part,
        "all" if part is found else part_name(split),
        (*found.notes, *notes, *_unseen(part, model)),
        same,
    )


def _found(name: str | os.PathLike[str], model: Model, reading: dict[str, Any]) -> RankedData | Setting:
    """Data with the columns of a model; label columns without a prefix are found by its labels."""
    columns = _columns(model)
    if is_xmlc(Path(name)):  # labels are numbers, which need not all occur
        return find_data(name, labels=model.labels, **columns, **reading)
    try:
        return find_data(name, **columns, **reading)
    except DataError as error:
        if Path(name).suffix.lower() in (".npz", ".mat"):  # their labels would be renamed
            raise
        try:
            return find_data(name, labels=model.labels, **columns, **reading)
        except DataError:
            raise error from None


def _columns(model: Model) -> dict[str, Any]:
    """The feature columns of a model, and what they hold, as `find_data` takes them."""
    names = model.inputs.get("columns")
    if names is None:
        return {}
    known = encoding_of(model.inputs)
    kinds = ["number"] * len(names) if known is None else [column.kind for column in known]
    return {"features": names, "kinds": dict(zip(names, kinds))}


def _unseen(part: RankedData, model: Model) -> tuple[str, ...]:
    """What the instances hold that no training row had."""
    if part.features is None or isinstance(part, SparseRankedData):
        return ()
    found = count_unseen(recoded(part, model.inputs), encoding_of(model.inputs), columns_of(model.inputs))
    return tuple(unseen_lines(found))


def _in_order(found: RankedData, model: Model, name: Any) -> RankedData:
    """Data with its labels in the order of the model; features without names must be as many."""
    order = [found.labels.index(label) for label in model.labels]
    if found.labels != model.labels:
        ranks = found.ranks[:, order]
        found = replace(found, labels=model.labels, ranks=ranks, by_ranker=None, rankers=None)
    columns = model.inputs.get("columns")
    if columns is not None and found.feature_names is None and found.features is not None:
        width = found.features.shape[1]
        if width != len(columns):
            raise DataError(f"{name}: {width} features; the model takes {len(columns)}")
    return found


def _usual(found: RankedData, trained_on: bool) -> str:
    """The part to use if none is named."""
    names = {part_name(name) for name in found.splits}
    if "test" in names:
        return "test"
    # Training held out a part of its data.
    return "validation" if trained_on or names & {"train", "validation"} else "all"


def _part(found: RankedData, split: str, name: str) -> tuple[RankedData, tuple[str, ...]]:
    if split == "all":
        return found, ()
    if found.split is None and split == "test":
        note = f"no split: all {len(found)} instances are used; --split validation takes those held out"
        return found, (note,)
    parts, notes = split_parts(found)
    wanted = part_name(split)
    if wanted not in parts:
        raise DataError(
            f"{name}: no split {split!r}; it has {', '.join(parts)}, and 'all' takes everything; "
            "--split-column says which column holds the splits"
        )
    return parts[wanted], tuple(notes) if wanted != "test" else ()


def _with_all_labels(found: RankedData, model: Model, name: Any, reading: dict[str, Any]) -> RankedData:
    """Data with the labels of the model, read again if some do not occur: texts need not name them all."""
    if extra := [label for label in found.labels if label not in model.labels]:
        raise DataError(
            f"{name}: the model does not know the labels {shorten(extra)}; it knows {_listed(model)}"
        )
    if set(found.labels) == set(model.labels):
        return found
    missing = [label for label in model.labels if label not in found.labels]
    if Path(name).suffix.lower() in (".npz", ".mat"):  # their labels are renamed, not matched
        raise DataError(f"{name}: no ranks of the labels {shorten(missing)}, which the model knows")
    again = find_data(name, labels=model.labels, **_columns(model), **reading)
    assert isinstance(again, RankedData)
    if set(again.labels) != set(model.labels):
        raise DataError(f"{name}: no ranks of the labels {shorten(missing)}, which the model knows")
    return again


def _drawn_test(
    model: Model, setting: Setting, split: str, size: int | None, digits: str
) -> tuple[RankedMNIST, tuple[str, ...]]:
    wanted: Any = part_name(split)
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


def open_origin(
    origin: Origin, model: Model, folder: str | os.PathLike[str], split: str | None = None
) -> Part:
    """A part of the data, that for validation if none is named.

    Raises
    ------
    DataError
        If the data is missing or has changed.
    """
    wanted: Any = part_name(split or "validation")
    found = (
        _drawn_again(origin, wanted)
        if origin.data in SETTINGS
        else _read_again(origin, model, Path(folder), wanted)
    )
    if found is None:
        raise DataError(f"{origin.data} is not what the run was trained on; it was changed since")
    return found


def _drawn_again(origin: Origin, split: Any) -> Part | None:
    if split == "test":  # whose digits were not recorded
        drawn = RankedMNIST(origin.data, split, digits=origin.digits)
        return Part(drawn, split, ())
    drawn = RankedMNIST(
        origin.data, split, size=origin.validation, digits=origin.digits, shared_digits=origin.shared_digits
    )
    same = drawn.digits.digest() == origin.digest
    return Part(drawn, split, ()) if same else None


def _read_again(origin: Origin, model: Model, folder: Path, split: str) -> Part | None:
    """Read the data at its place relative to the run or to here; other contents do not count."""
    if origin.streamed:
        raise DataError(f"{origin.data} was streamed, and is not read into memory again")
    places = [Path(origin.data)] if origin.beside is None else [folder / origin.beside, Path(origin.data)]
    there = [place for place in places if place.is_file() or place.is_dir()]  # no pipe, no device
    if not there:
        raise DataError(f"{origin.data}: the data of the run is not there any more")
    reading: dict[str, Any] = {
        "threshold": origin.threshold,
        "tolerance": origin.tolerance,
        "layout": origin.layout,
    }
    refused: DataError | None = None
    for place in dict.fromkeys(place.resolve() for place in there):
        for labels in (None, model.labels):  # those that occur, or those that were listed
            try:
                whole = find_data(place, labels=labels, **_columns(model), **reading)
            except DataError as error:  # columns by other names, or labels that the model does not know
                refused = refused or error
                continue
            if not isinstance(whole, RankedData):
                continue
            part = whole if origin.ids is None else _with_ids(whole, origin.ids)
            if part.fingerprint() == origin.digest:
                by_user = origin.ids is not None and split == "validation"
                return Part(part, split, ()) if by_user else find_part(model, place, split, **reading)
            refused = None
    if refused is not None:
        raise refused
    return None


def _with_ids(data: RankedData, ids: Sequence[str]) -> RankedData:
    places = {name: place for place, name in enumerate(data.ids or ())}
    return data.subset([places[name] for name in ids if name in places])

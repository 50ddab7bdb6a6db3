"""What commands read: a Ranked MNIST set by name, a table, pictures; ready to train on and to test."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from gaussianmlr.batches import Arrays, RankedSet, truth_at
from gaussianmlr.data import SETTINGS, Preprocess, RankedData, RankedMNIST, Setting
from gaussianmlr.data._splits import ALIASES, left_out, part_name, unknown_splits
from gaussianmlr.data.dataset import ORDERS_ALONE
from gaussianmlr.data.images import read_image
from gaussianmlr.defaults import SIDE, picture_options
from gaussianmlr.errors import DataError, shorten
from gaussianmlr.model import Inputs
from gaussianmlr.recipe import Recipe

__all__ = [
    "ALIASES",
    "Pictures",
    "Source",
    "find_data",
    "open_data",
    "scaled",
]

HELD_OUT = 0.2  # of the training data, where nobody set validation data apart


@dataclass(frozen=True)
class Source:
    """Data that is ready to train on.

    Attributes
    ----------
    train, validation : RankedSet
        What is trained on, and what the best epoch is chosen by.
    test : RankedSet or None
        What was set apart for the end.
    labels : tuple of str
        The columns of ranks.
    inputs : Inputs
        What a model of this data takes, kept with it.
    fingerprint : str
        Of everything above: the same data, the same text.
    notes : tuple of str
        What was decided on the way, for people.
    """

    train: RankedSet
    validation: RankedSet
    test: RankedSet | None
    labels: tuple[str, ...]
    inputs: Inputs
    fingerprint: str
    notes: tuple[str, ...] = ()


class Pictures:
    """Image files and their ranks, read when they are asked for.

    Parameters
    ----------
    data : RankedData
        With images.
    preprocess : Preprocess
        What makes tensors of one size of them.
    by_ranker : bool
        One ranker's order drawn anew each epoch, in place of the order that all of them make.
    seed : int
        Seed of that drawing.
    """

    def __init__(
        self, data: RankedData, preprocess: Preprocess, *, by_ranker: bool = False, seed: int = 0
    ) -> None:
        if data.images is None:
            raise DataError(f"expected data with images, got {data!r}")
        self.files, self.preprocess, self.seed = data.images, preprocess, seed
        drawn = by_ranker and data.by_ranker is not None
        self.ranks = torch.from_numpy(data.by_ranker if drawn else data.ranks)
        self.weights = None if data.weights is None else torch.from_numpy(data.weights).float()

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> tuple[Tensor, ...]:
        return tuple(part[0] for part in self.tensors_at([index]))

    def tensors_at(self, indices: Sequence[int], epoch: int = 0) -> tuple[Tensor, ...]:
        """Some instances: images, ranks and perhaps weights."""
        where = torch.as_tensor(indices, dtype=torch.int64)
        images = torch.empty(len(where), self.preprocess.channels, *self.preprocess.size)
        for place, index in enumerate(where.tolist()):
            images[place] = self.load(self.files[index])
        return images, *truth_at(where, self.ranks, self.weights, self.seed, epoch)

    def load(self, file: Path) -> Tensor:
        """The tensor of a file."""
        return picture(file, self.preprocess)

    def transform(self) -> dict[str, Any]:
        """What makes tensors of files, part of what features are known by."""
        return self.preprocess.to_dict()


def picture(file: str | os.PathLike[str], preprocess: Preprocess) -> Tensor:
    """The tensor of an image file."""
    return preprocess(read_image(file, "L" if preprocess.channels == 1 else "RGB"))


def scaled(features: Any, inputs: Inputs) -> Tensor:
    """Rows of a table as the model was trained on them: standardised, in single precision.

    Examples
    --------
    >>> scaled([[3.0, 5.0]], {"scaling": {"mean": [1.0, 5.0], "std": [2.0, 1.0]}})
    tensor([[1., 0.]])
    """
    values = np.asarray(features, dtype=np.float64)
    if "scaling" in inputs:
        values = (values - np.array(inputs["scaling"]["mean"])) / np.array(inputs["scaling"]["std"])
    return torch.from_numpy(values.astype(np.float32))


def find_data(
    name: str | os.PathLike[str],
    *,
    labels: Sequence[str] | None = None,
    features: Sequence[str] | None = None,
    threshold: float | None = None,
    tolerance: float = 0.0,
) -> RankedData | Setting:
    """Read what a name or a path stands for.

    Parameters
    ----------
    name : str or path
        A Ranked MNIST set; a table; a manifest of pictures or a folder that holds one; the folder or
        archive of NSID or AVDP.
    labels, features
        Labels there are, and feature columns to use; see `read_table`.
    threshold, tolerance
        Read label columns as grades; see `read_table`.

    Examples
    --------
    >>> find_data("gray-s").name
    'gray-s'
    >>> find_data("nowhere.csv")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    gaussianmlr.errors.DataError: nowhere.csv: does not exist; Ranked MNIST sets are gray-s, gray-b, ...
    """
    if str(name) in SETTINGS:
        return SETTINGS[str(name)]
    from gaussianmlr.data import read_avdp, read_images, read_nsid, read_table
    from gaussianmlr.data.recognising import recognise

    path = Path(name)
    if not path.exists():
        raise DataError(f"{path}: does not exist; Ranked MNIST sets are {', '.join(SETTINGS)}")
    kind, root, notes = recognise(path)
    if kind == "export":
        raise DataError(
            f"{path}: an export of Ranked MNIST that holds no picture files; export it --to png, "
            "or train on the set by its name"
        )
    if kind == "avdp":
        return read_avdp(root)
    if kind == "nsid":
        return read_nsid(root)
    grading: dict[str, Any] = {"threshold": threshold, "tolerance": tolerance}
    if kind == "images":
        data = read_images(root, labels=labels, **grading)
        return replace(data, notes=(*notes, *data.notes))
    if path.suffix.lower() in (".npz", ".mat"):
        return read_table(root, labels=labels, **grading)
    return read_table(root, labels=labels, features=features, **grading)


def open_data(
    found: RankedData | Setting | str | os.PathLike[str],
    *,
    size: int | None = None,
    digits: str = "auto",
    image_size: int | None = None,
    channels: int | None = None,
    rankers: Literal["aggregate", "all"] = "aggregate",
    seed: int = 0,
) -> Source:
    """Make data ready to train on.

    Parameters
    ----------
    found : RankedData, Setting, str or path
        Data, or what `find_data` takes.
    size : int, optional
        Of Ranked MNIST: training images an epoch; a sixth of it for validation and for the test.
    digits : str
        Of Ranked MNIST: where its digits come from.
    image_size : int, optional
        Of pictures: height and width that they are brought to, 224 if left out; see `side_of`.
    channels : {1, 3}, optional
        Of pictures: gray or colour. Gray if left out and the first ones are gray.
    rankers : {"aggregate", "all"}
        Train on the order that all rankers make, or on one ranker's drawn anew each epoch.
    seed : int
        Seed of that drawing. The part that is held out where nobody set it apart depends on the ids
        of the instances alone.

    Examples
    --------
    >>> from gaussianmlr.data import from_arrays
    >>> data = from_arrays(np.arange(20.0).reshape(10, 2), [["a", "b"]] * 5 + [["b"]] * 5)
    >>> source = open_data(data)
    >>> len(source.train), len(source.validation), source.notes[0]
    (8, 2, 'no split: 2 of 10 training instances are held out for validation')
    """
    if image_size is not None and image_size < 1:
        raise DataError(f"image_size is {image_size}; expected 1 or more")
    if not isinstance(found, RankedData | Setting):
        found = find_data(found)
    if image_size is not None and (isinstance(found, Setting) or found.images is None):
        raise DataError(f"image_size is for pictures, got {image_size}; other data has the size it has")
    if isinstance(found, Setting):
        return _ranked_mnist(found, size, digits)
    if size is not None:
        raise DataError("size is for Ranked MNIST sets, which are drawn; other data has the size it has")
    if found.kind == "orders":
        raise DataError(f"{found.source}: {ORDERS_ALONE}")
    parts, notes = split_of(found)
    if "train" not in parts:
        raise DataError(
            f"{found.source}: no instance has the split 'train'; it has {shorten(list(found.splits))}"
        )
    inputs = _inputs(parts["train"], image_size, channels)

    def ready(part: RankedData, drawn: bool) -> RankedSet:
        return ranked_set(part, inputs, by_ranker=drawn, seed=seed)

    return Source(
        train=ready(parts["train"], rankers == "all"),
        # Weights say what to learn from, not what counts in the end.
        validation=ready(replace(parts["validation"], weights=None), False),
        test=ready(replace(parts["test"], weights=None), False) if "test" in parts else None,
        labels=found.labels,
        inputs=inputs,
        fingerprint=found.fingerprint(),
        notes=(*notes, *found.notes),
    )


def ranked_set(data: RankedData, inputs: Inputs, *, by_ranker: bool = False, seed: int = 0) -> RankedSet:
    """Instances as a model with these inputs takes them."""
    if data.images is not None:
        preprocess = Preprocess.from_dict(inputs["preprocess"])
        return Pictures(data, preprocess, by_ranker=by_ranker, seed=seed)
    ranks = data.by_ranker if by_ranker and data.by_ranker is not None else data.ranks
    weights = None if data.weights is None else data.weights.astype(np.float32)
    return Arrays(scaled(data.features, inputs), ranks, weights, seed)


def split_of(data: RankedData) -> tuple[dict[str, RankedData], list[str]]:
    """Train, validation and test parts; what is missing of validation data is held out by id."""
    unknown = unknown_splits(data)
    notes = [left_out(unknown, len(data))] if unknown else []
    if data.split is None:
        parts, why = {"train": data}, "no split"
    else:
        names = np.array([part_name(name) for name in data.split.tolist()])
        parts = {name: data.subset(names == name) for name in dict.fromkeys(names.tolist())}
        why = "no validation split"
    if "train" not in parts or "validation" in parts:
        return parts, notes
    train = parts["train"]
    if len(train) < 2:
        raise DataError(f"{data.source}: one instance to train on; expected two or more, some to validate on")
    assert train.ids is not None
    different = set(train.ids)  # rows of one id stay together, or one would betray the other
    if len(different) < 2:
        raise DataError(f"{data.source}: all rows have the id {train.ids[0]!r}; expected two ids or more")
    chosen = set(in_drawn_order(different, "{}\x000")[: held_out_of(len(different))])
    held = np.array([name in chosen for name in train.ids])
    parts["train"], parts["validation"] = train.subset(~held), train.subset(held)
    note = f"{why}: {held.sum()} of {len(train)} training instances are held out for validation"
    return parts, [note, *notes]


def in_drawn_order(ids: Iterable[str], stamp: str) -> list[str]:
    """Different ids in an order that a digest draws: the same with every version of everything.

    `stamp` is the text that is digested, with ``{}`` in the place of the id: another stamp, another draw.
    """
    return sorted(set(ids), key=lambda name: hashlib.sha256(stamp.replace("{}", name).encode()).digest())


def held_out_of(count: int) -> int:
    """How many of so many are held out."""
    return max(1, round(HELD_OUT * count))


def _inputs(train: RankedData, image_size: int | None, channels: int | None) -> Inputs:
    if train.features is not None:
        values = train.features.astype(np.float64)
        mean, std = values.mean(0), values.std(0)
        std[std < 1e-12] = 1.0  # a constant column says nothing, and shall break nothing
        names = train.feature_names or tuple(map(str, range(values.shape[1])))
        scaling = {"mean": mean.tolist(), "std": std.tolist()}
        return {"kind": "table", "channels": values.shape[1], "columns": list(names), "scaling": scaling}
    assert train.images is not None
    decided = picture_options(train, Recipe(), SIDE if image_size is None else image_size, channels)
    return _image_inputs(decided["image_size"], decided["channels"])


def _image_inputs(side: int, channels: int) -> Inputs:
    # The whole picture: what is cut off may be a label. Backbones bring values into their own range.
    preprocess = Preprocess(
        size=(side, side), crop=None, mean=(0.0,) * channels, std=(1.0,) * channels, channels=channels
    )
    return {
        "kind": "image",
        "channels": channels,
        "size": [side, side],
        "preprocess": preprocess.to_dict(),
    }


def _ranked_mnist(setting: Setting, size: int | None, digits: str) -> Source:
    small = None if size is None else max(1, size // 6)
    train = RankedMNIST(setting, "train", size=size, digits=digits)
    validation = RankedMNIST(setting, "validation", size=small, digits=train.digits)
    test = RankedMNIST(setting, "test", size=small, digits=digits)
    about = [setting.pictures, setting.factor, len(train), len(validation), train.digits.digest()]
    return Source(
        train=train,
        validation=validation,
        test=test,
        labels=train.labels,
        inputs=_image_inputs(setting.canvas, 3 if setting.colour else 1),
        fingerprint=hashlib.sha256(json.dumps(about).encode()).hexdigest(),
        notes=(f"made from {train.digits.source}",),
    )

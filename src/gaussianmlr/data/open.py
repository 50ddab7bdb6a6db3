"""Opens data by name or path and makes it ready for training: Ranked MNIST, tables, pictures."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from gaussianmlr._utils.bounded import check_file, is_folder
from gaussianmlr.data import SETTINGS, Preprocess, RankedData, RankedMNIST, Setting
from gaussianmlr.data.cells import Kind
from gaussianmlr.data.columns import recode
from gaussianmlr.data.dataset import ORDERS_ALONE
from gaussianmlr.data.inputs import Inputs, columns_of, encoding_of, table_inputs
from gaussianmlr.data.loading import RankedSet, ranked_rows
from gaussianmlr.data.problems import Problems
from gaussianmlr.data.readers.avdp import read_avdp
from gaussianmlr.data.readers.images import RankedImages, open_image
from gaussianmlr.data.readers.layout import Layout
from gaussianmlr.data.readers.manifests import image_column, read_images
from gaussianmlr.data.readers.nsid import read_nsid
from gaussianmlr.data.readers.tables import read_with
from gaussianmlr.data.readers.texts import read_texts
from gaussianmlr.data.readers.xmlc import ranked_xmlc
from gaussianmlr.data.recognise import part_files, recognise
from gaussianmlr.data.splits import CONFORMAL, split
from gaussianmlr.data.streaming.build import read_parts
from gaussianmlr.data.streaming.files import RowFiles
from gaussianmlr.data.streaming.look import look
from gaussianmlr.data.tokens import cut_lengths
from gaussianmlr.errors import DataError, shorten

__all__ = ["Source", "find_data", "open_data", "portable"]

SIDE = 224  # default height and width of pictures
_LOOKED_AT = 32  # pictures that decide whether all are gray


@dataclass(frozen=True)
class Source:
    """Data that is ready to train on.

    Attributes
    ----------
    train, validation : RankedSet
        Training data, and the data that the best epoch is chosen by.
    test : RankedSet or None
        Test data, if any.
    labels : tuple of str
        The columns of ranks.
    inputs : Inputs
        Inputs of a model for this data, stored with it.
    fingerprint : str
        Identifies the data.
    notes : tuple of str
        Decisions of the reader, as text.
    conformal : RankedSet or None
        Data to calibrate guarantees on, if any was held out.
    """

    train: RankedSet
    validation: RankedSet
    test: RankedSet | None
    labels: tuple[str, ...]
    inputs: Inputs
    fingerprint: str
    notes: tuple[str, ...] = ()
    conformal: RankedSet | None = None


def find_data(
    name: str | os.PathLike[str],
    *,
    labels: Sequence[str] | None = None,
    features: Sequence[str] | None = None,
    threshold: float | None = None,
    tolerance: float = 0.0,
    layout: Layout | None = None,
    kinds: Mapping[str, Kind] | None = None,
) -> RankedData | Setting:
    """Read data by name or path.

    Parameters
    ----------
    name : str or path
        A Ranked MNIST set; a table; a manifest of pictures or a folder that holds one; the folder or
        archive of NSID or AVDP; a file of the extreme classification repository, see `read_xmlc`.
    labels, features
        Labels, and feature columns to use; see `read_table`.
    threshold, tolerance
        Read label columns as grades; see `read_table`.
    layout : Layout, optional
        How a table or manifest is to be read; `features` replaces its features.
    kinds : mapping, optional
        What feature columns hold; see `read_table`.

    Examples
    --------
    >>> find_data("gray-s").name
    'gray-s'
    >>> find_data("nowhere.csv")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    gaussianmlr.errors.DataError: nowhere.csv: does not exist; expected a table, pictures, ...
    """
    if str(name) in SETTINGS:
        return SETTINGS[str(name)]
    path = Path(name)
    if not is_folder(path):
        check_file(path, f"a table, pictures, or one of the Ranked MNIST sets {', '.join(SETTINGS)}")
    layout = layout or Layout()
    kind, root, notes = recognise(path, layout)
    if kind == "parts":
        listed = None if labels is None else tuple(labels)
        return _parts(path, root, layout, listed, features, threshold, tolerance, kinds)
    if kind == "export":
        raise DataError(
            f"{path}: an export of Ranked MNIST that holds no picture files; export it --to png, "
            "or train on the set by its name"
        )
    if kind in ("avdp", "nsid"):
        return read_avdp(root) if kind == "avdp" else read_nsid(root)
    if kind == "xmlc":
        problems = Problems()
        found = ranked_xmlc(root, problems, labels=labels, features=features, layout=layout)
        problems.raise_errors(str(root))
        return found
    grading: dict[str, Any] = {"threshold": threshold, "tolerance": tolerance}
    if kind == "texts":
        data = read_texts(root, labels=labels, layout=layout, kinds=kinds, **grading)
    elif kind == "images":
        data = read_images(root, labels=labels, layout=layout, **grading)
    else:
        plain = root.suffix.lower() in (".npz", ".mat")
        if features is not None and not plain:
            layout = replace(layout, features=tuple(features))
        data = read_with(root, layout, labels=labels, kinds=None if plain else kinds, **grading)
    return replace(data, notes=(*notes, *data.notes))


def _parts(
    path: Path,
    root: Path,
    layout: Layout,
    labels: tuple[str, ...] | None,
    features: Sequence[str] | None,
    threshold: float | None,
    tolerance: float,
    kinds: Mapping[str, Kind] | None,
) -> RankedData:
    """A table in several files."""
    if features is not None:
        layout = replace(layout, features=tuple(features))
    files = tuple(part_files(root))
    kind = "features" if image_column(files[0], layout) is None else "images"
    rows = RowFiles(root, files, kind, layout, labels, threshold, tolerance, dict(kinds or {}))
    with tempfile.TemporaryDirectory() as folder:
        data = read_parts(rows, look(rows), Path(folder) / "rows")
    return replace(data, source=path.name, notes=(f"read {len(files)} files", *data.notes))


def open_data(
    found: RankedData | Setting | str | os.PathLike[str],
    *,
    size: int | None = None,
    digits: str = "auto",
    image_size: int | None = None,
    channels: int | None = None,
    rankers: Literal["aggregate", "all", "reliable"] = "aggregate",
    seed: int = 0,
    conformal: float = 0.0,
    encoder: str | None = None,
) -> Source:
    """Make data ready to train on.

    Parameters
    ----------
    found : RankedData, Setting, str or path
        Data, or what `find_data` takes.
    size : int, optional
        Ranked MNIST: training images per epoch; a sixth of that for validation and for the test.
    digits : str
        Ranked MNIST: where its digits come from.
    image_size : int, optional
        Pictures: height and width to resize to, 224 if left out; see `side_of`.
    channels : {1, 3}, optional
        Pictures: gray or colour. Gray if left out and the first ones are gray.
    rankers : {"aggregate", "all", "reliable"}
        Train on the aggregated order, or on the order of one ranker, drawn per epoch.
    seed : int
        Seed of that draw. Without a validation split, the held-out part depends on the ids of the
        instances alone.
    conformal : float
        Share of the training instances to hold out for guarantees; drawn by ids, too.
    encoder : str, optional
        Texts: the backbone that takes them, by default ``text:minilm`` where it is installed.

    Examples
    --------
    >>> import numpy as np
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
        if conformal:
            raise DataError(
                f"conformal is {conformal:g}; {found.name} is drawn, so calibrate guarantees on images of "
                "their own: gmlr calibrate MODEL DATA"
            )
        return _ranked_mnist(found, size, digits)
    if size is not None:
        raise DataError("size is for Ranked MNIST sets, which are drawn; other data has the size it has")
    if found.kind == "orders":
        raise DataError(f"{found.source}: {ORDERS_ALONE}")
    parts, notes = split(found, conformal=conformal)
    if "train" not in parts:
        raise DataError(
            f"{found.source}: no instance has the split 'train'; it has {shorten(list(found.splits))}"
        )
    inputs = _inputs(parts["train"], image_size, channels, encoder)
    notes = [*notes, *_cuts(found, inputs)]

    def ready(part: RankedData, drawn: bool) -> RankedSet:
        return ranked_set(part, inputs, by_ranker=drawn, seed=seed)

    return Source(
        train=ready(parts["train"], rankers != "aggregate"),
        # Weights are for learning, not for evaluation.
        validation=ready(replace(parts["validation"], weights=None), False),
        test=ready(replace(parts["test"], weights=None), False) if "test" in parts else None,
        conformal=ready(replace(parts[CONFORMAL], weights=None), False) if conformal else None,
        labels=found.labels,
        inputs=inputs,
        fingerprint=found.fingerprint(),
        notes=(*notes, *found.notes),
    )


def portable(
    found: RankedData | Setting, opening: Mapping[str, Any]
) -> tuple[RankedData | Setting, dict[str, Any]]:
    """The same data and options of `open_data` for a process that has another working directory."""
    if isinstance(found, RankedData) and found.images is not None:
        found = replace(found, images=tuple(file.absolute() for file in found.images))
    digits = opening.get("digits")
    moved = {"digits": str(Path(digits).absolute())} if digits and Path(digits).is_dir() else {}
    return found, {**opening, **moved}


def ranked_set(data: RankedData, inputs: Inputs, *, by_ranker: bool = False, seed: int = 0) -> RankedSet:
    """Instances as a model with these inputs takes them."""
    if data.images is not None:
        preprocess = Preprocess.from_dict(inputs["preprocess"])
        return RankedImages(data, preprocess, by_ranker=by_ranker, seed=seed)
    ranks = data.by_ranker if by_ranker and data.by_ranker is not None else data.ranks
    return ranked_rows(recoded(data, inputs), inputs, ranks, data.weights, seed)


def recoded(data: RankedData, inputs: Inputs) -> Any:
    """The features of a table, coded as a model with these inputs codes them."""
    names = columns_of(inputs)
    if data.features is not None and data.features.shape[1] != len(names):
        raise DataError(f"{data.source}: {data.features.shape[1]} features; expected {len(names)}")
    return recode(data.features, data.encoding, encoding_of(inputs), names)


def _inputs(train: RankedData, image_size: int | None, channels: int | None, encoder: str | None) -> Inputs:
    if train.features is not None:
        names = train.feature_names or tuple(map(str, range(train.features.shape[1])))
        return table_inputs(train.features, names, train.encoding, encoder=encoder)
    assert train.images is not None
    return image_inputs(SIDE if image_size is None else image_size, channels or channels_of(train.images))


def _cuts(data: RankedData, inputs: Inputs) -> Iterator[str]:
    """Notes on texts that are longer than a model reads."""
    for name, column, held in zip(columns_of(inputs), encoding_of(inputs) or (), data.encoding or ()):
        if column.text is not None and held.kind == "text":
            lengths = cut_lengths(held.categories, column.text)
            if lengths:
                yield (
                    f"column {name!r}: of {len(held.categories):,} texts, {len(lengths):,} are cut after "
                    f"{column.text.tokens} tokens (the longest has {max(lengths):,})"
                )


def image_inputs(side: int, channels: int) -> Inputs:
    """Inputs of a model of pictures of a size."""
    # No crop, which could remove a label. Backbones normalise the values themselves.
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
        inputs=image_inputs(setting.canvas, 3 if setting.colour else 1),
        fingerprint=hashlib.sha256(json.dumps(about).encode()).hexdigest(),
        notes=(f"made from {train.digits.source}",),
    )


def channels_of(files: Sequence[Path]) -> Literal[1, 3]:
    """1 if the first pictures are all gray, else 3."""
    return 1 if all(_is_gray(file) for file in files[:_LOOKED_AT]) else 3


def _is_gray(file: Path) -> bool:
    try:
        with open_image(file) as image:
            return image.mode == "1" or image.mode.startswith(("L", "I"))
    except Exception:  # reported when the file is read
        return False

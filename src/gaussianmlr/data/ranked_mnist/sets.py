"""Ranked MNIST: digits on a canvas, ranked by their size or their light."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, SupportsIndex, get_args

import numpy as np
import numpy.typing as npt

from gaussianmlr.data.ranked_mnist import drawing as _recipes
from gaussianmlr.data.ranked_mnist.digits import Digits, load_digits
from gaussianmlr.data.ranked_mnist.drawing import Bytes, Floats, Ints, Recipes
from gaussianmlr.data.ranked_mnist.random_numbers import stream_key
from gaussianmlr.data.ranked_mnist.settings import Setting, get_setting
from gaussianmlr.errors import DataError, shorten
from gaussianmlr.orders import to_text

if TYPE_CHECKING:
    import torch

Split = Literal["train", "validation", "test"]
SIZES: dict[Split, int] = {"train": 60_000, "validation": 10_000, "test": 10_000}
LABELS = tuple("0123456789")
# Every sixth digit of a class is kept for validation: 50,000 and 10,000 of full MNIST, near enough.
_VALIDATION_EVERY = 6
_MOST_VERSIONS = 10_000  # of 60,000 digits, their numbers still fit 32 bits


class Batch(NamedTuple):
    """Images and the truth about them, as numpy arrays; column c of the truth is about digit c.

    Parameters
    ----------
    images : uint8 array, shape (n, channels, canvas, canvas)
        Channels are grey, or red, green, blue.
    ranks : int64 array, shape (n, 10)
        0 absent, 1 least significant, larger more significant.
    scale, brightness : float64 arrays, shape (n, 10)
        The true significances; NaN where a digit is absent.
    boxes : int32 array, shape (n, 10, 3)
        Left, top and side of each digit in pixels; 0 where absent.

    Examples
    --------
    >>> batch = RankedMNIST("gray-s", "test", digits="embedded").batch([0, 1])
    >>> batch.images.shape, batch.ranks.shape
    ((2, 1, 224, 224), (2, 10))
    """

    images: Bytes
    ranks: Ints
    scale: Floats
    brightness: Floats
    boxes: npt.NDArray[np.int32]


class RankedMNIST:
    """A set of the Ranked MNIST family, drawn on access.

    It is a map-style torch data set: item i is ``(image, ranks)``, a uint8 tensor
    [channels, canvas, canvas] and an int64 tensor [10]; divide by 255 on the device. `batch` gives numpy
    arrays and the true significances as well. Image i depends on (setting, seed, split, i) and the digits
    only, so items can be taken in any order by any process.

    Parameters
    ----------
    name : str or Setting
        ``gray-s``, ``gray-b``, ``gray-s-mix``, ``gray-b-mix``, ``color-s``, ``color-b``,
        ``color-s-mix``, ``color-b-mix``, ``gray-s-small``, or a setting of your own.
    split : {"train", "validation", "test"}
        Test digits come from MNIST's test set, the others from its train set.
    size : int, optional
        Number of images; 60,000 / 10,000 / 10,000 by default. There is no limit: images cost nothing until
        drawn.
    seed : int
        Seed of the set.
    start : int
        Item 0 is image `start` of the endless stream of images; see `fresh`.
    digits : Digits, str or path, optional
        The digits to use, or where to find them (the `source` of `load_digits`).
    shared_digits : bool
        Train and validation images use the same digits, as in the paper. By default every
        sixth digit of a class is for validation only.
    versions : int
        Number of versions of each digit: itself, and others that are rotated, sheared, stretched, bent,
        thicker or thinner, at the same size. They help where digits are few: train on several versions,
        validate and test on digits as they are.

    Examples
    --------
    >>> data = RankedMNIST("gray-s", "train", digits="embedded")
    >>> len(data)
    60000
    >>> image, ranks = data[0]
    >>> image.shape, image.dtype
    (torch.Size([1, 224, 224]), torch.uint8)
    >>> data.texts(data.batch([1]).ranks)
    ['6 > 4 > 7 > 0']
    """

    def __init__(
        self,
        name: str | Setting,
        split: Split = "train",
        *,
        size: int | None = None,
        seed: int = 0,
        start: int = 0,
        digits: Digits | str | os.PathLike[str] | None = None,
        shared_digits: bool = False,
        versions: int = 1,
    ) -> None:
        if split not in SIZES:
            raise DataError(f"split is {shorten(split)}; expected one of {', '.join(get_args(Split))}")
        self.setting = get_setting(name)
        self.split: Split = split
        self.size = SIZES[split] if size is None else _whole(size, "size")
        self.seed = int(seed)
        self.start = _whole(start, "start")
        self.shared_digits = shared_digits
        self.versions = _whole(versions, "versions")
        if not 1 <= self.versions <= _MOST_VERSIONS:
            raise DataError(f"versions is {versions}; expected 1 to {_MOST_VERSIONS:,}")
        self.digits_from = None if isinstance(digits, Digits) else os.fspath(digits or "auto")
        if not isinstance(digits, Digits):
            digits = load_digits("test" if split == "test" else "train", digits or "auto")
        self.digits = digits
        self._key = stream_key("ranked-mnist", self.setting.pictures, self.seed, split)
        pool, starts = _pool(digits, "all" if shared_digits else split)
        self._pool = np.add.outer(pool * self.versions, np.arange(self.versions)).ravel().astype(np.int32)
        self._starts = starts * self.versions

    def __len__(self) -> int:
        return self.size

    def __repr__(self) -> str:
        about = f"{self.setting.name!r}, {self.split!r}, size={self.size}, seed={self.seed}"
        return f"RankedMNIST({about}; {self.digits.source})"

    def __getitem__(self, index: SupportsIndex) -> tuple[torch.Tensor, torch.Tensor]:
        return self.__getitems__([index])[0]

    def __getitems__(self, indices: Sequence[SupportsIndex]) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """Many items with one call of the renderer; torch's DataLoader asks this way."""
        images, ranks = self.tensors(np.array([self._within(index) for index in indices], np.int64))
        return list(zip(images, ranks))

    def fingerprint(self) -> str:
        """What the images depend on, as text: setting, seed, split, size, digits.

        Examples
        --------
        >>> RankedMNIST("gray-s", "test", size=3, digits="embedded").fingerprint()[:24]
        'ranked-mnist gray-s test'
        """
        about = f"{self.setting.pictures} {self.setting.factor} size={self.size} start={self.start}"
        about += f" digits={len(self.digits)}" + (f" versions={self.versions}" if self.versions > 1 else "")
        return f"ranked-mnist {self.name} {self.split} seed={self.seed} {about}"

    @property
    def name(self) -> str:
        """The name of the setting."""
        return self.setting.name

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the columns of `ranks`: the digits."""
        return LABELS

    def recipes(self, indices: npt.ArrayLike) -> Recipes:
        """What some images are made of.

        Parameters
        ----------
        indices : integer array
            Which images; beyond `size` too, the stream has no end.

        Examples
        --------
        >>> data = RankedMNIST("gray-s", "train", digits="embedded")
        >>> table = data.recipes([10**12])
        >>> bool((table.digit >= 0).any())
        True
        """
        where = np.atleast_1d(np.asarray(indices))
        if where.ndim != 1 or (where.size and where.dtype.kind not in "iu"):
            raise DataError(f"indices are {where.dtype} {where.shape}; expected a list of whole numbers")
        where = where.astype(np.int64)
        if where.size and where.min() < 0:
            raise DataError(f"index {where.min()} is negative; expected 0 or larger")
        return _recipes.draw(self.setting, self._key, where + self.start, self._pool, self._starts)

    def batch(self, indices: npt.ArrayLike, out: Bytes | None = None) -> Batch:
        """Images and the truth about them.

        Parameters
        ----------
        indices : integer array
            Which images; beyond `size` too, the stream has no end.
        out : uint8 array, optional
            Where to draw the images: saves the memory traffic of a new array.

        Examples
        --------
        >>> batch = RankedMNIST("color-b", "test", digits="embedded").batch(range(4))
        >>> batch.images.shape, batch.images.dtype
        ((4, 3, 224, 224), dtype('uint8'))
        """
        if isinstance(indices, range):
            indices = np.arange(indices.start, indices.stop, indices.step)
        table = self.recipes(indices)
        images = _recipes.render(self.setting, table, self.digits, out, versions=self.versions)
        return Batch(images, table.ranks, table.scale, table.brightness, table.boxes)

    def tensors(self, indices: npt.ArrayLike) -> tuple[torch.Tensor, torch.Tensor]:
        """A batch as torch tensors: images uint8 [n, channels, canvas, canvas], ranks int64 [n, 10].

        Examples
        --------
        >>> images, ranks = RankedMNIST("gray-s", "test", digits="embedded").tensors([3, 1])
        >>> images.shape, ranks.dtype
        (torch.Size([2, 1, 224, 224]), torch.int64)
        """
        import torch

        batch = self.batch(indices)
        return torch.from_numpy(batch.images), torch.from_numpy(batch.ranks)

    def significance(self, batch: Batch | Recipes) -> Floats:
        """The true significances that the ranks follow: `scale` or `brightness`, NaN where absent.

        Examples
        --------
        >>> data = RankedMNIST("gray-b", "test", digits="embedded")
        >>> batch = data.batch([0])
        >>> bool(np.nanmax(data.significance(batch)) == np.nanmax(batch.brightness))
        True
        """
        return batch.scale if self.setting.factor == "scale" else batch.brightness

    def texts(self, ranks: Any) -> list[str]:
        """Orders as text, most significant first.

        Examples
        --------
        >>> RankedMNIST("gray-s", "test", digits="embedded").texts([[0, 1, 0, 2, 0, 0, 0, 3, 0, 0]])
        ['7 > 3 > 1']
        """
        return to_text(ranks, LABELS)

    def fresh(self, epoch: int) -> RankedMNIST:
        """The same kind of set with images never seen in another epoch.

        Examples
        --------
        >>> data = RankedMNIST("gray-s", "train", size=100, digits="embedded")
        >>> bool((data.fresh(2).batch([0]).images == data.batch([200]).images).all())
        True
        """
        return RankedMNIST(
            self.setting,
            self.split,
            size=self.size,
            seed=self.seed,
            start=self.start + _whole(epoch, "epoch") * self.size,
            digits=self.digits,
            shared_digits=self.shared_digits,
            versions=self.versions,
        )

    def stream(self, batch_size: int, first: int = 0) -> Iterator[Batch]:
        """Batches without end, image `first` first.

        Examples
        --------
        >>> stream = RankedMNIST("gray-s", "train", digits="embedded").stream(8)
        >>> next(stream).images.shape
        (8, 1, 224, 224)
        """
        while True:
            yield self.batch(np.arange(first, first + batch_size))
            first += batch_size

    def _within(self, index: SupportsIndex) -> int:
        number = index.__index__()
        if not -self.size <= number < self.size:
            raise IndexError(f"index {number} is outside a set of {self.size} images")
        return number % self.size


def _pool(digits: Digits, split: Split | Literal["all"]) -> tuple[npt.NDArray[np.int32], Ints]:
    """The digits of a split, class by class, and where each class starts."""
    classes = []
    for digit in range(10):
        of_class = digits.of_class(digit)
        for_validation = np.arange(len(of_class)) % _VALIDATION_EVERY == _VALIDATION_EVERY - 1
        if split == "train":
            of_class = of_class[~for_validation]
        elif split == "validation":
            of_class = of_class[for_validation]
        if not len(of_class):
            raise DataError(
                f"no image of the digit {digit} is left for {split}; expected {_VALIDATION_EVERY} "
                "or more of each digit, or shared_digits=True"
            )
        classes.append(of_class)
    starts = np.cumsum([0, *map(len, classes)]).astype(np.int64)
    return np.concatenate(classes).astype(np.int32), starts


def _whole(value: int, what: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 0:
        raise DataError(f"{what} is {shorten(value)}; expected a whole number, 0 or larger")
    return int(value)

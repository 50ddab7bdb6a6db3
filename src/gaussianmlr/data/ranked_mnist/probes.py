"""Probes: images that show how scores follow a known significance.

Adjusting sequences change the significance of two digits step by step; calibration sets show the
same four significances again and again. Both are recipes, drawn by the renderer of the data sets.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from gaussianmlr.data.ranked_mnist.digits import Digits, load_digits
from gaussianmlr.data.ranked_mnist.drawing import Bytes, Floats, Ints, Recipes, render
from gaussianmlr.data.ranked_mnist.random_numbers import stream_key, uniforms
from gaussianmlr.data.ranked_mnist.settings import DIGIT_SIDE, Setting, get_setting
from gaussianmlr.errors import DataError, shorten
from gaussianmlr.orders import densify

_BY_FACTOR = {"scale": "gray-s", "brightness": "gray-b"}
# Centres (x, y) in quarters of the canvas.
_TRIANGLE = ((2, 1), (1, 3), (3, 3))
_QUADRANTS = ((1, 1), (3, 1), (1, 3), (3, 3))


@dataclass(frozen=True, eq=False)
class Probe:
    """Sequences of images with known significances; item i is the images of sequence i.

    Parameters
    ----------
    setting : Setting
        The set these images belong to.
    recipes : Recipes
        What they are made of, sequence by sequence.
    digits : Digits
        The digits used.
    labels : int64 array, shape (sequences, places)
        Which digit stands at each place, the same on all frames of a sequence.
    significance : float64 array, shape (sequences, frames, places)
        The true scale or brightness of each.

    Examples
    --------
    >>> probe = adjusting_sequences("gray-s", count=2, frames=5, digits="embedded")
    >>> len(probe), probe[0].shape
    (2, (5, 1, 224, 224))
    """

    setting: Setting
    recipes: Recipes
    digits: Digits
    labels: Ints
    significance: Floats

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, sequence: int) -> Bytes:
        sequence = range(len(self))[sequence]
        frames = self.significance.shape[1]
        return self._draw(slice(sequence * frames, (sequence + 1) * frames))

    def __iter__(self) -> Iterator[Bytes]:
        return (self[sequence] for sequence in range(len(self)))

    @property
    def images(self) -> Bytes:
        """All images in one array, shape (sequences * frames, channels, canvas, canvas)."""
        return self._draw(slice(None))

    @property
    def ranks(self) -> Ints:
        """The true ranks, shape (sequences * frames, 10)."""
        return self.recipes.ranks

    def _draw(self, rows: slice) -> Bytes:
        part = Recipes(**{name: column[rows] for name, column in vars(self.recipes).items()})
        return render(self.setting, part, self.digits)


def adjusting_sequences(
    name: str | Setting,
    *,
    count: int = 50,
    frames: int = 50,
    seed: int = 0,
    digits: Digits | str | os.PathLike[str] | None = None,
    labels: Sequence[int] | None = None,
    steady: bool = False,
) -> Probe:
    """Sequences in which one digit gains significance, one keeps it, and one loses it.

    Three different test digits stand in a triangle. The first goes from the lowest to the highest value of
    the set's factor, the third the other way, the second stays in the middle. The other factor is 1, or
    redrawn on every frame for the mix sets; colours are redrawn on every frame.

    Parameters
    ----------
    name : str or Setting
        A Ranked MNIST set.
    count, frames : int
        How many sequences, and how many images each.
    seed : int
        Seed of the draws.
    digits : Digits, str or path, optional
        Digits to use, or where to find them; MNIST's test digits by default.
    labels : sequence of int, optional
        Which digits gain, keep and lose significance in all sequences; drawn for each one by default.
    steady : bool
        Whether what would be redrawn on every frame is drawn once per sequence, so that nothing but the
        significance changes.

    Examples
    --------
    >>> probe = adjusting_sequences("gray-s", count=1, frames=3, digits="embedded")
    >>> probe.significance[0]
    array([[1., 2., 3.],
           [2., 2., 2.],
           [3., 2., 1.]])
    """
    setting = get_setting(name)
    if count < 1 or frames < 2:
        raise DataError(f"count is {count} and frames {frames}; expected 1 and 2 or more")
    low, high = getattr(setting, setting.factor)
    up = low + (high - low) * (np.arange(frames) / (frames - 1))
    middle = np.full(frames, (low + high) / 2)
    track = np.stack([up, middle, up[::-1]], axis=1)
    significance = np.broadcast_to(track, (count, frames, 3)).copy()
    places = np.broadcast_to(np.array(_TRIANGLE), (count, 3, 2))
    stream = ("adjusting", frames, seed)
    return _probe(setting, significance, places, _loaded(digits), stream, _three(labels), steady)


def calibration_set(
    name: str | Setting,
    *,
    count: int = 50,
    seed: int = 0,
    digits: Digits | str | os.PathLike[str] | None = None,
) -> Probe:
    """Images of four test digits with four fixed significances, one in each quadrant, shuffled.

    Scales are 1, 1.5, 2 and 2.5 (of 1 to 3), brightnesses 0.25, 0.5, 0.75 and 1; the other factor is 1.
    Other ranges are divided alike.

    Parameters
    ----------
    name : {"scale", "brightness"}, str or Setting
        A factor (grey images, as in the paper) or a Ranked MNIST set.
    count : int
        How many images.
    seed, digits
        As in `adjusting_sequences`.

    Returns
    -------
    Probe
        Of `count` sequences of one frame; ``labels[i, j]`` is the digit with the j-th smallest significance.

    Examples
    --------
    >>> probe = calibration_set("scale", count=2, digits="embedded")
    >>> probe.images.shape
    (2, 1, 224, 224)
    >>> probe.significance[:, 0]
    array([[1. , 1.5, 2. , 2.5],
           [1. , 1.5, 2. , 2.5]])
    """
    setting = get_setting(_BY_FACTOR.get(name, name) if isinstance(name, str) else name)
    if count < 1:
        raise DataError(f"count is {count}; expected 1 or more")
    low, high = getattr(setting, setting.factor)
    steps = np.arange(4) / 4 if setting.factor == "scale" else np.arange(1, 5) / 4
    significance = np.broadcast_to(low + (high - low) * steps, (count, 1, 4)).copy()
    shuffle = uniforms(stream_key("calibration places", seed), (count, 4)).argsort(axis=1)
    places = np.array(_QUADRANTS)[shuffle]
    steady = _without_mix(setting)
    return _probe(steady, significance, places, _loaded(digits), ("calibration", seed))


def _probe(
    setting: Setting,
    significance: Floats,
    places: Ints,
    digits: Digits,
    stream: tuple[object, ...],
    wanted: Ints | None = None,
    steady: bool = False,
) -> Probe:
    """Put the digits of each sequence at their places; `places` counts in quarters of the canvas."""
    count, frames, held = significance.shape
    key = ("probe", setting.pictures, setting.factor, *stream)
    labels = uniforms(stream_key(*key, "labels"), (count, 10)).argsort(axis=1)[:, :held]
    if wanted is not None:
        labels = np.tile(wanted, (count, 1))
    which = uniforms(stream_key(*key, "digits"), (count, held))
    drawn_anew = uniforms(stream_key(*key, "frames"), (count, frames, held, 3))
    other, hue, depth = np.moveaxis(drawn_anew[:, :1].repeat(frames, 1) if steady else drawn_anew, -1, 0)
    free: str = "brightness" if setting.factor == "scale" else "scale"
    low, high = getattr(setting, free)
    # Off the mix sets the range is a single value, so this is constant.
    drawn = {setting.factor: significance, free: low + (high - low) * other}

    table = Recipes.empty(count * frames)
    rows = np.arange(count * frames).reshape(count, frames, 1)
    columns = np.broadcast_to(labels[:, None, :], significance.shape)
    chosen = np.empty((count, held), np.int32)
    for digit in range(10):
        of_class, here = digits.of_class(digit), labels == digit
        chosen[here] = of_class[(which[here] * len(of_class)).astype(np.int64)]
    side = (DIGIT_SIDE * drawn["scale"]).astype(np.int32)
    corner = places[:, None] * setting.canvas // 4 - (side // 2)[..., None]
    if corner.min() < 0 or (corner + side[..., None]).max() > setting.canvas:
        raise DataError(f"digits of {side.max()} pixels do not fit a canvas of {setting.canvas}")
    table.digit[rows, columns] = chosen[:, None]
    table.boxes[rows, columns] = np.concatenate([corner, side[..., None]], axis=-1)
    table.scale[rows, columns] = drawn["scale"]
    table.brightness[rows, columns] = drawn["brightness"]
    table.hue[rows, columns] = hue
    table.saturation[rows, columns] = 0.5 + 0.5 * depth
    ranks = densify(significance.reshape(-1, held), threshold=-1.0)  # every digit is relevant
    table.ranks[rows, columns] = ranks.reshape(significance.shape)
    return Probe(setting, table, digits, labels, significance)


def _three(labels: Sequence[int] | None) -> Ints | None:
    if labels is None:
        return None
    if len(labels) != 3 or len(set(labels)) != 3 or not set(labels) <= set(range(10)):
        raise DataError(f"labels are {shorten(list(labels))}; expected three different digits")
    return np.array(labels, np.int64)


def _without_mix(setting: Setting) -> Setting:
    """The same set with the factor that is not ranked held at 1."""
    if setting.factor == "scale":
        return replace(setting, brightness=(1.0, 1.0))
    return replace(setting, scale=(1.0, 1.0))


def _loaded(digits: Digits | str | os.PathLike[str] | None) -> Digits:
    return digits if isinstance(digits, Digits) else load_digits("test", digits or "auto")

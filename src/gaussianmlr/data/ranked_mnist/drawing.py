"""Recipes: tables with everything that determines an image.

Random numbers are counter-based, without a state: row i is a function of the
key and i alone, so rows can be made in any order, in any process, on any machine.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gaussianmlr._utils.extras import require
from gaussianmlr.data.ranked_mnist.digits import Digits
from gaussianmlr.data.ranked_mnist.settings import DIGIT_SIDE, Setting
from gaussianmlr.errors import DataError

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bytes = npt.NDArray[np.uint8]

CLASSES = 10
_GAIN = 1 << 15  # as in the kernels
_WEIGHT = 1 << 11


@dataclass(frozen=True, eq=False)
class Recipes:
    """A table of n images; column c of an array is about digit c.

    Parameters
    ----------
    digit : int32 array, shape (n, 10)
        Which image of the `Digits` is used; -1 where digit c is absent. In a set with several versions of
        each image, this is the number of the image times the versions, plus that of the version.
    boxes : int32 array, shape (n, 10, 3)
        Left, top and side in pixels; 0 where absent.
    scale, brightness, hue, saturation : float64 arrays, shape (n, 10)
        How the digit is drawn; NaN where absent.
    ranks : int64 array, shape (n, 10)
        0 absent, 1 least significant, larger more significant.

    Examples
    --------
    >>> from gaussianmlr.data.ranked_mnist.sets import RankedMNIST
    >>> table = RankedMNIST("gray-s", "test", digits="embedded").recipes([0])
    >>> table.ranks.shape, table.boxes.shape
    ((1, 10), (1, 10, 3))
    """

    digit: npt.NDArray[np.int32]
    boxes: npt.NDArray[np.int32]
    scale: Floats
    brightness: Floats
    hue: Floats
    saturation: Floats
    ranks: Ints

    def __len__(self) -> int:
        return len(self.digit)

    @classmethod
    def empty(cls, n: int) -> Recipes:
        """A table of n black images, to be filled.

        Examples
        --------
        >>> int(Recipes.empty(2).digit.max())
        -1
        """
        scale, brightness, hue, saturation = np.full((4, n, CLASSES), np.nan)
        return cls(
            digit=np.full((n, CLASSES), -1, np.int32),
            boxes=np.zeros((n, CLASSES, 3), np.int32),
            scale=scale,
            brightness=brightness,
            hue=hue,
            saturation=saturation,
            ranks=np.zeros((n, CLASSES), np.int64),
        )


def draw(
    setting: Setting, key: np.uint64, indices: Ints, pool: npt.NDArray[np.int32], starts: Ints
) -> Recipes:
    """The recipes of some indices.

    Parameters
    ----------
    setting : Setting
        What the images look like.
    key : uint64
        Which stream of images; see `random_numbers.stream_key`.
    indices : int64 array, shape (n,)
        Which images of the stream, each 0 or larger.
    pool, starts : arrays
        ``pool[starts[c]:starts[c + 1]]`` are the images to choose from for digit c.

    Examples
    --------
    >>> from gaussianmlr.data.ranked_mnist.settings import SETTINGS
    >>> from gaussianmlr.data.ranked_mnist.random_numbers import stream_key
    >>> pool, starts = np.arange(10, dtype=np.int32), np.arange(11)
    >>> draw(SETTINGS["gray-s"], stream_key("any"), np.array([5]), pool, starts).ranks.shape
    (1, 10)
    """
    require("drawing Ranked MNIST", "numba")
    from gaussianmlr.data.ranked_mnist import kernels as _kernels

    table = Recipes.empty(len(indices))
    _kernels.draw(
        key,
        np.ascontiguousarray(indices, np.int64),
        np.ascontiguousarray(pool, np.int32),
        np.ascontiguousarray(starts, np.int64),
        setting.canvas,
        np.array(setting.scale),
        np.array(setting.brightness),
        np.array(setting.count, np.int64),
        setting.factor == "scale",
        table.digit,
        table.boxes,
        table.scale,
        table.brightness,
        table.hue,
        table.saturation,
        table.ranks,
    )
    return table


def render(
    setting: Setting, recipes: Recipes, digits: Digits, out: Bytes | None = None, *, versions: int = 1
) -> Bytes:
    """Draw the images of a table.

    Digits are resized bilinearly with half-pixel centres: output pixel j of a digit of a side looks at
    ``(j + 0.5) * 28 / side - 0.5``, held within the digit; so do PIL when it enlarges, and torch's
    `interpolate` with ``align_corners=False``. Grey is multiplied by the brightness, colour by the RGB of
    (hue, saturation, brightness).

    Parameters
    ----------
    setting : Setting
        Canvas and colour.
    recipes : Recipes
        What to draw.
    digits : Digits
        The images that `recipes.digit` points to.
    out : uint8 array, shape (n, channels, canvas, canvas), optional
        Where to draw; a new array without it.
    versions : int
        Number of versions of each digit, see `RankedMNIST`.

    Returns
    -------
    uint8 array, shape (n, channels, canvas, canvas)

    Examples
    --------
    >>> from gaussianmlr.data import load_digits
    >>> from gaussianmlr.data.ranked_mnist.settings import SETTINGS
    >>> render(SETTINGS["color-s"], Recipes.empty(2), load_digits("test", "embedded")).shape
    (2, 3, 224, 224)
    """
    require("drawing Ranked MNIST", "numba")
    from gaussianmlr.data.ranked_mnist import kernels as _kernels

    shape = (len(recipes), setting.channels, setting.canvas, setting.canvas)
    if out is None:
        out = np.zeros(shape, np.uint8)
    elif out.shape != shape or out.dtype != np.uint8 or not out.flags.c_contiguous:
        raise DataError(f"out is {out.dtype} {out.shape}; expected contiguous uint8 {shape}")
    else:
        out[...] = 0
    present = recipes.digit >= 0
    if present.any() and (
        recipes.digit.max() >= len(digits) * versions
        or recipes.boxes[..., :2].min() < 0
        or (recipes.boxes[..., :2] + recipes.boxes[..., 2:]).max() > setting.canvas
    ):
        # The kernel does not check bounds.
        raise DataError("recipes point outside the digits or the canvas; expected a table of this setting")
    near, weight = _taps(int(recipes.boxes[..., 2].max(initial=1)))
    gains = _gains(setting, recipes, present)
    images, digit = digits.images, recipes.digit
    if versions > 1:
        from gaussianmlr.data.ranked_mnist.versions import draw_versions

        images, digit = draw_versions(images, digit, versions)
    _kernels.render(images, digit, recipes.boxes, gains, near, weight, out)
    return out


def hsv_to_rgb(hue: Floats, saturation: Floats, value: Floats) -> Floats:
    """Red, green and blue in a new last axis, all numbers within 0 to 1.

    Examples
    --------
    >>> hsv_to_rgb(np.array(0.0), np.array(1.0), np.array(0.5))
    array([0.5, 0. , 0. ])
    """
    place = (np.array([5.0, 3.0, 1.0]) + 6.0 * hue[..., None]) % 6.0
    ramp = np.clip(np.minimum(place, 4.0 - place), 0.0, 1.0)
    rgb: Floats = value[..., None] * (1.0 - saturation[..., None] * ramp)
    return rgb


def _gains(setting: Setting, recipes: Recipes, present: npt.NDArray[np.bool_]) -> npt.NDArray[np.int32]:
    """The gain of each channel of each digit, in fixed point."""
    if setting.colour:
        gains = hsv_to_rgb(recipes.hue, recipes.saturation, recipes.brightness)
    else:
        gains = recipes.brightness[..., None]
    fixed: npt.NDArray[np.int32] = np.rint(np.where(present[..., None], gains, 0.0) * _GAIN).astype(np.int32)
    return fixed


@functools.lru_cache(maxsize=16)
def _taps(largest: int) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """For every side and output pixel: the first of two source pixels, and the second's weight."""
    near = np.zeros((largest + 1, largest), np.int32)
    weight = np.zeros((largest + 1, largest), np.int32)
    for side in range(1, largest + 1):
        # In units of 1 / (2 * side), so that every place is an exact integer.
        place = (2 * np.arange(side) + 1) * DIGIT_SIDE - side
        place = np.clip(place, 0, (DIGIT_SIDE - 1) * 2 * side)
        first = np.minimum(place // (2 * side), DIGIT_SIDE - 2)
        near[side, :side] = first
        weight[side, :side] = ((place - first * 2 * side) * _WEIGHT + side) // (2 * side)
    return near, weight

"""Versions of handwritten digits: rotated, sheared, stretched, bent, thicker or thinner, at their old size.

As in the other kernels, every byte comes from integer arithmetic or one IEEE operation at a time, so that all
machines draw the same versions. There are no sines: an angle is given by the tangent of its half.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from gaussianmlr.data.ranked_mnist.kernels import DIGIT, compiled, mix, unit
from gaussianmlr.data.ranked_mnist.random_numbers import stream_key

__all__ = ["draw_versions"]

_HALF_ANGLE = 0.13  # tangent of half the largest rotation: 15 degrees
_SHEAR = 0.3
_STRETCH = 0.2
_BEND = 1.4  # pixels, at each of the knots
_THICKER = 0.7  # shares of the way to the brightest and the darkest neighbour
_THINNER = 0.35
_KNOTS = 5  # per side
_WIDE = 44  # the first drawing, whose size is not known yet, has room on all sides
_EDGE = 128  # the grey level at which a digit ends

_BITS = 16  # of a pixel, for places
_ONE = 1 << _BITS
_WEIGHT = 11  # bits of weights, as in the other kernels
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_KEY = stream_key("versions of digits", 1)


def draw_versions(
    images: npt.NDArray[np.uint8], chosen: npt.NDArray[np.int32], versions: int
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int32]]:
    """Draw the versions that a table of recipes needs.

    Version v of image i has the number ``i * versions + v``; version 0 is the image as it is. The others keep
    what all MNIST digits have in common: the larger of width and height, and the centre of mass.

    Parameters
    ----------
    images : uint8 array, shape (n, 28, 28)
        Digits.
    chosen : int32 array
        Numbers of versions, -1 for none.
    versions : int
        Number of versions per image.

    Returns
    -------
    images : uint8 array, shape (m, 28, 28)
        The versions that occur in `chosen`, each once.
    chosen : int32 array
        `chosen` with numbers of these images.

    Examples
    --------
    >>> from gaussianmlr.data import load_digits
    >>> digits = load_digits("test", "embedded").images
    >>> drawn, where = draw_versions(digits, np.array([30, 31, -1, 30], np.int32), 10)
    >>> drawn.shape, where, bool((drawn[0] == digits[3]).all())
    ((2, 28, 28), array([ 0,  1, -1,  0], dtype=int32), True)
    """
    numbers, places = np.unique(chosen, return_inverse=True)
    absent = int(numbers.size > 0 and numbers[0] < 0)
    numbers = numbers[absent:].astype(np.int64)
    drawn = np.zeros((len(numbers), DIGIT, DIGIT), np.uint8)
    _draw(_KEY, images, numbers, versions, drawn)
    return drawn, (places.reshape(chosen.shape) - absent).astype(np.int32)


@compiled
def _draw(key: Any, images: Any, numbers: Any, versions: int, out: Any) -> None:
    """Draw version ``number % versions`` of image ``number // versions``, for each number."""
    thick = np.empty((DIGIT, DIGIT), np.int64)
    wide = np.empty((_WIDE, _WIDE), np.int64)
    small = np.empty((DIGIT, DIGIT), np.int64)
    bend = np.empty((2, _KNOTS, _KNOTS), np.int64)
    turn = np.empty((2, 2), np.int64)
    place = np.empty(3, np.int64)
    middle = (DIGIT - 1) * _ONE // 2
    for row in range(len(numbers)):
        source = images[numbers[row] // versions]
        version = numbers[row] % versions
        if version == 0:
            out[row] = source
            continue
        state = mix(key ^ mix(np.uint64(numbers[row] // versions) * np.uint64(1 << 32) + np.uint64(version)))
        state = _settings(state, turn, bend)
        _thicken(source, unit(mix(state)), thick)
        # Once around its middle, to see how large it becomes; then at the size and place of the source.
        place[0] = place[1] = (_WIDE - 1) * _ONE // 2
        place[2] = _ONE
        _warp(thick, turn, bend, middle, middle, place, wide)
        before, after = _size(source), _size(wide)
        if before == 0 or after == 0:
            out[row] = source
            continue
        across, down = _centre(wide)
        x0, y0 = _centre(source)
        ratio = after * _ONE // before
        place[0] = x0 - (across - (_WIDE - 1) * _ONE // 2) * _ONE // ratio
        place[1] = y0 - (down - (_WIDE - 1) * _ONE // 2) * _ONE // ratio
        place[2] = ratio
        _warp(thick, turn, bend, middle, middle, place, small)
        for y in range(DIGIT):
            for x in range(DIGIT):
                out[row, y, x] = small[y, x]


@compiled
def _settings(state: Any, turn: Any, bend: Any) -> Any:
    """Draw the matrix from places on the new image to places on the old one, and the bends at the knots."""
    state += _GOLDEN
    t = _HALF_ANGLE * (2.0 * unit(mix(state)) - 1.0)
    cosine, sine = (1.0 - t * t) / (1.0 + t * t), 2.0 * t / (1.0 + t * t)
    state += _GOLDEN
    shear = _SHEAR * (2.0 * unit(mix(state)) - 1.0)
    state += _GOLDEN
    width = 1.0 + _STRETCH * (2.0 * unit(mix(state)) - 1.0)
    turn[0, 0] = np.int64(np.floor(width * cosine * _ONE))
    turn[0, 1] = np.int64(np.floor(width * (shear * cosine - sine) * _ONE))
    turn[1, 0] = np.int64(np.floor(sine * _ONE))
    turn[1, 1] = np.int64(np.floor((shear * sine + cosine) * _ONE))
    for axis in range(2):
        for a in range(_KNOTS):
            for b in range(_KNOTS):
                state += _GOLDEN
                bend[axis, a, b] = np.int64(np.floor(_BEND * (2.0 * unit(mix(state)) - 1.0) * _ONE))
    state += _GOLDEN
    return state


@compiled
def _thicken(source: Any, draw: Any, out: Any) -> None:
    """Move each pixel towards the brightest of itself and its four neighbours, or towards the darkest."""
    amount = draw * (_THICKER + _THINNER) - _THINNER
    share = np.int64(np.floor(abs(amount) * 256.0))
    for y in range(DIGIT):
        for x in range(DIGIT):
            here = np.int64(source[y, x])
            best = here
            for dy, dx in ((-1, 0), (1, 0), (0, -1), (0, 1)):
                if 0 <= y + dy < DIGIT and 0 <= x + dx < DIGIT:
                    other = np.int64(source[y + dy, x + dx])
                    best = max(best, other) if amount > 0 else min(best, other)
            out[y, x] = here + (((best - here) * share) >> 8)


@compiled
def _warp(source: Any, turn: Any, bend: Any, x0: int, y0: int, place: Any, out: Any) -> None:
    """Draw the source so that its point (x0, y0) lies at `place[:2]`, smaller by the factor `place[2]`."""
    one = np.int64(1 << _WEIGHT)
    half = np.int64(1 << (2 * _WEIGHT - 1))
    for row in range(out.shape[0]):
        for column in range(out.shape[1]):
            x = ((column * _ONE - place[0]) * place[2]) >> _BITS
            y = ((row * _ONE - place[1]) * place[2]) >> _BITS
            # Knots lie on a square around the middle; beyond it the outermost ones hold.
            reach = DIGIT * _ONE // 2
            u = min(max(x + reach, 0), 2 * reach) * (_KNOTS - 1) // DIGIT
            v = min(max(y + reach, 0), 2 * reach) * (_KNOTS - 1) // DIGIT
            a, b = min(v >> _BITS, _KNOTS - 2), min(u >> _BITS, _KNOTS - 2)
            v, u = v - (a << _BITS), u - (b << _BITS)
            across = x0 + ((turn[0, 0] * x + turn[0, 1] * y) >> _BITS)
            down = y0 + ((turn[1, 0] * x + turn[1, 1] * y) >> _BITS)
            for axis in range(2):
                upper = bend[axis, a, b] * (_ONE - u) + bend[axis, a, b + 1] * u
                lower = bend[axis, a + 1, b] * (_ONE - u) + bend[axis, a + 1, b + 1] * u
                moved = ((upper >> _BITS) * (_ONE - v) + (lower >> _BITS) * v) >> _BITS
                if axis == 0:
                    across += moved
                else:
                    down += moved
            out[row, column] = 0
            left, top = across >> _BITS, down >> _BITS
            if -1 <= left < DIGIT and -1 <= top < DIGIT:
                wx = (across - (left << _BITS)) >> (_BITS - _WEIGHT)
                wy = (down - (top << _BITS)) >> (_BITS - _WEIGHT)
                total = half
                for dy in range(2):
                    for dx in range(2):
                        if 0 <= top + dy < DIGIT and 0 <= left + dx < DIGIT:
                            weight = (wx if dx else one - wx) * (wy if dy else one - wy)
                            total += source[top + dy, left + dx] * weight
                out[row, column] = total >> (2 * _WEIGHT)


@compiled
def _size(image: Any) -> Any:
    """The larger of width and height, where the brightest pixels of columns and rows pass the edge level."""
    largest = np.int64(0)
    side = image.shape[0]
    for axis in range(2):
        first, last = np.int64(-1), np.int64(-1)
        before = np.int64(0)
        for at in range(side + 1):
            most = np.int64(0)
            if at < side:
                for other in range(side):
                    value = np.int64(image[at, other] if axis == 0 else image[other, at])
                    most = max(most, value)
            if before < _EDGE <= most and first < 0:
                first = at * _ONE - (most - _EDGE) * _ONE // (most - before)
            if most < _EDGE <= before:
                last = (at - 1) * _ONE + (before - _EDGE) * _ONE // (before - most)
            before = most
        largest = max(largest, last - first)
    return largest


@compiled
def _centre(image: Any) -> Any:
    """The centre of mass."""
    mass, across, down = np.int64(0), np.int64(0), np.int64(0)
    for y in range(image.shape[0]):
        for x in range(image.shape[1]):
            value = np.int64(image[y, x])
            mass += value
            across += value * x
            down += value * y
    return across * _ONE // mass, down * _ONE // mass

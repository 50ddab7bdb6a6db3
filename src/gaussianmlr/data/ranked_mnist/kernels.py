"""Compiled inner loops of Ranked MNIST: drawing recipes and rendering them.

Everything that decides a byte of an image is integer arithmetic or a single IEEE operation at a
time, so that every machine draws the same picture.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import numba
import numpy as np

DIGIT = 28
CLASSES = 10
TRIES = 1000
# 11-bit weights: 255 * 2**11 * 2**11 still fits 31 bits, and the error stays far below one grey level.
WEIGHT_BITS = 11
# 15-bit gains: 16-bit pixel * 2**15 still fits 31 bits.
GAIN_BITS = 15

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX2 = np.uint64(0x94D049BB133111EB)
_S27, _S30, _S31, _S32, _S11 = (np.uint64(s) for s in (27, 30, 31, 32, 11))
_UNIT = 2.0**-53

P = ParamSpec("P")
R = TypeVar("R")


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a loop, and keep what was compiled where that is possible."""
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
    try:
        compiled: Callable[P, R] = numba.njit(cache=True, **options)(function)
    except RuntimeError:  # no folder for compiled code: compile in every process
        compiled = numba.njit(**options)(function)
    return compiled


@compiled
def mix(z: Any) -> Any:
    """Scramble 64 bits (the finaliser of splitmix64)."""
    z = (z ^ (z >> _S30)) * _MIX1
    z = (z ^ (z >> _S27)) * _MIX2
    return z ^ (z >> _S31)


@compiled
def unit(word: Any) -> Any:
    """A double in [0, 1) from 64 random bits."""
    return np.float64(np.int64(word >> _S11)) * _UNIT


@compiled
def _below(word: Any, bound: Any) -> Any:
    """An integer in [0, bound) from 64 random bits, for bounds below 2**31."""
    return np.int64(((word >> _S32) * np.uint64(bound)) >> _S32)


@compiled
def _rank(values: Any, chosen: Any, count: int, ranks: Any) -> None:
    """Dense ranks of the chosen classes: 1 = smallest value, equal values share a rank."""
    order = np.empty(count, np.int64)
    for a in range(count):
        b = a
        while b > 0 and values[order[b - 1]] > values[chosen[a]]:
            order[b] = order[b - 1]
            b -= 1
        order[b] = chosen[a]
    rank = 0
    for a in range(count):
        if a == 0 or values[order[a]] != values[order[a - 1]]:
            rank += 1
        ranks[order[a]] = rank


@compiled
def draw(
    key: Any,
    indices: Any,
    pool: Any,
    starts: Any,
    canvas: int,
    scales: Any,
    brightnesses: Any,
    counts: Any,
    by_scale: bool,
    digit: Any,
    boxes: Any,
    scale: Any,
    brightness: Any,
    hue: Any,
    saturation: Any,
    ranks: Any,
) -> None:
    """Fill one row of the recipe table for each index.

    ``pool[starts[c]:starts[c + 1]]`` are the images of class c; the outputs come in as "absent".
    """
    order = np.empty(CLASSES, np.int64)
    placed = np.empty(CLASSES, np.int64)
    for row in range(len(indices)):
        state = mix(key ^ mix(np.uint64(indices[row]) + _GOLDEN))
        state += _GOLDEN
        wanted = counts[0] + _below(mix(state), counts[1] - counts[0] + 1)
        for c in range(CLASSES):
            order[c] = c
        found = 0
        for n in range(wanted):
            # Fisher-Yates, one step per digit: classes without replacement.
            state += _GOLDEN
            other = n + _below(mix(state), CLASSES - n)
            c = order[other]
            order[other] = order[n]
            order[n] = c
            for _ in range(TRIES):
                state += _GOLDEN
                which = starts[c] + _below(mix(state), starts[c + 1] - starts[c])
                state += _GOLDEN
                size = scales[0] + (scales[1] - scales[0]) * unit(mix(state))
                state += _GOLDEN
                light = brightnesses[0] + (brightnesses[1] - brightnesses[0]) * unit(mix(state))
                side = np.int64(DIGIT * size)
                state += _GOLDEN
                left = 1 + _below(mix(state), canvas - 2 - side)
                state += _GOLDEN
                top = 1 + _below(mix(state), canvas - 2 - side)
                free = True
                for p in range(found):
                    box = boxes[row, placed[p]]
                    if (
                        left < box[0] + box[2]
                        and box[0] < left + side
                        and top < box[1] + box[2]
                        and box[1] < top + side
                    ):
                        free = False
                        break
                if free:
                    placed[found] = c
                    found += 1
                    digit[row, c] = pool[which]
                    boxes[row, c, 0] = left
                    boxes[row, c, 1] = top
                    boxes[row, c, 2] = side
                    scale[row, c] = size
                    brightness[row, c] = light
                    break
            state += _GOLDEN
            tint = unit(mix(state))
            state += _GOLDEN
            depth = 0.5 + 0.5 * unit(mix(state))
            if digit[row, c] >= 0:
                hue[row, c] = tint
                saturation[row, c] = depth
        _rank(scale[row] if by_scale else brightness[row], placed, found, ranks[row])


@compiled
def render(images: Any, digit: Any, boxes: Any, gains: Any, near: Any, weight: Any, out: Any) -> None:
    """Draw every row of the table onto its black canvas ``out[row]``, shape (channels, side, side).

    ``near[side, j]`` and ``weight[side, j]`` say between which two source pixels output pixel j of a
    digit of that side lies, and how near it is to the second. Digits do not overlap, so they are written,
    not blended.
    """
    one = np.int32(1 << WEIGHT_BITS)
    half = np.int32(1 << (2 * WEIGHT_BITS - 9))
    final = np.int32(1 << (GAIN_BITS + 7))
    rows = np.empty((DIGIT, near.shape[1]), np.int32)
    line = np.empty(near.shape[1], np.int32)
    for row in range(len(digit)):
        for c in range(CLASSES):
            if digit[row, c] < 0:
                continue
            source = images[digit[row, c]]
            left, top, side = boxes[row, c, 0], boxes[row, c, 1], boxes[row, c, 2]
            nears, weights = near[side], weight[side]
            for r in range(DIGIT):
                pixels, wide = source[r], rows[r]
                for x in range(side):
                    a, w = nears[x], weights[x]
                    wide[x] = pixels[a] * (one - w) + pixels[a + 1] * w
            for y in range(side):
                w = weights[y]
                upper, lower = rows[nears[y]], rows[nears[y] + 1]
                # Cut back to 32 bits at every step: twice as many numbers fit a vector register.
                for x in range(side):
                    total = np.int32(upper[x] * (one - w) + lower[x] * w + half)
                    line[x] = total >> (2 * WEIGHT_BITS - 8)
                for channel in range(out.shape[1]):
                    gain = gains[row, c, channel]
                    target = out[row, channel, top + y, left : left + side]
                    for x in range(side):
                        light = np.int32(line[x] * gain + final)
                        target[x] = light >> (GAIN_BITS + 8)

"""Ranked MNIST told plainly: slow, one number at a time, without the package's own code."""

from __future__ import annotations

import colorsys
import hashlib

import numpy as np
from PIL import Image

WORD = (1 << 64) - 1


def scramble(z):
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & WORD
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & WORD
    return z ^ (z >> 31)


class Counter:
    """splitmix64 from a key and an index, in Python's own integers."""

    def __init__(self, key, index):
        self.state = scramble(key ^ scramble((index + 0x9E3779B97F4A7C15) & WORD))

    def word(self):
        self.state = (self.state + 0x9E3779B97F4A7C15) & WORD
        return scramble(self.state)

    def below(self, bound):
        return ((self.word() >> 32) * bound) >> 32

    def uniform(self, low, high):
        return low + (high - low) * ((self.word() >> 11) / 2**53)


def key_of(setting, seed, split):
    text = f"ranked-mnist|{setting.pictures}|{seed}|{split}"
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


def recipe(setting, seed, split, index, pools):
    """{digit: (image, left, top, side, scale, brightness, hue, saturation)} in the order of placing."""
    draw = Counter(key_of(setting, seed, split), index)
    count = setting.count[0] + draw.below(setting.count[1] - setting.count[0] + 1)
    classes = list(range(10))
    placed = {}
    for n in range(count):
        other = n + draw.below(10 - n)
        classes[n], classes[other] = classes[other], classes[n]
        digit = classes[n]
        entry = None
        for _ in range(1000):
            image = pools[digit][draw.below(len(pools[digit]))]
            scale = draw.uniform(*setting.scale)
            brightness = draw.uniform(*setting.brightness)
            side = int(28 * scale)
            left = 1 + draw.below(setting.canvas - 2 - side)
            top = 1 + draw.below(setting.canvas - 2 - side)
            if not any(overlap((left, top, side), box[1:4]) for box in placed.values()):
                entry = (image, left, top, side, scale, brightness)
                break
        hue, saturation = draw.uniform(0, 1), draw.uniform(0.5, 1)
        if entry is not None:
            placed[digit] = (*entry, hue, saturation)
    return placed


def overlap(one, two):
    """Whether two boxes share a pixel, by their pixels."""
    across = set(range(one[0], one[0] + one[2])) & set(range(two[0], two[0] + two[2]))
    down = set(range(one[1], one[1] + one[2])) & set(range(two[1], two[1] + two[2]))
    return bool(across and down)


def ranks_of(placed, factor):
    """Ranks by sorting the real values."""
    at = {"scale": 4, "brightness": 5}[factor]
    ranks = [0] * 10
    for rank, digit in enumerate(sorted(placed, key=lambda d: placed[d][at]), start=1):
        ranks[digit] = rank
    return ranks


def draw_image(placed, digits, canvas, colour):
    """The image in floating point, 0 to 255, [channels, canvas, canvas]; PIL resizes."""
    page = np.zeros((3 if colour else 1, canvas, canvas))
    for image, left, top, side, _, brightness, hue, saturation in placed.values():
        pixels = Image.fromarray(digits[image].astype(np.float32)).resize(
            (side, side), Image.Resampling.BILINEAR
        )
        gains = colorsys.hsv_to_rgb(hue, saturation, brightness) if colour else (brightness,)
        for channel, gain in enumerate(gains):
            page[channel, top : top + side, left : left + side] = np.asarray(pixels) * gain
    return page

"""Random numbers by counter: the same on every machine, for any image without the ones before it."""

from __future__ import annotations

import hashlib

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def stream_key(*parts: object) -> np.uint64:
    """64 bits that stand for these parts, on every machine the same.

    Examples
    --------
    >>> int(stream_key("gray", 0, "train")) == int(stream_key("gray", 0, "train"))
    True
    """
    text = "|".join(map(str, parts))
    return np.uint64(int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little"))


def uniforms(key: np.uint64, shape: tuple[int, ...]) -> Floats:
    """Numbers in [0, 1) by counter (splitmix64), filled in C order.

    Examples
    --------
    >>> bool((uniforms(np.uint64(7), (3,)) == uniforms(np.uint64(7), (2, 3)).ravel()[:3]).all())
    True
    """
    z = np.arange(1, int(np.prod(shape)) + 1, dtype=np.uint64) * _GOLDEN + key
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
    return ((z >> np.uint64(11)).astype(np.float64) * 2.0**-53).reshape(shape)

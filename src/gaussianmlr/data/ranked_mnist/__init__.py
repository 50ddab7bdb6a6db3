"""Ranked MNIST: the sets, how images are drawn, the digits, probes for figures, and exports.

The public names are loaded on first use, so that importing this package costs next to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gaussianmlr._utils.lazy import lazy_names

if TYPE_CHECKING:
    from gaussianmlr.data.ranked_mnist.sets import Batch, RankedMNIST

_HOMES = {
    "Batch": "sets",
    "RankedMNIST": "sets",
}

__all__ = [
    "Batch",
    "RankedMNIST",
]

__getattr__, __dir__ = lazy_names(__name__, _HOMES)

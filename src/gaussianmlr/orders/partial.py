"""Partial orders as texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gaussianmlr.orders.grammar import Buckets, write

__all__ = ["partial_text"]

BoolArray = npt.NDArray[np.bool_]


def partial_text(
    above: BoolArray,
    sure: BoolArray,
    possible: BoolArray,
    labels: Sequence[str],
    scores: npt.NDArray[Any],
) -> str:
    """A partial order as text: its chains, separated by semicolons, then labels that may be relevant.

    ``mountain > sky; mountain > sea ? sun ? rain`` means that mountain is above sky and above sea, that the
    order of these two is unknown, and that sun and rain may or may not apply; ``=`` never occurs. Labels
    that surely do not apply are left out.

    Parameters
    ----------
    above : bool array [K, K]
        Which label is above which, as returned by `normal.partial_order`.
    sure, possible : bool array [K]
        Which labels are surely relevant, and which may be.
    labels : sequence of str
        Their names.
    scores : array [K]
        Labels with larger scores come first.

    Examples
    --------
    >>> above = np.array([[0, 1, 1, 1], [0, 0, 0, 1], [0, 0, 0, 1], [0, 0, 0, 0]], bool)
    >>> sure, possible = np.array([1, 1, 1, 0], bool), np.ones(4, bool)
    >>> partial_text(above, sure, possible, ["mountain", "sky", "sea", "sun"], np.array([3, 2, 1, 0.0]))
    'mountain > sky; mountain > sea ? sun'
    """
    place = [int(label) for label in np.argsort(-scores, kind="stable")]
    nodes = [label for label in place if sure[label]]
    inner = above & sure[:, None] & sure[None, :]
    single = inner.astype(np.float32)  # sums stay exact, and matrix products of floats are fast
    direct = inner & ~(single @ single > 0)
    below = {node: [other for other in nodes if direct[node, other]] for node in nodes}
    parents = {node: int(direct[:, node].sum()) for node in nodes}
    chains: list[list[int]] = []
    for node in nodes:
        if parents[node] == 1 and len(below[node]) == 1:
            continue  # inside a chain that begins above
        if not below[node] and parents[node] == 0:
            chains.append([node])
        for first in below[node]:
            chain = [node, first]
            while parents[chain[-1]] == 1 and len(below[chain[-1]]) == 1:
                chain.append(below[chain[-1]][0])
            chains.append(chain)
    text = "; ".join(write(Buckets([[labels[node]] for node in chain], [])) for chain in chains)
    unsure = [labels[label] for label in place if possible[label] and not sure[label]]
    return f"{text} {write(Buckets([], unsure))}".strip() if unsure else text

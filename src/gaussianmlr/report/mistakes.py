"""What is wrong with a predicted order: pairs in the wrong order, labels missed, labels too many."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = ["Mistakes", "mistakes_of"]


class Mistakes(NamedTuple):
    """Where a predicted order departs from the true one; without any, the order is exactly right.

    Parameters
    ----------
    pairs : tuple of (str, str, float)
        Two relevant labels, truly in this order but predicted otherwise, and the model's probability of the
        true order (NaN for methods without sigma).
    missed, extra : tuple of str
        Labels wrongly predicted irrelevant, and wrongly predicted relevant.
    """

    pairs: tuple[tuple[str, str, float], ...]
    missed: tuple[str, ...]
    extra: tuple[str, ...]

    @property
    def labels(self) -> set[str]:
        """The labels that are concerned."""
        return {label for pair in self.pairs for label in pair[:2]} | {*self.missed, *self.extra}

    def __str__(self) -> str:
        said = [
            f"{first} > {second} is predicted the other way round"
            + ("" if np.isnan(chance) else f" (the model gives the true order {100 * chance:.0f} %)")
            for first, second, chance in self.pairs
        ]
        said += [f"{label} is missed" for label in self.missed]
        said += [f"{label} is not there" for label in self.extra]
        return "; ".join(said)


def mistakes_of(
    predicted: npt.NDArray[Any], truth: npt.NDArray[Any], labels: tuple[str, ...], p_above: Any = None
) -> Mistakes:
    """Compare a predicted with a true order.

    Parameters
    ----------
    predicted, truth : int array [K]
        Ranks; unknown labels (-1) are left out.
    labels : tuple of str
        Their names.
    p_above : array [K, K], optional
        Probability that one label is above another.

    Examples
    --------
    >>> found = mistakes_of(np.array([1, 2, 0, 3]), np.array([2, 1, 3, 0]), ("sky", "sea", "sun", "fog"))
    >>> str(found)
    'sky > sea is predicted the other way round; sun is missed; fog is not there'
    """
    both = np.flatnonzero((predicted > 0) & (truth > 0))
    pairs = tuple(
        (labels[u], labels[v], float("nan") if p_above is None else float(p_above[u, v]))
        for u in both[np.argsort(-truth[both], kind="stable")]
        for v in both
        if truth[u] > truth[v] and predicted[u] <= predicted[v]
    )
    missed = tuple(labels[k] for k in np.flatnonzero((truth > 0) & (predicted == 0)))
    extra = tuple(labels[k] for k in np.flatnonzero((truth == 0) & (predicted > 0)))
    return Mistakes(pairs, missed, extra)

"""Whether probabilities mean what they say: reliability curves and the expected calibration error."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from gaussianmlr.errors import DataError, shorten
from gaussianmlr.metrics._inputs import Input, Result, as_tensor, give, ratio, read_ranks
from gaussianmlr.metrics._instances import BLOCK


class Reliability(NamedTuple):
    """Probabilities in bins: what was said and what came true; arrays or tensors as came in."""

    edges: Any
    """Limits of the bins [bins + 1], from 0 to 1; a bin holds its upper limit, the first also 0."""
    predicted: Any
    """Mean probability in each bin; 0 where the bin is empty."""
    observed: Any
    """Share that came true in each bin; 0 where the bin is empty."""
    counts: Any
    """How many probabilities each bin holds; ``counts > 0`` masks the empty ones."""


def reliability(probabilities: Input, ranks: Input, *, bins: int = 15) -> Reliability:
    r"""Compare probabilities with what came true, in bins of equal width.

    Parameters
    ----------
    probabilities : array or tensor [N, K] or [N, K, K]
        Of shape [N, K], the probability that a label is relevant, held against its relevance. Of
        shape [N, K, K], the probability that label u stands above label v, held against the
        true order; every truly ordered pair counts in both directions, once as true and once
        as false. Tied and unknown labels make no pair.
    ranks : array or tensor [N, K]
        The true ranks: 0 = irrelevant, larger = more significant, -1 = unknown.
    bins : int
        How many bins.

    Returns
    -------
    Reliability
        The named tuple ``(edges, predicted, observed, counts)``, free of NaN.

    References
    ----------
    Niculescu-Mizil and Caruana (2005), Predicting good probabilities with supervised learning.

    Examples
    --------
    >>> curve = reliability([[0.9, 0.8, 0.7, 0.1]], [[2, 1, 0, 0]], bins=2)
    >>> curve.counts, curve.observed
    (array([1, 3]), array([0.        , 0.66666667]))
    """
    edges, sums, home = _bin(probabilities, ranks, bins)
    counts, said, came = sums
    parts = (edges, ratio(said, counts), ratio(came, counts), counts.long())
    return Reliability(*(give(part, home) for part in parts))


def ece(probabilities: Input, ranks: Input, *, bins: int = 15) -> Result:
    r"""Expected calibration error: the mean gap between what was said and what came true.

    .. math:: \sum_b \frac{n_b}{n} \left| \text{observed}_b - \text{predicted}_b \right|

    Parameters
    ----------
    probabilities, ranks, bins
        As for `reliability`.

    Returns
    -------
    float or tensor
        In [0, 1], smaller is better. Where there is nothing to compare, 0.

    References
    ----------
    Guo, Pleiss, Sun and Weinberger (2017), On calibration of modern neural networks. ICML.

    Examples
    --------
    >>> round(ece([[0.9, 0.8, 0.7, 0.1]], [[2, 1, 0, 0]], bins=2), 10)
    0.125
    """
    _, (counts, said, came), home = _bin(probabilities, ranks, bins)
    return give(ratio((said - came).abs().sum(), counts.sum()), home)


def _bin(probabilities: Input, ranks: Input, bins: int) -> tuple[Tensor, Tensor, torch.device | None]:
    """The edges, and for each bin the count, the sum of probabilities and the number that came true."""
    if isinstance(bins, bool) or not isinstance(bins, int | np.integer) or bins < 1:
        raise DataError(f"expected bins to be a number from 1 up, got {bins!r}")
    table, home = as_tensor(probabilities, "probabilities")
    order, other_home = read_ranks(ranks)
    order = order.to(table.device)
    count, labels = order.shape
    if table.shape not in ((count, labels), (count, labels, labels)):
        raise DataError(
            f"expected probabilities of shape {[count, labels]} or {[count, labels, labels]} "
            f"beside these ranks, got {list(table.shape)}"
        )
    _refuse_outside(table)
    edges = torch.from_numpy(np.linspace(0.0, 1.0, bins + 1)).to(table.device)
    sums = torch.zeros(3, bins, dtype=torch.float64, device=table.device)
    for said, came in _outcomes(table, order):
        weights = torch.stack([torch.ones_like(said), said, came])
        sums.index_add_(1, torch.bucketize(said, edges[1:-1]), weights)
    return edges, sums, home or other_home


def _outcomes(table: Tensor, ranks: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Probabilities and whether they came true, some instances at a time."""
    rows = max(1, BLOCK // max(1, table[:1].numel()))
    for part, order in zip(torch.split(table, rows), torch.split(ranks, rows)):
        said = part.double()
        if table.ndim == 2:
            counts = order >= 0
            yield said[counts], (order > 0)[counts].double()
            continue
        above = (order[:, :, None] > order[:, None, :]) & (order[:, None, :] >= 0)
        yield said[above], torch.ones_like(said[above])
        below = above.transpose(1, 2)
        yield said[below], torch.zeros_like(said[below])


def _refuse_outside(table: Tensor) -> None:
    bad = ~((table >= 0) & (table <= 1))  # NaN is not inside either
    if bool(bad.any()):
        place = tuple(bad.nonzero()[0].tolist())
        raise DataError(
            f"expected probabilities in [0, 1], got {shorten(table[place].item())} at {list(place)}; "
            f"{int(bad.sum())} of {bad.numel()} are outside"
        )

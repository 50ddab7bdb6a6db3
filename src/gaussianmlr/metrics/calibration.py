"""Calibration of probabilities: reliability curves, expected calibration error, abstention."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from gaussianmlr.errors import DataError, shorten
from gaussianmlr.metrics._inputs import Input, Result, as_tensor, give, ratio, read_ranks
from gaussianmlr.metrics._instances import BLOCK, ordered_pairs
from gaussianmlr.normal import Significance
from gaussianmlr.normal.tails import single_or_better


class Reliability(NamedTuple):
    """Binned probabilities and observed frequencies; arrays or tensors like the inputs."""

    edges: Any
    """Limits of the bins [bins + 1], from 0 to 1; a bin includes its upper limit, the first also 0."""
    predicted: Any
    """Mean probability per bin; 0 for an empty bin."""
    observed: Any
    """Observed frequency per bin; 0 for an empty bin."""
    counts: Any
    """Number of probabilities per bin; ``counts > 0`` masks empty bins."""


def reliability(probabilities: Input | Significance, ranks: Input, *, bins: int = 15) -> Reliability:
    r"""Compare probabilities with observed frequencies, in bins of equal width.

    Parameters
    ----------
    probabilities : array or tensor [N, K] or [N, K, K], or Significance
        Shape [N, K]: the probability that a label is relevant, compared with its relevance.
        Shape [N, K, K]: the probability that label u is above label v, compared with the true
        order; every truly ordered pair counts in both directions, once as true and once as
        false. Tied and unknown labels form no pairs. A `normal.Significance` (mu, sigma), both
        [N, K], stands for the pairs of its `normal.p_above`, of which only the ordered ones are computed:
        the cost is that of P * K instead of K^2.
    ranks : array or tensor [N, K]
        The true ranks: 0 = irrelevant, larger = more significant, -1 = unknown.
    bins : int
        Number of bins.

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


def ece(probabilities: Input | Significance, ranks: Input, *, bins: int = 15) -> Result:
    r"""Expected calibration error: the mean gap between probabilities and observed frequencies.

    .. math:: \sum_b \frac{n_b}{n} \left| \text{observed}_b - \text{predicted}_b \right|

    Parameters
    ----------
    probabilities, ranks, bins
        As for `reliability`.

    Returns
    -------
    float or tensor
        In [0, 1], smaller is better; 0 if there is nothing to compare.

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


class Abstention(NamedTuple):
    """Coverage and accuracy of partial orders by required confidence."""

    confidences: Any
    """Probabilities required for a comparison."""
    coverage: Any
    """Share of the truly ordered pairs that are compared."""
    accuracy: Any
    """Share of these comparisons that are right; 0 without any."""
    counts: Any
    """Number of comparisons; ``counts > 0`` masks points without any."""


def abstention(p_above: Input | Significance, ranks: Input, confidences: Input | None = None) -> Abstention:
    r"""Coverage against accuracy of partial orders at rising confidence.

    At confidence c the model compares u and v if the probability that one is above the other is at least c
    and more than 1/2. With the right comparisons R, the wrong ones W and all truly ordered pairs M

    .. math:: \text{coverage} = \frac{|R|+|W|}{|M|}, \qquad \text{accuracy} = \frac{|R|}{|R|+|W|}.

    Coverage is the completeness of the partial orders, and 2 accuracy - 1 their correctness, over
    the pairs of all instances together.

    Parameters
    ----------
    p_above : array or tensor [N, K, K], or Significance
        Probability that label u is above label v; or the significances that give it, as in `reliability`.
    ranks : array or tensor [N, K]
        The true ranks: 0 = irrelevant, larger = more significant, -1 = unknown.
    confidences : array or tensor [C], optional
        From 1/2 to 1; by default 50 steps from 0.5 to 0.99.

    References
    ----------
    Cheng, Rademaker, De Baets and Huellermeier (2010), Predicting partial orders: ranking with
    abstention. ECML.

    Examples
    --------
    >>> sure = [[[0.5, 0.9, 0.8], [0.1, 0.5, 0.4], [0.2, 0.6, 0.5]]]
    >>> curve = abstention(sure, [[2, 1, 0]], [0.5, 0.7, 0.85])
    >>> curve.coverage.round(3), curve.accuracy.round(3), curve.counts
    (array([1. , 0.667, 0.333]), array([0.667, 1. , 1. ]), array([3, 2, 1]))
    """
    table, order, home = _read(p_above, ranks, pairs=True)
    steps, _ = as_tensor(np.linspace(0.5, 0.99, 50) if confidences is None else confidences, "confidences")
    device = order.device
    steps = steps.double().to(device)
    if steps.ndim != 1 or not bool(((steps >= 0.5) & (steps <= 1.0)).all()):
        raise DataError(f"expected a vector of confidences from 0.5 to 1, got {shorten(confidences)}")
    made = torch.zeros(2, len(steps), dtype=torch.int64, device=device)
    total = 0
    for said, came in _outcomes(table, order):
        claims = said[said > 0.5].sort().values
        right = int(bool(came.all()))  # an outcome is all true or all false; an empty one adds nothing
        made[right] += len(claims) - torch.searchsorted(claims, steps)
        total += len(said)
    counts = made.sum(0)
    # each pair counts in both directions
    pairs = torch.tensor(total / 2.0, dtype=torch.float64, device=device)
    parts = (steps, ratio(counts.double(), pairs), ratio(made[1].double(), counts.double()), counts)
    return Abstention(*(give(part, home) for part in parts))


def _bin(
    probabilities: Input | Significance, ranks: Input, bins: int
) -> tuple[Tensor, Tensor, torch.device | None]:
    """The edges, and per bin the count, the sum of probabilities and the number of true outcomes."""
    if isinstance(bins, bool) or not isinstance(bins, int | np.integer) or bins < 1:
        raise DataError(f"expected bins to be a number from 1 up, got {bins!r}")
    table, order, home = _read(probabilities, ranks)
    edges = torch.from_numpy(np.linspace(0.0, 1.0, bins + 1)).to(order.device)
    sums = torch.zeros(3, bins, dtype=torch.float64, device=order.device)
    for said, came in _outcomes(table, order):
        weights = torch.stack([torch.ones_like(said), said, came])
        sums.index_add_(1, torch.bucketize(said, edges[1:-1]), weights)
    return edges, sums, home


def _read(
    probabilities: Input | Significance, ranks: Input, *, pairs: bool = False
) -> tuple[Tensor | Significance, Tensor, torch.device | None]:
    """Checked probabilities and ranks on one device; with `pairs`, only of shape [N, K, K]."""
    order, other_home = read_ranks(ranks)
    count, labels = order.shape
    if isinstance(probabilities, Significance):
        (mu, home), (sigma, _) = (as_tensor(part, "significances") for part in probabilities)
        if mu.shape != order.shape or sigma.shape != order.shape:
            raise DataError(
                f"expected mu and sigma of the ranks' shape {list(order.shape)}, "
                f"got {list(mu.shape)} and {list(sigma.shape)}"
            )
        found = Significance(single_or_better(mu), single_or_better(sigma))
        return found, order.to(mu.device), home or other_home
    table, home = as_tensor(probabilities, "probabilities")
    order = order.to(table.device)
    wanted = [(count, labels, labels)] if pairs else [(count, labels), (count, labels, labels)]
    if table.shape not in wanted:
        shapes = " or ".join(str(list(shape)) for shape in wanted)
        raise DataError(
            f"expected probabilities of shape {shapes} beside these ranks, got {list(table.shape)}"
        )
    refuse_outside(table)
    return table, order, home or other_home


def _outcomes(table: Tensor | Significance, ranks: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Probabilities and outcomes, block by block."""
    if isinstance(table, Tensor) and table.ndim == 2:
        rows = max(1, BLOCK // max(1, table[:1].numel()))
        for part, order in zip(torch.split(table, rows), torch.split(ranks, rows)):
            counts = order >= 0
            yield part.double()[counts], (order > 0)[counts].double()
        return
    for row, upper, lower in ordered_pairs(ranks):
        for first, second, came in ((upper, lower, torch.ones), (lower, upper, torch.zeros)):
            said = (
                table[row, first, second] if isinstance(table, Tensor) else _chance(table, row, first, second)
            ).double()
            yield said, came(len(said), dtype=torch.float64, device=said.device)


def _chance(significance: Significance, row: Tensor, upper: Tensor, lower: Tensor) -> Tensor:
    """`normal.p_above` of some pairs."""
    mu, sigma = significance
    spread = torch.hypot(sigma[row, upper], sigma[row, lower])
    found: Tensor = torch.special.ndtr((mu[row, upper] - mu[row, lower]) / spread)
    return found


def refuse_outside(table: Tensor) -> None:
    """Refuse numbers that are no probabilities."""
    bad = ~((table >= 0) & (table <= 1))  # also refuses NaN
    if bool(bad.any()):
        place = tuple(bad.nonzero()[0].tolist())
        raise DataError(
            f"expected probabilities in [0, 1], got {shorten(table[place].item())} at {list(place)}; "
            f"{int(bad.sum())} of {bad.numel()} are outside"
        )

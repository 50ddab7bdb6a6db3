r"""Predicted ties: precision, recall and F1 of tied pairs, and the likelihood of orders with ties.

A pair ties where both labels are relevant and stand in one bucket. Predictions are scores whose zero is the
threshold, tied where they are equal: pass `Prediction.ranks`, which hold the ties that a model predicts.
`kendall_tau_b` and the other rank correlations take them too.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from gaussianmlr.errors import DataError
from gaussianmlr.metrics._inputs import Input, Reduction, Result, Values, as_tensor, give, ratio, read, reduce
from gaussianmlr.metrics._instances import BLOCK, Instances, blocks, groups
from gaussianmlr.metrics.calibration import refuse_outside

__all__ = ["bucket_likelihood", "tie_f1", "tie_precision", "tie_recall"]


class TieHits(NamedTuple):
    """Numbers of pairs that tie in both, in the prediction and in the truth."""

    both: Tensor
    predicted: Tensor
    true: Tensor


def tie_precision(scores: Input, ranks: Input) -> Result:
    r"""Share of the predicted ties that are true, over the pairs of all instances.

    Parameters
    ----------
    scores : array or tensor [N, K]
        Predicted ranks, or scores: relevant above zero, tied where equal.
    ranks : array or tensor [N, K]
        The true ranks: 0 = irrelevant, larger = more significant, -1 = unknown.

    Returns
    -------
    float or tensor
        0 if no tie is predicted.

    Examples
    --------
    >>> tie_precision([[2, 2, 1, 0]], [[1, 1, 1, 0]]), tie_precision([[1, 1, 1, 0]], [[2, 2, 1, 0]])
    (1.0, 0.3333333333333333)
    """
    found, home = _all_hits(scores, ranks)
    return give(ratio(found.both, found.predicted), home)


def tie_recall(scores: Input, ranks: Input) -> Result:
    """Share of the true ties that are predicted, over the pairs of all instances; as `tie_precision`.

    Examples
    --------
    >>> round(tie_recall([[2, 2, 1, 0]], [[1, 1, 1, 0]]), 4)
    0.3333
    """
    found, home = _all_hits(scores, ranks)
    return give(ratio(found.both, found.true), home)


def tie_f1(scores: Input, ranks: Input) -> Result:
    r"""Harmonic mean of `tie_precision` and `tie_recall`, :math:`2|A \cap B| / (|A| + |B|)`.

    Examples
    --------
    >>> tie_f1([[2, 2, 1, 0]], [[1, 1, 1, 0]])
    0.5
    """
    found, home = _all_hits(scores, ranks)
    return give(ratio(2.0 * found.both, found.predicted + found.true), home)


def tie_hits(block: Instances) -> TieHits:
    """Counts per instance [n], in O(K log K)."""
    predicted = block.scores.masked_fill(~block.accepted, 0.0)
    labels = block.scores.shape[1]
    # A number for each pair of a predicted and a true bucket: pairs tied in both share it.
    joint = groups(predicted) * labels + groups(block.ranks)
    relevant = block.accepted & block.relevant
    counts = (
        _pairs_alike(values, among)
        for values, among in (
            (joint, relevant),
            (groups(predicted), block.accepted),
            (groups(block.ranks), block.relevant),
        )
    )
    return TieHits(*counts)


def _pairs_alike(values: Tensor, among: Tensor) -> Tensor:
    """Number of pairs of marked labels with the same value, per instance."""
    marked = values.masked_fill(~among, -1)
    number = groups(marked)
    size = torch.zeros(values.shape, dtype=torch.float64, device=values.device)
    size.scatter_add_(1, number, among.double())
    return (size * (size - 1.0) / 2.0).sum(1)


def _all_hits(scores: Input, ranks: Input) -> tuple[TieHits, torch.device | None]:
    batch = read(scores, ranks)
    parts = [tie_hits(block) for block in blocks(batch)]
    return TieHits(*(torch.cat(part).sum() for part in zip(*parts))), batch.home


def bucket_likelihood(
    p_above: Input, p_tie: Input, ranks: Input, *, reduction: Reduction = "mean", floor: float = 1e-12
) -> Result:
    r"""Mean log-probability of what is true of a pair of relevant labels: above, below or tied.

    .. math:: \frac1{|\mathcal P|}\Big[\sum_{r_u > r_v > 0}\log P(u \text{ above } v)
        + \sum_{r_u = r_v > 0}\log P(u = v)\Big]

    over the pairs :math:`\mathcal P` of truly relevant labels of an instance: a composite likelihood of its
    bucket order.

    Parameters
    ----------
    p_above, p_tie : array or tensor [N, K, K]
        Probabilities as of `Prediction.p_above` and `Prediction.p_tie`.
    ranks : array or tensor [N, K]
        The true ranks: 0 = irrelevant, larger = more significant, -1 = unknown.
    reduction : {"mean", "sum", "none"}
        The mean over instances with two relevant labels, the sum, or the vector itself.
    floor : float
        Smaller probabilities count as this one, so that a model without ties has a finite value.

    Returns
    -------
    float, array or tensor
        At most 0, larger is better. An instance without a pair has the value 0 and does not count in the
        mean.

    References
    ----------
    Varin, Reid, Firth (2011), An overview of composite likelihood methods. Statistica Sinica 21.

    Examples
    --------
    >>> above, tie = [[[0.4, 0.7], [0.1, 0.4]]], [[[0.2, 0.2], [0.2, 0.2]]]
    >>> round(bucket_likelihood(above, tie, [[2, 1]]), 4), round(bucket_likelihood(above, tie, [[1, 1]]), 4)
    (-0.3567, -1.6094)
    """
    if not 0.0 < floor < 1.0:
        raise DataError(f"expected a floor between 0 and 1, got {floor}")
    above, home = as_tensor(p_above, "p_above")
    tie, _ = as_tensor(p_tie, "p_tie")
    # Scores are not used; zeros of the shape of the ranks let them be checked as everywhere.
    order = read(torch.zeros(above.shape[:2]), ranks).ranks.to(above.device)
    if above.shape != tie.shape or above.shape != (*order.shape, order.shape[1]):
        wanted = [*order.shape, order.shape[1]]
        raise DataError(
            f"expected probabilities of shape {wanted}, got {list(above.shape)} and {list(tie.shape)}"
        )
    refuse_outside(above)
    refuse_outside(tie)
    rows = max(1, BLOCK // max(1, order.shape[1] ** 2))
    tables = (torch.split(part, rows) for part in (above, tie, order))
    parts = [_likelihoods(*some, floor=floor) for some in zip(*tables)]
    values, weights = (torch.cat(part) for part in zip(*parts))
    return reduce(Values(values, weights), reduction, home)


def _likelihoods(above: Tensor, tie: Tensor, ranks: Tensor, *, floor: float) -> tuple[Tensor, Tensor]:
    both = (ranks[:, :, None] > 0) & (ranks[:, None, :] > 0)
    ordered = both & (ranks[:, :, None] > ranks[:, None, :])
    tied = torch.triu(both & (ranks[:, :, None] == ranks[:, None, :]), 1)
    found = torch.zeros(len(ranks), dtype=torch.float64, device=ranks.device)
    for chances, chosen in ((above, ordered), (tie, tied)):
        found = found + chances.double().clamp(min=floor).log().masked_fill(~chosen, 0.0).sum((1, 2))
    count = (ordered.sum((1, 2)) + tied.sum((1, 2))).double()
    return ratio(found, count), (count > 0).double()

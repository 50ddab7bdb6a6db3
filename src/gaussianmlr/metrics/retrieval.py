"""Ranking metrics of raw scores, independent of the threshold.

Equal to scikit-learn's metrics of the same names, including ties, with unknown labels left out.
"""

from __future__ import annotations

import numpy as np
import torch

from gaussianmlr.errors import DataError
from gaussianmlr.metrics._inputs import Input, Reduction, Result, Values, ratio
from gaussianmlr.metrics._instances import Instances, per_instance, tally


def ranking_loss(scores: Input, ranks: Input, *, reduction: Reduction = "mean") -> Result:
    r"""Share of the pairs (relevant, irrelevant) with the irrelevant label at an equal or larger score.

    .. math:: \frac{|\{(u, v) : r_u > 0 = r_v,\ s_v \ge s_u\}|}{|\{(u, v) : r_u > 0 = r_v\}|}

    Parameters
    ----------
    scores, ranks, reduction
        As for `gaussianmlr.metrics.kendall_tau_b`; the threshold is not used.

    Returns
    -------
    float, array or tensor
        In [0, 1], smaller is better; 0 without a relevant or without an irrelevant label.

    References
    ----------
    Tsoumakas, Katakis and Vlahavas (2010), Mining multi-label data.

    Examples
    --------
    >>> ranking_loss([[0.9, 0.1, 0.5]], [[2, 1, 0]])
    0.5
    """
    return per_instance(ranking_loss_values, scores, ranks, reduction)


def average_precision(scores: Input, ranks: Input, *, reduction: Reduction = "mean") -> Result:
    r"""Mean, over the relevant labels, of the share of relevant labels among those with at least its score.

    .. math::
        \frac{1}{P} \sum_{u : r_u > 0}
        \frac{|\{v : r_v > 0,\ s_v \ge s_u\}|}{|\{v : s_v \ge s_u\}|}

    Parameters
    ----------
    scores, ranks, reduction
        As for `gaussianmlr.metrics.kendall_tau_b`; the threshold is not used.

    Returns
    -------
    float, array or tensor
        In (0, 1]; 1 without a relevant label, as in scikit-learn.

    References
    ----------
    Tsoumakas, Katakis and Vlahavas (2010), Mining multi-label data.

    Examples
    --------
    >>> average_precision([[0.9, 0.1, 0.5, 0.3]], [[2, 1, 0, 0]])
    0.75
    """
    return per_instance(average_precision_values, scores, ranks, reduction)


def coverage(scores: Input, ranks: Input, *, reduction: Reduction = "mean") -> Result:
    r"""Number of labels, by descending score, that are needed to include all relevant ones.

    .. math:: \max_{u : r_u > 0} |\{v : s_v \ge s_u\}|

    Parameters
    ----------
    scores, ranks, reduction
        As for `gaussianmlr.metrics.kendall_tau_b`; the threshold is not used.

    Returns
    -------
    float, array or tensor
        Between the numbers of relevant (best) and of known labels; 0 without a relevant label.

    References
    ----------
    Tsoumakas, Katakis and Vlahavas (2010), Mining multi-label data.

    Examples
    --------
    >>> coverage([[0.9, 0.1, 0.5, 0.0]], [[2, 1, 0, 0]])
    3.0
    """
    return per_instance(coverage_values, scores, ranks, reduction)


def ndcg(scores: Input, ranks: Input, *, k: int | None = None, reduction: Reduction = "mean") -> Result:
    r"""Discounted gain of the labels sorted by score, relative to the best possible.

    .. math:: \frac{\sum_{i \le k} r_{\pi(i)} / \log_2(i + 1)}{\sum_{i \le k} r_{\pi^*(i)} / \log_2(i + 1)}

    where :math:`\pi` sorts by score and :math:`\pi^*` by rank. The gain of a label is its rank. Labels
    with the same score share the mean discount of their places.

    Parameters
    ----------
    scores, ranks, reduction
        As for `gaussianmlr.metrics.kendall_tau_b`; the threshold is not used.
    k : int, optional
        Count only the first k places.

    Returns
    -------
    float, array or tensor
        In [0, 1]; 0 without a relevant label.

    References
    ----------
    Järvelin and Kekäläinen (2002), Cumulated gain-based evaluation of IR techniques. McSherry and
    Najork (2008), Computing information retrieval performance measures efficiently in the
    presence of tied scores.

    Examples
    --------
    >>> round(ndcg([[0.9, 0.1, 0.5]], [[2, 1, 0]]), 4)
    0.9502
    >>> ndcg([[0.9, 0.1, 0.5]], [[2, 1, 0]], k=1)
    1.0
    """
    check_places(k)
    return per_instance(lambda block: ndcg_values(block, k), scores, ranks, reduction)


def check_places(k: int | None) -> None:
    """Refuse a k that is not a positive integer or None."""
    if k is not None and (isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1):
        raise DataError(f"expected k to be a number of places from 1 up, or None, got {k!r}")


def ranking_loss_values(block: Instances) -> Values:
    """Core of `ranking_loss`."""
    irrelevant = block.known & ~block.relevant
    others = irrelevant.sum(1).double()
    lost = others[:, None] - tally(block.raw_groups, irrelevant).below
    return block.values(ratio((lost * block.relevant).sum(1), others * block.relevant.sum(1)))


def average_precision_values(block: Instances) -> Values:
    """Core of `average_precision`."""
    positives = block.relevant.sum(1).double()
    relevant_so_far = positives[:, None] - tally(block.raw_groups, block.relevant).below
    precision = ratio(relevant_so_far, _so_far(block))
    return block.values(ratio((precision * block.relevant).sum(1), positives, otherwise=1.0))


def coverage_values(block: Instances) -> Values:
    """Core of `coverage`."""
    return block.values((_so_far(block) * block.relevant).amax(1))


def ndcg_values(block: Instances, k: int | None = None) -> Values:
    """Core of `ndcg`."""
    width = block.ranks.shape[1]
    places = torch.arange(1, width + 1, dtype=torch.float64, device=block.ranks.device)
    discount = 1 / (places + 1).log2()
    if k is not None:
        discount[k:] = 0
    until = torch.cat([discount.new_zeros(1), discount.cumsum(0)])  # until[i]: of the first i places
    gains = block.ranks.clamp(min=0).double()
    found = tally(block.raw_groups, block.known)
    above = block.counted[:, None] - found.below - found.same
    shared = ratio(until[(above + found.same).long()] - until[above.long()], found.same)
    best = gains.sort(dim=1, descending=True).values @ discount
    return block.values(ratio((gains * shared).sum(1), best))


def _so_far(block: Instances) -> torch.Tensor:
    """Number of known labels with at least the score of each label."""
    return block.counted[:, None] - tally(block.raw_groups, block.known).below

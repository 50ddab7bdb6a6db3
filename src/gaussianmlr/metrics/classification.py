r"""Metrics of relevance, and of the label with the largest score.

A label is predicted relevant iff its score is above zero. Unknown labels are ignored.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, get_args

import torch
from torch import Tensor

from gaussianmlr.errors import DataError
from gaussianmlr.metrics._inputs import (
    Input,
    Reduction,
    Result,
    Values,
    check_choice,
    give,
    ratio,
    read,
    reduce,
)
from gaussianmlr.metrics._instances import Instances, blocks, per_instance

Average = Literal["micro", "instance", "macro"]


class Hits(NamedTuple):
    """True positives, false positives and false negatives."""

    tp: Tensor
    fp: Tensor
    fn: Tensor


def hamming_loss(scores: Input, ranks: Input, *, reduction: Reduction = "mean") -> Result:
    r"""Share of the known labels on the wrong side of the threshold.

    .. math:: \frac{1}{n} \sum_u \mathbb{I}\left[(s_u > 0) \ne (r_u > 0)\right]

    Parameters
    ----------
    scores, ranks, reduction
        As for `gaussianmlr.metrics.kendall_tau_b`.

    Returns
    -------
    float, array or tensor
        In [0, 1], smaller is better.

    References
    ----------
    Schapire and Singer (1999), Improved boosting algorithms using confidence-rated predictions.

    Examples
    --------
    >>> hamming_loss([[3.0, -1.0, 0.5, -2.0]], [[2, 1, 0, 0]])
    0.5
    """
    return per_instance(hamming_values, scores, ranks, reduction)


def max1_error(scores: Input, ranks: Input, *, reduction: Reduction = "mean") -> Result:
    r"""Share of instances whose label with the largest score is not relevant.

    .. math:: \mathbb{I}\left[r_{\arg\max_u s_u} = 0\right]

    Raw scores are used, even if none is above zero; of several largest scores the first label is
    taken.

    Parameters
    ----------
    scores, ranks, reduction
        As for `gaussianmlr.metrics.kendall_tau_b`.

    Returns
    -------
    float, array or tensor
        0 or 1 per instance, smaller is better; 1 without a relevant label.

    Examples
    --------
    >>> max1_error([[-1.0, -2.0, -3.0], [1.0, 2.0, -3.0]], [[1, 0, 0], [1, 0, 0]])
    0.5
    """
    return per_instance(max1_values, scores, ranks, reduction)


def top1_accuracy(scores: Input, ranks: Input, *, reduction: Reduction = "mean") -> Result:
    r"""Share of instances whose label with the largest score is a most significant one.

    .. math:: \mathbb{I}\left[r_{\arg\max_u s_u} = \max_v r_v > 0\right]

    Parameters
    ----------
    scores, ranks, reduction
        As for `gaussianmlr.metrics.kendall_tau_b`; raw scores are used, and the first of several largest.

    Returns
    -------
    float, array or tensor
        0 or 1 per instance, at most 1 - `max1_error`; 0 without a relevant label.

    Examples
    --------
    >>> top1_accuracy([[3.0, 1.0, -1.0], [1.0, 3.0, -1.0]], [[2, 1, 0], [2, 1, 0]])
    0.5
    """
    return per_instance(top1_values, scores, ranks, reduction)


def f1(
    scores: Input,
    ranks: Input,
    *,
    average: Average = "micro",
    zero_division: float = 0.0,
    reduction: Reduction = "mean",
) -> Result:
    r"""F1, the harmonic mean of precision and recall of the relevant labels.

    .. math:: F_1 = \frac{TP}{TP + (FP + FN) / 2}

    Parameters
    ----------
    scores, ranks
        As for `gaussianmlr.metrics.kendall_tau_b`.
    average : {"micro", "instance", "macro"}
        "micro" counts over all instances and labels first, as the paper's tables do; "instance"
        has one value per instance; "macro" has one value per label.
    zero_division : float
        The value if nothing is relevant and nothing predicted relevant.
    reduction : {"mean", "sum", "none"}
        Of the values of instances or labels. "micro" is one number and allows only "mean".

    Returns
    -------
    float, array or tensor
        In [0, 1]. A label that is unknown in every instance does not count in the macro mean.

    References
    ----------
    van Rijsbergen (1979), Information retrieval.

    Examples
    --------
    >>> scores, ranks = [[3.0, -1.0, 0.5], [1.0, -2.0, -1.0]], [[2, 1, 0], [1, 0, 0]]
    >>> f1(scores, ranks)
    0.6666666666666666
    >>> f1(scores, ranks, average="instance", reduction="none")
    array([0.5, 1. ])
    >>> f1(scores, ranks, average="macro", reduction="none")
    array([1., 0., 0.])
    """
    check_choice("average", average, get_args(Average))
    if average == "instance":
        return per_instance(lambda block: f1_values(block, zero_division), scores, ranks, reduction)
    if average == "micro" and reduction != "mean":
        raise DataError(
            f"micro F1 is one number for all instances, so reduction={reduction!r} has no meaning; "
            "average='instance' has one value per instance"
        )
    batch = read(scores, ranks)
    found = [(label_hits(block), block.known.sum(0)) for block in blocks(batch)]
    hits = Hits(*(torch.stack(parts).sum(0) for parts in zip(*(hits for hits, _ in found))))
    if average == "micro":
        return give(f1_of(Hits(*(part.sum() for part in hits)), zero_division), batch.home)
    weights = (torch.stack([known for _, known in found]).sum(0) > 0).double()
    return reduce(Values(f1_of(hits, zero_division) * weights, weights), reduction, batch.home)


def f1_of(hits: Hits, zero_division: float = 0.0) -> Tensor:
    """F1 of hits of any shape."""
    return ratio(hits.tp, hits.tp + (hits.fp + hits.fn) / 2, otherwise=zero_division)


def label_hits(block: Instances) -> Hits:
    """Hits of every label, summed over the instances."""
    return _hits(block, 0)


def f1_values(block: Instances, zero_division: float = 0.0) -> Values:
    """Core of `f1` with one value per instance."""
    return block.values(f1_of(_hits(block, 1), zero_division))


def hamming_values(block: Instances) -> Values:
    """Core of `hamming_loss`."""
    wrong = (block.accepted != block.relevant).sum(1).double()
    return block.values(ratio(wrong, block.counted))


def max1_values(block: Instances) -> Values:
    """Core of `max1_error`."""
    return block.values((block.first <= 0).double())


def top1_values(block: Instances) -> Values:
    """Core of `top1_accuracy`."""
    most = block.ranks.amax(1)
    return block.values(((block.first == most) & (most > 0)).double())


def _hits(block: Instances, axis: int) -> Hits:
    both = (block.accepted & block.relevant).sum(axis).double()
    return Hits(both, block.accepted.sum(axis) - both, block.relevant.sum(axis) - both)

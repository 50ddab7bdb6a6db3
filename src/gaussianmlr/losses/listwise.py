"""Losses of whole lists and sets of labels."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional

from gaussianmlr.losses.common import (
    Reduction,
    Supervision,
    checked,
    log_probability_of_relevance,
    mean_over_known,
    reduce,
    with_virtual_label,
)
from gaussianmlr.losses.pairs import log_sum_exp_pairs, sums_below
from gaussianmlr.losses.weighting import Weights


def plackett_luce(
    scores: Tensor,
    ranks: Tensor,
    *,
    supervision: Supervision = "strong",
    reduction: Reduction = "mean",
    weights: Weights | None = None,
) -> Tensor:
    r"""Plackett-Luce likelihood with a virtual label of score zero, ties in Breslow's form.

    The relevant labels are drawn in their order, then the virtual label, then the rest:

    .. math:: \sum_{u\in P\cup\{0\}} \Big[\log\sum_{v:\, r_v \le r_u} e^{s_v} - s_u\Big], \quad s_0=0,

    where the sum includes the whole bucket of u and everything below it. A term is weighted by the
    weight of u; irrelevant labels are never drawn, so their weights have no effect.

    References
    ----------
    Plackett, "The analysis of permutations", 1975; Breslow, "Covariance analysis of censored
    survival data", 1974.

    Examples
    --------
    >>> import torch
    >>> plackett_luce(torch.tensor([[0.0, 0.0]]), torch.tensor([[1, 0]]))  # log 3 + log 2
    tensor(1.7918)
    """
    scores, ranks = checked(scores, ranks, supervision)
    each = None if weights is None else weights.without_order("Plackett-Luce").of(scores, ranks)
    scores, ranks = with_virtual_label(scores, ranks)
    ascending, sorted_ranks, up_to, order = sums_below(scores, ranks, with_ties=True)
    terms = (up_to - ascending).masked_fill(sorted_ranks <= 0, 0.0)
    if each is not None:
        terms = terms * functional.pad(each, (0, 1), value=1.0)[order]
    return reduce(terms.sum(-1), reduction)


def zlpr(
    scores: Tensor,
    ranks: Tensor,
    *,
    supervision: Supervision = "strong",
    reduction: Reduction = "mean",
    weights: Weights | None = None,
) -> Tensor:
    r"""LSEP with a zero label, one stage; its weak form is the zero-bounded loss ZLPR.

    .. math::
        \log\Big(1 + \sum_{u\in P} e^{-s_u} + \sum_{v\in Q} e^{s_v}
        + \sum_{(u,v)\in\mathcal B} e^{s_v-s_u}\Big)

    Under weak supervision this factors into
    :math:`\log(1+\sum_P e^{-s_u}) + \log(1+\sum_Q e^{s_v})`.

    References
    ----------
    Su, Zhu, Pan, "ZLPR: a novel loss for multi-label classification", 2022.

    Examples
    --------
    >>> import torch
    >>> zlpr(torch.tensor([[0.0, 0.0]]), torch.tensor([[1, 0]]))  # log(1 + 1 + 1 + 1)
    tensor(1.3863)
    """
    scores, ranks = checked(scores, ranks, supervision)
    logs = None if weights is None else weights.logs(scores, ranks, virtual=True)
    return reduce(log_sum_exp_pairs(*with_virtual_label(scores, ranks), logs), reduction)


def binary_relevance(
    scores: Tensor, ranks: Tensor, *, reduction: Reduction = "mean", weights: Weights | None = None
) -> Tensor:
    r"""Binary cross-entropy of relevance, the mean over known labels. Ignores the order.

    .. math:: \frac1K\Big[\sum_{u\in P}\log(1+e^{-s_u}) + \sum_{v\in Q}\log(1+e^{s_v})\Big]

    Examples
    --------
    >>> import torch
    >>> binary_relevance(torch.tensor([[0.0, 0.0]]), torch.tensor([[2, 1]]))
    tensor(0.6931)
    """
    scores, ranks = checked(scores, ranks, "weak")
    weights = weights and weights.without_order("binary relevance")
    return reduce(-mean_over_known(log_probability_of_relevance(scores, ranks), ranks, weights), reduction)

"""Losses of whole lists and sets of labels."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional

from gaussianmlr.errors import DataError
from gaussianmlr.losses.common import (
    Reduction,
    Supervision,
    checked,
    log_probability_of_relevance,
    mean_over_known,
    reduce,
    supervised,
    thresholds,
    with_virtual_label,
)
from gaussianmlr.losses.pairs import log_sum_exp_pairs, pair_exponents, sums_below, tie_exponents
from gaussianmlr.losses.weighting import NOWHERE, Weights

LARGEST_BUCKET = 8  # tied labels whose orders are summed: the cost doubles with each


def plackett_luce(
    scores: Tensor,
    ranks: Tensor,
    *,
    supervision: Supervision = "strong",
    reduction: Reduction = "mean",
    weights: Weights | None = None,
    ties: Literal["breslow", "exact"] = "breslow",
) -> Tensor:
    r"""Plackett-Luce likelihood with a virtual label of score zero, ties in Breslow's form or exact.

    The relevant labels are drawn in their order, then the virtual label, then the rest:

    .. math:: \sum_{u\in P\cup\{0\}} \Big[\log\sum_{v:\, r_v \le r_u} e^{s_v} - s_u\Big], \quad s_0=0,

    where the sum includes the whole bucket of u and everything below it. A term is weighted by the
    weight of u; irrelevant labels are never drawn, so their weights have no effect.

    With ``ties="exact"`` a bucket of 2 to 8 tied labels B above the labels L counts with the sum of the
    probabilities of all its orders, by a recursion over its subsets S,

    .. math:: P = g(B)\prod_{u\in B} e^{s_u}, \quad
        g(S) = \frac{\sum_{u\in S} g(S\setminus u)}{\sum_{v\in S\cup L} e^{s_v}}, \quad g(\emptyset) = 1,

    weighted by the mean weight of its labels; larger ones stay in Breslow's form.

    References
    ----------
    Plackett, "The analysis of permutations", 1975; Breslow, "Covariance analysis of censored
    survival data", 1974; Cox, "Regression models and life-tables", 1972, for the exact form.

    Examples
    --------
    >>> import torch
    >>> plackett_luce(torch.tensor([[0.0, 0.0]]), torch.tensor([[1, 0]]))  # log 3 + log 2
    tensor(1.7918)
    """
    scores, ranks = checked(scores, ranks, supervision)
    if ties not in ("breslow", "exact"):
        raise DataError(f"ties is 'breslow' or 'exact', not {ties!r}")
    each = None if weights is None else weights.without_order("Plackett-Luce").of(scores, ranks)
    scores, ranks = with_virtual_label(scores, ranks)
    ascending, sorted_ranks, up_to, order = sums_below(scores, ranks, with_ties=True)
    terms = (up_to - ascending).masked_fill(sorted_ranks <= 0, 0.0)
    if each is not None:
        each = functional.pad(each, (0, 1), value=1.0)[order]
        terms = terms * each
    if ties == "exact":
        terms = _with_exact_buckets(terms, ascending, sorted_ranks, each)
    return reduce(terms.sum(-1), reduction)


def _with_exact_buckets(terms: Tensor, scores: Tensor, ranks: Tensor, weights: Tensor | None) -> Tensor:
    """Terms of sorted labels, with small buckets replaced by their exact ones, each at its last label."""
    scores = scores.masked_fill(ranks < 0, NOWHERE)  # unknown labels are sorted last, outside every sum
    below = functional.pad(torch.logcumsumexp(scores, -1), (1, 0), value=NOWHERE)
    places = torch.arange(ranks.shape[-1], device=ranks.device)
    alike = ranks.unsqueeze(-1) == ranks.unsqueeze(-2)
    size, first = alike.sum(-1), torch.where(alike, places, ranks.shape[-1]).amin(-1)
    for number in range(2, LARGEST_BUCKET + 1):
        row, end = ((size == number) & (ranks > 0) & (places == first + number - 1)).nonzero(as_tuple=True)
        if not len(row):
            continue
        inside = end.unsqueeze(-1) + torch.arange(1 - number, 1, device=ranks.device)
        at = (row.unsqueeze(-1), inside)
        exact = _log_orders(scores[at], below[row, end + 1 - number])
        if weights is not None:
            exact = exact * weights[at].mean(-1)
        terms = terms.index_put(at, torch.zeros_like(inside, dtype=terms.dtype))
        terms = terms.index_put((row, end), -exact)
    return terms


def _log_orders(scores: Tensor, below: Tensor) -> Tensor:
    """Log-probability that the labels of buckets [M, b] are drawn in any order before those below [M]."""
    number = scores.shape[-1]
    found = [torch.zeros_like(below)]
    for members in range(1, 1 << number):
        inside = [label for label in range(number) if members >> label & 1]
        rest = torch.stack([found[members ^ 1 << label] for label in inside]).logsumexp(0)
        drawn = torch.cat([scores[:, inside], below.unsqueeze(-1)], -1).logsumexp(-1)
        found.append(rest - drawn)
    return found[-1] + scores.sum(-1)


def zlpr(
    scores: Tensor,
    ranks: Tensor,
    *,
    supervision: Supervision = "strong",
    reduction: Reduction = "mean",
    weights: Weights | None = None,
    tau: Tensor | float | None = None,
) -> Tensor:
    r"""LSEP with a zero label, one stage; its weak form is the zero-bounded loss ZLPR.

    .. math::
        \log\Big(1 + \sum_{u\in P} e^{-s_u} + \sum_{v\in Q} e^{s_v}
        + \sum_{(u,v)\in\mathcal B} e^{s_v-s_u}\Big)

    Under weak supervision this factors into
    :math:`\log(1+\sum_P e^{-s_u}) + \log(1+\sum_Q e^{s_v})`.

    The summands are the odds against each comparison under the logistic model. With a threshold `tau` as in
    `gmlr` they are those of the model of Rao and Kupper: :math:`e^{s_v-s_u+\tau}` for two relevant labels
    u above v, and for two that tie

    .. math:: \frac{2 + e^{\tau+s_u-s_v} + e^{\tau+s_v-s_u}}{e^{2\tau}-1}.

    References
    ----------
    Su, Zhu, Pan, "ZLPR: a novel loss for multi-label classification", 2022.
    Rao, Kupper, "Ties in paired-comparison experiments: a generalization of the Bradley-Terry model", 1967.

    Examples
    --------
    >>> import torch
    >>> zlpr(torch.tensor([[0.0, 0.0]]), torch.tensor([[1, 0]]))  # log(1 + 1 + 1 + 1)
    tensor(1.3863)
    """
    scores, ranks = checked(scores, ranks, supervision)
    logs = None if weights is None else weights.logs(scores, ranks, virtual=True)
    tau = thresholds(tau, scores, supervision)
    if tau is None:
        return reduce(log_sum_exp_pairs(*with_virtual_label(scores, ranks), logs), reduction)
    relevance = pair_exponents(*with_virtual_label(scores, supervised(ranks, "weak")), logs)
    half = 0.5 * tau
    margins = (half, half) if logs is None else (logs[0][:-1] + half, logs[1][:, :-1] + half)
    order = pair_exponents(scores, ranks.masked_fill(ranks == 0, -1), margins)
    ties = tie_exponents(scores, ranks, tau, weights)
    zero = scores.new_zeros(len(scores), 1)
    return reduce(torch.cat([zero, relevance, order, ties], -1).logsumexp(-1), reduction)


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

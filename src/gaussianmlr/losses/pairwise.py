"""Pairwise losses, from one score per label or one output per pair."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional

from gaussianmlr.errors import DataError
from gaussianmlr.losses.common import (
    Balance,
    Reduction,
    Supervision,
    checked,
    log_probability_of_relevance,
    mean_over_known,
    reduce,
    supervised,
    thresholds,
    virtual_ranks,
)
from gaussianmlr.losses.pairs import log_sum_exp_pairs, mean_over_pairs, pair_counts
from gaussianmlr.losses.weighting import Weights
from gaussianmlr.normal import log_cdf


def gmlr(
    mu: Tensor,
    logvar: Tensor,
    ranks: Tensor,
    *,
    supervision: Supervision = "strong",
    balance: Balance = "parts",
    reduction: Reduction = "mean",
    weights: Weights | None = None,
    tau: Tensor | float | None = None,
) -> Tensor:
    r"""Negative log-likelihood of an order under Gaussian significances, the paper's loss.

    .. math::
        -\frac1K\Big[\sum_{u\in P}\log\Phi\Big(\frac{\mu_u}{\sigma_u}\Big)
        + \sum_{v\in Q}\log\Phi\Big(-\frac{\mu_v}{\sigma_v}\Big)\Big]
        - \frac1{|\mathcal B|}\sum_{(u,v)\in\mathcal B}
        \log\Phi\Big(\frac{\mu_u-\mu_v}{\sqrt{\sigma_u^2+\sigma_v^2}}\Big)

    K counts the known labels. (The paper prints a minus between the variances; variances add.)

    So an instance with two ordered pairs counts as much as one with twenty, and each of its pairs ten times
    as much. With ``balance="comparisons"`` the sums are not divided by :math:`K` and :math:`|\mathcal B|`:
    all comparisons count alike, including those with zero. That is a composite likelihood, less noisy for
    small data.

    With a threshold of indifference :math:`\tau > 0`, an ordered pair of relevant labels has the probability
    :math:`\Phi((\mu_u-\mu_v-\tau)/\sqrt{\sigma_u^2+\sigma_v^2})`, and pairs of relevant labels that tie join
    :math:`\mathcal B` with the probability that the significances differ by less than :math:`\tau` (see
    `gaussianmlr.normal.ties`). Irrelevant labels tie neither with relevant ones nor, in the loss, with each
    other, so their pairs have no threshold. Without one, or at zero, ties are left out: that is the paper's
    loss, to the bit.

    Parameters
    ----------
    mu, logvar : Tensor [N, K]
        Means and logarithms of the variances.
    ranks : Tensor [N, K]
        Ranks.
    supervision : {"strong", "weak"}
        Whether the order among relevant labels counts.
    balance : {"parts", "comparisons"}
        Whether relevance and order, or all comparisons, count alike.
    reduction : {"mean", "sum", "none"}
        Over instances.
    weights : Weights, optional
        Weights of labels, and of pairs of relevant labels.
    tau : float or Tensor, optional
        Threshold of indifference in the units of mu, one number or of a shape that expands to [N, K]; a pair
        has the mean of its labels' thresholds.

    References
    ----------
    Yesilkaynak, Dari, Mertan, Unal, "GaussianMLR: Learning Implicit Class Significance via
    Calibrated Multi-Label Ranking", equation 9 and appendix B.
    Varin, Reid, Firth, "An overview of composite likelihood methods", 2011.
    Glenn, David, "Ties in paired-comparison experiments using a modified Thurstone-Mosteller model", 1960.

    Examples
    --------
    >>> import torch
    >>> mu, logvar = torch.tensor([[2.0, 1.0, -1.0]]), torch.zeros(1, 3)
    >>> gmlr(mu, logvar, torch.tensor([[2, 1, 0]]))
    tensor(0.2472)
    >>> gmlr(mu, logvar, torch.tensor([[1, 2, 0]])) > gmlr(mu, logvar, torch.tensor([[2, 1, 0]]))
    tensor(True)
    """
    mu, ranks = checked(mu, ranks, supervision)
    logvar = checked(logvar, ranks, supervision)[0].to(mu.dtype)
    z = mu * torch.exp(-0.5 * logvar)
    relevance = mean_over_known(log_cdf(torch.where(ranks > 0, z, -z)), ranks, weights)
    tau = thresholds(tau, mu, supervision)
    pairs = mean_over_pairs(mu, logvar, ranks, weights, tau)
    if balance == "comparisons":
        relevance = relevance * (ranks >= 0).sum(-1)
        pairs = pairs * pair_counts(ranks, with_ties=tau is not None)
    elif balance != "parts":
        raise DataError(f"balance is 'parts' or 'comparisons', not {balance!r}")
    return reduce(pairs - relevance, reduction)


def ranknet(
    scores: Tensor,
    ranks: Tensor,
    *,
    supervision: Supervision = "strong",
    reduction: Reduction = "mean",
    weights: Weights | None = None,
    tau: Tensor | float | None = None,
) -> Tensor:
    r"""RankNet with a zero label: `gmlr` with logistic differences and no variance.

    .. math::
        \frac1K\Big[\sum_{u\in P}\log(1+e^{-s_u}) + \sum_{v\in Q}\log(1+e^{s_v})\Big]
        + \frac1{|\mathcal B|}\sum_{(u,v)\in\mathcal B}\log(1+e^{s_v-s_u})

    With a threshold `tau` as in `gmlr`, pairs follow the model of Rao and Kupper, and tied pairs of relevant
    labels count.

    References
    ----------
    Burges et al., "Learning to rank using gradient descent", 2005.
    Rao, Kupper, "Ties in paired-comparison experiments: a generalization of the Bradley-Terry model", 1967.

    Examples
    --------
    >>> import torch
    >>> ranknet(torch.tensor([[0.0, 0.0]]), torch.tensor([[1, 0]]))
    tensor(1.3863)
    """
    scores, ranks = checked(scores, ranks, supervision)
    relevance = mean_over_known(log_probability_of_relevance(scores, ranks), ranks, weights)
    tau = thresholds(tau, scores, supervision)
    return reduce(mean_over_pairs(scores, None, ranks, weights, tau) - relevance, reduction)


def lsep(
    scores: Tensor,
    ranks: Tensor,
    *,
    supervision: Supervision = "strong",
    reduction: Reduction = "mean",
    weights: Weights | None = None,
) -> Tensor:
    r"""Log-sum-exp pairwise loss, the ranking stage of LSEP.

    .. math:: \log\Big(1 + \sum_{(u,v)\in\mathcal B} e^{s_v - s_u}\Big)

    Computed in log space from cumulative sums, in O(K log K).

    References
    ----------
    Li, Song, Luo, "Improving pairwise ranking for multi-label image classification", 2017.

    Examples
    --------
    >>> import torch
    >>> lsep(torch.tensor([[0.0, 0.0, 0.0]]), torch.tensor([[2, 1, 0]]))  # log(1 + 3)
    tensor(1.3863)
    """
    scores, ranks = checked(scores, ranks, supervision)
    logs = None if weights is None else weights.logs(scores, ranks, virtual=False)
    return reduce(log_sum_exp_pairs(scores, ranks, logs), reduction)


def lsep_threshold(
    scores: Tensor,
    thresholds: Tensor,
    ranks: Tensor,
    *,
    reduction: Reduction = "mean",
    weights: Weights | None = None,
) -> Tensor:
    r"""Cross-entropy of relevance for LSEP's threshold stage.

    .. math:: \sum_{u\in P}\log(1+e^{g_u-f_u}) + \sum_{v\in Q}\log(1+e^{f_v-g_v})

    The scores f are constants: only the thresholds g receive a gradient.

    Examples
    --------
    >>> import torch
    >>> lsep_threshold(torch.tensor([[1.0, 1.0]]), torch.tensor([[1.0, 1.0]]), torch.tensor([[1, 0]]))
    tensor(1.3863)
    """
    scores, ranks = checked(scores, ranks, "weak")
    thresholds, _ = checked(thresholds, ranks, "weak")
    logs = log_probability_of_relevance(scores.detach() - thresholds, ranks)
    if weights is not None:
        logs = logs * weights.of(logs, ranks)
    return reduce(-logs.masked_fill(ranks < 0, 0.0).sum(-1), reduction)


def pair_indices(labels: int, device: torch.device | None = None) -> Tensor:
    """The pairs of CRPC: all u < v of the labels and the virtual label, which is the last.

    Returns
    -------
    Tensor [2, K (K + 1) / 2]
        Left and right label of each pair.

    Examples
    --------
    >>> pair_indices(2)
    tensor([[0, 0, 1],
            [1, 2, 2]])
    """
    return torch.triu_indices(labels + 1, labels + 1, offset=1, device=device)


def crpc(
    pair_logits: Tensor,
    ranks: Tensor,
    *,
    supervision: Supervision = "strong",
    ties: Literal["skip", "losses"] = "skip",
    reduction: Reduction = "mean",
    weights: Weights | None = None,
) -> Tensor:
    r"""Calibrated ranking by pairwise comparison: one logistic classifier per pair of labels.

    .. math:: \sum_{u<v,\; r_u \ne r_v} \log\big(1 + e^{\mp f_{uv}}\big)

    with a minus where u is above v. The virtual label, the last, is below the relevant and above
    the irrelevant labels. Unknown labels are left out, and so are tied pairs.

    Parameters
    ----------
    pair_logits : Tensor [N, K (K + 1) / 2]
        Log-odds that the left label is above the right one, pairs as in `pair_indices`.
    ranks : Tensor [N, K]
        Ranks, without the virtual label.
    supervision : {"strong", "weak"}
        Whether the order among relevant labels counts.
    ties : {"skip", "losses"}
        ``"losses"`` trains the left label of a tied pair to lose, as the paper's published code does.
    reduction : {"mean", "sum", "none"}
        Over instances.
    weights : Weights, optional
        Weights of labels, and of pairs of relevant labels.

    References
    ----------
    Fürnkranz, Hüllermeier, Mencía, Brinker, "Multilabel classification via calibrated label
    ranking", 2008.

    Examples
    --------
    >>> import torch
    >>> crpc(torch.zeros(1, 3), torch.tensor([[1, 0]]))  # 3 log 2
    tensor(2.0794)
    """
    labels = ranks.shape[-1]
    expected = labels * (labels + 1) // 2
    if pair_logits.ndim != 2 or pair_logits.shape[-1] != expected:
        raise DataError(
            f"expected [N, {expected}] pair logits for {labels} labels and a virtual one, "
            f"got {list(pair_logits.shape)}"
        )
    left_of, right_of = pair_indices(labels, ranks.device)
    pair_logits, _ = checked(pair_logits, ranks[:, :1].expand(-1, expected), supervision)
    ranks = virtual_ranks(supervised(ranks, supervision))
    left, right = ranks[:, left_of], ranks[:, right_of]
    signed = torch.where(left > right, pair_logits, -pair_logits)
    no_pair = (left < 0) | (right < 0)
    if ties == "skip":
        no_pair |= left == right
    terms = -functional.logsigmoid(signed).masked_fill(no_pair, 0.0)
    if weights is not None:
        each = functional.pad(weights.of(terms, ranks[:, :-1]), (0, 1), value=1.0)
        both = (left > 1) & (right > 1)  # the virtual label has the rank one
        terms = terms * each[left_of] * each[right_of] * torch.where(both, weights.order, 1.0).to(terms)
    per_instance = terms.sum(-1)
    return reduce(per_instance, reduction)

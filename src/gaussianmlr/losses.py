r"""Losses of multi-label ranking, pure functions of tensors.

Outputs of a network are floats of shape [N, K] (or one a pair of labels), `ranks` integers of
shape [N, K] as everywhere: 0 irrelevant, larger = more significant, -1 unknown. Every loss

- gives one number an instance, then reduces by `reduction`: ``"mean"`` over instances (zero for
  an empty batch), ``"sum"``, or ``"none"``;
- takes ``supervision="strong"`` (the whole order) or ``"weak"`` (relevant against irrelevant);
- takes `Weights` of labels and of the order among relevant ones (see `gaussianmlr.weighting`);
- leaves unknown labels out, and gives an instance without anything to compare a zero that still
  has a gradient;
- is computed in float32 or better, also under autocast, and never changes its inputs.

:math:`\mathcal B` is the set of ordered pairs, :math:`r_u > r_v \ge 0`; P the relevant labels, Q
the irrelevant ones.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional

from gaussianmlr import orders
from gaussianmlr._pairs import log_sum_exp_pairs, mean_over_pairs, pair_counts, sums_below
from gaussianmlr.errors import DataError
from gaussianmlr.normal import log_cdf, single_or_better
from gaussianmlr.weighting import Weights

__all__ = [
    "Weights",
    "binary_relevance",
    "crpc",
    "gmlr",
    "lsep",
    "lsep_threshold",
    "pair_indices",
    "plackett_luce",
    "ranknet",
    "reduce",
    "zlpr",
]

Supervision = Literal["strong", "weak"]
Reduction = Literal["mean", "sum", "none"]
Balance = Literal["parts", "comparisons"]


def gmlr(
    mu: Tensor,
    logvar: Tensor,
    ranks: Tensor,
    *,
    supervision: Supervision = "strong",
    balance: Balance = "parts",
    reduction: Reduction = "mean",
    weights: Weights | None = None,
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
    all comparisons count alike, those with zero among them, and an instance by how many it makes. That is
    a composite likelihood, less noisy where data are few.

    Parameters
    ----------
    mu, logvar : Tensor [N, K]
        Means and logarithms of the variances.
    ranks : Tensor [N, K]
        Ranks.
    supervision : {"strong", "weak"}
        Whether the order among relevant labels counts.
    balance : {"parts", "comparisons"}
        Whether relevance and order count alike in every instance, or every comparison.
    reduction : {"mean", "sum", "none"}
        Over instances.
    weights : Weights, optional
        Of labels, and of pairs of relevant ones.

    References
    ----------
    Yesilkaynak, Dari, Mertan, Unal, "GaussianMLR: Learning Implicit Class Significance via
    Calibrated Multi-Label Ranking", equation 9 and appendix B.
    Varin, Reid, Firth, "An overview of composite likelihood methods", 2011.

    Examples
    --------
    >>> import torch
    >>> mu, logvar = torch.tensor([[2.0, 1.0, -1.0]]), torch.zeros(1, 3)
    >>> gmlr(mu, logvar, torch.tensor([[2, 1, 0]]))
    tensor(0.2472)
    >>> gmlr(mu, logvar, torch.tensor([[1, 2, 0]])) > gmlr(mu, logvar, torch.tensor([[2, 1, 0]]))
    tensor(True)
    """
    mu, ranks = _check(mu, ranks, supervision)
    logvar = _check(logvar, ranks, supervision)[0].to(mu.dtype)
    z = mu * torch.exp(-0.5 * logvar)
    relevance = _mean_over_known(log_cdf(torch.where(ranks > 0, z, -z)), ranks, weights)
    pairs = mean_over_pairs(mu, logvar, ranks, weights)
    if balance == "comparisons":
        relevance, pairs = relevance * (ranks >= 0).sum(-1), pairs * pair_counts(ranks)
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
) -> Tensor:
    r"""RankNet with a zero label: `gmlr` with logistic differences and no variance.

    .. math::
        \frac1K\Big[\sum_{u\in P}\log(1+e^{-s_u}) + \sum_{v\in Q}\log(1+e^{s_v})\Big]
        + \frac1{|\mathcal B|}\sum_{(u,v)\in\mathcal B}\log(1+e^{s_v-s_u})

    References
    ----------
    Burges et al., "Learning to rank using gradient descent", 2005.

    Examples
    --------
    >>> import torch
    >>> ranknet(torch.tensor([[0.0, 0.0]]), torch.tensor([[1, 0]]))
    tensor(1.3863)
    """
    scores, ranks = _check(scores, ranks, supervision)
    relevance = _mean_over_known(_log_probability_of_relevance(scores, ranks), ranks, weights)
    return reduce(mean_over_pairs(scores, None, ranks, weights) - relevance, reduction)


def binary_relevance(
    scores: Tensor, ranks: Tensor, *, reduction: Reduction = "mean", weights: Weights | None = None
) -> Tensor:
    r"""Binary cross-entropy of relevance, the mean over known labels. Knows no order.

    .. math:: \frac1K\Big[\sum_{u\in P}\log(1+e^{-s_u}) + \sum_{v\in Q}\log(1+e^{s_v})\Big]

    Examples
    --------
    >>> import torch
    >>> binary_relevance(torch.tensor([[0.0, 0.0]]), torch.tensor([[2, 1]]))
    tensor(0.6931)
    """
    scores, ranks = _check(scores, ranks, "weak")
    weights = weights and weights.without_order("binary relevance")
    return reduce(-_mean_over_known(_log_probability_of_relevance(scores, ranks), ranks, weights), reduction)


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

    Computed in log space from sums over all labels below, at a cost of K log K.

    References
    ----------
    Li, Song, Luo, "Improving pairwise ranking for multi-label image classification", 2017.

    Examples
    --------
    >>> import torch
    >>> lsep(torch.tensor([[0.0, 0.0, 0.0]]), torch.tensor([[2, 1, 0]]))  # log(1 + 3)
    tensor(1.3863)
    """
    scores, ranks = _check(scores, ranks, supervision)
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

    The scores f are taken as given: only the thresholds g receive a gradient.

    Examples
    --------
    >>> import torch
    >>> lsep_threshold(torch.tensor([[1.0, 1.0]]), torch.tensor([[1.0, 1.0]]), torch.tensor([[1, 0]]))
    tensor(1.3863)
    """
    scores, ranks = _check(scores, ranks, "weak")
    thresholds, _ = _check(thresholds, ranks, "weak")
    logs = _log_probability_of_relevance(scores.detach() - thresholds, ranks)
    if weights is not None:
        logs = logs * weights.of(logs, ranks)
    return reduce(-logs.masked_fill(ranks < 0, 0.0).sum(-1), reduction)


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
    scores, ranks = _check(scores, ranks, supervision)
    logs = None if weights is None else weights.logs(scores, ranks, virtual=True)
    return reduce(log_sum_exp_pairs(*_with_virtual_label(scores, ranks), logs), reduction)


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

    where the sum under the logarithm holds the whole bucket of u, and everything below it. Weights
    are those of u: irrelevant labels, which are never drawn, have no term that theirs could weigh.

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
    scores, ranks = _check(scores, ranks, supervision)
    each = None if weights is None else weights.without_order("Plackett-Luce").of(scores, ranks)
    scores, ranks = _with_virtual_label(scores, ranks)
    ascending, sorted_ranks, up_to, order = sums_below(scores, ranks, with_ties=True)
    terms = (up_to - ascending).masked_fill(sorted_ranks <= 0, 0.0)
    if each is not None:
        terms = terms * functional.pad(each, (0, 1), value=1.0)[order]
    return reduce(terms.sum(-1), reduction)


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
    r"""Calibrated ranking by pairwise comparison: one logistic classifier a pair of labels.

    .. math:: \sum_{u<v,\; r_u \ne r_v} \log\big(1 + e^{\mp f_{uv}}\big)

    with a minus where u stands above v. The virtual label, the last, stands below the relevant
    and above the irrelevant labels. Unknown labels are left out, and so are tied pairs.

    Parameters
    ----------
    pair_logits : Tensor [N, K (K + 1) / 2]
        Log-odds that the left label stands above the right one, pairs as in `pair_indices`.
    ranks : Tensor [N, K]
        Ranks, without the virtual label.
    supervision : {"strong", "weak"}
        Whether the order among relevant labels counts.
    ties : {"skip", "losses"}
        ``"losses"`` trains the left label of a tied pair to lose, as the paper's published code does.
    reduction : {"mean", "sum", "none"}
        Over instances.
    weights : Weights, optional
        Of labels, and of pairs of relevant ones.

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
    pair_logits, _ = _check(pair_logits, ranks[:, :1].expand(-1, expected), supervision)
    ranks = _virtual_ranks(_supervised(ranks, supervision))
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


def _check(values: Tensor, ranks: Tensor, supervision: Supervision) -> tuple[Tensor, Tensor]:
    """Values in float32 or better, ranks under the supervision."""
    if values.ndim != 2 or tuple(values.shape) != tuple(ranks.shape):
        raise DataError(
            "expected outputs and ranks of one shape [N, K], "
            f"got {list(values.shape)} and {list(ranks.shape)}"
        )
    if not values.is_floating_point():
        raise DataError(f"expected outputs to be floats, got {values.dtype}")
    return single_or_better(values), _supervised(ranks, supervision)


def _supervised(ranks: Tensor, supervision: Supervision) -> Tensor:
    if not isinstance(ranks, Tensor):
        raise DataError(
            f"expected ranks to be a tensor, got {type(ranks).__name__}; torch.as_tensor makes one"
        )
    if ranks.is_floating_point() or ranks.is_complex() or ranks.dtype == torch.bool:
        raise DataError(f"expected ranks to be integers, got {ranks.dtype}")
    if supervision not in ("strong", "weak"):
        raise DataError(f"supervision is 'strong' or 'weak', not {supervision!r}")
    ranks = ranks.long()  # narrow types would overflow where the virtual label moves ranks up
    return orders.weak(ranks) if supervision == "weak" else ranks


def reduce(per_instance: Tensor, reduction: Reduction) -> Tensor:
    """Reduce one number an instance as every loss here does; for losses of your own.

    Examples
    --------
    >>> import torch
    >>> reduce(torch.tensor([1.0, 3.0]), "mean"), reduce(torch.zeros(0), "mean")
    (tensor(2.), tensor(0.))
    """
    if reduction == "none":
        return per_instance
    if reduction == "sum":
        return per_instance.sum()
    if reduction == "mean":
        return per_instance.sum() / max(1, len(per_instance))
    raise DataError(f"reduction is 'mean', 'sum' or 'none', not {reduction!r}")


def _mean_over_known(values: Tensor, ranks: Tensor, weights: Weights | None) -> Tensor:
    known = ranks >= 0
    if weights is not None:
        values = values * weights.of(values, ranks)
    return values.masked_fill(~known, 0.0).sum(-1) / known.sum(-1).clamp(min=1)


def _log_probability_of_relevance(scores: Tensor, ranks: Tensor) -> Tensor:
    return functional.logsigmoid(torch.where(ranks > 0, scores, -scores))


def _virtual_ranks(ranks: Tensor) -> Tensor:
    """Ranks with a virtual label at the end: rank 1, with the relevant labels moved up by one."""
    return functional.pad(ranks + (ranks > 0), (0, 1), value=1)


def _with_virtual_label(scores: Tensor, ranks: Tensor) -> tuple[Tensor, Tensor]:
    return functional.pad(scores, (0, 1)), _virtual_ranks(ranks)

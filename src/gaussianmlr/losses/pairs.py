"""Sums over the ordered pairs of many instances; the cost depends on the orders, not on K^2."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from gaussianmlr.losses.weighting import NOWHERE, Weights
from gaussianmlr.normal import log_cdf
from gaussianmlr.normal.tails import log_cdf_and_slope
from gaussianmlr.normal.ties import log_p_tie, log_p_tie_logistic

_LOG_2 = math.log(2.0)
BLOCK = 1 << 17  # elements per block: fits in the cache and keeps the cores busy


def mean_over_pairs(
    mu: Tensor,
    logvar: Tensor | None,
    ranks: Tensor,
    weights: Weights | None = None,
    tau: Tensor | None = None,
) -> Tensor:
    r"""Mean of :math:`-\log P` over the pairs of each instance, of shape [N].

    With `logvar` the probability of an ordered pair is
    :math:`\Phi((\mu_u-\mu_v)/\sqrt{\sigma_u^2+\sigma_v^2})`, without it :math:`1/(1+e^{\mu_v-\mu_u})`. With
    thresholds `tau` [N, K], tied pairs of relevant labels count too, see `gaussianmlr.normal.ties`. An
    instance without pairs has the value zero.

    Notes
    -----
    Only labels with a positive rank are above others, so rows of (positive label) x (all labels)
    hold every pair; they are processed in blocks of bounded size. The value of an instance
    depends only on its own row, so its gradient is computed in the forward pass, and nothing of
    the size of the pairs is kept for the backward pass.
    """
    above = None if weights is None else weights.of(mu, ranks)
    below = None if weights is None else weights.below(mu, ranks)
    if tau is not None:
        tau = tau.to(mu.dtype).expand(mu.shape)
    return _MeanOverPairs.apply(mu, logvar, tau, ranks, above, below)  # type: ignore[no-any-return, no-untyped-call]


def pair_counts(ranks: Tensor, *, with_ties: bool = False) -> Tensor:
    """Number of ordered pairs of each instance, and with ties of tied relevant ones; in O(K log K)."""
    ascending, values = ranks.sort(-1).values, ranks.contiguous()
    smaller = torch.searchsorted(ascending, values)
    unknown = (ranks < 0).sum(-1, keepdim=True)
    counts = ((smaller - unknown) * (ranks > 0)).sum(-1)
    if not with_ties:
        return counts
    others = torch.searchsorted(ascending, values, right=True) - smaller - 1
    return counts + (others * (ranks > 0)).sum(-1) // 2


class _MeanOverPairs(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        mu: Tensor,
        logvar: Tensor | None,
        tau: Tensor | None,
        ranks: Tensor,
        of_above: Tensor | None,
        of_below: Tensor | None,
    ) -> Tensor:
        counts = pair_counts(ranks, with_ties=tau is not None)
        weights = counts.clamp(min=1).to(mu.dtype).reciprocal()
        loss = mu.new_zeros(len(mu))
        mu_grad = torch.zeros_like(mu)
        logvar_grad = None if logvar is None else torch.zeros_like(mu)
        tau_grad = None if tau is None else torch.zeros_like(mu)
        compare = _probit(mu, logvar, tau, ranks) if logvar is not None else _logistic(mu, tau, ranks)
        instances, above = (ranks > 0).nonzero(as_tuple=True)
        step = max(1, BLOCK // max(1, mu.shape[-1]))
        for start in range(0, len(instances), step):
            n, u = instances[start : start + step], above[start : start + step]
            no_pair = (ranks[n, u].unsqueeze(-1) <= ranks[n]) | (ranks[n] < 0)
            value, by_mu, by_logvar = compare(n, u)
            weight = weights[n].unsqueeze(-1)
            if of_above is not None and of_below is not None:
                weight = weight * of_above[u].unsqueeze(-1) * of_below[n]
            loss.index_add_(0, n, (value.masked_fill(no_pair, 0.0) * -weight).sum(-1))
            by_mu = by_mu.masked_fill(no_pair, 0.0) * -weight
            mu_grad.index_add_(0, n, by_mu, alpha=-1)
            mu_grad.index_put_((n, u), by_mu.sum(-1), accumulate=True)
            if logvar_grad is not None and by_logvar is not None:
                upper, lower = (part.masked_fill(no_pair, 0.0) * -weight for part in by_logvar)
                logvar_grad.index_add_(0, n, lower)
                logvar_grad.index_put_((n, u), upper.sum(-1), accumulate=True)
            if (
                tau is not None and tau_grad is not None
            ):  # the threshold of a pair is the mean of two, and is subtracted
                by_tau = by_mu * (ranks[n] > 0) * -0.5
                tau_grad.index_add_(0, n, by_tau)
                tau_grad.index_put_((n, u), by_tau.sum(-1), accumulate=True)
                grads = (mu_grad, logvar_grad, tau_grad)
                weight = weight.expand(no_pair.shape)
                _add_ties(loss, grads, (mu, logvar, tau), _tied(ranks, n, u), (n, u), weight)
        ctx.save_for_backward(mu, logvar, tau, ranks, of_above, of_below, mu_grad, logvar_grad, tau_grad)
        return loss

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        each = grad.unsqueeze(-1)
        *inputs, mu_grad, logvar_grad, tau_grad = ctx.saved_tensors
        if torch.is_grad_enabled():  # second derivatives need a graph of the gradient
            free = [part for part in inputs[:3] if part is not None and part.requires_grad]
            found = iter(torch.autograd.grad(_plainly(*inputs), free, grad, create_graph=True))
            wanted = (part is not None and part.requires_grad for part in inputs[:3])
            return *(next(found) if one else None for one in wanted), None, None, None
        grads = (None if part is None else each * part for part in (mu_grad, logvar_grad, tau_grad))
        return *grads, None, None, None


def _plainly(
    mu: Tensor,
    logvar: Tensor | None,
    tau: Tensor | None,
    ranks: Tensor,
    of_above: Tensor | None,
    of_below: Tensor | None,
) -> Tensor:
    """The same mean by differentiable operations, with all pairs in memory."""
    n, u = (ranks > 0).nonzero(as_tuple=True)
    difference = _difference(mu, tau, ranks, n, u)
    if logvar is None:
        logs = torch.nn.functional.logsigmoid(difference)
    else:
        variance = logvar.exp()
        logs = log_cdf(difference * (variance[n, u].unsqueeze(-1) + variance[n]).rsqrt())
    no_pair = (ranks[n, u].unsqueeze(-1) <= ranks[n]) | (ranks[n] < 0)
    logs = logs.masked_fill(no_pair, 0.0)
    if tau is not None:
        row, v = _tied(ranks, n, u)
        ties = _log_ties(
            *(None if part is None else (part[n[row], u[row]], part[n[row], v]) for part in (mu, logvar, tau))
        )
        logs = logs.index_put((row, v), ties)
    if of_above is not None and of_below is not None:
        logs = logs * of_above[u].unsqueeze(-1) * of_below[n]
    weights = pair_counts(ranks, with_ties=tau is not None).clamp(min=1).to(mu.dtype).reciprocal()
    rows = logs.sum(-1) * -weights[n]
    return torch.zeros_like(weights).index_add(0, n, rows)


def _tied(ranks: Tensor, n: Tensor, u: Tensor) -> tuple[Tensor, Tensor]:
    """Of rows of relevant labels u of instances n: each tied pair once, as a row and its other label."""
    later = torch.arange(ranks.shape[-1], device=ranks.device) > u.unsqueeze(-1)
    row, v = ((ranks[n, u].unsqueeze(-1) == ranks[n]) & later).nonzero(as_tuple=True)
    return row, v


_Both = tuple[Tensor, Tensor]


def _log_ties(mu: _Both | None, logvar: _Both | None, tau: _Both | None) -> Tensor:
    """Log-probabilities of ties, from the values of both labels."""
    assert mu is not None
    assert tau is not None
    difference, threshold = mu[0] - mu[1], 0.5 * (tau[0] + tau[1])
    if logvar is None:
        return log_p_tie_logistic(difference, threshold)
    scale = (logvar[0].exp() + logvar[1].exp()).rsqrt()
    return log_p_tie(difference.abs() * scale, threshold * scale)


def _add_ties(
    loss: Tensor,
    grads: tuple[Tensor, Tensor | None, Tensor],
    values: tuple[Tensor, Tensor | None, Tensor],
    tied: tuple[Tensor, Tensor],
    rows: tuple[Tensor, Tensor],
    weight: Tensor,
) -> None:
    """Add the tied pairs of a block of rows to the loss and its gradients."""
    (n, u), (row, v) = rows, tied
    n, u, weight = n[row], u[row], weight[row, v]
    with torch.enable_grad():
        both = [
            None if part is None else (part[n, u].requires_grad_(), part[n, v].requires_grad_())
            for part in values
        ]
        logs = _log_ties(*both)
        leaves = [one for part in both if part is not None for one in part]
        found = iter(torch.autograd.grad(logs, leaves, -weight))
    loss.index_add_(0, n, logs.detach() * -weight)
    for grad in grads:
        for label in (u, v) if grad is not None else ():
            grad.index_put_((n, label), next(found), accumulate=True)  # type: ignore[union-attr]


# log P of a block of rows, its slope by mu_u - mu_v, and its slopes by both log-variances.
_Block = tuple[Tensor, Tensor, tuple[Tensor, Tensor] | None]


def _difference(mu: Tensor, tau: Tensor | None, ranks: Tensor, n: Tensor, u: Tensor) -> Tensor:
    """mu_u - mu_v, less the threshold where both labels are relevant and could have tied."""
    difference = mu[n, u].unsqueeze(-1) - mu[n]
    if tau is None:
        return difference
    return difference - 0.5 * (tau[n, u].unsqueeze(-1) + tau[n]) * (ranks[n] > 0)


def _probit(
    mu: Tensor, logvar: Tensor, tau: Tensor | None, ranks: Tensor
) -> Callable[[Tensor, Tensor], _Block]:
    variance = logvar.exp()

    def compare(n: Tensor, u: Tensor) -> _Block:
        above, below = variance[n, u].unsqueeze(-1), variance[n]
        scale = (above + below).rsqrt()
        z = _difference(mu, tau, ranks, n, u) * scale
        value, slope = log_cdf_and_slope(z)
        # variance * scale^2 is at most one, so nothing overflows however small the variances
        common = slope * z * -0.5
        shares = (common * (above * scale * scale), common * (below * scale * scale))
        return value, slope * scale, shares

    return compare


def _logistic(mu: Tensor, tau: Tensor | None, ranks: Tensor) -> Callable[[Tensor, Tensor], _Block]:
    def compare(n: Tensor, u: Tensor) -> _Block:
        difference = _difference(mu, tau, ranks, n, u)
        return torch.nn.functional.logsigmoid(difference), torch.sigmoid(-difference), None

    return compare


def sums_below(
    scores: Tensor, ranks: Tensor, *, with_ties: bool, lower: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Scores and ranks sorted by rank, the log-sum-exp of all known scores of lower rank, and the sorting.

    With ties, the label's own bucket is part of the sum. If `lower` is given, it is summed instead.
    """
    # Unknown labels go last, outside every sum: a sum that began with log 0 would have no second derivative.
    unknown = ranks < 0
    places, order = ranks.masked_fill(unknown, torch.iinfo(ranks.dtype).max).sort(-1)
    ascending = scores.masked_fill(unknown, 0.0).gather(-1, order)
    added = ascending if lower is None else lower.masked_fill(unknown, 0.0).gather(-1, order)
    sums = torch.nn.functional.pad(torch.logcumsumexp(added, -1), (1, 0), value=NOWHERE)
    ends = torch.searchsorted(places, places, right=with_ties)
    return ascending, ranks.gather(-1, order), sums.gather(-1, ends), order


def log_sum_exp_pairs(scores: Tensor, ranks: Tensor, logs: tuple[Tensor, Tensor] | None = None) -> Tensor:
    """log(1 + sum over pairs of exp(lower - upper)) of each instance; `logs` as `Weights.logs` gives them."""
    return torch.nn.functional.pad(pair_exponents(scores, ranks, logs), (1, 0), value=0.0).logsumexp(-1)


def pair_exponents(scores: Tensor, ranks: Tensor, logs: tuple[Tensor, Tensor] | None = None) -> Tensor:
    """For each upper label [N, K]: log of the sum of exp(lower - upper) over its pairs."""
    upper, lower = (scores, None) if logs is None else (scores - logs[0], scores + logs[1])
    ascending, sorted_ranks, below, _ = sums_below(upper, ranks, with_ties=False, lower=lower)
    return (below - ascending).masked_fill(sorted_ranks <= 0, NOWHERE)


def tie_exponents(scores: Tensor, ranks: Tensor, tau: Tensor, weights: Weights | None) -> Tensor:
    r"""Log-odds against each tie of relevant labels, [N, most ties of an instance].

    With the threshold h of a pair and d the difference of its scores, the odds against a tie in the model of
    Rao and Kupper are :math:`(2 + e^{h+d} + e^{h-d}) / (e^{2h} - 1)`.
    """
    n, u = (ranks > 0).nonzero(as_tuple=True)
    row, v = _tied(ranks, n, u)
    n, u = n[row], u[row]
    difference, threshold = scores[n, u] - scores[n, v], 0.5 * (tau[n, u] + tau[n, v])
    parts = [torch.full_like(difference, _LOG_2), threshold + difference, threshold - difference]
    odds = torch.stack(parts).logsumexp(0) - 2.0 * threshold - torch.log(-torch.expm1(-2.0 * threshold))
    if weights is not None:
        above, below = weights.logs(scores, ranks, virtual=False)
        odds = odds + above[u] + below[n, v]
    counts = torch.bincount(n, minlength=len(ranks))
    place = torch.arange(len(n), device=n.device) - (counts.cumsum(0) - counts)[n]
    most = int(counts.max()) if len(counts) else 0
    return scores.new_full((len(ranks), most), NOWHERE).index_put((n, place), odds)

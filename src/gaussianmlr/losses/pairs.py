"""Sums over the ordered pairs of many instances; the cost depends on the orders, not on K^2."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from gaussianmlr.losses.weighting import NOWHERE, Weights
from gaussianmlr.normal import log_cdf
from gaussianmlr.normal.tails import log_cdf_and_slope

BLOCK = 1 << 17  # elements per block: fits in the cache and keeps the cores busy


def mean_over_pairs(
    mu: Tensor, logvar: Tensor | None, ranks: Tensor, weights: Weights | None = None
) -> Tensor:
    r"""Mean of :math:`-\log P(s_u > s_v)` over the ordered pairs of each instance, of shape [N].

    With `logvar` the probability is :math:`\Phi((\mu_u-\mu_v)/\sqrt{\sigma_u^2+\sigma_v^2})`,
    without it :math:`1/(1+e^{\mu_v-\mu_u})`. An instance without pairs has the value zero.

    Notes
    -----
    Only labels with a positive rank are above others, so rows of (positive label) x (all labels)
    hold every pair; they are processed in blocks of bounded size. The value of an instance
    depends only on its own row, so its gradient is computed in the forward pass, and nothing of
    the size of the pairs is kept for the backward pass.
    """
    above = None if weights is None else weights.of(mu, ranks)
    below = None if weights is None else weights.below(mu, ranks)
    return _MeanOverPairs.apply(mu, logvar, ranks, above, below)  # type: ignore[no-any-return, no-untyped-call]


def pair_counts(ranks: Tensor) -> Tensor:
    """Number of ordered pairs of each instance, in O(K log K)."""
    ascending = ranks.sort(-1).values
    smaller = torch.searchsorted(ascending, ranks.contiguous())
    unknown = (ranks < 0).sum(-1, keepdim=True)
    return ((smaller - unknown) * (ranks > 0)).sum(-1)


class _MeanOverPairs(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        mu: Tensor,
        logvar: Tensor | None,
        ranks: Tensor,
        of_above: Tensor | None,
        of_below: Tensor | None,
    ) -> Tensor:
        weights = pair_counts(ranks).clamp(min=1).to(mu.dtype).reciprocal()
        loss = mu.new_zeros(len(mu))
        mu_grad = torch.zeros_like(mu)
        logvar_grad = None if logvar is None else torch.zeros_like(mu)
        compare = _probit(mu, logvar) if logvar is not None else _logistic(mu)
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
        ctx.save_for_backward(mu, logvar, ranks, of_above, of_below, mu_grad, logvar_grad)
        return loss

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None, None, None, None]:
        each = grad.unsqueeze(-1)
        mu, logvar, *fixed, mu_grad, logvar_grad = ctx.saved_tensors
        if torch.is_grad_enabled():  # second derivatives need a graph of the gradient
            free = [part for part in (mu, logvar) if part is not None and part.requires_grad]
            found = iter(torch.autograd.grad(_plainly(mu, logvar, *fixed), free, grad, create_graph=True))
            mu_found = next(found) if mu.requires_grad else None
            return mu_found, next(found, None), None, None, None
        return each * mu_grad, None if logvar_grad is None else each * logvar_grad, None, None, None


def _plainly(
    mu: Tensor, logvar: Tensor | None, ranks: Tensor, of_above: Tensor | None, of_below: Tensor | None
) -> Tensor:
    """The same mean by differentiable operations, with all pairs in memory."""
    n, u = (ranks > 0).nonzero(as_tuple=True)
    difference = mu[n, u].unsqueeze(-1) - mu[n]
    if logvar is None:
        logs = torch.nn.functional.logsigmoid(difference)
    else:
        variance = logvar.exp()
        logs = log_cdf(difference * (variance[n, u].unsqueeze(-1) + variance[n]).rsqrt())
    if of_above is not None and of_below is not None:
        logs = logs * of_above[u].unsqueeze(-1) * of_below[n]
    no_pair = (ranks[n, u].unsqueeze(-1) <= ranks[n]) | (ranks[n] < 0)
    weights = pair_counts(ranks).clamp(min=1).to(mu.dtype).reciprocal()
    rows = logs.masked_fill(no_pair, 0.0).sum(-1) * -weights[n]
    return torch.zeros_like(weights).index_add(0, n, rows)


# log P of a block of rows, its slope by mu_u - mu_v, and its slopes by both log-variances.
_Block = tuple[Tensor, Tensor, tuple[Tensor, Tensor] | None]


def _probit(mu: Tensor, logvar: Tensor) -> Callable[[Tensor, Tensor], _Block]:
    variance = logvar.exp()

    def compare(n: Tensor, u: Tensor) -> _Block:
        above, below = variance[n, u].unsqueeze(-1), variance[n]
        scale = (above + below).rsqrt()
        z = (mu[n, u].unsqueeze(-1) - mu[n]) * scale
        value, slope = log_cdf_and_slope(z)
        # variance * scale^2 is at most one, so nothing overflows however small the variances
        common = slope * z * -0.5
        shares = (common * (above * scale * scale), common * (below * scale * scale))
        return value, slope * scale, shares

    return compare


def _logistic(mu: Tensor) -> Callable[[Tensor, Tensor], _Block]:
    def compare(n: Tensor, u: Tensor) -> _Block:
        difference = mu[n, u].unsqueeze(-1) - mu[n]
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
    upper, lower = (scores, None) if logs is None else (scores - logs[0], scores + logs[1])
    ascending, sorted_ranks, below, _ = sums_below(upper, ranks, with_ties=False, lower=lower)
    exponents = (below - ascending).masked_fill(sorted_ranks <= 0, NOWHERE)
    return torch.nn.functional.pad(exponents, (1, 0), value=0.0).logsumexp(-1)

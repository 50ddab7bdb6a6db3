"""Sums over the ordered pairs of many instances, at a cost that follows the orders, not K^2."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from gaussianmlr.normal import log_cdf, log_cdf_and_slope

BLOCK = 1 << 17  # elements compared at once: small enough for the cache, large enough for the cores


def mean_over_pairs(mu: Tensor, logvar: Tensor | None, ranks: Tensor) -> Tensor:
    r"""Mean of :math:`-\log P(s_u > s_v)` over the ordered pairs of each instance, of shape [N].

    With `logvar` the probability is :math:`\Phi((\mu_u-\mu_v)/\sqrt{\sigma_u^2+\sigma_v^2})`,
    without it :math:`1/(1+e^{\mu_v-\mu_u})`. An instance without pairs gives zero.

    Notes
    -----
    Only labels with a positive rank stand above another, so rows of (positive label) x (all
    labels) hold every pair; they go through in blocks of bounded size. An instance's value
    depends on its own row alone, so its gradient is known in the forward pass already and
    nothing of the size of the pairs is kept for the backward one.
    """
    return _MeanOverPairs.apply(mu, logvar, ranks)  # type: ignore[no-any-return, no-untyped-call]


def pair_counts(ranks: Tensor) -> Tensor:
    """Number of ordered pairs of each instance, in O(K log K)."""
    ascending = ranks.sort(-1).values
    smaller = torch.searchsorted(ascending, ranks.contiguous())
    unknown = (ranks < 0).sum(-1, keepdim=True)
    return ((smaller - unknown) * (ranks > 0)).sum(-1)


class _MeanOverPairs(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, mu: Tensor, logvar: Tensor | None, ranks: Tensor) -> Tensor:
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
            loss.index_add_(0, n, (value.masked_fill(no_pair, 0.0) * -weight).sum(-1))
            by_mu = by_mu.masked_fill(no_pair, 0.0) * -weight
            mu_grad.index_add_(0, n, by_mu, alpha=-1)
            mu_grad.index_put_((n, u), by_mu.sum(-1), accumulate=True)
            if logvar_grad is not None and by_logvar is not None:
                of_above, of_below = (part.masked_fill(no_pair, 0.0) * -weight for part in by_logvar)
                logvar_grad.index_add_(0, n, of_below)
                logvar_grad.index_put_((n, u), of_above.sum(-1), accumulate=True)
        ctx.save_for_backward(mu, logvar, ranks, mu_grad, logvar_grad)
        return loss

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        each = grad.unsqueeze(-1)
        mu, logvar, ranks, mu_grad, logvar_grad = ctx.saved_tensors
        if torch.is_grad_enabled():  # a second derivative is asked for: the gradient needs a graph
            free = [part for part in (mu, logvar) if part is not None and part.requires_grad]
            found = iter(torch.autograd.grad(_plainly(mu, logvar, ranks), free, grad, create_graph=True))
            mu_found = next(found) if mu.requires_grad else None
            return mu_found, next(found, None), None
        return each * mu_grad, None if logvar_grad is None else each * logvar_grad, None


def _plainly(mu: Tensor, logvar: Tensor | None, ranks: Tensor) -> Tensor:
    """The same mean by operations that autograd knows, all pairs held at once."""
    n, u = (ranks > 0).nonzero(as_tuple=True)
    difference = mu[n, u].unsqueeze(-1) - mu[n]
    if logvar is None:
        logs = torch.nn.functional.logsigmoid(difference)
    else:
        variance = logvar.exp()
        logs = log_cdf(difference * (variance[n, u].unsqueeze(-1) + variance[n]).rsqrt())
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
        # variance * scale^2 is a share of one: no intermediate overflows however small the variances
        common = slope * z * -0.5
        shares = (common * (above * scale * scale), common * (below * scale * scale))
        return value, slope * scale, shares

    return compare


def _logistic(mu: Tensor) -> Callable[[Tensor, Tensor], _Block]:
    def compare(n: Tensor, u: Tensor) -> _Block:
        difference = mu[n, u].unsqueeze(-1) - mu[n]
        return torch.nn.functional.logsigmoid(difference), torch.sigmoid(-difference), None

    return compare

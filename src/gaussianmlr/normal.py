r"""The maths of Gaussian significances, batched, in torch.

Every label of an instance has a significance :math:`s_u \sim N(\mu_u, \sigma_u^2)`, independent
of the others. What people want to know of it has a closed form or a one-dimensional integral.
Functions take `mu` and `sigma` of shape [..., K], never change them, and can be differentiated.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from gaussianmlr._quadrature import contenders, leave_one_out_counts, rank_grid, top_grid
from gaussianmlr.errors import DataError

__all__ = [
    "RankInterval",
    "Significance",
    "canonical",
    "expected_rank",
    "inverse_mills",
    "log_cdf",
    "p_above",
    "p_first",
    "p_rank",
    "p_relevant",
    "partial_order",
    "rank_interval",
]

_SQRT_HALF = math.sqrt(0.5)
_SQRT_TWO_OVER_PI = math.sqrt(2.0 / math.pi)
_DENSITY_AT_ZERO = 1.0 / math.sqrt(2.0 * math.pi)
_NARROWEST = 1e-11  # of |mu|: sigmas that are narrower are integrated as if they were that wide
_CHUNK = 1 << 22  # elements of a block that is held at once
_Block = Callable[[Tensor, Tensor], Tensor]
_Context = Any  # torch's own type does not know saved_tensors


class Significance(NamedTuple):
    """Means and standard deviations, one a label."""

    mu: Tensor
    sigma: Tensor


def log_cdf(z: Tensor) -> Tensor:
    r"""Logarithm of the standard normal distribution function, exact in both tails.

    .. math::
        \log\Phi(z) = \log\tfrac12\operatorname{erfcx}(-z/\sqrt2) - z^2/2, \qquad
        \frac{d}{dz}\log\Phi(z) = \frac{\sqrt{2/\pi}}{\operatorname{erfcx}(-z/\sqrt2)}

    Half precision is computed, and returned, in float32. The second derivative works too.

    References
    ----------
    W. J. Cody, "Rational Chebyshev approximations for the error function", 1969.

    Examples
    --------
    >>> import torch
    >>> log_cdf(torch.tensor([-1e4, 0.0, 20.0], dtype=torch.float64))
    tensor([-5.0000e+07, -6.9315e-01, -2.7536e-89], dtype=torch.float64)
    """
    return _LogCdf.apply(single_or_better(z))  # type: ignore[no-any-return, no-untyped-call]


def inverse_mills(z: Tensor) -> Tensor:
    r"""The slope of `log_cdf`, :math:`\varphi(z)/\Phi(z)`, exact in both tails.

    Examples
    --------
    >>> import torch
    >>> inverse_mills(torch.tensor([-1000.0, 0.0]))
    tensor([1.0000e+03, 7.9788e-01])
    """
    return _InverseMills.apply(single_or_better(z))  # type: ignore[no-any-return, no-untyped-call]


class _LogCdf(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(z: Tensor) -> Tensor:
        return _log_cdf_of(z, *_tail_parts(z))

    @staticmethod
    def setup_context(ctx: _Context, inputs: tuple[Tensor], output: Tensor) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: _Context, grad: Tensor) -> Tensor:
        (z,) = ctx.saved_tensors
        return grad * inverse_mills(z)


class _InverseMills(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(z: Tensor) -> Tensor:
        return _slope_of(z, *_tail_parts(z))

    @staticmethod
    def setup_context(ctx: _Context, inputs: tuple[Tensor], output: Tensor) -> None:
        ctx.save_for_backward(*inputs, output)

    @staticmethod
    def backward(ctx: _Context, grad: Tensor) -> Tensor:
        z, ratio = ctx.saved_tensors
        slope: Tensor = -ratio * (z + ratio)
        return grad * slope


def log_cdf_and_slope(z: Tensor) -> tuple[Tensor, Tensor]:
    """`log_cdf` and `inverse_mills` at the price of one; for code that does its own gradients."""
    parts = _tail_parts(z)
    return _log_cdf_of(z, *parts), _slope_of(z, *parts)


def _tail_parts(z: Tensor) -> tuple[Tensor, Tensor]:
    """erfcx(|z|/sqrt 2), and exp(-z^2/2) without the rounding of z^2."""
    tail = z.abs()
    scaled = torch.special.erfcx(tail * _SQRT_HALF)
    short = torch.round(tail.clamp(max=64.0) * 16.0) / 16.0  # past 64 even float64 gives 0
    rest = (tail - short) * (tail + short)  # the square of a short number is exact, the rest small
    return scaled, torch.exp(-0.5 * short * short) * torch.exp(-0.5 * rest)


def _log_cdf_of(z: Tensor, scaled: Tensor, bell: Tensor) -> Tensor:
    half = 0.5 * scaled
    return torch.where(z < 0, half.log() - 0.5 * z * z, torch.log1p(-half * bell))


def _slope_of(z: Tensor, scaled: Tensor, bell: Tensor) -> Tensor:
    above = _DENSITY_AT_ZERO * bell / (1.0 - 0.5 * scaled * bell)
    return torch.where(z < 0, _SQRT_TWO_OVER_PI / scaled, above)


def single_or_better(z: Tensor) -> Tensor:
    """Float32 and float64 as they are, every other type in float32; the rule of the whole package."""
    return z if z.dtype in (torch.float32, torch.float64) else z.to(torch.float32)


def p_relevant(mu: Tensor, sigma: Tensor) -> Tensor:
    r"""Probability that a label is relevant, :math:`P(s_u \ge 0) = \Phi(\mu_u/\sigma_u)`.

    Examples
    --------
    >>> import torch
    >>> p_relevant(torch.tensor([0.0, 2.0]), torch.tensor([1.0, 2.0]))
    tensor([0.5000, 0.8413])
    """
    mu, sigma = _check(mu, sigma)
    return _cdf(mu / sigma)


def p_above(mu: Tensor, sigma: Tensor) -> Tensor:
    r"""Probability that a label is more significant than another, of shape [..., K, K].

    .. math:: P(s_u > s_v) = \Phi\Big(\frac{\mu_u-\mu_v}{\sqrt{\sigma_u^2+\sigma_v^2}}\Big)

    The diagonal is 1/2, so that the matrix and its transpose add up to one everywhere.

    Examples
    --------
    >>> import torch
    >>> p_above(torch.tensor([1.0, 0.0]), torch.tensor([0.6, 0.8]))
    tensor([[0.5000, 0.8413],
            [0.1587, 0.5000]])
    """
    difference, spread = _differences(*_check(mu, sigma))
    return _cdf(difference / spread)


def p_first(mu: Tensor, sigma: Tensor) -> Tensor:
    r"""Probability that a label is the most significant of all.

    .. math:: P(s_u = \max_v s_v) = \int \varphi_u(x) \prod_{v\ne u} \Phi_v(x)\,dx

    Gauss-Legendre quadrature on pieces that follow every label's own scale, so very different
    sigmas, or many tied labels, cost no accuracy (1e-7 or better). Computed in float64.

    Examples
    --------
    >>> import torch
    >>> p_first(torch.tensor([1.0, 0.0]), torch.tensor([0.6, 0.8]))
    tensor([0.8413, 0.1587])
    """
    return _by_chunks(_first_block, mu, sigma, nodes_power=1)


def p_rank(mu: Tensor, sigma: Tensor) -> Tensor:
    r"""Distribution over ranks, of shape [..., K, K + 1]: entry r is the probability of rank r.

    Ranks are those of the package: 0 = irrelevant (:math:`s_u < 0`), else one more than the number
    of relevant labels below, :math:`1 + |\{v \ne u: 0 \le s_v < s_u\}|`. Given :math:`s_u = x`
    that number follows a Poisson-binomial law with the probabilities :math:`\Phi_v(x)-\Phi_v(0)`,
    which is integrated over x by the quadrature of `p_first`. Cost grows with K^3 an instance.

    References
    ----------
    Y. Hong, "On computing the distribution function for the Poisson binomial distribution", 2013.

    Examples
    --------
    >>> import torch
    >>> p_rank(torch.tensor([1.0, 0.0]), torch.tensor([1.0, 1.0]))
    tensor([[0.1587, 0.5524, 0.2890],
            [0.5000, 0.3683, 0.1317]])
    """
    return _by_chunks(_rank_block, mu, sigma, nodes_power=2)


def expected_rank(mu: Tensor, sigma: Tensor) -> Tensor:
    r"""Expected rank, :math:`P(s_u\ge0) + \sum_{v\ne u} P(0 \le s_v < s_u)`, at a cost of K^2.

    Examples
    --------
    >>> import torch
    >>> expected_rank(torch.tensor([1.0, 0.0]), torch.tensor([1.0, 1.0]))
    tensor([1.1303, 0.6317])
    """
    return _by_chunks(_expected_block, mu, sigma, nodes_power=1)


class RankInterval(NamedTuple):
    """Smallest and largest rank of an interval, integers of shape [..., K]."""

    low: Tensor
    high: Tensor


def rank_interval(mu: Tensor, sigma: Tensor, confidence: float = 0.9) -> RankInterval:
    """Central interval of ranks that holds the true rank with at least the given probability.

    Examples
    --------
    >>> import torch
    >>> rank_interval(torch.tensor([[9.0, 5.0, 4.5, -5.0]]), torch.ones(1, 4))
    RankInterval(low=tensor([[3, 1, 1, 0]]), high=tensor([[3, 2, 2, 0]]))
    """
    return central_interval(p_rank(*(part.double() for part in _check(mu, sigma))), confidence)


def central_interval(p_rank: Tensor, confidence: float) -> RankInterval:
    """The interval of `rank_interval`, of distributions over ranks [..., K, K + 1] that are known already."""
    if not 0.0 < confidence < 1.0:
        raise DataError(f"expected a confidence between 0 and 1, got {confidence}")
    below = p_rank.cumsum(-1)
    tail = (1.0 - confidence) / 2.0
    last = below.shape[-1] - 1
    low = (below <= tail).sum(-1).clamp(max=last)
    high = (below < 1.0 - tail).sum(-1).clamp(max=last)
    return RankInterval(low, high)


def canonical(mu: Tensor, sigma: Tensor) -> Significance:
    r"""Significances in the canonical gauge: divided by the geometric mean of the sigmas.

    The likelihood of an order does not change when all :math:`\mu` and :math:`\sigma` of an
    instance are multiplied by one positive number, so raw values of two instances cannot be
    compared. In this gauge they can; every probability and every order stays as it was.

    Examples
    --------
    >>> import torch
    >>> canonical(torch.tensor([6.0, 2.0]), torch.tensor([4.0, 1.0]))
    Significance(mu=tensor([3., 1.]), sigma=tensor([2.0000, 0.5000]))
    """
    mu, sigma = _check(mu, sigma)
    scale = sigma.log().mean(-1, keepdim=True).neg().exp()
    return Significance(mu * scale, sigma * scale)


def partial_order(mu: Tensor, sigma: Tensor, confidence: float = 0.9) -> Tensor:
    r"""Which label stands above which, where we are sure enough: booleans of shape [..., K, K].

    Entry [u, v] says that :math:`P(s_u > s_v) \ge c`, for a confidence c above 1/2.

    Notes
    -----
    The relation is a strict partial order. With :math:`z = \Phi^{-1}(c) > 0` it reads
    :math:`\mu_u - \mu_v \ge z\sqrt{\sigma_u^2+\sigma_v^2} > 0`, so no label stands above itself
    and no two stand above each other. It is transitive: if u is above v and v above w, then

    .. math::
        \mu_u - \mu_w \ge z\Big(\sqrt{\sigma_u^2+\sigma_v^2} + \sqrt{\sigma_v^2+\sigma_w^2}\Big)
        \ge z(\sigma_u + \sigma_w) \ge z\sqrt{\sigma_u^2+\sigma_w^2},

    so u is above w.

    Examples
    --------
    >>> import torch
    >>> partial_order(torch.tensor([3.0, 1.0, 0.9]), torch.ones(3), 0.9).int()
    tensor([[0, 1, 1],
            [0, 0, 0],
            [0, 0, 0]], dtype=torch.int32)
    """
    if not 0.5 < confidence < 1.0:
        raise DataError(f"expected a confidence above 0.5 and below 1, got {confidence}")
    difference, spread = _differences(*(part.double() for part in _check(mu, sigma)))
    quantile = torch.special.ndtri(torch.tensor(confidence, dtype=torch.float64)).item()
    above: Tensor = difference >= quantile * spread
    return above


def _cdf(z: Tensor) -> Tensor:
    found: Tensor = torch.special.ndtr(z)
    return found


def _check(mu: Tensor, sigma: Tensor) -> tuple[Tensor, Tensor]:
    if mu.shape != sigma.shape or mu.ndim == 0:
        raise DataError(
            f"expected mu and sigma of one shape [..., K], got {list(mu.shape)} and {list(sigma.shape)}"
        )
    for name, values, good in (
        ("mu", mu, torch.isfinite(mu)),
        ("sigma", sigma, (sigma > 0) & sigma.isfinite()),
    ):
        if not bool(good.all()):
            where = (~good).nonzero()[0].tolist()
            wanted = "a finite number" if name == "mu" else "a finite number above 0"
            raise DataError(f"{name} is {values[tuple(where)].item()} at {where}; expected {wanted}")
    return single_or_better(mu), single_or_better(sigma)


def _differences(mu: Tensor, sigma: Tensor) -> tuple[Tensor, Tensor]:
    difference = mu.unsqueeze(-1) - mu.unsqueeze(-2)
    return difference, torch.hypot(sigma.unsqueeze(-1), sigma.unsqueeze(-2))


def _by_chunks(block: _Block, mu: Tensor, sigma: Tensor, nodes_power: int) -> Tensor:
    """Run a quadrature on a few instances at a time, so that memory stays bounded."""
    mu, sigma = _check(mu, sigma)
    labels = mu.shape[-1]
    flat_mu, flat_sigma = mu.reshape(-1, labels).double(), sigma.reshape(-1, labels).double()
    step = max(1, _CHUNK // (50 * labels ** (nodes_power + 1)))
    parts = [
        block(flat_mu[start : start + step], flat_sigma[start : start + step])
        for start in range(0, len(flat_mu), step)
    ]
    found = torch.cat(parts) if parts else block(flat_mu, flat_sigma)
    return found.reshape(mu.shape + found.shape[2:]).to(mu.dtype)


def _standardised(nodes: Tensor, mu: Tensor, sigma: Tensor) -> Tensor:
    """How many sigmas each node lies from each label, of shape [N, nodes, K]."""
    return (nodes.unsqueeze(-1) - mu.unsqueeze(1)) / sigma.unsqueeze(1)


def _weighted_density(weights: Tensor, z: Tensor, sigma: Tensor) -> Tensor:
    return weights.unsqueeze(-1) * torch.exp(-0.5 * z * z) * (_DENSITY_AT_ZERO / sigma.unsqueeze(1))


def _first_block(mu: Tensor, sigma: Tensor) -> Tensor:
    mu = mu - mu.amax(-1, keepdim=True).detach()  # only differences matter; small sigmas keep their digits
    candidates, lowest = contenders(mu, sigma)
    every = torch.zeros_like(mu)
    mu, sigma = mu.gather(-1, candidates), sigma.gather(-1, candidates)
    nodes, weights = top_grid(mu, sigma, lowest)
    z = _standardised(nodes, mu, sigma)
    logs = log_cdf(z)
    others = torch.exp(logs.sum(-1, keepdim=True) - logs)
    return every.scatter(-1, candidates, (_weighted_density(weights, z, sigma) * others).sum(1))


def _below_block(mu: Tensor, sigma: Tensor) -> tuple[Tensor, Tensor]:
    """Weighted densities, and probabilities of being relevant but below the node."""
    # Nodes that lie closer together than the digits of mu would all be one.
    sigma = torch.maximum(sigma, _NARROWEST * mu.abs())
    nodes, weights = rank_grid(mu, sigma)
    z = _standardised(nodes, mu, sigma)
    irrelevant = _cdf(-mu / sigma).unsqueeze(1)
    relevant_below = (_cdf(z) - irrelevant).clamp(0.0, 1.0)
    return _weighted_density(weights, z, sigma), relevant_below


def _rank_block(mu: Tensor, sigma: Tensor) -> Tensor:
    density, relevant_below = _below_block(mu, sigma)
    counts = leave_one_out_counts(relevant_below)
    positive = torch.einsum("nxk,nxkr->nkr", density, counts)
    return torch.cat([_cdf(-mu / sigma).unsqueeze(-1), positive], dim=-1)


def _expected_block(mu: Tensor, sigma: Tensor) -> Tensor:
    density, relevant_below = _below_block(mu, sigma)
    others = relevant_below.sum(-1, keepdim=True) - relevant_below
    return (density * (1.0 + others)).sum(1)

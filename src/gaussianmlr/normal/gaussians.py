r"""The maths of Gaussian significances, batched, in torch.

Every label of an instance has a significance :math:`s_u \sim N(\mu_u, \sigma_u^2)`, independent
of the others. All readings have a closed form or are one-dimensional integrals.
Functions take `mu` and `sigma` of shape [..., K], do not modify them, and are differentiable.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import NamedTuple

import torch
from torch import Tensor

from gaussianmlr.errors import DataError
from gaussianmlr.normal.quadrature import (
    FAR,
    add_leave_one_out_counts,
    contenders,
    crowd_grid,
    rank_grid,
    slices,
    surely_above,
    top_grid,
)
from gaussianmlr.normal.tails import DENSITY_AT_ZERO, log_cdf, single_or_better

_NARROWEST = 1e-11  # of |mu|: narrower sigmas are integrated as if they were this wide
_LEAST = 1e-30  # smaller masses are not corrected
_CHUNK = 1 << 20  # pairs of labels that are held at once
_MANY = 128  # labels from which grids are shared, see `crowd_grid`
_FINE, _COARSE = 0.25, 1.0  # sigmas between the knots of such a grid: for products, for sums
_TOGETHER = 1 << 8  # labels, over all instances, that are integrated at once
_Block = Callable[..., Tensor]
_CHECK: ContextVar[Callable[[], object]] = ContextVar("check", default=lambda: None)


class Significance(NamedTuple):
    """Means and standard deviations, one per label."""

    mu: Tensor
    sigma: Tensor


@contextlib.contextmanager
def checking(check: Callable[[], object]) -> Iterator[None]:
    """Call `check` between the slices of all readings inside; it stops them by raising.

    Slices take milliseconds, so abandoned work stops soon. Applies only to this thread or asynchronous task.

    Parameters
    ----------
    check : callable
        Called without arguments; its result is ignored, what it raises is passed on.

    Examples
    --------
    >>> import torch
    >>> def out_of_time():
    ...     raise TimeoutError("out of time")
    >>> with checking(out_of_time):
    ...     p_rank(torch.zeros(3), torch.ones(3))
    Traceback (most recent call last):
        ...
    TimeoutError: out of time
    """
    token = _CHECK.set(check)
    try:
        yield
    finally:
        _CHECK.reset(token)


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


def p_above(mu: Tensor, sigma: Tensor, tau: Tensor | float | None = None) -> Tensor:
    r"""Probability that a label is more significant than another, of shape [..., K, K].

    .. math:: P(s_u > s_v) = \Phi\Big(\frac{\mu_u-\mu_v}{\sqrt{\sigma_u^2+\sigma_v^2}}\Big)

    The diagonal is 1/2, so the matrix and its transpose sum to one everywhere. With a threshold of
    indifference `tau`, which expands to [..., K], the difference must be larger than the mean threshold of
    both labels; the rest is `p_tie`.

    Examples
    --------
    >>> import torch
    >>> p_above(torch.tensor([1.0, 0.0]), torch.tensor([0.6, 0.8]))
    tensor([[0.5000, 0.8413],
            [0.1587, 0.5000]])
    """
    difference, spread = _differences(*_check(mu, sigma))
    return _cdf((difference if tau is None else difference - _of_pairs(tau, mu)) / spread)


def p_first(mu: Tensor, sigma: Tensor) -> Tensor:
    r"""Probability that a label is the most significant of all.

    .. math:: P(s_u = \max_v s_v) = \int \varphi_u(x) \prod_{v\ne u} \Phi_v(x)\,dx

    Gauss-Legendre quadrature on pieces that follow every label's own scale, so very different
    sigmas, or many tied labels, cost no accuracy (1e-7 or better). More than 128 labels that can be the
    largest share their pieces, so that time grows like K. Computed in float64.

    Examples
    --------
    >>> import torch
    >>> p_first(torch.tensor([1.0, 0.0]), torch.tensor([0.6, 0.8]))
    tensor([0.8413, 0.1587])
    """
    return _integral(_first_block, mu, sigma)


def p_rank(mu: Tensor, sigma: Tensor) -> Tensor:
    r"""Distribution over ranks, of shape [..., K, K + 1]: entry r is the probability of rank r.

    Ranks are those of the package: 0 = irrelevant (:math:`s_u < 0`), else one more than the number
    of relevant labels below, :math:`1 + |\{v \ne u: 0 \le s_v < s_u\}|`. Given :math:`s_u = x`
    that number follows a Poisson-binomial law with the probabilities :math:`\Phi_v(x)-\Phi_v(0)`,
    which is integrated over x by Gauss-Legendre quadrature. Time grows with K^2.5 per instance where
    labels overlap; memory beside the result does not grow faster than K^2, whatever the number of instances.

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
    return _integral(_rank_block, mu, sigma)


def expected_rank(mu: Tensor, sigma: Tensor) -> Tensor:
    r"""Expected rank, :math:`P(s_u\ge0) + \sum_{v\ne u} P(0 \le s_v < s_u)`; of many labels in the time of K.

    Examples
    --------
    >>> import torch
    >>> expected_rank(torch.tensor([1.0, 0.0]), torch.tensor([1.0, 1.0]))
    tensor([1.1303, 0.6317])
    """
    return _integral(_expected_block, mu, sigma)


class RankInterval(NamedTuple):
    """Smallest and largest rank of an interval, integers of shape [..., K]."""

    low: Tensor
    high: Tensor


def rank_interval(mu: Tensor, sigma: Tensor, confidence: float = 0.9) -> RankInterval:
    """Central interval that contains the true rank with at least the given probability.

    Examples
    --------
    >>> import torch
    >>> rank_interval(torch.tensor([[9.0, 5.0, 4.5, -5.0]]), torch.ones(1, 4))
    RankInterval(low=tensor([[3, 1, 1, 0]]), high=tensor([[3, 2, 2, 0]]))
    """

    def block(mu: Tensor, sigma: Tensor) -> Tensor:
        return torch.stack(central_interval(_rank_block(mu, sigma), confidence), -1)

    return RankInterval(*_integral(block, mu, sigma).unbind(-1))


def central_interval(p_rank: Tensor, confidence: float) -> RankInterval:
    """The interval of `rank_interval`, from distributions over ranks [..., K, K + 1]."""
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
    compared. In this gauge they can; probabilities and orders do not change.

    Examples
    --------
    >>> import torch
    >>> canonical(torch.tensor([6.0, 2.0]), torch.tensor([4.0, 1.0]))
    Significance(mu=tensor([3., 1.]), sigma=tensor([2.0000, 0.5000]))
    """
    mu, sigma = _check(mu, sigma)
    scale = sigma.log().mean(-1, keepdim=True).neg().exp()
    return Significance(mu * scale, sigma * scale)


def partial_order(
    mu: Tensor, sigma: Tensor, confidence: float = 0.9, tau: Tensor | float | None = None
) -> Tensor:
    r"""Which label is above which at a confidence: booleans of shape [..., K, K].

    Entry [u, v] means that :math:`P(s_u > s_v) \ge c`, for a confidence c above 1/2, with a threshold of
    indifference if `tau` is given.

    Notes
    -----
    The relation is a strict partial order. With :math:`z = \Phi^{-1}(c) > 0` it reads
    :math:`\mu_u - \mu_v \ge z\sqrt{\sigma_u^2+\sigma_v^2} > 0`, so no label is above itself
    and no two are above each other. It is transitive: if u is above v and v above w, then

    .. math::
        \mu_u - \mu_w \ge z\Big(\sqrt{\sigma_u^2+\sigma_v^2} + \sqrt{\sigma_v^2+\sigma_w^2}\Big)
        \ge z(\sigma_u + \sigma_w) \ge z\sqrt{\sigma_u^2+\sigma_w^2},

    so u is above w. A threshold of a pair is the mean of two thresholds, which are not negative, so
    :math:`\tau_{uw} \le \tau_{uv} + \tau_{vw}` and the same holds with it.

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
    quantile = torch.special.ndtri(torch.tensor(confidence, dtype=torch.float64)).item()

    def block(mu: Tensor, sigma: Tensor, *thresholds: Tensor) -> Tensor:
        difference, spread = _differences(mu, sigma)
        for one in thresholds:
            difference = difference - _of_pairs(one, mu)
        above: Tensor = difference >= quantile * spread
        return above

    more = [] if tau is None else [torch.as_tensor(tau, dtype=mu.dtype, device=mu.device).expand(mu.shape)]
    return _by_chunks(block, mu, sigma, _CHUNK // max(1, mu.shape[-1]) ** 2, *more)


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


def _of_pairs(tau: Tensor | float, mu: Tensor) -> Tensor:
    """Thresholds of pairs [..., K, K], the mean of those of both labels."""
    each = torch.as_tensor(tau, dtype=mu.dtype, device=mu.device).expand(mu.shape)
    return 0.5 * (each.unsqueeze(-1) + each.unsqueeze(-2))


def _by_chunks(block: _Block, mu: Tensor, sigma: Tensor, together: int, *more: Tensor) -> Tensor:
    """Results in float64, or whole numbers, for some instances at a time: memory stays bounded."""
    mu, sigma = _check(mu, sigma)
    rows = [torch.split(part.reshape(-1, mu.shape[-1]), max(1, together)) for part in (mu, sigma, *more)]
    parts = []
    for some in zip(*rows):
        _CHECK.get()()
        found = block(*(part.double() for part in some))
        parts.append(found.to(mu.dtype) if found.is_floating_point() else found)
    whole = torch.cat(parts)
    return whole.reshape(mu.shape + whole.shape[2:])


def _integral(block: _Block, mu: Tensor, sigma: Tensor) -> Tensor:
    return _by_chunks(block, mu, sigma, _TOGETHER // max(1, mu.shape[-1]))


def _slices(nodes: Tensor, weights: Tensor, labels: int) -> Iterator[tuple[Tensor, Tensor]]:
    for some in slices(nodes, weights, labels):
        _CHECK.get()()
        yield some


def _standardised(nodes: Tensor, mu: Tensor, sigma: Tensor) -> Tensor:
    """How many sigmas each node lies from each label, of shape [N, nodes, K]."""
    return (nodes.unsqueeze(-1) - mu.unsqueeze(1)) / sigma.unsqueeze(1)


def _weighted_density(weights: Tensor, z: Tensor, sigma: Tensor) -> Tensor:
    return weights.unsqueeze(-1) * torch.exp(-0.5 * z * z) * (DENSITY_AT_ZERO / sigma.unsqueeze(1))


def _first_block(mu: Tensor, sigma: Tensor) -> Tensor:
    mu = mu - mu.amax(-1, keepdim=True).detach()  # only differences matter; small sigmas keep their digits
    candidates, lowest = contenders(mu, sigma)
    if candidates.shape[-1] > _MANY:
        rows = zip(torch.split(mu, 1), torch.split(sigma, 1))
        return torch.cat([_first_of_many(*row) for row in rows])
    every = torch.zeros_like(mu)
    mu, sigma = mu.gather(-1, candidates), sigma.gather(-1, candidates)
    return every.scatter(-1, candidates, _first_on(top_grid(mu, sigma, lowest), mu, sigma))


def _first_of_many(mu: Tensor, sigma: Tensor) -> Tensor:
    """As `_first_block`, for many labels [1, K]: the time is that of K."""
    lowest = surely_above(mu, sigma)
    chosen = (mu + FAR * sigma >= lowest)[0].nonzero().T
    some_mu, some_sigma = mu[:, chosen[0]], sigma[:, chosen[0]]
    found = _first_on(crowd_grid(some_mu, some_sigma, lowest, _FINE), some_mu, some_sigma)
    return torch.zeros_like(mu).scatter(-1, chosen, found)


def _first_on(grid: tuple[Tensor, Tensor], mu: Tensor, sigma: Tensor) -> Tensor:
    found = torch.zeros_like(mu)
    for nodes, weights in _slices(*grid, mu.shape[-1]):
        z = _standardised(nodes, mu, sigma)
        logs = log_cdf(z)
        others = torch.exp(logs.sum(-1, keepdim=True) - logs)
        found = found + (_weighted_density(weights, z, sigma) * others).sum(1)
    return found


def _below_blocks(mu: Tensor, sigma: Tensor, *, sums: bool) -> Iterator[tuple[Tensor, Tensor]]:
    """Weighted densities, and probabilities of being relevant but below the node; `sums` needs no law."""
    # Nodes closer than the precision of mu would coincide.
    sigma = torch.maximum(sigma, _NARROWEST * mu.abs())
    irrelevant = _cdf(-mu / sigma).unsqueeze(1)
    shared = sums and len(mu) == 1 and mu.shape[-1] > _MANY
    grid = crowd_grid(mu, sigma, mu.new_zeros(1, 1), _COARSE) if shared else rank_grid(mu, sigma)
    for nodes, weights in _slices(*grid, mu.shape[-1]):
        z = _standardised(nodes, mu, sigma)
        yield _weighted_density(weights, z, sigma), (_cdf(z) - irrelevant).clamp(0.0, 1.0)


def _rank_block(mu: Tensor, sigma: Tensor) -> Tensor:
    positive = mu.new_zeros(*mu.shape, mu.shape[-1])
    for density, relevant_below in _below_blocks(mu, sigma, sums=False):
        add_leave_one_out_counts(positive, density, relevant_below)
    positive = positive.clamp(min=0.0) * _correction(positive.sum(-1), mu, sigma).unsqueeze(-1)
    return torch.cat([_cdf(-mu / sigma).unsqueeze(-1), positive], dim=-1)


def _expected_block(mu: Tensor, sigma: Tensor) -> Tensor:
    mass, found = torch.zeros_like(mu), torch.zeros_like(mu)
    for density, relevant_below in _below_blocks(mu, sigma, sums=True):
        others = relevant_below.sum(-1, keepdim=True) - relevant_below
        mass = mass + density.sum(1)
        found = found + (density * (1.0 + others)).sum(1)
    return found * _correction(mass, mu, sigma)


def _correction(mass: Tensor, mu: Tensor, sigma: Tensor) -> Tensor:
    """Factor from a grid's mass to the probability of relevance: rounding of nodes at very narrow sigmas."""
    return torch.where(mass > _LEAST, _cdf(mu / sigma) / mass.clamp(min=_LEAST), 1.0)

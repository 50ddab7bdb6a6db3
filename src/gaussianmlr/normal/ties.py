r"""Ties of significances: an indifference threshold tau, exact in the tails, and the best order with ties.

Two labels tie where their significances differ by less than a threshold :math:`\tau \ge 0` (Thurstone's
comparisons with a threshold, Glenn and David 1960). With :math:`d = \mu_u - \mu_v` and
:math:`s^2 = \sigma_u^2 + \sigma_v^2`

.. math::
    P(u \text{ above } v) = \Phi\Big(\frac{d - \tau}{s}\Big), \qquad
    P(u = v) = \Phi\Big(\frac{d + \tau}{s}\Big) - \Phi\Big(\frac{d - \tau}{s}\Big).

For scores without sigma the logistic function takes the place of :math:`\Phi`, which is the model of Rao and
Kupper (1967). A threshold may belong to a label; a pair has the mean of its two.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from gaussianmlr.normal.tails import log_cdf

__all__ = ["best_buckets", "log_p_tie", "log_p_tie_logistic", "p_tie", "pair_logs"]

_NODES = 10  # of the quadrature: exact to the last digit where it is used
_LOG_ROOT_2_PI = 0.5 * math.log(2.0 * math.pi)
_CELLS = 1 << 20  # pairs of labels that are held at once
_AT_ONCE = 1 << 17  # of which so many are integrated at once
_ROOT_HALF = math.sqrt(0.5)
_NEVER = -1e300  # a gain that no other outweighs, finite so that sums of it have no NaN


@lru_cache(maxsize=1)
def _gauss_legendre() -> tuple[Tensor, Tensor]:
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    return torch.from_numpy(nodes), torch.from_numpy(weights)


def log_p_tie(distance: Tensor, threshold: Tensor) -> Tensor:
    r"""Logarithm of :math:`\Phi(m + h) - \Phi(m - h)`, exact in the tails and for small h.

    Parameters
    ----------
    distance : Tensor
        :math:`m = |\mu_u - \mu_v| / s`, 0 or larger.
    threshold : Tensor
        :math:`h = \tau / s`, above 0.

    Notes
    -----
    Where the difference would cancel (h and mh below 1) it is the integral

    .. math:: \varphi(m)\, h \int_{-1}^{1} e^{-hmt - h^2t^2/2}\,dt

    by Gauss-Legendre nodes, a sum of positive terms. Elsewhere it is a difference of :math:`\log\Phi`
    or, for a probability near one, of both tails. Differentiable twice; computed in float64.

    Examples
    --------
    >>> log_p_tie(torch.tensor([0.0, 40.0, 3.0]), torch.tensor([1.0, 1e-6, 9.0]))
    tensor([-3.8172e-01, -8.1404e+02, -9.8659e-10])
    """
    wide = distance.device.type != "mps"  # which has no float64
    m, h = (part.double() if wide else part for part in (distance, threshold))
    m, h = m.expand_as(m + h), h.expand_as(m + h)
    near = (h < 1.0) & (m * h < 1.0)
    inner = ~near & (m < h)
    found = torch.zeros_like(m)
    for chosen, branch in ((near, _near), (inner, _inner), (~near & ~inner, _outer)):
        found = found.masked_scatter(chosen, branch(m[chosen], h[chosen]))
    return found.to(distance.dtype)


def _near(m: Tensor, h: Tensor) -> Tensor:
    nodes, weights = (part.to(m) for part in _gauss_legendre())
    exponents = -(h * m).unsqueeze(-1) * nodes - 0.5 * (h * h).unsqueeze(-1) * nodes * nodes
    integral = torch.exp(exponents) @ weights
    return -0.5 * m * m - _LOG_ROOT_2_PI + torch.log(h) + torch.log(integral)


def _inner(m: Tensor, h: Tensor) -> Tensor:
    return torch.log1p(-(log_cdf(m - h).exp() + log_cdf(-m - h).exp()))


def _outer(m: Tensor, h: Tensor) -> Tensor:
    # log Phi(-m - h) - log Phi(h - m) without the squares, which would cancel
    fall = -2.0 * m * h + torch.log(_scaled_tail(m + h)) - torch.log(_scaled_tail(m - h))
    return log_cdf(h - m) + torch.log(-torch.expm1(fall))


def _scaled_tail(x: Tensor) -> Tensor:
    found: Tensor = torch.special.erfcx(x * _ROOT_HALF)
    return found


def log_p_tie_logistic(difference: Tensor, tau: Tensor) -> Tensor:
    r"""Logarithm of a tie's probability in the model of Rao and Kupper.

    .. math:: \log(e^{2\tau} - 1) + \log\operatorname{logistic}(d - \tau)
        + \log\operatorname{logistic}(-d - \tau)

    Examples
    --------
    >>> log_p_tie_logistic(torch.tensor(0.0), torch.tensor(1.0)).exp()
    tensor(0.4621)
    """
    above, below = difference - tau, -difference - tau
    both = torch.nn.functional.logsigmoid(above) + torch.nn.functional.logsigmoid(below)
    found = 2.0 * tau + torch.log(-torch.expm1(-2.0 * tau)) + both
    apart = torch.sigmoid(above) + torch.sigmoid(below)
    return torch.where(apart < 0.5, torch.log1p(-apart.clamp(max=0.5)), found)  # near one by what is missing


def pair_logs(mu: Tensor, sigma: Tensor | None, tau: Tensor) -> tuple[Tensor, Tensor]:
    """Logarithms of P(row above column) and P(row ties with column), both [..., K, K].

    Parameters
    ----------
    mu : Tensor [..., K]
        Means, or scores.
    sigma : Tensor [..., K] or None
        Standard deviations; None for the logistic model.
    tau : Tensor [..., K] or [..., 1]
        Thresholds of labels in the units of mu.

    Examples
    --------
    >>> above, tie = pair_logs(torch.tensor([1.0, 0.0]), torch.tensor([0.6, 0.8]), torch.tensor([0.5]))
    >>> (above.exp() + above.exp().T + tie.exp()).round(decimals=4)
    tensor([[1., 1.],
            [1., 1.]])
    """
    tau = tau.expand(mu.shape).to(mu.dtype)
    difference = mu.unsqueeze(-1) - mu.unsqueeze(-2)
    threshold = 0.5 * (tau.unsqueeze(-1) + tau.unsqueeze(-2))
    spread = None if sigma is None else torch.hypot(sigma.unsqueeze(-1), sigma.unsqueeze(-2))
    return _logs(difference, spread, threshold)


def _logs(difference: Tensor, spread: Tensor | None, threshold: Tensor) -> tuple[Tensor, Tensor]:
    if spread is None:
        above = torch.nn.functional.logsigmoid(difference - threshold)
        tie = log_p_tie_logistic(difference, threshold)
    else:
        above = log_cdf((difference - threshold) / spread)
        tie = log_p_tie(difference.abs() / spread, threshold / spread)
    return above, torch.where(threshold > 0, tie, -torch.inf)


def p_tie(mu: Tensor, sigma: Tensor, tau: Tensor | float) -> Tensor:
    r"""Probability that two relevant labels tie, of shape [..., K, K].

    .. math:: P(u = v) = \Phi\Big(\frac{\mu_u-\mu_v+\tau}{s}\Big) - \Phi\Big(\frac{\mu_u-\mu_v-\tau}{s}\Big),
        \quad s^2 = \sigma_u^2+\sigma_v^2

    With `p_above` at the same threshold, and its transpose, the sum is one everywhere.

    Parameters
    ----------
    mu, sigma : Tensor [..., K]
        Significances.
    tau : float or Tensor
        Threshold of indifference in their units, of a shape that expands to [..., K].

    References
    ----------
    W. Glenn and H. David, "Ties in paired-comparison experiments using a modified Thurstone-Mosteller
    model", 1960.

    Examples
    --------
    >>> p_tie(torch.tensor([1.0, 0.0]), torch.tensor([0.6, 0.8]), 0.5)
    tensor([[0.4443, 0.2417],
            [0.2417, 0.3415]])
    """
    return pair_logs(mu, sigma, torch.as_tensor(tau, dtype=mu.dtype, device=mu.device))[1].exp()


def best_buckets(mu: Tensor, sigma: Tensor | None, tau: Tensor) -> Tensor:
    r"""The most likely order with ties of the relevant labels: ranks [N, K], 0 = irrelevant.

    A label is relevant where its mean is above zero. Among all bucket orders of the relevant labels that
    respect the order of their means, this one maximises the composite likelihood

    .. math::
        \sum_{u, v \text{ in one bucket}} \log P(u = v)
        + \sum_{u \text{ in a higher bucket than } v} \log P(u \text{ above } v).

    Parameters
    ----------
    mu : Tensor [N, K]
        Means, or scores.
    sigma : Tensor [N, K] or None
        Standard deviations; None for the logistic model.
    tau : Tensor [N, K] or [N, 1]
        Thresholds of labels in the units of mu.

    Notes
    -----
    The order of the means alone is worth :math:`\sum \log P(u \text{ above } v)`. Joining the neighbours
    from place i to place j adds the sum of :math:`\log P(u = v) - \log P(u \text{ above } v)` over their
    pairs, so the best cuts follow from a dynamic programme over prefixes, in P^2 steps for P relevant
    labels. No bucket ends between equal means.

    References
    ----------
    W. Glenn and H. David, "Ties in paired-comparison experiments using a modified Thurstone-Mosteller
    model", 1960.
    P. Rao and L. Kupper, "Ties in paired-comparison experiments: a generalization of the Bradley-Terry
    model", 1967.

    Examples
    --------
    >>> mu, sigma = torch.tensor([[3.0, 1.1, 1.0, -1.0]]), torch.full((1, 4), 0.5)
    >>> best_buckets(mu, sigma, torch.tensor([[0.5]]))
    tensor([[2, 1, 1, 0]])
    """
    parts = [mu.new_zeros(mu.shape, dtype=torch.int64)[:0]]
    step = max(1, _CELLS // max(1, mu.shape[-1]) ** 2)
    tau = tau.expand(mu.shape)
    for start in range(0, len(mu), step):
        rows = slice(start, start + step)
        some = None if sigma is None else sigma[rows].double()
        parts.append(_best_block(mu[rows].double(), some, tau[rows].double()))
    return torch.cat(parts)


def _best_block(mu: Tensor, sigma: Tensor | None, tau: Tensor) -> Tensor:
    counts = (mu > 0).sum(-1)
    longest = int(counts.max()) if len(mu) else 0
    ranks = torch.zeros(mu.shape, dtype=torch.int64, device=mu.device)
    if longest == 0:
        return ranks
    order = mu.sort(dim=-1, descending=True, stable=True).indices[:, :longest]
    sorted_mu, tau = mu.gather(-1, order), tau.gather(-1, order)
    sigma = None if sigma is None else sigma.gather(-1, order)
    gains = mu.new_zeros(len(mu), longest, longest)
    places = torch.arange(longest, device=mu.device)
    pairs = (places[:, None] < places) & (places < counts[:, None, None])
    for row, upper, lower in zip(*(torch.split(part, _AT_ONCE) for part in pairs.nonzero(as_tuple=True))):
        spread = None if sigma is None else torch.hypot(sigma[row, upper], sigma[row, lower])
        threshold = 0.5 * (tau[row, upper] + tau[row, lower])
        above, tie = _logs(sorted_mu[row, upper] - sorted_mu[row, lower], spread, threshold)
        gains[row, upper, lower] = (tie - above).clamp(min=_NEVER)
    # inside[i, j]: the gain of joining places i to j, by sums over the columns and rows between them
    inside = gains.cumsum(-1).flip(-2).cumsum(-2).flip(-2)
    equal = sorted_mu[:, 1:] == sorted_mu[:, :-1]
    best = torch.zeros(len(mu), longest + 1, dtype=torch.float64, device=mu.device)
    cut = torch.zeros(len(mu), longest, dtype=torch.int64, device=mu.device)  # where the last bucket begins
    closed = torch.zeros(len(mu), longest, dtype=torch.bool, device=mu.device)
    closed[:, 1:] = equal  # no bucket begins between equal means
    for place in range(longest):
        options = best[:, : place + 1] + inside[:, : place + 1, place]
        options = options.masked_fill(closed[:, : place + 1], -torch.inf)
        # Of equally good cuts the last: no tie is claimed without a gain.
        value, back = options.flip(-1).max(-1)
        best[:, place + 1], cut[:, place] = value, place - back
    return ranks.scatter(-1, order, _numbered(cut, counts))


def _numbered(cut: Tensor, counts: Tensor) -> Tensor:
    """Ranks of the sorted labels, from the place where each one's bucket begins if it is the last of it."""
    numbers = torch.zeros_like(cut)
    rows = torch.arange(len(cut), device=cut.device)
    begin, rank = counts.clone(), torch.zeros_like(counts)
    for place in reversed(range(cut.shape[1])):
        ends = begin == place + 1  # the last place of a bucket
        rank = rank + ends.long()
        begin = torch.where(ends, cut[rows, place], begin)
        numbers[:, place] = torch.where(counts > place, rank, 0)
    return numbers

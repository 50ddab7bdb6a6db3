"""Grids and counting laws behind the integrals of `gaussianmlr.normal`."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

# Places, in sigmas, where the pieces of the grid meet: close together where a Gaussian bends.
_KNOTS = (-6.5, -4.5, -3.0, -1.5, 0.0, 1.5, 3.0, 4.5, 6.5)
_NODES_A_PIECE = 6


@lru_cache(maxsize=1)
def _gauss_legendre() -> tuple[Tensor, Tensor]:
    nodes, weights = np.polynomial.legendre.leggauss(_NODES_A_PIECE)
    return torch.from_numpy((nodes + 1.0) / 2.0), torch.from_numpy(weights / 2.0)


def contenders(mu: Tensor, sigma: Tensor) -> tuple[Tensor, Tensor]:
    """The labels that can be the largest, and the lowest value the largest can have.

    Labels that end below everything the largest can be are left out: indices of shape [N, C]
    with C the most contenders of any row, and values of shape [N, 1].
    """
    lowest = (mu + _KNOTS[0] * sigma).amax(-1, keepdim=True).detach()
    highest = mu + _KNOTS[-1] * sigma
    count = int((highest >= lowest).sum(-1).amax()) if len(mu) else mu.shape[-1]
    return highest.topk(count, dim=-1).indices, lowest


def top_grid(mu: Tensor, sigma: Tensor, lowest: Tensor) -> tuple[Tensor, Tensor]:
    """Nodes and weights for integrals over the largest of K Gaussians, each of shape [N, M]."""
    return _grid(torch.maximum(_knots(mu, sigma), lowest))


def rank_grid(mu: Tensor, sigma: Tensor) -> tuple[Tensor, Tensor]:
    """Nodes and weights for integrals over positive significances."""
    return _grid(_knots(mu, sigma).clamp(min=0.0))


def _knots(mu: Tensor, sigma: Tensor) -> Tensor:
    # Detached: with fixed nodes the derivative of the sum is the sum of the derivatives.
    mu, sigma = mu.detach(), sigma.detach()
    steps = torch.tensor(_KNOTS, dtype=mu.dtype, device=mu.device)
    # Each label moves its inner knots by its own share of a step (multiples of the golden ratio), so
    # that the knots of tied labels lie between each other: the grid gets finer as the integrand does.
    place = torch.arange(mu.shape[-1], dtype=mu.dtype, device=mu.device)
    moved = (place * 0.6180339887498949).frac().sub(0.5).mul(1.5).unsqueeze(-1)
    inner = torch.ones_like(steps)
    inner[0] = inner[-1] = 0.0
    return (mu.unsqueeze(-1) + sigma.unsqueeze(-1) * (steps + moved * inner)).flatten(1)


def _grid(knots: Tensor) -> tuple[Tensor, Tensor]:
    ends = knots.sort(-1).values
    # Clipped knots coincide at the lower end; pieces that are empty in every row cost time only.
    empty = int((ends == ends[:, :1]).sum(-1).amin()) - 1 if len(ends) else 0
    ends = ends[:, empty:]
    widths = ends.diff(dim=-1).unsqueeze(-1)
    places, weights = (part.to(knots.device) for part in _gauss_legendre())
    nodes = ends[:, :-1].unsqueeze(-1) + widths * places
    return nodes.flatten(1), (widths * weights).flatten(1)


def leave_one_out_counts(probabilities: Tensor) -> Tensor:
    r"""Law of the number of successes among all trials but one.

    Parameters
    ----------
    probabilities : Tensor [..., K]
        Success probabilities of K independent trials.

    Returns
    -------
    Tensor [..., K, K]
        Entry [u, j] is the probability of j successes among the trials other than u.

    Notes
    -----
    The law of all trials is built by K convolutions. Trial u is then taken out again by solving
    f(j) = (1-p) g(j) + p g(j-1), upwards where p <= 1/2 and downwards where it is larger: both
    recursions shrink their rounding errors.
    """
    everybody = _all_counts(probabilities).unsqueeze(-2)
    trials = probabilities.shape[-1]
    p, q = probabilities, 1.0 - probabilities
    small = p <= 0.5
    # The denominator that is not used may be zero; keep it harmless for the gradient too.
    up_by, down_by = torch.where(small, q, 1.0), torch.where(small, 1.0, p)
    upward = [everybody[..., 0] / up_by]
    downward = [everybody[..., trials] / down_by]
    for j in range(1, trials):
        upward.append((everybody[..., j] - p * upward[-1]) / up_by)
        downward.append((everybody[..., trials - j] - q * downward[-1]) / down_by)
    up, down = torch.stack(upward, -1), torch.stack(downward[::-1], -1)
    return torch.where(small.unsqueeze(-1), up, down).clamp(0.0, 1.0)


def _all_counts(probabilities: Tensor) -> Tensor:
    law = torch.ones_like(probabilities[..., :1])
    for trial in range(probabilities.shape[-1]):
        p = probabilities[..., trial : trial + 1]
        none = torch.zeros_like(p)
        law = torch.cat([law * (1.0 - p), none], -1) + torch.cat([none, law * p], -1)
    return law

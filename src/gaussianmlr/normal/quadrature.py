"""Grids and counting laws behind the integrals of `gaussianmlr.normal`."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from gaussianmlr.normal.tails import log_cdf

# Ends of the pieces of the grid, in sigmas: close together where a Gaussian bends.
_KNOTS = (-6.5, -4.5, -3.0, -1.5, 0.0, 1.5, 3.0, 4.5, 6.5)
_NODES_PER_PIECE = 6
# A piece may begin inside a label's last step and end in the next label's first without loss.
_STEP, _REACH = 1.75, 7.75  # sigmas of a piece where one label alone varies, and of its half width
_FEW = 12  # up to this number of labels, all knots are kept, which is faster than choosing
_BLOCK = 1 << 16  # elements held at once: fits in the cache
_GROUP = 32  # trials whose distribution is built by convolution; more are joined by Fourier transform
FAR = 8.5  # sigmas from a mean that matter where labels are so many that chances of 1e-10 add up
_HALVINGS, _NEVER = 40, -45.0  # steps to that value, and the logarithm of the chance to stay below it
_NOTHING = 1e-18  # a probability that cannot change a result


@lru_cache(maxsize=1)
def _gauss_legendre() -> tuple[Tensor, Tensor]:
    nodes, weights = np.polynomial.legendre.leggauss(_NODES_PER_PIECE)
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


def surely_above(mu: Tensor, sigma: Tensor) -> Tensor:
    """A value [N, 1] that the largest of K Gaussians exceeds, but for a chance of e^-45."""
    mu, sigma = mu.detach(), sigma.detach()
    high = (mu + FAR * sigma).amax(-1, keepdim=True)
    low = (mu - 10.0 * sigma).amax(-1, keepdim=True)  # the largest exceeds every label
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        below = log_cdf((middle - mu) / sigma).sum(-1, keepdim=True) < _NEVER
        low, high = torch.where(below, middle, low), torch.where(below, high, middle)
    return low


def crowd_grid(mu: Tensor, sigma: Tensor, lowest: Tensor, step: float) -> tuple[Tensor, Tensor]:
    """Nodes and weights, each of shape [1, M], for integrals above a value over many Gaussians [1, K].

    Knots stand `step` sigmas apart, for each octave of sigmas where its labels are: where many labels
    overlap they share their knots, so that M does not grow with K.
    """
    mu, sigma, start = mu.detach()[0], sigma.detach()[0], lowest.detach()[0]
    first, last = torch.maximum(mu - FAR * sigma, start), mu + FAR * sigma
    octave = sigma.log2().floor()
    parts = [start]
    for one in torch.unique(octave[last > start]):
        some = (octave == one) & (last > start)
        width = step * torch.exp2(one)
        begin, order = ((first[some] - start) / width).floor().sort()
        end = ((last[some] - start) / width).ceil()[order].cummax(0).values
        new = torch.ones_like(begin, dtype=torch.bool)
        new[1:] = begin[1:] > end[:-1]
        closes = torch.cat([new[1:], new.new_ones(1)])
        for left, right in zip(begin[new].tolist(), end[closes].tolist()):
            cells = torch.arange(right - left + 1, dtype=mu.dtype, device=mu.device) + left
            parts.append(start + width * cells)
    ends: Tensor = torch.unique(torch.cat(parts))
    return _nodes(ends.unsqueeze(0))


def rank_grid(mu: Tensor, sigma: Tensor) -> tuple[Tensor, Tensor]:
    """Nodes and weights for integrals of laws of counts over positive significances.

    Where many labels overlap, their count varies with the root of their number only, so that most of their
    knots are not needed: pieces are cut at equal lengths of a path, see `_lengths`.
    """
    if mu.shape[-1] <= _FEW:
        return _grid(_knots(mu, sigma).clamp(min=0.0))
    knots = _knots(mu, sigma, _REACH).clamp(min=0.0).sort(-1).values
    lengths = _lengths(knots, mu.detach(), sigma.detach())
    pieces = max(1, math.ceil(lengths[:, -1].amax())) if len(mu) else 1
    wanted = torch.linspace(0.0, 1.0, pieces + 1, dtype=mu.dtype, device=mu.device) * lengths[:, -1:]
    after = torch.searchsorted(lengths, wanted).clamp(1, knots.shape[-1] - 1)
    low, high = lengths.gather(-1, after - 1), lengths.gather(-1, after)
    start, end = knots.gather(-1, after - 1), knots.gather(-1, after)
    share = torch.where(high > low, (wanted - low) / (high - low), 0.0)
    return _nodes(start + share * (end - start))


def _lengths(knots: Tensor, mu: Tensor, sigma: Tensor) -> Tensor:
    """How far the integrands have come at each knot, in pieces of a grid.

    A label alone moves by a piece every `_STEP` sigmas; independent ones add like the sides of a box. Just
    above zero, where hardly anything is below, the count is a Poisson variable: the root of its mean moves.
    """
    widths = knots.diff(dim=-1).unsqueeze(-1)
    moved, counted = torch.zeros_like(widths[..., 0]), torch.zeros_like(knots)
    step = max(1, 16 * _BLOCK // max(1, knots.numel()))
    for some_mu, some_sigma in zip(*(torch.split(part.unsqueeze(1), step, -1) for part in (mu, sigma))):
        z = (knots.unsqueeze(-1) - some_mu) / some_sigma
        inside = (z[:, 1:] + z[:, :-1]).abs() < 2.0 * _REACH
        moved += torch.where(inside, widths / (_STEP * some_sigma), 0.0).square().sum(-1)
        counted += (torch.special.ndtr(z) - torch.special.ndtr(-some_mu / some_sigma)).clamp(min=0.0).sum(-1)
    return pad((moved.sqrt() + counted.sqrt().diff(dim=-1).clamp(min=0.0)).cumsum(-1), (1, 0))


def slices(nodes: Tensor, weights: Tensor, labels: int) -> Iterator[tuple[Tensor, Tensor]]:
    """A grid [N, M] as runs of neighbouring nodes, so few that a block [N, nodes, labels] is small."""
    step = max(1, _BLOCK // max(1, len(nodes) * labels))
    yield from zip(torch.split(nodes, step, 1), torch.split(weights, step, 1))


def _knots(mu: Tensor, sigma: Tensor, reach: float = _KNOTS[-1]) -> Tensor:
    # Detached: with fixed nodes the derivative of the sum is the sum of the derivatives.
    mu, sigma = mu.detach(), sigma.detach()
    steps = torch.tensor((-reach, *_KNOTS[1:-1], reach), dtype=mu.dtype, device=mu.device)
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
    return _nodes(ends[:, empty:])


def _nodes(ends: Tensor) -> tuple[Tensor, Tensor]:
    widths = ends.diff(dim=-1).unsqueeze(-1)
    places, weights = (part.to(ends.device) for part in _gauss_legendre())
    nodes = ends[:, :-1].unsqueeze(-1) + widths * places
    return nodes.flatten(1), (widths * weights).flatten(1)


def add_leave_one_out_counts(total: Tensor, weights: Tensor, probabilities: Tensor) -> None:
    r"""Add weighted laws of the number of successes among all trials but one.

    Parameters
    ----------
    total : Tensor [N, K, K]
        Entry [u, j] is given the probability of j successes among the trials other than u.
    weights, probabilities : Tensor [N, M, K]
        Weights of M experiments, and the success probabilities of their K independent trials.

    Notes
    -----
    Trial u is taken out of the law f of all trials by solving f(j) = (1-p) g(j) + p g(j-1), upwards where
    p <= 1/2 and downwards where it is larger: both recursions shrink their rounding errors. Only labels with
    a weight and counts with a probability take part, which in a run of neighbouring nodes are few.
    """
    law = _all_counts(probabilities)
    counts = (law.detach() > _NOTHING).flatten(0, -2).any(0).nonzero()
    labels = (weights.detach() > _NOTHING).flatten(0, -2).any(0).nonzero().squeeze(-1)
    if not len(labels):
        return
    low, high = max(0, int(counts[0]) - 1), min(law.shape[-1] - 1, int(counts[-1]) + 1)
    p, weights = probabilities[..., labels], weights[..., labels]
    small = p <= 0.5
    larger = torch.where(small, 1.0 - p, p)
    ratio = (1.0 - larger) / larger
    both = torch.stack([torch.where(small, weights, 0.0), torch.where(small, 0.0, weights)]) / larger
    columns = law[..., low : high + 1].unsqueeze(-2).unbind(-1)
    one = torch.zeros_like(p)
    # Allocated at once: small sums kept between large blocks that are freed leave the memory in pieces.
    sums = both.new_empty(len(columns) - 1, *both.sum(2).shape)
    for place, (first, last) in enumerate(zip(columns[:-1], columns[:0:-1])):
        one = torch.addcmul(torch.where(small, first, last), ratio, one, value=-1.0)
        sums[place] = (both * one).sum(2)
    upward, downward = sums.movedim(0, -1)
    total[..., low:high].index_add_(1, labels, upward + downward.flip(-1))


def _all_counts(probabilities: Tensor) -> Tensor:
    """Law [..., K + 1] of the number of successes among K trials."""
    trials = probabilities.shape[-1]
    size = min(_GROUP, trials)
    padded = pad(probabilities, (0, -trials % size))
    groups = padded.reshape(*padded.shape[:-1], padded.shape[-1] // size, size)
    law = torch.ones_like(groups[..., :1])
    for trial in range(size):
        p = groups[..., trial : trial + 1]
        law = pad(law * (1.0 - p), (0, 1)) + pad(law * p, (1, 0))
    if law.shape[-2] == 1:
        return law.squeeze(-2)
    length = 1 << trials.bit_length()
    joined: Tensor = torch.fft.irfft(torch.fft.rfft(law, length).prod(-2), length)
    return joined[..., : trials + 1].clamp(min=0.0)

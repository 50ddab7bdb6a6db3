"""Counts shared by the metrics: positions, ties, concordant pairs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor

from gaussianmlr.metrics._inputs import Batch, Input, Reduction, Result, Values, read, reduce

BLOCK = 1 << 20  # cells [instance, label] at a time: temporaries take some tens of megabytes
COMPARISONS = 1 << 19  # pairs (positive, label) at a time: they fit in the cache
NOBODY = torch.iinfo(torch.int64).max


class Tally(NamedTuple):
    """Per label, the numbers of counted labels with a smaller and with the same value."""

    below: Tensor
    same: Tensor

    @property
    def middle(self) -> Tensor:
        """Positions in ascending order; tied labels share the mean of their positions."""
        return self.below + (self.same + 1) / 2


class PairCounts(NamedTuple):
    """Per instance, the numbers of truly ordered, of concordant and of discordant pairs."""

    ordered: Tensor
    concordant: Tensor
    discordant: Tensor


class Instances:
    """A block of instances; counts are computed on first use and cached."""

    def __init__(self, scores: Tensor, ranks: Tensor, predicted: Tensor | None = None) -> None:
        self.scores = scores.double()
        self.ranks = ranks
        self.predicted_ranks = predicted

    @cached_property
    def known(self) -> Tensor:
        return self.ranks >= 0

    @cached_property
    def counted(self) -> Tensor:
        """Number of known labels per instance."""
        return self.known.sum(1).double()

    @cached_property
    def pairs_in_all(self) -> Tensor:
        return self.counted * (self.counted - 1) / 2

    @cached_property
    def relevant(self) -> Tensor:
        return self.ranks > 0

    @cached_property
    def accepted(self) -> Tensor:
        """Known labels predicted relevant."""
        return (self.scores > 0) & self.known

    @cached_property
    def claimed(self) -> Tensor:
        """Scores as an order: labels not predicted relevant tie at zero. Or ranks with predicted ties."""
        return self.scores.clamp(min=0) if self.predicted_ranks is None else self.predicted_ranks.double()

    @cached_property
    def predicted(self) -> Tally:
        return tally(groups(self.claimed), self.known)

    @cached_property
    def true(self) -> Tally:
        return tally(groups(self.ranks), self.known)

    @cached_property
    def raw_groups(self) -> Tensor:
        return groups(self.scores)

    @cached_property
    def pairs(self) -> PairCounts:
        return compare(self.claimed, self.ranks, self.known)

    @cached_property
    def first(self) -> Tensor:
        """True rank of the known label with the largest raw score, the first of several."""
        largest = self.scores.masked_fill(~self.known, -torch.inf).amax(1, keepdim=True)
        # comparing again excludes unknown labels if every known score is -inf
        place = ((self.scores == largest) & self.known).long().argmax(1, keepdim=True)
        return self.ranks.gather(1, place).squeeze(1)

    def values(self, values: Tensor) -> Values:
        """Values with a weight of 1 for every instance with a known label."""
        weights = (self.counted > 0).double()
        return Values(values * weights, weights)


def groups(values: Tensor) -> Tensor:
    """Number the distinct values of each row in ascending order, 0, 1, 2, ..."""
    ordered, order = values.sort(dim=1)
    new = torch.zeros_like(order)
    new[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    return torch.empty_like(order).scatter_(1, order, new.cumsum(1))


def tally(group: Tensor, counted: Tensor) -> Tally:
    """Count the marked labels below and tied with each label, in the time of a sort instead of K^2."""
    size = torch.zeros(group.shape, dtype=torch.float64, device=group.device)
    size.scatter_add_(1, group, counted.double())
    below = size.cumsum(1) - size
    return Tally(below.gather(1, group), size.gather(1, group))


def untied_pairs(found: Tally, counted: Tensor) -> Tensor:
    """Pairs of marked labels whose values differ."""
    others = counted.sum(1, keepdim=True) - found.same
    return (others * counted).sum(1) / 2


def compare(values: Tensor, ranks: Tensor, among: Tensor) -> PairCounts:
    """Compare predicted and true order of every truly ordered pair of the marked labels.

    The upper label of such a pair is a positive, so positives are compared with all labels in blocks:
    time is proportional to P * K and memory is bounded.
    """
    rank_of_lower = torch.where(among, ranks, NOBODY)  # a label that is left out is below no other
    row, label = (among & (ranks > 0)).nonzero(as_tuple=True)
    counts = torch.zeros(3, len(ranks), dtype=torch.int64, device=ranks.device)
    step = max(1, COMPARISONS // ranks.shape[1])
    for rows, labels in zip(torch.split(row, step), torch.split(label, step)):
        below = rank_of_lower[rows] < ranks[rows, labels, None]
        mine, others = values[rows, labels, None], values[rows]
        found = (below, below & (others < mine), below & (others > mine))
        counts.index_add_(1, rows, torch.stack([pairs.sum(1) for pairs in found]))
    ordered, concordant, discordant = counts.double().unbind()
    return PairCounts(ordered, concordant, discordant)


def ordered_pairs(ranks: Tensor) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Every truly ordered pair of known labels as (row, upper, lower), block by block, sorted.

    The upper label is a positive, so time is proportional to P * K and memory is bounded.
    """
    row, label = (ranks > 0).nonzero(as_tuple=True)
    step = max(1, COMPARISONS // max(1, ranks.shape[1]))
    for rows, uppers in zip(torch.split(row, step), torch.split(label, step)):
        others = ranks[rows]
        place, lower = ((others < ranks[rows, uppers, None]) & (others >= 0)).nonzero(as_tuple=True)
        yield rows[place], uppers[place], lower


def tied_pairs(ranks: Tensor) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Every tied pair of relevant labels once, as `ordered_pairs` gives the ordered ones."""
    row, label = (ranks > 0).nonzero(as_tuple=True)
    step = max(1, COMPARISONS // max(1, ranks.shape[1]))
    places = torch.arange(ranks.shape[1], device=ranks.device)
    for rows, firsts in zip(torch.split(row, step), torch.split(label, step)):
        alike = (ranks[rows] == ranks[rows, firsts, None]) & (places > firsts[:, None])
        place, second = alike.nonzero(as_tuple=True)
        yield rows[place], firsts[place], second


def blocks(batch: Batch) -> Iterator[Instances]:
    """Blocks of instances, so that memory does not grow with N; one empty block for N = 0."""
    rows = max(1, BLOCK // batch.ranks.shape[1])
    parts = [
        torch.split(part, rows) for part in (batch.scores, batch.ranks, batch.predicted) if part is not None
    ]
    for some in zip(*parts):
        yield Instances(*some)


def per_instance(
    core: Callable[[Instances], Values], scores: Input, ranks: Input, reduction: Reduction
) -> Result:
    """Check inputs, compute values block by block, reduce."""
    batch = read(scores, ranks)
    found = [core(block) for block in blocks(batch)]
    joined = Values(torch.cat([part.values for part in found]), torch.cat([part.weights for part in found]))
    return reduce(joined, reduction, batch.home)

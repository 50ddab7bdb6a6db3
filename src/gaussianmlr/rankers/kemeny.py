"""Exact Kemeny consensus: dynamic programming over the sets of labels placed so far.

The best order of a set of labels is the best order of a subset with the others as its last bucket; labels
that are never placed are irrelevant. There are 3^K pairs of a set and a last bucket, processed for all
instances at once. Costs are doubled, so half points are integers and comparisons are exact.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from gaussianmlr.orders.reading import UNKNOWN, IntArray

BoolArray = npt.NDArray[np.bool_]


def nearest_orders(table: IntArray) -> IntArray:
    """The nearest order of each instance's rankers [N, R, K], as ranks [N, K]."""
    above, tied, seen = _pair_costs(table)
    count, labels = len(table), table.shape[2]
    sets = 1 << labels
    unit = labels + 1  # cost first, then fewest buckets, then fewest irrelevant labels, in one number
    together = _costs_together(tied[:labels, :labels]) * unit * unit
    above = above * unit * unit
    best = np.full((sets, count), np.iinfo(np.int64).max)
    best[0] = 0
    last = np.zeros((sets, count), dtype=np.int64)  # the last bucket of the best order of each set
    total = np.empty((sets, count), dtype=np.int64)
    for placed in range(sets):  # every subset of a set has a smaller number, so best[placed] is final
        inside = [label for label in range(labels) if placed >> label & 1]
        outside = [label for label in range(labels) if not placed >> label & 1]
        below = above[inside][:, outside].sum(axis=0)  # [outside, N]
        bucket, cost = _subsets(outside, below)
        cost += together[bucket] + best[placed]
        virtual = above[inside, labels].sum(axis=0) + above[labels, outside].sum(axis=0)
        total[placed] = cost[-1] + virtual + len(outside)  # all the rest is irrelevant
        bucket, cost = bucket[1:], cost[1:] + unit
        reached = placed | bucket
        better = cost < best[reached]
        best[reached] = np.where(better, cost, best[reached])
        last[reached] = np.where(better, bucket[:, None], last[reached])
    return np.where(seen, _read_back(total.argmin(axis=0), last, labels), UNKNOWN)


def _pair_costs(table: IntArray) -> tuple[IntArray, IntArray, BoolArray]:
    """Twice the cost of u above v and of u tied with v [K + 1, K + 1, N], and which labels are known."""
    known = np.concatenate([table >= 0, (table >= 0).any(axis=-1, keepdims=True)], axis=-1)
    heights = np.concatenate([2 * table, np.ones_like(table[..., :1])], axis=-1)
    both = known[..., :, None] & known[..., None, :]
    difference = np.where(both, np.sign(heights[..., :, None] - heights[..., None, :]), 0)
    lost = (difference < 0).sum(axis=1)
    tied = (both & (difference == 0)).sum(axis=1)
    above = np.moveaxis(2 * lost + tied, 0, -1).astype(np.int64)
    beside = np.moveaxis(lost + lost.swapaxes(1, 2), 0, -1).astype(np.int64)
    seen: BoolArray = np.any(table >= 0, axis=1)
    return above, beside, seen


def _costs_together(tied: IntArray) -> IntArray:
    """The cost of every set of labels as one bucket [2^K, N]."""
    labels, _, count = tied.shape
    costs = np.zeros((1 << labels, count), dtype=np.int64)
    for label in range(labels):
        size = 1 << label
        _, joining = _subsets(list(range(label)), tied[label, :label])
        costs[size : 2 * size] = costs[:size] + joining
    return costs


def _subsets(members: list[int], weights: IntArray) -> tuple[IntArray, IntArray]:
    """Every subset of the members as a bit set [2^M], and its summed weight [2^M, N]."""
    sets = np.zeros(1 << len(members), dtype=np.int64)
    sums = np.zeros((len(sets), weights.shape[-1]), dtype=np.int64)
    for number, member in enumerate(members):
        size = 1 << number
        sets[size : 2 * size] = sets[:size] | 1 << member
        sums[size : 2 * size] = sums[:size] + weights[number]
    return sets, sums


def _read_back(chosen: IntArray, last: IntArray, labels: int) -> IntArray:
    """Ranks from the chosen sets of relevant labels: their last bucket has rank 1, and so on up."""
    ranks = np.zeros((len(chosen), labels), dtype=np.int64)
    rest, rank = chosen.copy(), 0
    while rest.any():
        rank += 1
        bucket = last[rest, np.arange(len(rest))]
        ranks[(bucket[:, None] >> np.arange(labels) & 1) == 1] = rank
        rest ^= bucket
    return ranks

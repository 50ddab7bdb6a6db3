"""Slow, obvious versions of the metrics and of the aggregations, to test against."""

import itertools
import math
from fractions import Fraction

import numpy as np


def known_rows(scores, ranks):
    """Each instance with its unknown labels removed."""
    for score, rank in zip(np.asarray(scores, dtype=float), np.asarray(ranks)):
        yield score[rank >= 0], rank[rank >= 0]


def claimed(score):
    return np.where(score > 0, score, 0.0)


def pair_counts(a, b):
    """Concordant, discordant, all, tied in a, tied in b: a double loop over pairs."""
    c = d = n0 = n1 = n2 = 0
    for i, j in itertools.combinations(range(len(a)), 2):
        n0 += 1
        n1 += a[i] == a[j]
        n2 += b[i] == b[j]
        if a[i] != a[j] and b[i] != b[j]:
            c += (a[i] > a[j]) == (b[i] > b[j])
            d += (a[i] > a[j]) != (b[i] > b[j])
    return c, d, n0, n1, n2


def tau_b(score, rank):
    c, d, n0, n1, n2 = pair_counts(claimed(score), rank)
    return (c - d) / math.sqrt((n0 - n1) * (n0 - n2)) if n1 < n0 > n2 else 0.0


def tau_a(score, rank):
    c, d, n0, _, _ = pair_counts(claimed(score), rank)
    return (c - d) / n0 if n0 else 0.0


def gamma(score, rank):
    c, d, *_ = pair_counts(claimed(score), rank)
    return (c - d) / (c + d) if c + d else 0.0


def midranks(values):
    return [sum(w < v for w in values) + (sum(w == v for w in values) + 1) / 2 for v in values]


def rho_untied(score, rank):
    a, b, n = midranks(claimed(score)), midranks(rank), len(rank)
    if len(set(a)) < 2 or len(set(b)) < 2:
        return 0.0
    return 1 - 6 * sum((x - y) ** 2 for x, y in zip(a, b)) / (n * (n * n - 1))


def positives_tau(score, rank):
    """The value, or None where no two positives are ordered."""
    score, rank = score[rank > 0], rank[rank > 0]
    if len(set(rank)) < 2:
        return None
    c, d, n0, n1, n2 = pair_counts(score, rank)
    return (c - d) / math.sqrt((n0 - n1) * (n0 - n2)) if n1 < n0 else 0.0


def buckets(values):
    """A bucket order as text would show it: sets of labels, the largest value first, and the rest."""
    levels = sorted({v for v in values if v > 0}, reverse=True)
    return [{i for i, v in enumerate(values) if v == level} for level in levels]


def exact_match(score, rank):
    return float(buckets(score) == buckets(rank))


def max1(score, rank):
    best = max(range(len(score)), key=lambda i: score[i])  # max keeps the first
    return float(rank[best] <= 0)


def top1(score, rank):
    best = max(range(len(score)), key=lambda i: score[i])
    return float(rank[best] > 0 and all(rank[best] >= other for other in rank))


def all_bucket_orders(labels):
    """Every way to put labels into ordered, non-empty buckets."""
    if not labels:
        yield []
        return
    for size in range(1, len(labels) + 1):
        for first in itertools.combinations(labels, size):
            rest = [label for label in labels if label not in first]
            for tail in all_bucket_orders(rest):
                yield [set(first), *tail]


def all_rank_rows(labels):
    """Every row of dense ranks: a set of relevant labels and a bucket order of it."""
    for size in range(labels + 1):
        for relevant in itertools.combinations(range(labels), size):
            for order in all_bucket_orders(list(relevant)):
                row = [0] * labels
                for height, bucket in enumerate(reversed(order), 1):
                    for label in bucket:
                        row[label] = height
                yield row


def sign(value):
    return (value > 0) - (value < 0)


def distance(row, other):
    """Generalised Kendall distance with the virtual label as an element (worth 1/2 between 0 and 1)."""
    a, b, total = [*row, 0.5], [*other, 0.5], 0.0
    for i, j in itertools.combinations(range(len(a)), 2):
        if -1 in (a[i], a[j], b[i], b[j]):
            continue
        x, y = sign(a[i] - a[j]), sign(b[i] - b[j])
        total += 1.0 if x * y < 0 else 0.5 * (x != y)
    return total


def present(rankers):
    return [row for row in rankers if any(rank >= 0 for rank in row)]


def position(row, label):
    """The position of a label among its ranker's, exactly; None where unknown."""
    relevant = [rank for rank in row if rank > 0]
    if row[label] < 0:
        return None
    if row[label] == 0:
        return Fraction(len(relevant) + 2)
    above = sum(rank > row[label] for rank in relevant)
    tied = sum(rank == row[label] for rank in relevant)
    return above + Fraction(tied + 1, 2)


def points(row, label):
    """Labels beaten and half of those tied, the virtual label among them; unknown ones count as tied."""
    if label is not None and row[label] < 0:
        return None
    mine = 0.5 if label is None else row[label]
    others = [rank for other, rank in enumerate(row) if other != label]
    others += [] if label is None else [0.5]
    return sum(Fraction(1, 2) if rank in (-1, mine) else Fraction(int(rank < mine)) for rank in others)


def mean(values):
    values = [value for value in values if value is not None]
    return sum(values, Fraction(0)) / len(values) if values else None


def to_row(heights, virtual):
    """Dense ranks of the labels that are not below the virtual one; None is unknown."""
    levels = sorted({h for h in heights if h is not None and h >= virtual})
    return [-1 if h is None else levels.index(h) + 1 if h >= virtual else 0 for h in heights]


def mean_rank_row(rankers):
    rankers = present(rankers)
    labels = range(len(rankers[0])) if rankers else []
    heights = [mean(position(row, label) for row in rankers) for label in labels]
    virtual = mean(Fraction(sum(rank > 0 for rank in row) + 1) for row in rankers)
    return to_row([None if h is None else -h for h in heights], -virtual)


def borda_row(rankers):
    rankers = present(rankers)
    heights = [mean(points(row, label) for row in rankers) for label in range(len(rankers[0]))]
    return to_row(heights, mean(points(row, None) for row in rankers))

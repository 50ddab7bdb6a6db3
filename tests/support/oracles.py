"""Slow, exact, obvious versions to test against: plain loops over labels and pairs."""

import math

from scipy.special import log_ndtr


def softplus(x):
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))


def supervised(ranks, supervision):
    return [min(rank, 1) for rank in ranks] if supervision == "weak" else list(ranks)


def ordered_pairs(ranks):
    return [(u, v) for u in range(len(ranks)) for v in range(len(ranks)) if ranks[u] > ranks[v] >= 0]


def mean(values):
    return sum(values) / len(values) if values else 0.0


def pair_weight(u, v, ranks, weights, order, virtual=False):
    """The product, times `order` where both are relevant; a virtual label, the last, has weight one."""
    if weights is None:
        return 1.0
    each = [*weights, 1.0]
    real = not virtual or len(weights) not in (u, v)
    return each[u] * each[v] * (order if real and ranks[u] > 0 and ranks[v] > 0 else 1.0)


def label_weight(u, weights):
    return 1.0 if weights is None else [*weights, 1.0][u]


def gmlr(mu, logvar, ranks, supervision, weights=None, order=1.0, total=None):
    ranks = supervised(ranks, supervision)
    relevance = [
        -label_weight(u, weights) * log_ndtr((1 if rank > 0 else -1) * m / math.exp(lv / 2))
        for u, (m, lv, rank) in enumerate(zip(mu, logvar, ranks))
        if rank >= 0
    ]
    pairs = [
        -pair_weight(u, v, ranks, weights, order)
        * log_ndtr((mu[u] - mu[v]) / math.sqrt(math.exp(logvar[u]) + math.exp(logvar[v])))
        for u, v in ordered_pairs(ranks)
    ]
    total = total or mean
    return total(relevance) + total(pairs)


def gmlr_comparisons(mu, logvar, ranks, supervision, weights=None, order=1.0):
    return gmlr(mu, logvar, ranks, supervision, weights, order, total=sum)


def binary_relevance(scores, ranks, supervision="weak", weights=None, order=1.0):
    return mean(
        [
            label_weight(u, weights) * softplus(-s if rank > 0 else s)
            for u, (s, rank) in enumerate(zip(scores, ranks))
            if rank >= 0
        ]
    )


def ranknet(scores, ranks, supervision, weights=None, order=1.0):
    ranks = supervised(ranks, supervision)
    pairs = [
        pair_weight(u, v, ranks, weights, order) * softplus(scores[v] - scores[u])
        for u, v in ordered_pairs(ranks)
    ]
    return binary_relevance(scores, ranks, weights=weights) + mean(pairs)


def lsep(scores, ranks, supervision, weights=None, order=1.0, virtual=False):
    ranks = supervised(ranks, supervision)
    terms = [
        pair_weight(u, v, ranks, weights, order, virtual) * math.exp(scores[v] - scores[u])
        for u, v in ordered_pairs(ranks)
    ]
    return math.log(1 + sum(terms))


def lsep_threshold(scores, thresholds, ranks, supervision="weak", weights=None, order=1.0):
    margins = [f - g for f, g in zip(scores, thresholds)]
    return sum(
        label_weight(u, weights) * softplus(-m if rank > 0 else m)
        for u, (m, rank) in enumerate(zip(margins, ranks))
        if rank >= 0
    )


def with_virtual_label(ranks):
    return [rank + 1 if rank > 0 else rank for rank in ranks] + [1]


def zlpr(scores, ranks, supervision, weights=None, order=1.0):
    ranks = with_virtual_label(supervised(ranks, supervision))
    return lsep([*scores, 0.0], ranks, "strong", weights, order, virtual=True)


def plackett_luce(scores, ranks, supervision, weights=None, order=1.0):
    ranks, scores = with_virtual_label(supervised(ranks, supervision)), [*scores, 0.0]
    total = 0.0
    for u, rank in enumerate(ranks):
        if rank > 0:
            left = sum(math.exp(s) for s, other in zip(scores, ranks) if 0 <= other <= rank)
            total += label_weight(u, weights) * (math.log(left) - scores[u])
    return total


def crpc(pair_logits, ranks, supervision, weights=None, order=1.0, ties="skip"):
    ranks = with_virtual_label(supervised(ranks, supervision))
    total, logits = 0.0, iter(pair_logits)
    for u in range(len(ranks)):
        for v in range(u + 1, len(ranks)):
            logit = next(logits)
            if min(ranks[u], ranks[v]) >= 0 and (ties == "losses" or ranks[u] != ranks[v]):
                weight = pair_weight(u, v, ranks, weights, order, virtual=True)
                total += weight * softplus(-logit if ranks[u] > ranks[v] else logit)
    return total


def crpc_votes(pair_logits, labels, published=False):
    """Votes of each label minus those of the virtual label."""
    votes, logits = [0.0] * (labels + 1), iter(pair_logits)
    for u in range(labels + 1):
        for v in range(u + 1, labels + 1):
            p = 1 / (1 + math.exp(-next(logits)))
            if published:
                votes[u if p > 0.5 else v] += p
            else:
                votes[u] += p
                votes[v] += 1 - p
    return [vote - votes[-1] for vote in votes[:-1]]

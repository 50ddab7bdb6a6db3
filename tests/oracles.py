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


def gmlr(mu, logvar, ranks, supervision):
    ranks = supervised(ranks, supervision)
    relevance = [
        -log_ndtr((1 if rank > 0 else -1) * m / math.exp(lv / 2))
        for m, lv, rank in zip(mu, logvar, ranks)
        if rank >= 0
    ]
    order = [
        -log_ndtr((mu[u] - mu[v]) / math.sqrt(math.exp(logvar[u]) + math.exp(logvar[v])))
        for u, v in ordered_pairs(ranks)
    ]
    return mean(relevance) + mean(order)


def binary_relevance(scores, ranks, supervision="weak"):
    return mean([softplus(-s if rank > 0 else s) for s, rank in zip(scores, ranks) if rank >= 0])


def ranknet(scores, ranks, supervision):
    ranks = supervised(ranks, supervision)
    order = [softplus(scores[v] - scores[u]) for u, v in ordered_pairs(ranks)]
    return binary_relevance(scores, ranks) + mean(order)


def lsep(scores, ranks, supervision):
    ranks = supervised(ranks, supervision)
    return math.log(1 + sum(math.exp(scores[v] - scores[u]) for u, v in ordered_pairs(ranks)))


def lsep_threshold(scores, thresholds, ranks, supervision="weak"):
    margins = [f - g for f, g in zip(scores, thresholds)]
    return sum(softplus(-m if rank > 0 else m) for m, rank in zip(margins, ranks) if rank >= 0)


def with_virtual_label(ranks):
    return [rank + 1 if rank > 0 else rank for rank in ranks] + [1]


def zlpr(scores, ranks, supervision):
    return lsep([*scores, 0.0], with_virtual_label(supervised(ranks, supervision)), "strong")


def plackett_luce(scores, ranks, supervision):
    ranks, scores = with_virtual_label(supervised(ranks, supervision)), [*scores, 0.0]
    total = 0.0
    for u, rank in enumerate(ranks):
        if rank > 0:
            left = sum(math.exp(s) for s, other in zip(scores, ranks) if 0 <= other <= rank)
            total += math.log(left) - scores[u]
    return total


def crpc(pair_logits, ranks, supervision):
    ranks = with_virtual_label(supervised(ranks, supervision))
    total, logits = 0.0, iter(pair_logits)
    for u in range(len(ranks)):
        for v in range(u + 1, len(ranks)):
            logit = next(logits)
            if min(ranks[u], ranks[v]) >= 0 and ranks[u] != ranks[v]:
                total += softplus(-logit if ranks[u] > ranks[v] else logit)
    return total


def crpc_votes(pair_logits, labels, published=False):
    """Votes of each label minus those of the virtual label."""
    votes, logits = [0.0] * (labels + 1), iter(pair_logits)
    for u in range(labels + 1):
        for v in range(u + 1, labels + 1):
            p = 1 / (1 + math.exp(-next(logits)))
            votes[u] += p
            votes[v] += p if published else 1 - p
    return [vote - votes[-1] for vote in votes[:-1]]

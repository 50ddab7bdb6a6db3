"""The mathematics of Gaussian significances, exact in both tails."""

from gaussianmlr.normal.gaussians import (
    RankInterval,
    Significance,
    canonical,
    checking,
    expected_rank,
    p_above,
    p_first,
    p_rank,
    p_relevant,
    partial_order,
    rank_interval,
)
from gaussianmlr.normal.tails import inverse_mills, log_cdf
from gaussianmlr.normal.ties import best_buckets, p_tie

__all__ = [
    "RankInterval",
    "Significance",
    "best_buckets",
    "canonical",
    "checking",
    "expected_rank",
    "inverse_mills",
    "log_cdf",
    "p_above",
    "p_first",
    "p_rank",
    "p_relevant",
    "p_tie",
    "partial_order",
    "rank_interval",
]

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

__all__ = [
    "RankInterval",
    "Significance",
    "canonical",
    "checking",
    "expected_rank",
    "inverse_mills",
    "log_cdf",
    "p_above",
    "p_first",
    "p_rank",
    "p_relevant",
    "partial_order",
    "rank_interval",
]

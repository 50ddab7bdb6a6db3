"""Orders of labels in all common forms, and ranks, their array form."""

from gaussianmlr.orders.convert import (
    Pairs,
    check_ranks,
    densify,
    from_positions,
    pairs,
    to_lists,
    to_positions,
    to_ranks,
    to_text,
    weak,
)
from gaussianmlr.orders.reading import IRRELEVANT, UNKNOWN, Ranks, check_labels
from gaussianmlr.orders.sparse import SparseRanks

__all__ = [
    "IRRELEVANT",
    "UNKNOWN",
    "Pairs",
    "Ranks",
    "SparseRanks",
    "check_labels",
    "check_ranks",
    "densify",
    "from_positions",
    "pairs",
    "to_lists",
    "to_positions",
    "to_ranks",
    "to_text",
    "weak",
]

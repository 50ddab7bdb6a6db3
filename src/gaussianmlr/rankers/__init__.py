"""One order from many rankers, and how well they agree."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gaussianmlr._utils.lazy import lazy_names
from gaussianmlr.rankers.aggregation import aggregate, borda, kemeny, mean_rank_ordering
from gaussianmlr.rankers.thurstone import Thurstone, reliability, thurstone

if TYPE_CHECKING:
    from gaussianmlr.rankers.agreements import Agreement, agreement

__all__ = [
    "Agreement",
    "Thurstone",
    "aggregate",
    "agreement",
    "borda",
    "kemeny",
    "mean_rank_ordering",
    "reliability",
    "thurstone",
]

# Metrics load torch, which aggregation does not need.
__getattr__, __dir__ = lazy_names(__name__, {"Agreement": "agreements", "agreement": "agreements"})

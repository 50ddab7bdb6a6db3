"""Numbers in label columns: ranks, grades above a threshold, or positions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gaussianmlr.data.dataset import FloatArray, IntArray
from gaussianmlr.data.problems import Problems
from gaussianmlr.data.readers.layout import Missing
from gaussianmlr.errors import DataError
from gaussianmlr.orders import UNKNOWN, densify, from_positions, to_ranks
from gaussianmlr.orders.convert import Unranked


@dataclass(frozen=True)
class Grading:
    """How numbers in label columns become orders; without a threshold they must be ranks, or positions."""

    threshold: float | None = None
    tolerance: float = 0.0
    missing: Missing = "error"
    positions: bool = False

    def __post_init__(self) -> None:
        if self.missing not in ("error", "unknown", "irrelevant"):
            raise DataError(f"missing is 'error', 'unknown' or 'irrelevant', not {self.missing!r}")
        if self.threshold is not None and not np.isfinite(self.threshold):
            raise DataError(f"threshold is {self.threshold}; expected a finite number")
        if not (np.isfinite(self.tolerance) and self.tolerance >= 0):
            raise DataError(f"tolerance is {self.tolerance}; expected a finite number >= 0")
        if self.tolerance and self.threshold is None:
            raise DataError(
                f"a tolerance of {self.tolerance} is for grades; give a threshold too, such as threshold=0"
            )
        if self.positions and self.threshold is not None:
            raise DataError("label columns are positions (1 = best) or grades (a threshold), not both")

    @property
    def gaps(self) -> bool:
        """Whether cells may be empty."""
        return self.positions or self.missing != "error"

    def ranks(self, values: Any) -> IntArray:
        """Ranks of [N, K] numbers."""
        if self.positions:
            places = np.asarray(values, dtype=np.float64)
            unranked: Unranked = "unknown" if self.missing == "unknown" else "irrelevant"
            return np.where(
                places == 0, 0, from_positions(np.where(places == 0, np.nan, places), unranked=unranked)
            )
        if self.threshold is None:
            if self.missing != "error":
                gap = UNKNOWN if self.missing == "unknown" else 0
                values = np.where(np.isnan(np.asarray(values, dtype=np.float64)), gap, values)
            return to_ranks(values).ranks
        return densify(values, threshold=self.threshold, tolerance=self.tolerance, missing=self.missing)


def like_positions(values: FloatArray) -> bool:
    """Whether each row holds 1 to m once each, besides zeros and gaps, and some row two or more."""
    ranked = ~np.isnan(values) & (values != 0)
    counts = ranked.sum(axis=1)
    if len(values) < 2 or not (counts > 1).any():
        return False
    ordered = np.sort(np.where(ranked, values, np.inf), axis=1)
    expected = np.where(
        np.arange(values.shape[1]) < counts[:, None], np.arange(1, values.shape[1] + 1), np.inf
    )
    return bool((ordered == expected).all())


def question_positions(values: FloatArray, problems: Problems) -> None:
    """Ask whether the numbers of label columns are positions."""
    message = (
        "every row holds 1, 2, 3, ... once each, as positions do; they are read as ranks: the largest number "
        "is the most significant label. If 1 is the best, say positions=True (--positions)"
    )
    if (values > 0).all():  # as ranks, every label would apply to every instance
        problems.add("order", "label columns", message, "warning")
    problems.notes.append(f"label columns: {message}")


def question_grades(values: FloatArray, problems: Problems) -> None:
    """Ask whether the numbers of label columns are grades, if by them every label applies everywhere."""
    if len(values) > 1 and values.shape[1] > 1 and (values > 0).all():
        problems.notes.append(
            "label columns: every number is above 0, so every label applies to every instance; if they are "
            "grades, such as stars, say threshold=2 (--threshold 2): labels with more than 2 apply"
        )

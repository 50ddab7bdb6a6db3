"""How well rankers agree with each other."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from gaussianmlr.errors import DataError
from gaussianmlr.metrics import evaluate, kendall_tau_b
from gaussianmlr.orders.reading import UNKNOWN, IntArray
from gaussianmlr.rankers.aggregation import Method, aggregate
from gaussianmlr.rankers.checking import check_ranks

__all__ = ["Agreement", "agreement"]


@dataclass(frozen=True, repr=False)
class Agreement:
    """How well rankers agree, as fractions.

    Attributes
    ----------
    against_rest : dict of float
        The paper's six metrics of one ranker against the aggregate of the others, mean over rankers.
    tau_b_of_ranker : tuple of float
        Tau-b of each ranker against the aggregate of the others; NaN for a ranker who shares no
        instance with another.
    pairwise_tau_b : float
        Mean tau-b between two rankers, over all pairs that share an instance.
    """

    against_rest: dict[str, float]
    tau_b_of_ranker: tuple[float, ...]
    pairwise_tau_b: float

    def __repr__(self) -> str:
        rest = ", ".join(f"{name} {value:.3f}" for name, value in self.against_rest.items())
        each = ", ".join("-" if np.isnan(value) else f"{value:.3f}" for value in self.tau_b_of_ranker)
        return (
            f"Agreement of {len(self.tau_b_of_ranker)} rankers\n"
            f"  one against the rest: {rest}\n"
            f"  tau_b of each ranker: {each}\n"
            f"  tau_b between two rankers: {self.pairwise_tau_b:.3f}"
        )


def agreement(ranks: npt.ArrayLike, method: Method = "mean_rank") -> Agreement:
    """Compare every ranker with the aggregate of the others, and all pairs of rankers.

    This is an upper bound for a model trained on their orders.

    Parameters
    ----------
    ranks : array-like [N, R, K]
        The ranks of at least two rankers; missing rankers are left out instance by instance.
    method : {"mean_rank", "borda", "kemeny", "thurstone"}
        How the others are aggregated.

    Returns
    -------
    Agreement

    Examples
    --------
    >>> agreement([[[2, 1, 0], [2, 1, 0], [1, 2, 0]]])
    Agreement of 3 rankers
      one against the rest: tau_b 0.655, spearman_rho 0.744, gamma 0.778, hamming_loss 0.000,
      max1_error 0.000, f1 1.000
      tau_b of each ranker: 0.816, 0.816, 0.333
      tau_b between two rankers: 0.556
    """
    table = check_ranks(ranks)
    count = table.shape[1]
    if count < 2:
        raise DataError(f"expected at least two rankers, got ranks of shape {list(table.shape)}")
    found: list[dict[str, float] | None] = []
    for ranker in range(count):
        rest = aggregate(np.delete(table, ranker, axis=1), method)
        found.append(_compare(table[:, ranker], rest, evaluate))
    pairs = [
        _compare(table[:, one], table[:, other], kendall_tau_b)
        for one, other in combinations(range(count), 2)
    ]
    shared = [scores for scores in found if scores is not None]
    if not shared:
        raise DataError("expected two rankers who know the same labels of an instance, got none")
    return Agreement(
        against_rest={name: _average(scores[name] for scores in shared) for name in shared[0]},
        tau_b_of_ranker=tuple(np.nan if scores is None else scores["tau_b"] for scores in found),
        pairwise_tau_b=_average(tau for tau in pairs if tau is not None),
    )


def _compare(one: IntArray, other: IntArray, metric: Callable[..., Any]) -> Any:
    """A metric on the labels known to both; None if there are none."""
    both = np.where(one >= 0, other, UNKNOWN)
    return metric(one, both) if (both >= 0).any() else None


def _average(values: Iterable[float]) -> float:
    return float(np.mean(list(values)))

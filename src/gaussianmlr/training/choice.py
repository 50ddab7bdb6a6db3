"""Network, trees or both: an inner validation decides, and says why."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from gaussianmlr.data.splits import shuffled_folds
from gaussianmlr.metrics import kendall_tau_b

__all__ = ["FEWEST", "KINDS", "Choice", "Kind", "choose", "judge", "singles"]

Kind = Literal["network", "trees", "both"]
KINDS: tuple[Kind, ...] = ("network", "trees", "both")
FEWEST = 40  # rows; with fewer, a choice would be chance
_FOLDS = 2
FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Choice:
    """The kind of model, and why.

    Attributes
    ----------
    kind : {"network", "trees", "both"}
        The kind.
    why : str
        The reason, for people.
    scores, standard_errors : dict
        Mean tau-b of each kind on rows that it was not trained on, and its standard error over rows; empty
        if nothing was compared.
    """

    kind: Kind
    why: str
    scores: dict[str, float] = field(default_factory=dict)
    standard_errors: dict[str, float] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """The fields by name."""
        return asdict(self)


def singles(kind: str) -> tuple[Kind, ...]:
    """The kinds that are trained for a kind.

    Examples
    --------
    >>> singles("both"), singles("trees")
    (('network', 'trees'), ('trees',))
    """
    return ("network", "trees") if kind == "both" else ("trees",) if kind == "trees" else ("network",)


def choose(
    outputs: Callable[[Kind, IntArray, IntArray], FloatArray],
    ranks: IntArray,
    *,
    members: int = 2,
    seed: int = 0,
    weights: FloatArray | None = None,
) -> Choice:
    """Train a network and trees on one half of the rows, and compare them on the other.

    With two members or more, the halves change places. So the choice costs, of each kind, half of its members
    at most; with both kinds trained afterwards, all costs at most three times the dearer kind.

    Parameters
    ----------
    outputs : callable
        Means [n, K] of a kind that was trained on some rows, for other rows.
    ranks : array [N, K]
        True ranks.
    members : int
        Number of members that will be trained afterwards.
    seed : int
        Seed of the halves.
    weights : array [N], optional
        Weights of rows.
    """
    if len(ranks) < FEWEST:
        return Choice("both", f"too few rows to compare network and trees: {len(ranks)}")
    folds = shuffled_folds(len(ranks), _FOLDS, seed)[: 1 if members < _FOLDS else _FOLDS]
    tested = np.concatenate([held for _, held in folds])
    means = {
        kind: np.concatenate([outputs(kind, kept, held) for kept, held in folds]) for kind in singles("both")
    }
    return judge(means, ranks[tested], None if weights is None else weights[tested])


def judge(means: Mapping[Kind, FloatArray], ranks: IntArray, weights: FloatArray | None = None) -> Choice:
    """The choice between a network, trees and the mean of both, by tau-b.

    A single kind is chosen if it is better than both together by more than one standard error of the paired
    differences; otherwise both are.

    Examples
    --------
    >>> ranks = np.tile([[2, 1, 0], [0, 1, 2]], (30, 1))
    >>> judge({"network": 9.0 - ranks, "trees": ranks - 0.5}, ranks).kind
    'trees'
    """
    scores = {**means, "both": (means["network"] + means["trees"]) / 2}
    each = {kind: kendall_tau_b(scores[kind], ranks, reduction="none") for kind in KINDS}
    known = (ranks >= 0).any(1).astype(np.float64)
    share = known if weights is None else known * weights
    share = share / max(share.sum(), 1e-12)

    def mean_and_error(values: FloatArray) -> tuple[float, float]:
        mean = float(values @ share)
        return mean, float(np.sqrt(((values - mean) ** 2) @ share**2))

    found = {kind: mean_and_error(np.asarray(values, np.float64)) for kind, values in each.items()}
    best: Kind = max(singles("both"), key=lambda kind: found[kind][0])
    ahead, noise = mean_and_error(np.asarray(each[best] - each["both"], np.float64))
    chosen: Kind = best if ahead > noise else "both"
    said = ", ".join(f"{kind} {100 * found[kind][0]:.1f}" for kind in KINDS)
    gap = f"{best} minus both: {100 * ahead:+.1f}, noise {100 * noise:.1f}"
    reason = f"{'more' if chosen == best else 'not more'} than noise ahead ({gap})"
    return Choice(
        chosen,
        f"tau-b on held-out halves: {said}; a single kind is {reason}; "
        f"model='{chosen}' skips this (--model {chosen})",
        {kind: found[kind][0] for kind in KINDS},
        {kind: found[kind][1] for kind in KINDS},
    )

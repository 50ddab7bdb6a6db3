"""Scorers for scikit-learn, by name: larger is better, for every one of the paper's six metrics.

==================  =================================================
name                value
==================  =================================================
`tau_b`             Kendall's tau-b
`spearman_rho`      Spearman's rho
`gamma`             Goodman and Kruskal's gamma
`neg_hamming_loss`  minus the Hamming loss
`neg_max1_error`    minus the share of wrong first labels
`f1`                micro F1
==================  =================================================
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gaussianmlr.errors import DataError
from gaussianmlr.estimators.targets import check_weights, read_truth
from gaussianmlr.metrics import evaluate, gamma, hamming_loss, kendall_tau_b, max1_error, spearman_rho

__all__ = ["RankingScorer", "available", "get_scorer", "get_scorers", "measure"]

_MEANS = {
    "tau_b": kendall_tau_b,
    "spearman_rho": spearman_rho,
    "gamma": gamma,
    "hamming_loss": hamming_loss,
    "max1_error": max1_error,
}
_LOSSES = ("hamming_loss", "max1_error")
_NAMES = {f"neg_{name}" if name in _LOSSES else name: name for name in (*_MEANS, "f1")}


@dataclass(frozen=True)
class RankingScorer:
    """A scorer as scikit-learn calls it, ``scorer(estimator, X, y, sample_weight=None)``.

    It needs an estimator with `decision_function`, whose zero is the threshold: those of this package,
    pipelines and searches that end in one, and your own. Orders as texts need the labels, too, as `classes_`.

    Parameters
    ----------
    name : str
        A name in `available`.

    Examples
    --------
    >>> from gaussianmlr import DummyRanker
    >>> ranker = DummyRanker().fit([[0.0], [1.0]], ["sky > sea", "sky > sea"])
    >>> RankingScorer("tau_b")(ranker, [[2.0]], ["sky > sea"])
    1.0
    """

    name: str

    def __call__(self, estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The score of a fitted estimator on data."""
        metric = _NAMES[self.name]
        ranks = read_truth(y, getattr(estimator, "classes_", None))
        value = measure(metric, np.asarray(estimator.decision_function(X)), ranks, sample_weight)
        return 0.0 - value if metric in _LOSSES else value  # never minus zero


def available() -> tuple[str, ...]:
    """Names of the scorers.

    Examples
    --------
    >>> available()
    ('tau_b', 'spearman_rho', 'gamma', 'neg_hamming_loss', 'neg_max1_error', 'f1')
    """
    return tuple(_NAMES)


def get_scorer(name: str) -> RankingScorer:
    """A scorer by name, for ``GridSearchCV(scoring=...)`` and its like.

    Examples
    --------
    >>> from sklearn.model_selection import cross_val_score
    >>> from gaussianmlr import DummyRanker
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], ["sky > sea", "sky", "sky > sea", "sky > sea"]
    >>> cross_val_score(DummyRanker(), X, y, scoring=get_scorer("neg_hamming_loss"), cv=2)
    array([-0.25,  0.  ])
    """
    if name not in _NAMES:
        hint = f"; did you mean 'neg_{name}'?" if f"neg_{name}" in _NAMES else ""
        raise DataError(f"no scorer {name!r}{hint or '; there are ' + ', '.join(_NAMES)}")
    return RankingScorer(name)


def get_scorers() -> dict[str, RankingScorer]:
    """All scorers, for a search that reports every metric and refits by one.

    Examples
    --------
    >>> list(get_scorers()) == list(available())
    True
    """
    return {name: RankingScorer(name) for name in _NAMES}


def measure(
    metric: str, scores: npt.NDArray[Any], ranks: npt.NDArray[np.int64], sample_weight: Any = None
) -> float:
    """One of the paper's six metrics, with instances weighted.

    Parameters
    ----------
    metric : str
        A key of `metrics.evaluate`.
    scores : array [N, K]
        Larger = more significant, above zero = relevant.
    ranks : array [N, K]
        The true ranks.
    sample_weight : array-like [N], optional
        How much each instance counts; instances without a known label never do.

    Examples
    --------
    >>> scores, ranks = np.array([[2.0, 1.0], [2.0, -1.0]]), np.array([[2, 1], [0, 1]])
    >>> measure("tau_b", scores, ranks), measure("tau_b", scores, ranks, [3, 1])
    (0.0, 0.5)
    """
    if sample_weight is None:
        return evaluate(scores, ranks)[metric]
    weights = check_weights(sample_weight, len(ranks))
    if metric != "f1":
        weights = weights * (ranks >= 0).any(axis=1)
        values = _MEANS[metric](scores, ranks, reduction="none")
        return float(values @ weights / weights.sum()) if weights.any() else 0.0
    accepted, relevant, known = scores > 0, ranks > 0, ranks >= 0
    hits = (accepted & relevant).sum(axis=1) @ weights
    misses = ((accepted != relevant) & known).sum(axis=1) @ weights
    return float(hits / (hits + misses / 2)) if hits else 0.0

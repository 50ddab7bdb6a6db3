"""How well scores follow a significance that is known: numbers of figures and of the film on a page."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["correlation", "follow_score", "rank_correlation"]

Floats = npt.NDArray[np.float64]


def correlation(x: Floats, y: Floats) -> float:
    """Pearson's correlation; 0 where one of the two does not change.

    Examples
    --------
    >>> round(correlation(np.arange(4.0), np.arange(4.0) ** 2), 4)
    0.9583
    """
    x, y = x - x.mean(), y - y.mean()
    size = np.sqrt((x**2).sum() * (y**2).sum())
    return float((x * y).sum() / size) if size > 0 else 0.0


def rank_correlation(x: Floats, y: Floats) -> float:
    """Spearman's correlation, ties at their mean rank.

    Examples
    --------
    >>> rank_correlation(np.arange(4.0), np.arange(4.0) ** 3)
    1.0
    """
    from scipy.stats import rankdata

    return correlation(rankdata(x), rankdata(y))


def follow_score(scores: Floats, significance: Floats) -> dict[str, float]:
    """How well scores [sequences, frames, 3] follow the true significances.

    Examples
    --------
    >>> truth = np.array([[[1.0, 2.0, 3.0], [2.0, 2.0, 2.0], [3.0, 2.0, 1.0]]])
    >>> follow_score(truth, truth)
    {'monotonicity': 1.0, 'linearity': 1.0, 'drift': 0.0}
    """
    monotonic, linear, drift = [], [], []
    for score, truth in zip(scores, significance):
        monotonic += [rank_correlation(score[:, place], truth[:, place]) for place in (0, 2)]
        linear += [correlation(score[:, place], truth[:, place]) for place in (0, 2)]
        reach = np.ptp(score[:, [0, 2]], axis=0).mean()
        drift.append(score[:, 1].std() / reach if reach > 0 else np.nan)
    return {
        "monotonicity": round(float(np.mean(monotonic)), 4),
        "linearity": round(float(np.mean(linear)), 4),
        "drift": round(float(np.nanmean(drift)) if not np.isnan(drift).all() else float("inf"), 4),
    }

"""How well scores follow a known significance."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["correlation", "follow_score", "follow_sigma", "overlap", "rank_correlation", "spread"]

Floats = npt.NDArray[np.float64]


def correlation(x: Floats, y: Floats) -> float:
    """Pearson's correlation; 0 if one of the two is constant.

    Examples
    --------
    >>> round(correlation(np.arange(4.0), np.arange(4.0) ** 2), 4)
    0.9583
    """
    x, y = x - x.mean(), y - y.mean()
    size = np.sqrt((x**2).sum() * (y**2).sum())
    return float((x * y).sum() / size) if size > 0 else 0.0


def rank_correlation(x: Floats, y: Floats) -> float:
    """Spearman's correlation; ties share their mean rank.

    Examples
    --------
    >>> rank_correlation(np.arange(4.0), np.arange(4.0) ** 3)
    1.0
    """
    from scipy.stats import rankdata

    return correlation(rankdata(x), rankdata(y))


def follow_score(scores: Floats, significance: Floats) -> dict[str, float | None]:
    """How well scores [sequences, frames, 3] follow the true significances.

    Drift is None if no score changes.

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
        "drift": None if np.isnan(drift).all() else round(float(np.nanmean(drift)), 4),
    }


def follow_sigma(sigma: Floats, significance: Floats) -> dict[str, float]:
    """How sigmas [sequences, frames, 3] relate to the true significances.

    ``follows`` is Spearman's correlation, ``low`` and ``high`` the variance of the changing digits at their
    smallest and largest significance, ``middle`` that of the constant digit.

    Examples
    --------
    >>> truth = np.array([[[1.0, 2.0, 3.0], [2.0, 2.0, 2.0], [3.0, 2.0, 1.0]]])
    >>> follow_sigma(truth, truth)
    {'follows': 1.0, 'low': 1.0, 'middle': 4.0, 'high': 9.0}
    """
    follows = [
        rank_correlation(one[:, place], truth[:, place])
        for one, truth in zip(sigma, significance)
        for place in (0, 2)
    ]
    variance = sigma**2
    return {
        "follows": round(float(np.mean(follows)), 4),
        "low": round(float((variance[:, 0, 0] + variance[:, -1, 2]).mean() / 2), 5),
        "middle": round(float(variance[:, :, 1].mean()), 5),
        "high": round(float((variance[:, -1, 0] + variance[:, 0, 2]).mean() / 2), 5),
    }


def overlap(mean: float, std: float, other_mean: float, other_std: float) -> float:
    """The area shared by two Gaussian densities.

    Examples
    --------
    >>> round(overlap(0.0, 1.0, 0.0, 1.0), 6), round(overlap(0.0, 1.0, 2.0, 1.0), 4)
    (1.0, 0.3173)
    """
    from scipy.stats import norm

    low = min(mean - 8 * std, other_mean - 8 * other_std)
    high = max(mean + 8 * std, other_mean + 8 * other_std)
    x = np.linspace(low, high, 20_001)
    return float(np.trapezoid(np.minimum(norm.pdf(x, mean, std), norm.pdf(x, other_mean, other_std)), x))


def spread(scores: Floats, significance: Floats) -> dict[str, Any]:
    """Gaussians fitted to scores [images, places], the overlap of neighbours, and linearity.

    Examples
    --------
    >>> found = spread(np.array([[0.0, 9.0], [1.0, 8.0]]), np.array([[1.0, 2.0], [1.0, 2.0]]))
    >>> found["means"], found["overlap"], found["linearity"]
    ([0.5, 8.5], 0.0, 0.9923)
    """
    means, stds = scores.mean(0), np.maximum(scores.std(0, ddof=1), 1e-12)
    shared = [overlap(means[i], stds[i], means[i + 1], stds[i + 1]) for i in range(len(means) - 1)]
    return {
        "means": [round(float(value), 4) for value in means],
        "stds": [round(float(value), 4) for value in stds],
        "medians": [round(float(value), 4) for value in np.median(scores, axis=0)],
        "overlaps": [round(value, 4) for value in shared],
        "overlap": round(float(np.mean(shared)), 4),
        "linearity": round(correlation(scores.ravel(), significance.ravel()), 4),
    }

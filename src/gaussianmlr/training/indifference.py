"""Thresholds of indifference of trees: those of the largest likelihood at given means."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from gaussianmlr.losses.boosting import Comparisons, Derivatives, gmlr_derivatives

__all__ = ["best_thresholds"]

FloatArray = npt.NDArray[np.float64]
_FIRST, _LEAST = 0.5, 1e-4  # where thresholds begin, and the smallest ones


def best_thresholds(means: FloatArray, comparisons: Comparisons, count: int, steps: int) -> FloatArray:
    """The best thresholds at these means, by so many Newton steps; one, or one per label.

    Examples
    --------
    >>> from gaussianmlr.losses.boosting import compare_all
    >>> comparisons = compare_all(np.array([[2, 1, 1], [1, 1, 2]]), ties=True)
    >>> best_thresholds(np.zeros((2, 3)), comparisons, 1, 20).shape
    (1,)
    """
    tau = np.full(count, _FIRST)
    for _ in range(steps):
        tau = _newton(tau, gmlr_derivatives(means, None, comparisons, tau))
    return tau


def _newton(tau: FloatArray, found: Derivatives) -> FloatArray:
    """Thresholds after a Newton step, at most half or double."""
    assert found.tau_gradient is not None
    assert found.tau_hessian is not None
    gradient, hessian = (part.sum(0) for part in (found.tau_gradient, found.tau_hessian))
    if len(tau) == 1:
        gradient, hessian = gradient.sum(keepdims=True), hessian.sum(keepdims=True)
    # The two labels of a pair bend as much together as each does alone.
    step = 0.5 * gradient / np.maximum(hessian, 1e-9)
    moved: FloatArray = np.clip(tau - step, np.maximum(0.5 * tau, _LEAST), 2.0 * tau + _LEAST)
    return moved

r"""Split-conformal calibration as pure functions: arrays in, arrays out.

Three predictions have one parameter each, a *limit* :math:`\lambda`: the larger it is, the more cautious
they are. Every calibration row has a loss in [0, 1] that never grows with the limit. Risk control picks

.. math:: \hat\lambda = \inf\Big\{\lambda: \frac{n}{n+1} \hat R_n(\lambda) + \frac{1}{n+1} \le \alpha\Big\},

where :math:`\hat R_n` is the mean loss of the n rows; then the expected loss of one more exchangeable row
is at most :math:`\alpha`, whatever the model. For a loss of 0 or 1 this is the split-conformal quantile.

All losses are sums of steps: a row's loss at a limit is the total weight of its scores above that limit. So
a sorted list of scores and weights is all that has to be kept.

References
----------
Vovk, Gammerman and Shafer (2005), Algorithmic learning in a random world. Springer.
Angelopoulos, Bates, Fisch, Lei and Schuster (2024), Conformal risk control. ICLR.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import log_ndtr, ndtr

from gaussianmlr._utils.arrays import BoolArray, FloatArray
from gaussianmlr.errors import DataError

__all__ = [
    "Curve",
    "Intervals",
    "Places",
    "Scores",
    "check_alpha",
    "expected_places",
    "least_rows",
    "place_intervals",
    "place_losses",
    "place_scores",
    "relevance_losses",
    "relevance_scores",
    "relevance_sets",
    "risk_curve",
    "stated",
    "statement_losses",
    "statement_scores",
    "true_places",
]

IntArray = npt.NDArray[np.int64]

LARGEST_ALPHA = 0.5
MOST_POINTS = 500  # of a curve; more rows than that move a limit by less than noise
LEAST_CHANCE = 0.5  # a statement needs more: otherwise u above v and v above u could both be made
_ROUNDING = 1e-5  # relative; predictions in single precision differ by less from one machine to another
_WHOLE = 1.0 / 12.0  # variance of rounding to a whole place
_NARROWEST = 1e-12  # of a variance that was 1 before truncation


class Scores(NamedTuple):
    """Steps of the losses of some calibration rows: their places, their heights, and the number of rows."""

    values: FloatArray
    weights: FloatArray
    rows: int

    @classmethod
    def join(cls, parts: list[Scores]) -> Scores:
        """The steps of several batches of rows."""
        values, weights = (np.concatenate([one[column] for one in parts]) for column in (0, 1))
        return cls(values, weights, sum(one.rows for one in parts))


class Intervals(NamedTuple):
    """First and last place, int arrays [N, K]; 1 is the most significant."""

    low: IntArray
    high: IntArray


class Places(NamedTuple):
    """Mean and standard deviation of the place of each label if it is relevant, float arrays [N, K]."""

    centre: FloatArray
    spread: FloatArray


@dataclass(frozen=True)
class Curve:
    """Limits, the total loss of the calibration rows at each of them, and the number of rows.

    Examples
    --------
    >>> curve = risk_curve(Scores(np.array([0.1, 0.2, 0.3, 0.4]), np.ones(4), 4), least=0.0)
    >>> curve.limit(0.4)  # of 5 rows, the new one among them, at most 2 may lie above
    0.3
    >>> curve.limit(0.1)
    Traceback (most recent call last):
        ...
    gaussianmlr.errors.DataError: alpha 0.1 needs at least 9 calibration rows, got 4
    """

    limits: tuple[float, ...]
    losses: tuple[float, ...]
    rows: int

    def limit(self, alpha: float, what: str = "calibration rows") -> float:
        """The smallest limit whose expected loss is at most `alpha`."""
        alpha = check_alpha(alpha)
        if self.rows < least_rows(alpha):
            raise DataError(f"alpha {alpha:g} needs at least {least_rows(alpha)} {what}, got {self.rows}")
        allowed = alpha * (self.rows + 1) - 1.0
        slack = 1e-9 * (self.rows + 1)  # sums of shares and products with alpha are rounded
        return next(one for one, loss in zip(self.limits, self.losses) if loss <= allowed + slack)


def check_alpha(alpha: float) -> float:
    """The level as a float, if it is one."""
    if isinstance(alpha, bool) or not isinstance(alpha, int | float | np.number):
        raise DataError(f"alpha is {alpha!r}; expected a number above 0 and up to {LARGEST_ALPHA}")
    if not 0.0 < alpha <= LARGEST_ALPHA:
        raise DataError(f"alpha is {alpha}; expected a number above 0 and up to {LARGEST_ALPHA}")
    return float(alpha)


def least_rows(alpha: float) -> int:
    """The number of calibration rows that a level needs.

    Examples
    --------
    >>> [least_rows(alpha) for alpha in (0.2, 0.1, 0.05, 0.01)]
    [4, 9, 19, 99]
    """
    return math.ceil(min(1.0 / alpha, 1e18) - 1e-9) - 1  # the least float above 0 has no finite inverse


def risk_curve(scores: Scores, least: float) -> Curve:
    """The total loss at every limit from `least` up where it changes, thinned towards caution.

    Parameters
    ----------
    scores : Scores
        Steps of the losses.
    least : float
        The least cautious limit.
    """
    order = np.argsort(scores.values, kind="stable")
    values, weights = scores.values[order], scores.weights[order]
    limits = np.unique(np.concatenate([[least], values[values > least]]))
    upto = np.concatenate([[0.0], np.cumsum(weights)])
    losses = np.maximum(0.0, upto[-1] - upto[np.searchsorted(values, limits, side="right")])
    losses[-1] = 0.0  # exactly
    kept = losses <= LARGEST_ALPHA * (scores.rows + 1)
    limits, losses = limits[kept], losses[kept]
    if len(limits) > MOST_POINTS:
        # A kept limit above the best one is valid, as no loss grows with the limit.
        wanted = np.linspace(losses[0], 0.0, MOST_POINTS)
        some = np.unique(np.searchsorted(-losses, -wanted).clip(max=len(limits) - 1))
        limits, losses = limits[some], losses[some]
    return Curve(tuple(limits.tolist()), tuple(losses.tolist()), scores.rows)


# Relevance sets: the labels whose probability is large enough. The limit is minus that probability.


def relevance_scores(p_relevant: FloatArray, ranks: IntArray) -> Scores:
    """One step per row: minus the smallest probability of a relevant label.

    Rows without a label that is known to be relevant are left out: any set holds all of none.

    Examples
    --------
    >>> relevance_scores(np.array([[0.9, 0.2, 0.7], [0.9, 0.2, 0.7]]), np.array([[1, 0, 2], [0, 0, -1]]))
    Scores(values=array([-0.7]), weights=array([1.]), rows=1)
    """
    relevant = ranks > 0
    lowest = np.where(relevant, p_relevant, np.inf).min(1)[relevant.any(1)]
    return Scores(-lowest, np.ones(len(lowest)), len(lowest))


def relevance_sets(p_relevant: FloatArray, limit: float) -> BoolArray:
    """Labels [N, K] that may be relevant."""
    found: BoolArray = p_relevant >= -limit * (1.0 - _ROUNDING)
    return found


def relevance_losses(sets: BoolArray, ranks: IntArray) -> FloatArray:
    """1 where a set lacks a relevant label, else 0; NaN for rows without one."""
    relevant = ranks > 0
    missed = (relevant & ~sets).any(1).astype(np.float64)
    return np.where(relevant.any(1), missed, np.nan)


# Places: expected place plus or minus some standard deviations. The limit is their number.


def true_places(ranks: IntArray) -> Intervals:
    """First and last possible place of each label: one more than the number of labels above it.

    Tied labels share a place. The two differ where a label is unknown: it may stand above, or not.

    Examples
    --------
    >>> true_places(np.array([[3, 2, 2, 1, 0], [1, 2, -1, 0, 0]]))
    Intervals(low=array([[1, 2, 2, 4, 5],
           [2, 1, 1, 3, 3]]), high=array([[1, 2, 2, 4, 5],
           [3, 2, 3, 4, 4]]))
    """
    low = 1 + (ranks[:, None, :] > ranks[:, :, None]).sum(2)
    unknown = (ranks < 0).sum(1, keepdims=True)
    low = np.where(ranks < 0, 1, low)
    high = np.where(ranks < 0, 1 + (ranks > 0).sum(1, keepdims=True), low + unknown)
    return Intervals(low, high)


def expected_places(
    scores: FloatArray, mu: FloatArray | None = None, sigma: FloatArray | None = None
) -> Places:
    r"""Mean and standard deviation of each label's place, given that the label is relevant.

    With sigma, the label's own Gaussian is replaced by one with the moments of its part above zero; the place
    is one more than a sum of independent events "v is above u". Without sigma, :math:`P(v \text{ above } u)`
    is :math:`1/(1+e^{-(s_v-\max(0, s_u))})`. Neither has to be right: calibration makes up for it.

    Examples
    --------
    >>> places = expected_places(np.array([[4.0, 0.5, -3.0]]), np.array([[4.0, 0.5, -3.0]]), np.ones((1, 3)))
    >>> places.centre.round(2), places.spread.round(2)
    (array([[1.01, 1.99, 2.58]]), array([[0.3 , 0.3 , 0.57]]))
    """
    if mu is None or sigma is None:
        above = 1.0 / (
            1.0 + np.exp(np.clip(np.maximum(scores, 0.0)[:, :, None] - scores[:, None, :], -700, 700))
        )
    else:
        start = -mu / sigma
        hazard = np.exp(-0.5 * start**2 - 0.5 * math.log(2.0 * math.pi) - log_ndtr(-start))
        own_mu = mu + sigma * hazard
        own_variance = sigma**2 * np.maximum(1.0 - hazard * (hazard - start), _NARROWEST)
        spread = np.sqrt(sigma[:, None, :] ** 2 + own_variance[:, :, None])
        above = ndtr((mu[:, None, :] - own_mu[:, :, None]) / spread)
    width = above.shape[1]
    above[:, np.arange(width), np.arange(width)] = 0.0
    variance = (above * (1.0 - above)).sum(2)
    return Places(1.0 + above.sum(2), np.sqrt(variance + _WHOLE))


def place_scores(places: Places, ranks: IntArray) -> Scores:
    """One step per relevant label: how many standard deviations its place is off; a row's steps sum to 1.

    Where unknown labels leave the place open, the farthest possible place counts. Rows without a label that
    is known to be relevant are left out.
    """
    relevant = ranks > 0
    low, high = true_places(ranks)
    off = np.maximum(places.centre - low, high - places.centre) / places.spread
    weights = relevant / np.maximum(1, relevant.sum(1, keepdims=True))
    return Scores(off[relevant], weights[relevant], int(relevant.any(1).sum()))


def place_intervals(places: Places, limit: float) -> Intervals:
    """The whole places within some standard deviations of the mean; at least the nearest one.

    Examples
    --------
    >>> low, high = place_intervals(Places(np.array([[1.2, 2.4]]), np.array([[0.5, 0.1]])), 2.0)
    >>> low, high
    (array([[1, 2]]), array([[2, 2]]))
    """
    half = limit * places.spread * (1.0 + _ROUNDING)
    nearest = np.rint(places.centre)
    low = np.minimum(np.ceil(places.centre - half), nearest)
    high = np.maximum(np.floor(places.centre + half), nearest)
    width = places.centre.shape[1]
    return Intervals(*(np.clip(end, 1, width).astype(np.int64) for end in (low, high)))


def place_losses(found: Intervals, ranks: IntArray) -> FloatArray:
    """Share of a row's relevant labels whose interval lacks their place; NaN for rows without one."""
    relevant = ranks > 0
    low, high = true_places(ranks)
    missed = relevant & ((found.low > low) | (found.high < high))
    count = relevant.sum(1)
    return np.where(count > 0, missed.sum(1) / np.maximum(1, count), np.nan)


# Partial orders: statements "u is relevant and above v" that are likely enough. The limit is how likely.


def statement_scores(chances: FloatArray, ranks: IntArray) -> Scores:
    """The steps of each row's share of wrong statements, as the running maximum over more cautious limits.

    The share itself can fall when more statements are made, and risk control needs a loss that cannot.

    Parameters
    ----------
    chances : float array [N, K, K]
        How likely label u is relevant and above label v.
    ranks : int array [N, K]
        The truth. A statement is wrong unless u ranks above v: a tie makes it wrong, and so does an
        irrelevant u. Statements about unknown labels do not count; rows without two known labels are left
        out.
    """
    counted, wrong = _judged(ranks)
    values, steps, rows = [], [], 0
    for row in np.flatnonzero((ranks >= 0).sum(1) > 1):
        rows += 1
        made = counted[row] & (chances[row] > LEAST_CHANCE)
        said, false = chances[row][made], wrong[row][made]
        order = np.argsort(-said, kind="stable")
        said = said[order]
        ends = np.flatnonzero(np.diff(said, append=-1.0))  # equal ones are stated together
        shares = np.cumsum(false[order])[ends] / (ends + 1)
        rises = np.diff(np.maximum.accumulate(shares), prepend=0.0)
        values.append(said[ends][rises > 0])
        steps.append(rises[rises > 0])
    empty = np.zeros(0)
    return Scores(np.concatenate([empty, *values]), np.concatenate([empty, *steps]), rows)


def stated(chances: FloatArray, limit: float) -> BoolArray:
    """The statements [N, K, K] whose probability is above a limit."""
    found: BoolArray = chances > limit + _ROUNDING * (1.0 - limit)
    return found


def statement_losses(statements: BoolArray, ranks: IntArray) -> FloatArray:
    """Share of wrong statements in each row, 0 where none is made; NaN for rows without two known labels."""
    counted, wrong = _judged(ranks)
    made = (statements & counted).sum((1, 2))
    shares = (statements & wrong).sum((1, 2)) / np.maximum(1, made)
    return np.where((ranks >= 0).sum(1) > 1, shares, np.nan)


def _judged(ranks: IntArray) -> tuple[BoolArray, BoolArray]:
    """The pairs [N, K, K] of known labels, and those of them in which the first does not rank above."""
    known = ranks >= 0
    counted = known[:, :, None] & known[:, None, :]
    return counted, counted & (ranks[:, :, None] <= ranks[:, None, :])

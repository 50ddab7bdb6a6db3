"""Thurstone's model of rankers: latent significances, and how precisely each person perceives them.

The likelihood is composite: every label against the person's threshold, every pair of labels in a person's
order. Latent significances are integrated out by a Gaussian (variational) approximation; otherwise a person
whose answers the significances follow would look perfect. Everything is in log space.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gaussianmlr.orders.reading import UNKNOWN, FloatArray, IntArray, dense
from gaussianmlr.rankers.checking import check_ranks
from gaussianmlr.rankers.likelihood import (
    SCALE,
    SCALE_COUNT,
    SPREAD_OF_SIGMA,
    SPREAD_OF_THRESHOLD,
    BoolArray,
    Comparisons,
    Slopes,
    State,
    compare,
    evaluate,
    expect,
    label_slopes,
    label_terms,
    standardised,
    sums,
)

__all__ = ["Thurstone", "reliability", "thurstone"]

_DECIMALS = 9  # equal inputs give equal means up to the rounding of sums


@dataclass(frozen=True, repr=False)
class Thurstone:
    """Significances of labels and reliabilities of people.

    Attributes
    ----------
    mean, sd : array [N, K]
        Latent significance of each label, 0 = the common threshold; NaN for a label that nobody knows.
    sigma : array [R]
        Noise of each person; the geometric mean of those who answered is 1.
    threshold : array [R]
        Significance above which a person calls a label relevant; the mean with weights ``1 / sigma**2`` is 0.
    log_sigma_error, threshold_error : array [R]
        Standard errors of ``log(sigma)`` and of the threshold.
    scale : float
        Prior standard deviation of significances.
    objective : float
        The lower bound of the log marginal likelihood, with the logarithms of the priors.
    sweeps : int
        Sweeps until convergence.
    """

    mean: FloatArray
    sd: FloatArray
    sigma: FloatArray
    threshold: FloatArray
    log_sigma_error: FloatArray
    threshold_error: FloatArray
    scale: float
    objective: float
    sweeps: int

    @property
    def reliability(self) -> FloatArray:
        """``1 / sigma**2`` of each person: how many typical people an answer is worth."""
        return self.sigma**-2.0

    def ranks(self) -> IntArray:
        """Ranks [N, K] by the mean; relevant above zero. Means that agree to nine decimals tie."""
        known = np.isfinite(self.mean)
        heights = np.round(np.where(known, self.mean, 0.0), _DECIMALS)
        return np.where(known, dense(heights, heights > 0), UNKNOWN)

    def __repr__(self) -> str:
        each = [
            f"  {number}: sigma {sigma:.2f} (log +- {error:.2f}), threshold {cut:+.2f} (+- {cut_error:.2f})"
            for number, (sigma, error, cut, cut_error) in enumerate(
                zip(self.sigma, self.log_sigma_error, self.threshold, self.threshold_error)
            )
        ]
        return "\n".join([f"Thurstone of {len(self.sigma)} rankers", *each])


def thurstone(ranks: npt.ArrayLike, *, max_sweeps: int = 200, tolerance: float = 1e-3) -> Thurstone:
    r"""Fit a Thurstone model with one variance and one threshold per person.

    Label :math:`k` of instance :math:`i` has a latent significance :math:`m_{ik} \sim N(0, s_0^2)`; person
    :math:`r` perceives it with noise of variance :math:`\sigma_r^2`, calls it relevant above
    :math:`t_r`, and orders relevant labels by what is perceived:

    .. math::
        \sum_{i,r} \Big[ \sum_k \log\Phi\Big(\pm\frac{m_{ik} - t_r}{\sigma_r}\Big)
        + \frac{2}{P_{ir}} \sum_{u \succ v} \log\Phi\Big(\frac{m_{iu} - m_{iv}}{\sqrt2\,\sigma_r}\Big) \Big]

    The pairs of :math:`P` relevant labels together count as :math:`P - 1` comparisons, as many as an order
    has degrees of freedom. Tied pairs are left out, as are unknown labels. The significances are integrated
    out by independent Gaussians (a variational lower bound, by quadrature);
    :math:`\log\sigma_r \sim N(0, 1/4)` and :math:`t_r \sim N(0, 1)` shrink people with few answers towards
    the common values. :math:`s_0` is estimated. Identified by
    :math:`\sum_r \log\sigma_r = 0` and :math:`\sum_r t_r / \sigma_r^2 = 0`: a plain mean of thresholds
    would let one careless person shift all others.

    Parameters
    ----------
    ranks : array-like [N, R, K]
        As for `mean_rank_ordering`; ranker r is the same person in all instances.
    max_sweeps : int
        The largest number of alternations between significances and people.
    tolerance : float
        Ends when no :math:`\log\sigma_r`, :math:`t_r` or :math:`\log s_0` moves by more.

    Returns
    -------
    Thurstone

    References
    ----------
    Thurstone (1927), A law of comparative judgment. Varin, Reid and Firth (2011), An overview of composite
    likelihood methods. Opper and Archambeau (2009), The variational Gaussian approximation revisited.

    Examples
    --------
    >>> found = thurstone([[[2, 1, 0], [2, 1, 0], [0, 1, 2]]] * 20)
    >>> found.ranks()[0], found.sigma.argmax()
    (array([2, 1, 0]), np.int64(2))
    """
    table = check_ranks(ranks)
    known = table >= 0
    spoke: BoolArray = np.any(known, axis=(0, 2))
    seen: BoolArray = np.any(known, axis=1)
    answers = compare(table[:, spoke])
    state, sweeps = _fit(answers, seen.ravel(), int(spoke.sum()), max_sweeps, tolerance)
    slopes = evaluate(answers, seen.ravel(), state)
    errors = _errors(answers, slopes, table.shape[2])

    def fill(values: FloatArray, default: float) -> FloatArray:
        whole = np.full(len(spoke), default)
        whole[spoke] = values
        return whole

    shape = seen.shape
    return Thurstone(
        mean=np.where(seen, state.mean.reshape(shape), np.nan),
        sd=np.where(seen, np.sqrt(state.variance).reshape(shape), np.nan),
        sigma=fill(np.exp(state.log_sigma), 1.0),
        threshold=fill(state.threshold, 0.0),
        log_sigma_error=fill(errors[:, 0], SPREAD_OF_SIGMA),
        threshold_error=fill(errors[:, 1], SPREAD_OF_THRESHOLD),
        scale=float(np.exp(state.log_scale)),
        objective=slopes.value,
        sweeps=sweeps,
    )


def reliability(ranks: npt.ArrayLike, most: int = 1000) -> FloatArray:
    """Reliability of each ranker [R], ``1 / sigma**2`` of `thurstone`.

    If there are more than `most` instances, from `most` evenly spaced ones.

    Examples
    --------
    >>> found = reliability([[[2, 1, 0], [2, 1, 0], [0, 1, 2]]] * 20)
    >>> bool(found[0] > 2 * found[2])
    True
    """
    table = check_ranks(ranks)
    chosen = np.unique(np.linspace(0, len(table) - 1, min(len(table), most)).round().astype(int))
    return thurstone(table[chosen]).reliability


def _fit(
    answers: Comparisons, seen: BoolArray, people: int, max_sweeps: int, tolerance: float
) -> tuple[State, int]:
    """Alternate between significances, their scale, and people."""
    state = State(
        np.zeros(len(seen)), np.ones(len(seen)), np.zeros(people), np.zeros(people), float(np.log(SCALE))
    )
    if not len(answers.upper):
        return state, 0
    state = _significances(answers, seen, state, 10)
    sweeps, moved = 0, np.inf
    while moved >= tolerance and sweeps < max_sweeps:
        sweeps, before = sweeps + 1, state
        state = _significances(answers, seen, state, 2)
        state = _people(_scale(state, seen), evaluate(answers, seen, state))
        moved = _moved(before, state)
    return _significances(answers, seen, state, 10), sweeps


def _moved(before: State, state: State) -> float:
    """The largest change of a parameter that all instances share."""
    people = np.abs([state.log_sigma - before.log_sigma, state.threshold - before.threshold])
    return max(float(people.max()), abs(state.log_scale - before.log_scale))


def _significances(answers: Comparisons, seen: BoolArray, state: State, steps: int) -> State:
    """Damped Newton steps of every label at once."""
    for _ in range(steps):
        noise, z, spread = standardised(answers, state)
        slope, bend = expect(z, spread, label_terms, 2)
        slopes = label_slopes(answers, seen, state, slope / noise, bend / noise**2)
        precision = 0.5 / state.variance + 0.5 * slopes.curvature
        # Twice the curvature of pairs bounds what both ends of a pair do together.
        step = slopes.mean / (np.maximum(precision, slopes.curvature) + slopes.coupling)
        state = state._replace(mean=state.mean + step, variance=1 / precision)
    return state


def _scale(state: State, seen: BoolArray) -> State:
    """The best scale of the prior, in closed form."""
    total = (state.mean**2 + state.variance)[seen].sum() + SCALE_COUNT * SCALE**2
    return state._replace(log_scale=float(0.5 * np.log(total / (seen.sum() + SCALE_COUNT))))


def _people(state: State, slopes: Slopes) -> State:
    """One Newton step of log sigma and threshold that keeps the two sums which identify the model."""
    inverse = np.linalg.inv(slopes.information)
    held = np.stack([np.ones(len(inverse)), np.exp(-2 * state.log_sigma)], axis=1)
    pull = np.linalg.solve(
        np.einsum("ra,rab,rb->ab", held, inverse, held),
        np.einsum("ra,rab,rb->a", held, inverse, slopes.person),
    )
    step = np.einsum("rab,rb->ra", inverse, slopes.person - held * pull)
    step *= min(1.0, 0.5 / max(np.abs(step).max(), 0.5))
    log_sigma, threshold = state.log_sigma + step[:, 0], state.threshold + step[:, 1]
    weight = np.exp(-2 * log_sigma)
    shift = (weight * threshold).sum() / weight.sum()
    return state._replace(
        mean=state.mean - shift, log_sigma=log_sigma - log_sigma.mean(), threshold=threshold - shift
    )


def _errors(answers: Comparisons, slopes: Slopes, labels: int) -> FloatArray:
    """Standard errors [R, 2] from the outer products of the instances' gradients, with the prior."""
    people = len(slopes.person)
    prior = np.diag(np.array([SPREAD_OF_SIGMA, SPREAD_OF_THRESHOLD]) ** -2.0)
    keys, group = np.unique(answers.upper // labels * people + answers.person, return_inverse=True)
    each = np.stack([sums(group, part, len(keys)) for part in slopes.parts.T], axis=1)
    products = each[:, :, None] * each[:, None, :]
    information = np.zeros((people, 2, 2))
    np.add.at(information, keys % people, products)
    errors: FloatArray = np.sqrt(np.diagonal(np.linalg.inv(information + prior), axis1=1, axis2=2))
    return errors

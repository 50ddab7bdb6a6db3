"""Thurstone's model of rankers: latent significances, and how precisely each person perceives them.

The likelihood is composite: every label against the person's threshold, every pair of labels in a person's
order. Latent significances are integrated out by a Gaussian (variational) approximation; otherwise a person
whose answers the significances follow would look perfect. Everything is in log space.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gaussianmlr.orders.reading import UNKNOWN, FloatArray, IntArray, dense
from gaussianmlr.rankers.checking import check_ranks

__all__ = ["Thurstone", "reliability", "thurstone"]

BoolArray = npt.NDArray[np.bool_]
Terms = Callable[[FloatArray, FloatArray, FloatArray, FloatArray], Iterable[FloatArray]]
_NODES, _SHARES = np.polynomial.hermite_e.hermegauss(7)
_SHARES = _SHARES / _SHARES.sum()
_LOG_ROOT_TWO_PI = 0.5 * np.log(2 * np.pi)
_SPREAD_OF_SIGMA = 0.5  # prior sd of log sigma: two thirds of all people within a factor of 1.65
_SPREAD_OF_THRESHOLD = 1.0
_SCALE, _SCALE_COUNT = 2.0, 10  # prior of the scale of significances, worth so many labels
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


class Comparisons(NamedTuple):
    """``sign * m[upper] - m[lower] - cut * t[person]`` is above zero, with noise of sd ``width * sigma``."""

    upper: IntArray
    lower: IntArray  # one past the last label if the other side is the threshold
    person: IntArray
    sign: FloatArray
    cut: FloatArray
    width: FloatArray
    weight: FloatArray


class State(NamedTuple):
    """All that is estimated; labels are flat [N * K]."""

    mean: FloatArray
    variance: FloatArray
    log_sigma: FloatArray
    threshold: FloatArray
    log_scale: float


class LabelSlopes(NamedTuple):
    """Derivatives of the objective by the means and variances of labels."""

    mean: FloatArray
    variance: FloatArray
    curvature: FloatArray  # of the mean, positive
    coupling: FloatArray  # the part of it that is due to pairs


class Slopes(NamedTuple):
    """The objective and its derivatives."""

    value: float
    labels: LabelSlopes
    person: FloatArray  # [R, 2]: by log sigma and by threshold
    information: FloatArray  # [R, 2, 2]
    parts: FloatArray  # [comparisons, 2]: shares of `person` before the prior


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
    would let one careless person move everybody's.

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
        log_sigma_error=fill(errors[:, 0], _SPREAD_OF_SIGMA),
        threshold_error=fill(errors[:, 1], _SPREAD_OF_THRESHOLD),
        scale=float(np.exp(state.log_scale)),
        objective=slopes.value,
        sweeps=sweeps,
    )


def reliability(ranks: npt.ArrayLike, most: int = 1000) -> FloatArray:
    """Reliability of each ranker [R], ``1 / sigma**2`` of `thurstone`.

    If there are more than `most` instances, from so many evenly spaced ones.

    Examples
    --------
    >>> found = reliability([[[2, 1, 0], [2, 1, 0], [0, 1, 2]]] * 20)
    >>> bool(found[0] > 2 * found[2])
    True
    """
    table = check_ranks(ranks)
    chosen = np.unique(np.linspace(0, len(table) - 1, min(len(table), most)).round().astype(int))
    return thurstone(table[chosen]).reliability


def compare(table: IntArray) -> Comparisons:
    """All comparisons that the rankers [N, R, K] make, in the order of instances and rankers."""
    _, people, labels = table.shape
    row, person, label = np.nonzero(table >= 0)
    sign = np.where(table[row, person, label] > 0, 1.0, -1.0)
    single = [row * labels + label, np.full(len(row), table.shape[0] * labels), person]
    # Relevant labels of one order are neighbours in this list; each meets all of them, upper ones are kept.
    row, person, label = np.nonzero(table > 0)
    sizes = (table > 0).sum(axis=2).ravel()
    size = sizes[row * people + person]
    first = (np.cumsum(sizes) - sizes)[row * people + person]
    one = np.repeat(np.arange(len(row)), size)
    other = np.repeat(first, size) + np.arange(len(one)) - np.repeat(np.cumsum(size) - size, size)
    height = table[row, person, label]
    above = height[one] > height[other]
    one, other = one[above], other[above]
    cell = row * labels + label
    pairs = [cell[one], cell[other], person[one]]
    ones = np.ones(len(one))
    upper, lower, who = (np.concatenate(both).astype(np.int64) for both in zip(single, pairs))
    return Comparisons(
        upper,
        lower,
        who,
        sign=np.concatenate([sign, ones]),
        cut=np.concatenate([sign, 0 * ones]),
        width=np.concatenate([np.ones(len(sign)), np.sqrt(2.0) * ones]),
        weight=np.concatenate([np.ones(len(sign)), 2.0 / size[one]]),
    )


def evaluate(answers: Comparisons, seen: BoolArray, state: State) -> Slopes:
    """The lower bound and its derivatives."""
    people = len(state.log_sigma)
    noise, z, spread = _standardised(answers, state)
    who, weight, cut = answers.person, answers.weight, answers.cut
    value, slope, bend, turn, fisher, mixed, own = _expect(z, spread, _all_terms, 7)
    prior = np.array([_SPREAD_OF_SIGMA, _SPREAD_OF_THRESHOLD]) ** -2.0
    chosen = np.stack([state.log_sigma, state.threshold], axis=1)
    parts = np.stack([-weight * turn, -weight * cut * slope / noise], axis=1)
    information = np.empty((people, 2, 2))
    information[:, 0, 0] = _sum(who, weight * own, people) + prior[0]
    information[:, 1, 1] = _sum(who, weight * cut**2 * fisher / noise**2, people) + prior[1]
    information[:, 0, 1] = information[:, 1, 0] = _sum(who, weight * cut * mixed / noise, people)
    scale = np.exp(-2 * state.log_scale)
    gauss = state.log_scale + 0.5 * ((state.mean**2 + state.variance) * scale - 1 - np.log(state.variance))
    total = (weight * value).sum() - gauss[seen].sum() - 0.5 * (prior * chosen**2).sum()
    total -= _SCALE_COUNT * (state.log_scale + 0.5 * _SCALE**2 * scale)
    return Slopes(
        value=float(total),
        labels=_label_slopes(answers, seen, state, slope / noise, bend / noise**2),
        person=np.stack([_sum(who, part, people) for part in parts.T], axis=1) - prior * chosen,
        information=information,
        parts=parts,
    )


def _standardised(answers: Comparisons, state: State) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The noise of every comparison; in units of it, the mean and sd of the difference."""
    noise = answers.width * np.exp(state.log_sigma)[answers.person]
    mean, variance = np.append(state.mean, 0.0), np.append(state.variance, 0.0)
    difference = answers.sign * mean[answers.upper] - mean[answers.lower]
    difference -= answers.cut * state.threshold[answers.person]
    spread = np.sqrt(variance[answers.upper] + variance[answers.lower])
    return noise, difference / noise, spread / noise


def _label_slopes(
    answers: Comparisons, seen: BoolArray, state: State, slope: FloatArray, bend: FloatArray
) -> LabelSlopes:
    cells = len(state.mean)
    steep, bent = answers.weight * slope, answers.weight * bend
    gather = partial(_sum, size=cells + 1)
    towards = gather(answers.upper, answers.sign * steep) - gather(answers.lower, steep)
    pairs = np.where(answers.cut == 0, bent, 0.0)
    curved = gather(answers.upper, bent) + gather(answers.lower, pairs)
    coupling = gather(answers.upper, pairs) + gather(answers.lower, pairs)
    scale = np.exp(-2 * state.log_scale)
    curvature = curved[:cells] + scale
    return LabelSlopes(
        mean=np.where(seen, towards[:cells] - state.mean * scale, 0.0),
        variance=np.where(seen, 0.5 * (1 / state.variance - curvature), 0.0),
        curvature=curvature,
        coupling=coupling[:cells],
    )


def _expect(centre: FloatArray, spread: FloatArray, terms: Terms, count: int) -> list[FloatArray]:
    """Expectations of so many terms over z ~ N(centre, spread^2), by Gauss-Hermite quadrature."""
    from scipy.special import log_ndtr  # on first use: readers that aggregate by mean rank load no scipy

    found = [np.zeros_like(centre) for _ in range(count)]
    for node, share in zip(_NODES, _SHARES):
        z = centre + spread * node
        log_cdf = log_ndtr(z)
        slope = np.exp(-0.5 * z * z - _LOG_ROOT_TWO_PI - log_cdf)
        for total, term in zip(found, terms(z, log_cdf, slope, node / spread)):
            total += share * term
    return found


def _all_terms(
    z: FloatArray, log_cdf: FloatArray, slope: FloatArray, node: FloatArray
) -> Iterable[FloatArray]:
    """The logarithm of Phi, its slope h, -h' by Stein's lemma, h z; -h' itself times 1, z and z^2."""
    bend = slope * (z + slope)
    return log_cdf, slope, -slope * node, slope * z, bend, bend * z, bend * z * z


def _label_terms(
    _z: FloatArray, _log: FloatArray, slope: FloatArray, node: FloatArray
) -> Iterable[FloatArray]:
    return slope, -slope * node


def _fit(
    answers: Comparisons, seen: BoolArray, people: int, max_sweeps: int, tolerance: float
) -> tuple[State, int]:
    """Alternate between significances, their scale, and people."""
    state = State(
        np.zeros(len(seen)), np.ones(len(seen)), np.zeros(people), np.zeros(people), float(np.log(_SCALE))
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
        noise, z, spread = _standardised(answers, state)
        slope, bend = _expect(z, spread, _label_terms, 2)
        slopes = _label_slopes(answers, seen, state, slope / noise, bend / noise**2)
        precision = 0.5 / state.variance + 0.5 * slopes.curvature
        # Twice the curvature of pairs bounds what both ends of a pair do together.
        step = slopes.mean / (np.maximum(precision, slopes.curvature) + slopes.coupling)
        state = state._replace(mean=state.mean + step, variance=1 / precision)
    return state


def _scale(state: State, seen: BoolArray) -> State:
    """The best scale of the prior, in closed form."""
    total = (state.mean**2 + state.variance)[seen].sum() + _SCALE_COUNT * _SCALE**2
    return state._replace(log_scale=float(0.5 * np.log(total / (seen.sum() + _SCALE_COUNT))))


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
    prior = np.diag(np.array([_SPREAD_OF_SIGMA, _SPREAD_OF_THRESHOLD]) ** -2.0)
    keys, group = np.unique(answers.upper // labels * people + answers.person, return_inverse=True)
    each = np.stack([_sum(group, part, len(keys)) for part in slopes.parts.T], axis=1)
    products = each[:, :, None] * each[:, None, :]
    information = np.zeros((people, 2, 2))
    np.add.at(information, keys % people, products)
    errors: FloatArray = np.sqrt(np.diagonal(np.linalg.inv(information + prior), axis1=1, axis2=2))
    return errors


def _sum(where: IntArray, values: FloatArray, size: int) -> FloatArray:
    return np.bincount(where, values, size).astype(np.float64, copy=False)

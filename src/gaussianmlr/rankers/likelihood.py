"""The composite likelihood of `thurstone`: its terms, and the derivatives by labels and by people."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gaussianmlr.orders.reading import FloatArray, IntArray

BoolArray = npt.NDArray[np.bool_]
Terms = Callable[[FloatArray, FloatArray, FloatArray, FloatArray], Iterable[FloatArray]]
_NODES, _SHARES = np.polynomial.hermite_e.hermegauss(7)
_SHARES = _SHARES / _SHARES.sum()
_LOG_ROOT_TWO_PI = 0.5 * np.log(2 * np.pi)
SPREAD_OF_SIGMA = 0.5  # prior sd of log sigma: two thirds of all people within a factor of 1.65
SPREAD_OF_THRESHOLD = 1.0
SCALE, SCALE_COUNT = 2.0, 10  # prior of the scale of significances, and the number of labels it is worth


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
    noise, z, spread = standardised(answers, state)
    who, weight, cut = answers.person, answers.weight, answers.cut
    value, slope, bend, turn, fisher, mixed, own = expect(z, spread, all_terms, 7)
    prior = np.array([SPREAD_OF_SIGMA, SPREAD_OF_THRESHOLD]) ** -2.0
    chosen = np.stack([state.log_sigma, state.threshold], axis=1)
    parts = np.stack([-weight * turn, -weight * cut * slope / noise], axis=1)
    information = np.empty((people, 2, 2))
    information[:, 0, 0] = sums(who, weight * own, people) + prior[0]
    information[:, 1, 1] = sums(who, weight * cut**2 * fisher / noise**2, people) + prior[1]
    information[:, 0, 1] = information[:, 1, 0] = sums(who, weight * cut * mixed / noise, people)
    scale = np.exp(-2 * state.log_scale)
    gauss = state.log_scale + 0.5 * ((state.mean**2 + state.variance) * scale - 1 - np.log(state.variance))
    total = (weight * value).sum() - gauss[seen].sum() - 0.5 * (prior * chosen**2).sum()
    total -= SCALE_COUNT * (state.log_scale + 0.5 * SCALE**2 * scale)
    return Slopes(
        value=float(total),
        labels=label_slopes(answers, seen, state, slope / noise, bend / noise**2),
        person=np.stack([sums(who, part, people) for part in parts.T], axis=1) - prior * chosen,
        information=information,
        parts=parts,
    )


def standardised(answers: Comparisons, state: State) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The noise of every comparison; in units of it, the mean and sd of the difference."""
    noise = answers.width * np.exp(state.log_sigma)[answers.person]
    mean, variance = np.append(state.mean, 0.0), np.append(state.variance, 0.0)
    difference = answers.sign * mean[answers.upper] - mean[answers.lower]
    difference -= answers.cut * state.threshold[answers.person]
    spread = np.sqrt(variance[answers.upper] + variance[answers.lower])
    return noise, difference / noise, spread / noise


def label_slopes(
    answers: Comparisons, seen: BoolArray, state: State, slope: FloatArray, bend: FloatArray
) -> LabelSlopes:
    """The derivatives by labels, from those by the difference of every comparison."""
    cells = len(state.mean)
    steep, bent = answers.weight * slope, answers.weight * bend
    gather = partial(sums, size=cells + 1)
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


def expect(centre: FloatArray, spread: FloatArray, terms: Terms, count: int) -> list[FloatArray]:
    """Expectations of `count` terms over z ~ N(centre, spread^2), by Gauss-Hermite quadrature."""
    from scipy.special import log_ndtr  # on first use: readers that aggregate by mean rank load no scipy

    found = [np.zeros_like(centre) for _ in range(count)]
    for node, share in zip(_NODES, _SHARES):
        z = centre + spread * node
        log_cdf = log_ndtr(z)
        slope = np.exp(-0.5 * z * z - _LOG_ROOT_TWO_PI - log_cdf)
        for total, term in zip(found, terms(z, log_cdf, slope, node / spread)):
            total += share * term
    return found


def all_terms(
    z: FloatArray, log_cdf: FloatArray, slope: FloatArray, node: FloatArray
) -> Iterable[FloatArray]:
    """The logarithm of Phi, its slope h, -h' by Stein's lemma, h z; -h' itself times 1, z and z^2."""
    bend = slope * (z + slope)
    return log_cdf, slope, -slope * node, slope * z, bend, bend * z, bend * z * z


def label_terms(
    _z: FloatArray, _log: FloatArray, slope: FloatArray, node: FloatArray
) -> Iterable[FloatArray]:
    """The terms of `all_terms` that the labels need: h and -h'."""
    return slope, -slope * node


def sums(where: IntArray, values: FloatArray, size: int) -> FloatArray:
    """Sums [size] of the values with the same index."""
    return np.bincount(where, values, size).astype(np.float64, copy=False)

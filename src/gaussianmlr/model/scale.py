"""The scale of just noticeable differences: equal steps of significance are equally easy to tell apart."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gaussianmlr import normal
from gaussianmlr.errors import DataError, shorten
from gaussianmlr.methods.base import Reading

__all__ = ["JndScale", "fit_scale", "mean_scale"]

FloatArray = npt.NDArray[np.float64]
MOST_KNOTS = 256
LARGEST = 50.0  # of the logarithm of a sigma in the canonical gauge
BINS = 200
FEWEST = 25  # significances per bin
MOST = 1 << 18  # significances that a scale is fitted to; more do not change it
GROUPS = 20  # of instances, each left out once by the jackknife
_ROOT_2 = math.sqrt(2.0)


@dataclass(frozen=True)
class JndScale:
    r"""A scale on which a difference of one is ordered correctly 84 times in 100, everywhere.

    Let s(m) be the typical sigma of a label whose mean is m, both in the canonical gauge. On the scale

    .. math:: g(m) = \int_0^m \frac{dm'}{\sqrt2\, s(m')}

    :math:`P(u \text{ above } v) \approx \Phi(g(m_u) - g(m_v))`: a difference of one is a just noticeable
    difference. g(0) = 0 and g increases, so relevance and orders are the same on both scales.
    log s is linear between knots and constant beyond them, so the integral has a closed form.

    Parameters
    ----------
    knots : sequence of float
        Means, increasing.
    log_sigma : sequence of float
        log s at the knots.

    References
    ----------
    L. Thurstone, "A law of comparative judgment", 1927.
    G. Fechner, "Elemente der Psychophysik", 1860.

    Examples
    --------
    >>> scale = JndScale([0.0, 4.0], [0.0, 0.0])  # s = 1 everywhere
    >>> scale.values([[2.0, -1.0]]).round(3)
    array([[ 1.414, -0.707]])
    >>> steeper = JndScale([0.0, 4.0], [0.0, 2.0])  # sigma grows with the mean, so g bends down
    >>> steeper.values([[2.0, 4.0]]).round(3)
    array([[0.894, 1.223]])
    """

    knots: tuple[float, ...]
    log_sigma: tuple[float, ...]

    def __post_init__(self) -> None:
        parts = {"knots": self.knots, "log_sigma": self.log_sigma}
        for name, values in parts.items():
            array = np.asarray(values)
            if array.ndim != 1 or array.dtype.kind not in "if" or not np.isfinite(array).all():
                raise DataError(f"{name} of a scale: expected finite numbers, got {shorten(values)}")
            object.__setattr__(self, name, tuple(array.astype(np.float64).tolist()))
        if not 1 <= len(self.knots) <= MOST_KNOTS or len(self.knots) != len(self.log_sigma):
            raise DataError(
                f"a scale with {len(self.knots)} knots and {len(self.log_sigma)} values of log_sigma; "
                f"expected as many of both, from 1 to {MOST_KNOTS}"
            )
        if any(right <= left for left, right in zip(self.knots, self.knots[1:])):
            raise DataError(f"knots of a scale: expected increasing numbers, got {shorten(self.knots)}")
        if max(map(abs, self.log_sigma)) > LARGEST:
            raise DataError(f"log_sigma of a scale: expected numbers between -{LARGEST:g} and {LARGEST:g}")

    def typical_sigma(self, mu: npt.ArrayLike) -> FloatArray:
        """s(m), the typical sigma of a label with this mean, in the canonical gauge."""
        return np.exp(np.interp(np.asarray(mu, dtype=np.float64), self.knots, self.log_sigma))

    def values(self, mu: npt.ArrayLike) -> FloatArray:
        """g(m), for means of any shape in the canonical gauge."""
        means = np.asarray(mu, dtype=np.float64)
        knots, logs = np.array(self.knots), np.array(self.log_sigma)
        up, down = _upwards(np.maximum(means, 0.0), knots, logs), np.maximum(-means, 0.0)
        found: FloatArray = up - _upwards(down, -knots[::-1], logs[::-1])
        return found

    def apply(self, mu: npt.ArrayLike, sigma: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
        r"""Means and standard deviations on this scale, from those in the canonical gauge.

        By the delta method the deviation is :math:`\sigma g'(\mu) = \sigma / (\sqrt2\, s(\mu))`.
        """
        spread = np.asarray(sigma, dtype=np.float64) / (_ROOT_2 * self.typical_sigma(mu))
        return self.values(mu), spread

    def stretched(self, factor: float) -> JndScale:
        """The scale for means that are this many times larger, with the same sigmas."""
        return JndScale(tuple(factor * knot for knot in self.knots), self.log_sigma)


def _upwards(mu: FloatArray, knots: FloatArray, logs: FloatArray) -> FloatArray:
    """The integral from 0 to m, for m from 0 up."""
    above = knots > 0
    starts = np.concatenate([[0.0], knots[above]])
    levels = np.concatenate([[np.interp(0.0, knots, logs)], logs[above]])
    widths, steps = np.append(np.diff(starts), 1.0), np.append(np.diff(levels), 0.0)
    before = np.concatenate([[0.0], np.cumsum(_piece(levels, steps, widths)[:-1])])
    place = np.searchsorted(starts, mu, side="right") - 1
    inside = mu - starts[place]
    # No step beyond the ends, however far: also for an infinite mean.
    step = np.where(steps[place] == 0.0, 0.0, steps[place] * np.minimum(inside / widths[place], 1.0))
    found: FloatArray = before[place] + _piece(levels[place], step, inside)
    return found


def _piece(start: FloatArray, step: FloatArray, width: FloatArray) -> FloatArray:
    """Integral of 1 / (sqrt(2) s) over a width on which log s moves linearly from `start` by `step`."""
    # (1 - e^-x) / x, which is 1 at zero.
    safe = np.where(step == 0.0, 1.0, step)
    mean = np.where(step == 0.0, 1.0, -np.expm1(-safe) / safe)
    found: FloatArray = width * np.exp(-start) * mean / _ROOT_2
    return found


def fit_scale(reading: Reading) -> JndScale | None:
    r"""Fit the scale to predictions of instances that were not trained on. No truth is needed.

    Means and sigmas are taken to the canonical gauge. Medians of log sigma in bins with equal counts of m,
    smoothed over neighbours, are the knots. Few predictions make them noisy, so they are shrunk towards
    their mean by as much as chance moves them:

    .. math:: \log s_j = \bar\ell + \max\Big(0, 1 - \frac{\sum_j v_j}{\sum_j(\ell_j-\bar\ell)^2}\Big)
        (\ell_j - \bar\ell)

    with :math:`v_j` the jackknife's variance of bin j over groups of whole instances.

    Parameters
    ----------
    reading : Reading
        Predictions of N instances, at the temperatures that they will be read with.

    Returns
    -------
    JndScale or None
        None for methods without sigma, and for fewer than two instances.

    Examples
    --------
    >>> import torch
    >>> mu = torch.rand(500, 8, generator=torch.Generator().manual_seed(0)) * 8 - 4
    >>> reading = Reading(mu, torch.special.ndtr(mu), mu, torch.ones_like(mu))
    >>> fit_scale(reading).values([0.0, 1.0]).round(3)
    array([0.   , 0.707])
    """
    if reading.mu is None or reading.sigma is None or len(reading.mu) < 2:
        return None
    significance = normal.canonical(reading.mu.double(), reading.sigma.double())
    mu, logs = significance.mu.cpu().numpy(), significance.sigma.log().cpu().numpy()
    group = np.broadcast_to(np.arange(len(mu))[:, None] * min(GROUPS, len(mu)) // len(mu), mu.shape)
    some = slice(None, None, max(1, math.ceil(mu.size / MOST)))
    flat_mu, flat_log, flat_group = mu.ravel()[some], logs.ravel()[some], group.ravel()[some]
    order = np.argsort(flat_mu, kind="stable")
    bins = np.array_split(order, max(1, min(BINS, len(order) // FEWEST)))
    knots = np.array([np.median(flat_mu[one]) for one in bins])
    kept = _apart(knots)
    bins = [one for one, good in zip(bins, kept) if good]
    # Beyond these ends the scale is straight.
    groups = range(min(GROUPS, len(mu)))
    table = np.stack([_medians(flat_log, flat_group, bins, left_out) for left_out in (None, *groups)])
    whole, without = table[0], table[1:]
    noise = (len(groups) - 1) * float(without.var(0).sum())
    bend = whole - whole.mean()
    reach = float((bend**2).sum())
    share = max(0.0, 1.0 - noise / reach) if reach > 0 else 0.0
    return JndScale(tuple(knots[kept]), tuple(np.clip(whole.mean() + share * bend, -LARGEST, LARGEST)))


def _apart(knots: FloatArray) -> npt.NDArray[np.bool_]:
    """Which of these increasing numbers differ from the one before by more than rounding."""
    return np.concatenate([[True], np.diff(knots) > 1e-9 * max(1.0, float(np.ptp(knots)))])


def _medians(
    logs: FloatArray,
    group: npt.NDArray[np.int64],
    bins: Sequence[npt.NDArray[np.int64]],
    left_out: int | None,
) -> FloatArray:
    """Medians per bin without one group, smoothed over neighbours."""
    found = np.empty(len(bins))
    for number, one in enumerate(bins):
        rest = one if left_out is None else one[group[one] != left_out]
        found[number] = np.median(logs[rest if len(rest) else one])
    padded = np.pad(found, 1, mode="edge")
    smooth: FloatArray = 0.25 * padded[:-2] + 0.5 * padded[1:-1] + 0.25 * padded[2:]
    return smooth


def mean_scale(scales: Sequence[JndScale]) -> JndScale:
    """One scale for the mean of several models: log s is averaged.

    Examples
    --------
    >>> mean_scale([JndScale([0.0], [0.0]), JndScale([1.0], [2.0])]).log_sigma
    (1.0, 1.0)
    """
    knots = np.unique(np.concatenate([one.knots for one in scales]))
    knots = knots[_apart(knots)]
    if len(knots) > MOST_KNOTS:
        knots = knots[np.linspace(0, len(knots) - 1, MOST_KNOTS).round().astype(int)]
    logs = np.mean([np.interp(knots, one.knots, one.log_sigma) for one in scales], axis=0)
    return JndScale(tuple(knots), tuple(logs))

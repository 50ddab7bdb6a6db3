"""Calibration after training: two temperatures for the probabilities."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from gaussianmlr import metrics
from gaussianmlr.errors import DataError
from gaussianmlr.losses import Supervision
from gaussianmlr.methods.base import Reading
from gaussianmlr.metrics import Reliability
from gaussianmlr.metrics._instances import ordered_pairs
from gaussianmlr.normal import Significance, log_cdf
from gaussianmlr.normal.tails import single_or_better
from gaussianmlr.orders import weak

__all__ = ["BeforeAfter", "Calibration", "calibrate", "compare"]

FloatArray = npt.NDArray[np.float64]
COLDEST, HOTTEST = 0.05, 20.0  # range of temperatures; beyond it, the data is not informative
MOST = 1 << 18  # comparisons that a temperature is fitted to; more do not change it
GROUPS = 20  # of instances, each left out once by the jackknife
LAPSES = (0.0, 0.005, 0.01, 0.02)  # shares of the truth that may be chance
# The smallest and the largest probability whose log-odds single precision can tell from infinity.
_NEXT_TO_ZERO, _NEXT_TO_ONE = 2.0**-126, 1.0 - 2.0**-24


@dataclass(frozen=True)
class Calibration:
    r"""Temperatures of a model: above 1 if it was overconfident, below 1 if it was underconfident.

    Parameters
    ----------
    relevance : float
        :math:`T_r`. The probability of relevance is :math:`\Phi(\mu/\sigma/T_r)`, or
        :math:`1/(1+e^{-x/T_r})` of the log-odds x of methods without sigma.
    pairs : float
        :math:`T_p`. The probability that u stands above v is
        :math:`\Phi((\mu_u-\mu_v)/\sqrt{\sigma_u^2+\sigma_v^2}/T_p)`. Methods without sigma
        do not use it.

    Notes
    -----
    Dividing every pair's argument by :math:`T_p` is the same as multiplying every sigma by it, so that is
    what `apply` does: whatever is read from mu and sigma (first places, ranks, partial orders) follows.
    A temperature is positive, so no score changes, no rank, and no probability of relevance or
    of a pair crosses one half.

    References
    ----------
    Guo, Pleiss, Sun and Weinberger (2017), On calibration of modern neural networks. ICML.

    Examples
    --------
    >>> import torch
    >>> from gaussianmlr import methods
    >>> outputs = {"mu": torch.tensor([[2.0, -1.0]]), "logvar": torch.zeros(1, 2)}
    >>> reading = methods.make("gmlr").read(outputs)
    >>> calmer = Calibration(relevance=2.0, pairs=3.0).apply(reading)
    >>> calmer.p_relevant, calmer.sigma
    (tensor([[0.8413, 0.3085]]), tensor([[3., 3.]]))
    """

    relevance: float = 1.0
    pairs: float = 1.0

    def __post_init__(self) -> None:
        for name in ("relevance", "pairs"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < float("inf"):
                raise DataError(f"the temperature of {name} is {value!r}; expected a number above 0")
            object.__setattr__(self, name, float(value))

    def apply(self, reading: Reading) -> Reading:
        """The reading at these temperatures; scores stay as they are."""
        how_sure = _margins(reading) / self.relevance
        if reading.sigma is None:
            return reading._replace(p_relevant=torch.sigmoid(how_sure))
        p_relevant = torch.special.ndtr(how_sure)
        return reading._replace(p_relevant=p_relevant, sigma=reading.sigma * self.pairs)


def calibrate(reading: Reading, ranks: Tensor, *, supervision: Supervision = "strong") -> Calibration:
    r"""Fit both temperatures to data that was not trained on, by maximum likelihood shrunk by its noise.

    With z = mu/sigma, signed so that it is positive where the model is right, :math:`T_r` maximises

    .. math:: \max_{\lambda \le 0.02} \sum \log\big(\tfrac\lambda2 + (1-\lambda)\,\Phi(z/T_r)\big).

    For log-odds, the logistic function takes the place of :math:`\Phi`; :math:`T_p` does the same for all
    truly ordered pairs. The lapse rate :math:`\lambda` is discarded afterwards: without it a few gross
    errors, which cost the square of z, would determine the temperature. As Platt proposed, one error is
    added to each side, so that data without errors does not give extreme probabilities.

    A temperature found from few instances is noisy. Its logarithm is therefore shrunk towards 0,

    .. math:: \log T = \max\Big(0,\; 1 - \frac{s^2}{\log^2 \hat T}\Big)\, \log\hat T,

    where :math:`s^2` is the jackknife's variance of :math:`\log\hat T` with groups of whole instances left
    out, because labels and pairs of an instance are not independent. A temperature within
    the noise, or without data to fit, stays 1; for large data :math:`s^2` vanishes.

    Parameters
    ----------
    reading : Reading
        The uncalibrated readings of N instances.
    ranks : Tensor [N, K]
        The truth: 0 = irrelevant, larger = more significant, -1 = unknown.
    supervision : {"strong", "weak"}
        ``"weak"`` uses relevance alone: pairs of relevant labels are ignored.

    References
    ----------
    J. Platt (1999), Probabilistic outputs for support vector machines.
    J. Thompson (1968), Some shrinkage techniques for estimating the mean.
    F. Wichmann and N. Hill (2001), The psychometric function: fitting, sampling, and goodness of fit.

    Examples
    --------
    >>> import torch
    >>> mu = torch.randn(2000, 5, generator=torch.Generator().manual_seed(0))
    >>> truth = mu + torch.randn(2000, 5, generator=torch.Generator().manual_seed(1))
    >>> ranks = (truth > 0) * (truth.argsort(1).argsort(1) + 1)
    >>> too_sure = Reading(mu, torch.special.ndtr(mu / 0.5), mu, torch.full_like(mu, 0.5))
    >>> found = calibrate(too_sure, ranks)
    >>> round(found.relevance, 1), found.pairs > 1.5
    (2.0, True)
    """
    ranks = torch.as_tensor(ranks)
    if ranks.shape != reading.scores.shape:
        raise DataError(
            f"expected ranks of the reading's shape {list(reading.scores.shape)}, got {list(ranks.shape)}"
        )
    if supervision == "weak":
        ranks = weak(ranks)
    margins = _margins(reading).double()
    log_share = torch.nn.functional.logsigmoid if reading.sigma is None else log_cdf
    outcomes = [_side(margins, ranks > 0), _side(-margins, ranks == 0)]
    relevance = _temperature(outcomes, len(ranks), log_share)
    if reading.mu is None or reading.sigma is None:
        return Calibration(relevance)
    pairs = _pair_margins(reading.mu, reading.sigma, ranks)
    return Calibration(relevance, _temperature([pairs], len(ranks), log_share))


class BeforeAfter(NamedTuple):
    """Reliability curves and expected calibration errors, before and after a calibration."""

    before: Reliability
    after: Reliability
    ece_before: float
    ece_after: float


def compare(
    reading: Reading,
    ranks: Tensor,
    calibration: Calibration,
    *,
    bins: int = 15,
    of: Collection[str] = ("relevance", "pairs"),
) -> dict[str, BeforeAfter]:
    """Effect of a calibration on ``"relevance"`` and, for methods with sigma, on ``"pairs"``.

    Use data that neither the model nor the calibration was fitted to.

    Parameters
    ----------
    reading : Reading
        The uncalibrated readings.
    ranks : Tensor [N, K]
        The truth.
    calibration : Calibration
        The temperatures.
    bins : int
        Number of bins of `metrics.reliability`.
    of : collection of {"relevance", "pairs"}
        What to compare; pairs need K^2 numbers per instance.

    Examples
    --------
    >>> import torch
    >>> mu = torch.randn(2000, 5, generator=torch.Generator().manual_seed(0))
    >>> truth = mu + torch.randn(2000, 5, generator=torch.Generator().manual_seed(1))
    >>> ranks = (truth > 0) * (truth.argsort(1).argsort(1) + 1)
    >>> too_sure = Reading(mu, torch.special.ndtr(mu / 0.5), mu, torch.full_like(mu, 0.5))
    >>> found = compare(too_sure, ranks, Calibration(relevance=2.0, pairs=2.0))["relevance"]
    >>> found.ece_after < 0.02 < found.ece_before
    True
    """
    both = (reading, calibration.apply(reading))
    chances: dict[str, list[Tensor | Significance]] = {}
    if "relevance" in of:
        chances["relevance"] = [one.p_relevant for one in both]
    if "pairs" in of and reading.mu is not None and reading.sigma is not None:
        chances["pairs"] = [
            Significance(one.mu, one.sigma) for one in both if one.mu is not None and one.sigma is not None
        ]
    truth = torch.as_tensor(ranks)
    found = {}
    for name, parts in chances.items():
        before, after = (metrics.reliability(part, truth, bins=bins) for part in parts)
        found[name] = BeforeAfter(
            before, after, *(float(metrics.ece(part, truth, bins=bins)) for part in parts)
        )
    return found


def _margins(reading: Reading) -> Tensor:
    """Arguments of the distribution function: mu/sigma, or the log-odds of relevance."""
    if reading.mu is not None and reading.sigma is not None:
        return reading.mu.to(reading.sigma.dtype) / reading.sigma
    chance = single_or_better(reading.p_relevant).clamp(_NEXT_TO_ZERO, _NEXT_TO_ONE)
    return chance.log() - torch.log1p(-chance)


class _Side(NamedTuple):
    """Margins of one true outcome, positive where the model is right, and the instance of each."""

    margins: Tensor
    instances: Tensor


def _side(margins: Tensor, chosen: Tensor) -> _Side:
    """The margins [N, K] of some labels."""
    return _Side(margins[chosen], chosen.nonzero(as_tuple=True)[0])


def _pair_margins(mu: Tensor, sigma: Tensor, ranks: Tensor) -> _Side:
    """Margins of all truly ordered pairs, computed for some instances at a time."""
    labels = ranks.shape[1]
    rows = max(1, MOST // max(1, labels * labels))
    # Of very many instances every n-th is used; neighbours may be similar.
    stride = max(1, math.ceil(len(ranks) / (16 * rows)))
    numbers = torch.arange(len(ranks))[::stride]
    mu, sigma, ranks = mu[::stride], sigma[::stride], ranks[::stride]
    found, whose = [mu.new_zeros(0).double()], [numbers[:0]]
    for row, u, v in ordered_pairs(ranks):
        spread = torch.hypot(sigma[row, u].double(), sigma[row, v].double())
        found.append((mu[row, u].double() - mu[row, v].double()) / spread)
        whose.append(numbers[row.cpu()])
    return _Side(torch.cat(found), torch.cat(whose))


def _temperature(sides: list[_Side], count: int, log_share: Callable[[Tensor], Tensor]) -> float:
    """The temperature of maximum likelihood, shrunk towards 1 by its noise.

    `count` is the number of instances; `log_share` is the log of the distribution function.
    """
    from scipy.interpolate import CubicSpline
    from scipy.optimize import minimize_scalar

    groups = min(GROUPS, count)
    if groups < 2:
        return 1.0  # one instance is not enough
    sides = [_thinned(side, count, groups) for side in sides if len(side.margins)]

    def costs(log_temperature: float) -> FloatArray:
        """By group of instances and lapse rate; the last row is Platt's additional error."""
        found = np.zeros((groups + 1, len(LAPSES)))
        for side in sides:
            z = side.margins * math.exp(-log_temperature)
            right = log_share(z)
            for column, share in enumerate(LAPSES):
                terms = _with_lapses(right, share)
                found[:-1, column] -= np.bincount(side.instances, terms.numpy(), groups)
            found[-1] -= float(log_share(-z).mean())
        return found

    steps = np.linspace(math.log(COLDEST), math.log(HOTTEST), 41)
    table = np.stack([costs(step) for step in steps], -1)
    curve = table.sum(0).min(0)
    if curve.max() == curve.min():
        return 1.0  # no comparison, or all probabilities are one half
    best = int(curve.argmin())
    found = float(steps[best])
    if 0 < best < len(steps) - 1:
        around = (steps[best - 1], steps[best + 1])
        refined = minimize_scalar(
            lambda at: costs(at).sum(0).min(), bounds=around, method="bounded", options={"xatol": 1e-5}
        )
        found = float(refined.x)
    fine = np.linspace(steps[0], steps[-1], 2001)
    smooth = CubicSpline(steps, table, axis=-1)(fine)
    whole = smooth.sum(0)
    without = np.array([_lowest(fine, (whole - group).min(0)) for group in smooth[:-1]])
    noise = (groups - 1) * float(without.var())  # the jackknife's variance of the logarithm
    return math.exp(found * max(0.0, 1.0 - noise / found**2)) if found else 1.0


def _thinned(side: _Side, count: int, groups: int) -> _Side:
    """A subset of very many margins, with the group of each."""
    some = slice(None, None, max(1, math.ceil(len(side.margins) / MOST)))
    return _Side(side.margins[some].cpu(), side.instances[some].cpu() * groups // count)


def _lowest(steps: FloatArray, curve: FloatArray) -> float:
    """The minimum of a curve on an even grid, by the parabola through three neighbours."""
    best = int(curve.argmin())
    if best in (0, len(steps) - 1):
        return float(steps[best])
    left, middle, right = curve[best - 1 : best + 2]
    bend = left - 2 * middle + right
    return float(steps[best] + (0.5 * (left - right) / bend if bend > 0 else 0.0) * (steps[1] - steps[0]))


def _with_lapses(log_share: Tensor, lapses: float) -> Tensor:
    if lapses == 0.0:
        return log_share
    return torch.logaddexp(log_share + math.log1p(-lapses), log_share.new_tensor(math.log(lapses / 2)))

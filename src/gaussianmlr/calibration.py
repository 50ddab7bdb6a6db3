"""Calibration after training: two temperatures that make probabilities mean what they say."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from gaussianmlr import metrics
from gaussianmlr.errors import DataError
from gaussianmlr.losses import Supervision
from gaussianmlr.methods.base import Reading
from gaussianmlr.metrics import Reliability
from gaussianmlr.normal import log_cdf, p_above, single_or_better
from gaussianmlr.orders import weak

__all__ = ["BeforeAfter", "Calibration", "calibrate", "compare"]

COLDEST, HOTTEST = 0.05, 20.0  # no honest model is further off; beyond, the data says nothing
MOST = 1 << 18  # comparisons that one number is fitted to; more change nothing
LAPSES = (0.0, 0.005, 0.01, 0.02)  # shares of the truth that may be chance
# The smallest and the largest probability whose log-odds single precision can tell from infinity.
_NEXT_TO_ZERO, _NEXT_TO_ONE = 2.0**-126, 1.0 - 2.0**-24


@dataclass(frozen=True)
class Calibration:
    r"""Temperatures of a model: above 1 it was too sure of itself, below 1 not sure enough.

    Parameters
    ----------
    relevance : float
        :math:`T_r`. The probability of relevance is :math:`\Phi(\mu/\sigma/T_r)`, or
        :math:`1/(1+e^{-x/T_r})` of the log-odds x of methods without sigma.
    pairs : float
        :math:`T_p`. The probability that u stands above v is
        :math:`\Phi((\mu_u-\mu_v)/\sqrt{\sigma_u^2+\sigma_v^2}/T_p)`. Methods without sigma say
        nothing of pairs, and do not use it.

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
    r"""Fit both temperatures to data that was not trained on, by maximum likelihood.

    With z = mu/sigma, signed so that it is positive where the model is right, :math:`T_r` maximises

    .. math:: \max_{\lambda \le 0.02} \sum \log\big(\tfrac\lambda2 + (1-\lambda)\,\Phi(z/T_r)\big).

    Log-odds take the logistic function in place of :math:`\Phi`, and :math:`T_p` does the same for every
    truly ordered pair. The lapse rate :math:`\lambda` is forgotten afterwards: without it a few wild
    mistakes, which cost the square of z, would set the temperature of all the rest. As Platt proposed, each
    side is taken to hold one mistake more than it does, so that data without any does not make a model that
    never doubts. Where there is nothing to learn from, a temperature stays 1.

    Parameters
    ----------
    reading : Reading
        What an uncalibrated model says of N instances.
    ranks : Tensor [N, K]
        The truth: 0 = irrelevant, larger = more significant, -1 = unknown.
    supervision : {"strong", "weak"}
        ``"weak"`` looks at relevance alone: pairs of relevant labels are left out.

    References
    ----------
    J. Platt (1999), Probabilistic outputs for support vector machines.
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
    relevance = _temperature([margins[ranks > 0], -margins[ranks == 0]], log_share)
    if reading.mu is None or reading.sigma is None:
        return Calibration(relevance)
    return Calibration(relevance, _temperature([_pair_margins(reading.mu, reading.sigma, ranks)], log_share))


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
    """What a calibration changes, for ``"relevance"`` and, of methods with sigma, for ``"pairs"``.

    Measure it on data that neither the model nor the calibration was fitted to.

    Parameters
    ----------
    reading : Reading
        What the uncalibrated model says.
    ranks : Tensor [N, K]
        The truth.
    calibration : Calibration
        The temperatures.
    bins : int
        Of `metrics.reliability`.
    of : collection of {"relevance", "pairs"}
        What to look at; pairs need K^2 numbers an instance.

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
    chances = {"relevance": [one.p_relevant for one in both]} if "relevance" in of else {}
    if "pairs" in of and reading.mu is not None and reading.sigma is not None:
        chances["pairs"] = [p_above(one.mu, one.sigma) for one in both if one.mu is not None is not one.sigma]
    truth = torch.as_tensor(ranks)
    found = {}
    for name, parts in chances.items():
        before, after = (metrics.reliability(part, truth, bins=bins) for part in parts)
        found[name] = BeforeAfter(
            before, after, *(float(metrics.ece(part, truth, bins=bins)) for part in parts)
        )
    return found


def _margins(reading: Reading) -> Tensor:
    """What the distribution function is taken of: mu/sigma, or the log-odds of relevance."""
    if reading.mu is not None and reading.sigma is not None:
        return reading.mu.to(reading.sigma.dtype) / reading.sigma
    chance = single_or_better(reading.p_relevant).clamp(_NEXT_TO_ZERO, _NEXT_TO_ONE)
    return chance.log() - torch.log1p(-chance)


def _pair_margins(mu: Tensor, sigma: Tensor, ranks: Tensor) -> Tensor:
    """How sure the model is of each truly ordered pair, some instances at a time."""
    labels = ranks.shape[1]
    rows = max(1, MOST // max(1, labels * labels))
    # Of very many instances every n-th will do; neighbours may be alike.
    stride = max(1, math.ceil(len(ranks) / (16 * rows)))
    found = []
    parts = (torch.split(part[::stride], rows) for part in (mu.double(), sigma.double(), ranks))
    for means, spreads, order in zip(*parts):
        above = (order[:, :, None] > order[:, None, :]) & (order[:, None, :] >= 0)
        row, u, v = above.nonzero(as_tuple=True)
        spread = torch.hypot(spreads[row, u], spreads[row, v])
        found.append((means[row, u] - means[row, v]) / spread)
    return torch.cat(found) if found else mu.new_zeros(0).double()


def _temperature(sides: list[Tensor], log_share: Callable[[Tensor], Tensor]) -> float:
    """The temperature at which margins, positive where they are right, are likeliest.

    Each side is the margins of one true outcome; `log_share` is the log of the distribution function.
    """
    from scipy.optimize import minimize_scalar

    sides = [side[:: max(1, math.ceil(len(side) / MOST))] for side in sides if len(side)]

    def cost(log_temperature: float) -> float:
        by_lapses = np.zeros(len(LAPSES))
        for side in sides:
            z = side * math.exp(-log_temperature)
            right = log_share(z)
            by_lapses -= [float(_with_lapses(right, share).sum()) for share in LAPSES]
            by_lapses -= float(log_share(-z).mean())  # Platt's one mistake more
        return float(by_lapses.min())

    steps = np.linspace(math.log(COLDEST), math.log(HOTTEST), 41)
    costs = [cost(step) for step in steps]
    best = int(np.argmin(costs))
    if max(costs) == min(costs):
        return 1.0  # no comparison, or the model says one half of all of them
    if best in (0, len(steps) - 1):
        return COLDEST if best == 0 else HOTTEST
    around = (steps[best - 1], steps[best + 1])
    return math.exp(minimize_scalar(cost, bounds=around, method="bounded", options={"xatol": 1e-5}).x)


def _with_lapses(log_share: Tensor, lapses: float) -> Tensor:
    if lapses == 0.0:
        return log_share
    return torch.logaddexp(log_share + math.log1p(-lapses), log_share.new_tensor(math.log(lapses / 2)))

"""Calibration after training: two temperatures for the probabilities."""

from __future__ import annotations

import dataclasses
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
from gaussianmlr.metrics._instances import ordered_pairs, tied_pairs
from gaussianmlr.normal import Significance, log_cdf, p_above
from gaussianmlr.normal.tails import single_or_better
from gaussianmlr.normal.ties import log_p_tie
from gaussianmlr.orders import weak

__all__ = ["BeforeAfter", "Calibration", "calibrate", "compare"]

FloatArray = npt.NDArray[np.float64]
COLDEST, HOTTEST = 0.05, 20.0  # range of temperatures; beyond it, the data is not informative
MOST = 1 << 18  # comparisons that a temperature is fitted to; more do not change it
GROUPS = 20  # of instances, each left out once by the jackknife
_TURNS = 3  # of the temperature of pairs and the factor of thresholds, which depend on each other
_CELLS = 1 << 24  # pairs of labels whose probabilities are held at once
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
    ties : float
        A factor of the thresholds of indifference, for methods with sigma that predict ties; above 1 if the
        model predicted too few.

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
    ties: float = 1.0

    def __post_init__(self) -> None:
        for name in ("relevance", "pairs", "ties"):
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
        tau = None if reading.tau is None else reading.tau * self.ties
        return reading._replace(p_relevant=p_relevant, sigma=reading.sigma * self.pairs, tau=tau)

    def to_dict(self) -> dict[str, float]:
        """The fields for JSON, as earlier versions know them where nothing is said of ties."""
        found = dataclasses.asdict(self)
        return {name: value for name, value in found.items() if name != "ties" or value != 1.0}


def calibrate(reading: Reading, ranks: Tensor, *, supervision: Supervision = "strong") -> Calibration:
    r"""Fit both temperatures to data that was not trained on, by maximum likelihood shrunk by its noise.

    With z = mu/sigma, signed so that it is positive where the model is right, :math:`T_r` maximises

    .. math:: \max_{\lambda \le 0.02} \sum \log\big(\tfrac\lambda2 + (1-\lambda)\,\Phi(z/T_r)\big).

    For log-odds, the logistic function takes the place of :math:`\Phi`; :math:`T_p` does the same for all
    truly ordered pairs. The lapse rate :math:`\lambda` is discarded afterwards: without it a few gross
    errors, which cost the square of z, would determine the temperature. For methods that predict ties,
    tied pairs of relevant labels count too, and a factor of the thresholds is fitted to these labels' pairs
    in turns with the temperature. As Platt proposed, one error is added to each side, so that data without
    errors does not give extreme probabilities.

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
    relevance = _temperature([_cooled(side, log_share) for side in outcomes], len(ranks))
    if reading.mu is None or reading.sigma is None:
        return Calibration(relevance)
    ordered, tied = _pair_margins(reading.mu, reading.sigma, reading.tau, ranks)
    if reading.tau is None:
        return Calibration(relevance, _temperature([_cooled(ordered, log_cdf)], len(ranks)))
    pairs = ties = 1.0
    for _ in range(_TURNS if len(tied.margins) else 1):
        sides = [_cooled(ordered._replace(margins=ordered.margins - ties * ordered.widths), log_cdf)]
        pairs = _temperature([*sides, _cooled_ties(tied, ties)], len(ranks))
        if len(tied.margins):
            ties = _temperature(_widened(ordered, tied, pairs), len(ranks))
    return Calibration(relevance, pairs, ties)


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
        chances["pairs"] = [_orders(one, torch.as_tensor(ranks)) for one in both]
    truth = torch.as_tensor(ranks)
    found = {}
    for name, parts in chances.items():
        before, after = (metrics.reliability(part, truth, bins=bins) for part in parts)
        found[name] = BeforeAfter(
            before, after, *(float(metrics.ece(part, truth, bins=bins)) for part in parts)
        )
    return found


def _orders(reading: Reading, ranks: Tensor) -> Tensor | Significance:
    """What is said of orders; of relevant labels that may tie, given that they do not."""
    assert reading.mu is not None
    assert reading.sigma is not None
    law = Significance(reading.mu, reading.sigma)
    if reading.tau is None or len(ranks) * ranks.shape[1] ** 2 > _CELLS:
        return law
    above, apart = p_above(*law), p_above(*law, reading.tau)
    relevant = (ranks > 0).to(above.device)
    both = relevant.unsqueeze(-1) & relevant.unsqueeze(-2)
    known = apart + apart.transpose(-1, -2)
    return torch.where(both & (known > 0), apart / known.clamp(min=torch.finfo(known.dtype).tiny), above)


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
    widths: Tensor  # thresholds of pairs, in the same unit


class _Fitted(NamedTuple):
    """Log-probabilities of the outcomes of a side at a factor's logarithm, and the instance of each."""

    right: Callable[[float], Tensor]
    wrong: Callable[[float], Tensor] | None  # for one error more, as Platt proposed
    instances: Tensor


def _side(margins: Tensor, chosen: Tensor) -> _Side:
    """The margins [N, K] of some labels."""
    found = margins[chosen]
    return _Side(found, chosen.nonzero(as_tuple=True)[0], torch.zeros_like(found))


def _cooled(side: _Side, log_share: Callable[[Tensor], Tensor]) -> _Fitted:
    """A side at temperatures; `log_share` is the log of the distribution function."""
    some = _thinned(side)
    return _Fitted(
        lambda x: log_share(some.margins * math.exp(-x)),
        lambda x: log_share(-some.margins * math.exp(-x)),
        some.instances,
    )


def _cooled_ties(side: _Side, factor: float) -> _Fitted:
    """Tied pairs at temperatures."""
    m, h = side.margins.abs(), side.widths * factor
    return _Fitted(lambda x: log_p_tie(m * math.exp(-x), h * math.exp(-x)), None, side.instances)


def _widened(ordered: _Side, tied: _Side, temperature: float) -> list[_Fitted]:
    """Pairs of relevant labels at factors of the thresholds."""
    few = ordered.widths > 0
    z, width, whose = ordered.margins[few], ordered.widths[few], ordered.instances[few]
    m, h = tied.margins.abs() / temperature, tied.widths / temperature
    return [
        _Fitted(lambda x: log_cdf((z - math.exp(x) * width) / temperature), None, whose),
        _Fitted(lambda x: log_p_tie(m, math.exp(x) * h), None, tied.instances),
    ]


def _pair_margins(mu: Tensor, sigma: Tensor, tau: Tensor | None, ranks: Tensor) -> tuple[_Side, _Side]:
    """Margins of all truly ordered pairs, and of tied relevant ones, some instances at a time."""
    labels = ranks.shape[1]
    rows = max(1, MOST // max(1, labels * labels))
    # Of very many instances every n-th is used; neighbours may be similar.
    stride = max(1, math.ceil(len(ranks) / (16 * rows)))
    numbers = torch.arange(len(ranks))[::stride]
    mu, sigma, ranks = mu[::stride], sigma[::stride], ranks[::stride]
    tau = None if tau is None else tau[::stride]
    empty = mu.new_zeros(0).double()
    ordered, tied = ([_Side(empty, numbers[:0], empty)] for _ in range(2))
    for sides, pairs in (
        (ordered, ordered_pairs(ranks)),
        (tied, tied_pairs(ranks) if tau is not None else ()),
    ):
        for row, u, v in pairs:
            spread = torch.hypot(sigma[row, u].double(), sigma[row, v].double())
            margins = (mu[row, u].double() - mu[row, v].double()) / spread
            widths = torch.zeros_like(margins)
            if tau is not None:  # only relevant labels tie; the lower label of a pair may be none
                widths = 0.5 * (tau[row, u] + tau[row, v]).double() / spread * (ranks[row, v] > 0)
            sides.append(_Side(margins, numbers[row.cpu()], widths))
    ordered_side, tied_side = (_Side(*map(torch.cat, zip(*sides))) for sides in (ordered, tied))
    return ordered_side, tied_side


def _temperature(sides: list[_Fitted], count: int) -> float:
    """The factor of maximum likelihood, shrunk towards 1 by its noise; `count` is the number of instances."""
    from scipy.interpolate import CubicSpline
    from scipy.optimize import minimize_scalar

    groups = min(GROUPS, count)
    if groups < 2:
        return 1.0  # one instance is not enough
    known = [(side, (side.instances * groups // count).numpy()) for side in sides if len(side.instances)]

    def costs(log_temperature: float) -> FloatArray:
        """By group of instances and lapse rate; the last row is Platt's additional error."""
        found = np.zeros((groups + 1, len(LAPSES)))
        for side, group in known:
            right = side.right(log_temperature)
            for column, share in enumerate(LAPSES):
                terms = _with_lapses(right, share)
                found[:-1, column] -= np.bincount(group, terms.numpy(), groups)
            if side.wrong is not None:
                found[-1] -= float(side.wrong(log_temperature).mean())
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


def _thinned(side: _Side) -> _Side:
    """A subset of very many margins."""
    some = slice(None, None, max(1, math.ceil(len(side.margins) / MOST)))
    return _Side(*(part[some].cpu() for part in side))


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

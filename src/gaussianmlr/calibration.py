"""Calibration after training: two temperatures that make probabilities mean what they say."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from gaussianmlr.errors import DataError
from gaussianmlr.methods.base import Reading
from gaussianmlr.normal import single_or_better

__all__ = ["Calibration"]

COLDEST, HOTTEST = 0.05, 20.0
_NEXT_TO_ONE = 1.0 - 2.0**-24  # the largest probability below one that single precision can hold


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
        if reading.mu is None or reading.sigma is None:
            chance = single_or_better(reading.p_relevant).clamp(max=_NEXT_TO_ONE)
            odds = chance.log() - torch.log1p(-chance)
            return reading._replace(p_relevant=torch.sigmoid(odds / self.relevance))
        sure = reading.mu.to(reading.sigma.dtype) / reading.sigma
        p_relevant = torch.special.ndtr(sure / self.relevance)
        return reading._replace(p_relevant=p_relevant, sigma=reading.sigma * self.pairs)

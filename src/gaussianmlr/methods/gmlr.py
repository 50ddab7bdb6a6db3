"""GaussianMLR: significances with a mean and a variance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from gaussianmlr import losses
from gaussianmlr.errors import DataError
from gaussianmlr.losses import Balance, Reduction, Weights
from gaussianmlr.methods.base import Method, Output, Outputs, Reading, register
from gaussianmlr.normal import Significance
from gaussianmlr.normal.tails import single_or_better


@register
@dataclass(frozen=True)
class Gmlr(Method):
    r"""GaussianMLR, the paper's method; loss `losses.gmlr`.

    Parameters
    ----------
    supervision : {"strong", "weak"}
        Whether the order among relevant labels is used.
    bound : float
        Log-variances are kept between -bound and bound by :math:`b\tanh(x/b)`.
    gauge : {"free", "canonical"}
        ``"canonical"`` subtracts the instance's mean log-variance before the loss, so the network
        need not learn a scale that orders do not determine.
    balance : {"parts", "comparisons"}
        ``"comparisons"`` weighs all comparisons equally, so instances count by their number of
        comparisons; see `losses.gmlr`.

    Examples
    --------
    >>> import torch
    >>> from gaussianmlr import methods
    >>> method = methods.make("gmlr")
    >>> reading = method.read({"mu": torch.tensor([[1.0, -1.0]]), "logvar": torch.zeros(1, 2)})
    >>> reading.p_relevant
    tensor([[0.8413, 0.1587]])
    """

    bound: float = 4.0
    gauge: Literal["free", "canonical"] = "free"
    balance: Balance = "parts"
    name: ClassVar[str] = "gmlr"
    outputs: ClassVar[tuple[Output, ...]] = (Output("mu"), Output("logvar"))

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.bound, int | float) or not 0 < self.bound < 1e6:
            raise DataError(f"expected a bound above 0 for the log-variance, got {self.bound!r}")
        if self.gauge not in ("free", "canonical"):
            raise DataError(f"gauge is 'free' or 'canonical', not {self.gauge!r}")
        if self.balance not in ("parts", "comparisons"):
            raise DataError(f"balance is 'parts' or 'comparisons', not {self.balance!r}")

    def loss(
        self,
        outputs: Outputs,
        ranks: Tensor,
        *,
        stage: str | None = None,
        reduction: Reduction = "mean",
        weights: Weights | None = None,
    ) -> Tensor:
        """Negative log-likelihood of the orders."""
        return losses.gmlr(
            outputs["mu"],
            self._logvar(outputs, ranks),
            ranks,
            supervision=self.supervision,
            balance=self.balance,
            reduction=reduction,
            weights=weights,
        )

    def read(self, outputs: Outputs) -> Reading:
        """Scores are the means."""
        mu, sigma = Significance(outputs["mu"], torch.exp(0.5 * self._logvar(outputs)))
        # Not normal.p_relevant: bounded values need no check, which would break a traced graph.
        return Reading(mu, torch.special.ndtr(mu.to(sigma.dtype) / sigma), mu, sigma)

    def _logvar(self, outputs: Outputs, ranks: Tensor | None = None) -> Tensor:
        # Half precision would round the variances before the loss.
        raw = single_or_better(outputs["logvar"])
        logvar = self.bound * torch.tanh(raw / self.bound)
        if self.gauge == "free":
            return logvar
        known = torch.ones_like(logvar) if ranks is None else (ranks >= 0).to(logvar.dtype)
        mean = (logvar * known).sum(-1, keepdim=True) / known.sum(-1, keepdim=True).clamp(min=1.0)
        return logvar - mean

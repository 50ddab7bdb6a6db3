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
from gaussianmlr.methods.ties import Thresholds, Ties, check_ties, tau_of, threshold_output
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
    ties : {"none", "learned", "auto"}
        ``"learned"`` learns a threshold of indifference in canonical units, below which relevant labels tie;
        tied labels of the orders count in the loss, and `Reading.ranks` has ties. ``"auto"``: the same, but
        training falls back to ``"none"`` where its orders have no ties or validation data does not favour
        them.
    thresholds : {"model", "label"}
        One threshold, or one per label; a pair has the mean of two.

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
    ties: Ties = "none"
    thresholds: Thresholds = "model"
    name: ClassVar[str] = "gmlr"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.bound, int | float) or not 0 < self.bound < 1e6:
            raise DataError(f"expected a bound above 0 for the log-variance, got {self.bound!r}")
        if self.gauge not in ("free", "canonical"):
            raise DataError(f"gauge is 'free' or 'canonical', not {self.gauge!r}")
        if self.balance not in ("parts", "comparisons"):
            raise DataError(f"balance is 'parts' or 'comparisons', not {self.balance!r}")
        check_ties(self.ties, self.thresholds)

    @property
    def outputs(self) -> tuple[Output, ...]:  # type: ignore[override]
        """Means, log-variances and, with ties, thresholds."""
        return Output("mu"), Output("logvar"), *threshold_output(self.ties, self.thresholds, self.supervision)

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
        logvar = self._logvar(outputs, ranks)
        return losses.gmlr(
            outputs["mu"],
            logvar,
            ranks,
            supervision=self.supervision,
            balance=self.balance,
            reduction=reduction,
            weights=weights,
            tau=self._tau(outputs, logvar, ranks),
        )

    def read(self, outputs: Outputs) -> Reading:
        """Scores are the means."""
        logvar = self._logvar(outputs)
        mu, sigma = Significance(outputs["mu"], torch.exp(0.5 * logvar))
        # Not normal.p_relevant: bounded values need no check, which would break a traced graph.
        p_relevant = torch.special.ndtr(mu.to(sigma.dtype) / sigma)
        return Reading(mu, p_relevant, mu, sigma, self._tau(outputs, logvar))

    def _logvar(self, outputs: Outputs, ranks: Tensor | None = None) -> Tensor:
        # Half precision would round the variances before the loss.
        raw = single_or_better(outputs["logvar"])
        logvar = self.bound * torch.tanh(raw / self.bound)
        return logvar if self.gauge == "free" else logvar - _mean(logvar, ranks)

    def _tau(self, outputs: Outputs, logvar: Tensor, ranks: Tensor | None = None) -> Tensor | None:
        """Thresholds in the units of mu: learned in those of the canonical gauge."""
        tau = tau_of(outputs)
        if tau is None:
            return None
        # Where logvar is canonical already, its mean is a rounding error.
        unit = 1.0 if self.gauge == "canonical" else torch.exp(0.5 * _mean(logvar, ranks))
        return (tau * unit).expand(logvar.shape)


def _mean(logvar: Tensor, ranks: Tensor | None) -> Tensor:
    """Mean over the known labels of each instance."""
    known = torch.ones_like(logvar) if ranks is None else (ranks >= 0).to(logvar.dtype)
    return (logvar * known).sum(-1, keepdim=True) / known.sum(-1, keepdim=True).clamp(min=1.0)

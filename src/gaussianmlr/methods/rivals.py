"""Methods with one score per label and zero as threshold, trained in one stage."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor

from gaussianmlr import losses
from gaussianmlr.losses import Reduction, Supervision, Weights
from gaussianmlr.methods.base import Method, Output, Outputs, Reading, register


@dataclass(frozen=True)
class _OneScore(Method):
    outputs: ClassVar[tuple[Output, ...]] = (Output("score"),)
    objective: ClassVar[Callable[..., Tensor]]

    def loss(
        self,
        outputs: Outputs,
        ranks: Tensor,
        *,
        stage: str | None = None,
        reduction: Reduction = "mean",
        weights: Weights | None = None,
    ) -> Tensor:
        """The loss of this method's name in `gaussianmlr.losses`."""
        return self.objective(
            outputs["score"], ranks, supervision=self.supervision, reduction=reduction, weights=weights
        )

    def read(self, outputs: Outputs) -> Reading:
        """Scores are log-odds of relevance."""
        return Reading.of_scores(outputs["score"])


@register
@dataclass(frozen=True)
class RankNet(_OneScore):
    """RankNet with a zero label: GaussianMLR without the variance; loss `losses.ranknet`.

    Examples
    --------
    >>> import torch
    >>> RankNet().loss({"score": torch.tensor([[1.0, 0.0, -1.0]])}, torch.tensor([[2, 1, 0]]))
    tensor(0.6910)
    """

    name: ClassVar[str] = "ranknet"
    objective: ClassVar[Callable[..., Tensor]] = staticmethod(losses.ranknet)


@register
@dataclass(frozen=True)
class Zlpr(_OneScore):
    """LSEP with a zero label in one stage, weak: ZLPR; loss `losses.zlpr`.

    Examples
    --------
    >>> import torch
    >>> Zlpr().loss({"score": torch.tensor([[1.0, 0.0, -1.0]])}, torch.tensor([[2, 1, 0]]))
    tensor(1.2828)
    """

    name: ClassVar[str] = "zlpr"
    objective: ClassVar[Callable[..., Tensor]] = staticmethod(losses.zlpr)


@register
@dataclass(frozen=True)
class PlackettLuce(_OneScore):
    """Plackett-Luce with a virtual label; loss `losses.plackett_luce`.

    Examples
    --------
    >>> import torch
    >>> PlackettLuce().loss({"score": torch.tensor([[1.0, 0.0, -1.0]])}, torch.tensor([[2, 1, 0]]))
    tensor(1.8018)
    """

    name: ClassVar[str] = "pl"
    objective: ClassVar[Callable[..., Tensor]] = staticmethod(losses.plackett_luce)


def _binary_relevance(scores: Tensor, ranks: Tensor, *, supervision: Supervision, **options: Any) -> Tensor:
    return losses.binary_relevance(scores, ranks, **options)


@register
@dataclass(frozen=True)
class BinaryRelevance(_OneScore):
    """One logistic classifier per label, without the order; loss `losses.binary_relevance`.

    Examples
    --------
    >>> import torch
    >>> BinaryRelevance().loss({"score": torch.tensor([[1.0, 0.0, -1.0]])}, torch.tensor([[2, 1, 0]]))
    tensor(0.4399)
    """

    supervision: Supervision = "weak"
    name: ClassVar[str] = "br"
    supervisions: ClassVar[tuple[Supervision, ...]] = ("weak",)
    objective: ClassVar[Callable[..., Tensor]] = staticmethod(_binary_relevance)

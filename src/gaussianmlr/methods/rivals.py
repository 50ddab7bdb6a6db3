"""Methods with one score per label and zero as threshold, trained in one stage."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from torch import Tensor

from gaussianmlr import losses
from gaussianmlr.errors import DataError
from gaussianmlr.losses import Reduction, Supervision, Weights
from gaussianmlr.methods.base import Method, Output, Outputs, Reading, register
from gaussianmlr.methods.ties import Thresholds, Ties, check_ties, tau_of, threshold_output


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
            outputs["score"],
            ranks,
            supervision=self.supervision,
            reduction=reduction,
            weights=weights,
            **self._options(outputs),
        )

    def _options(self, outputs: Outputs) -> dict[str, Any]:
        """Further options of the loss."""
        return {}

    def read(self, outputs: Outputs) -> Reading:
        """Scores are log-odds of relevance."""
        return Reading.of_scores(outputs["score"])


@dataclass(frozen=True)
class _WithTies(_OneScore):
    """A score per label and, on demand, thresholds of ties in the model of Rao and Kupper."""

    ties: Ties = "none"
    thresholds: Thresholds = "model"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_ties(self.ties, self.thresholds)

    @property
    def outputs(self) -> tuple[Output, ...]:  # type: ignore[override]
        """Scores and, with ties, thresholds."""
        return Output("score"), *threshold_output(self.ties, self.thresholds, self.supervision)

    def _options(self, outputs: Outputs) -> dict[str, Any]:
        return {"tau": tau_of(outputs)}

    def read(self, outputs: Outputs) -> Reading:
        """Scores are log-odds of relevance."""
        score, tau = outputs["score"], tau_of(outputs)
        return Reading.of_scores(score, None if tau is None else tau.expand(score.shape))


@register
@dataclass(frozen=True)
class RankNet(_WithTies):
    """RankNet with a zero label: GaussianMLR without the variance; loss `losses.ranknet`.

    Parameters
    ----------
    supervision : {"strong", "weak"}
        Whether the order among relevant labels is used.
    ties : {"none", "learned", "auto"}
        ``"learned"`` learns the threshold of ties of Rao and Kupper; otherwise as for `Gmlr`.
    thresholds : {"model", "label"}
        One threshold, or one per label.

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
class Zlpr(_WithTies):
    """LSEP with a zero label in one stage, weak: ZLPR; loss `losses.zlpr`.

    Parameters
    ----------
    supervision : {"strong", "weak"}
        Whether the order among relevant labels is used.
    ties : {"none", "learned", "auto"}
        ``"learned"`` learns the threshold of ties of Rao and Kupper; otherwise as for `Gmlr`.
    thresholds : {"model", "label"}
        One threshold, or one per label.

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

    Parameters
    ----------
    supervision : {"strong", "weak"}
        Whether the order among relevant labels is used.
    ties : {"breslow", "exact"}
        How the loss counts buckets of tied labels; the model itself predicts no ties.

    Examples
    --------
    >>> import torch
    >>> PlackettLuce().loss({"score": torch.tensor([[1.0, 0.0, -1.0]])}, torch.tensor([[2, 1, 0]]))
    tensor(1.8018)
    """

    ties: Literal["breslow", "exact"] = "breslow"
    name: ClassVar[str] = "pl"
    objective: ClassVar[Callable[..., Tensor]] = staticmethod(losses.plackett_luce)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.ties not in ("breslow", "exact"):
            raise DataError(f"ties is 'breslow' or 'exact', not {self.ties!r}")

    def _options(self, outputs: Outputs) -> dict[str, Any]:
        return {"ties": self.ties}


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

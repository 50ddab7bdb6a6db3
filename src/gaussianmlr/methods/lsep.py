"""LSEP: a ranking loss, then one threshold per label."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from gaussianmlr import losses
from gaussianmlr.errors import DataError
from gaussianmlr.losses import Reduction, Weights
from gaussianmlr.methods.base import Method, Output, Outputs, Reading, Stage, register
from gaussianmlr.normal.tails import single_or_better


@register
@dataclass(frozen=True)
class Lsep(Method):
    r"""LSEP in two stages: a ranking loss, then one threshold per label.

    Scores f by `losses.lsep`, then, all else frozen, thresholds g by `losses.lsep_threshold`.

    Parameters
    ----------
    supervision : {"strong", "weak"}
        Whether the order among relevant labels is used.
    reading : {"order", "margin"}
        How scores with zero as threshold are computed. A label is relevant if f > g, either way.
        ``"order"`` ranks the relevant labels by f, which the ranking stage has trained: they are
        shifted together so that the least of them keeps its margin f - g. ``"margin"`` uses f - g
        itself, which the threshold stage has trained for relevance alone, and so loses much of the
        order.

    Examples
    --------
    >>> import torch
    >>> from gaussianmlr import methods
    >>> outputs = {"score": torch.tensor([[5.0, 4.0, 1.0]]), "threshold": torch.tensor([[4.5, 1.0, 3.0]])}
    >>> methods.make("lsep").read(outputs).scores
    tensor([[ 4.,  3., -2.]])
    >>> methods.make("lsep", reading="margin").read(outputs).scores
    tensor([[ 0.5000,  3.0000, -2.0000]])
    """

    reading: Literal["order", "margin"] = "order"
    name: ClassVar[str] = "lsep"
    outputs: ClassVar[tuple[Output, ...]] = (Output("score"), Output("threshold"))
    stages: ClassVar[tuple[Stage, ...]] = (Stage("ranking"), Stage("threshold", trains=("threshold",)))

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.reading not in ("order", "margin"):
            raise DataError(f"reading is 'order' or 'margin', not {self.reading!r}")

    def loss(
        self,
        outputs: Outputs,
        ranks: Tensor,
        *,
        stage: str | None = None,
        reduction: Reduction = "mean",
        weights: Weights | None = None,
    ) -> Tensor:
        """The ranking loss, or in the threshold stage the cross-entropy of relevance."""
        if stage == "threshold":
            return losses.lsep_threshold(
                outputs["score"], outputs["threshold"], ranks, reduction=reduction, weights=weights
            )
        return losses.lsep(
            outputs["score"], ranks, supervision=self.supervision, reduction=reduction, weights=weights
        )

    def read(self, outputs: Outputs) -> Reading:
        """Scores with zero as threshold, by `reading`."""
        # Half precision would round small margins to zero.
        score = single_or_better(outputs["score"])
        margin = score - single_or_better(outputs["threshold"])
        scores = margin if self.reading == "margin" else _in_the_order_of(score, margin)
        return Reading(scores, torch.sigmoid(margin))


def _in_the_order_of(score: Tensor, margin: Tensor) -> Tensor:
    """Relevant labels in the order of their scores, the least of them at its own margin."""
    relevant = margin > 0
    least, place = score.masked_fill(~relevant, torch.inf).min(-1, keepdim=True)
    shift = margin.gather(-1, place) - least
    return torch.where(relevant, score + shift, margin)

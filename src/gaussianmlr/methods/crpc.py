"""CRPC: one comparison per pair of labels, and votes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from gaussianmlr import losses
from gaussianmlr.errors import DataError
from gaussianmlr.losses import Reduction, Weights
from gaussianmlr.methods.base import Method, Output, Outputs, Reading, register
from gaussianmlr.normal.tails import single_or_better

Vote = Literal["correct", "published"]
Ties = Literal["skip", "losses"]


@register
@dataclass(frozen=True)
class Crpc(Method):
    r"""Calibrated ranking by pairwise comparison; loss `losses.crpc`.

    A pair (u, v) gives p = P(u above v) as a vote to u and 1 - p to v; a label's score is its
    votes minus those of the virtual label.

    Parameters
    ----------
    supervision : {"strong", "weak"}
        Whether the order among relevant labels is used.
    vote : {"correct", "published"}
        ``"published"`` gives p to the winner on either side, so a label that wins as the right one
        gets almost nothing, as in the paper's published code.
    ties : {"skip", "losses"}
        ``"losses"`` trains the left label of a tied pair to lose, as that code does. Both options
        together reproduce the published numbers.

    Examples
    --------
    >>> import torch
    >>> from gaussianmlr import methods
    >>> sure = torch.tensor([[9.0, 9.0, -9.0]])  # a above b, a above virtual, virtual above b
    >>> methods.make("crpc").read({"pair": sure}).scores.round()
    tensor([[ 1., -1.]])
    """

    vote: Vote = "correct"
    ties: Ties = "skip"
    name: ClassVar[str] = "crpc"
    outputs: ClassVar[tuple[Output, ...]] = (Output("pair", of="pair"),)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.vote not in ("correct", "published"):
            raise DataError(f"vote is 'correct' or 'published', not {self.vote!r}")
        if self.ties not in ("skip", "losses"):
            raise DataError(f"ties is 'skip' or 'losses', not {self.ties!r}")

    def loss(
        self,
        outputs: Outputs,
        ranks: Tensor,
        *,
        stage: str | None = None,
        reduction: Reduction = "mean",
        weights: Weights | None = None,
    ) -> Tensor:
        """Cross-entropy of the comparisons."""
        return losses.crpc(
            outputs["pair"],
            ranks,
            supervision=self.supervision,
            ties=self.ties,
            reduction=reduction,
            weights=weights,
        )

    def read(self, outputs: Outputs) -> Reading:
        """Votes minus those of the virtual label."""
        return Reading.of_scores(vote_scores(torch.sigmoid(single_or_better(outputs["pair"])), self.vote))


def vote_scores(chance: Tensor, vote: Vote = "correct") -> Tensor:
    """Scores [N, K] of pairs' probabilities: a label's votes minus those of the virtual label.

    Parameters
    ----------
    chance, vote
        As for `votes_of`.

    Examples
    --------
    >>> vote_scores(torch.tensor([[0.75, 1.0, 0.25]]))
    tensor([[ 1.0000, -0.2500]])
    """
    votes = votes_of(chance, vote)
    return votes[:, :-1] - votes[:, -1:]


def votes_of(chance: Tensor, vote: Vote = "correct") -> Tensor:
    """Votes [N, K + 1] of pairs' probabilities, the virtual label's last.

    Parameters
    ----------
    chance : Tensor [N, K (K + 1) / 2]
        P(left above right) of the pairs of `losses.pair_indices`.
    vote : {"correct", "published"}
        As for `Crpc`.

    Examples
    --------
    >>> votes_of(torch.tensor([[0.75, 1.0, 0.25]]))  # a above b, a above virtual, b above virtual
    tensor([[1.7500, 0.5000, 0.7500]])
    """
    labels = _labels_of(chance.shape[-1])
    left, right = losses.pair_indices(labels, chance.device)
    to_left, to_right = chance, 1.0 - chance
    if vote == "published":
        left_wins = chance > 0.5
        to_left, to_right = chance * left_wins, chance * ~left_wins
    votes = chance.new_zeros(chance.shape[0], labels + 1)
    return votes.index_add(1, left, to_left).index_add(1, right, to_right)


def _labels_of(pairs: int) -> int:
    labels = int(((8 * pairs + 1) ** 0.5 - 1) / 2)
    if labels * (labels + 1) // 2 != pairs:
        raise DataError(f"expected K (K + 1) / 2 pair logits, got {pairs}")
    return labels

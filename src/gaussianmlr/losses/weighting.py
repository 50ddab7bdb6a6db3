r"""Weights of labels, and of the order among relevant labels, in a loss.

Every term of a loss is multiplied by a weight, and means are divided by the number of terms, so weights of
one change nothing:

- a term about one label u counts :math:`w_u`;
- a term about a pair counts :math:`w_u w_v`, and :math:`\lambda w_u w_v` if both are relevant; a label of
  weight zero is thus out of every pair. A virtual (zero) label has the weight one, so a term about relevance
  is a pair like the others.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from gaussianmlr.errors import DataError

__all__ = ["Weights"]

NOWHERE = -1e30  # log 0, finite so that gradients stay finite


@dataclass(frozen=True)
class Weights:
    r"""Weights for losses.

    Parameters
    ----------
    labels : Tensor [K]
        :math:`w`, one number per label, 0 or larger.
    order : float
        :math:`\lambda`, the weight of pairs of two relevant labels against all other terms.

    Examples
    --------
    >>> from gaussianmlr import losses
    >>> weights = Weights(torch.tensor([2.0, 1.0]))
    >>> losses.binary_relevance(torch.zeros(1, 2), torch.tensor([[1, 0]]), weights=weights)
    tensor(1.0397)
    """

    labels: Tensor
    order: float = 1.0

    def __post_init__(self) -> None:
        labels = self.labels
        if labels.ndim != 1 or not labels.is_floating_point():
            raise DataError(
                f"expected one weight per label, got {labels.dtype} of shape {list(labels.shape)}"
            )
        if not bool(((labels >= 0) & labels.isfinite()).all()):
            raise DataError(f"label weights are {labels.tolist()}; expected finite numbers from 0 up")
        if not 0 <= self.order < float("inf"):
            raise DataError(f"the weight of the order is {self.order}; expected a finite number from 0 up")

    def of(self, values: Tensor, ranks: Tensor) -> Tensor:
        """The weights of labels, with the type and device of `values`."""
        if ranks.shape[-1] != len(self.labels):
            raise DataError(f"{len(self.labels)} label weights for ranks of {ranks.shape[-1]} labels")
        return self.labels.to(values)

    def below(self, values: Tensor, ranks: Tensor) -> Tensor:
        """Weights [N, K] of labels as the lower one of a pair: times that of the order if relevant."""
        return torch.where(ranks > 0, self.order, 1.0).to(values) * self.of(values, ranks)

    def logs(self, values: Tensor, ranks: Tensor, *, virtual: bool) -> tuple[Tensor, Tensor]:
        """Logarithms of the weights of labels as the upper [K] and the lower [N, K] one of a pair."""
        both = _log(self.of(values, ranks)), _log(self.below(values, ranks))
        return (functional.pad(both[0], (0, 1)), functional.pad(both[1], (0, 1))) if virtual else both

    def without_order(self, loss: str) -> Weights:
        """These weights, for a loss without terms of pairs; refuses a weight of the order."""
        if self.order != 1:
            raise DataError(
                f"{loss} has no terms of pairs that order_weight = {self.order:g} could weigh; expected 1"
            )
        return self


def _log(weights: Tensor) -> Tensor:
    return torch.where(weights > 0, weights.clamp(min=1e-37).log(), NOWHERE)

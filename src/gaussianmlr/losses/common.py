"""Shared parts of the losses: checks, weak supervision, means over known labels, the virtual label."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional

from gaussianmlr import orders
from gaussianmlr.errors import DataError, shorten
from gaussianmlr.losses.weighting import Weights
from gaussianmlr.normal.tails import single_or_better

Supervision = Literal["strong", "weak"]
Reduction = Literal["mean", "sum", "none"]
Balance = Literal["parts", "comparisons"]


def checked(values: Tensor, ranks: Tensor, supervision: Supervision) -> tuple[Tensor, Tensor]:
    """Values in float32 or better, ranks under the supervision."""
    if values.ndim != 2 or tuple(values.shape) != tuple(ranks.shape):
        raise DataError(
            "expected outputs and ranks of one shape [N, K], "
            f"got {list(values.shape)} and {list(ranks.shape)}"
        )
    if not values.is_floating_point():
        raise DataError(f"expected outputs to be floats, got {values.dtype}")
    return single_or_better(values), supervised(ranks, supervision)


def supervised(ranks: Tensor, supervision: Supervision) -> Tensor:
    """Ranks under a supervision: weak keeps only relevance."""
    if not isinstance(ranks, Tensor):
        raise DataError(
            f"expected ranks to be a tensor, got {type(ranks).__name__}; convert it by torch.as_tensor"
        )
    if ranks.is_floating_point() or ranks.is_complex() or ranks.dtype == torch.bool:
        raise DataError(f"expected ranks to be integers, got {ranks.dtype}")
    if supervision not in ("strong", "weak"):
        raise DataError(f"supervision is 'strong' or 'weak', not {supervision!r}")
    ranks = ranks.long()  # narrow types could overflow, as the virtual label moves ranks up
    return orders.weak(ranks) if supervision == "weak" else ranks


def thresholds(tau: Tensor | float | None, values: Tensor, supervision: Supervision) -> Tensor | None:
    """Thresholds of indifference [N, K]; None without any above zero, and under weak supervision."""
    if tau is None or supervision == "weak":
        return None  # a bipartition does not say which labels tie
    found = torch.as_tensor(tau, dtype=values.dtype, device=values.device)
    if not bool(((found >= 0) & found.isfinite()).all()):
        raise DataError(f"the threshold tau is {shorten(found.tolist())}; expected finite numbers from 0 up")
    try:
        return found.expand(values.shape) if bool((found > 0).any()) else None
    except RuntimeError:
        raise DataError(
            f"expected tau of a shape that expands to {list(values.shape)}, got {list(found.shape)}"
        ) from None


def reduce(per_instance: Tensor, reduction: Reduction) -> Tensor:
    """Reduce one number per instance as every loss does; for your own losses.

    Examples
    --------
    >>> import torch
    >>> reduce(torch.tensor([1.0, 3.0]), "mean"), reduce(torch.zeros(0), "mean")
    (tensor(2.), tensor(0.))
    """
    if reduction == "none":
        return per_instance
    if reduction == "sum":
        return per_instance.sum()
    if reduction == "mean":
        return per_instance.sum() / max(1, len(per_instance))
    raise DataError(f"reduction is 'mean', 'sum' or 'none', not {reduction!r}")


def mean_over_known(values: Tensor, ranks: Tensor, weights: Weights | None) -> Tensor:
    """Mean over the known labels of each instance."""
    known = ranks >= 0
    if weights is not None:
        values = values * weights.of(values, ranks)
    return values.masked_fill(~known, 0.0).sum(-1) / known.sum(-1).clamp(min=1)


def log_probability_of_relevance(scores: Tensor, ranks: Tensor) -> Tensor:
    """Log-probability of the true relevance of each label under the logistic model."""
    return functional.logsigmoid(torch.where(ranks > 0, scores, -scores))


def virtual_ranks(ranks: Tensor) -> Tensor:
    """Ranks with a virtual label at the end: rank 1, with the relevant labels moved up by one."""
    return functional.pad(ranks + (ranks > 0), (0, 1), value=1)


def with_virtual_label(scores: Tensor, ranks: Tensor) -> tuple[Tensor, Tensor]:
    """Scores and ranks with the virtual label at the end, whose score is zero."""
    return functional.pad(scores, (0, 1)), virtual_ranks(ranks)

"""Input and output of the metrics: arrays or tensors, checked, and converted back."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from gaussianmlr.errors import DataError, shorten
from gaussianmlr.orders.reading import UNKNOWN, is_frame, numbers_of, refuse, refuse_masked

Input: TypeAlias = "npt.ArrayLike | Tensor"
Result: TypeAlias = Any  # float, array or tensor, by input and reduction; a union would burden every caller
Reduction = Literal["mean", "sum", "none"]


class Batch(NamedTuple):
    """Checked scores and ranks on one device, and the device of results."""

    scores: Tensor
    ranks: Tensor
    home: torch.device | None  # None: inputs were no tensors, so results are none either
    predicted: Tensor | None = None  # ranks with predicted ties; without them, the scores are the order


class Values(NamedTuple):
    """A metric per instance, and the weight of each in the mean (0 or 1)."""

    values: Tensor
    weights: Tensor


def read(scores: Input, ranks: Input) -> Batch:
    """Check scores [N, K] and ranks [N, K]; errors show the offending rows."""
    score_table, home = as_tensor(scores, "scores")
    if score_table.ndim != 2 or score_table.shape[1] == 0:
        raise DataError(
            f"expected scores of shape [N, K] with K >= 1, got shape {list(score_table.shape)}; "
            "put a single instance in a list"
        )
    rank_table, other_home = read_ranks(ranks)
    if rank_table.shape != score_table.shape:
        raise DataError(
            f"expected scores and ranks of one shape [N, K], got {list(score_table.shape)} "
            f"and {list(rank_table.shape)}"
        )
    if score_table.is_floating_point():
        gaps, unknown = torch.isnan(score_table), rank_table.to(score_table.device) == UNKNOWN
        refuse_where(gaps & ~unknown, score_table, "rows hold NaN", "expected scores to be numbers")
        score_table = score_table.masked_fill(gaps, 0.0)  # scores of unknown labels are not used
    return Batch(score_table, rank_table.to(score_table.device), home or other_home)


def with_predicted(batch: Batch, predicted: Input | None) -> Batch:
    """A batch with predicted ranks, which may tie labels of different scores."""
    if predicted is None:
        return batch
    table = read_ranks(predicted)[0].to(batch.scores.device)
    known = batch.ranks >= 0
    if table.shape != batch.ranks.shape:
        wanted = list(batch.ranks.shape)
        raise DataError(f"expected predicted ranks of shape {wanted}, got {list(table.shape)}")
    strange = ((table > 0) != (batch.scores > 0)) & known
    refuse_where(strange, table, "predicted ranks contradict", "expected more than 0 where scores are")
    return batch._replace(predicted=table)


def read_ranks(ranks: Input) -> tuple[Tensor, torch.device | None]:
    """Check ranks [N, K]: integers, -1 (unknown) or larger. They need not be dense."""
    table, home = as_tensor(ranks, "ranks")
    if table.ndim != 2:
        raise DataError(f"expected ranks of shape [N, K], got shape {list(table.shape)}")
    if table.is_floating_point():
        no_integer = ~torch.isfinite(table) | (table != table.round())
        refuse_where(no_integer, table, "rows are not ranks", "expected integers; -1 stands for unknown")
    table = table.long()
    refuse_where(
        table < UNKNOWN, table, "rows hold negative ranks", "expected 0, 1, 2, ..., or -1 for unknown"
    )
    return table, home


def as_tensor(values: Input, what: str) -> tuple[Tensor, torch.device | None]:
    """Numbers as a tensor that can be computed in float64, and the device of an input tensor."""
    if isinstance(values, Tensor):
        if values.is_complex():
            raise DataError(f"expected {what} to be real numbers, got {values.dtype}")
        computes = values.detach()
        # Apple's devices have no float64
        return (computes.cpu() if computes.device.type == "mps" else computes), values.device
    try:
        refuse_masked(values)
        array = numbers_of(values) if is_frame(values) else np.asarray(values)
    except DataError:
        raise
    except (TypeError, ValueError) as error:
        raise DataError(f"expected {what} to be numbers of shape [N, K]: {error}") from None
    if array.dtype.kind not in "biuf":
        raise DataError(f"expected {what} to be numbers, got {array.dtype}: {shorten(values)}")
    kind = np.float64 if array.dtype.kind == "f" else np.int64
    return torch.from_numpy(np.array(array, dtype=kind)), None


def refuse_where(bad: Tensor, table: Tensor, what: str, expected: str) -> None:
    if bool(bad.any()):
        shown = table.double() if table.is_floating_point() else table  # numpy has no bfloat16
        refuse(bad.cpu().numpy(), shown.cpu().numpy(), what, expected)


def ratio(above: Tensor, below: Tensor, otherwise: float = 0.0) -> Tensor:
    """``above / below``, or `otherwise` where `below` is zero."""
    divides = below > 0
    return torch.where(divides, above / torch.where(divides, below, 1.0), otherwise)


def reduce(found: Values, reduction: Reduction, home: torch.device | None) -> Result:
    """The vector itself, its sum, or its weighted mean (0 if all weights are zero)."""
    check_choice("reduction", reduction, get_args(Reduction))
    if reduction == "none":
        return give(found.values, home)
    total = found.values.sum()
    return give(total if reduction == "sum" else ratio(total, found.weights.sum()), home)


def check_choice(name: str, value: object, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise DataError(f"{name} is one of {', '.join(map(repr, choices))}, not {value!r}")


def give(result: Tensor, home: torch.device | None) -> Result:
    if home is None:
        return float(result) if result.ndim == 0 else result.numpy()
    narrow = home.type == "mps" and result.is_floating_point()
    return result.to(home, dtype=torch.float32 if narrow else result.dtype)

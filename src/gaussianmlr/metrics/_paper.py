"""The six metrics of the paper at once, with shared counts."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from gaussianmlr.metrics._inputs import Batch, Input, Values, ratio, read, with_predicted
from gaussianmlr.metrics._instances import Instances, blocks
from gaussianmlr.metrics.classification import Hits, f1_of, hamming_values, label_hits, max1_values
from gaussianmlr.metrics.ranking import gamma_values, rho_values, tau_b_values

MEANS: dict[str, Callable[[Instances], Values]] = {
    "tau_b": tau_b_values,
    "spearman_rho": rho_values,
    "gamma": gamma_values,
    "hamming_loss": hamming_values,
    "max1_error": max1_values,
}


class Sums(NamedTuple):
    """Sums from which the six metrics are computed; sums of batches can be added."""

    values: Tensor  # one for each of MEANS
    weight: Tensor
    hits: Tensor  # tp, fp, fn


def evaluate(scores: Input, ranks: Input, predicted: Input | None = None) -> dict[str, float]:
    """The six metrics of the paper's tables, by their names there, as fractions.

    Parameters
    ----------
    scores : array or tensor [N, K]
        Larger = more significant; a label is predicted relevant iff its score is above zero.
    ranks : array or tensor [N, K]
        The true ranks: 0 = irrelevant, larger = more significant, -1 = unknown.
    predicted : array or tensor [N, K], optional
        The predicted ranks, of models that predict ties (`Prediction.ranks`); tau-b, rho and gamma are then
        those of the order with its ties. By default the order of the scores.

    Returns
    -------
    dict of float
        tau_b, spearman_rho, gamma, hamming_loss, max1_error and (micro) f1, the same numbers as
        from the single functions, at the cost of the slowest.

    Examples
    --------
    >>> evaluate([[3.0, 1.5, -2.0, -7.0]], [[1, 2, 0, 0]])
    {'tau_b': 0.6, 'spearman_rho': 0.7777777777777778, 'gamma': 0.6,
     'hamming_loss': 0.0, 'max1_error': 0.0, 'f1': 1.0}
    """
    batch = with_predicted(read(scores, ranks), predicted)
    return {name: float(value) for name, value in finish(sums(batch)).items()}


def sums(batch: Batch) -> Sums:
    found = [_block_sums(block) for block in blocks(batch)]
    return Sums(*(torch.stack(parts).sum(0) for parts in zip(*found)))


def finish(found: Sums) -> dict[str, Tensor]:
    means = ratio(found.values, found.weight)
    return {**dict(zip(MEANS, means.unbind())), "f1": f1_of(Hits(*found.hits.unbind()))}


def _block_sums(block: Instances) -> Sums:
    values = [core(block) for core in MEANS.values()]
    hits = torch.stack([part.sum() for part in label_hits(block)])
    # all of them have the same weights: instances with a known label
    return Sums(torch.stack([value.values.sum() for value in values]), values[0].weights.sum(), hits)

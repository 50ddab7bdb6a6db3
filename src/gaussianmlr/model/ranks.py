"""Ranks and degrees where a calibration has given relevance and pairs different temperatures."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from gaussianmlr import normal
from gaussianmlr._utils.arrays import FloatArray

__all__ = ["mean_degree", "mean_rank", "rank_distribution"]

_REACHED = 1e-8  # below it the integrals over a label's positive significances have no digits left


def rank_distribution(mu: Tensor, sigma: Tensor, p_relevant: FloatArray) -> FloatArray:
    """The law of the pairs says how likely each rank of a relevant label is, [N, K, K + 1]."""
    found = np.array(normal.p_rank(mu, sigma).numpy())
    found[..., 1:] *= _share(mu, sigma, p_relevant)[..., None]
    found[..., 0] = 1.0 - p_relevant
    # What no quadrature reaches is a label that is barely relevant, below all others that are.
    found[..., 1] = np.maximum(0.0, found[..., 1] + 1.0 - found.sum(-1))
    return found


def mean_rank(mu: Tensor, sigma: Tensor, p_relevant: FloatArray) -> FloatArray:
    """The mean of `rank_distribution` [N, K], at a lower cost."""
    others = (normal.expected_rank(mu, sigma) - normal.p_relevant(mu, sigma)).numpy()
    found: FloatArray = p_relevant + np.maximum(0.0, others) * _share(mu, sigma, p_relevant)
    return found


def mean_degree(mu: FloatArray, sigma: FloatArray, p_relevant: FloatArray) -> FloatArray:
    """The mean significance of a label if it is relevant, times the probability that it is."""
    z = torch.from_numpy(mu / sigma)
    above = mu + sigma * normal.inverse_mills(z).numpy()
    possible = p_relevant > 0  # elsewhere the mean has no digits left
    return np.where(possible, p_relevant * np.maximum(0.0, np.where(possible, above, 0.0)), 0.0)


def _share(mu: Tensor, sigma: Tensor, p_relevant: FloatArray) -> FloatArray:
    """Probability of relevance over that of the law of the pairs; 1 at equal temperatures."""
    law = normal.p_relevant(mu, sigma).numpy()
    share: FloatArray = np.divide(p_relevant, law, out=np.zeros_like(law), where=law > _REACHED)
    return share

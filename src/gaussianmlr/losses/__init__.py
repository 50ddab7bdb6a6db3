r"""Losses of multi-label ranking, pure functions of tensors.

Outputs of a network are floats of shape [N, K] (or one per pair of labels), `ranks` integers of
shape [N, K] as everywhere: 0 irrelevant, larger = more significant, -1 unknown. Every loss

- computes one number per instance, then reduces by `reduction`: ``"mean"`` over instances (zero for
  an empty batch), ``"sum"``, or ``"none"``;
- takes ``supervision="strong"`` (the whole order) or ``"weak"`` (relevant against irrelevant);
- takes `Weights` of labels and of the order among relevant ones (see `gaussianmlr.losses.weighting`);
- leaves unknown labels out; an instance without comparisons has the value zero, with a gradient;
- is computed in float32 or better, also under autocast, and never modifies its inputs.

:math:`\mathcal B` is the set of ordered pairs, :math:`r_u > r_v \ge 0`; P the relevant labels, Q
the irrelevant ones.
"""

from gaussianmlr.losses.common import Balance, Reduction, Supervision, reduce
from gaussianmlr.losses.listwise import binary_relevance, plackett_luce, zlpr
from gaussianmlr.losses.pairwise import crpc, gmlr, lsep, lsep_threshold, pair_indices, ranknet
from gaussianmlr.losses.weighting import Weights

__all__ = [
    "Balance",
    "Reduction",
    "Supervision",
    "Weights",
    "binary_relevance",
    "crpc",
    "gmlr",
    "lsep",
    "lsep_threshold",
    "pair_indices",
    "plackett_luce",
    "ranknet",
    "reduce",
    "zlpr",
]

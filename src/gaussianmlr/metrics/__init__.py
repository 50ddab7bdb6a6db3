"""Metrics of multi-label rankings, per instance or as means over instances.

Every metric takes scores [N, K] whose zero is the threshold and true ranks [N, K] (0 = irrelevant, larger =
more significant, -1 = unknown and left out), as arrays or tensors, and returns the same kind, computed in
float64. An instance without a known label has the value 0 and does not count in a mean; the mean of no
instance is 0. No metric is ever NaN.

The torchmetrics classes are loaded on first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from gaussianmlr.metrics._paper import evaluate
from gaussianmlr.metrics.calibration import Abstention, Reliability, abstention, ece, reliability
from gaussianmlr.metrics.classification import f1, hamming_loss, max1_error, top1_accuracy
from gaussianmlr.metrics.ranking import (
    exact_match,
    gamma,
    kendall_tau_a,
    kendall_tau_b,
    positives_tau,
    spearman_rho,
)
from gaussianmlr.metrics.retrieval import average_precision, coverage, ndcg, ranking_loss
from gaussianmlr.metrics.ties import bucket_likelihood, tie_f1, tie_precision, tie_recall

if TYPE_CHECKING:
    from gaussianmlr.metrics.modular import (
        F1,
        NDCG,
        AveragePrecision,
        BucketLikelihood,
        Coverage,
        ExactMatch,
        GoodmanKruskalGamma,
        HammingLoss,
        InstanceF1,
        KendallTauA,
        KendallTauB,
        Max1Error,
        PaperMetrics,
        PositivesTau,
        RankingLoss,
        SpearmanRho,
        TieF1,
        TiePrecision,
        TieRecall,
        Top1Accuracy,
    )

__all__ = [
    "F1",
    "NDCG",
    "Abstention",
    "AveragePrecision",
    "BucketLikelihood",
    "Coverage",
    "ExactMatch",
    "GoodmanKruskalGamma",
    "HammingLoss",
    "InstanceF1",
    "KendallTauA",
    "KendallTauB",
    "Max1Error",
    "PaperMetrics",
    "PositivesTau",
    "RankingLoss",
    "Reliability",
    "SpearmanRho",
    "TieF1",
    "TiePrecision",
    "TieRecall",
    "Top1Accuracy",
    "abstention",
    "average_precision",
    "bucket_likelihood",
    "coverage",
    "ece",
    "evaluate",
    "exact_match",
    "f1",
    "gamma",
    "hamming_loss",
    "kendall_tau_a",
    "kendall_tau_b",
    "max1_error",
    "ndcg",
    "positives_tau",
    "ranking_loss",
    "reliability",
    "spearman_rho",
    "tie_f1",
    "tie_precision",
    "tie_recall",
    "top1_accuracy",
]


def __getattr__(name: str) -> object:
    if name in __all__:  # public names that are not imported above are classes
        return getattr(importlib.import_module(f"{__name__}.modular"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)

"""The metrics as torchmetrics classes: states are sums, so batches and processes may be of any size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, get_args

import torch
from torch import Tensor
from torchmetrics import Metric

from gaussianmlr.errors import DataError
from gaussianmlr.metrics import _paper, classification, ranking, retrieval
from gaussianmlr.metrics._inputs import Values, check_choice, ratio, read
from gaussianmlr.metrics._instances import Instances, blocks
from gaussianmlr.metrics.classification import Average, Hits, f1_of, label_hits
from gaussianmlr.metrics.ranking import Formula


class _Sums(Metric):
    """Holds named sums over instances, which add up over batches and processes."""

    is_differentiable = False
    full_state_update = False

    def _add_sums(self, *names: str, width: int | None = None) -> None:
        zero = torch.zeros(() if width is None else width, dtype=torch.float64)
        for name in names:
            self.add_state(name, default=zero.clone(), dist_reduce_fx="sum")

    def _count(self, name: str, amount: Tensor) -> None:
        setattr(self, name, getattr(self, name) + amount.to(getattr(self, name).device))


class InstanceMean(_Sums):
    """The mean over all instances seen of a metric that has a value an instance.

    Examples
    --------
    >>> from gaussianmlr.metrics import KendallTauB
    >>> metric = KendallTauB()
    >>> metric.update(torch.tensor([[3.0, 1.0, -1.0]]), torch.tensor([[2, 1, 0]]))
    >>> metric.update(torch.tensor([[1.0, 3.0, -1.0], [0.0, 0.0, 0.0]]), torch.tensor([[2, 1, 0], [1, 0, 0]]))
    >>> metric.compute()
    tensor(0.4444, dtype=torch.float64)
    """

    core: ClassVar[Callable[..., Values]]
    value_sum: Tensor
    weight_sum: Tensor

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.settings: dict[str, Any] = {}
        self._add_sums("value_sum", "weight_sum")

    def update(self, scores: Tensor, ranks: Tensor) -> None:
        """Add a batch of scores [N, K] and ranks [N, K]."""
        for block in blocks(read(scores, ranks)):
            found = self._values(block)
            self._count("value_sum", found.values.sum())
            self._count("weight_sum", found.weights.sum())

    def compute(self) -> Tensor:
        """The mean over the instances of all batches and processes; 0 where nothing counts."""
        return ratio(self.value_sum, self.weight_sum)

    def _values(self, block: Instances) -> Values:
        return type(self).core(block, **self.settings)


class KendallTauB(InstanceMean):
    """Mean of `kendall_tau_b`.

    Examples
    --------
    >>> from gaussianmlr.metrics import KendallTauB
    >>> KendallTauB()(torch.tensor([[3.0, 1.5, -2.0, 0.5]]), torch.tensor([[1, 2, 0, 0]]))
    tensor(0.5477, dtype=torch.float64)
    """

    core = staticmethod(ranking.tau_b_values)
    higher_is_better = True


class KendallTauA(InstanceMean):
    """Mean of `kendall_tau_a`.

    Examples
    --------
    >>> from gaussianmlr.metrics import KendallTauA
    >>> KendallTauA()(torch.tensor([[3.0, 1.5, -2.0, 0.5]]), torch.tensor([[1, 2, 0, 0]]))
    tensor(0.5000, dtype=torch.float64)
    """

    core = staticmethod(ranking.tau_a_values)
    higher_is_better = True


class GoodmanKruskalGamma(InstanceMean):
    """Mean of `gamma`.

    Examples
    --------
    >>> from gaussianmlr.metrics import GoodmanKruskalGamma
    >>> GoodmanKruskalGamma()(torch.tensor([[3.0, 1.5, -2.0, 0.5]]), torch.tensor([[1, 2, 0, 0]]))
    tensor(0.6000, dtype=torch.float64)
    """

    core = staticmethod(ranking.gamma_values)
    higher_is_better = True


class PositivesTau(InstanceMean):
    """Mean of `positives_tau` over the instances with an ordered pair of positives.

    Examples
    --------
    >>> from gaussianmlr.metrics import PositivesTau
    >>> PositivesTau()(torch.tensor([[3.0, 1.5, -2.0, 0.5]]), torch.tensor([[1, 2, 0, 0]]))
    tensor(-1., dtype=torch.float64)
    """

    core = staticmethod(ranking.positives_tau_values)
    higher_is_better = True


class ExactMatch(InstanceMean):
    """Mean of `exact_match`.

    Examples
    --------
    >>> from gaussianmlr.metrics import ExactMatch
    >>> ExactMatch()(torch.tensor([[3.0, 1.5, -2.0, 0.5]]), torch.tensor([[1, 2, 0, 0]]))
    tensor(0., dtype=torch.float64)
    """

    core = staticmethod(ranking.exact_values)
    higher_is_better = True


class SpearmanRho(InstanceMean):
    """Mean of `spearman_rho` by the tied or the untied formula.

    Examples
    --------
    >>> from gaussianmlr.metrics import SpearmanRho
    >>> SpearmanRho()(torch.tensor([[3.0, 1.5, -2.0, 0.5]]), torch.tensor([[1, 2, 0, 0]]))
    tensor(0.7379, dtype=torch.float64)
    """

    core = staticmethod(ranking.rho_values)
    higher_is_better = True

    def __init__(self, formula: Formula = "tied", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        check_choice("formula", formula, get_args(Formula))
        self.settings = {"formula": formula}


class HammingLoss(InstanceMean):
    """Mean of `hamming_loss`.

    Examples
    --------
    >>> from gaussianmlr.metrics import HammingLoss
    >>> HammingLoss()(torch.tensor([[3.0, 1.5, -2.0, 0.5]]), torch.tensor([[1, 2, 0, 0]]))
    tensor(0.2500, dtype=torch.float64)
    """

    core = staticmethod(classification.hamming_values)
    higher_is_better = False


class Max1Error(InstanceMean):
    """Mean of `max1_error`.

    Examples
    --------
    >>> from gaussianmlr.metrics import Max1Error
    >>> Max1Error()(torch.tensor([[3.0, 1.5, -2.0, 0.5]]), torch.tensor([[1, 2, 0, 0]]))
    tensor(0., dtype=torch.float64)
    """

    core = staticmethod(classification.max1_values)
    higher_is_better = False


class Top1Accuracy(InstanceMean):
    """Mean of `top1_accuracy`.

    Examples
    --------
    >>> from gaussianmlr.metrics import Top1Accuracy
    >>> Top1Accuracy()(torch.tensor([[3.0, 1.5, -2.0, 0.5]]), torch.tensor([[1, 2, 0, 0]]))
    tensor(0., dtype=torch.float64)
    """

    core = staticmethod(classification.top1_values)
    higher_is_better = True


class InstanceF1(InstanceMean):
    """Mean of `f1` with ``average="instance"``.

    Examples
    --------
    >>> from gaussianmlr.metrics import InstanceF1
    >>> InstanceF1()(torch.tensor([[3.0, 1.5, -2.0, 0.5]]), torch.tensor([[1, 2, 0, 0]]))
    tensor(0.8000, dtype=torch.float64)
    """

    core = staticmethod(classification.f1_values)
    higher_is_better = True

    def __init__(self, zero_division: float = 0.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.settings = {"zero_division": zero_division}


class RankingLoss(InstanceMean):
    """Mean of `ranking_loss`.

    Examples
    --------
    >>> from gaussianmlr.metrics import RankingLoss
    >>> RankingLoss()(torch.tensor([[3.0, 1.5, -2.0, 0.5]]), torch.tensor([[1, 2, 0, 0]]))
    tensor(0., dtype=torch.float64)
    """

    core = staticmethod(retrieval.ranking_loss_values)
    higher_is_better = False


class AveragePrecision(InstanceMean):
    """Mean of `average_precision`.

    Examples
    --------
    >>> from gaussianmlr.metrics import AveragePrecision
    >>> AveragePrecision()(torch.tensor([[3.0, 1.5, -2.0, 0.5]]), torch.tensor([[1, 2, 0, 0]]))
    tensor(1., dtype=torch.float64)
    """

    core = staticmethod(retrieval.average_precision_values)
    higher_is_better = True


class Coverage(InstanceMean):
    """Mean of `coverage`.

    Examples
    --------
    >>> from gaussianmlr.metrics import Coverage
    >>> Coverage()(torch.tensor([[3.0, 1.5, -2.0, 0.5]]), torch.tensor([[1, 2, 0, 0]]))
    tensor(2., dtype=torch.float64)
    """

    core = staticmethod(retrieval.coverage_values)
    higher_is_better = False


class NDCG(InstanceMean):
    """Mean of `ndcg`, of the first k places where k is given.

    Examples
    --------
    >>> from gaussianmlr.metrics import NDCG
    >>> NDCG(k=2)(torch.tensor([[3.0, 1.5, -2.0, 0.5]]), torch.tensor([[1, 2, 0, 0]]))
    tensor(0.8597, dtype=torch.float64)
    """

    core = staticmethod(retrieval.ndcg_values)
    higher_is_better = True

    def __init__(self, k: int | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        retrieval.check_places(k)
        self.settings = {"k": k}


class F1(_Sums):
    """`f1` over all instances seen, micro or macro (which needs the number of labels).

    Examples
    --------
    >>> from gaussianmlr.metrics import F1
    >>> metric = F1()
    >>> metric.update(torch.tensor([[3.0, -1.0, 0.5]]), torch.tensor([[2, 1, 0]]))
    >>> metric.update(torch.tensor([[1.0, -2.0, -1.0]]), torch.tensor([[1, 0, 0]]))
    >>> metric.compute()
    tensor(0.6667, dtype=torch.float64)
    """

    higher_is_better = True
    tp: Tensor
    fp: Tensor
    fn: Tensor
    known: Tensor

    def __init__(
        self,
        average: Average = "micro",
        *,
        num_labels: int | None = None,
        zero_division: float = 0.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        check_choice("average", average, get_args(Average))
        if average == "instance":
            raise DataError("F1 sums hits over instances; for average='instance' use InstanceF1")
        if average == "macro" and num_labels is None:
            raise DataError("expected num_labels with average='macro', got None")
        self.average, self.zero_division = average, zero_division
        self._add_sums("tp", "fp", "fn", "known", width=num_labels if average == "macro" else None)

    def update(self, scores: Tensor, ranks: Tensor) -> None:
        """Add a batch of scores [N, K] and ranks [N, K]."""
        batch = read(scores, ranks)
        if self.average == "macro" and batch.ranks.shape[1] != len(self.tp):
            raise DataError(f"expected {len(self.tp)} labels, got {batch.ranks.shape[1]}")
        for block in blocks(batch):
            amounts = (*label_hits(block), block.known.sum(0))
            for name, amount in zip(("tp", "fp", "fn", "known"), amounts):
                self._count(name, amount.sum() if self.average == "micro" else amount)

    def compute(self) -> Tensor:
        """F1 of the hits of all batches and processes; the mean over labels for macro."""
        values = f1_of(Hits(self.tp, self.fp, self.fn), self.zero_division)
        if self.average == "micro":
            return values
        weights = (self.known > 0).double()
        return ratio((values * weights).sum(), weights.sum())


class PaperMetrics(_Sums):
    """The paper's six metrics at once, a dict by the names of its tables, as `evaluate` gives it.

    Examples
    --------
    >>> from gaussianmlr.metrics import PaperMetrics
    >>> metric = PaperMetrics()
    >>> metric.update(torch.tensor([[3.0, 1.5, -2.0, -7.0]]), torch.tensor([[1, 2, 0, 0]]))
    >>> {name: round(float(value), 3) for name, value in metric.compute().items()}
    {'tau_b': 0.6, 'spearman_rho': 0.778, 'gamma': 0.6, 'hamming_loss': 0.0, 'max1_error': 0.0, 'f1': 1.0}
    """

    value_sums: Tensor
    weight_sum: Tensor
    hits: Tensor

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._add_sums("value_sums", width=len(_paper.MEANS))
        self._add_sums("weight_sum")
        self._add_sums("hits", width=3)

    def update(self, scores: Tensor, ranks: Tensor) -> None:
        """Add a batch of scores [N, K] and ranks [N, K]."""
        found = _paper.sums(read(scores, ranks))
        for name, amount in zip(("value_sums", "weight_sum", "hits"), found):
            self._count(name, amount)

    def compute(self) -> dict[str, Tensor]:
        """All six of the instances of all batches and processes."""
        return _paper.finish(_paper.Sums(self.value_sums, self.weight_sum, self.hits))

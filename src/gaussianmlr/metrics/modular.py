"""The metrics as torchmetrics classes: states are sums, so batches may have any size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, get_args

import torch
from torch import Tensor
from torchmetrics import Metric

from gaussianmlr.errors import DataError
from gaussianmlr.metrics import _paper, classification, ranking, retrieval
from gaussianmlr.metrics._inputs import Values, check_choice, ratio, read, with_predicted
from gaussianmlr.metrics._instances import Instances, blocks
from gaussianmlr.metrics.classification import Average, Hits, f1_of, label_hits
from gaussianmlr.metrics.ranking import Formula
from gaussianmlr.metrics.ties import bucket_likelihood, tie_hits


class _Sums(Metric):
    """Named sums over instances, added over batches and processes."""

    is_differentiable = False
    full_state_update = False

    def _add_sums(self, *names: str, width: int | None = None) -> None:
        zero = torch.zeros(() if width is None else width, dtype=torch.float64)
        for name in names:
            self.add_state(name, default=zero.clone(), dist_reduce_fx="sum")

    def _count(self, name: str, amount: Tensor) -> None:
        setattr(self, name, getattr(self, name) + amount.to(getattr(self, name).device))


class InstanceMean(_Sums):
    """The mean over all instances of a metric with one value per instance.

    Examples
    --------
    >>> metric = KendallTauB()
    >>> metric.update(torch.tensor([[3.0, 1.0, -1.0]]), torch.tensor([[2, 1, 0]]))
    >>> metric.update(torch.tensor([[1.0, 3.0, -1.0], [0.0, 0.0, 0.0]]), torch.tensor([[2, 1, 0], [1, 0, 0]]))
    >>> metric.compute()
    tensor(0.4444, dtype=torch.float64)
    """

    higher_is_better = True
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
        """The mean over the instances of all batches and processes; 0 without any."""
        return ratio(self.value_sum, self.weight_sum)

    def _values(self, block: Instances) -> Values:
        return type(self).core(block, **self.settings)


class KendallTauB(InstanceMean):
    """Mean of `kendall_tau_b`.

    Examples
    --------
    >>> KendallTauB()(torch.tensor([[3.0, 1.5, -2.0, 0.5]]), torch.tensor([[1, 2, 0, 0]]))
    tensor(0.5477, dtype=torch.float64)
    """

    core = staticmethod(ranking.tau_b_values)


class KendallTauA(InstanceMean):
    """Mean of `kendall_tau_a`.

    Examples
    --------
    >>> KendallTauA()(torch.tensor([[3.0, 1.5, -2.0, 0.5]]), torch.tensor([[1, 2, 0, 0]]))
    tensor(0.5000, dtype=torch.float64)
    """

    core = staticmethod(ranking.tau_a_values)


class GoodmanKruskalGamma(InstanceMean):
    """Mean of `gamma`.

    Examples
    --------
    >>> GoodmanKruskalGamma()(torch.tensor([[3.0, 1.5, -2.0, 0.5]]), torch.tensor([[1, 2, 0, 0]]))
    tensor(0.6000, dtype=torch.float64)
    """

    core = staticmethod(ranking.gamma_values)


class PositivesTau(InstanceMean):
    """Mean of `positives_tau` over the instances with an ordered pair of positives.

    Examples
    --------
    >>> PositivesTau()(torch.tensor([[3.0, 1.5, -2.0, 0.5]]), torch.tensor([[1, 2, 0, 0]]))
    tensor(-1., dtype=torch.float64)
    """

    core = staticmethod(ranking.positives_tau_values)


class ExactMatch(InstanceMean):
    """Mean of `exact_match`.

    Examples
    --------
    >>> ExactMatch()(torch.tensor([[3.0, 1.5, -2.0, 0.5]]), torch.tensor([[1, 2, 0, 0]]))
    tensor(0., dtype=torch.float64)
    """

    core = staticmethod(ranking.exact_values)


class SpearmanRho(InstanceMean):
    """Mean of `spearman_rho` by the tied or the untied formula.

    Examples
    --------
    >>> SpearmanRho()(torch.tensor([[3.0, 1.5, -2.0, 0.5]]), torch.tensor([[1, 2, 0, 0]]))
    tensor(0.7379, dtype=torch.float64)
    """

    core = staticmethod(ranking.rho_values)

    def __init__(self, formula: Formula = "tied", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        check_choice("formula", formula, get_args(Formula))
        self.settings = {"formula": formula}


class HammingLoss(InstanceMean):
    """Mean of `hamming_loss`.

    Examples
    --------
    >>> HammingLoss()(torch.tensor([[3.0, 1.5, -2.0, 0.5]]), torch.tensor([[1, 2, 0, 0]]))
    tensor(0.2500, dtype=torch.float64)
    """

    core = staticmethod(classification.hamming_values)
    higher_is_better = False


class Max1Error(InstanceMean):
    """Mean of `max1_error`.

    Examples
    --------
    >>> Max1Error()(torch.tensor([[3.0, 1.5, -2.0, 0.5]]), torch.tensor([[1, 2, 0, 0]]))
    tensor(0., dtype=torch.float64)
    """

    core = staticmethod(classification.max1_values)
    higher_is_better = False


class Top1Accuracy(InstanceMean):
    """Mean of `top1_accuracy`.

    Examples
    --------
    >>> Top1Accuracy()(torch.tensor([[3.0, 1.5, -2.0, 0.5]]), torch.tensor([[1, 2, 0, 0]]))
    tensor(0., dtype=torch.float64)
    """

    core = staticmethod(classification.top1_values)


class InstanceF1(InstanceMean):
    """Mean of `f1` with ``average="instance"``.

    Examples
    --------
    >>> InstanceF1()(torch.tensor([[3.0, 1.5, -2.0, 0.5]]), torch.tensor([[1, 2, 0, 0]]))
    tensor(0.8000, dtype=torch.float64)
    """

    core = staticmethod(classification.f1_values)

    def __init__(self, zero_division: float = 0.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.settings = {"zero_division": zero_division}


class RankingLoss(InstanceMean):
    """Mean of `ranking_loss`.

    Examples
    --------
    >>> RankingLoss()(torch.tensor([[3.0, 1.5, -2.0, 0.5]]), torch.tensor([[1, 2, 0, 0]]))
    tensor(0., dtype=torch.float64)
    """

    core = staticmethod(retrieval.ranking_loss_values)
    higher_is_better = False


class AveragePrecision(InstanceMean):
    """Mean of `average_precision`.

    Examples
    --------
    >>> AveragePrecision()(torch.tensor([[3.0, 1.5, -2.0, 0.5]]), torch.tensor([[1, 2, 0, 0]]))
    tensor(1., dtype=torch.float64)
    """

    core = staticmethod(retrieval.average_precision_values)


class Coverage(InstanceMean):
    """Mean of `coverage`.

    Examples
    --------
    >>> Coverage()(torch.tensor([[3.0, 1.5, -2.0, 0.5]]), torch.tensor([[1, 2, 0, 0]]))
    tensor(2., dtype=torch.float64)
    """

    core = staticmethod(retrieval.coverage_values)
    higher_is_better = False


class NDCG(InstanceMean):
    """Mean of `ndcg`, over the first k places if k is given.

    Examples
    --------
    >>> NDCG(k=2)(torch.tensor([[3.0, 1.5, -2.0, 0.5]]), torch.tensor([[1, 2, 0, 0]]))
    tensor(0.8597, dtype=torch.float64)
    """

    core = staticmethod(retrieval.ndcg_values)

    def __init__(self, k: int | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        retrieval.check_places(k)
        self.settings = {"k": k}


class TieF1(_Sums):
    """`tie_f1` over all instances seen.

    Examples
    --------
    >>> TieF1()(torch.tensor([[2, 2, 1, 0]]), torch.tensor([[1, 1, 1, 0]]))
    tensor(0.5000, dtype=torch.float64)
    """

    higher_is_better = True
    both: Tensor
    predicted: Tensor
    true: Tensor

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._add_sums("both", "predicted", "true")

    def update(self, scores: Tensor, ranks: Tensor) -> None:
        """Add a batch of predicted ranks (or scores) [N, K] and ranks [N, K]."""
        for block in blocks(read(scores, ranks)):
            for name, amount in tie_hits(block)._asdict().items():
                self._count(name, amount.sum())

    def compute(self) -> Tensor:
        """The value over the pairs of all batches and processes."""
        return ratio(2.0 * self.both, self.predicted + self.true)


class TiePrecision(TieF1):
    """`tie_precision` over all instances seen.

    Examples
    --------
    >>> TiePrecision()(torch.tensor([[2, 2, 1, 0]]), torch.tensor([[1, 1, 1, 0]]))
    tensor(1., dtype=torch.float64)
    """

    def compute(self) -> Tensor:
        """The value over the pairs of all batches and processes."""
        return ratio(self.both, self.predicted)


class TieRecall(TieF1):
    """`tie_recall` over all instances seen.

    Examples
    --------
    >>> TieRecall()(torch.tensor([[2, 2, 1, 0]]), torch.tensor([[1, 1, 1, 0]]))
    tensor(0.3333, dtype=torch.float64)
    """

    def compute(self) -> Tensor:
        """The value over the pairs of all batches and processes."""
        return ratio(self.both, self.true)


class BucketLikelihood(_Sums):
    """Mean of `bucket_likelihood` over the instances with two relevant labels.

    Examples
    --------
    >>> above, tie = torch.tensor([[[0.4, 0.7], [0.1, 0.4]]]), torch.full((1, 2, 2), 0.2)
    >>> BucketLikelihood()(above, tie, torch.tensor([[2, 1]]))
    tensor(-0.3567, dtype=torch.float64)
    """

    higher_is_better = True
    value_sum: Tensor
    weight_sum: Tensor

    def __init__(self, floor: float = 1e-12, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.floor = floor
        self._add_sums("value_sum", "weight_sum")

    def update(self, p_above: Tensor, p_tie: Tensor, ranks: Tensor) -> None:
        """Add a batch of probabilities [N, K, K] and ranks [N, K]."""
        values = bucket_likelihood(p_above, p_tie, ranks, reduction="none", floor=self.floor)
        self._count("value_sum", values.sum())
        self._count("weight_sum", ((ranks > 0).sum(1) > 1).double().sum())

    def compute(self) -> Tensor:
        """The mean over the instances of all batches and processes; 0 without any."""
        return ratio(self.value_sum, self.weight_sum)


class F1(_Sums):
    """`f1` over all instances seen, micro or macro (which needs the number of labels).

    Examples
    --------
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

    def update(self, scores: Tensor, ranks: Tensor, predicted: Tensor | None = None) -> None:
        """Add a batch of scores [N, K] and ranks [N, K], and predicted ranks as for `evaluate`."""
        found = _paper.sums(with_predicted(read(scores, ranks), predicted))
        for name, amount in zip(("value_sums", "weight_sum", "hits"), found):
            self._count(name, amount)

    def compute(self) -> dict[str, Tensor]:
        """All six over the instances of all batches and processes."""
        return _paper.finish(_paper.Sums(self.value_sums, self.weight_sum, self.hits))

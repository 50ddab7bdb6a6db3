"""Classic rivals for tables, with the interface of the networks: they say whether a network is worth it."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import has_fit_parameter

from gaussianmlr.errors import DataError, shorten
from gaussianmlr.estimators.base import BaseRanker, Training
from gaussianmlr.estimators.targets import FloatArray, IntArray, one_order
from gaussianmlr.losses import Supervision, pair_indices
from gaussianmlr.methods import Reading
from gaussianmlr.methods.crpc import vote_scores
from gaussianmlr.orders import weak
from gaussianmlr.rankers import aggregate
from gaussianmlr.rankers.aggregation import Method

__all__ = ["CalibratedRanker", "DummyRanker", "NeighbourRanker"]

_CELLS = 1 << 22  # ranks of neighbours [query, neighbour, label] at a time: 32 MB


class CalibratedRanker(BaseRanker):
    r"""Calibrated label ranking: one binary classifier per pair of labels, and votes.

    Besides the K labels there is a virtual one, below the relevant labels and above the others. For a
    pair (u, v) a classifier learns :math:`p_{uv} = P(u \succ v)` from the instances that order the
    two; ties are left out. It votes with :math:`p_{uv}` for u and :math:`1 - p_{uv}` for v, and a
    label's score is its votes minus those of the virtual label.

    Parameters
    ----------
    classifier : scikit-learn classifier, optional
        What is trained on each pair; a random forest if left out. One without `predict_proba` votes
        with 0 or 1.
    supervision : {"strong", "weak"}
        Whether the order among relevant labels is used.
    labels : sequence of str, optional
        All labels, if `y` is texts or lists and a label may be missing from the training data.
    n_jobs : int, optional
        Pairs that are trained at once, as joblib counts.
    random_state : int, RandomState or None
        Seeds of the classifiers.

    Attributes
    ----------
    labels_, classes_
        The labels, as a tuple and as an array.
    classifiers_ : list
        One fitted classifier per pair, in the order of `gaussianmlr.losses.pair_indices`; a number where
        the training data leave nothing to learn.

    References
    ----------
    Fürnkranz, Hüllermeier, Loza Mencía and Brinker (2008), Multilabel classification via calibrated
    label ranking. Machine Learning 73.

    Examples
    --------
    >>> X = [[0.0], [0.1], [0.2], [1.0], [1.1], [1.2]]
    >>> y = ["sky > sea"] * 3 + ["sea > sky"] * 3
    >>> CalibratedRanker(random_state=0).fit(X, y).predict_order([[0.05], [1.15]])
    ['sky > sea', 'sea > sky']
    """

    def __init__(
        self,
        classifier: Any = None,
        *,
        supervision: Supervision = "strong",
        labels: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.classifier = classifier
        self.supervision = supervision
        self.labels = labels
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _learn(self, data: Training) -> None:
        if self.supervision not in ("strong", "weak"):
            raise DataError(f"supervision is 'strong' or 'weak', not {self.supervision!r}")
        base = self._base()
        if data.weights is not None and not has_fit_parameter(base, "sample_weight"):
            raise DataError(f"{shorten(base)} takes no sample_weight; choose another classifier")
        ranks = one_order(data.ranks)
        if self.supervision == "weak":
            ranks = weak(ranks)
        # The virtual label stands below every relevant and above every irrelevant one.
        heights = np.concatenate([np.where(ranks >= 0, 2 * ranks, -1), np.ones_like(ranks[:, :1])], axis=1)
        left, right = (index.numpy() for index in pair_indices(ranks.shape[1]))
        random = check_random_state(self.random_state)
        seeds = random.randint(np.iinfo(np.int32).max, size=len(left))
        self.classifiers_ = Parallel(n_jobs=self.n_jobs)(
            delayed(_fit_pair)(_seeded(base, int(seed)), data, heights[:, u], heights[:, v])
            for u, v, seed in zip(left, right, seeds)
        )

    def _read(self, X: Any) -> Reading:
        columns = [_chances(one, X) for one in self.classifiers_]
        return Reading.of_scores(vote_scores(torch.from_numpy(np.stack(columns, axis=1))))

    def _base(self) -> Any:
        return RandomForestClassifier() if self.classifier is None else self.classifier

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = get_tags(self._base()).input_tags.sparse
        return tags


class NeighbourRanker(BaseRanker):
    """Aggregates the orders of the nearest training instances.

    Parameters
    ----------
    n_neighbours : int
        Number of neighbours; with weights, the total weight of the neighbours.
    aggregation : {"mean_rank", "borda", "kemeny"}
        How their orders are aggregated, see `gaussianmlr.rankers`.
    metric : str or callable
        Distance, as in `sklearn.neighbors.NearestNeighbors`.
    scale : bool
        Divide every column by its standard deviation first.
    labels : sequence of str, optional
        All labels, if `y` is texts or lists and a label may be missing from the training data.

    Attributes
    ----------
    labels_, classes_
        The labels, as a tuple and as an array.

    References
    ----------
    Brinker and Hüllermeier (2007), Case-based multilabel ranking. IJCAI.

    Examples
    --------
    >>> X, y = [[0.0], [0.1], [1.0], [1.1]], ["sky > sea", "sky > sea", "sea > sky", "sea"]
    >>> NeighbourRanker(n_neighbours=2).fit(X, y).predict_order([[0.05]])
    ['sky > sea']
    """

    def __init__(
        self,
        n_neighbours: int = 15,
        *,
        aggregation: Method = "mean_rank",
        metric: Any = "euclidean",
        scale: bool = True,
        labels: Any = None,
    ) -> None:
        self.n_neighbours = n_neighbours
        self.aggregation = aggregation
        self.metric = metric
        self.scale = scale
        self.labels = labels

    def _learn(self, data: Training) -> None:
        if not isinstance(self.n_neighbours, int | np.integer) or self.n_neighbours < 1:
            raise DataError(f"n_neighbours is {self.n_neighbours!r}; expected a whole number from 1 up")
        self._ranks_seen, self._weights_seen = one_order(data.ranks), data.weights
        self._scaler = None
        inputs = data.inputs
        if self.scale:
            self._scaler = StandardScaler(with_mean=False).fit(inputs, sample_weight=data.weights)
            inputs = self._scaler.transform(inputs)
        self._nearest = NearestNeighbors(metric=self.metric).fit(inputs)
        _consensus(self._ranks_seen[:1, None], self.aggregation, None)  # refuses what cannot be aggregated

    def _read(self, X: Any) -> Reading:
        seen, wanted = self._ranks_seen, self.n_neighbours
        count = min(wanted, len(seen))
        if self._weights_seen is not None:  # enough even if the lightest are nearest
            reached = np.cumsum(np.sort(self._weights_seen)) >= wanted
            count = int(reached.argmax()) + 1 if reached.any() else len(seen)
        step = max(1, _CELLS // (count * seen.shape[1]))
        parts = [self._read_some(X[start : start + step], count) for start in range(0, X.shape[0], step)]
        return Reading.join([Reading(*map(torch.from_numpy, part)) for part in parts])

    def _read_some(self, X: Any, count: int) -> tuple[FloatArray, FloatArray]:
        inputs = X if self._scaler is None else self._scaler.transform(X)
        near = self._nearest.kneighbors(inputs, n_neighbors=count, return_distance=False)
        if self._weights_seen is None:
            return _consensus(self._ranks_seen[near], self.aggregation, None)
        weights = self._weights_seen[near]
        before = weights.cumsum(axis=1) - weights
        shares = np.clip(self.n_neighbours - before, 0, weights)  # the last may count in part
        return _consensus(self._ranks_seen[near], self.aggregation, shares)


class DummyRanker(BaseRanker):
    """Predicts the aggregate of all training orders, ignoring the inputs.

    Parameters
    ----------
    aggregation : {"mean_rank", "borda", "kemeny"}
        How the orders are aggregated, see `gaussianmlr.rankers`.
    labels : sequence of str, optional
        All labels, if `y` is texts or lists and a label may be missing from the training data.

    Attributes
    ----------
    labels_, classes_
        The labels, as a tuple and as an array.

    Examples
    --------
    >>> dummy = DummyRanker().fit([[0.0], [1.0], [2.0]], ["sky > sea", "sky", "sky > sea"])
    >>> dummy.predict_order([[7.0]]), dummy.predict_proba([[7.0]]).round(2)
    (['sky > sea'], array([[0.6, 0.8]]))
    """

    def __init__(self, *, aggregation: Method = "mean_rank", labels: Any = None) -> None:
        self.aggregation = aggregation
        self.labels = labels

    def _learn(self, data: Training) -> None:
        weights = None if data.weights is None else data.weights[None]
        self._consensus = _consensus(one_order(data.ranks)[None], self.aggregation, weights)

    def _read(self, X: Any) -> Reading:
        return Reading(*(torch.from_numpy(np.repeat(part, X.shape[0], axis=0)) for part in self._consensus))


def _consensus(ranks: IntArray, method: Method, weights: FloatArray | None) -> tuple[FloatArray, FloatArray]:
    """Scores and P(relevant) [N, K] from the orders of others [N, R, K].

    Relevant labels score their rank in the aggregate; the others score below zero, the closer to it the
    more of the others call them relevant. The share of these, with one vote for and one against added
    (Laplace), is P(relevant), kept on the side of one half that the aggregate says.
    """
    if method == "thurstone":
        raise DataError("aggregation='thurstone' needs people who order many instances; use 'mean_rank'")
    order = aggregate(ranks, method, weights)
    shares = (ranks >= 0) * (1.0 if weights is None else weights[..., None])
    chance = (((ranks > 0) * shares).sum(axis=1) + 1.0) / (shares.sum(axis=1) + 2.0)
    relevant = order > 0
    chance = np.where(relevant, np.maximum(chance, 0.5), np.minimum(chance, 0.5))
    return np.where(relevant, order, chance - 1.0), chance


def _fit_pair(classifier: Any, data: Training, upper: IntArray, lower: IntArray) -> Any:
    """A classifier of "upper stands above lower", or its probability if there is nothing to learn."""
    ordered = (upper >= 0) & (lower >= 0) & (upper != lower)
    above = (upper > lower)[ordered].astype(np.int64)
    if len(above) == 0:
        return 0.5
    if above.min() == above.max():
        return float(above[0])
    if data.weights is None:
        return classifier.fit(data.inputs[ordered], above)
    return classifier.fit(data.inputs[ordered], above, sample_weight=data.weights[ordered])


def _chances(classifier: Any, X: Any) -> FloatArray:
    if isinstance(classifier, float):
        return np.full(X.shape[0], classifier)
    if hasattr(classifier, "predict_proba"):
        return np.asarray(classifier.predict_proba(X)[:, 1], dtype=np.float64)
    return np.asarray(classifier.predict(X), dtype=np.float64)


def _seeded(classifier: Any, seed: int) -> Any:
    """An unfitted copy, with seeds set where they are None."""
    copy = clone(classifier)
    open_seeds = [
        name
        for name, value in copy.get_params().items()
        if name.rpartition("__")[2] == "random_state" and value is None
    ]
    return copy.set_params(**dict.fromkeys(open_seeds, seed))

"""Shared parts of the estimators: checks of X and y, and predictions from one reading."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Literal, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from gaussianmlr._utils.magnitude import refuse_large
from gaussianmlr.errors import DataError, shorten
from gaussianmlr.estimators.scorers import measure
from gaussianmlr.estimators.targets import (
    FloatArray,
    IntArray,
    check_weights,
    read_orders,
    read_truth,
    refuse_unknown,
)
from gaussianmlr.methods import Reading
from gaussianmlr.model.prediction import Prediction

_CONTAINERS = ("default", "pandas")


class Training(NamedTuple):
    """Checked training data, without the rows that weigh nothing."""

    inputs: Any  # array or CSR matrix [N, D], float32 or float64
    ranks: IntArray  # [N, K], or [N, R, K] of several rankers
    weights: FloatArray | None  # [N]


class BaseRanker(BaseEstimator):  # type: ignore[misc]
    """Base of the estimators: subclasses implement `_learn` and `_read`; all predictions are shared.

    A subclass has a parameter `labels`, learns from checked data in `_learn`, and returns a `Reading` from
    `_read`. A `fit` with further parameters calls `_training` itself.
    """

    labels: Any
    labels_: tuple[str, ...]

    @property
    def _method_name(self) -> str:
        return type(self).__name__

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from orders.

        Parameters
        ----------
        X : array-like or sparse matrix [N, D]
            Inputs.
        y : orders
            Whatever `gaussianmlr.to_ranks` reads, or ranks of several rankers [N, R, K], then aggregated.
        sample_weight : array-like [N], optional
            Weights of the instances.
        """
        self._learn(self._training(X, y, sample_weight))
        return self

    def _learn(self, data: Training) -> None:
        """Learn from checked data, for estimators that use the `fit` above."""
        raise NotImplementedError

    @abstractmethod
    def _read(self, X: Any) -> Reading:
        """The readings of checked inputs."""

    def predict_full(self, X: Any) -> Prediction:
        """Everything the estimator predicts, as one `Prediction`; all other predictions derive from it."""
        check_is_fitted(self)
        reading = self._read(check_inputs(self, X, reset=False))
        names = tuple(X.index) if hasattr(X, "iloc") else ()
        return Prediction.from_reading(reading, self.labels_, method=self._method_name, names=names)

    def predict(self, X: Any) -> Any:
        """Ranks [N, K]: 0 = irrelevant, larger = more significant, equal = tied."""
        return self._give(self.predict_full(X).ranks, X)

    def decision_function(self, X: Any) -> Any:
        """Scores [N, K]: larger = more significant, above zero = relevant."""
        return self._give(self.predict_full(X).scores, X)

    def predict_proba(self, X: Any) -> Any:
        """P(relevant) [N, K]; above one half exactly if `predict` says relevant."""
        return self._give(self.predict_full(X).p_relevant, X)

    def predict_order(
        self, X: Any, *, form: Literal["text", "lists"] = "text", confidence: float | None = None
    ) -> list[Any]:
        """Orders as texts, ``"mountain > sky = cloud"``, or as lists of buckets.

        Parameters
        ----------
        X : array-like or sparse matrix [N, D]
            Inputs.
        form : {"text", "lists"}
            As `gaussianmlr.to_text` or as `gaussianmlr.to_lists` writes them.
        confidence : float, optional
            Keep only comparisons with at least this probability: partial orders as texts, see
            `Prediction.partial_text`. For methods with sigma.
        """
        if form not in ("text", "lists"):
            raise DataError(f"form is 'text' or 'lists', not {form!r}")
        found = self.predict_full(X)
        if confidence is None:
            return list(found.orders if form == "text" else found.lists)
        if form == "lists":
            raise DataError("a partial order is not a list of buckets; omit form, or confidence")
        return found.partial_text(confidence)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Mean Kendall's tau-b of the predicted orders, weighted by `sample_weight`.

        Parameters
        ----------
        X : array-like or sparse matrix [N, D]
            Inputs.
        y : orders
            The true orders, in any form `fit` takes.
        sample_weight : array-like [N], optional
            Weights of the instances.
        """
        scores = self.predict_full(X).scores
        return measure("tau_b", scores, read_truth(y, self.labels_), sample_weight)

    def set_output(self, *, predict: Literal["default", "pandas"] | None = None) -> Self:
        """Choose what `predict`, `predict_proba` and `decision_function` return.

        Parameters
        ----------
        predict : {"default", "pandas"}, optional
            Arrays; or frames with one column per label and the index of X. None changes nothing.
        """
        if predict is None:
            return self
        if predict not in _CONTAINERS:
            raise DataError(f"predict is 'default' or 'pandas', not {predict!r}")
        self._sklearn_output_config = {"predict": predict}  # the name that scikit-learn's clone copies
        return self

    @property
    def classes_(self) -> npt.NDArray[np.object_]:
        """The labels, under scikit-learn's name."""
        check_is_fitted(self)
        return np.array(self.labels_, dtype=object)

    def _give(self, values: npt.NDArray[Any], X: Any) -> Any:
        config = getattr(self, "_sklearn_output_config", {})
        if config.get("predict", "default") == "default":
            return values.copy()  # a Prediction is immutable, its copies are not
        import pandas as pd

        return pd.DataFrame(values, columns=list(self.labels_), index=X.index if hasattr(X, "iloc") else None)

    def _training(self, X: Any, y: Any, sample_weight: Any) -> Training:
        """Check training data; sets `labels_`, `n_features_in_` and `feature_names_in_`."""
        if y is None:
            name = type(self).__name__
            raise DataError(f"{name} requires y to be passed, but the target y is None; expected orders")
        inputs = check_inputs(self, X, reset=True)
        ranks, self.labels_ = read_orders(y, self.labels, keep_rankers=True)
        if len(ranks) != inputs.shape[0]:
            raise DataError(f"X has {inputs.shape[0]} rows and y {len(ranks)}; expected the same number")
        weights = None
        if sample_weight is not None:
            weights = check_weights(sample_weight, len(ranks))
            counts = weights > 0
            if not counts.any():
                raise DataError("the sample weights are all zero; expected at least one that is not")
            inputs, ranks, weights = inputs[counts], ranks[counts], weights[counts]
        refuse_unknown(ranks, "y")
        return Training(inputs, ranks, weights)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.two_d_labels = True
        tags.target_tags.multi_output, tags.target_tags.single_output = True, False
        tags.input_tags.sparse = True
        return tags


def check_inputs(estimator: BaseRanker, X: Any, *, reset: bool) -> Any:
    """Finite numbers [N, D], dense or CSR; with `reset`, later inputs must have their columns."""
    kinds = [np.float64, np.float32]
    try:
        inputs = validate_data(estimator, X, reset=reset, accept_sparse="csr", dtype=kinds)
    except ValueError as error:
        if "could not convert" not in str(error):
            raise
        raise DataError(
            f"{_first_word(X)}; expected numbers: encode it first, e.g. by a ColumnTransformer in a pipeline"
        ) from None
    refuse_large(inputs, getattr(estimator, "feature_names_in_", np.arange(inputs.shape[1])).tolist())
    return inputs


def _first_word(X: Any) -> str:
    """The location of the first value in X that is not a number."""
    columns = X.items() if hasattr(X, "iloc") else enumerate(np.asarray(X, dtype=object).T)
    for name, column in columns:
        for row, value in enumerate(column):
            try:
                float(value)
            except (TypeError, ValueError):
                return f"column {name!r} of X is {shorten(value)} in row {row}"
    return "X contains text"

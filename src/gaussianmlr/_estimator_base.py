"""What all estimators share: reading X and y, and one reading that every prediction is made of."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Literal, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from gaussianmlr.errors import DataError, shorten
from gaussianmlr.methods import Reading
from gaussianmlr.orders import to_ranks
from gaussianmlr.prediction import Prediction
from gaussianmlr.rankers import aggregate

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
_CONTAINERS = ("default", "pandas")


class Training(NamedTuple):
    """Checked training data, without the rows that weigh nothing."""

    inputs: Any  # array or CSR matrix [N, D], float32 or float64
    ranks: IntArray  # [N, K], or [N, R, K] of several rankers
    weights: FloatArray | None  # [N]


class BaseRanker(BaseEstimator):  # type: ignore[misc]
    """Base of the estimators: `fit` and `_read` are a subclass's own, every prediction is shared.

    A subclass has a parameter `labels`, calls `_training` in `fit`, and gives a `Reading` by `_read`.
    """

    labels: Any
    labels_: tuple[str, ...]

    @property
    def _method_name(self) -> str:
        return type(self).__name__

    @abstractmethod
    def _read(self, X: Any) -> Reading:
        """What the fitted estimator says of checked inputs."""

    def predict_full(self, X: Any) -> Prediction:
        """Everything the estimator says, as one `Prediction`; all other predictions are read from it."""
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
        """P(relevant) [N, K]; above one half just where `predict` says relevant."""
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
            Say only what is sure, each comparison with this probability: partial orders as texts, see
            `Prediction.partial_text`. For methods with sigma.
        """
        if form not in ("text", "lists"):
            raise DataError(f"form is 'text' or 'lists', not {form!r}")
        found = self.predict_full(X)
        if confidence is None:
            return list(found.orders if form == "text" else found.lists)
        if form == "lists":
            raise DataError("a partial order is no list of buckets; leave form out, or confidence")
        return found.partial_text(confidence)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Mean Kendall's tau-b of the predicted orders, weighted where weights are given.

        Parameters
        ----------
        X : array-like or sparse matrix [N, D]
            Inputs.
        y : orders
            The true orders, in any form `fit` takes.
        sample_weight : array-like [N], optional
            How much each instance counts.
        """
        from gaussianmlr.scorers import measure

        scores = self.predict_full(X).scores
        return measure("tau_b", scores, read_truth(y, self.labels_), sample_weight)

    def set_output(self, *, predict: Literal["default", "pandas"] | None = None) -> Self:
        """Choose what `predict`, `predict_proba` and `decision_function` give.

        Parameters
        ----------
        predict : {"default", "pandas"}, optional
            Arrays; or frames with one column a label and the index of X. None changes nothing.
        """
        if predict is None:
            return self
        if predict not in _CONTAINERS:
            raise DataError(f"predict is 'default' or 'pandas', not {predict!r}")
        self._sklearn_output_config = {"predict": predict}  # the name that scikit-learn's clone copies
        return self

    @property
    def classes_(self) -> npt.NDArray[np.object_]:
        """The labels, under the name that pipelines and searches hand through."""
        check_is_fitted(self)
        return np.array(self.labels_, dtype=object)

    def _give(self, values: npt.NDArray[Any], X: Any) -> Any:
        config = getattr(self, "_sklearn_output_config", {})
        if config.get("predict", "default") == "default":
            return values.copy()  # people may write into what they get, a Prediction never changes
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
            raise DataError(f"X has {inputs.shape[0]} rows and y {len(ranks)}; expected as many")
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


def read_orders(
    y: Any, labels: Any = None, *, keep_rankers: bool = False
) -> tuple[IntArray, tuple[str, ...]]:
    """Ranks and labels of orders in any form `to_ranks` takes, of sparse ones and of several rankers.

    Parameters
    ----------
    y : orders
        What `to_ranks` takes, a sparse matrix of ranks, or ranks of several rankers [N, R, K].
    labels : sequence of str, optional
        The labels in the order of the columns wanted.
    keep_rankers : bool
        Leave [N, R, K] as it is; else the rankers are made one by mean rank ordering.
    """
    if hasattr(y, "toarray"):  # sparse
        y = y.toarray()
    elif hasattr(y, "__array__") and not hasattr(y, "iloc") and not hasattr(y, "detach"):
        y = np.asarray(y)
    if y.ndim == 3 if hasattr(y, "ndim") else _is_cube(y):
        table = np.asarray(y.detach().cpu() if hasattr(y, "detach") else y)
        flat = to_ranks(table.reshape(-1, table.shape[-1]), labels)
        by_ranker = flat.ranks.reshape(table.shape)
        return (by_ranker if keep_rankers else aggregate(by_ranker)), flat.labels
    found = to_ranks(y, labels)
    return found.ranks, found.labels


def read_truth(y: Any, labels: Any = None) -> IntArray:
    """Ranks [N, K] that a fitted estimator is held against; `labels` are those it knows."""
    try:
        return read_orders(y, labels)[0]
    except DataError as error:
        if lacking := _lacking(y, labels):
            raise DataError(
                f"{error}\nthe y that was fitted lacks {shorten(lacking)}, as a fold of the data may; "
                "name all labels when the estimator is made: labels=[...]"
            ) from None
        raise


def _lacking(y: Any, labels: Any) -> list[str]:
    """Labels that `y` names beside those that are known."""
    try:
        named = read_orders(y)[1]
    except DataError:
        return []
    unnamed = named == tuple(map(str, range(len(named))))  # ranks without names: columns are counted
    return [] if labels is None or unnamed else [label for label in named if label not in set(labels)]


def refuse_unknown(ranks: IntArray, what: str) -> None:
    """Refuse orders in which nothing is known at all."""
    if (ranks < 0).all():
        shape = " x ".join(map(str, ranks.shape))
        raise DataError(
            f"all {shape} entries of {what} are unknown (-1), so that there is nothing to learn from; "
            "expected at least one label that is known to be relevant (1, 2, ...) or irrelevant (0)"
        )


def one_order(ranks: IntArray) -> IntArray:
    """Ranks [N, K]: of several rankers, their aggregate."""
    return aggregate(ranks) if ranks.ndim == 3 else ranks


def check_weights(weights: Any, count: int) -> FloatArray:
    """Weights as floats [N], finite and not negative."""
    try:
        array = np.asarray(weights, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError(f"expected sample_weight to be numbers, got {shorten(weights)}") from None
    if array.shape != (count,):
        raise DataError(f"expected sample_weight of shape [{count}], got shape {list(array.shape)}")
    bad = np.flatnonzero(~(np.isfinite(array) & (array >= 0))).tolist()
    if bad:
        problems = [(row, f"weight {array[row]}; expected a finite number from 0 up") for row in bad]
        raise DataError.of_rows("sample weights cannot be used", problems, count)
    return array


def check_inputs(estimator: BaseRanker, X: Any, *, reset: bool) -> Any:
    """Finite numbers [N, D], dense or CSR; with `reset`, their columns are what is expected from now on."""
    kinds = [np.float64, np.float32]
    try:
        return validate_data(estimator, X, reset=reset, accept_sparse="csr", dtype=kinds)
    except ValueError as error:
        if "could not convert" not in str(error):
            raise
        raise DataError(
            f"{_first_word(X)}; expected numbers: encode it first, say with a ColumnTransformer in a pipeline"
        ) from None


def _first_word(X: Any) -> str:
    """Where inputs hold something that is no number."""
    columns = X.items() if hasattr(X, "iloc") else enumerate(np.asarray(X, dtype=object).T)
    for name, column in columns:
        for row, value in enumerate(column):
            try:
                float(value)
            except (TypeError, ValueError):
                return f"column {name!r} of X is {shorten(value)} in row {row}"
    return "X holds words"


def _is_cube(y: Any) -> bool:
    """Whether nested lists hold numbers three levels deep."""
    for _ in range(3):
        if not isinstance(y, list | tuple | np.ndarray) or len(y) == 0:
            return False
        y = y[0]
    return isinstance(y, int | float | np.number) and not isinstance(y, bool)

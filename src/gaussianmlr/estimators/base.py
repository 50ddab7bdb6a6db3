"""Shared parts of the estimators: checks of X and y, and predictions from one reading."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from functools import partial
from typing import Any, Literal, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from gaussianmlr._utils.magnitude import refuse_large
from gaussianmlr.data.cells import is_gap
from gaussianmlr.data.columns import fit_columns, recode, slots
from gaussianmlr.data.inputs import Inputs, encoding_of, scaled, table_inputs
from gaussianmlr.data.matrices import TEXT, Matrix, read_matrix
from gaussianmlr.data.splits import held_out_size
from gaussianmlr.data.tokens import default_encoder
from gaussianmlr.errors import DataError, shorten
from gaussianmlr.estimators.scorers import measure
from gaussianmlr.estimators.targets import (
    FloatArray,
    IntArray,
    check_weights,
    read_orders,
    read_targets,
    read_truth,
    refuse_unknown,
)
from gaussianmlr.methods import Reading
from gaussianmlr.model.network import has_texts, texts_of
from gaussianmlr.model.prediction import Prediction
from gaussianmlr.nn.backbones.expanded import Expand
from gaussianmlr.training.features import compute_features

_CONTAINERS = ("default", "pandas")


class Training(NamedTuple):
    """Checked training data, without the rows that weigh nothing."""

    inputs: Any  # array or CSR matrix [N, D], float32 or float64, as `check_inputs` gives it
    ranks: Any  # int array [N, K], or [N, R, K] of several rankers; or SparseRanks
    weights: FloatArray | None  # [N]


class BaseRanker(BaseEstimator):  # type: ignore[misc]
    """Base of the estimators: subclasses implement `_learn` and `_read`; all predictions are shared.

    A subclass has a parameter `labels`, learns from checked data in `_learn`, and returns a `Reading` from
    `_read`. A `fit` with further parameters calls `_training` itself.
    """

    labels: Any
    labels_: tuple[str, ...]
    _cells: Matrix  # what the columns hold, without rows
    _coded: Inputs | None = None  # how gaps and codes become numbers, for estimators that take no others
    _takes_sparse_ranks = False  # whether `_learn` takes them for many labels
    _takes_codes = False  # whether `_learn` and `_read` take them as they are

    @property
    def _encoder(self) -> str:
        """The backbone that takes texts."""
        return default_encoder()

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from orders.

        Parameters
        ----------
        X : array-like, frame or sparse matrix [N, D]
            Inputs: numbers, categories, booleans, dates, texts; NaN and None are gaps. A list or Series of
            strings is one column of texts.
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
        reading = self._read(self._prepared(check_inputs(self, X, reset=False)))
        names = tuple(X.index) if hasattr(X, "iloc") else ()
        return self._prediction_of(reading, names)

    def _prediction_of(self, reading: Reading, names: tuple[Any, ...]) -> Prediction:
        return Prediction.from_reading(reading, self.labels_, method=type(self).__name__, names=names)

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
        found = self.predict_full(X)
        claimed = found.scores if found.tau is None else found.ranks  # with the ties that are predicted
        return measure("tau_b", claimed, read_truth(y, self.labels_), sample_weight)

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
        read = read_targets if self._takes_sparse_ranks else partial(read_orders, keep_rankers=True)
        ranks, self.labels_ = read(y, self.labels)
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
        return Training(self._fit_cells(inputs, weights), ranks, weights)

    def _fit_cells(self, inputs: Any, weights: FloatArray | None) -> Any:
        """Learn how columns are coded; the training rows so coded."""
        columns = self._cells.columns
        encoding = fit_columns(inputs, columns, self._encoder)
        names = column_names(self, inputs.shape[1])
        inputs = recode(inputs, columns, encoding, names)
        self._cells, self._coded = self._cells._replace(columns=encoding), None
        if not self._takes_codes and not hasattr(inputs, "toarray"):
            self._coded = table_inputs(inputs, [str(name) for name in names], encoding, weights)
        return self._prepared(inputs)

    def _prepared(self, inputs: Any) -> Any:
        """Coded rows as `_learn` and `_read` take them: by default without codes and gaps."""
        if self._takes_codes or self._coded is None:
            return inputs
        if has_texts(self._coded):
            return compute_features(texts_of(self._coded), scaled(inputs, self._coded)).double().numpy()
        if "encoding" in self._coded:
            expand = Expand(slots(encoding_of(self._coded) or ()))
            return expand(scaled(inputs, self._coded).double()).numpy()
        gaps = np.isnan(inputs)
        return np.where(gaps, np.array(self._coded["scaling"]["mean"]), inputs) if gaps.any() else inputs

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.two_d_labels = True
        tags.target_tags.multi_output, tags.target_tags.single_output = True, False
        tags.input_tags.sparse = tags.input_tags.allow_nan = True
        return tags


def parted(data: Training, share: float, seed: int) -> tuple[Training, Training | None]:
    """The rows to train on, and the share of them that calibrates guarantees; none for a share of 0."""
    if isinstance(share, bool) or not isinstance(share, int | float | np.number) or not 0 <= share <= 0.5:
        raise DataError(f"conformal is {share!r}; expected a share from 0 to 0.5")
    if share == 0:
        return data, None
    order = np.random.default_rng((seed, 1)).permutation(len(data.ranks))
    count = held_out_size(len(order), float(share))
    if count == len(order):
        raise DataError(f"conformal {share:g} leaves no row to train on, of {len(order)}")

    def rows(which: IntArray) -> Training:
        weights = None if data.weights is None else data.weights[which]
        return Training(data.inputs[which], data.ranks[which], weights)

    return rows(np.sort(order[count:])), rows(np.sort(order[:count]))


def check_inputs(estimator: BaseRanker, X: Any, *, reset: bool) -> Any:
    """Numbers [N, D], dense or CSR; NaN is a gap. With `reset`, later inputs must have their columns.

    Texts, booleans, categories and dates of a frame or an array of objects become numbers, see `read_matrix`.
    """
    like: Matrix | None = None if reset else getattr(estimator, "_cells", None)
    X = _as_frame(X, like)
    coded = like is not None and (like.columns is not None or like.used is not None)
    cells = Matrix(np.zeros((0, 0)), None, None)
    if coded or (reset and _is_mixed(X)):
        if len(X) == 0:
            raise DataError("X has no rows; expected at least one")
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        cells = read_matrix(X if hasattr(X, "columns") else _objects(X), like)
        found = cells.values
        if (infinite := np.flatnonzero(np.isinf(found).any(axis=0))).size:
            place = int(infinite[0] if cells.used is None else cells.used[infinite[0]])
            name = X.columns[place] if hasattr(X, "columns") else place
            raise DataError(f"column {name!r} of X holds infinity; expected finite numbers")
    else:
        found = _numbers(estimator, X, reset=reset)
    if reset:
        estimator._cells = cells._replace(values=cells.values[:0], notes=())
        for note in cells.notes:
            warnings.warn(note, stacklevel=4)
    refuse_large(found, column_names(estimator, found.shape[1]))
    return found


def _as_frame(X: Any, like: Matrix | None) -> Any:
    """Texts in a row, a list or a Series, as a frame with the column "text"; anything else as it is.

    Where texts were learned from, any row, list or Series is one of texts.
    """
    if isinstance(X, str):
        raise DataError(f"X is the single text {shorten(X)}; expected a list of texts")
    if not isinstance(X, list | tuple) and len(getattr(X, "shape", ())) != 1:
        return X
    values = X.to_numpy() if hasattr(X, "to_numpy") else X
    of_texts = like is not None and [one.kind for one in like.columns or ()] == [TEXT]
    in_rows = any(isinstance(one, list | tuple | np.ndarray) for one in values)
    if in_rows or not (of_texts or any(isinstance(one, str) for one in values)):
        return X
    import pandas as pd

    for row, one in enumerate(values):
        if not isinstance(one, str) and not is_gap(one):
            raise DataError(f"X is {shorten(one)} in row {row}; expected a text")
    index = X.index if hasattr(X, "iloc") else None
    return pd.DataFrame({TEXT: np.asarray(values, dtype=object)}, index=index)


def column_names(estimator: BaseRanker, width: int) -> list[Any]:
    """Names of the columns that are used; numbers if X had none."""
    cells: Matrix | None = getattr(estimator, "_cells", None)
    if cells is not None and cells.columns is not None:
        width = len(cells.columns)  # a text has several columns of tokens
    names = getattr(estimator, "feature_names_in_", np.arange(estimator.n_features_in_)).tolist()
    used = range(width) if cells is None or cells.used is None else cells.used
    return [names[place] for place in used]


def _numbers(estimator: BaseRanker, X: Any, *, reset: bool) -> Any:
    kinds = [np.float64, np.float32]
    finite: Any = True if hasattr(X, "toarray") else "allow-nan"
    try:
        return validate_data(
            estimator, X, reset=reset, accept_sparse="csr", dtype=kinds, ensure_all_finite=finite
        )
    except ValueError as error:
        if "could not convert" not in str(error):
            raise
        raise DataError(f"{_first_word(X)}; expected numbers, as in training") from None


def _objects(X: Any) -> npt.NDArray[np.object_]:
    array = np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=object)
    if array.ndim != 2:
        raise DataError(f"X has shape {list(array.shape)}; expected [N, D]")
    return array


def _is_mixed(X: Any) -> bool:
    """Whether inputs may hold more than numbers."""
    if hasattr(X, "toarray"):
        return False
    if hasattr(X, "columns") and hasattr(X, "to_numpy"):
        return len(X) > 0 and any(_is_more(X[name].dtype) for name in X.columns)
    kind = X.dtype.kind if isinstance(X, np.ndarray) else ""
    if isinstance(X, list | tuple):
        try:
            kind = np.asarray(X).dtype.kind
        except ValueError:  # ragged, which is refused as numbers
            return False
    return kind in ("O", "U", "M") and np.ndim(X) == 2 and len(X) > 0


def _is_more(kind: Any) -> bool:
    """Whether a column of this type of pandas or polars holds more than numbers."""
    if hasattr(kind, "is_numeric"):
        return not kind.is_numeric()
    return getattr(kind, "kind", "O") not in ("i", "u", "f")


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

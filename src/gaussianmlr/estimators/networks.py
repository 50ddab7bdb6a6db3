"""Networks as scikit-learn estimators."""

from __future__ import annotations

import copy
import math
import os
import threading
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, Self
from weakref import WeakKeyDictionary

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from gaussianmlr.data.inputs import Inputs, scaled, scaling_of
from gaussianmlr.data.loading import ranked_rows
from gaussianmlr.data.splits import rolling_hold_out
from gaussianmlr.errors import DataError
from gaussianmlr.estimators.base import BaseRanker, Training, check_inputs
from gaussianmlr.estimators.random_state import generators_kept
from gaussianmlr.estimators.targets import FloatArray, one_order, read_truth, refuse_unknown
from gaussianmlr.methods import Reading
from gaussianmlr.model.model import Model, join
from gaussianmlr.model.recipe import Recipe
from gaussianmlr.training.fit import fit

__all__ = ["GaussianMLR", "MultiLabelRanker"]

_ONE_AT_A_TIME = threading.Lock()  # torch has one generator per process, shared by all threads
_EXACT: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()  # networks in double precision, made once
_EPOCHS = (20, 100)  # minimum and maximum number of epochs for few rows
_STEPS = (150, 3_000)  # steps to reach with more epochs, and steps not to exceed
_FEWEST_EPOCHS = 10  # for many rows
_BATCH = (32, 512)
_BATCHES = 20  # per epoch, within the limits of the batch size
_READ_AT_ONCE = 1024
# Members can only be averaged in a common gauge; for few rows, all comparisons have the same weight.
_DEFAULTS: dict[str, dict[str, Any]] = {"gmlr": {"gauge": "canonical", "balance": "comparisons"}}


class MultiLabelRanker(BaseRanker):
    r"""Networks for tables, trained by any method of multi-label ranking.

    A perceptron with two hidden layers is trained with the loss of the method. Inputs are standardised,
    part of the rows is held out to choose the best epoch by tau-b, and several networks with different
    held-out rows are averaged. The defaults suit 100 to 100,000 rows.

    Parameters
    ----------
    method : str
        A name in `gaussianmlr.methods.available`, or ``"package.module:Class"``.
    supervision : {"strong", "weak"}, optional
        Whether the order among relevant labels is used; the default of the method if not given.
    method_settings : mapping, optional
        Further settings of the method.
    hidden : int
        Units of each of the two hidden layers.
    dropout : float
        Share of hidden units dropped in training.
    n_members : int
        Number of networks that are trained and averaged. One is fastest, four or eight are a little better.
    epochs : int, optional
        Maximum number of passes over the training data; depends on the number of rows by default.
    batch_size : int, optional
        Instances per step; depends on the number of rows by default.
    rate, weight_decay : float
        The maximum learning rate, and decoupled weight decay.
    validation_fraction : float
        Share of the rows held out to choose the best epoch. 0 trains on all rows and keeps the last epoch.
    patience : int, optional
        Stop after this many epochs without improvement; no early stopping by default.
    scale : bool
        Standardise every column; sparse inputs are only divided by the standard deviation.
    rankers : {"aggregate", "all"}
        For several rankers: train on their aggregate, or on one of them drawn in each epoch.
    recipe : mapping, optional
        Further fields of `gaussianmlr.model.recipe.Recipe`, such as ``{"select": "loss"}``.
    labels : sequence of str, optional
        All labels, if `y` is texts or lists and a label may be missing from the training data.
    accelerator : str
        Lightning's accelerator: ``"cpu"``, ``"cuda"``, ``"auto"``, ...
    random_state : int, RandomState or None
        Seed of weights, held-out rows, batches and dropout; an int makes fits reproducible.

    Attributes
    ----------
    labels_, classes_
        The labels, as a tuple and as an array.
    model_ : Model
        The trained model.
    n_features_in_, feature_names_in_
        Columns of X.
    history_ : list of list of dict
        For each member, one row per epoch.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 3))
    >>> y = np.where(X > 0, X.argsort(1).argsort(1) + 1, 0)
    >>> ranker = MultiLabelRanker("ranknet", n_members=1, random_state=0).fit(X, y)
    >>> ranker.predict_order([[1.5, 0.5, -1.0]])
    ['0 > 1']
    """

    def __init__(
        self,
        method: str = "gmlr",
        *,
        supervision: Literal["strong", "weak"] | None = None,
        method_settings: Mapping[str, Any] | None = None,
        hidden: int = 256,
        dropout: float = 0.5,
        n_members: int = 2,
        epochs: int | None = None,
        batch_size: int | None = None,
        rate: float = 1e-3,
        weight_decay: float = 0.05,
        validation_fraction: float = 0.15,
        patience: int | None = None,
        scale: bool = True,
        rankers: Literal["aggregate", "all"] = "aggregate",
        recipe: Mapping[str, Any] | None = None,
        labels: Any = None,
        accelerator: str = "cpu",
        random_state: Any = None,
    ) -> None:
        self.method = method
        self.supervision = supervision
        self.method_settings = method_settings
        self.hidden = hidden
        self.dropout = dropout
        self.n_members = n_members
        self.epochs = epochs
        self.batch_size = batch_size
        self.rate = rate
        self.weight_decay = weight_decay
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.scale = scale
        self.rankers = rankers
        self.recipe = recipe
        self.labels = labels
        self.accelerator = accelerator
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None, eval_set: Any = None) -> Self:
        """Train.

        Parameters
        ----------
        X : array-like or sparse matrix [N, D]
            Inputs.
        y : orders
            Whatever `gaussianmlr.to_ranks` reads, or ranks of several rankers [N, R, K].
        sample_weight : array-like [N], optional
            Weights of the instances.
        eval_set : tuple (X, y), optional
            Data to choose the best epoch, instead of held-out rows.
        """
        data = self._training(X, y, sample_weight)
        self._check_numbers()
        validation = None if eval_set is None else self._evaluation(eval_set)
        inputs = self._about(data)
        seeds = check_random_state(self.random_state).randint(np.iinfo(np.int32).max, size=self.n_members)
        with _ONE_AT_A_TIME, generators_kept():
            self._train(data, validation, inputs, [int(seed) for seed in seeds])
        return self

    def predict_significance(self, X: Any) -> Any:
        """Means and standard deviations of the significances, ``(mu, sigma)``, both [N, K].

        They are in the canonical gauge (`gaussianmlr.normal.canonical`), so that instances can be compared.
        For methods with sigma.
        """
        found = self.predict_full(X)
        return self._give(found.significance, X), self._give(found.sigma, X)

    def predict_pairs(self, X: Any) -> FloatArray:
        """P(label u is more significant than label v) [N, K, K]. For methods with sigma."""
        return self.predict_full(X).p_above.copy()

    def predict_first(self, X: Any) -> Any:
        """P(a label is the most significant of all) [N, K]. For methods with sigma."""
        return self._give(self.predict_full(X).p_first, X)

    def to_model(self) -> Model:
        """The trained model, as returned by `gaussianmlr.load`."""
        check_is_fitted(self)
        return self.model_

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
        """Write the model to a folder that ``gmlr predict``, ``gmlr export`` and `gaussianmlr.load` read.

        Parameters
        ----------
        path : path-like
            The folder.
        overwrite : bool
            Whether an existing model may be replaced.
        """
        return self.to_model().save(Path(path), overwrite=overwrite)

    def _read(self, X: Any) -> Reading:
        model = self._exact_model()
        return Reading.join(
            [
                model.read(scaled(X[start : start + _READ_AT_ONCE], model.inputs))
                for start in range(0, X.shape[0], _READ_AT_ONCE)
            ]
        )

    def _exact_model(self) -> Model:
        """The model in double precision, in which a row's reading does not depend on its batch."""
        network = self.model_.network
        if network not in _EXACT:
            _EXACT[network] = copy.deepcopy(network).double()
        return replace(self.model_, network=_EXACT[network])

    @property
    def _method_name(self) -> str:
        return self.model_.method.name

    def _check_numbers(self) -> None:
        for name in ("hidden", "n_members", "epochs", "batch_size"):
            value = getattr(self, name)
            if value is None and name in ("epochs", "batch_size"):
                continue
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
                raise DataError(f"{name} is {value!r}; expected a whole number from 1 up")
        share = self.validation_fraction
        if not isinstance(share, int | float | np.number) or not 0 <= share < 1:
            raise DataError(f"validation_fraction is {share!r}; expected a share below 1")

    def _evaluation(self, eval_set: Any) -> Training:
        if not isinstance(eval_set, tuple | list) or len(eval_set) != 2:
            raise DataError("expected eval_set to be a pair (X, y)")
        inputs = check_inputs(self, eval_set[0], reset=False)
        ranks = read_truth(eval_set[1], self.labels_)
        if len(ranks) != inputs.shape[0]:
            raise DataError(f"eval_set has {inputs.shape[0]} rows of X and {len(ranks)} of y")
        refuse_unknown(ranks, "eval_set's y")
        return Training(inputs, ranks, None)

    def _about(self, data: Training) -> Inputs:
        """Description of the inputs: columns and their scaling."""
        width = data.inputs.shape[1]
        names = getattr(self, "feature_names_in_", range(width))
        about: Inputs = {"kind": "table", "channels": width, "columns": [str(name) for name in names]}
        if self.scale:
            about["scaling"] = scaling_of(data.inputs, data.weights)
        return about

    def _recipe(self, rows: int, seed: int, *, weighted: bool = False) -> Recipe:
        """The recipe for a number of training rows."""
        batch = _batch_for(rows, _BATCHES, *_BATCH) if self.batch_size is None else self.batch_size
        steps = max(1, -(-rows // batch))
        epochs = _epochs_for(steps) if self.epochs is None else self.epochs
        settings = {**_DEFAULTS.get(self.method, {}), **(self.method_settings or {})}
        if self.supervision is not None:
            settings["supervision"] = self.supervision
        return Recipe(
            method=self.method,
            method_settings=settings,
            backbone="mlp",
            backbone_settings={"width": int(self.hidden)},  # the head applies dropout to its inputs, too
            head_settings={"hidden": int(self.hidden), "dropout": float(self.dropout)},
            epochs=int(epochs),
            batch_size=int(batch),
            rate=float(self.rate),
            weight_decay=float(self.weight_decay),
            patience=self.patience,
            select="loss" if weighted else "tau_b",  # only the loss is weighted
            rankers=self.rankers,
            seed=seed,
        ).replace(**(self.recipe or {}))

    def _train(self, data: Training, validation: Training | None, inputs: Inputs, seeds: list[int]) -> None:
        given = None
        if validation is not None:
            given = ranked_rows(validation.inputs, inputs, validation.ranks)
        weights = None if data.weights is None else data.weights / data.weights.mean()
        models, self.history_ = [], []
        for number, seed in enumerate(seeds):
            kept, chosen = np.arange(len(data.ranks)), given
            if given is None:
                kept, held = rolling_hold_out(len(data.ranks), self.validation_fraction, number, seeds[0])
                if len(held):
                    shares = None if weights is None else weights[held]
                    chosen = ranked_rows(data.inputs[held], inputs, one_order(data.ranks[held]), shares)
            ranks = data.ranks[kept] if self.rankers == "all" else one_order(data.ranks[kept])
            shares = None if weights is None else weights[kept]
            train = ranked_rows(data.inputs[kept], inputs, ranks, shares, seed)
            found = fit(
                self._recipe(len(kept), seed, weighted=weights is not None),
                train,
                chosen,
                labels=self.labels_,
                inputs=inputs,
                accelerator=self.accelerator,
            )
            models.append(found.model)
            self.history_.append(found.result.history)
        self.model_ = join(models)


def _batch_for(rows: int, per_epoch: int, least: int, most: int) -> int:
    """The power of two that makes about so many batches of the rows, within limits."""
    power = max(0, round(math.log2(max(rows, 1) / per_epoch)))
    return min(max(1 << power, least), most)


def _epochs_for(steps: int) -> int:
    """Number of epochs for a number of steps per epoch: the fewer steps, the more epochs."""
    few = min(max(_EPOCHS[0], -(-_STEPS[0] // steps)), _EPOCHS[1])
    return max(_FEWEST_EPOCHS, min(few, _STEPS[1] // steps))


class GaussianMLR(MultiLabelRanker):
    r"""GaussianMLR for tables: every label has a significance :math:`N(\mu, \sigma^2)`.

    The sign of :math:`\mu` says whether a label is relevant, the order of the means ranks the relevant
    labels, and :math:`\sigma` says how sure that is. `MultiLabelRanker` with the method ``"gmlr"``.

    Parameters
    ----------
    supervision : {"strong", "weak"}
        Whether the order among relevant labels is used.
    method_settings : mapping, optional
        Further settings of `gaussianmlr.methods.Gmlr`; the defaults are ``{"gauge": "canonical",
        "balance": "comparisons"}``.
    hidden, dropout, n_members, epochs, batch_size, rate, weight_decay, validation_fraction, patience
        As for `MultiLabelRanker`.
    scale, rankers, recipe, labels, accelerator, random_state
        As for `MultiLabelRanker`.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 3))
    >>> y = np.where(X > 0, X.argsort(1).argsort(1) + 1, 0)
    >>> ranker = GaussianMLR(n_members=1, random_state=0).fit(X, y)
    >>> ranker.predict_order([[1.5, 0.5, -1.0]])
    ['0 > 1']
    >>> mu, sigma = ranker.predict_significance([[1.5, 0.5, -1.0]])
    >>> (mu > 0).astype(int)
    array([[1, 1, 0]])
    """

    def __init__(
        self,
        *,
        supervision: Literal["strong", "weak"] = "strong",
        method_settings: Mapping[str, Any] | None = None,
        hidden: int = 256,
        dropout: float = 0.5,
        n_members: int = 2,
        epochs: int | None = None,
        batch_size: int | None = None,
        rate: float = 1e-3,
        weight_decay: float = 0.05,
        validation_fraction: float = 0.15,
        patience: int | None = None,
        scale: bool = True,
        rankers: Literal["aggregate", "all"] = "aggregate",
        recipe: Mapping[str, Any] | None = None,
        labels: Any = None,
        accelerator: str = "cpu",
        random_state: Any = None,
    ) -> None:
        super().__init__(
            supervision=supervision,
            method_settings=method_settings,
            hidden=hidden,
            dropout=dropout,
            n_members=n_members,
            epochs=epochs,
            batch_size=batch_size,
            rate=rate,
            weight_decay=weight_decay,
            validation_fraction=validation_fraction,
            patience=patience,
            scale=scale,
            rankers=rankers,
            recipe=recipe,
            labels=labels,
            accelerator=accelerator,
            random_state=random_state,
        )

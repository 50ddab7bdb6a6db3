"""Networks as scikit-learn estimators."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from gaussianmlr._moved import moved_name
from gaussianmlr._utils.threads import asked_threads
from gaussianmlr.data.inputs import Inputs, encoding_of, scaled, table_inputs
from gaussianmlr.data.loading import ranked_rows
from gaussianmlr.data.matrices import Matrix
from gaussianmlr.data.splits import rolling_hold_out
from gaussianmlr.data.tokens import TFIDF, default_encoder, encoder_of
from gaussianmlr.errors import DataError
from gaussianmlr.estimators.base import BaseRanker, Training, check_inputs, column_names, parted
from gaussianmlr.estimators.members import Member, in_double, joined
from gaussianmlr.estimators.random_state import generators_kept
from gaussianmlr.estimators.sizes import batch_for, check_count, check_share, epochs_for, rate_for
from gaussianmlr.estimators.targets import FloatArray, one_order, read_truth, refuse_unknown
from gaussianmlr.methods import Reading
from gaussianmlr.model.guarantees import refuse_many_labels
from gaussianmlr.model.model import Model, load
from gaussianmlr.model.prediction import Prediction, Scale
from gaussianmlr.model.recipe import Recipe
from gaussianmlr.orders.sparse import SparseRanks
from gaussianmlr.training.choice import Kind
from gaussianmlr.training.fit import fit
from gaussianmlr.training.ties import hold_ties
from gaussianmlr.training.trees import fit_trees

__all__ = ["MultiLabelRanker"]

_ONE_AT_A_TIME = threading.Lock()  # torch has one generator per process, shared by all threads
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
    rate : float, optional
        The maximum learning rate; by default 3e-3 for fewer than 800 training rows, and 1e-3 for more.
    weight_decay : float
        Decoupled weight decay.
    validation_fraction : float
        Share of the rows held out to choose the best epoch. 0 trains on all rows and keeps the last epoch.
    conformal : float
        Share of the rows that no member sees, which calibrates the guarantees of
        ``predict_full(X).guaranteed(0.1)``; 0 for none.
    patience : int, optional
        Stop after this many epochs without improvement; no early stopping by default.
    scale : bool
        Standardise every column; sparse inputs are only divided by the standard deviation.
    rankers : {"aggregate", "all", "reliable"}
        For several rankers: train on their aggregate, or on one of them drawn in each epoch, with equal
        chances or in proportion to `gaussianmlr.rankers.reliability`.
    recipe : mapping, optional
        Further fields of `gaussianmlr.model.recipe.Recipe`, such as ``{"select": "loss"}``.
    labels : sequence of str, optional
        All labels, if `y` is texts or lists and a label may be missing from the training data.
    accelerator : str
        Lightning's accelerator: ``"cpu"``, ``"cuda"``, ``"auto"``, ...
    threads : int, optional
        Threads of torch; by default as many as the size of a step is worth, mostly one.
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

    conformal = 0.0  # of estimators that were pickled before it was a parameter
    _hold_ties = False
    _takes_codes = True
    _takes_sparse_ranks = True

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
        rate: float | None = None,
        weight_decay: float = 0.05,
        validation_fraction: float = 0.15,
        patience: int | None = None,
        scale: bool = True,
        rankers: Literal["aggregate", "all", "reliable"] = "aggregate",
        recipe: Mapping[str, Any] | None = None,
        labels: Any = None,
        accelerator: str = "cpu",
        threads: int | None = None,
        random_state: Any = None,
        conformal: float = 0.0,
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
        self.threads = threads
        self.random_state = random_state
        self.conformal = conformal

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, eval_set: Any = None, conformal_set: Any = None
    ) -> Self:
        """Train.

        Parameters
        ----------
        X : array-like, frame or sparse matrix [N, D]
            Inputs: numbers, categories, booleans, dates, texts; NaN and None are gaps. A list or Series of
            strings is one column of texts.
        y : orders
            Whatever `gaussianmlr.to_ranks` reads, ranks of several rankers [N, R, K], or a sparse matrix of
            ranks [N, K], which stays sparse where there are many labels.
        sample_weight : array-like [N], optional
            Weights of the instances.
        eval_set : tuple (X, y), optional
            Data to choose the best epoch, instead of held-out rows.
        conformal_set : tuple (X, y), optional
            Data that calibrates guarantees, instead of the share `conformal` of the rows.
        """
        data = self._training(X, y, sample_weight)
        self._check_numbers()
        validation = None if eval_set is None else self._evaluation(eval_set, "eval_set")
        seeds = check_random_state(self.random_state).randint(np.iinfo(np.int32).max, size=self.n_members)
        if conformal_set is not None:
            held: Training | None = self._evaluation(conformal_set, "conformal_set")
        else:
            data, held = parted(data, self.conformal, int(seeds[0]))
        if held is not None:
            refuse_many_labels(len(self.labels_))
        inputs = self._about(data)
        with _ONE_AT_A_TIME, generators_kept(), asked_threads(self.threads):
            self._train(data, validation, inputs, [int(seed) for seed in seeds])
        if held is not None:
            truth = held.ranks.dense() if isinstance(held.ranks, SparseRanks) else one_order(held.ranks)
            self.model_.calibrate_reading(self._read(held.inputs), truth)
        return self

    def predict_significance(self, X: Any, *, scale: Scale = "canonical") -> Any:
        """Means and standard deviations of the significances, ``(mu, sigma)``, both [N, K].

        For methods with sigma.

        Parameters
        ----------
        X : array-like or sparse matrix [N, D]
            Inputs.
        scale : {"canonical", "jnd", "raw"}
            In the canonical gauge (`gaussianmlr.normal.canonical`) instances can be compared, and mu and
            sigma are the Gaussian law that all probabilities come from. On the scale of just noticeable
            differences, steps can be compared too; see `Prediction.rescaled`.
        """
        found = self.predict_full(X).rescaled(scale)
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

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """An estimator of a saved model of a table: one that `save` or ``gmlr train`` wrote.

        Its parameters are the defaults, but for method and supervision; `to_model` has the recipe.

        Parameters
        ----------
        path : path-like
            Folder of the model, or of the run that made it.
        """
        folder = Path(path)
        model = load(folder / "model" if (folder / "run.json").is_file() else folder)
        if model.inputs["kind"] != "table":
            raise DataError(f"{folder} is a model of pictures; expected one of a table: use gaussianmlr.load")
        ranker = cls._for(model)
        ranker.model_, ranker.labels_, ranker.history_ = model, model.labels, []
        names = model.inputs.get("columns")
        ranker.n_features_in_ = len(names) if names else model.inputs["channels"]
        ranker._cells = Matrix(np.zeros((0, ranker.n_features_in_)), encoding_of(model.inputs), None)
        if names and names != [str(number) for number in range(len(names))]:
            ranker.feature_names_in_ = np.array(names, dtype=object)
        return ranker

    @classmethod
    def _for(cls, model: Model) -> Self:
        """An unfitted estimator with the method of a model."""
        return cls(model.method.name, supervision=model.method.supervision)

    def _read(self, X: Any) -> Reading:
        model = in_double(self.model_)
        with asked_threads(getattr(self, "threads", None)):  # pickles of earlier versions have none
            return Reading.join(
                [
                    model.read(scaled(X[start : start + _READ_AT_ONCE], model.inputs))
                    for start in range(0, X.shape[0], _READ_AT_ONCE)
                ]
            )

    @property
    def _encoder(self) -> str:
        return encoder_of((self.recipe or {}).get("backbone", "")) or default_encoder()

    @property
    def _has_texts(self) -> bool:
        cells: Matrix | None = getattr(self, "_cells", None)
        return cells is not None and any(one.text is not None for one in cells.columns or ())

    def _prediction_of(self, reading: Reading, names: tuple[Any, ...]) -> Prediction:
        return self.model_.prediction_of(reading, names)

    def _check_numbers(self) -> None:
        for name in ("hidden", "n_members", "epochs", "batch_size"):
            check_count(name, getattr(self, name), optional=name in ("epochs", "batch_size"))
        check_share("validation_fraction", self.validation_fraction)
        if "conformal" in (self.recipe or {}):  # each member would hold out other rows
            raise DataError("conformal is a parameter of the estimator; remove it from recipe")

    def _evaluation(self, given: Any, name: str) -> Training:
        if not isinstance(given, tuple | list) or len(given) != 2:
            raise DataError(f"expected {name} to be a pair (X, y)")
        inputs = check_inputs(self, given[0], reset=False)
        ranks = read_truth(given[1], self.labels_, keep_sparse=True)
        if len(ranks) != inputs.shape[0]:
            raise DataError(f"{name} has {inputs.shape[0]} rows of X and {len(ranks)} of y")
        refuse_unknown(ranks, f"{name}'s y")
        return Training(inputs, ranks, None)

    def _about(self, data: Training) -> Inputs:
        """Description of the inputs: columns and their scaling."""
        names = [str(name) for name in column_names(self, data.inputs.shape[1])]
        return table_inputs(data.inputs, names, self._cells.columns, data.weights, scale=self.scale)

    def _recipe(self, rows: int, seed: int, *, weighted: bool = False) -> Recipe:
        """The recipe for a number of training rows."""
        batch = batch_for(rows) if self.batch_size is None else self.batch_size
        epochs = epochs_for(rows, batch) if self.epochs is None else self.epochs
        settings = {**_DEFAULTS.get(self.method, {}), **(self.method_settings or {})}
        body: dict[str, Any] = {"backbone": "mlp", "backbone_settings": {"width": int(self.hidden)}}
        if self._has_texts:
            layers = {} if self._encoder == TFIDF else {"layers": "all"}
            body = {"backbone": self._encoder, "backbone_settings": layers, "freeze": "all"}
        if self.supervision is not None:
            settings["supervision"] = self.supervision
        if self._asked_ties == "auto":
            settings.pop("ties", None)
            settings |= {"ties": "learned"} if self._hold_ties else {}
        elif self._asked_ties is not None and self._asked_ties != "none":
            settings["ties"] = self._asked_ties
        return Recipe(
            method=self.method,
            method_settings=settings,
            **body,  # the head applies dropout to its inputs, too
            head_settings={"hidden": int(self.hidden), "dropout": float(self.dropout)},
            epochs=int(epochs),
            batch_size=int(batch),
            rate=rate_for(rows) if self.rate is None else float(self.rate),
            weight_decay=float(self.weight_decay),
            patience=self.patience,
            select="loss" if weighted else "tau_b",  # only the loss is weighted
            rankers=self.rankers,
            seed=seed,
        ).replace(**(self.recipe or {}))

    def _train(self, data: Training, validation: Training | None, inputs: Inputs, seeds: list[int]) -> None:
        self.history_: list[list[dict[str, Any]]] = []
        members = self._fit_kind("network", data, validation, inputs, seeds)
        self.model_ = self._joined([members])

    @property
    def _asked_ties(self) -> str | None:
        """What was asked of ties; None for the default of the method."""
        found = (self.method_settings or {}).get("ties")
        return None if found is None else str(found)

    def _joined(self, kinds: list[list[Member]]) -> Model:
        return joined(kinds, without_useless_ties=self._asked_ties == "auto")

    def _fit_kind(
        self, kind: Kind, data: Training, validation: Training | None, inputs: Inputs, seeds: list[int]
    ) -> list[Member]:
        """Networks or boosted trees, each with other rows held out."""
        given = None if validation is None else ranked_rows(validation.inputs, inputs, validation.ranks)
        weights = None if data.weights is None else data.weights / data.weights.mean()
        members = []
        self._hold_ties = hold_ties(one_order(data.ranks) if self.rankers == "aggregate" else data.ranks)
        for number, seed in enumerate(seeds):
            kept, chosen = np.arange(len(data.ranks)), given
            if given is None:
                kept, held = rolling_hold_out(len(data.ranks), self.validation_fraction, number, seeds[0])
                if len(held):
                    shares = None if weights is None else weights[held]
                    chosen = ranked_rows(data.inputs[held], inputs, one_order(data.ranks[held]), shares)
            ranks = data.ranks[kept] if self.rankers != "aggregate" else one_order(data.ranks[kept])
            shares = None if weights is None else weights[kept]
            train = ranked_rows(data.inputs[kept], inputs, ranks, shares, seed)
            recipe = self._recipe(len(kept), seed, weighted=weights is not None)
            if kind == "trees":
                model = fit_trees(recipe, train, chosen, labels=self.labels_, inputs=inputs)
            else:
                found = fit(
                    recipe, train, chosen, labels=self.labels_, inputs=inputs, accelerator=self.accelerator
                )
                model = found.model
                self.history_.append(found.result.history)
            members.append(Member(model, chosen))
        return members


def __getattr__(name: str) -> object:
    return moved_name(__name__, name)

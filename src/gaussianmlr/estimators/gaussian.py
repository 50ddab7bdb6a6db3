"""GaussianMLR for tables: networks, boosted trees, or both."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Literal, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from gaussianmlr.data.inputs import Inputs, encoding_of, scaled
from gaussianmlr.errors import DataError
from gaussianmlr.estimators.base import Training
from gaussianmlr.estimators.networks import MultiLabelRanker
from gaussianmlr.estimators.targets import FloatArray, IntArray, one_order
from gaussianmlr.methods.ties import SETTINGS
from gaussianmlr.model.model import Model, join
from gaussianmlr.training.choice import KINDS, Choice, Kind, choose, singles
from gaussianmlr.training.trees import no_trees

__all__ = ["GaussianMLR"]


class GaussianMLR(MultiLabelRanker):
    r"""GaussianMLR for tables: every label has a significance :math:`N(\mu, \sigma^2)`.

    The sign of :math:`\mu` says whether a label is relevant, the order of the means ranks the relevant
    labels, and :math:`\sigma` says how sure that is.

    Networks, boosted trees that learn the same likelihood, or both: by default, an inner validation decides.

    Parameters
    ----------
    model : {"auto", "network", "trees", "both"}
        What is trained: networks as of `MultiLabelRanker`; boosted trees with vector leaves (extra
        ``trees``); the mean of both; or what is best on held-out halves of the rows, which costs at most
        three times as much as the dearer kind alone.
    supervision : {"strong", "weak"}
        Whether the order among relevant labels is used.
    method_settings : mapping, optional
        Further settings of `gaussianmlr.methods.Gmlr`; the defaults are ``{"gauge": "canonical",
        "balance": "comparisons"}``.
    ties : {"auto", "none", "learned"}
        Whether relevant labels may tie in predictions: a threshold of indifference is learned from the ties
        of the training orders. ``"auto"`` learns it where these have ties, and drops it again where held-out
        rows do not favour it.
    hidden, dropout, n_members, epochs, batch_size, rate, weight_decay, validation_fraction, patience
        As for `MultiLabelRanker`.
    scale, rankers, recipe, labels, accelerator, threads, random_state, conformal
        As for `MultiLabelRanker`.

    Attributes
    ----------
    chosen_ : dict
        The kind that was trained, and why; for ``"auto"``, the tau-b of each kind and its standard error.
    feature_importances_ : array [D]
        Mean gain of the splits on each column, with a sum of one; for models with trees.
    labels_, classes_, model_, n_features_in_, feature_names_in_, history_
        As for `MultiLabelRanker`; the history is that of the networks.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 3))
    >>> y = np.where(X > 0, X.argsort(1).argsort(1) + 1, 0)
    >>> ranker = GaussianMLR(model="both", n_members=1, random_state=0).fit(X, y)
    >>> ranker.predict_order([[1.5, 0.5, -1.0]])
    ['0 > 1']
    >>> mu, sigma = ranker.predict_significance([[1.5, 0.5, -1.0]])
    >>> (mu > 0).astype(int)
    array([[1, 1, 0]])
    """

    def __init__(
        self,
        *,
        model: Literal["auto", "network", "trees", "both"] = "auto",
        supervision: Literal["strong", "weak"] = "strong",
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
        ties: Literal["auto", "none", "learned"] = "auto",
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
            threads=threads,
            random_state=random_state,
            conformal=conformal,
        )
        self.model = model
        self.ties = ties

    @property
    def feature_importances_(self) -> FloatArray:
        """Mean gain of the splits on each column; for models with trees."""
        check_is_fitted(self)
        if self.model_.trees is None:
            raise AttributeError(
                "networks have no gains; sklearn's permutation_importance works for any kind"
            )
        gains, encoding = self.model_.trees.importances, encoding_of(self.model_.inputs)
        if encoding is None:
            return gains.copy()
        owner = np.repeat(np.arange(len(encoding)), [column.width for column in encoding])
        return np.bincount(owner, gains, len(encoding)).astype(np.float64)  # a date is several channels

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """An estimator of a saved model of a table: one that `save` or ``gmlr train`` wrote.

        Parameters
        ----------
        path : path-like
            Folder of the model, or of the run that made it.
        """
        ranker = super().load(path)
        known = ranker.model_.about.get("chosen")
        ranker.chosen_ = known or {"kind": ranker.model_.kind, "why": f"loaded from {path}"}
        return ranker

    @classmethod
    def _for(cls, model: Model) -> Self:
        if model.method.name != "gmlr":
            raise DataError(f"the model is one of {model.method.name!r}: use MultiLabelRanker.load")
        return cls(model=model.kind, supervision=model.method.supervision)

    def __setstate__(self, state: dict[str, Any]) -> None:
        # Those of older versions were networks, without ties.
        super().__setstate__({"model": "network", "ties": "none", **state})

    def _train(self, data: Training, validation: Training | None, inputs: Inputs, seeds: list[int]) -> None:
        choice = self._choice(data, inputs, seeds)
        self.history_, self.chosen_ = [], choice.to_dict()
        kinds = [self._fit_kind(kind, data, validation, inputs, seeds) for kind in singles(choice.kind)]
        self.model_ = self._joined(kinds)
        self.model_.about["chosen"] = self.chosen_

    @property
    def _asked_ties(self) -> str | None:
        if self.ties not in SETTINGS:
            raise DataError(f"ties is {self.ties!r}; expected 'auto', 'none' or 'learned'")
        return super()._asked_ties or self.ties

    def _choice(self, data: Training, inputs: Inputs, seeds: list[int]) -> Choice:
        if self.model not in ("auto", *KINDS):
            raise DataError(f"model is {self.model!r}; expected 'auto', 'network', 'trees' or 'both'")
        if self._has_texts:
            if self.model in ("trees", "both"):
                raise DataError(f"model is {self.model!r}, but trees take no texts; expected 'network'")
            return Choice("network", "trees take no texts")
        if self.model != "auto":
            return Choice(self.model, f"model={self.model!r} was asked for")
        rows, columns = data.inputs.shape
        if (why := no_trees(rows, columns, data.ranks.shape[-1])) is not None:
            return Choice("network", why)
        first = seeds[:1]

        def outputs(kind: Kind, kept: IntArray, held: IntArray) -> FloatArray:
            weights = None if data.weights is None else data.weights[kept]
            part = Training(data.inputs[kept], data.ranks[kept], weights)
            model = join([one.model for one in self._fit_kind(kind, part, None, inputs, first)])
            return model.read(scaled(data.inputs[held], inputs)).scores.double().numpy()

        self.history_ = []
        return choose(
            outputs, one_order(data.ranks), members=self.n_members, seed=seeds[0], weights=data.weights
        )

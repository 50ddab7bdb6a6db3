"""Guarantees of a model: what split-conformal calibration promises of its predictions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch

from gaussianmlr import normal
from gaussianmlr._utils.arrays import BoolArray, FloatArray, fixed
from gaussianmlr._utils.strict_json import dumps
from gaussianmlr.errors import DataError
from gaussianmlr.model import conformal as core
from gaussianmlr.model.conformal import Curve, Intervals, Places, Scores
from gaussianmlr.orders.partial import partial_text

if TYPE_CHECKING:
    import pandas as pd

    from gaussianmlr.model.calibration import Calibration
    from gaussianmlr.model.prediction import Prediction

__all__ = ["Conformal", "Guaranteed", "Observed", "refuse_many_labels", "temperatures_of"]

MOST_LABELS = 5_000  # whose pairs, of one instance, fit in memory several times

IntArray = npt.NDArray[np.int64]
_AT_ONCE = 1 << 22  # pairs of labels that are held at once
_LEAST = {"relevance": -1.0, "places": 0.0, "statements": core.LEAST_CHANCE}
_NOTHING = Curve((1.0,), (0.0,), 0)
_ROWS = {
    "relevance": "calibration rows with a relevant label",
    "places": "calibration rows with a relevant label",
    "statements": "calibration rows with two known labels",
}


@dataclass(frozen=True)
class Observed:
    """What came true of a guarantee on rows with known orders; means over the rows that count.

    Attributes
    ----------
    covered : float
        Share of the rows whose relevance set holds every relevant label.
    set_size : float
        Labels per relevance set.
    placed : float
        Mean share of a row's relevant labels whose interval holds their place.
    width : float
        Mean number of places per interval, over relevant labels.
    wrong : float
        Mean share of wrong statements.
    statements : float
        Statements per row.
    """

    covered: float
    set_size: float
    placed: float
    width: float
    wrong: float
    statements: float


def refuse_many_labels(labels: int) -> None:
    """Refuse guarantees of so many labels that the statements on one instance do not fit in memory.

    Examples
    --------
    >>> refuse_many_labels(100_000)
    Traceback (most recent call last):
        ...
    gaussianmlr.errors.DataError: guarantees hold a statement for each pair of labels, 10,000,000,000 for
    100,000 labels; expected at most 5,000 labels: leave out conformal
    """
    if labels > MOST_LABELS:
        raise DataError(
            f"guarantees hold a statement for each pair of labels, {labels**2:,} for {labels:,} labels; "
            f"expected at most {MOST_LABELS:,} labels: leave out conformal"
        )


@dataclass(frozen=True)
class Conformal:
    """Calibration scores of rows that neither training, epoch choice nor temperatures saw.

    `Model.calibrate_conformal`, training with ``conformal=0.1`` and `Conformal.fit` make one.

    Attributes
    ----------
    relevance, places, statements : Curve
        Limits and losses of the three guarantees.
    temperatures : tuple of float
        Temperatures of relevance and pairs of the predictions, which must stay the same.

    Examples
    --------
    >>> from gaussianmlr import Prediction
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.normal(size=(99, 3))
    >>> ranks = np.where(scores + rng.normal(size=(99, 3)) > 0, 1, 0)
    >>> found = Conformal.fit(Prediction(scores, 1 / (1 + np.exp(-scores)), ("a", "b", "c")), ranks)
    >>> found.rows, round(found.relevance.limit(0.1), 2)
    (99, -0.28)
    """

    relevance: Curve
    places: Curve
    statements: Curve
    temperatures: tuple[float, float] = (1.0, 1.0)

    @classmethod
    def fit(
        cls, prediction: Prediction, ranks: npt.ArrayLike, temperatures: tuple[float, float] = (1.0, 1.0)
    ) -> Conformal:
        """Calibrate on predictions of rows with known orders.

        Parameters
        ----------
        prediction : Prediction
            What the model says of rows that it was not made from.
        ranks : int array [N, K]
            The truth: 0 = irrelevant, larger = more significant, -1 = unknown.
        temperatures : tuple of float
            Those of the predictions, to be kept beside.
        """
        truth = np.asarray(ranks)
        if truth.shape != prediction.scores.shape or truth.dtype.kind not in "iu":
            wanted = list(prediction.scores.shape)
            raise DataError(f"expected whole ranks of shape {wanted}, got {truth.dtype} {list(truth.shape)}")
        if not len(truth):
            raise DataError("expected at least one row to calibrate on, got none")
        refuse_many_labels(truth.shape[1])
        parts: dict[str, list[Scores]] = {name: [] for name in _LEAST}
        for some, order in _slices(prediction, truth.astype(np.int64)):
            parts["relevance"].append(core.relevance_scores(some.p_relevant, order))
            parts["places"].append(core.place_scores(_places(some), order))
            parts["statements"].append(core.statement_scores(_chances(some), order))
        curves = {name: core.risk_curve(Scores.join(parts[name]), least) for name, least in _LEAST.items()}
        return cls(**curves, temperatures=temperatures)

    @property
    def rows(self) -> int:
        """The number of calibration rows."""
        return max(self.relevance.rows, self.statements.rows)

    def limits(self, alpha: float) -> dict[str, float]:
        """The limit of each guarantee at a level; refused if there are too few rows for it."""
        return {name: self._curve(name).limit(alpha, what) for name, what in _ROWS.items()}

    @property
    def smallest_alpha(self) -> float:
        """The smallest level that there are enough rows for."""
        return 1.0 / (1 + min(self._curve(name).rows for name in _ROWS))

    def _curve(self, name: str) -> Curve:
        # Without two labels there is nothing to state: a limit of 1, which lets no statement pass.
        empty = name == "statements" and not self.statements.rows
        found: Curve = replace(_NOTHING, rows=self.relevance.rows) if empty else getattr(self, name)
        return found

    def to_dict(self) -> dict[str, Any]:
        """All fields, ready for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Conformal:
        """From what `to_dict` gives."""
        curves = {
            name: Curve(
                tuple(fields[name]["limits"]), tuple(fields[name]["losses"]), int(fields[name]["rows"])
            )
            for name in _LEAST
        }
        first, second = fields["temperatures"]
        return cls(**curves, temperatures=(float(first), float(second)))


@dataclass(frozen=True, eq=False, repr=False)
class Guaranteed:
    """Predictions with guarantees at a level `alpha`; `Prediction.guaranteed` makes one.

    Attributes
    ----------
    prediction : Prediction
        The predictions.
    conformal : Conformal
        The calibration.
    alpha : float
        The level.

    Examples
    --------
    >>> from dataclasses import replace
    >>> from gaussianmlr import Prediction
    >>> rng = np.random.default_rng(0)
    >>> scores = 3 * rng.normal(size=(500, 3))
    >>> ranks = (scores > 0) * (1 + scores.argsort(1).argsort(1))
    >>> known = Prediction(scores, 1 / (1 + np.exp(-scores)), ("sky", "sea", "sun"))
    >>> new = replace(known[:2], conformal=Conformal.fit(known, ranks))
    >>> found = new.guaranteed(0.1)
    >>> found.texts
    ['sun > sky', 'sun > sky']
    >>> found.relevance_sets.astype(int)
    array([[1, 0, 1],
           [1, 0, 1]])
    """

    prediction: Prediction
    conformal: Conformal
    alpha: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "_limits", self.conformal.limits(self.alpha))

    @property
    def rows(self) -> int:
        """The number of calibration rows."""
        return self.conformal.rows

    @property
    def statement(self) -> str:
        """What is guaranteed, in words."""
        sure = f"{100 * (1 - self.alpha):g} %"
        return (
            f"For a new instance that is exchangeable with the {self.rows:,} calibration rows, on average "
            "over calibrations and instances: the relevance set holds every relevant label with probability "
            f"{sure} or more; the interval of a random relevant label holds its place (1 = most significant) "
            f"with probability {sure} or more; and at most {100 * self.alpha:g} % of the statements of a "
            "partial order are expected to be wrong."
        )

    @cached_property
    def relevance_sets(self) -> BoolArray:
        """Labels [N, K] that may be relevant: with probability 1 - alpha, no relevant label is missing."""
        return fixed(core.relevance_sets(self.prediction.p_relevant, self._limit("relevance")))

    @cached_property
    def rank_intervals(self) -> Intervals:
        """First and last place [N, K] of each label if it is relevant; 1 is the most significant."""

        def found(some: Prediction) -> IntArray:
            return np.stack(core.place_intervals(_places(some), self._limit("places")), -1)

        whole = self._sliced(found, 2)
        return Intervals(fixed(whole[..., 0]), fixed(whole[..., 1]))

    @cached_property
    def partial_orders(self) -> BoolArray:
        """Statements [N, K, K]: entry [u, v] says that u is relevant and above v. Strict partial orders."""

        def found(some: Prediction) -> BoolArray:
            return core.stated(_chances(some), self._limit("statements"))

        return fixed(self._sliced(found, len(self.prediction.labels)).astype(bool))

    @property
    def set_labels(self) -> list[list[str]]:
        """The relevance sets as lists of labels, most significant first."""
        orders = np.argsort(-self.prediction.scores, axis=1, kind="stable")
        labels = self.prediction.labels
        return [
            [labels[place] for place in order if inside[place]]
            for order, inside in zip(orders, self.relevance_sets)
        ]

    @property
    def texts(self) -> list[str]:
        """Partial orders within the relevance sets: ``sky > sea ? sun`` says nothing of the order of sun.

        Statements about labels outside the relevance set are in `partial_orders` alone.
        """
        parts = zip(self.partial_orders, self.relevance_sets, self.prediction.scores)
        return [_text(above, inside, self.prediction.labels, scores) for above, inside, scores in parts]

    def to_frame(self) -> pd.DataFrame:
        """A tidy pandas frame, one row per instance and label: in_set, place_low, place_high, n_below."""
        frame = self.prediction.to_frame()[["instance", "label"]]
        return frame.assign(**{name: values.ravel() for name, values in self.columns().items()})

    def columns(self) -> dict[str, npt.NDArray[Any]]:
        """The columns of `to_frame` as arrays [N, K]."""
        low, high = self.rank_intervals
        below = self.partial_orders.sum(2)
        return {"in_set": self.relevance_sets, "place_low": low, "place_high": high, "n_below": below}

    def to_dict(self) -> dict[str, Any]:
        """Plain dicts, lists and numbers: the statement and, for each instance, sets, places and orders."""
        low, high = (part.tolist() for part in self.rank_intervals)
        labels, instances = self.prediction.labels, []
        for row, (inside, text) in enumerate(zip(self.set_labels, self.texts)):
            places = {label: [low[row][u], high[row][u]] for u, label in enumerate(labels)}
            pairs = np.argwhere(self.partial_orders[row]).tolist()
            above = [[labels[u], labels[v]] for u, v in pairs]
            instances.append({"labels": inside, "places": places, "above": above, "text": text})
        about = {"alpha": self.alpha, "rows": self.rows, "statement": self.statement}
        return {**about, "instances": instances}

    def to_json(self, indent: int | None = None) -> str:
        """`to_dict` as JSON."""
        return dumps(self.to_dict(), ensure_ascii=False, indent=indent)

    def observed(self, ranks: npt.ArrayLike) -> Observed:
        """What came true, on rows whose orders are known.

        Parameters
        ----------
        ranks : int array [N, K]
            The truth: 0 = irrelevant, larger = more significant, -1 = unknown.
        """
        truth = np.asarray(ranks).astype(np.int64)
        relevant = truth > 0
        low, high = self.rank_intervals
        return Observed(
            covered=1.0 - _mean(core.relevance_losses(self.relevance_sets, truth)),
            set_size=float(self.relevance_sets.sum(1).mean()),
            placed=1.0 - _mean(core.place_losses(self.rank_intervals, truth)),
            width=_mean((high - low + 1)[relevant].astype(np.float64)),
            wrong=_mean(core.statement_losses(self.partial_orders, truth)),
            statements=float(self.partial_orders.sum((1, 2)).mean()),
        )

    def __len__(self) -> int:
        return len(self.prediction)

    def __repr__(self) -> str:
        count = f"{len(self):,} instance{'' if len(self) == 1 else 's'}"
        return f"Guaranteed(alpha={self.alpha:g}, {count}, {self.rows:,} calibration rows)"

    def _limit(self, name: str) -> float:
        limits: dict[str, float] = getattr(self, "_limits")  # noqa: B009  # no field of a frozen dataclass
        return limits[name]

    def _sliced(self, found: Callable[[Prediction], npt.NDArray[Any]], last: int) -> npt.NDArray[Any]:
        count, width = self.prediction.scores.shape
        parts = [found(some) for some, _ in _slices(self.prediction, np.zeros((count, 0), np.int64))]
        return np.concatenate(parts) if parts else np.zeros((0, width, last), np.int64)


def temperatures_of(calibration: Calibration | None) -> tuple[float, float]:
    """The temperatures of relevance and pairs; 1 where there are none."""
    return (1.0, 1.0) if calibration is None else (calibration.relevance, calibration.pairs)


def _slices(prediction: Prediction, ranks: IntArray) -> list[tuple[Prediction, IntArray]]:
    """Some rows at a time: memory stays bounded."""
    step = max(1, _AT_ONCE // len(prediction.labels) ** 2)
    if len(prediction) <= step:
        return [(prediction, ranks)] if len(prediction) else []
    starts = range(0, len(prediction), step)
    return [(prediction[start : start + step], ranks[start : start + step]) for start in starts]


def _places(some: Prediction) -> Places:
    return core.expected_places(some.scores, *(some.raw or ()))


def _chances(some: Prediction) -> FloatArray:
    """How likely u is relevant and above v, [N, K, K]: the smaller of the two probabilities."""
    if some.raw is None:
        # Log-odds or votes: only the order of these numbers matters.
        gaps = some.scores[:, :, None] - some.scores[:, None, :]
        above = torch.sigmoid(torch.from_numpy(gaps)).numpy()
    else:
        above = normal.p_above(*(torch.tensor(part) for part in some.raw)).numpy()
    found: FloatArray = np.minimum(above, some.p_relevant[:, :, None])
    return found


def _text(above: BoolArray, inside: BoolArray, labels: tuple[str, ...], scores: FloatArray) -> str:
    shown = above & inside[:, None] & inside[None, :]
    ordered: BoolArray = np.logical_or(shown.any(0), shown.any(1))
    return partial_text(shown, ordered, inside, labels, scores)


def _mean(values: FloatArray) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else float("nan")

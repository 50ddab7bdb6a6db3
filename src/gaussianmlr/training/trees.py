"""Boosted trees with vector leaves, trained by XGBoost on the likelihood of GaussianMLR."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from gaussianmlr._utils.extras import require
from gaussianmlr._utils.progress import Watcher
from gaussianmlr._utils.threads import threads_for
from gaussianmlr.data.inputs import Inputs
from gaussianmlr.data.loading import RankedSet, fetch
from gaussianmlr.errors import DataError, shorten
from gaussianmlr.losses.boosting import (
    Comparisons,
    compare_all,
    gmlr_derivatives,
    gmlr_values,
)
from gaussianmlr.methods import make
from gaussianmlr.methods.gmlr import Gmlr
from gaussianmlr.methods.ties import learns_ties
from gaussianmlr.model.model import Model
from gaussianmlr.model.recipe import Recipe
from gaussianmlr.model.trees import categories_of
from gaussianmlr.nn.trees import Trees, indicators, targets_of
from gaussianmlr.training.bins import within_budget
from gaussianmlr.training.boosting import Boosted, Boosting, TreesCheckpoint, boost_rounds
from gaussianmlr.training.finish import measure_and_calibrate
from gaussianmlr.training.indifference import best_thresholds
from gaussianmlr.training.run_folder import RunFolder

__all__ = ["TreeSettings", "boost", "fit_trees", "fits_in_memory", "no_trees"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
LARGEST = 2 << 30  # bytes of a dense table that trees are trained on
MOST_BINS = 1 << 14  # thresholds tried per split and label, of all columns together
_NEWTON = 20  # steps to the best constant means
_FEWER = 8  # share of the rounds without rows to stop by
_TURNS = 5  # steps to the best thresholds of a round
_START = 1.0  # added to the Hessian of those steps: one vote for no preference


@dataclass(frozen=True)
class TreeSettings:
    """Settings of boosted trees; the defaults were chosen on three tables, see docs/estimators.md.

    Parameters
    ----------
    rounds : int
        Maximum number of trees.
    rate : float
        Share of each tree that is added.
    depth : int
        Maximum depth of a tree.
    patience : int
        Stop after this many rounds without a smaller loss of the held-out rows.
    rows, columns : float
        Share of the rows drawn per tree, and of the columns drawn per split.
    penalty : float
        Added to the Hessian of every leaf.
    bins : int
        Number of thresholds tried per column. Tables that would need more than 16,384 in all, such as
        thousands of features of a network, get 32 per column, of the columns that correlate most with the
        gradient of the loss.

    Examples
    --------
    >>> TreeSettings(depth=0)
    Traceback (most recent call last):
        ...
    gaussianmlr.errors.DataError: trees: depth is 0; expected a whole number from 1 to 16
    """

    rounds: int = 600
    rate: float = 0.05
    depth: int = 3
    patience: int = 40
    rows: float = 0.7
    columns: float = 0.3
    penalty: float = 10.0
    bins: int = 64

    def __post_init__(self) -> None:
        for name, (low, high) in _LIMITS.items():
            value, whole = getattr(self, name), isinstance(getattr(type(self), name, 0), int)
            right = isinstance(value, int) if whole else isinstance(value, int | float)
            if isinstance(value, bool) or not right or not low <= value <= high:
                kind = "a whole number" if whole else "a number"
                raise DataError(f"trees: {name} is {shorten(value)}; expected {kind} from {low} to {high:,}")

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> TreeSettings:
        """Settings by name; unknown names are refused."""
        known = [one.name for one in fields(cls)]
        if unknown := [name for name in settings if name not in known]:
            raise DataError(f"trees have no setting {unknown[0]!r}; there are {', '.join(known)}")
        return cls(**settings)


_LIMITS: dict[str, tuple[float, float]] = {
    "rounds": (1, 100_000),
    "rate": (1e-4, 1),
    "depth": (1, 16),
    "patience": (1, 100_000),
    "rows": (0.01, 1),
    "columns": (0.001, 1),
    "penalty": (0, 1e9),
    "bins": (2, 4_096),
}


MOST_LABELS = 300  # that trees are compared with a network for; more take far longer than the network


_FEW = 200  # rows that the threshold of ties is fitted to in every round


class _Rows(NamedTuple):
    """Dense rows with their comparisons."""

    table: npt.NDArray[np.float32]
    comparisons: Comparisons
    weight: float
    few: _Few | None  # with ties


class _Few(NamedTuple):
    """Some rows, by which the threshold of ties is fitted in every round."""

    places: IntArray
    comparisons: Comparisons
    thresholds: int


def no_trees(rows: int, columns: int, labels: int) -> str | None:
    """Why trees are not compared with a network on a table, if so.

    Examples
    --------
    >>> no_trees(1_000_000_000, 10_000, 5)
    'a dense table of 1,000,000,000 x 10,000 numbers is too large for trees'
    """
    if find_spec("xgboost") is None:
        return "XGBoost is not installed, so there are no trees: pip install 'gaussianmlr[trees]'"
    if not fits_in_memory(rows, columns):
        return f"a dense table of {rows:,} x {columns:,} numbers is too large for trees"
    if labels > MOST_LABELS:
        return (
            f"every leaf of a tree would hold {labels:,} numbers, one per label: trees are compared up to "
            f"{MOST_LABELS:,} labels"
        )
    return None


def fits_in_memory(rows: int, columns: int) -> bool:
    """Whether a table is small enough to be held as a dense one; trees have no other.

    Examples
    --------
    >>> fits_in_memory(1_000_000, 100), fits_in_memory(1_000_000, 10_000)
    (True, False)
    """
    return rows * columns * 4 <= LARGEST


def fit_trees(
    recipe: Recipe,
    data: RankedSet,
    validation: RankedSet | None,
    *,
    labels: tuple[str, ...],
    inputs: Inputs,
    watcher: Watcher | None = None,
    kept: bytes | None = None,
    folder: RunFolder | None = None,
) -> Model:
    """Train trees by a recipe's method, seed and settings of trees.

    Parameters
    ----------
    recipe : Recipe
        Its method is ``gmlr``.
    data, validation : RankedSet
        Rows to train on, and rows for early stopping and calibration. Without validation rows, an eighth of
        the rounds is used.
    labels : tuple of str
        Names of the columns of ranks.
    inputs : Inputs
        Description of the inputs.
    watcher : Watcher, optional
        Receives the progress.
    kept : bytes, optional
        The trees of an earlier run, which are only measured.
    folder : RunFolder, optional
        Folder from which an interrupted run resumes; trees of a finished one are only measured.

    Examples
    --------
    >>> from gaussianmlr.data.loading import Arrays
    >>> x = np.random.default_rng(0).normal(size=(80, 2)).astype(np.float32)
    >>> data = Arrays(x, (x > 0) * (x.argsort(1).argsort(1) + 1))
    >>> inputs = {"kind": "table", "channels": 2}
    >>> fit_trees(Recipe(trees={"rounds": 5}), data, data, labels=("a", "b"), inputs=inputs)
    Model(gmlr strong, trees, 2 labels, table inputs)
    """
    method = make(recipe.method, **recipe.method_settings)
    if not isinstance(method, Gmlr):
        raise DataError(f"trees learn the likelihood of gmlr, not the loss of {recipe.method!r}")
    categories = categories_of(inputs)
    checkpoint = None if folder is None else TreesCheckpoint(folder, 60 * recipe.checkpoint_minutes)
    done = None if checkpoint is None else checkpoint.load()
    if kept is not None:
        found = Boosted(kept, Boosting(), False)
    elif done is not None and done[0].finished:
        found = Boosted(done[1], done[0], False)
    else:
        found = boost(recipe, method, data, validation, labels, categories, checkpoint, watcher)
    network = Trees([found.file], labels=len(labels), channels=inputs["channels"], categories=categories)
    if learns_ties(method):
        network.tau = _thresholds(network, recipe, method, validation or data, labels)
    about: dict[str, Any] = {
        "images": len(data) * len(network.roots),
        "seconds": round(found.standing.seconds, 1),
        "interrupted": found.interrupted,
    }
    model = Model(network, method, labels, recipe, inputs, about)
    if validation is not None:
        measure_and_calibrate(model, validation)
    return model


def boost(
    recipe: Recipe,
    method: Gmlr,
    data: RankedSet,
    validation: RankedSet | None,
    labels: tuple[str, ...],
    categories: dict[int, int],
    checkpoint: TreesCheckpoint | None = None,
    watcher: Watcher | None = None,
) -> Boosted:
    """Train one member, see `boost_rounds`."""
    require("model='trees'", "xgboost")
    import xgboost

    settings, targets = TreeSettings.of(recipe.trees), targets_of(len(labels))
    rows = _rows(recipe, method, data, labels, categories)
    held = None if validation is None else _rows(recipe, method, validation, labels, categories)
    start = _constant_means(rows.comparisons)
    table, bins = within_budget(rows.table, rows.comparisons, start, settings.bins, most=MOST_BINS)

    def matrix(table: npt.NDArray[np.float32]) -> Any:
        return xgboost.DMatrix(table, label=np.zeros((len(table), targets), np.float32))

    def derivatives(margin: FloatArray, _: Any) -> tuple[FloatArray, FloatArray]:
        means = margin[:, : len(labels)]
        gradient, hessian = gmlr_derivatives(means, None, rows.comparisons, _profile(means, rows.few))[:2]
        return _padded(gradient, targets), _padded(hessian, targets)

    work = table.size * targets * settings.depth  # additions per round, at most
    with threads_for(work):
        parameters = {
            "tree_method": "hist",
            "multi_strategy": "multi_output_tree",
            "disable_default_eval_metric": 1,
            "base_score": _padded(start, targets).tolist(),
            "max_depth": settings.depth,
            "eta": settings.rate,
            "subsample": settings.rows,
            "colsample_bynode": settings.columns,
            "lambda": settings.penalty,
            "max_bin": bins,
            "seed": recipe.seed & 0x7FFFFFFF,
            "nthread": torch.get_num_threads(),
            "verbosity": 0,
        }
        return boost_rounds(
            parameters,
            settings.rounds if held is not None else max(1, settings.rounds // _FEWER),
            matrix(table),
            derivatives,
            held=None if held is None else matrix(held.table),
            loss_of=None if held is None else lambda margin: _loss(margin, held),
            patience=settings.patience,
            checkpoint=checkpoint,
            watcher=watcher,
        )


def _sizes(method: Gmlr, labels: tuple[str, ...]) -> int:
    """Number of thresholds: one, or one per label."""
    return len(labels) if method.thresholds == "label" else 1


def _profile(means: FloatArray, few: _Few | None) -> FloatArray | None:
    """The best thresholds at these means: of the means alone, so that runs resume at any round."""
    if few is None:
        return None
    some = np.asarray(means, np.float64)[few.places]
    return best_thresholds(some, few.comparisons, few.thresholds, _TURNS)


@torch.no_grad()
def _thresholds(
    network: Trees,
    recipe: Recipe,
    method: Gmlr,
    data: RankedSet,
    labels: tuple[str, ...],
) -> torch.Tensor:
    """Thresholds of the largest likelihood of trained trees, on held-out rows where there are any.

    Training rows are fitted closer than new ones, so thresholds that suit them are too small.
    """
    rows = _rows(recipe, method, data, labels, {})
    mu = network(torch.from_numpy(rows.table))["mu"].double().numpy()
    with torch.enable_grad():
        tau = best_thresholds(mu, rows.comparisons, _sizes(method, labels), _NEWTON)
    return torch.from_numpy(tau).float()


def _padded(values: FloatArray, targets: int) -> FloatArray:
    """Values per label with zeros for outputs beyond the labels."""
    missing = targets - values.shape[-1]
    return np.pad(values, [(0, 0)] * (values.ndim - 1) + [(0, missing)]) if missing else values


def _loss(margin: FloatArray, rows: _Rows) -> float:
    means = margin[:, : rows.comparisons.labels]
    losses = gmlr_values(means, None, rows.comparisons, _profile(means, rows.few))
    return float(losses.sum() / max(rows.weight, 1e-12))


def _rows(
    recipe: Recipe, method: Gmlr, data: RankedSet, labels: tuple[str, ...], categories: dict[int, int]
) -> _Rows:
    """All rows of a set in memory; each order of several rankers is a row, with its share of the weight."""
    inputs, ranks, *more = fetch(data, list(range(len(data))))
    if not fits_in_memory(len(inputs), inputs.shape[1]):
        raise DataError(
            f"{len(inputs):,} rows of {inputs.shape[1]:,} columns are too large for trees, which hold them "
            "as a dense table; model='network' reads sparse rows in batches"
        )
    weights = more[0].numpy().astype(np.float64) if more else np.ones(len(inputs))
    table, orders = inputs.float(), ranks.numpy()
    every = getattr(data, "ranks", None)
    if recipe.rankers != "aggregate" and isinstance(every, torch.Tensor) and every.ndim == 3:
        row, ranker = np.nonzero((every.numpy() >= 0).any(-1))
        drawn = getattr(data, "shares", None)  # by reliability
        share = np.ones(len(row)) if drawn is None else drawn.numpy().astype(np.float64)[ranker]
        weights = weights[row] * share / np.bincount(row, share, minlength=len(table))[row]
        table, orders = table[torch.from_numpy(row)], every.numpy()[row, ranker]
    ties = learns_ties(method)

    def compared(some: slice) -> Comparisons:
        return compare_all(
            orders[some],
            supervision=method.supervision,
            balance=method.balance,
            weights=weights[some],
            label_weights=[recipe.label_weights.get(label, 1.0) for label in labels],
            order_weight=recipe.order_weight,
            ties=ties,
        )

    few = None
    if ties:
        some = slice(None, None, -(-len(orders) // _FEW))
        few = _Few(np.arange(len(orders))[some], compared(some), _sizes(method, labels))
    whole = compared(slice(None))
    return _Rows(indicators(table, categories).numpy(), whole, float(weights.sum()), few)


def _constant_means(comparisons: Comparisons) -> FloatArray:
    """The best means that do not depend on the inputs, which boosting starts from."""
    means = np.zeros(comparisons.labels)
    for _ in range(_NEWTON):
        same = np.broadcast_to(means, (comparisons.rows, comparisons.labels))
        found = gmlr_derivatives(same, None, comparisons)
        # Half a step: the Hessian has entries beside its diagonal.
        step = 0.5 * (found.mu_gradient.sum(0) + _START * means) / (found.mu_hessian.sum(0) + _START)
        means = means - step
    return means

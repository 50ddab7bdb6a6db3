"""A constant order and a forest beside a model, so that its metrics mean something."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from gaussianmlr.data import RankedData, RankedMNIST
from gaussianmlr.data.loading import RankedSet, fetch
from gaussianmlr.data.open import ranked_set
from gaussianmlr.errors import DataError
from gaussianmlr.estimators.classic import DummyRanker
from gaussianmlr.inference.matching import open_origin
from gaussianmlr.metrics import PaperMetrics
from gaussianmlr.model.evaluate import values_of
from gaussianmlr.model.model import Model
from gaussianmlr.model.schema import read_config
from gaussianmlr.rankers import aggregate
from gaussianmlr.training.origin import read_origin

__all__ = [
    "CONSTANT",
    "FOREST",
    "MOST_CELLS",
    "NO_PEERS",
    "Peers",
    "known_peers",
    "learn_peers",
    "measure_peers",
]

CONSTANT, FOREST = "constant order", "random forest"
MOST_CELLS = 20_000_000
"""Largest table, in rows x columns x labels, that a forest is fitted to."""
_TREES, _FIRST_TREES = 100, 10
_SHARE, _SECONDS = 0.5, 5.0  # of the training time; and what a short training may be exceeded to
_ROWS = 4_096  # instances that are measured at a time

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


class Peers(NamedTuple):
    """What was measured beside a model.

    Attributes
    ----------
    metrics : dict
        The paper's six metrics as fractions, by name of the peer.
    notes : tuple of str
        Which peer is missing, and why.
    """

    metrics: dict[str, dict[str, float]]
    notes: tuple[str, ...]

    @classmethod
    def of_training(cls, facts: Mapping[str, Any] | None) -> Peers:
        """The peers that `learn_peers` measured on the validation part."""
        facts = facts or {}
        there = {CONSTANT: facts.get("constant_order"), FOREST: facts.get("forest")}
        return cls(
            {name: one["metrics"] for name, one in there.items() if one}, tuple(facts.get("notes", ()))
        )


NO_PEERS = Peers({}, ())


def learn_peers(
    train: RankedSet,
    validation: RankedSet,
    *,
    table: bool,
    seed: int = 0,
    seconds: float | None = None,
) -> dict[str, Any]:
    """Fit the peers to the training part of a run and measure them on its validation part.

    The constant order is the aggregate of all training orders (`DummyRanker`), the same for every instance.
    The forest is one random forest for all labels: for an instance it averages the relevance and the
    height, rank / largest rank, of the labels of similar training instances. Labels whose mean relevance is
    above one half are relevant, sorted by their mean height.

    Parameters
    ----------
    train, validation : RankedSet
        Parts of a `Source`.
    table : bool
        Whether the inputs are rows of numbers; pictures have no forest.
    seed : int
        Seed of the forest.
    seconds : float, optional
        Duration of the model's training. A forest that would take more than half of that, and more than five
        seconds, is left out with a note.

    Returns
    -------
    dict
        Ready for JSON, for `Model.about`: ``constant_order`` with ``scores`` per label and ``metrics``,
        ``forest`` with ``metrics`` and ``seconds``, and ``notes``.

    Examples
    --------
    >>> from gaussianmlr.data.loading import Arrays
    >>> x = np.repeat([[0.0], [1.0]], [30, 10], axis=0)
    >>> data = Arrays(x, [[2, 1]] * 30 + [[0, 1]] * 10)
    >>> found = learn_peers(data, data, table=True)
    >>> found["constant_order"]["scores"], found["constant_order"]["metrics"]["hamming_loss"]
    ([2.0, 1.0], 0.125)
    >>> found["forest"]["metrics"]["hamming_loss"]
    0.0
    """
    ranks, truth = _ranks(train), _ranks(validation)
    weights = getattr(train, "weights", None)
    weights = None if weights is None else weights.numpy().astype(np.float64)
    scores = _constant(ranks, weights)
    found: dict[str, Any] = {
        "constant_order": {"scores": scores.tolist(), "metrics": _metrics(_repeated(scores), truth)},
        "notes": [],
    }
    if not table:
        return found
    began = time.monotonic()
    allowed = None if seconds is None else max(_SECONDS, _SHARE * seconds)
    try:
        forest = _forest(_rows(train, ranks), ranks, weights, seed, allowed)
        found["forest"] = {"metrics": _metrics(_sorted(forest, _rows(validation, truth)), truth)}
        found["forest"]["seconds"] = round(time.monotonic() - began, 2)
    except (DataError, ValueError) as error:  # scikit-learn's errors for inputs that it cannot use
        found["notes"].append(f"no {FOREST} beside the model: {_first_line(error)}")
    return found


def known_peers(folder: str | Path, fingerprint: str) -> dict[str, Any] | None:
    """The peers of a finished model in a folder, if it was trained on the same data.

    Examples
    --------
    >>> known_peers("nowhere", "") is None
    True
    """
    if not Path(folder).is_dir():
        return None
    about: dict[str, Any] = read_config(Path(folder))["about"]
    same = about.get("fingerprint") == fingerprint and not about.get("interrupted")
    return about.get("peers") if same else None


def measure_peers(model: Model, folder: str | Path, data: RankedSet, rows: Tensor | None = None) -> Peers:
    """The peers of a model on other data, on the same instances as the model.

    The constant order is stored with the model. The forest is fitted again to the training part of the run's
    own data, if it is where ``data.json`` says and unchanged; otherwise a note gives its tau-b on the
    validation part.

    Parameters
    ----------
    model : Model
        As `gmlr train` wrote it.
    folder : path-like
        Its folder, or that of its run.
    data : RankedSet
        Instances with their true ranks, as the model takes them.
    rows : Tensor, optional
        The instances to use; all of them by default.

    Examples
    --------
    >>> from gaussianmlr.data.loading import Arrays
    >>> from gaussianmlr.model import Recipe, build
    >>> recipe, inputs = Recipe(backbone="mlp"), {"kind": "table", "channels": 1}
    >>> about = {"peers": {"constant_order": {"scores": [2.0, 1.0], "metrics": {}}, "notes": []}}
    >>> model = Model(*build(recipe, 2, inputs), ("sky", "sea"), recipe, inputs, about)
    >>> data = Arrays(np.zeros((2, 1), np.float32), [[2, 1], [1, 2]])
    >>> measure_peers(model, "nowhere", data).metrics["constant order"]["tau_b"]
    0.0
    """
    facts: dict[str, Any] = model.about.get("peers") or {}
    if "constant_order" not in facts:
        return Peers({}, ())
    truth = _ranks(data)
    if rows is not None:
        truth = truth[rows.numpy()]
    scores = np.array(facts["constant_order"]["scores"])
    found, notes = {CONSTANT: _metrics(_repeated(scores), truth)}, list(facts.get("notes", ()))
    if "forest" in facts:
        try:
            train = _trained_on(model, Path(folder))
            ranks = _ranks(train)
            weights = getattr(train, "weights", None)
            forest = _forest(
                _rows(train, ranks),
                ranks,
                None if weights is None else weights.numpy().astype(np.float64),
                model.recipe.seed,
            )
            found[FOREST] = _metrics(_sorted(forest, _rows(data, truth, rows)), truth)
        except (DataError, ValueError) as error:
            then = 100 * facts["forest"]["metrics"]["tau_b"]
            notes.append(
                f"{FOREST}: tau-b {then:.2f} on the validation part; not measured here: {_first_line(error)}"
            )
    return Peers(found, tuple(notes))


def _trained_on(model: Model, folder: Path) -> RankedSet:
    """The training part of the run that made a model."""
    run = next((one for one in (folder, folder.parent) if (one / "run.json").is_file()), None)
    origin = None if run is None else read_origin(run)
    if run is None or origin is None:
        raise DataError("the model's folder does not say which data it was trained on")
    if origin.ids is not None:
        raise DataError("the run does not say which instances it was trained on")
    part = open_origin(origin, model, run, "train").data
    assert isinstance(part, RankedData)
    return ranked_set(part, model.inputs)


def _ranks(data: RankedSet) -> IntArray:
    """True ranks [N, K], without drawing or reading any picture."""
    if isinstance(data, RankedMNIST):
        return data.recipes(np.arange(len(data))).ranks
    ranks: Any = getattr(data, "ranks", None)
    if ranks is None:
        raise DataError(f"expected data with ranks, got {type(data).__name__}")
    found: IntArray = ranks.numpy()
    return aggregate(found) if found.ndim == 3 else found


def _rows(data: RankedSet, ranks: IntArray, rows: Tensor | None = None) -> Any:
    """The inputs of a table; refused if it is too large."""
    where = list(range(len(data))) if rows is None else rows.tolist()
    columns = fetch(data, [0])[0].shape[1]
    if (cells := len(where) * columns * ranks.shape[1]) > MOST_CELLS:
        raise DataError(
            f"{len(where):,} rows x {columns:,} columns x {ranks.shape[1]:,} labels are {cells:,} cells; "
            f"it is fitted to at most {MOST_CELLS:,}"
        )
    return fetch(data, where)[0].numpy()


def _constant(ranks: IntArray, weights: FloatArray | None) -> FloatArray:
    """The scores [K] of the aggregate of all orders."""
    dummy = DummyRanker().fit(np.zeros((len(ranks), 1)), ranks, sample_weight=weights)
    return np.asarray(dummy.decision_function([[0.0]])[0], dtype=np.float64)


def _repeated(scores: FloatArray) -> Any:
    return lambda start, stop: np.broadcast_to(scores, (stop - start, len(scores)))


def _forest(
    x: Any, ranks: IntArray, weights: FloatArray | None, seed: int, allowed: float | None = None
) -> Any:
    """A forest of relevances and heights [N, 2 K]; refused if it would take longer than allowed."""
    from sklearn.ensemble import RandomForestRegressor

    known = ranks >= 0
    tops = np.maximum(ranks.max(axis=1, keepdims=True), 1)
    targets = []
    for values in ((ranks > 0).astype(np.float64), ranks / tops):
        means = (values * known).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
        targets.append(np.where(known, values, means))  # unknown labels take the mean
    # Chosen by cross-validation on three tables: the order is learned, unlike by forests of relevance alone.
    forest = RandomForestRegressor(
        _FIRST_TREES, max_features="sqrt", min_samples_leaf=3, random_state=seed, warm_start=True
    )
    y = np.concatenate(targets, axis=1)
    began = time.monotonic()
    forest.fit(x, y, sample_weight=weights)
    needed = (time.monotonic() - began) * _TREES / _FIRST_TREES
    if allowed is not None and needed > allowed:
        raise DataError(f"it would take {needed:.0f} s, more than the {allowed:.0f} s it is given")
    return forest.set_params(n_estimators=_TREES).fit(x, y, sample_weight=weights)


def _sorted(forest: Any, x: Any) -> Any:
    """Scores of a forest: relevant labels by their height, the others below zero by their relevance."""

    def scores(start: int, stop: int) -> FloatArray:
        found = np.asarray(forest.predict(x[start:stop]), dtype=np.float64)
        relevance, height = np.split(found, 2, axis=1)
        return np.where(relevance > 0.5, height, relevance - 1.0)

    return scores


def _metrics(scores: Any, truth: IntArray) -> dict[str, float]:
    """The six metrics of scores(start, stop) [n, K], some rows at a time."""
    measured = PaperMetrics(sync_on_compute=False)  # of several processes, one measures
    for start in range(0, len(truth), _ROWS):
        stop = min(start + _ROWS, len(truth))
        part = torch.tensor(scores(start, stop)).float()  # copied: torch warns of arrays that are read-only
        measured.update(part, torch.tensor(truth[start:stop]))
    return values_of(measured)


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0].rstrip(".")

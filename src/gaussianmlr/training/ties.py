"""Whether ties are learned: by the orders to train on, and by what validation data says of the threshold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gaussianmlr.data.loading import RankedSet
from gaussianmlr.methods import Reading, make
from gaussianmlr.methods.ties import learns_ties
from gaussianmlr.model.model import Model
from gaussianmlr.model.recipe import Recipe
from gaussianmlr.nn.ensembles import parts_of
from gaussianmlr.normal.ties import pair_logs
from gaussianmlr.orders.sparse import SparseRanks

__all__ = ["TieGain", "asks_for_choice", "gain_of_ties", "hold_ties", "settled", "without_ties"]

_CELLS = 1 << 22  # pairs of labels at a time


def asks_for_choice(recipe: Recipe) -> bool:
    """Whether a recipe leaves open if ties are learned.

    Examples
    --------
    >>> asks_for_choice(Recipe()), asks_for_choice(Recipe(method_settings={"ties": "auto"}))
    (False, True)
    """
    return recipe.method_settings.get("ties") == "auto"


def settled(recipe: Recipe, data: RankedSet) -> Recipe:
    """A recipe with ``ties="auto"`` decided by the orders to train on; any other recipe as it is.

    Examples
    --------
    >>> from gaussianmlr.data.loading import Arrays
    >>> recipe = Recipe(method_settings={"ties": "auto"})
    >>> [
    ...     settled(recipe, Arrays(torch.zeros(1, 2), torch.tensor([order]))).method_settings
    ...     for order in ([2, 1, 0], [1, 1, 0])
    ... ]
    [{'ties': 'none'}, {'ties': 'learned'}]
    """
    if not asks_for_choice(recipe):
        return recipe
    ranks = getattr(data, "ranks", None)  # data drawn on demand has none, and no ties
    ties = getattr(data, "ties", False) if ranks is None else hold_ties(ranks)
    return _with_ties(recipe, "learned" if ties else "none")


def _with_ties(recipe: Recipe, ties: str) -> Recipe:
    return recipe.replace(method_settings={**recipe.method_settings, "ties": ties})


def hold_ties(ranks: Any) -> bool:
    """Whether any order ties two relevant labels; ranks [N, K], or [N, R, K] of several rankers.

    Examples
    --------
    >>> hold_ties([[2, 1, 0, 0]]), hold_ties([[2, 1, 1, 0]])
    (False, True)
    """
    if isinstance(ranks, SparseRanks):
        matrix = ranks.matrix
        row = np.repeat(np.arange(len(ranks)), np.diff(matrix.indptr))[matrix.data > 0]
        places = np.stack([row, matrix.data[matrix.data > 0]], 1)
        return len(np.unique(places, axis=0)) < len(places)
    ordered = np.sort(np.asarray(ranks), axis=-1)
    return bool(((ordered[..., 1:] == ordered[..., :-1]) & (ordered[..., 1:] > 0)).any())


@dataclass(frozen=True)
class TieGain:
    r"""How well a threshold predicts which pairs of relevant labels tie.

    Attributes
    ----------
    gain : float
        Mean over instances of the sum of :math:`\log(t/q)` over tied and of :math:`\log((1-t)/(1-q))` over
        ordered pairs of relevant labels, with the predicted probability t of a tie and the share q of tied
        pairs.
    error : float
        Its standard error over instances.
    share : float
        The share q.
    pairs : int
        Number of pairs.
    """

    gain: float
    error: float
    share: float
    pairs: int


def gain_of_ties(reading: Reading, ranks: Tensor) -> TieGain:
    """What the thresholds of calibrated readings are worth on instances that they were not learned from.

    The rate q is that of the same instances, so a gain means that differences of significances say more about
    ties than their frequency does.

    Parameters
    ----------
    reading : Reading
        Readings with `tau`.
    ranks : Tensor [N, K]
        The true ranks.

    Examples
    --------
    >>> mu, ranks = torch.tensor([[3.0, 1.0, 1.0]]), torch.tensor([[2, 1, 1]])
    >>> reading = Reading(mu, torch.special.ndtr(mu), mu, torch.ones(1, 3) * 0.3, torch.full((1, 3), 0.5))
    >>> gain_of_ties(reading, ranks).gain > 0
    True
    """
    assert reading.tau is not None
    # Only pairs of relevant labels count.
    longest = max(1, int((ranks > 0).sum(1).max()) if len(ranks) else 1)
    top = ranks.sort(dim=1, descending=True).indices[:, :longest]
    ranks, reading = ranks.gather(1, top), _columns(reading, top)
    assert reading.tau is not None
    labels = longest
    tied, ordered = np.zeros(len(ranks)), np.zeros(len(ranks))  # log-probabilities
    counts = np.zeros((2, len(ranks)))
    step = max(1, _CELLS // labels**2)
    for start in range(0, len(ranks), step):
        rows = slice(start, start + step)
        sigma = None if reading.sigma is None else reading.sigma[rows].double()
        above, tie = pair_logs(reading.scores[rows].double(), sigma, reading.tau[rows].double())
        apart = torch.logaddexp(above, above.transpose(1, 2))
        order = ranks[rows]
        both = torch.triu((order[:, :, None] > 0) & (order[:, None, :] > 0), 1)
        same = order[:, :, None] == order[:, None, :]
        for place, (logs, chosen) in enumerate(((tie, both & same), (apart, both & ~same))):
            counts[place, rows] = chosen.sum((1, 2)).numpy()
            (tied, ordered)[place][rows] = logs.masked_fill(~chosen, 0.0).sum((1, 2)).numpy()
    whole, pairs = counts.sum(0) > 0, counts.sum()
    share = counts[0].sum() / max(pairs, 1)
    # A share of 0 or 1 has no logarithm, and nothing to gain.
    rates = np.log(np.clip([share, 1.0 - share], 1e-12, 1.0))
    gains = (tied + ordered - rates @ counts)[whole]
    if not len(gains):
        return TieGain(0.0, 0.0, 0.0, 0)
    error = gains.std(ddof=1) / len(gains) ** 0.5 if len(gains) > 1 else 0.0
    return TieGain(float(gains.mean()), float(error), float(share), int(pairs))


def _columns(reading: Reading, places: Tensor) -> Reading:
    """Some labels of each instance [N, n]."""
    parts = (
        None if part is None else part.expand(reading.scores.shape).gather(1, places) for part in reading
    )
    return Reading(*parts)  # type: ignore[arg-type]


def without_ties(model: Model) -> Model:
    """The model read by its means alone, as if it had been trained without a threshold.

    Its temperatures belong to the threshold; measure and calibrate it again.

    Examples
    --------
    >>> from gaussianmlr.model import build
    >>> recipe = Recipe(backbone="mlp", method_settings={"ties": "learned"})
    >>> inputs = {"kind": "table", "channels": 2}
    >>> model = Model(*build(recipe, 2, inputs), ("sky", "sea"), recipe, inputs)
    >>> model.read([[1.0, 2.0]]).tau.shape, without_ties(model).read([[1.0, 2.0]]).tau
    (torch.Size([1, 2]), None)
    """
    if not learns_ties(model.method):
        return model
    recipe = _with_ties(model.recipe, "none")
    networks, trees = parts_of(model.network)
    for network in networks:
        head: Any = network.head
        del head.layers["tau"]
    if trees is not None:
        trees.tau = None
    model.recipe, model.method = recipe, make(recipe.method, **recipe.method_settings)
    model.calibration = model.jnd = None
    return model

"""Predictions of a model for a stream of inputs, a batch at a time."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from gaussianmlr._grammar import Buckets, write
from gaussianmlr.errors import DataError
from gaussianmlr.model import Model
from gaussianmlr.prediction import Prediction
from gaussianmlr.streams import Bad, Item

__all__ = ["Answer", "Predictions", "answer", "check_settings", "partial_text", "predict", "told"]

BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Predictions:
    """What a model says of some instances.

    Attributes
    ----------
    names : list of str
        The instances.
    orders : list of str
        Their orders as texts.
    partial : list of str or None
        What is sure of the orders, where a confidence was given; see `partial_text`.
    ranks : int array [N, K]
        The orders as ranks.
    values : dict of str to float array [N, K]
        ``significance`` (in the canonical gauge) and ``sigma``, or ``score`` of methods without
        them; and ``p_relevant``.
    """

    names: list[str]
    orders: list[str]
    partial: list[str] | None
    ranks: npt.NDArray[np.int64]
    values: dict[str, npt.NDArray[np.float32]]


class Answer(NamedTuple):
    """What became of one batch of instances."""

    bad: list[Bad]
    predictions: Predictions | None


def predict(
    model: Model,
    items: Iterable[Item | Bad],
    *,
    batch_size: int = 64,
    confidence: float | None = None,
    bad: Callable[[Bad], None] | None = None,
) -> Iterator[Predictions]:
    """Predict instances as they come, never holding more than a batch.

    Parameters
    ----------
    model : Model
        What predicts.
    items : iterable of Item or Bad
        Instances, such as `streams.stream` gives.
    batch_size : int
        How many are taken at once; those of them that can be used go through the network together.
    confidence : float, optional
        Say also what is sure of the orders, each comparison with this probability.
    bad : callable, optional
        Is told of instances that cannot be used; without it the first of them raises.

    Examples
    --------
    >>> import numpy as np
    >>> from gaussianmlr.batches import Arrays
    >>> from gaussianmlr.fitting import fit
    >>> from gaussianmlr.recipe import Recipe
    >>> x = np.random.default_rng(0).normal(size=(64, 2)).astype(np.float32)
    >>> data = Arrays(x, (x > 0) * x.argsort(1).argsort(1) + (x > 0))
    >>> model = fit(Recipe(backbone="mlp", epochs=20), data, None, labels=("a", "b")).model
    >>> (found,) = predict(model, [Item("both", torch.tensor([2.0, 1.0]))])
    >>> found.names, found.orders, sorted(found.values)
    (['both'], ['a > b'], ['p_relevant', 'sigma', 'significance'])
    """
    check_settings(model, batch_size, confidence)
    coming = iter(items)
    while instances := list(itertools.islice(coming, batch_size)):
        yield from told(answer(model, instances, confidence), bad)


def check_settings(model: Model, batch_size: int, confidence: float | None) -> None:
    """Refuse what `predict` cannot do."""
    if batch_size < 1:
        raise DataError(f"batch_size is {batch_size}; expected 1 or more")
    if confidence is not None and not 0.5 < confidence < 1:
        raise DataError(f"expected a confidence above 0.5 and below 1, got {confidence}")
    if confidence is not None and "mu" not in {output.name for output in model.method.outputs}:
        raise DataError(f"the method {model.method.name} has no sigma, so that it cannot say how sure it is")


def answer(model: Model, instances: Sequence[Item | Bad], confidence: float | None) -> Answer:
    """What there is to say of one batch: one call of the network, whoever makes it."""
    good = [one for one in instances if isinstance(one, Item)]
    bad = [one for one in instances if isinstance(one, Bad)]
    return Answer(bad, _predicted(model, good, confidence) if good else None)


def told(found: Answer, bad: Callable[[Bad], None] | None) -> Iterator[Predictions]:
    """The predictions of an answer, after what cannot be used was reported or has raised."""
    for one in found.bad:
        if bad is None:
            raise DataError(f"{one.name}: {one.reason}")
        bad(one)
    if found.predictions is not None:
        yield found.predictions


def _predicted(model: Model, items: list[Item], confidence: float | None) -> Predictions:
    reading = model.read(torch.stack([item.value for item in items]), len(items))
    names = [item.name for item in items]
    found = Prediction.from_reading(reading, model.labels, method=model.method.name, names=names)
    if found.raw is None:
        values = {"score": found.scores}
    else:
        values = {"significance": found.significance, "sigma": found.sigma}
    values["p_relevant"] = found.p_relevant
    single = {name: table.astype(np.float32) for name, table in values.items()}
    partial = None if confidence is None else found.partial_text(confidence)
    return Predictions(names, found.orders, partial, found.ranks, single)


def partial_text(
    above: BoolArray,
    sure: BoolArray,
    possible: BoolArray,
    labels: Sequence[str],
    scores: npt.NDArray[Any],
) -> str:
    """A partial order as text: its chains, separated by semicolons, and what may be relevant too.

    ``mountain > sky; mountain > sea ? sun`` says that mountain stands above sky and above sea, that
    nobody knows which of these two is above the other, and that sun may apply or not. Labels that surely
    do not apply are not named.

    Parameters
    ----------
    above : bool array [K, K]
        Which label stands above which, as `normal.partial_order` gives it.
    sure, possible : bool array [K]
        Which labels are surely relevant, and which may be.
    labels : sequence of str
        Their names.
    scores : array [K]
        Larger is named first.

    Examples
    --------
    >>> above = np.array([[0, 1, 1, 1], [0, 0, 0, 1], [0, 0, 0, 1], [0, 0, 0, 0]], bool)
    >>> sure, possible = np.array([1, 1, 1, 0], bool), np.ones(4, bool)
    >>> partial_text(above, sure, possible, ["mountain", "sky", "sea", "sun"], np.array([3, 2, 1, 0.0]))
    'mountain > sky; mountain > sea ? sun'
    """
    place = [int(label) for label in np.argsort(-scores, kind="stable")]
    nodes = [label for label in place if sure[label]]
    inner = above & sure[:, None] & sure[None, :]
    direct = inner & ~((inner.astype(np.int64) @ inner.astype(np.int64)) > 0)
    below = {node: [other for other in nodes if direct[node, other]] for node in nodes}
    parents = {node: int(direct[:, node].sum()) for node in nodes}
    chains: list[list[int]] = []
    for node in nodes:
        if parents[node] == 1 and len(below[node]) == 1:
            continue  # stands in the middle of a chain that begins above
        if not below[node] and parents[node] == 0:
            chains.append([node])
        for first in below[node]:
            chain = [node, first]
            while parents[chain[-1]] == 1 and len(below[chain[-1]]) == 1:
                chain.append(below[chain[-1]][0])
            chains.append(chain)
    text = "; ".join(write(Buckets([[labels[node]] for node in chain], [])) for chain in chains)
    unsure = [labels[label] for label in place if possible[label] and not sure[label]]
    return f"{text} {write(Buckets([], unsure))}".strip() if unsure else text

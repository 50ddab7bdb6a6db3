"""Predictions of a model for a stream of inputs, batch by batch."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from gaussianmlr.errors import DataError
from gaussianmlr.inference.streams import Bad, Item
from gaussianmlr.model.model import Model
from gaussianmlr.model.quick import quickened
from gaussianmlr.nn.backbones.converted import FEWEST
from gaussianmlr.orders import to_text

__all__ = ["Answer", "Predictions", "answer", "check_guarantee", "check_settings", "predict", "told"]

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
        ``significance`` (on the scale of `Prediction.scale`) and ``sigma``, or ``score`` of methods without
        them; and ``p_relevant``. Where a guarantee was asked for, also its columns ``in_set``, ``place_low``
        and ``place_high``.
    guaranteed : list of str or None
        Guaranteed partial orders within the relevance sets; see `Guaranteed.texts`.
    places : int array [N, top] or None
        Where the most significant labels alone were asked for: their columns, the first one first. `ranks`
        and `values` are then [N, top], too, and `orders` are those of these labels.
    """

    names: list[str]
    orders: list[str]
    partial: list[str] | None
    ranks: npt.NDArray[np.int64]
    values: dict[str, npt.NDArray[Any]]
    guaranteed: list[str] | None = None
    places: npt.NDArray[np.int64] | None = None


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
    guarantee: float | None = None,
    top: int | None = None,
    bad: Callable[[Bad], None] | None = None,
) -> Iterator[Predictions]:
    """Predict instances as they come, never holding more than a batch.

    Parameters
    ----------
    model : Model
        The model.
    items : iterable of Item or Bad
        Instances, such as `streams.stream` gives.
    batch_size : int
        Number of instances per call of the network.
    confidence : float, optional
        Also give the part of each order that is certain at this probability per comparison.
    guarantee : float, optional
        Also give relevance sets, places and partial orders that are guaranteed at this level alpha.
    top : int, optional
        Give so many labels of each instance, the most significant ones.
    bad : callable, optional
        Called with instances that cannot be used; without it, the first of them raises.

    Examples
    --------
    >>> import numpy as np
    >>> from gaussianmlr.data.loading import Arrays
    >>> from gaussianmlr.training.fit import fit
    >>> from gaussianmlr.model.recipe import Recipe
    >>> x = np.random.default_rng(0).normal(size=(64, 2)).astype(np.float32)
    >>> data = Arrays(x, (x > 0) * x.argsort(1).argsort(1) + (x > 0))
    >>> model = fit(Recipe(backbone="mlp", epochs=20), data, None, labels=("a", "b")).model
    >>> (found,) = predict(model, [Item("both", torch.tensor([2.0, 1.0]))])
    >>> found.names, found.orders, sorted(found.values)
    (['both'], ['a > b'], ['p_relevant', 'sigma', 'significance'])
    """
    check_settings(model, batch_size, confidence, guarantee)
    if top is not None and (top < 1 or guarantee is not None):
        wanted = "1 or more" if top < 1 else "it without a guarantee, which is one of all labels"
        raise DataError(f"top is {top}; expected {wanted}")
    coming, reader, seen = iter(items), model, 0
    while instances := list(itertools.islice(coming, batch_size)):
        seen += len(instances)
        good = [one.value for one in instances if isinstance(one, Item)]
        if seen - len(instances) < FEWEST <= seen and good:  # once: it is known that there are many
            reader = quickened(model, torch.stack(good[:8]))
        yield from told(answer(reader, instances, confidence, guarantee, top), bad)


def check_settings(
    model: Model, batch_size: int, confidence: float | None, guarantee: float | None = None
) -> None:
    """Refuse settings that `predict` cannot use."""
    if batch_size < 1:
        raise DataError(f"batch_size is {batch_size}; expected 1 or more")
    if confidence is not None and not 0.5 < confidence < 1:
        raise DataError(f"expected a confidence above 0.5 and below 1, got {confidence}")
    if confidence is not None and "mu" not in {output.name for output in model.method.outputs}:
        raise DataError(f"the method {model.method.name} has no sigma, so that it cannot say how sure it is")
    if guarantee is not None:
        check_guarantee(model, guarantee)


def check_guarantee(model: Model, alpha: float) -> None:
    """Refuse a level that a model cannot guarantee."""
    if model.conformal is None:
        raise DataError(
            "the model has no conformal calibration: train it with --conformal 0.1, or use `gmlr calibrate` "
            "with data that it was not made from"
        )
    if model.guarantees is None:
        raise DataError("the guarantees were calibrated at other temperatures than those in use")
    model.guarantees.limits(alpha)


def answer(
    model: Model,
    instances: Sequence[Item | Bad],
    confidence: float | None,
    guarantee: float | None = None,
    top: int | None = None,
) -> Answer:
    """The answer for one batch, by one call of the network."""
    good = [one for one in instances if isinstance(one, Item)]
    bad = [one for one in instances if isinstance(one, Bad)]
    return Answer(bad, _predicted(model, good, confidence, guarantee, top) if good else None)


def told(found: Answer, bad: Callable[[Bad], None] | None) -> Iterator[Predictions]:
    """The predictions of an answer; unusable instances are reported or raise."""
    for one in found.bad:
        if bad is None:
            raise DataError(f"{one.name}: {one.reason}")
        bad(one)
    if found.predictions is not None:
        yield found.predictions


def _predicted(
    model: Model,
    items: list[Item],
    confidence: float | None,
    guarantee: float | None,
    top: int | None = None,
) -> Predictions:
    reading = model.read(torch.stack([item.value for item in items]), len(items))
    names = [item.name for item in items]
    found = model.prediction_of(reading, names)
    if found.raw is None:
        values = {"score": found.scores}
    else:
        values = {"significance": found.significance, "sigma": found.sigma}
    values["p_relevant"] = found.p_relevant
    single: dict[str, npt.NDArray[Any]] = {name: table.astype(np.float32) for name, table in values.items()}
    texts = None
    if guarantee is not None:
        promised = found.guaranteed(guarantee)
        low, high = promised.rank_intervals
        single |= {"in_set": promised.relevance_sets, "place_low": low, "place_high": high}
        texts = promised.texts
    partial = None if confidence is None else found.partial_text(confidence, top)
    if top is None:
        return Predictions(names, found.orders, partial, found.ranks, single, texts)
    places = found.top_places(top)
    ranks = np.take_along_axis(found.ranks, places, 1)
    kept = np.zeros_like(found.ranks)
    np.put_along_axis(kept, places, ranks, 1)
    single = {name: np.take_along_axis(values, places, 1) for name, values in single.items()}
    return Predictions(names, to_text(kept, found.labels), partial, ranks, single, None, places)

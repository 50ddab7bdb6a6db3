"""Orders that a model suggests for items, and how uncertain they are."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from gaussianmlr.apps.annotate.store import Item, Store
from gaussianmlr.data.inputs import read_row, text_column
from gaussianmlr.errors import DataError, shorten
from gaussianmlr.inference.streams import Item as Input
from gaussianmlr.inference.streams import Unread, read
from gaussianmlr.model.model import Model
from gaussianmlr.model.prediction import Prediction
from gaussianmlr.orders.grammar import Buckets, write

__all__ = ["check_model", "suggest_all", "uncertainty"]

FloatArray = npt.NDArray[np.float64]


def uncertainty(prediction: Prediction) -> FloatArray:
    r"""The uncertainty of each predicted order, in bits.

    .. math:: U = \sum_k H(p_k) + \sum_{i<j} p_i p_j H(P(i \succ j))

    with :math:`p_k` the probability that label :math:`k` applies and :math:`H` the entropy of a yes or no:
    the uncertainty about which labels apply, and about the order of those that probably do. Methods
    without sigma have only the first sum.

    Returns
    -------
    float array [N]

    References
    ----------
    Settles (2009), Active learning literature survey, on uncertainty sampling by entropy.

    Examples
    --------
    >>> from gaussianmlr.model.prediction import Prediction
    >>> scores = np.array([[3.0, -3.0], [0.1, -0.1]])
    >>> sure, unsure = uncertainty(Prediction(scores, 1 / (1 + np.exp(-scores)), ("a", "b")))
    >>> bool(sure < 1 < unsure)
    True
    """
    chances = prediction.p_relevant
    total: FloatArray = _entropy(chances).sum(-1)
    if prediction.raw is None:
        return total
    both = chances[:, :, None] * chances[:, None, :]
    above, below = np.triu_indices(chances.shape[1], 1)
    total += (both * _entropy(prediction.p_above))[:, above, below].sum(-1)
    return total


def _entropy(chances: FloatArray) -> FloatArray:
    other = 1.0 - chances
    # 0 log 0 is 0
    bits: FloatArray = -(
        chances * np.log2(chances, out=np.zeros_like(chances), where=chances > 0)
        + other * np.log2(other, out=np.zeros_like(other), where=other > 0)
    )
    return bits


def check_model(model: Model, kind: str, labels: Sequence[str]) -> None:
    """Refuse a model of other inputs, or one that has none of the labels."""
    takes = model.inputs.get("kind")
    known = takes == "table" and text_column(model.inputs) is not None
    if (takes, kind) not in (("image", "image"), ("table", "row")) and not (known and kind == "text"):
        raise DataError(f"the model takes inputs of kind {takes!r}, and the items are of kind {kind!r}")
    if not set(model.labels) & set(labels):
        raise DataError(
            f"the model has the labels {shorten(list(model.labels))}, but none of {shorten(list(labels))}"
        )


def suggest_all(
    model: Model,
    store: Store,
    name: str,
    *,
    batch_size: int = 16,
    going_on: Callable[[], bool] = lambda: True,
) -> int:
    """Save the model's order and uncertainty for every item without one, batch by batch.

    Parameters
    ----------
    model : Model
        The model. Its labels that the store does not have are left out.
    store : Store
        The store. Suggestions of other models are deleted.
    name : str
        Name of the model; a new name replaces all suggestions.
    batch_size : int
        Items per batch.
    going_on : callable
        Called before every batch; False stops.

    Returns
    -------
    int
        Number of new suggestions.
    """
    check_model(model, store.kind, store.labels)
    store.forget_suggestions(but=name)
    seen = store.suggested(name)
    wanted = [item for item in store.items() if item.id not in seen]
    labels = set(store.labels)
    done = 0
    tensors = _tensors(model, wanted)
    while going_on() and (batch := list(itertools.islice(tensors, batch_size))):
        prediction = model.predict(torch.stack([tensor for _, tensor in batch]))
        unsure = uncertainty(prediction)
        orders = [_known(order, labels) for order in prediction.lists]
        store.suggest(
            [(item, order, float(bits)) for (item, _), order, bits in zip(batch, orders, unsure)], name
        )
        done += len(batch)
    return done


def _known(order: list[Any], labels: set[str]) -> str:
    kept = [[label for label in bucket if label in labels] for bucket in order]
    return write(Buckets([bucket for bucket in kept if bucket], []))


def _tensors(model: Model, items: Iterable[Item]) -> Iterator[tuple[int, Any]]:
    """Inputs of the model; items that it cannot read get no suggestion."""
    column = text_column(model.inputs) or ""
    for item in items:
        if model.inputs["kind"] == "image":
            found = read(Unread(item.name, Path(item.content)), model.inputs)
            if isinstance(found, Input):
                yield item.id, found.value
        else:
            cells = {column: item.content} if isinstance(item.content, str) else item.content
            with contextlib.suppress(DataError):
                yield item.id, read_row(cells, model.inputs)

"""Batches, answers and errors as data that machines exchange: JSON and safetensors, never pickle."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from gaussianmlr.errors import DataError, shorten
from gaussianmlr.inference.predict import Answer, Predictions
from gaussianmlr.inference.streams import Bad, Item, Unread

__all__ = ["Batch", "Parcel", "pack", "unpack"]

Batch = list[Item | Bad | Unread]


class Parcel(NamedTuple):
    """A message: JSON, and the bytes of tensors."""

    text: str
    tensors: bytes


def pack(value: Batch | Answer | DataError | OSError) -> Parcel:
    """A batch, the answer to one, or the error that stops a run, as data.

    Examples
    --------
    >>> pack([Bad("a.jpg", "is empty")]).text
    '{"batch": [["Bad", "a.jpg", "is empty"]]}'
    >>> unpack(pack([Bad("a.jpg", "is empty")]))
    [Bad(name='a.jpg', reason='is empty')]
    """
    tensors: dict[str, Tensor] = {}
    whole: dict[str, Any]
    if isinstance(value, OSError):
        file = None if value.filename is None else str(value.filename)
        whole = {"os_error": [str(value)] if value.errno is None else [value.errno, value.strerror, file]}
    elif isinstance(value, DataError):
        whole = {"data_error": str(value)}
    elif isinstance(value, Answer):
        whole = {"bad": value.bad, "predictions": None}
        if (found := value.predictions) is not None:
            whole["predictions"] = [
                found.names,
                found.orders,
                found.partial,
                list(found.values),
                found.guaranteed,
            ]
            tensors = {f"value {key}": torch.tensor(table) for key, table in found.values.items()}
            tensors["ranks"] = torch.tensor(found.ranks)
    else:
        whole = {"batch": [_listed(one) for one in value]}
        items = [one.value for one in value if isinstance(one, Item)]
        tensors = {"items": torch.stack(items)} if items else {}
    return Parcel(json.dumps(whole), save(tensors))


def unpack(parcel: Parcel) -> Batch | Answer | DataError | OSError:
    r"""What `pack` was given; bytes that are something else are refused.

    Examples
    --------
    >>> unpack(Parcel("[]", b"cos\nsystem\n"))
    Traceback (most recent call last):
        ...
    gaussianmlr.errors.DataError: a batch has an unknown form: '[]'; do all machines have one version?
    """
    try:
        whole, tensors = json.loads(parcel.text), load(parcel.tensors)
        if "os_error" in whole:
            return OSError(*whole["os_error"])
        if "data_error" in whole:
            return DataError(whole["data_error"])
        if "batch" in whole:
            items = iter(tensors.get("items", ()))
            return [_instance(one, items) for one in whole["batch"]]
        bad = [Bad(*one) for one in whole["bad"]]
        if whole["predictions"] is None:
            return Answer(bad, None)
        names, orders, partial, keys, guaranteed = whole["predictions"]
        values = {key: tensors[f"value {key}"].numpy() for key in keys}
        ranks = tensors["ranks"].numpy()
        return Answer(bad, Predictions(names, orders, partial, ranks, values, guaranteed))
    except (ValueError, KeyError, TypeError, StopIteration, SafetensorError):
        shown = shorten(parcel.text)
        raise DataError(f"a batch has an unknown form: {shown}; do all machines have one version?") from None


def _listed(one: Item | Bad | Unread) -> list[str]:
    rest = [] if isinstance(one, Item) else [str(one[1])]
    return [type(one).__name__, one.name, *rest]


def _instance(listed: Sequence[str], items: Any) -> Item | Bad | Unread:
    kind, name, *rest = listed
    if kind == "Item":
        return Item(name, next(items))
    return Bad(name, *rest) if kind == "Bad" else Unread(name, Path(*rest))

"""Predictions as answers in JSON, written in steps that hold up no other request."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from json.encoder import encode_basestring
from typing import Any

from pydantic_core import to_json

from gaussianmlr.apps.web.answers import encoded
from gaussianmlr.errors import DataError
from gaussianmlr.model.prediction import Prediction
from gaussianmlr.model.tables import FURTHER, columns_of, places_of, plain

__all__ = ["check_pairs", "cost", "instances", "opening", "pieces"]

STEP = 50_000  # cost of one step, about 50 ms; see `cost`
_CELLS = 4_000_000  # numbers per answer
_MATRICES = ("p_rank", "p_above", "p_tie", "partial_order")


def check_pairs(
    count: int, width: int, readings: Sequence[str], confidence: float | None, top: int | None = None
) -> None:
    """Refuse readings that are too large for one answer, or that lack a confidence."""
    if top is not None and "p_rank" in readings:
        raise DataError(
            "p_rank is the distribution over all ranks: it has no top labels; leave out one of both"
        )
    width = min(width, top or width)
    pairs = count * width**2
    if pairs > _CELLS and not set(_MATRICES).isdisjoint(readings):
        raise DataError(
            f"{count:,} instances of {width:,} labels have {pairs:,} pairs; expected at most {_CELLS:,}. "
            "Ask for fewer instances, or for the most significant labels: 'top': 50"
        )
    if "partial_order" in readings and confidence is None:
        raise DataError("partial_order needs a confidence, such as 0.9")


def pieces(
    found: Prediction,
    readings: Sequence[str],
    confidence: float | None,
    guarantee: float | None = None,
    top: int | None = None,
) -> Iterator[bytes]:
    """A prediction as JSON, a few instances at a time.

    It is `Prediction.to_dict` with further readings; with `top`, those of so many labels of each instance,
    and without the list of all labels.

    Examples
    --------
    >>> import numpy as np
    >>> found = Prediction(np.array([[2.0, 3.0]]), np.array([[0.9, 0.95]]), ("a", "b"), method="br")
    >>> print(b"".join(pieces(found, ["buckets"], None)).decode()[-26:])
    "buckets":[["b"],["a"]]}]}
    """
    yield opening(found, top)
    step = max(1, STEP // cost(len(found.labels), readings, confidence or guarantee, top))
    for start in range(0, len(found), step):
        part = found[start : start + step] if step < len(found) else found
        yield (b"," if start else b"") + b",".join(instances(part, readings, confidence, guarantee, top))
    yield b"]}" if guarantee is None else b'],"guarantee":%b}' % encoded(_promise(found, guarantee))


def opening(found: Prediction, top: int | None) -> bytes:
    """What an answer begins with, up to its first instance."""
    about: dict[str, Any] = {"method": found.method}
    if found.scale is not None:
        about["scale"] = found.scale
    if not top:
        about["labels"] = list(found.labels)
    return encoded(about)[:-1] + b',"instances":['


def _promise(found: Prediction, guarantee: float) -> dict[str, Any]:
    promised = found.guaranteed(guarantee)
    return {"alpha": guarantee, "rows": promised.rows, "statement": promised.statement}


def instances(
    found: Prediction,
    readings: Sequence[str],
    confidence: float | None,
    guarantee: float | None,
    top: int | None,
) -> list[bytes]:
    """The instances of a prediction as JSON."""
    more: dict[str, Sequence[bytes]] = {}
    if "buckets" in readings:
        more["buckets"] = list(map(encoded, found.lists))
    if guarantee is not None:
        more["guaranteed"] = list(map(encoded, found.guaranteed(guarantee).to_dict()["instances"]))
    for name, matrix in _matrices(found, readings, confidence, top).items():
        more[name] = [_rows(part) for part in matrix]
    sure = [] if confidence is None else found.partial_text(confidence, top)
    texts = []
    for place, (name, order, labels) in enumerate(
        zip(found.names, found.orders, _labels(found, readings, confidence, top))
    ):
        head = b"%d" % name if type(name) is int else _quoted(str(plain(name)))
        text = b'{"name":%b,"order":%b' % (head, _quoted(order))
        partial = b',"partial":%b' % _quoted(sure[place]) if sure else b""
        rest = [b',"%b":%b' % (key.encode(), part[place]) for key, part in more.items()]
        texts.append(b"".join([text, partial, labels, *rest, b"}"]))
    return texts


def _labels(
    found: Prediction, readings: Sequence[str], confidence: float | None, top: int | None
) -> Iterator[bytes]:
    """The numbers of each instance by label.

    The texts of all numbers and what stands between them are one list that is joined row by row, which takes
    half the time of dicts.
    """
    further = [name for name in FURTHER if name in readings]
    places = places_of(found, top)
    columns = columns_of(found, further, confidence, places, whole=top is None)
    flat, step = places.ravel().tolist(), 2 * len(columns)
    names = {place: _quoted(found.labels[place]) for place in set(flat)}
    cells = [b""] * (step * len(flat))
    for number, (name, column) in enumerate(columns.items()):
        key = name.encode()
        cells[2 * number :: step] = (
            [b'},%b:{"%b":' % (names[place], key) for place in flat]
            if number == 0
            else [b',"%b":' % key] * len(flat)
        )
        # A whole column at once; NaN, which JSON does not have, would be null.
        texts = to_json(column.ravel().tolist(), inf_nan_mode="null")
        cells[2 * number + 1 :: step] = texts[1:-1].split(b",")
    width = step * places.shape[1]
    for start in range(0, len(cells), width):
        yield b',"labels":{%b}}' % b"".join(cells[start : start + width])[2:]


def _quoted(text: str) -> bytes:
    return encode_basestring(text).encode("utf-8", "backslashreplace")


def _matrices(
    found: Prediction, readings: Sequence[str], confidence: float | None, top: int | None
) -> dict[str, Any]:
    """Readings with a number per pair of labels; with `top`, in the order in which the labels are given."""
    if top is None:
        matrices = {name: getattr(found, name) for name in ("p_rank", "p_above", "p_tie") if name in readings}
        if "partial_order" in readings and confidence is not None:
            matrices["partial_order"] = found.partial_order(confidence)
        return matrices
    if set(_MATRICES).isdisjoint(readings):
        return {}
    pairs = found.top_pairs(top)
    above = pairs.p_above
    both = {"p_above": above, "p_tie": pairs.p_tie, "partial_order": above >= (confidence or 1.0)}
    return {name: matrix for name, matrix in both.items() if name in readings}


def _rows(matrix: Any) -> bytes:
    # Row by row: encoding a large matrix at once would block all threads.
    return b"[%b]" % b",".join(to_json(row, inf_nan_mode="null") for row in matrix.tolist())


def cost(width: int, readings: Sequence[str], confidence: float | None, top: int | None = None) -> int:
    """Approximate cost of reading and writing one instance, in microseconds."""
    if top is not None:
        return 8 * width + 4 * min(top, width) ** 2
    quick = confidence is None and set(readings) <= {"buckets"}
    return 8 * width if quick else 4 * width**2

"""The best and the worst instances of a model: picture or values, orders and bars."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from typing import Any

import numpy as np
from markupsafe import Markup

from gaussianmlr.data import RankedData
from gaussianmlr.data.columns import Column, show_cell
from gaussianmlr.data.inputs import encoding_of, scaled
from gaussianmlr.data.open import recoded
from gaussianmlr.data.readers.images import read_image
from gaussianmlr.errors import DataError
from gaussianmlr.model.prediction import Prediction
from gaussianmlr.orders import to_text
from gaussianmlr.orders.grammar import shown
from gaussianmlr.plots import GaussianDisplay, SignificanceDisplay
from gaussianmlr.report.counts import pick_examples
from gaussianmlr.report.measure import Evidence
from gaussianmlr.report.mistakes import mistakes_of
from gaussianmlr.report.page import Data
from gaussianmlr.report.svg import drawn

__all__ = ["chosen_section", "examples_section"]

_SIDE = 320  # pixels of a picture
_FEATURES = 8
_BARS = 12
_LONGEST = 600  # characters of a text


def examples_section(evidence: Evidence, count: int) -> Data:
    """The best and the worst."""
    picked = pick_examples(evidence.tau_b, evidence.truth, count)
    no_sigma = evidence.prediction.raw is None
    bars = "scores" if no_sigma else f"mean significances{_unit_of(evidence)} with one sigma to each side"
    return {
        "bars": bars,
        "best": [_card(evidence, row, f"best{row}") for row in picked.best],
        "worst": [_card(evidence, row, f"worst{row}") for row in picked.worst],
    }


def chosen_section(evidence: Evidence, rows: Sequence[int]) -> Data:
    """Instances chosen before they were predicted: curves of their significances, and what is wrong."""
    cards = []
    for row in rows:
        one, truth = evidence.prediction[int(row)], evidence.truth[row]
        wrong = mistakes_of(one.ranks[0], truth, one.labels, one.p_above[0])
        true, found = shown(to_text(truth[None], one.labels)[0]), shown(one.orders[0])
        card = {
            "name": one.names[0],
            "facts": [("true order", true), ("predicted", found)],
            "wrong": str(wrong),
            "drawing": _curves(one, truth, f"chosen{row}"),
            **_shown(evidence, int(evidence.rows[row])),
        }
        cards.append(card)
    right = sum(not card["wrong"] for card in cards)
    return {"cards": cards, "right": right, "unit": _unit_of(evidence)}


def _unit_of(evidence: Evidence) -> str:
    """The unit of significances in words, if they have one."""
    return " in just noticeable differences (jnd)" if evidence.prediction.scale == "jnd" else ""


def _curves(one: Prediction, truth: Any, anchor: str) -> Markup:
    named = (truth > 0) | (one.ranks[0] > 0)
    mu, sigma = one.significance[0], one.sigma[0]
    display = GaussianDisplay.from_predictions(one, named=named)
    display.title = ""  # the card has a heading
    # The span shows the labels that apply; others may be anywhere left of zero.
    far = float((mu + 3 * sigma)[named].max(initial=1.0))
    values = ", ".join(f"{one.labels[k]} {mu[k]:.2f}" for k in np.argsort(-mu, kind="stable") if named[k])
    words = f"Curves of the significances of {one.names[0]}: {values}"
    return drawn(anchor, words, (4.4, 2.0), lambda ax: display.plot(ax, span=(-0.4 * far, 1.05 * far)))


def _card(evidence: Evidence, row: int, anchor: str) -> Data:
    one, truth = evidence.prediction[int(row)], evidence.truth[row]
    name, true, found = one.names[0], shown(to_text(truth[None], one.labels)[0]), shown(one.orders[0])
    words = f"{name}: predicted {found}; truly {true}"
    return {
        "name": name,
        "facts": [("true order", true), ("predicted", found), ("tau-b", f"{100 * evidence.tau_b[row]:.1f}")],
        "drawing": _bars(evidence, row, anchor, words),
        **_shown(evidence, int(evidence.rows[row])),
    }


def _bars(evidence: Evidence, row: int, anchor: str, words: str) -> Markup:
    display = SignificanceDisplay.from_predictions(evidence.prediction, row, truth=evidence.truth[row])
    display.title = ""  # the card has a heading
    count = min(_BARS, len(display.labels))
    what = "Scores" if evidence.prediction.raw is None else "Significances"
    values = ", ".join(
        f"{display.labels[label]} {display.values[label]:.2f}"
        for label in np.argsort(-display.values, kind="stable")[:count]
    )
    return drawn(
        anchor,
        f"{what} of {words}. {values}",
        (4.4, 0.95 + 0.27 * count),
        lambda ax: display.plot(ax, most=count),
    )


def _shown(evidence: Evidence, place: int) -> Data:
    """The picture of an instance, or its values."""
    data = evidence.data
    if isinstance(data, RankedData) and data.features is not None:
        return _features(evidence, data, place)
    try:
        pixels = _pixels(data, place)
    except DataError as error:  # removed after it was measured
        return {"features": None, "src": None, "text": None, "caption": str(error)}
    kind = "jpeg" if isinstance(data, RankedData) else "png"  # photographs as JPEG; drawings stay sharp
    src = f"data:image/{kind};base64,{_encoded(pixels, kind)}"
    return {"features": None, "src": src, "text": None, "size": pixels.shape[1::-1]}


def _pixels(data: Any, place: int) -> Any:
    from PIL import Image

    if isinstance(data, RankedData):
        assert data.images is not None
        image = Image.fromarray(read_image(data.images[place]))
        image.thumbnail((_SIDE, _SIDE), Image.Resampling.LANCZOS)
        return np.asarray(image)
    drawn = data.batch([place]).images[0]
    return drawn[0] if len(drawn) == 1 else np.moveaxis(drawn, 0, -1)


def _encoded(pixels: Any, kind: str) -> str:
    from PIL import Image

    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, kind, optimize=True, **({"quality": 85} if kind == "jpeg" else {}))
    return base64.b64encode(buffer.getvalue()).decode()


def _features(evidence: Evidence, data: RankedData, place: int) -> Data:
    """Values of a row; of many columns, those furthest from the mean of the training data."""
    assert data.features is not None
    values = np.asarray(data.features[place], dtype=np.float64)
    names = data.feature_names or tuple(map(str, range(len(values))))
    held = data.encoding or (Column(),) * len(values)
    chosen = np.arange(len(values))
    caption = "Feature values"
    if all(column.kind == "text" for column in held):
        cells = [_cell(float(value), column) for value, column in zip(values, held)]
        return {"features": None, "src": None, "text": cells}
    if len(values) > _FEATURES:
        chosen = np.sort(np.argsort(-_unusual(evidence, data, place), kind="stable")[:_FEATURES])
        caption = f"The {_FEATURES} most unusual of {len(values)} features"
    rows = [(names[place], _cell(float(values[place]), held[place])) for place in chosen.tolist()]
    return {"features": rows, "text": None, "caption": caption}


def _cell(value: float, column: Column) -> str:
    """A cell, long texts cut at their end."""
    shown = show_cell(value, column)
    return shown if len(shown) <= _LONGEST else f"{shown[: _LONGEST - 3].rstrip()}..."


def _unusual(evidence: Evidence, data: RankedData, place: int) -> Any:
    """How far each cell is from the mean of the training data; categories and gaps count as zero."""
    inputs = evidence.model.inputs
    row = recoded(data.subset([place]), inputs)
    encoding = encoding_of(inputs)
    away = np.abs(np.nan_to_num(scaled(row, inputs).numpy()[0].astype(np.float64)))
    if encoding is None:
        return away
    first = np.cumsum([0, *(column.width for column in encoding)])[:-1]
    kinds = [column.kind for column in encoding]
    away = np.where([kind == "category" for kind in kinds], 0.0, away[first])
    return np.where([kind == "text" for kind in kinds], np.inf, away)  # texts are always shown

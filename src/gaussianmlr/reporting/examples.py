"""Instances that show what a model can do and where it fails: their picture or values, orders and bars."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from typing import Any

import numpy as np

from gaussianmlr.data import RankedData
from gaussianmlr.errors import DataError
from gaussianmlr.orders import to_text
from gaussianmlr.plots import SignificanceDisplay
from gaussianmlr.reporting.drawing import drawn
from gaussianmlr.reporting.gathering import Evidence
from gaussianmlr.reporting.html import Html, element, facts, plain, table

__all__ = ["example_cards"]

_SIDE = 320  # pixels of a picture
_FEATURES = 8
_BARS = 12


def example_cards(evidence: Evidence, rows: Sequence[int], anchor: str) -> Html:
    """A card an instance."""
    return element("div", [_card(evidence, row, f"{anchor}{row}") for row in rows], class_="examples")


def _card(evidence: Evidence, row: int, anchor: str) -> Html:
    one, truth = evidence.prediction[int(row)], evidence.truth[row]
    name, tau = plain(one.names[0]), evidence.tau_b[row]
    true, found = to_text(truth[None], one.labels)[0], one.orders[0]
    order = facts(
        [
            ("true order", true or element("i", "no label")),
            ("predicted", found or element("i", "no label")),
            ("tau-b", f"{100 * tau:.1f}"),
        ],
        class_="facts small",
    )
    return element(
        "article",
        element("h4", name),
        _shown(evidence, int(evidence.rows[row]), name),
        order,
        _bars(evidence, row, anchor, f"{name}: predicted {found or 'no label'}; truly {true or 'no label'}"),
        class_="example",
    )


def _bars(evidence: Evidence, row: int, anchor: str, words: str) -> Html:
    display = SignificanceDisplay.from_predictions(evidence.prediction, row, truth=evidence.truth[row])
    display.title = ""  # the card says it
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


def _shown(evidence: Evidence, place: int, name: str) -> Html:
    """The picture of an instance, or its values."""
    data = evidence.data
    if isinstance(data, RankedData) and data.features is not None:
        return _features(evidence, data, place)
    try:
        pixels = _pixels(data, place)
    except DataError as error:  # it was read before, and is gone now
        return element("p", str(error), class_="soft small")
    kind = "jpeg" if isinstance(data, RankedData) else "png"  # photographs; what is drawn stays sharp
    return element(
        "img", src=f"data:image/{kind};base64,{_encoded(pixels, kind)}", alt=f"Picture {name}",
        width=pixels.shape[1], height=pixels.shape[0],
    )  # fmt: skip


def _pixels(data: Any, place: int) -> Any:
    from PIL import Image

    if isinstance(data, RankedData):
        from gaussianmlr.data.images import read_image

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


def _features(evidence: Evidence, data: RankedData, place: int) -> Html:
    """Values of a row; of many columns those that are furthest from the training data's mean."""
    assert data.features is not None
    values = np.asarray(data.features[place], dtype=np.float64)
    names = data.feature_names or tuple(map(str, range(len(values))))
    chosen = np.arange(len(values))
    caption = "Feature values"
    scaling: Any = evidence.model.inputs.get("scaling")
    if len(values) > _FEATURES:
        away = np.abs(values)
        if scaling is not None:
            away = np.abs(values - np.array(scaling["mean"])) / np.array(scaling["std"])
        chosen = np.sort(np.argsort(-away, kind="stable")[:_FEATURES])
        caption = f"The {_FEATURES} most unusual of {len(values)} features"
    rows = [(names[column], f"{values[column]:.4g}") for column in chosen]
    return table(caption, ("feature", "value"), rows, numbers={1}, class_="small")

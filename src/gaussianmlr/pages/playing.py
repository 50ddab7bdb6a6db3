"""`gmlr play`: digits on a canvas that people move, and what a model says of them."""

from __future__ import annotations

import base64
import contextlib
import io
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
from fastapi import FastAPI, Response
from pydantic import BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool

from gaussianmlr.data.digits import Digits
from gaussianmlr.data.recipes import Recipes, render
from gaussianmlr.data.settings import DIGIT_SIDE, Setting
from gaussianmlr.errors import DataError, shorten
from gaussianmlr.model import Model
from gaussianmlr.orders import densify, to_text
from gaussianmlr.pages.base import make_app, page
from gaussianmlr.pages.batching import Batcher
from gaussianmlr.prediction import Prediction

__all__ = ["SHIPPED", "playing_app"]

# The model of the cell gray-s_gmlr-strong_cpu_seed0 in results/cells, whose recipe is in its config.json.
SHIPPED = Path(__file__).parent / "gray-s"
LABELS = tuple("0123456789")
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


class Placed(BaseModel):
    """A digit on the canvas."""

    model_config = ConfigDict(extra="forbid")

    digit: int = Field(ge=0, le=9)
    x: int = Field(ge=0, description="Left edge in pixels.")
    y: int = Field(ge=0, description="Upper edge in pixels.")
    scale: float = Field(ge=0.5, le=6, allow_inf_nan=False, description="Times 28 pixels.")
    brightness: Share = 1.0
    hue: Share = 0.0
    saturation: Share = 0.8
    style: int = Field(0, ge=0, description="Which handwriting.")


class Scene(BaseModel):
    """A canvas, and how sure to be."""

    model_config = ConfigDict(extra="forbid")

    digits: list[Placed] = Field(max_length=10)
    confidence: float = Field(0.9, gt=0.5, lt=1)


def playing_app(model: Model, digits: Digits, token: str | None = None) -> FastAPI:
    """The page and what it asks for.

    Parameters
    ----------
    model : Model
        Of images, with the ten digits as labels, such as `gmlr train gray-s` makes.
    digits : Digits
        Whose handwriting is drawn.
    token : str, optional
        What requests must know.

    Examples
    --------
    >>> from gaussianmlr.data import load_digits
    >>> from gaussianmlr.model import build
    >>> from gaussianmlr.recipe import Recipe
    >>> inputs = {"kind": "table", "channels": 2}
    >>> recipe = Recipe(backbone="mlp")
    >>> model = Model(*build(recipe, 2, inputs), ("sky", "sea"), recipe, inputs)
    >>> playing_app(model, load_digits("test", "embedded"))
    Traceback (most recent call last):
        ...
    gaussianmlr.errors.DataError: expected a model of images with the labels 0 to 9, got
    Model(gmlr strong, mlp, 2 labels, table inputs)
    """
    setting = _setting(model)
    batcher: Batcher | None = None

    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        nonlocal batcher
        batcher = Batcher(model)
        blank = render(setting, Recipes.empty(1), digits)
        batcher.submit(torch.from_numpy(blank)).result()
        yield
        batcher.close()

    app = make_app("gmlr play", token=token, max_body=1 << 16, lifespan=lifespan)

    @app.get("/", include_in_schema=False)
    async def index() -> Response:
        return page("play.html")

    @app.get("/api/start")
    async def start() -> dict[str, Any]:
        by = "" if model.method.supervision == "strong" else ", weak"
        return {
            "model": f"{model.method.name}{by}, {model.recipe.backbone}",
            "canvas": setting.canvas,
            "side": DIGIT_SIDE,
            "colour": setting.colour,
            "largest": min(6.0, (setting.canvas - 3) / DIGIT_SIDE),
        }

    @app.post("/api/read")
    async def read(scene: Scene) -> dict[str, Any]:
        assert batcher is not None
        image, table = await run_in_threadpool(drawn, scene.digits, setting, digits)
        reading = await run_in_threadpool(batcher.submit(torch.from_numpy(image)).result)
        found = Prediction.from_reading(reading, model.labels, method=model.method.name)
        said = await run_in_threadpool(_said, found, scene.confidence)
        truth = {name: _true_order(getattr(table, name)) for name in ("scale", "brightness")}
        return {"image": _png(image[0]), "truth": truth, **said}

    return app


def drawn(placed: Sequence[Placed], setting: Setting, digits: Digits) -> tuple[Any, Recipes]:
    """An image [1, channels, canvas, canvas] with some digits on it, and its recipe."""
    table = Recipes.empty(1)
    for one in placed:
        of_class = digits.of_class(one.digit)
        side = int(DIGIT_SIDE * one.scale)
        if table.digit[0, one.digit] >= 0:
            raise DataError(f"the digit {one.digit} is there twice; expected each once")
        if max(one.x, one.y) + side > setting.canvas:
            raise DataError(f"the digit {one.digit} reaches over the edge of {setting.canvas} pixels")
        table.digit[0, one.digit] = of_class[one.style % len(of_class)]
        table.boxes[0, one.digit] = (one.x, one.y, side)
        for name in ("scale", "brightness", "hue", "saturation"):
            getattr(table, name)[0, one.digit] = getattr(one, name)
    return render(setting, table, digits), table


def _setting(model: Model) -> Setting:
    size = model.inputs.get("size", [0, 0])
    if model.inputs["kind"] != "image" or sorted(model.labels) != list(LABELS) or len(set(size)) != 1:
        raise DataError(f"expected a model of images with the labels 0 to 9, got {model!r}")
    channels = model.inputs["channels"]
    if channels not in (1, 3):
        raise DataError(f"expected a model of gray or colour images, got {shorten(channels)} channels")
    return Setting(name="play", factor="scale", scale=(0.5, 1.0), colour=channels == 3, canvas=size[0])


def _true_order(values: Any) -> str:
    present = np.where(np.isnan(values), 0.0, values + 1e-9)  # what is there counts, however dark
    return to_text(densify(present), LABELS)[0]


def _said(found: Prediction, confidence: float) -> dict[str, Any]:
    said: dict[str, Any] = {
        "labels": list(found.labels),
        "order": found.orders[0],
        "ranks": found.ranks[0].tolist(),
        "p_relevant": found.p_relevant[0].tolist(),
        "significance": found.scores[0].tolist(),
        "sigma": None,
    }
    if found.raw is not None:
        for name in ("significance", "sigma", "p_first", "p_above"):
            said[name] = getattr(found, name)[0].tolist()
        said["partial"] = found.partial_text(confidence)[0]
    return said


def _png(image: Any) -> str:
    from PIL import Image

    pixels = image[0] if len(image) == 1 else np.moveaxis(image, 0, -1)
    Image.fromarray(np.ascontiguousarray(pixels)).save(stream := io.BytesIO(), "PNG", compress_level=1)
    return "data:image/png;base64," + base64.b64encode(stream.getvalue()).decode()

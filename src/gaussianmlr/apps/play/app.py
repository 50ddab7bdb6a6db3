"""`gmlr play`: digits on a canvas that people move, a film of them, and the predictions of models."""

from __future__ import annotations

import asyncio
import base64
import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
from fastapi import FastAPI, Response
from pydantic import BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

from gaussianmlr.apps.play.film import MOST_MODELS, Shooting, film_probe, followed, sheet
from gaussianmlr.apps.serve.batches import Batcher
from gaussianmlr.apps.web.server import make_app, page
from gaussianmlr.data.ranked_mnist.digits import Digits
from gaussianmlr.data.ranked_mnist.drawing import Bytes, Recipes, render
from gaussianmlr.data.ranked_mnist.export import encode_png
from gaussianmlr.data.ranked_mnist.settings import DIGIT_SIDE, Setting
from gaussianmlr.errors import DataError, shorten
from gaussianmlr.methods import Reading
from gaussianmlr.model.model import Model
from gaussianmlr.model.prediction import Prediction
from gaussianmlr.orders import densify, to_text
from gaussianmlr.paper.tables import METHODS

__all__ = ["playing_app"]

_STATIC = Path(__file__).parent / "static"

LABELS = tuple("0123456789")
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
_AT_ONCE = 8  # frames of a film per batch; requests for the canvas are answered in between
_FILMS = 8  # being made or waiting
_SECONDS = 60.0  # to answer a request
_OF_SCORES = {
    "crpc": "Votes minus those of the virtual label",
    "lsep": "Scores above the learned thresholds",
}


class Placed(BaseModel):
    """A digit on the canvas."""

    model_config = ConfigDict(extra="forbid", strict=True)

    digit: int = Field(ge=0, le=9)
    x: int = Field(ge=0, description="Left edge in pixels.")
    y: int = Field(ge=0, description="Upper edge in pixels.")
    scale: float = Field(ge=0.5, le=6, allow_inf_nan=False, description="Times 28 pixels.")
    brightness: Share = 1.0
    hue: Share = 0.0
    saturation: Share = 0.8
    style: int = Field(0, ge=0, description="Which handwriting.")


class Scene(BaseModel):
    """A canvas, and the confidence of partial orders."""

    model_config = ConfigDict(extra="forbid", strict=True)

    digits: list[Placed] = Field(max_length=10)
    confidence: float = Field(0.9, gt=0.5, lt=1)
    models: list[int] | None = Field(
        None, min_length=1, max_length=MOST_MODELS, description="Models to ask; all by default."
    )


@dataclass
class _Player:
    """A model on the page: its title there, and the thread that runs it."""

    model: Model
    title: str
    detail: str
    batcher: Batcher | None = None

    def about(self) -> dict[str, str]:
        scores = _OF_SCORES.get(self.model.method.name, "Scores, whose threshold is zero")
        return {"title": self.title, "detail": self.detail, "scores": scores}

    def submit(self, images: Bytes) -> asyncio.Future[Reading]:
        assert self.batcher is not None
        return asyncio.wrap_future(self.batcher.submit(torch.from_numpy(images)))

    def predicted(self, readings: Sequence[Reading]) -> Prediction:
        """A prediction whose column d is the digit d, whatever the order of the model's labels."""
        order = [self.model.labels.index(label) for label in LABELS]
        columns = (None if part is None else part[:, order] for part in Reading.join(readings))
        reading = Reading(*columns)  # type: ignore[arg-type]  # scores and p_relevant are never None
        return Prediction.from_reading(reading, LABELS, method=self.model.method.name, jnd=self.model.jnd)


def playing_app(models: Mapping[str, Model], digits: Digits, token: str | None = None) -> FastAPI:
    """The application of `gmlr play`.

    Parameters
    ----------
    models : dict of Model by name
        One to four models of images, with the ten digits as labels, such as `gmlr train gray-s` makes; all of
        the same canvas, gray or colour. They are shown side by side.
    digits : Digits
        The digits to draw.
    token : str, optional
        Token that requests must send.

    Examples
    --------
    >>> from gaussianmlr.data import load_digits
    >>> from gaussianmlr.model.model import build
    >>> from gaussianmlr.model.recipe import Recipe
    >>> inputs = {"kind": "table", "channels": 2}
    >>> recipe = Recipe(backbone="mlp")
    >>> model = Model(*build(recipe, 2, inputs), ("sky", "sea"), recipe, inputs)
    >>> playing_app({"mine": model}, load_digits("test", "embedded"))
    Traceback (most recent call last):
        ...
    gaussianmlr.errors.DataError: mine: expected a model of images with the labels 0 to 9, got
    Model(gmlr strong, mlp, 2 labels, table inputs)
    """
    setting = _setting(models)
    players = _players(models)
    films = _Films(setting, digits)

    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        blank = render(setting, Recipes.empty(1), digits)
        for player in players:
            player.batcher = Batcher(player.model)
            await player.submit(blank)  # the first time is slow
        yield
        for player in players:
            assert player.batcher is not None
            player.batcher.close()

    app = make_app(
        "gmlr play",
        token=token,
        max_body=1 << 16,
        places=64,
        seconds=_SECONDS,
        broken=lambda: _broken(players),
        lifespan=lifespan,
        static=_STATIC,
    )

    @app.get("/", include_in_schema=False)
    async def index() -> Response:
        return page(_STATIC / "play.html")

    @app.get("/api/start")
    async def start() -> dict[str, Any]:
        return {
            "models": [player.about() for player in players],
            "canvas": setting.canvas,
            "side": DIGIT_SIDE,
            "colour": setting.colour,
            "largest": min(6.0, (setting.canvas - 3) / DIGIT_SIDE),
        }

    @app.post("/api/read")
    async def read(scene: Scene) -> dict[str, Any]:
        asked = _chosen(players, scene.models)
        image, table = await run_in_threadpool(drawn, scene.digits, setting, digits)
        readings = await asyncio.gather(*(player.submit(image) for player in asked))
        answers = [
            await run_in_threadpool(_said, player.predicted([reading]), scene.confidence)
            for player, reading in zip(asked, readings)
        ]
        truth = {name: _true_order(getattr(table, name)) for name in ("scale", "brightness")}
        return {"image": _png(image[0]), "truth": truth, "answers": answers}

    @app.post("/api/film")
    async def film(asked: Shooting) -> dict[str, Any]:
        return await films.make(asked, _chosen(players, asked.models))

    return app


def _broken(players: Sequence[_Player]) -> str | None:
    batchers = [player.batcher for player in players]
    if not all(one is not None and one.alive and not one.stuck(_SECONDS) for one in batchers):
        return f"a model's thread has ended, or has been at the same images for more than {_SECONDS:g} s"
    return None


class _Films:
    """Makes films one after the other; only a few may wait."""

    def __init__(self, setting: Setting, digits: Digits) -> None:
        self.setting, self.digits = setting, digits
        self._waiting, self._lock = 0, asyncio.Lock()

    async def make(self, asked: Shooting, players: Sequence[_Player]) -> dict[str, Any]:
        if self._waiting >= _FILMS:
            text = f"{self._waiting} films are being made; ask again"
            raise HTTPException(503, text, {"retry-after": "2"})
        self._waiting += 1
        try:
            async with self._lock:
                probe = await run_in_threadpool(film_probe, asked, self.setting, self.digits)
                images = await run_in_threadpool(lambda: probe[0])
                readings: list[Sequence[Reading]] = []
                for first in range(0, len(images), _AT_ONCE):
                    part = images[first : first + _AT_ONCE]
                    readings.append(await asyncio.gather(*(player.submit(part) for player in players)))
        finally:
            self._waiting -= 1
        answers = [player.predicted(parts) for player, parts in zip(players, zip(*readings))]
        shown = await run_in_threadpool(followed, probe, answers)
        return {"sheet": await run_in_threadpool(_png, sheet(images)), "seed": asked.seed, **shown}


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


def _setting(models: Mapping[str, Model]) -> Setting:
    """The canvas that all models share."""
    if not 1 <= len(models) <= MOST_MODELS:
        raise DataError(f"expected 1 to {MOST_MODELS} models to show side by side, got {len(models)}")
    canvases: dict[str, tuple[int, int]] = {}
    for name, model in models.items():
        size = model.inputs.get("size", [0, 0])
        if model.inputs["kind"] != "image" or sorted(model.labels) != list(LABELS) or len(set(size)) != 1:
            raise DataError(f"{name}: expected a model of images with the labels 0 to 9, got {model!r}")
        if (channels := model.inputs["channels"]) not in (1, 3):
            raise DataError(
                f"{name}: expected a model of gray or colour images, got {shorten(channels)} channels"
            )
        canvases[name] = channels, size[0]
    if len(set(canvases.values())) > 1:
        told = (
            f"{name} takes {'gray' if channels == 1 else 'colour'} images of {side} pixels"
            for name, (channels, side) in canvases.items()
        )
        raise DataError(f"expected models of one canvas to show side by side; {', '.join(told)}")
    channels, side = next(iter(canvases.values()))
    return Setting(name="play", factor="scale", scale=(0.5, 1.0), colour=channels == 3, canvas=side)


def _players(models: Mapping[str, Model]) -> list[_Player]:
    titles = [
        f"{METHODS.get(one.method.name, one.method.name)} {one.method.supervision}" for one in models.values()
    ]
    found = []
    for (name, model), title in zip(models.items(), titles):
        detail = f"{name}, {model.recipe.backbone}"
        if images := model.about.get("images"):
            detail += f", {images:,} images"
        found.append(_Player(model, title if titles.count(title) == 1 else f"{title} ({name})", detail))
    return found


def _chosen(players: Sequence[_Player], which: Sequence[int] | None) -> list[_Player]:
    if which is None:
        return list(players)
    if len(set(which)) != len(which) or not set(which) <= set(range(len(players))):
        raise DataError(
            f"models are {shorten(list(which))}; expected different ones of 0 to {len(players) - 1}"
        )
    return [players[one] for one in which]


def _true_order(values: Any) -> str:
    present = np.where(np.isnan(values), 0.0, values + 1e-9)  # present digits count, however dark
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
        said["scale"] = found.scale
        said["partial"] = found.partial_text(confidence)[0]
    return said


def _png(image: Any) -> str:
    return "data:image/png;base64," + base64.b64encode(encode_png(image)).decode()

"""Bars: what each method says of single images, with the threshold that it judges by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from gaussianmlr import orders
from gaussianmlr.data import RankedMNIST
from gaussianmlr.data.images import read_image
from gaussianmlr.methods import Method, make
from gaussianmlr.methods.crpc import votes_of
from gaussianmlr.normal import canonical
from gaussianmlr.paper.cells import PHOTOS, recipe_of
from gaussianmlr.paper.figures._studio import (
    INK,
    Floats,
    Studio,
    raw_outputs,
    say_not_trained,
    sheet,
    show_image,
)
from gaussianmlr.paper.photos import open_photos, read_outputs
from gaussianmlr.paper.plans import BARS, SIX
from gaussianmlr.paper.tables import METHODS
from gaussianmlr.plots import SignificanceDisplay
from gaussianmlr.plots._style import RED

__all__ = ["Bars", "bars_of", "draw"]

ABOUT = (
    "values: CRPC's votes, LSEP's scores f, GaussianMLR's mu (raw and canonical gauge). threshold: the votes "
    "of the virtual label, LSEP's learned threshold g of each label, zero. A label is relevant above it."
)


@dataclass(frozen=True)
class Bars:
    """What a method says of one image in its own quantity: values, thresholds, deviations [K]."""

    values: Floats
    thresholds: Floats
    deviations: Floats | None
    canonical: Floats
    order: str


def draw(studio: Studio) -> list[Path]:
    """One page a data set, and the numbers of all."""
    written, rows = [], []
    for dataset in BARS:
        found = _photos(studio, dataset) if dataset in PHOTOS else _canvases(studio, dataset)
        if found is None:
            rows += [
                {"dataset": dataset, "method": m, "supervision": s, "state": "not trained"} for m, s in SIX
            ]
            continue
        pictures, names, truth, labels, said = found
        for one in SIX:
            rows += _rows(dataset, one, said[one], names, truth)
        written.append(studio.save(_page(dataset, pictures, truth, labels, said), f"bars-{dataset}"))
    return [*written, *studio.save_numbers("bars", rows, ABOUT)]


Said = dict[tuple[str, str], list[Bars] | None]
Found = tuple[list[npt.NDArray[np.uint8]], list[str], list[str], tuple[str, ...], Said]


def bars_of(method: Method, outputs: dict[str, Tensor], labels: Sequence[str]) -> list[Bars]:
    """The quantity of a method and its threshold, image by image.

    Examples
    --------
    >>> sure = {"pair": torch.tensor([[9.0, 9.0, -9.0]])}  # a above b and above the virtual label
    >>> found = bars_of(make("crpc"), sure, ("a", "b"))[0]
    >>> found.values.round(2).tolist(), found.thresholds.round(2).tolist(), found.order
    ([2.0, 0.0], [1.0, 1.0], 'a')
    """
    reading = method.read(outputs)
    scores = reading.scores.double().numpy()
    texts = orders.to_text(orders.densify(scores), tuple(labels))
    gauged = scores
    deviations: Floats | None = None
    if method.name == "crpc":
        votes = votes_of(torch.sigmoid(outputs["pair"].double()), getattr(method, "vote", "correct")).numpy()
        values, thresholds = votes[:, :-1], np.repeat(votes[:, -1:], len(labels), 1)
    elif method.name == "lsep":
        values = outputs["score"].double().numpy()
        thresholds = outputs["threshold"].double().numpy()
    else:
        values, thresholds = scores, np.zeros_like(scores)
        if reading.mu is not None and reading.sigma is not None:
            deviations = reading.sigma.double().numpy()
            gauged = canonical(reading.mu.double(), reading.sigma.double()).mu.numpy()
    return [
        Bars(values[i], thresholds[i], None if deviations is None else deviations[i], gauged[i], texts[i])
        for i in range(len(scores))
    ]


def _canvases(studio: Studio, dataset: str) -> Found | None:
    models = {one: studio.model(dataset, *one) for one in SIX}
    if not any(models.values()):
        return None
    data = RankedMNIST(dataset, "test", digits=studio.digits())
    chosen = _varied(data.batch(range(40)).ranks, (4, 4, 7))
    batch = data.batch(chosen)
    said: Said = {}
    for one, model in models.items():
        if model is None:
            said[one] = None
            continue
        said[one] = bars_of(model.method, raw_outputs(model, batch.images), data.labels)
    names = [f"test image {index}" for index in chosen]
    return list(batch.images), names, data.texts(batch.ranks), data.labels, said


def _photos(studio: Studio, dataset: str) -> Found | None:
    cells = {one: studio.cell(dataset, *one) for one in SIX}
    landed = {
        one: cell
        for one, cell in cells.items()
        if list(studio.places.run(cell).glob("outputs-*.npz"))
        and (studio.places.cells / f"{cell.name}.json").is_file()
    }
    if not landed or getattr(studio.sources, dataset) is None:
        return None
    data = open_photos(next(iter(landed.values())), studio.sources)
    # Pictures that every method was measured on.
    where = {one: read_outputs(studio.places.run(cell)) for one, cell in landed.items()}
    common = sorted(set.intersection(*(set(kept.where.tolist()) for kept in where.values())))
    chosen = [common[index] for index in _varied(data.ranks[common], (3, 4, 5))]
    said: Said = dict.fromkeys(SIX)
    for one, kept in where.items():
        rows = [int(np.flatnonzero(kept.where == index)[0]) for index in chosen]
        outputs = {name: value[rows] for name, value in kept.outputs.items()}
        recipe = recipe_of(landed[one])
        said[one] = bars_of(make(recipe.method, **recipe.method_settings), outputs, data.labels)
    assert data.images is not None
    assert data.ids is not None
    pictures = [np.moveaxis(read_image(data.images[index], "RGB"), -1, 0) for index in chosen]
    texts = orders.to_text(data.ranks[chosen], data.labels)
    return pictures, [data.ids[index] for index in chosen], texts, data.labels, said


def _varied(ranks: npt.NDArray[np.int64], wanted: Sequence[int]) -> list[int]:
    """The first instances with about so many relevant labels, each once."""
    counts = (ranks > 0).sum(1)
    chosen: list[int] = []
    for count in wanted:
        left = [index for index in range(len(counts)) if index not in chosen]
        if left:
            chosen.append(min(left, key=lambda index: abs(int(counts[index]) - count)))
    return chosen


def _rows(
    dataset: str, method: tuple[str, str], said: list[Bars] | None, names: list[str], truth: list[str]
) -> list[dict[str, Any]]:
    head = {"dataset": dataset, "method": method[0], "supervision": method[1]}
    if said is None:
        return [{**head, "state": "not trained"}]
    return [
        {
            **head,
            "state": "trained",
            "image": name,
            "true": true,
            "predicted": one.order,
            "values": one.values.round(4).tolist(),
            "threshold": one.thresholds.round(4).tolist(),
            "canonical": one.canonical.round(4).tolist(),
        }
        for name, true, one in zip(names, truth, said)
    ]


def _page(
    dataset: str,
    pictures: list[npt.NDArray[np.uint8]],
    truth: list[str],
    labels: tuple[str, ...],
    said: Said,
) -> Any:
    figure, axes = sheet(len(pictures), 1 + len(SIX), (3.0 * (1 + len(SIX)), 3.1 * len(pictures)))
    for row, (picture, true) in enumerate(zip(pictures, truth)):
        show_image(axes[row, 0], picture)
        axes[row, 0].set_title(_broken(true), fontsize=9, color=INK)
        for column, one in enumerate(SIX, 1):
            panel, found = axes[row, column], said[one]
            if row == 0:
                panel.annotate(
                    f"{METHODS[one[0]]}, {one[1]}",
                    (0.5, 1.3),
                    xycoords="axes fraction",
                    ha="center",
                    fontsize=11,
                    weight="bold",
                    color=INK,
                )
            if found is None:
                say_not_trained(panel)
                continue
            _bars(panel, found[row], labels)
            right = found[row].order == true
            panel.set_title(_broken(found[row].order), fontsize=8, color=INK if right else RED, pad=15)
    figure.suptitle(
        f"{dataset}: votes (CRPC), scores (LSEP), mu with sigma (GaussianMLR); "
        "red: thresholds, and orders that are not the true one",
        fontsize=12,
        color=INK,
    )
    return figure


def _bars(axes: Any, found: Bars, labels: tuple[str, ...]) -> None:
    shared = bool((found.thresholds == found.thresholds[0]).all())
    display = SignificanceDisplay(
        found.values,
        labels,
        threshold=float(found.thresholds[0]) if shared else found.thresholds,
        spread=found.deviations,
        axis="",
    )
    display.plot(axes)
    axes.tick_params(labelsize=8)
    axes.locator_params(axis="x", nbins=5)


def _broken(order: str, width: int = 38) -> str:
    """A long order on several lines."""
    lines, line = [], ""
    for word in (order or "nothing").split(" "):
        if line and len(line) + len(word) > width:
            lines.append(line)
            line = ""
        line = f"{line} {word}" if line else word
    return "\n".join([*lines, line])

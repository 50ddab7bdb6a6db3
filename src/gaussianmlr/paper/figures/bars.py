"""Bars: what each method says of single images, with the threshold that it judges by."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gaussianmlr.data import RankedMNIST
from gaussianmlr.data.images import read_image
from gaussianmlr.paper.cells import PHOTOS, Cell
from gaussianmlr.paper.figures._studio import (
    INK,
    OTHER_DIGITS,
    One,
    Studio,
    say_why_empty,
    sheet,
    show_image,
)
from gaussianmlr.paper.photos import open_photos
from gaussianmlr.paper.plans import BARS, SIX
from gaussianmlr.paper.singles import Bars
from gaussianmlr.paper.tables import METHODS
from gaussianmlr.plots import SignificanceDisplay
from gaussianmlr.plots._style import RED

__all__ = ["draw"]

ABOUT = (
    "values: CRPC's votes, LSEP's scores f, GaussianMLR's mu (raw and canonical gauge) and its sigma. "
    "thresholds: the votes of the virtual label, LSEP's learned threshold g of each label, zero. A label is "
    "relevant above it."
)


def draw(studio: Studio) -> list[Path]:
    """One page a data set, and the numbers of all."""
    written, rows = [], []
    for dataset in BARS:
        probes = studio.probes(dataset, "bars")
        heads = {one: studio.head(dataset, one, probe) for one, probe in probes.items()}
        for one, head in heads.items():
            rows += [head | said for said in probes[one]["images"]] if probes[one] else [head]
        if any(probes.values()):
            states = {one: head["state"] for one, head in heads.items()}
            written.append(studio.save(_page(studio, dataset, probes, states), f"bars-{dataset}"))
    return [*written, *studio.save_numbers("bars", rows, ABOUT)]


def _seen(studio: Studio, dataset: str, names: list[Any]) -> tuple[list[npt.NDArray[np.uint8] | None], str]:
    """The images, and why an image cannot be shown."""
    if dataset not in PHOTOS:
        data = RankedMNIST(dataset, "test", digits=studio.digits)
        same = studio.same_digits(dataset)
        return list(data.batch(names).images) if same else [None] * len(names), OTHER_DIGITS
    if getattr(studio.sources, dataset) is None:
        return [None] * len(names), f"see --{dataset}"
    photos = open_photos(Cell(dataset, "gmlr", "strong", studio.preset), studio.sources)
    assert photos.images is not None
    assert photos.ids is not None
    files = dict(zip(photos.ids, photos.images))
    return [np.moveaxis(read_image(files[name], "RGB"), -1, 0) for name in names], ""


def _page(studio: Studio, dataset: str, probes: dict[One, Any], states: dict[One, str]) -> Any:
    first = next(probe for probe in probes.values() if probe)
    labels = tuple(first["labels"])
    pictures, why = _seen(studio, dataset, [said["image"] for said in first["images"]])
    figure, axes = sheet(len(pictures), 1 + len(SIX), (3.0 * (1 + len(SIX)), 3.1 * len(pictures)))
    for row, (picture, true) in enumerate(zip(pictures, (said["true"] for said in first["images"]))):
        if picture is None:
            say_why_empty(axes[row, 0], why)
        else:
            show_image(axes[row, 0], picture)
        axes[row, 0].set_title(_broken(true), fontsize=9, color=INK)
        for column, (one, probe) in enumerate(probes.items(), 1):
            panel = axes[row, column]
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
            if probe is None:
                say_why_empty(panel, states[one])
                continue
            found = Bars.from_dict(probe["images"][row])
            _bars(panel, found, labels)
            panel.set_title(
                _broken(found.order), fontsize=8, color=INK if found.order == true else RED, pad=15
            )
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

"""Bars: predictions for single images, with the threshold of each method."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gaussianmlr.data import RankedMNIST
from gaussianmlr.data.readers.images import read_image
from gaussianmlr.paper.cells import PHOTOS
from gaussianmlr.paper.figures.shared import (
    INK,
    NOT_THERE,
    OTHER_DIGITS,
    One,
    Studio,
    heading,
    say_why_empty,
    sheet,
    show_image,
)
from gaussianmlr.paper.plans import BARS
from gaussianmlr.paper.singles import Bars
from gaussianmlr.paper.tables import METHODS
from gaussianmlr.plots import SignificanceDisplay
from gaussianmlr.plots._style import RED

__all__ = ["draw"]

ABOUT = (
    "values: CRPC's votes, LSEP's scores f, GaussianMLR's mu (raw and canonical gauge) and its sigma. "
    "thresholds: the votes of the virtual label, LSEP's learned threshold g of each label, zero. A label is "
    "relevant above it. jnd: mu on the scale of just noticeable differences, of models that have it."
)


def draw(studio: Studio) -> list[Path]:
    """One page per data set, and the numbers of all."""
    written, rows = [], []
    for dataset in BARS:
        probes = studio.probes(dataset, "bars")
        for one, probe in probes.items():
            head = studio.row(dataset, one, probe, lambda probe: {"labels": probe["labels"]})
            rows += [head | row for row in (probe["images"] if probe else [{}])]
        if any(probes.values()):
            written.append(studio.save(_page(studio, dataset, probes), f"bars-{dataset}"))
    return [*written, *studio.save_numbers("bars", rows, ABOUT)]


Seen = tuple[npt.NDArray[np.uint8] | None, str]


def _seen(studio: Studio, dataset: str, one: One, names: list[Any]) -> list[Seen]:
    """Images a cell was measured on, or why they cannot be shown."""
    if dataset not in PHOTOS:
        if not studio.same_digits(dataset, one):
            return [(None, OTHER_DIGITS)] * len(names)
        return [
            (image, "") for image in RankedMNIST(dataset, "test", digits=studio.digits).batch(names).images
        ]
    files = studio.files(dataset)
    if not files:
        return [(None, f"see --{dataset}")] * len(names)
    return [_photo(files[name]) if name in files else (None, NOT_THERE) for name in names]


def _photo(file: Path) -> Seen:
    return np.moveaxis(read_image(file, "RGB"), -1, 0), ""


def _page(studio: Studio, dataset: str, probes: dict[One, Any]) -> Any:
    first, leading = next((one, probe) for one, probe in probes.items() if probe)
    count, labels = len(leading["images"]), tuple(leading["labels"])
    # Beside the raw values those on the scale of just noticeable differences, where a model has it.
    columns = [(one, False) for one in probes]
    columns += [(one, True) for one, probe in probes.items() if probe and "jnd" in probe["images"][0]]
    figure, axes = sheet(count, 1 + len(columns), (3.0 * (1 + len(columns)), 3.1 * count))
    for column, ((method, supervision), noticed) in enumerate(columns, 1):
        style: Any = {"ha": "center", "fontsize": 11, "weight": "bold", "color": INK}
        name = f"{METHODS[method]}, {supervision}" + (",\njust noticeable differences" if noticed else "")
        axes[0, column].annotate(name, (0.5, 1.3), xycoords="axes fraction", **style)
    seen = _seen(studio, dataset, first, [shown["image"] for shown in leading["images"]])
    for row, (shown, (picture, why)) in enumerate(zip(leading["images"], seen)):
        if picture is None:
            say_why_empty(axes[row, 0], why)
        else:
            show_image(axes[row, 0], picture)
        axes[row, 0].set_title(_broken(shown["true"]), fontsize=9, color=INK)
        for panel, (one, noticed) in zip(axes[row, 1:], columns):
            probe = probes[one]
            alike = probe and studio.digits_of(dataset, one) == studio.digits_of(dataset, first)
            said = _said(probe, shown) if alike else None
            if said is None:
                say_why_empty(panel, studio.missing(dataset, one) if probe is None else "another image")
            else:
                palette = "safe" if studio.safe_colours else "paper"
                _bars(panel, noticeable(said) if noticed else said, labels, shown["true"], palette)
    about = "votes (CRPC), scores (LSEP), mu with sigma (GaussianMLR)"
    marks = "red: thresholds" if studio.safe_colours else "green: relevant, red: not, black: thresholds"
    heading(figure, f"{dataset}: {about}; {marks}; titles in red: orders that are not the true one", 12)
    return figure


def noticeable(said: Bars) -> Bars:
    """The prediction with its values on the scale of just noticeable differences."""
    assert said.jnd is not None
    return replace(said, values=said.jnd, deviations=said.jnd_deviations)


def _said(probe: Any, shown: dict[str, Any]) -> Bars | None:
    """The prediction for an image; None if the method was measured on other images."""
    for one in probe["images"]:
        if one["image"] == shown["image"]:
            return Bars.from_dict(one)
    return None


def _bars(axes: Any, found: Bars, labels: tuple[str, ...], true: str, palette: str) -> None:
    shared = bool((found.thresholds == found.thresholds[0]).all())
    display = SignificanceDisplay(
        found.values,
        labels,
        threshold=float(found.thresholds[0]) if shared else found.thresholds,
        spread=found.deviations,
        axis="",
        palette=palette,
    )
    display.plot(axes)
    axes.tick_params(labelsize=8)
    axes.locator_params(axis="x", nbins=5)
    axes.set_title(
        _broken(found.order), fontsize=8, color=INK if found.order == true else RED, pad=15 if shared else 20
    )


def _broken(order: str, width: int = 30) -> str:
    """A long order on several lines."""
    lines, line = [], ""
    for word in (order or "nothing").split(" "):
        if line and len(line) + len(word) > width:
            lines.append(line)
            line = ""
        line = f"{line} {word}" if line else word
    return "\n".join([*lines, line])

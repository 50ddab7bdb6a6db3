"""Shared parts of the figures: probes of cells, style, files of numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from gaussianmlr._utils.extras import require
from gaussianmlr._utils.files import aside, write_text
from gaussianmlr._utils.strict_json import dumps
from gaussianmlr._utils.tables import csv_text
from gaussianmlr.data.ranked_mnist.digits import Digits, describe_digits, load_digits
from gaussianmlr.model.presets import Preset
from gaussianmlr.paper.cells import Cell
from gaussianmlr.paper.photos import open_photos
from gaussianmlr.paper.places import Sources
from gaussianmlr.paper.plans import SIX
from gaussianmlr.plots._style import BLUE, GREEN, ORANGE, RED, bare

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = (RED, BLUE, GREEN, ORANGE)  # of the places of a probe
INK = "#22223b"
NOT_RUN, NOT_PROBED, MEASURED = "not run", "not probed", "measured"
OTHER_DIGITS = "drawn of other digits:\nsee --digits"
NOT_THERE = "not in the folder"

One = tuple[str, str]  # a method and its supervision


@dataclass(frozen=True)
class Studio:
    """Access to the probes of cells, digits and pictures, and the folder of the figures."""

    landed: Mapping[Cell, Mapping[str, Any]]
    preset: Preset
    folder: Path
    sources: Sources
    safe_colours: bool = False

    @property
    def small(self) -> bool:
        """Smoke preset: few samples."""
        return self.preset == "smoke"

    @cached_property
    def digits(self) -> Digits:
        """Test digits."""
        return load_digits("test", self.sources.digits)

    def probe(self, dataset: str, method: str, supervision: str, name: str) -> Any:
        """A probe of the preset's cell with seed 0, or None."""
        facts = self.landed.get(Cell(dataset, method, supervision, self.preset), {})
        return facts.get("probes", {}).get(name) or None

    def probes(self, dataset: str, name: str, methods: Iterable[One] = SIX) -> dict[One, Any]:
        """A probe of several methods."""
        return {one: self.probe(dataset, *one, name) for one in methods}

    def row(
        self, dataset: str, one: One, probe: Any, numbers: Callable[[Any], Any] = lambda probe: {}
    ) -> dict[str, Any]:
        """A row of numbers: the cell, whether it was measured, and the numbers of its probe if it was."""
        state = MEASURED if probe is not None else self.missing(dataset, one)
        head = {"dataset": dataset, "method": one[0], "supervision": one[1], "state": state}
        return head if probe is None else head | numbers(probe)

    def missing(self, dataset: str, one: One) -> str:
        """Why a cell has no probe."""
        return NOT_PROBED if Cell(dataset, *one, self.preset) in self.landed else NOT_RUN

    def digits_of(self, dataset: str, one: One) -> str | None:
        """MD5 of the digits a cell was measured on."""
        digits = self.landed[Cell(dataset, *one, self.preset)].get("data", {}).get("digits", {})
        found: str | None = digits.get("test", {}).get("md5")
        return found

    @cached_property
    def _at_hand(self) -> str:
        found: str = describe_digits(self.digits, "test")["md5"]
        return found

    def same_digits(self, dataset: str, one: One) -> bool:
        """Whether a cell was measured on the available digits."""
        return self.digits_of(dataset, one) == self._at_hand

    def files(self, dataset: str) -> dict[str, Path]:
        """Pictures by id; empty without a folder."""
        if self.sources.of(dataset) is None:
            return {}
        data = open_photos(Cell(dataset, *SIX[0], self.preset), self.sources)
        assert data.ids is not None
        assert data.images is not None
        return dict(zip(data.ids, data.images))

    def save(self, figure: Figure, name: str) -> Path:
        """Write a picture."""
        file = self.folder / f"{name}-{self.preset}.png"
        with aside(file) as part:
            figure.savefig(part, dpi=110, format="png", facecolor="white")
        return file

    def save_numbers(self, name: str, rows: Sequence[dict[str, Any]], about: str) -> list[Path]:
        """Write the numbers of a figure as JSON and CSV."""
        base = self.folder / f"{name}-{self.preset}"
        text = dumps({"about": about, "preset": self.preset, "rows": rows}, indent=2) + "\n"
        write_text(base.with_suffix(".json"), text)
        head = list(dict.fromkeys(key for row in rows for key in row))
        table = csv_text(head, ([row.get(key, "") for key in head] for row in rows))
        write_text(base.with_suffix(".csv"), table)
        return [base.with_suffix(".json"), base.with_suffix(".csv")]


def sheet(rows: int, columns: int, size: tuple[float, float], **options: Any) -> tuple[Figure, Any]:
    """A page with axes [rows, columns]."""
    require("a figure", "matplotlib")
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False, **options)


def heading(figure: Any, text: str, size: int = 13) -> None:
    """The title of a page."""
    figure.suptitle(text, fontsize=size, color=INK)


def quiet(axes: Axes) -> None:
    """Fewer lines around a plot."""
    bare(axes)
    axes.tick_params(labelsize=8)


def show_image(axes: Axes, image: npt.NDArray[np.uint8]) -> None:
    """A picture [channels, height, width] without ticks."""
    axes.set_xticks([])
    axes.set_yticks([])
    if len(image) == 1:
        axes.imshow(image[0], cmap="gray", vmin=0, vmax=255)
    else:
        axes.imshow(np.moveaxis(image, 0, -1))


def say_why_empty(axes: Axes, why: str) -> None:
    """Empty axes with the reason."""
    # Ticks may be shared with other axes, so they are only hidden.
    axes.tick_params(left=False, bottom=False, labelleft=False, labelbottom=False)
    axes.spines[:].set_color("#dddddd")
    axes.text(0.5, 0.5, why, transform=axes.transAxes, ha="center", va="center", color="#999999")


def legend_of(figure: Figure, names: Iterable[str], colours: Sequence[str] = COLOURS) -> None:
    """One legend for the page, one colour per name."""
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], color=colour, lw=2.5, label=name) for colour, name in zip(colours, names)]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), frameon=False, fontsize=10)

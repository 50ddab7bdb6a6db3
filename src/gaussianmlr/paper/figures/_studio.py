"""What figures share: the probes of cells, style, numbers beside the picture."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from gaussianmlr.data.digits import Digits, load_digits
from gaussianmlr.files import aside, write_text
from gaussianmlr.paper.canvas import describe_digits
from gaussianmlr.paper.cells import Cell
from gaussianmlr.paper.photos import open_photos
from gaussianmlr.paper.plans import SIX
from gaussianmlr.paper.running import Sources
from gaussianmlr.plots._style import BLUE, GREEN, ORANGE, RED, bare
from gaussianmlr.presets import Preset

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
    """Where figures find the probes of cells and what is seen on them, and where they put their files."""

    landed: Mapping[Cell, Mapping[str, Any]]
    preset: Preset
    folder: Path
    sources: Sources

    @property
    def small(self) -> bool:
        """Whether a glance is enough."""
        return self.preset == "smoke"

    @cached_property
    def digits(self) -> Digits:
        """Test digits."""
        return load_digits("test", self.sources.digits)

    def probe(self, dataset: str, method: str, supervision: str, name: str) -> Any:
        """A probe of the preset's cell with seed 0; none where there is none."""
        facts = self.landed.get(Cell(dataset, method, supervision, self.preset), {})
        return facts.get("probes", {}).get(name) or None

    def probes(self, dataset: str, name: str, methods: Iterable[One] = SIX) -> dict[One, Any]:
        """A probe of several methods."""
        return {one: self.probe(dataset, *one, name) for one in methods}

    def head(self, dataset: str, one: One, probe: Any) -> dict[str, Any]:
        """How a row of numbers begins: which cell, and whether it was measured."""
        there = Cell(dataset, *one, self.preset) in self.landed
        state = MEASURED if probe is not None else NOT_PROBED if there else NOT_RUN
        return {"dataset": dataset, "method": one[0], "supervision": one[1], "state": state}

    def digits_of(self, dataset: str, one: One) -> str | None:
        """The MD5 of the digits that a cell was measured on."""
        digits = self.landed[Cell(dataset, *one, self.preset)].get("data", {}).get("digits", {})
        found: str | None = digits.get("test", {}).get("md5")
        return found

    @cached_property
    def _at_hand(self) -> str:
        found: str = describe_digits(self.digits, "test")["md5"]
        return found

    def same_digits(self, dataset: str, one: One) -> bool:
        """Whether a cell was measured on the digits that are at hand."""
        return self.digits_of(dataset, one) == self._at_hand

    def files(self, dataset: str) -> dict[str, Path]:
        """Pictures by their ids; none where no folder was given."""
        if getattr(self.sources, dataset) is None:
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
        """Write the numbers beside a picture, as JSON and as CSV."""
        base = self.folder / f"{name}-{self.preset}"
        text = json.dumps({"about": about, "preset": self.preset, "rows": rows}, indent=2) + "\n"
        write_text(base.with_suffix(".json"), text)
        table = io.StringIO()
        writer = csv.DictWriter(
            table, list(dict.fromkeys(key for row in rows for key in row)), lineterminator="\n"
        )
        writer.writeheader()
        writer.writerows(rows)
        write_text(base.with_suffix(".csv"), table.getvalue())
        return [base.with_suffix(".json"), base.with_suffix(".csv")]


def sheet(rows: int, columns: int, size: tuple[float, float], **options: Any) -> tuple[Figure, Any]:
    """A page with axes [rows, columns]."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False, **options)


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
    """An empty place, and why."""
    # Ticks may be shared with places that need them.
    axes.tick_params(left=False, bottom=False, labelleft=False, labelbottom=False)
    axes.spines[:].set_color("#dddddd")
    axes.text(0.5, 0.5, why, transform=axes.transAxes, ha="center", va="center", color="#999999")


def legend_of(figure: Figure, names: Iterable[str], colours: Sequence[str] = COLOURS) -> None:
    """One legend for the page, a colour a name."""
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], color=colour, lw=2.5, label=name) for colour, name in zip(colours, names)]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), frameon=False, fontsize=10)

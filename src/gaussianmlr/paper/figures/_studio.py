"""What figures share: trained models read on probe images, kept beside the model; style; numbers."""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from gaussianmlr.batches import as_input, as_tensor
from gaussianmlr.data.digits import Digits, load_digits
from gaussianmlr.data.probes import Probe
from gaussianmlr.files import aside, write_text
from gaussianmlr.methods import Method
from gaussianmlr.model import Model
from gaussianmlr.normal import canonical
from gaussianmlr.paper.cells import Cell
from gaussianmlr.paper.running import Places, Sources, trained_model
from gaussianmlr.plots._style import BLUE, GREEN, ORANGE, RED, bare
from gaussianmlr.presets import Preset

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Floats = npt.NDArray[np.float64]
GAUGES = ("raw", "canonical")
COLOURS = (RED, BLUE, GREEN, ORANGE)  # of the places of a probe
INK = "#22223b"
NOT_TRAINED = "not trained"


@dataclass(frozen=True)
class Studio:
    """Where figures find models and pictures, and where they put their files."""

    preset: Preset
    places: Places
    sources: Sources

    @property
    def folder(self) -> Path:
        """Where figures go."""
        return self.places.results / "figures"

    @property
    def small(self) -> bool:
        """Whether a glance is enough."""
        return self.preset == "smoke"

    def digits(self) -> Digits:
        """Test digits."""
        return load_digits("test", self.sources.digits)

    def cell(self, dataset: str, method: str, supervision: str) -> Cell:
        """The cell whose model is drawn: the preset's, seed 0."""
        return Cell(dataset, method, supervision, self.preset)

    def model(self, dataset: str, method: str, supervision: str) -> Model | None:
        """Its model, or none where it was not trained here."""
        return trained_model(self.cell(dataset, method, supervision), self.places)

    def track(self, dataset: str, method: str, supervision: str, probe: Probe) -> Track | None:
        """What its model says of the digits of a probe; read once, then kept in the run's folder."""
        folder = self.places.run(self.cell(dataset, method, supervision))
        file = folder / f"probe-{_digest(probe)}.npz"
        weights = folder / "model" / "model.safetensors"
        if file.exists() and file.stat().st_mtime >= weights.stat().st_mtime:
            with np.load(file, allow_pickle=False) as kept:
                return Track(**{name: kept[name] for name in kept.files})
        model = self.model(dataset, method, supervision)
        if model is None:
            return None
        track = follow(model, probe)
        with aside(file) as part, part.open("wb") as stream:
            np.savez(stream, **{name: part for name, part in vars(track).items() if part is not None})
        return track

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


@dataclass(frozen=True)
class Track:
    """What a model says of the digits of a probe: arrays [sequences, frames, places]."""

    raw: Floats
    canonical: Floats
    thresholds: Floats | None = None  # of the raw scores, where they are not zero
    sigma_raw: Floats | None = None
    sigma_canonical: Floats | None = None

    def gauge(self, name: str) -> Floats:
        """Scores in a gauge."""
        found: Floats = getattr(self, name)
        return found

    @property
    def shown(self) -> Floats:
        """What is drawn: the canonical gauge, or raw scores where they have thresholds of their own."""
        return self.canonical if self.thresholds is None else self.raw


def follow(model: Model, probe: Probe) -> Track:
    """Read every sequence of a probe and pick the digits that stand in it."""
    found: dict[str, list[Floats]] = {}
    for images, labels in zip(probe, probe.labels):
        for name, values in in_gauges(model, images).items():
            found.setdefault(name, []).append(values[:, labels])
    return Track(**{name: np.stack(parts) for name, parts in found.items()})


def in_gauges(model: Model, images: Any) -> dict[str, Floats]:
    """What a model says of images: arrays [N, K], named as in `Track`."""
    return gauges_of(model.method, raw_outputs(model, images))


def gauges_of(method: Method, outputs: Mapping[str, Tensor]) -> dict[str, Floats]:
    """What a method says by its outputs: arrays [N, K], named as in `Track`.

    Raw are the numbers that the network learns to give: mu, votes minus the virtual label's, LSEP's f. The
    canonical gauge frees mu from the instance's scale, and f from its thresholds.
    """
    reading = method.read(outputs)
    scores = reading.scores.double().numpy()
    if {"score", "threshold"} <= set(outputs):
        raw, thresholds = (outputs[name].double().numpy() for name in ("score", "threshold"))
        return {"raw": raw, "canonical": scores, "thresholds": thresholds}
    if reading.mu is None or reading.sigma is None:
        return {"raw": scores, "canonical": scores}
    mu, sigma = canonical(reading.mu.double(), reading.sigma.double())
    return {
        "raw": scores,
        "canonical": mu.numpy(),
        "sigma_raw": reading.sigma.double().numpy(),
        "sigma_canonical": sigma.numpy(),
    }


@torch.no_grad()
def raw_outputs(model: Model, images: Any) -> dict[str, Tensor]:
    """The outputs of a model's network, by name."""
    model.network.cpu().eval()
    outputs: dict[str, Tensor] = model.network(as_input(as_tensor(images)))
    return {name: value.float() for name, value in outputs.items()}


def _digest(probe: Probe) -> str:
    digest = hashlib.sha256(probe.digits.images.tobytes())
    for name, column in sorted(vars(probe.recipes).items()):
        digest.update(name.encode() + np.ascontiguousarray(column).tobytes())
    return digest.hexdigest()[:16]


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


def say_not_trained(axes: Axes) -> None:
    """An empty place, and why."""
    axes.set_xticks([])
    axes.set_yticks([])
    axes.spines[:].set_color("#dddddd")
    axes.text(0.5, 0.5, NOT_TRAINED, transform=axes.transAxes, ha="center", va="center", color="#999999")


def legend_of(figure: Figure, names: Iterable[str], colours: Sequence[str] = COLOURS) -> None:
    """One legend for the page, a colour a name."""
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], color=colour, lw=2.5, label=name) for colour, name in zip(colours, names)]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), frameon=False, fontsize=10)

"""Extracted significance: pictures sorted by the predicted significance of a label."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gaussianmlr.data.readers.images import read_image
from gaussianmlr.paper.figures.shared import (
    COLOURS,
    INK,
    NOT_THERE,
    One,
    Studio,
    heading,
    say_why_empty,
    sheet,
)
from gaussianmlr.paper.plans import SCENES
from gaussianmlr.paper.strips import LABELS, SHOWN
from gaussianmlr.paper.tables import METHODS

__all__ = ["draw"]

ABOUT = (
    "Pictures that the network was not trained on, at equal steps of the score of a label from its least to "
    "its largest. monotonicity and linearity: Spearman's and Pearson's correlation, over all pictures, of "
    "the score with the mean rank that people gave the label (0: irrelevant). raw and canonical: the gauge."
)


def draw(studio: Studio) -> list[Path]:
    """One page per label with one strip per method, and the numbers; without pictures, only the numbers."""
    written, rows = [], []
    for dataset in SCENES:
        probes = studio.probes(dataset, "extracted")
        files = studio.files(dataset)
        for label in LABELS:
            strips = {one: (probe or {}).get(label) for one, probe in probes.items()}
            rows += [
                studio.row(dataset, one, strip) | {"label": label, **(strip or {})}
                for one, strip in strips.items()
            ]
            if files and any(strips.values()):
                name = f"extracted-{label}" if dataset == "nsid" else f"extracted-{dataset}-{label}"
                written.append(studio.save(_page(studio, dataset, label, files, strips), name))
    return [*written, *studio.save_numbers("extracted", rows, ABOUT)]


def _page(studio: Studio, dataset: str, label: str, files: dict[str, Path], strips: dict[One, Any]) -> Any:
    figure, axes = sheet(len(strips), SHOWN, (15, 1.75 * len(strips) + 0.8))
    for row, ((method, supervision), strip) in enumerate(strips.items()):
        name = f"{METHODS[method]}\n{supervision}"
        axes[row, 0].set_ylabel(name, fontsize=10, rotation=0, ha="right", va="center", color=INK)
        for column in range(SHOWN):
            panel = axes[row, column]
            if strip is None:
                say_why_empty(panel, studio.missing(dataset, (method, supervision)))
                continue
            if column >= len(strip["ids"]):
                panel.set_visible(False)
                continue
            people, file = strip["people"][column], files.get(strip["ids"][column])
            panel.set_xticks([])
            panel.set_yticks([])
            if file is None:
                say_why_empty(panel, NOT_THERE)
            else:
                panel.imshow(_thumbnail(file))
            panel.spines[:].set_color(COLOURS[2] if people > 0 else "#cccccc")
            panel.spines[:].set_linewidth(2)
            panel.set_title(f"{strip['scores'][column]:.2f}   ({people:.1f})", fontsize=8)
    about = "pictures at equal steps of the score, least to most significant"
    heading(
        figure, f"{dataset}, {label}: {about} (in brackets: mean rank by people; green frame: above 0)", 12
    )
    return figure


def _thumbnail(file: Path) -> npt.NDArray[np.uint8]:
    from PIL import Image

    pixels = Image.fromarray(read_image(file, "RGB"))
    return np.asarray(pixels.resize((144, 108)))

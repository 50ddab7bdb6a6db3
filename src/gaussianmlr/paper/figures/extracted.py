"""Extracted significance: pictures in the order of the significance that a method finds in them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gaussianmlr.data.images import read_image
from gaussianmlr.paper.figures._studio import COLOURS, INK, NOT_THERE, One, Studio, say_why_empty, sheet
from gaussianmlr.paper.strips import LABELS, SHOWN
from gaussianmlr.paper.tables import METHODS

__all__ = ["draw"]

ABOUT = (
    "Pictures that the network was not trained on, at equal steps of the score of a label from its least to "
    "its largest. monotonicity and linearity: Spearman's and Pearson's correlation, over all pictures, of "
    "the score with the mean rank that people gave the label (0: irrelevant). raw and canonical: the gauge."
)


def draw(studio: Studio) -> list[Path]:
    """One page a label with a strip a method, and the numbers; only the latter without pictures."""
    written, rows = [], []
    probes = studio.probes("nsid", "extracted")
    files = studio.files("nsid")
    for label in LABELS:
        strips = {one: (probe or {}).get(label) for one, probe in probes.items()}
        found = {one: studio.head("nsid", one, strip) for one, strip in strips.items()}
        rows += [row | {"label": label, **(strips[one] or {})} for one, row in found.items()]
        if files and any(strips.values()):
            states = {one: row["state"] for one, row in found.items()}
            written.append(studio.save(_page(label, files, strips, states), f"extracted-{label}"))
    return [*written, *studio.save_numbers("extracted", rows, ABOUT)]


def _page(label: str, files: dict[str, Path], strips: dict[One, Any], states: dict[One, str]) -> Any:
    figure, axes = sheet(len(strips), SHOWN, (15, 1.75 * len(strips) + 0.8))
    for row, ((method, supervision), strip) in enumerate(strips.items()):
        name = f"{METHODS[method]}\n{supervision}"
        axes[row, 0].set_ylabel(name, fontsize=10, rotation=0, ha="right", va="center", color=INK)
        for column in range(SHOWN):
            panel = axes[row, column]
            if strip is None:
                say_why_empty(panel, states[method, supervision])
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
    figure.suptitle(
        f"{label}: pictures at equal steps of the score, least to most significant "
        "(in brackets: mean rank by people; green frame: above 0)",
        fontsize=12,
        color=INK,
    )
    return figure


def _thumbnail(file: Path) -> npt.NDArray[np.uint8]:
    from PIL import Image

    pixels = Image.fromarray(read_image(file, "RGB"))
    return np.asarray(pixels.resize((144, 108)))

"""Sample sheets: the family of sets, and small change."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gaussianmlr._utils.files import aside
from gaussianmlr.data import SETTINGS, RankedMNIST, contact_sheet
from gaussianmlr.paper.figures.shared import Studio
from gaussianmlr.paper.plans import SMALL

__all__ = ["draw"]

ABOUT = "The true order, scale and brightness of every digit on the sheets, image by image."
COLUMNS, ROWS = 4, 2


def draw(studio: Studio) -> list[Path]:
    """Two sheets, and the true orders of their images."""
    digits = studio.digits
    family = [name for name in SETTINGS if name != SMALL]
    written = []
    for title, names, rows in (("family", family, 1), ("small-change", SMALL, ROWS)):
        file = studio.folder / f"samples-{title}-{studio.preset}.png"
        with aside(file) as part:
            contact_sheet(names, rows=rows, columns=COLUMNS, digits=digits).save(part, "PNG")
        written.append(file)
    rows_of = {**dict.fromkeys(family, 1), SMALL: ROWS}
    numbers = [row for name, rows in rows_of.items() for row in _truth(name, rows * COLUMNS, digits)]
    return [*written, *studio.save_numbers("samples", numbers, ABOUT)]


def _truth(name: str, count: int, digits: Any) -> list[dict[str, Any]]:
    data = RankedMNIST(name, "test", digits=digits)
    batch = data.batch(range(count))
    found = []
    for number, order in enumerate(data.texts(batch.ranks)):
        there = [digit for digit in range(10) if batch.ranks[number, digit] > 0]
        scale, brightness = (
            {str(digit): round(float(part[number, digit]), 4) for digit in there}
            for part in (batch.scale, batch.brightness)
        )
        row = {"dataset": name, "image": number, "order": order}
        found.append({**row, "scale": scale, "brightness": brightness})
    return found

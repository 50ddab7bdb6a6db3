"""Displays as SVG that lives in a page: in its colours, light or dark, with text that stays text."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable
from typing import Any

from gaussianmlr.plots._style import BLACK, BLUE, GRAY, GREEN, ORANGE, PURPLE, RED, SKY
from gaussianmlr.reporting.html import Html, element

__all__ = ["drawn"]

# Colours of the displays by the names they have in report.css, where the dark page has lighter ones.
_NAMES = {
    BLUE: "blue", RED: "red", GREEN: "green", PURPLE: "purple", ORANGE: "orange", SKY: "sky", BLACK: "ink",
    GRAY: "gray", "#ffffff": "card", "#e6e6e6": "grid", "#cccccc": "grid",
}  # fmt: skip
_COLOURS = {colour.lower(): f"var(--{name})" for colour, name in _NAMES.items()}
_SETTINGS: Any = {
    "svg.fonttype": "none",
    "text.parse_math": False,  # labels may hold dollars
    "font.size": 10.0,
    "axes.linewidth": 0.8,
    "axes.edgecolor": GRAY,
    "savefig.transparent": True,
}


def drawn(name: str, words: str, size: tuple[float, float], plot: Callable[[Any], Any]) -> Html:
    """What `plot` draws on the axes it is given, as an image with a description.

    Parameters
    ----------
    name : str
        One a page: begins the ids inside.
    words : str
        What the picture says, for those who cannot see it.
    size : tuple of float
        Width and height in inches.
    plot : callable
        Is given matplotlib axes.

    Examples
    --------
    >>> drawn("line", "a line", (2, 1), lambda ax: ax.plot([0, 1]))[:36]
    '<svg viewBox="0 0 144 72" role="img"'
    """
    import matplotlib
    from matplotlib.figure import Figure

    text = io.StringIO()
    with matplotlib.rc_context({**_SETTINGS, "svg.hashsalt": name}), warnings.catch_warnings():
        # The browser has the letters that matplotlib's own font lacks.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        figure = Figure(figsize=size, layout="constrained")
        plot(figure.subplots())
        figure.savefig(text, format="svg", metadata=dict.fromkeys(("Creator", "Date", "Format", "Type")))
    return _inlined(text.getvalue(), name, words)


def _inlined(text: str, name: str, words: str) -> Html:
    """The SVG without its head, ids and colours made those of the page."""
    box = re.search(r'viewBox="([^"]+)"', text)
    opened = re.search(r"<svg[^>]*>", text)
    assert box is not None
    assert opened is not None
    inside = re.sub(r"<!--.*?-->", "", text[opened.end() : text.rindex("</svg>")], flags=re.DOTALL)
    # Within tags alone: what labels say is between them, and has no bracket that is not escaped.
    inside = re.sub(r"<[^>]+>", lambda tag: _fitted(tag.group(), name), inside)
    numbers = [float(number) for number in box.group(1).split()]
    return element(
        "svg", Html(re.sub(r"\n\s*", "\n", inside)), viewBox=" ".join(f"{number:g}" for number in numbers),
        role="img", aria_label=words, class_="plot", style=f"max-width: {numbers[2] * 4 / 3:.0f}px",
    )  # fmt: skip


def _fitted(tag: str, name: str) -> str:
    tag = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{name}-", tag)
    tag = re.sub(r"(\d\.\d{2})\d+", r"\1", tag)  # hundredths of a point are enough
    return re.sub(r"#[0-9a-f]{6}\b", lambda colour: _COLOURS.get(colour.group(), colour.group()), tag)

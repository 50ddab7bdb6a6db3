"""Displays as inline SVG in the colours of the page, light or dark, with text kept as text."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable
from typing import Any

from markupsafe import Markup

from gaussianmlr._utils.extras import require
from gaussianmlr.plots._style import BLACK, BLUE, GRAY, GREEN, ORANGE, PURPLE, RED, SKY
from gaussianmlr.report.page import plain

__all__ = ["drawn"]

# Colours of the displays and their names in report.css, which defines lighter ones for dark pages.
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


def drawn(name: str, words: str, size: tuple[float, float], plot: Callable[[Any], Any]) -> Markup:
    """What `plot` draws on the axes it is given, as an image with a description.

    Parameters
    ----------
    name : str
        Prefix of the ids inside; unique on a page.
    words : str
        Description of the picture for screen readers.
    size : tuple of float
        Width and height in inches.
    plot : callable
        Called with matplotlib axes.

    Examples
    --------
    >>> print(drawn("line", "a line", (2, 1), lambda ax: ax.plot([0, 1]))[:36])
    <svg viewBox="0 0 144 72" role="img"
    """
    require("a report", "matplotlib", extra="report")
    import matplotlib
    from matplotlib.figure import Figure

    text = io.StringIO()
    with matplotlib.rc_context({**_SETTINGS, "svg.hashsalt": name}), warnings.catch_warnings():
        # The browser has fonts for the letters that matplotlib's own font lacks.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        figure = Figure(figsize=size, layout="constrained")
        plot(figure.subplots())
        figure.savefig(text, format="svg", metadata=dict.fromkeys(("Creator", "Date", "Format", "Type")))
    return _inlined(text.getvalue(), name, words)


def _inlined(text: str, name: str, words: str) -> Markup:
    """The SVG without its head, ids and colours made those of the page."""
    box = re.search(r'viewBox="([^"]+)"', text)
    opened = re.search(r"<svg[^>]*>", text)
    assert box is not None
    assert opened is not None
    inside = re.sub(r"<!--.*?-->", "", text[opened.end() : text.rindex("</svg>")], flags=re.DOTALL)
    # Only inside tags: labels are text between them, where every bracket is escaped.
    inside = re.sub(r"<[^>]+>", lambda tag: _fitted(tag.group(), name), inside)
    numbers = [float(number) for number in box.group(1).split()]
    return Markup(
        '<svg viewBox="{}" role="img" aria-label="{}" class="plot" style="max-width: {:.0f}px">{}</svg>'
    ).format(
        " ".join(f"{number:g}" for number in numbers),
        plain(words),
        numbers[2] * 4 / 3,
        Markup(re.sub(r"\n\s*", "\n", inside)),
    )


def _fitted(tag: str, name: str) -> str:
    tag = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{name}-", tag)
    tag = re.sub(r"(\d\.\d{2})\d+", r"\1", tag)  # hundredths of a point are enough
    return re.sub(r"#[0-9a-f]{6}\b", lambda colour: _COLOURS.get(colour.group(), colour.group()), tag)

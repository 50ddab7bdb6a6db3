"""HTML that cannot be broken by what is put into it: texts are escaped unless they are `Html`."""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Collection, Iterable, Sequence
from importlib.resources import files
from typing import Any, NamedTuple

from gaussianmlr._version import __version__

__all__ = [
    "Html",
    "Section",
    "details",
    "download",
    "element",
    "facts",
    "figure",
    "note",
    "page",
    "plain",
    "section",
    "table",
]

_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")
_VOID = frozenset({"img", "meta", "br"})
# Nothing is loaded and no script runs, whatever a label says.
_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


class Html(str):
    """Text that is HTML already."""

    __slots__ = ()


def plain(value: object) -> str:
    """A text without what no file of UTF-8 holds and no browser shows."""
    return _CONTROLS.sub("\ufffd", str(value))


def element(name: str, /, *children: Any, **attributes: Any) -> Html:
    """An element; children are texts, elements, or lists of them, and None is left out.

    Examples
    --------
    >>> element("p", "a < b, ", element("b", "c"), class_="soft", aria_label='"d"')
    '<p class="soft" aria-label="&quot;d&quot;">a &lt; b, <b>c</b></p>'
    """
    shown = []
    for key, value in attributes.items():
        if value is not None and value is not False:
            key = key.rstrip("_").replace("_", "-")
            shown.append(f" {key}" if value is True else f' {key}="{html.escape(plain(value))}"')
    opened = f"<{name}{''.join(shown)}>"
    return Html(opened if name in _VOID else f"{opened}{_joined(children)}</{name}>")


def _joined(children: Iterable[Any]) -> str:
    parts: list[str] = []
    for child in children:
        if child is None:
            continue
        if isinstance(child, Html):
            parts.append(child)
        elif isinstance(child, list | tuple):
            parts.append(_joined(child))
        else:
            parts.append(html.escape(plain(child), quote=False))
    return "".join(parts)


def table(
    caption: str,
    head: Sequence[Any],
    rows: Iterable[Sequence[Any]],
    *,
    numbers: Collection[int] = (),
    class_: str | None = None,
    hide: bool = False,
) -> Html:
    """A table that scrolls by itself where the screen is narrow; the first cell of a row is its heading.

    Parameters
    ----------
    caption : str
        Its name.
    head : sequence
        Headings of the columns.
    rows : iterable of sequences
        Cells; one that is a ``td`` already is taken as it is.
    numbers : collection of int
        Columns of numbers, set right.
    class_ : str, optional
        Of the table.
    hide : bool
        Keep the caption for those who cannot see the page, where a heading above says the same.
    """

    def cell(place: int, value: Any) -> Html:
        if isinstance(value, Html) and value.startswith("<td"):
            return value
        style = "number" if place in numbers else None
        if place == 0:
            return element("th", value, scope="row", class_=style)
        return element("td", value, class_=style)

    columns = [
        element("th", text, scope="col", class_="number" if place in numbers else None)
        for place, text in enumerate(head)
    ]
    body = [element("tr", [cell(place, value) for place, value in enumerate(row)]) for row in rows]
    made = element(
        "table",
        element("caption", caption, class_="hidden-text" if hide else None),
        element("thead", element("tr", columns)),
        element("tbody", body),
        class_=class_,
    )
    # A part that scrolls must be reached by keys too.
    return element("div", made, class_="scroll", role="region", tabindex="0", aria_label=caption)


def facts(pairs: Iterable[tuple[Any, Any]], class_: str = "facts") -> Html:
    """Names and what stands for them."""
    return element(
        "dl", [element("div", element("dt", a), element("dd", b)) for a, b in pairs], class_=class_
    )


class Section(NamedTuple):
    """A part of the page that its contents lead to."""

    title: str
    anchor: str
    children: tuple[Any, ...]

    @property
    def html(self) -> Html:
        """The card that shows it."""
        heading, names = element("h2", self.title, id=f"{self.anchor}-title"), f"{self.anchor}-title"
        return element(
            "section", heading, self.children, class_="card", id=self.anchor, aria_labelledby=names
        )


def section(title: str, *children: Any, anchor: str) -> Section:
    """A part of the page; `anchor` is its address."""
    return Section(title, anchor, children)


def note(*children: Any) -> Html:
    """What the reader must know before reading the numbers."""
    return element("p", children, class_="note")


def details(summary: str, *children: Any) -> Html:
    """What is there for those who ask."""
    return element("details", element("summary", summary), children)


def figure(drawing: Html, caption: Any) -> Html:
    """A drawing and what it shows."""
    return element("figure", drawing, element("figcaption", caption))


def download(name: str, data: str, kind: str, words: str) -> Html:
    """A link that holds a whole file."""
    coded = base64.b64encode(data.encode("utf-8", "replace")).decode()
    size = len(data.encode("utf-8", "replace"))
    shown = f"{size / 1e6:.1f} MB" if size >= 1e6 else f"{max(1, round(size / 1e3))} kB"
    link = element(
        "a", name, href=f"data:{kind};charset=utf-8;base64,{coded}", download=name, class_="button"
    )
    return element("li", link, element("span", f"{words} ({shown})", class_="soft small"))


def page(title: str, about: str, sections: Sequence[Section]) -> bytes:
    """A whole page, to be written as it is."""
    pages = files("gaussianmlr.pages").joinpath("static", "base.css").read_text("utf-8")
    own = files("gaussianmlr.reporting").joinpath("report.css").read_text("utf-8")
    links = [element("li", element("a", one.title, href=f"#{one.anchor}")) for one in sections]
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="generator", content=f"gaussianmlr {__version__}"),
        element("title", title),
        element("style", Html(pages + own)),
    )
    body = element(
        "body",
        element("a", "To the contents", href="#main", class_="skip"),
        element("header", element("h1", title), element("p", about, class_="soft"), class_="head"),
        element("nav", element("ul", links), aria_label="Contents", class_="contents"),
        element("main", [one.html for one in sections], id="main", class_="stack"),
        element("footer", element("p", f"Made by gaussianmlr {__version__}.", class_="soft small")),
    )
    whole = f"<!DOCTYPE html>\n{element('html', head, body, lang='en')}\n"
    return whole.encode("utf-8", "replace")

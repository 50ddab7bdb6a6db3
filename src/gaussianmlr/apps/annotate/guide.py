"""The guide of annotators: Markdown of whoever set up the task, as HTML that cannot do anything."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from gaussianmlr._utils.bounded import check_file, read_regular
from gaussianmlr._utils.extras import require
from gaussianmlr.errors import DataError

__all__ = ["Guide", "make_guide", "read_guide"]

_LARGEST = 1 << 20  # bytes


class Guide(NamedTuple):
    """Instructions for all items, and what each label means.

    Parameters
    ----------
    html : str
        Instructions as safe HTML; empty for none.
    about : dict of str to str
        Descriptions of labels, as plain text.
    """

    html: str = ""
    about: dict[str, str] = {}  # noqa: RUF012 (never changed)


def read_guide(path: str | Path, labels: Iterable[str]) -> Guide:
    """Read a guide from a Markdown file.

    Parameters
    ----------
    path : path-like
        The file, in UTF-8.
    labels : iterable of str
        The labels; the first paragraph below a heading that is one of them describes that label.
    """
    file = check_file(path, "a guide in Markdown")
    if (size := file.stat().st_size) > _LARGEST:
        raise DataError(f"{file}: {size:,} bytes; expected a guide of at most {_LARGEST:,}")
    try:
        text = read_regular(file).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{file}: byte {error.start} is not UTF-8; save the guide as UTF-8") from None
    return make_guide(text, tuple(labels))


def make_guide(text: str, labels: Sequence[str] = ()) -> Guide:
    r"""Render a guide; raw HTML is shown as text, pictures are links, and links lead to the web alone.

    Examples
    --------
    >>> guide = make_guide("Rank what you *see*.\n\n## sky\nAnything above the horizon.\n", ["sky", "sea"])
    >>> guide.html.splitlines()[0], guide.about
    ('<p>Rank what you <em>see</em>.</p>', {'sky': 'Anything above the horizon.'})
    >>> make_guide("<script>alert(1)</script> [a](javascript:alert(1))").html
    '<p>&lt;script&gt;alert(1)&lt;/script&gt; [a](javascript:alert(1))</p>\n'
    """
    require("a guide", "markdown_it")
    from markdown_it import MarkdownIt

    # Escapes raw HTML and refuses javascript:, vbscript:, file: and data: in links.
    reader = MarkdownIt("commonmark", {"html": False, "maxNesting": 20}).enable("table").disable("image")
    tokens = reader.parse(text)
    about: dict[str, str] = {}
    heading = None
    for token, before in zip(tokens[1:], tokens):
        if token.type != "inline":
            continue
        # The text that people see, without marks.
        plain = "".join(
            one.content if one.content else " " for one in token.children or () if _is_seen(one.type)
        )
        if before.type == "heading_open":
            heading = plain.strip()
        elif heading is not None and heading in labels:
            about.setdefault(heading, " ".join(plain.split()))
    for token in tokens:
        for one in token.children or ():
            if one.type == "link_open":  # the page of the task stays open
                one.attrSet("target", "_blank")
                one.attrSet("rel", "noopener noreferrer")
    return Guide(reader.renderer.render(tokens, reader.options, {}), about)


def _is_seen(kind: str) -> bool:
    return kind in ("text", "code_inline", "softbreak", "hardbreak")

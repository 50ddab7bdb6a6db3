"""The page of a report: Jinja2 templates that escape every text, with the styles inside."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from gaussianmlr._version import __version__

__all__ = ["Data", "environment", "page", "plain"]

Data = dict[str, Any]  # the variables of a section's template
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")


def plain(value: object) -> str:
    r"""A text without the characters that UTF-8 cannot hold or browsers cannot show; HTML stays as it is.

    Examples
    --------
    >>> plain("a\x00b")
    'a�b'
    """
    return value if isinstance(value, Markup) else _CONTROLS.sub("\ufffd", str(value))


@cache
def environment() -> Environment:
    """The Jinja2 environment; every text is escaped.

    Examples
    --------
    >>> environment().from_string("<p>{{ text }}</p>").render(text="a < b")
    '<p>a &lt; b</p>'
    """
    return Environment(
        loader=PackageLoader("gaussianmlr.report", "templates"),
        autoescape=True,
        finalize=plain,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def page(title: str, about: str, sections: Mapping[str, Data]) -> bytes:
    """The bytes of a page; sections are given by the names of their templates."""
    pages = files("gaussianmlr._utils").joinpath("static", "base.css").read_text("utf-8")
    own = files("gaussianmlr.report").joinpath("report.css").read_text("utf-8")
    find = environment().get_template
    made = find("page.html").render(
        title=title,
        about=about,
        version=__version__,
        styles=Markup(pages + own),
        sections={name: Markup(find(f"{name}.html").render(data)) for name, data in sections.items()},
    )
    return made.encode("utf-8", "replace")

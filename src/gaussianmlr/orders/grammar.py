r"""The text form of an order: ``mountain > sky = cloud ? sun``.

::

    order   = "(none)" | [bucket {">" bucket}] {"?" bucket}
    bucket  = label {"=" label}
    label   = quoted | bare          (bare: no > = ? " inside; spaces at its ends do not count)
    quoted  = '"' characters '"'     (inside, \" is a quote and \\ a backslash)

Labels after a question mark are unknown: it is not known whether they apply. ``? sun ? sea`` and the older
``? sun = sea`` mean the same. The empty text and ``(none)`` say that no label applies.
"""

from __future__ import annotations

import functools
import re
from itertools import pairwise
from typing import NamedTuple

from gaussianmlr.errors import shorten

NONE = "(none)"  # how people read an order without labels
_RESERVED = frozenset('>=?"')
# Possessive quantifiers: backtracking would keep every character of a quoted label.
_QUOTED = r'"(?P<quoted>(?:[^"\\]++|\\.)*+)"'
_TOKEN = re.compile(rf'\s*(?:(?P<mark>[>=?])|{_QUOTED}|(?P<bare>[^>=?"]+))', re.DOTALL)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)


class Buckets(NamedTuple):
    """An order as buckets of labels, most significant first, and the unknown labels."""

    ranked: list[list[str]]
    unknown: list[str]
    irrelevant: tuple[str, ...] = ()  # named as such; text leaves them out


class OrderSyntaxError(ValueError):
    """A text that is not an order; becomes part of a DataError that names the row."""


def parse(text: str, separator: str | None = None) -> Buckets:
    """Read one order; raise `OrderSyntaxError` with what was expected.

    A `separator` stands between buckets like ``>``; a last one that nothing follows is ignored.

    Examples
    --------
    >>> parse('sky, sea = "sun, low"', ",").ranked
    [['sky'], ['sea', 'sun, low']]
    """
    if text.strip() == NONE:
        return Buckets([], [])
    tokens = _tokens(text, _token(separator))
    if separator is not None and len(tokens) > 1 and text.rstrip().endswith(separator.strip() or ">"):
        tokens.pop()
    _check(tokens)
    buckets: list[list[str]] = [[]]
    unknown: list[str] = []
    target = buckets[-1]
    for kind, value in tokens:
        if kind == "label":
            target.append(value)
        elif value == ">":
            buckets.append([])
            target = buckets[-1]
        elif value == "?":
            target = unknown
    return Buckets([bucket for bucket in buckets if bucket], unknown)


def _check(tokens: list[tuple[str, str]]) -> None:
    behind_question_mark = False
    for (before, last), (kind, value) in pairwise([("start", ""), *tokens]):
        if kind == "label":
            if before == "label":
                raise OrderSyntaxError(f"'>' or '=' is missing between {shorten(last)} and {shorten(value)}")
            continue
        if before == "mark" or (before == "start" and value != "?"):
            raise OrderSyntaxError(f"empty bucket before {value!r}; a label must stand there")
        if value == ">" and behind_question_mark:
            raise OrderSyntaxError("'>' behind '?'; unknown labels have no order, each has a '?' in front")
        behind_question_mark |= value == "?"
    if tokens and tokens[-1][0] == "mark":
        raise OrderSyntaxError("empty bucket at the end; a label must stand there")


@functools.lru_cache(maxsize=16)
def _token(separator: str | None) -> re.Pattern[str]:
    if separator is None:
        return _TOKEN
    blank = not separator.strip()
    between = r"\s+" if blank else re.escape(separator.strip())
    before = "" if blank else r"\s*"
    mark = rf"(?P<mark>{between}|[>=?])"
    return re.compile(rf'{before}(?:{mark}|{_QUOTED}|(?P<bare>(?:(?!{between})[^>=?"])+))', re.DOTALL)


def _tokens(text: str, token: re.Pattern[str]) -> list[tuple[str, str]]:
    found = []
    text = text.rstrip() if token is _TOKEN else text.strip()
    position, end = 0, len(text)
    while position < end:
        match = token.match(text, position)
        if match is None:
            raise OrderSyntaxError(
                f"the quote at character {text.index(chr(34), position) + 1} is never closed"
            )
        position = match.end()
        if match["mark"]:
            found.append(("mark", match["mark"] if match["mark"] in ("=", "?") else ">"))
        elif match["quoted"] is not None:
            found.append(("label", _ESCAPE.sub(r"\1", match["quoted"])))
        else:
            found.append(("label", match["bare"].strip()))
    return found


def write(buckets: Buckets) -> str:
    """The text that `parse` reads back to the same buckets."""
    ranked = " > ".join(" = ".join(map(_quote, bucket)) for bucket in buckets.ranked)
    return "".join([ranked, *(f" ? {_quote(label)}" for label in buckets.unknown)]).lstrip()


def shown(text: str) -> str:
    """An order as people read it: ``(none)`` if no label applies.

    Examples
    --------
    >>> shown("sky > sea"), shown("")
    ('sky > sea', '(none)')
    """
    return text or NONE


def _quote(label: str) -> str:
    if label == label.strip() and label != NONE and not _RESERVED.intersection(label):
        return label
    escaped = label.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'

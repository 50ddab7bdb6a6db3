r"""The text form of an order: ``mountain > sky = cloud ? sun``.

::

    order   = [bucket {">" bucket}] ["?" bucket]
    bucket  = label {"=" label}
    label   = quoted | bare          (bare: no > = ? " inside; spaces at its ends do not count)
    quoted  = '"' characters '"'     (inside, \" is a quote and \\ a backslash)

Labels after the question mark are unknown: it is not known whether they apply.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import NamedTuple

from gaussianmlr.errors import shorten

_RESERVED = frozenset('>=?"')
# Possessive quantifiers: backtracking would keep every character of a quoted label.
_TOKEN = re.compile(r'\s*(?:(?P<mark>[>=?])|"(?P<quoted>(?:[^"\\]++|\\.)*+)"|(?P<bare>[^>=?"]+))', re.DOTALL)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)


class Buckets(NamedTuple):
    """An order as buckets of labels, most significant first, and the unknown labels."""

    ranked: list[list[str]]
    unknown: list[str]
    irrelevant: tuple[str, ...] = ()  # named as such; text leaves them out


class OrderSyntaxError(ValueError):
    """A text that is not an order; becomes part of a DataError that names the row."""


def parse(text: str) -> Buckets:
    """Read one order; raise `OrderSyntaxError` with what was expected."""
    tokens = _tokens(text)
    _check(tokens)
    buckets: list[list[str]] = [[]]
    for kind, value in tokens:
        if kind == "label":
            buckets[-1].append(value)
        elif value != "=":
            buckets.append([])
    unknown = buckets.pop() if ("mark", "?") in tokens else []
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
        if value != "=" and behind_question_mark:
            raise OrderSyntaxError(f"{value!r} behind '?'; unknown labels are only joined by '='")
        behind_question_mark |= value == "?"
    if tokens and tokens[-1][0] == "mark":
        raise OrderSyntaxError("empty bucket at the end; a label must stand there")


def _tokens(text: str) -> list[tuple[str, str]]:
    found = []
    position, end = 0, len(text.rstrip())
    while position < end:
        match = _TOKEN.match(text, position)
        if match is None:
            raise OrderSyntaxError(
                f"the quote at character {text.index(chr(34), position) + 1} is never closed"
            )
        position = match.end()
        if match["mark"]:
            found.append(("mark", match["mark"]))
        elif match["quoted"] is not None:
            found.append(("label", _ESCAPE.sub(r"\1", match["quoted"])))
        else:
            found.append(("label", match["bare"].strip()))
    return found


def write(buckets: Buckets) -> str:
    """The text that `parse` reads back to the same buckets."""
    ranked = " > ".join(_bucket(bucket) for bucket in buckets.ranked)
    if not buckets.unknown:
        return ranked
    return f"{ranked} ? {_bucket(buckets.unknown)}".lstrip()


def _bucket(labels: list[str]) -> str:
    return " = ".join(_quote(label) for label in labels)


def _quote(label: str) -> str:
    if label == label.strip() and not _RESERVED.intersection(label):
        return label
    escaped = label.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'

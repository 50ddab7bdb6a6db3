r"""The text form of an order: ``mountain > sky = cloud ? sun``.

::

    order   = [bucket {">" bucket}] ["?" bucket]
    bucket  = label {"=" label}
    label   = quoted | bare          (bare: no > = ? " inside; spaces at its ends do not count)
    quoted  = '"' characters '"'     (inside, \" is a quote and \\ a backslash)

Labels behind the question mark are unknown: nobody said whether they apply.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_RESERVED = frozenset('>=?"')
_TOKEN = re.compile(r'\s*(?:(?P<mark>[>=?])|"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<bare>[^>=?"]+))', re.DOTALL)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)


class Buckets(NamedTuple):
    """An order as buckets of labels, most significant first, and the labels nobody spoke of."""

    ranked: list[list[str]]
    unknown: list[str]
    irrelevant: tuple[str, ...] = ()  # named as such; text leaves them out


class OrderSyntaxError(ValueError):
    """A text that is not an order; becomes part of a DataError that names the row."""


def parse(text: str) -> Buckets:
    """Read one order; raise `OrderSyntaxError` with what was expected."""
    ranked: list[list[str]] = []
    unknown: list[str] = []
    bucket: list[str] = []
    behind_question_mark = False
    expects_label = False  # after > = or ?, a label must follow
    for kind, value in _tokens(text):
        if kind == "label":
            if bucket and not expects_label:
                raise OrderSyntaxError(f"'>' or '=' is missing between {bucket[-1]!r} and {value!r}")
            bucket.append(value)
            expects_label = False
            continue
        opens_unknown = value == "?" and not ranked and not bucket and not behind_question_mark
        if (expects_label or not bucket) and not opens_unknown:
            raise OrderSyntaxError(f"empty bucket before {value!r}; a label must stand there")
        if value != "=":
            if behind_question_mark:
                raise OrderSyntaxError(f"{value!r} behind '?'; unknown labels are only joined by '='")
            if bucket:
                ranked.append(bucket)
            bucket = []
            behind_question_mark = value == "?"
        expects_label = True
    if expects_label:
        raise OrderSyntaxError("empty bucket at the end; a label must stand there")
    if behind_question_mark:
        unknown = bucket
    elif bucket:
        ranked.append(bucket)
    return Buckets(ranked, unknown)


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

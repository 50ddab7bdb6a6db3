"""Orders that were written with another separator than ``>``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from gaussianmlr.errors import DataError, shorten

_LESS = "<"  # the other way round: the most significant label last
_ARROW = "->"  # leaves "sky -" before the ">"
_BLANK = " "
_SEPARATORS = (",", ";", "|", "/", _LESS, "\n", "\t", _BLANK)


class Meant(NamedTuple):
    """A separator that was probably meant: how many orders have it, and the first of them."""

    separator: str
    orders: int
    row: int


def check_separator(separator: str | None) -> None:
    """Refuse separators of labels that already mean something else."""
    if separator is not None and (not separator or any(mark in separator for mark in '<=?"')):
        raise DataError(
            f"order_separator is {separator!r}; expected what stands between labels, such as ',' or ';'"
        )


def meant_separator(orders: Sequence[Sequence[str]], texts: Sequence[object]) -> Meant | None:
    """The separator that stands between labels in orders which name each list as one label, if any.

    Parameters
    ----------
    orders : sequence of sequence of str
        The labels of each order, as read.
    texts : sequence
        The orders as they were given. Labels in quotes are meant as they are.

    Examples
    --------
    >>> texts = ["sky, sea, sun", "sea, sky", "sun"]
    >>> meant_separator([[text] for text in texts], texts)
    Meant(separator=',', orders=2, row=0)
    >>> meant_separator([["sky -", "sea"], ["sea -", "sun"]], ["sky -> sea", "sea -> sun"])
    Meant(separator='->', orders=2, row=0)
    >>> meant_separator([["red, dark"], ["blue"]], ["red, dark", "blue"]) is None
    True
    """
    known = {label for labels in orders for label in labels}
    arrows = [row for row, text in enumerate(texts) if _unquoted(text, _ARROW)]
    if len(arrows) > 1:
        return Meant(_ARROW, len(arrows), arrows[0])
    for separator in _SEPARATORS:
        if any(separator in label for label in known) and (found := _meant(separator, orders, texts, known)):
            return found
    return None


def _meant(
    separator: str, orders: Sequence[Sequence[str]], texts: Sequence[object], known: set[str]
) -> Meant | None:
    rows = [
        number
        for number, (labels, text) in enumerate(zip(orders, texts))
        if _unquoted(text, separator) and any(separator in label for label in labels)
    ]
    lists = {label for number in rows for label in orders[number] if separator in label}
    if not lists:
        return None
    pieces = {label: _pieces(label, separator) for label in lists}
    alone = known - lists
    # Pieces that are labels of their own elsewhere.
    strong = [
        number for number in rows if any(alone.issuperset(pieces.get(one, "?")) for one in orders[number])
    ]
    if separator == _BLANK:
        return _meant_blank(orders, pieces, rows, strong)
    if len(strong) > 1:
        return Meant(separator, len(rows), strong[0])
    single = [labels for labels in orders if labels]
    if any(len(labels) > 1 for labels in single) or 2 * len(rows) <= len(single) or len(lists) < 2:
        return None
    # No order has a second label, and the pieces repeat in other combinations.
    counts = Counter(piece for found in pieces.values() for piece in set(found))
    counts.update(alone & counts.keys())
    again = sum(count > 1 for count in counts.values())
    return Meant(separator, len(rows), rows[0]) if 2 * again >= len(counts) else None


def _meant_blank(
    orders: Sequence[Sequence[str]], pieces: dict[str, list[str]], rows: list[int], strong: list[int]
) -> Meant | None:
    """Labels of several words are common: no order may have two, and their words be labels or be turned."""
    turned = len({frozenset(words) for words in pieces.values()}) < len(pieces)
    if any(len(labels) > 1 for labels in orders) or not (turned or len(strong) > 1):
        return None
    return Meant(_BLANK, len(rows), strong[0] if strong else rows[0])


def _unquoted(text: object, sign: str) -> bool:
    return isinstance(text, str) and sign in text and '"' not in text


def _pieces(label: str, separator: str) -> list[str]:
    return [piece.strip() for piece in label.split(separator) if piece.strip()]


def refusal(meant: Meant, text: object, total: int) -> str:
    """The message about orders that were written with another separator.

    Examples
    --------
    >>> print(refusal(Meant(",", 2, 0), "sky, sea", 3))
    2 of 3 orders hold ',', such as 'sky, sea' in row 0, and would be one label each; write 'sky > sea'
    ('=' for ties), or give order_separator=',' (--order-separator ','); a label that holds ',' is written in
    quotes or listed in labels
    """
    sign, pieces = repr(meant.separator), _pieces(str(text), meant.separator)[:4]
    if meant.separator == _LESS:
        return (
            f"{meant.orders} of {total} orders hold {sign}, such as {shorten(text)} in row {meant.row}; "
            f"write {shorten(' > '.join(reversed(pieces)))}, the most significant label first"
        )
    example = " > ".join(pieces)
    if meant.separator == _ARROW:
        return (
            f"{meant.orders} of {total} orders hold {sign}, such as {shorten(text)} in row {meant.row}; "
            f"write {shorten(example)}; a label that ends with '-' is written in quotes or listed in labels"
        )
    return (
        f"{meant.orders} of {total} orders hold {sign}, such as {shorten(text)} in row {meant.row}, and "
        f"would be one label each; write {shorten(example)} ('=' for ties), or give order_separator={sign} "
        f"(--order-separator {sign}); a label that holds {sign} is written in quotes or listed in labels"
    )


def is_written_list(texts: Sequence[object]) -> int | None:
    """The first of many orders that are lists as a program prints them, ``['sky', 'sea']``."""
    found = [number for number, text in enumerate(texts) if isinstance(text, str) and _is_list(text)]
    given = sum(isinstance(text, str) and bool(text.strip()) for text in texts)
    return found[0] if len(found) > 1 and 2 * len(found) > given else None


def _is_list(text: str) -> bool:
    text = text.strip()
    return len(text) > 2 and (text[0], text[-1]) in (("[", "]"), ("(", ")"), ("{", "}"))

"""The error class of the package."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

SHOWN_ROWS = 10
_FIRST = 3  # rows of equal problems that are named
_QUOTED = r"""(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")"""
# Values differ between equal problems; the names of columns and labels do not.
_VALUE = re.compile(
    rf"(?P<name>\b(?:columns?|label) (?:{_QUOTED}|\d+))|{_QUOTED}|\[[^\]]*\](?:\.\.\.)?|(?<!\w)-?\d[\d.,e+-]*"
)


class DataError(ValueError):
    """Input that cannot be used, with the offending value and what was expected.

    Every error a user of the package can cause is a `DataError`; it is a `ValueError`, so code
    that does not know this package catches it too.

    Examples
    --------
    >>> from gaussianmlr import DataError, to_ranks
    >>> try:
    ...     to_ranks(["mountain > sky", "sky > sun > sky"])
    ... except DataError as error:
    ...     print(error)
    1 of 2 orders cannot be read:
      row 1: 'sky > sun > sky': label 'sky' stands above and below itself; name each label once
    """

    rows: tuple[tuple[object, str], ...] = ()  # every bad row and its problem

    @classmethod
    def of_rows(cls, what: str, problems: Sequence[tuple[object, str]], total: int) -> DataError:
        """One error for many bad rows: equal problems in one line, the first ten lines, the rest counted.

        Parameters
        ----------
        what : str
            What is wrong, to follow "3 of 120", such as ``"orders cannot be read"``.
        problems : sequence of (row, message)
            The bad rows, in their order.
        total : int
            How many rows there are, good and bad.
        """
        lines = [f"{len(problems)} of {total} {what}:"]
        found = summarised(problems)
        lines += [f"  {line.where}: {problems[line.places[0]][1]}" for line in found[:SHOWN_ROWS]]
        if len(found) > SHOWN_ROWS:
            rest = sum(len(line.places) for line in found[SHOWN_ROWS:])
            lines.append(f"  ... and {rest} more")
        error = cls("\n".join(lines))
        error.rows = tuple(problems)
        return error


class Line(NamedTuple):
    """One line about equal problems: their rows as a text, and their places in the list."""

    where: str
    places: list[int]


def summarised(problems: Sequence[tuple[object, str]]) -> list[Line]:
    """Lines of problems of rows; more than three that differ only in the value and the row share one.

    Examples
    --------
    >>> rows = [(row, f"'v{row}' in column 'age'") for row in range(200)]
    >>> [line.where for line in summarised([*rows, (7, "'x' in column 'sex'")])]
    ['rows 0, 1, 2 and 197 more', 'row 7']
    """
    groups: dict[str, list[int]] = {}
    for place, (_, message) in enumerate(problems):
        alike = _VALUE.sub(lambda found: found["name"] or "~", message)
        groups.setdefault(alike, []).append(place)
    found: list[Line] = []
    for places in groups.values():
        if len(places) <= _FIRST:
            found += [Line(f"row {problems[place][0]}", [place]) for place in places]
            continue
        rows = ", ".join(str(problems[place][0]) for place in places[:_FIRST])
        found.append(Line(f"rows {rows} and {len(places) - _FIRST} more", places))
    return sorted(found, key=lambda line: line.places[0])


def shorten(value: object, width: int = 80) -> str:
    """The repr of a value, cut to a width."""
    if isinstance(value, str | bytes | list | tuple) and len(value) > width:
        # Every element takes at least one character, so at most `width` of them are shown.
        return f"{repr(value[:width])[: width - 3]}..."
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # an integer with too many digits, or deep nesting
        return f"a huge {type(value).__name__}"
    return text if len(text) <= width else f"{text[: width - 3]}..."

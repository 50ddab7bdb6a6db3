"""The error class of the package."""

from __future__ import annotations

from collections.abc import Sequence

SHOWN_ROWS = 10


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
        """One error for many bad rows: the first ten in full, the rest counted.

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
        lines += [f"  row {row}: {message}" for row, message in problems[:SHOWN_ROWS]]
        if len(problems) > SHOWN_ROWS:
            lines.append(f"  ... and {len(problems) - SHOWN_ROWS} more")
        error = cls("\n".join(lines))
        error.rows = tuple(problems)
        return error


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

"""Cells of a table: which kind of column they make, and the number that stands for each."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Hashable, Sequence
from datetime import UTC, date, datetime
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from gaussianmlr.errors import DataError, shorten

__all__ = [
    "KINDS",
    "Kind",
    "date_of",
    "is_gap",
    "kind_of",
    "number_in",
    "text_of",
    "truth_of",
    "unique_cells",
]

Kind = Literal["number", "boolean", "category", "date", "text"]
KINDS: tuple[Kind, ...] = ("number", "boolean", "category", "date", "text")
_GAPS = frozenset({"", "na", "n/a", "#n/a", "<na>", "nan", "nat", "null", "none", "-", "?"})
_TRUTH = {"true": 1.0, "yes": 1.0, "false": 0.0, "no": 0.0}
_TIME = r"(?P<time>[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d(:?\d\d)?)?)?"
_DATES = (  # a year in front is followed by the month; a day with points comes before the month
    re.compile(r"(?P<year>\d{4})(?P<sign>[-/.])(?P<month>\d\d)(?P=sign)(?P<day>\d\d)" + _TIME, re.ASCII),
    re.compile(r"(?P<day>\d\d?)\.(?P<month>\d\d?)\.(?P<year>\d{4})" + _TIME, re.ASCII),
)
_OTHER_DATE = re.compile(r"\d{1,4}[/.-]\d{1,2}[/.-]\d{1,4}([ T].*)?", re.ASCII)  # 3/4/2024, 03.04.24
_CURRENCY = "€$£¥₹"
_MARKED = re.compile(  # $1,234.50 or 12 %
    rf"(?P<before>[{_CURRENCY}]?)\s*[+-]?\d[\d.,' ]*(?P<after>\s*[%{_CURRENCY}]?)", re.ASCII
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MANY = 50  # a column with more distinct texts than this, and than half its rows, is free text
_WORDS = 4  # words per text, from which on that holds for fewer texts, too


class Cells(NamedTuple):
    """The distinct cells of a column that are not gaps, and where they are."""

    values: list[Any]
    counts: npt.NDArray[np.int64]
    codes: npt.NDArray[np.intp]  # per row the place in `values`, -1 for a gap

    def numbers(self, read: Callable[[Any], float]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.intp]]:
        """The number of each row, NaN for a gap; and the rows whose cell cannot be read."""
        found, wrong = np.full(len(self.values) + 1, np.nan), np.zeros(len(self.values) + 1, dtype=bool)
        for place, value in enumerate(self.values):
            try:
                found[place] = read(value)
            except (TypeError, ValueError):
                wrong[place] = True
        return found[self.codes], np.flatnonzero(wrong[self.codes])


def unique_cells(values: npt.NDArray[Any]) -> Cells:
    """The distinct cells of a column of objects.

    Raises
    ------
    TypeError
        If a cell holds a list or an object.

    Examples
    --------
    >>> found = unique_cells(np.array(["a", None, "b", "a", "n/a"], dtype=object))
    >>> found.values, found.counts.tolist(), found.codes.tolist()
    (['a', 'b'], [2, 1], [0, -1, 1, 0, -1])
    """
    import pandas as pd

    try:
        codes, distinct = pd.factorize(values)
    except TypeError:  # cells that cannot be compared
        row = next(row for row, value in enumerate(values) if not isinstance(value, Hashable))
        kind = type(values[row]).__name__
        raise TypeError(
            f"row {row} is {shorten(values[row])}: argument must be a string or a number, not {kind!r}"
        ) from None
    kept = [not is_gap(value) for value in distinct]
    places = np.append(np.where(kept, np.cumsum(kept) - 1, -1), -1).astype(np.intp)
    codes = places[codes]
    cells = [value for value, keep in zip(distinct, kept) if keep]
    return Cells(cells, np.bincount(codes[codes >= 0], minlength=len(cells)), codes)


def is_gap(value: Any) -> bool:
    """Whether a cell holds nothing: None, NaN, NaT, or a text that stands for it.

    Examples
    --------
    >>> [is_gap(value) for value in (None, float("nan"), " N/A ", "?", "0", 0)]
    [True, True, True, True, False, False]
    """
    if isinstance(value, str):
        return len(value) < 20 and value.strip().lower() in _GAPS
    if value is None or type(value).__name__ == "NAType":  # pandas' NA is not equal to itself, nor unequal
        return True
    try:
        return bool(value != value)
    except (TypeError, ValueError):
        return False


def number_in(value: Any) -> float:
    """The number that a cell holds; infinite where it is beyond every float.

    Examples
    --------
    >>> number_in(" 1.5"), number_in(True)
    (1.5, 1.0)
    """
    if isinstance(value, str) and "_" in value:  # Python reads 1_000 as a number; tables do not mean one
        raise ValueError(value)
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def truth_of(value: Any) -> float:
    """1 for true and yes, 0 for false and no.

    Examples
    --------
    >>> truth_of("Yes"), truth_of(False), truth_of(1), truth_of("0")
    (1.0, 0.0, 1.0, 0.0)
    """
    if isinstance(value, str) and value.strip().lower() in _TRUTH:
        return _TRUTH[value.strip().lower()]
    number = number_in(value)
    if number not in (0.0, 1.0):
        raise ValueError(value)
    return number


def date_of(value: Any) -> float:
    """Days since 1970-01-01 of a date or time; times with a zone are in UTC.

    Examples
    --------
    >>> date_of("1970-01-03"), date_of("1970-01-01T12:00:00Z"), date_of(date(1971, 1, 1))
    (2.0, 0.5, 365.0)
    >>> date_of("1970/01/03"), date_of("3.1.1970")
    (2.0, 2.0)
    """
    if isinstance(value, str):
        found = next((found for one in _DATES if (found := one.fullmatch(value.strip()))), None)
        if found is None:
            raise ValueError(value)
        year, month, day = found["year"], int(found["month"]), int(found["day"])
        value = datetime.fromisoformat(f"{year}-{month:02}-{day:02}{found['time'] or ''}")
    elif isinstance(value, np.datetime64):
        return float((value - np.datetime64(0, "s")) / np.timedelta64(1, "D"))
    elif not isinstance(value, datetime):
        if not isinstance(value, date):
            raise TypeError(value)
        value = datetime(value.year, value.month, value.day)
    since = value.replace(tzinfo=UTC) if value.tzinfo is None else value
    return float((since - _EPOCH).total_seconds() / 86_400)


def text_of(value: Any) -> str:
    """The text of a category; 3.0 is written as 3, since a gap turns whole numbers into floats.

    Examples
    --------
    >>> text_of(" red "), text_of(3.0), text_of(2.5)
    ('red', '3', '2.5')
    """
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, list | dict | set | bytes):
        raise TypeError(value)
    if isinstance(value, float | np.floating):
        return str(int(value)) if value == int(value) else repr(float(value))
    return str(value)


READ: dict[Kind, Callable[[Any], float]] = {"number": number_in, "boolean": truth_of, "date": date_of}
EXPECTED: dict[Kind, str] = {
    "number": "a number",
    "boolean": "true or false",
    "category": "a text",
    "date": "a date such as 2024-12-31",
    "text": "a text",
}


def kind_of(cells: Cells) -> Kind:
    """The kind of column that cells make; "text" if they are different sentences, or too many for categories.

    Half or more numbers (or dates) make a column of numbers (or dates), with other cells as mistakes.

    Raises
    ------
    DataError
        For dates whose day and month cannot be told apart, and numbers with a sign of percent or currency.

    Examples
    --------
    >>> said = ["it was so nice", "not at all my day"]
    >>> for column in (["1", "2.5"], ["yes", "no"], ["2024-01-31"], ["red", "blue"], said):
    ...     print(kind_of(unique_cells(np.array(column, dtype=object))))
    number
    boolean
    date
    category
    text
    """
    rows = int(cells.counts.sum())

    def share(fits: Sequence[bool]) -> float:
        return float(cells.counts[np.asarray(fits, dtype=bool)].sum()) / max(rows, 1)

    numbers = share([_is_number(value) for value in cells.values])
    if numbers == 1:
        return "number"
    if share([_is_truth(value) for value in cells.values]) > 0 and not cells.numbers(truth_of)[1].size:
        return "boolean"
    if numbers >= 0.5:
        return "number"
    if share([_fits(date_of, value) for value in cells.values]) >= 0.5:
        return "date"
    strange = [isinstance(one, str) and bool(_OTHER_DATE.fullmatch(one.strip())) for one in cells.values]
    if share(strange) >= 0.5:
        shown = shorten(cells.values[strange.index(True)])
        raise DataError(
            f"holds dates such as {shown}, which may be read in two ways; write them as 2024-12-31"
        )
    marked = [isinstance(one, str) and _is_marked(one) for one in cells.values]
    if share(marked) >= 0.5:
        shown = shorten(cells.values[marked.index(True)])
        raise DataError(f"holds numbers with a sign, such as {shown}; write the numbers alone")
    different = 2 * len(cells.values) > max(rows, 2)
    return "text" if different and (len(cells.values) > _MANY or _are_sentences(cells.values)) else "category"


def _are_sentences(texts: Sequence[Any]) -> bool:
    return sum(len(text_of(one).split()) for one in texts) >= _WORDS * len(texts)


def _is_marked(text: str) -> bool:
    """Whether a text is a number with a sign of percent or currency."""
    found = _MARKED.fullmatch(text.strip())
    return found is not None and bool(found["before"] or found["after"].strip())


def _is_truth(value: Any) -> bool:
    return isinstance(value, bool | np.bool_) or (isinstance(value, str) and value.strip().lower() in _TRUTH)


def _is_number(value: Any) -> bool:
    return not isinstance(value, bool | np.bool_) and _fits(number_in, value)


def _fits(read: Callable[[Any], float], value: Any) -> bool:
    try:
        read(value)
    except (TypeError, ValueError):
        return False
    return True

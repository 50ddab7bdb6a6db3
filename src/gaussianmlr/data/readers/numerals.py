"""Numbers that were written as texts: decimal commas, and separators of thousands."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from gaussianmlr.data.problems import Problem
from gaussianmlr.data.readers.layout import fold
from gaussianmlr.errors import shorten

Kind = Literal["whole", "dot", "dot or thousands", "comma", "comma or thousands", "thousands", "text"]
_WHOLE = re.compile(r"[+-]?\d+")
_DOT = re.compile(r"[+-]?(?:\d+\.\d*|\.\d+|\d+(?=[eE]))(?:[eE][+-]?\d+)?")
_COMMA = re.compile(r"[+-]?\d*,\d+(?:[eE][+-]?\d+)?")
_THREE = re.compile(r"[+-]?[1-9]\d{0,2}[.,]\d{3}")  # 1,234 and 1.234 may be either
_GROUPED = re.compile(r"[+-]?\d{1,3}(?:([.,' \u2019\u00a0\u202f])\d{3})(?:\1\d{3})*(?:[.,]\d+)?")


@dataclass
class Evidence:
    """The kinds of numbers in a column, with the first example of each."""

    counts: dict[Kind, int] = field(default_factory=dict)
    examples: dict[Kind, str] = field(default_factory=dict)

    @property
    def numeric(self) -> bool:
        """Whether most cells are numbers in some way of writing."""
        return 2 * self.counts.get("text", 0) < sum(self.counts.values())

    def has(self, *kinds: Kind) -> bool:
        """Whether any cell is of one of these kinds."""
        return any(kind in self.counts for kind in kinds)


@dataclass(frozen=True)
class Verdict:
    """Columns with decimal commas, and the problem of each column that cannot be read."""

    commas: tuple[str, ...]
    problems: dict[str, str]


def kind_of(text: str) -> Kind:
    """How a number is written.

    Examples
    --------
    >>> [kind_of(text) for text in ("3", "1.5", "1.234", "1,5", "1,234", "1,234.5", "1.234,5", "sky")]
    ['whole', 'dot', 'dot or thousands', 'comma', 'comma or thousands', 'thousands', 'thousands', 'text']
    """
    text = text.strip()
    if _WHOLE.fullmatch(text):
        return "whole"
    if _THREE.fullmatch(text):
        return "comma or thousands" if "," in text else "dot or thousands"
    if _DOT.fullmatch(text):
        return "dot"
    if _COMMA.fullmatch(text):
        return "comma"
    return "thousands" if _GROUPED.fullmatch(text) else "text"


def evidence_of(values: Iterable[Any]) -> Evidence:
    """The kinds of the texts among some values."""
    found = Evidence()
    for value in values:
        if isinstance(value, str) and value.strip():
            kind = kind_of(value)
            found.counts[kind] = found.counts.get(kind, 0) + 1
            found.examples.setdefault(kind, value.strip())
    return found


def decide(columns: Mapping[str, Evidence], decimal: str | None, dots: bool = False) -> Verdict:
    """Which columns have decimal commas; what fits two ways of writing is a problem, never a guess.

    Parameters
    ----------
    columns : mapping of str to Evidence
        The columns of texts.
    decimal : {".", ",", None}
        The decimal sign, if it is known.
    dots : bool
        Whether other columns, which are numbers already, have decimal points.

    Examples
    --------
    >>> decide({"a": evidence_of(["1,5", "2"]), "b": evidence_of(["1,234"])}, None).commas
    ('a', 'b')
    >>> decide({"b": evidence_of(["1,234"])}, None).problems["b"]
    "'1,234' may be 1.234 or 1234; say --decimal , or --decimal . (then write 1234)"
    """
    numeric = {name: found for name, found in columns.items() if found.numeric}
    commas = decimal == "," or any(found.has("comma") for found in numeric.values())
    dots = dots or any(found.has("dot") for found in numeric.values())
    chosen: list[str] = []
    problems: dict[str, str] = {}
    for name, found in numeric.items():
        problem = _problem(found, decimal, commas, dots)
        if problem:
            problems[name] = problem
        elif found.has("comma", "comma or thousands"):
            chosen.append(name)
    return Verdict(tuple(chosen), problems)


def _problem(found: Evidence, decimal: str | None, commas: bool, dots: bool) -> str:
    if found.has("thousands"):
        text = found.examples["thousands"]
        return f"{shorten(text)} has a separator of thousands; write {plain(text)}"
    comma = found.examples.get("comma", found.examples.get("comma or thousands"))
    dot = found.examples.get("dot", found.examples.get("dot or thousands"))
    if comma and dot:
        return f"{comma!r} has a decimal comma and {dot!r} a decimal point; write all of them in one way"
    if comma and decimal == ".":
        return f"{comma!r} has a comma; write it with a decimal point, or say --decimal ,"
    if found.has("comma or thousands") and not found.has("comma") and not commas:
        number = comma.replace(",", "") if comma else ""
        if dots:
            return (
                f"{comma!r} has a separator of thousands; write {number} (--decimal , reads a decimal comma)"
            )
        read = comma.replace(",", ".") if comma else ""
        return f"{comma!r} may be {read} or {number}; say --decimal , or --decimal . (then write {number})"
    if dot and decimal == ",":
        return f"{dot!r} has a point; write it with a decimal comma, or leave --decimal out"
    if found.has("dot or thousands") and not found.has("dot") and commas and decimal is None:
        number = dot.replace(".", "") if dot else ""
        return f"{dot!r} may be {dot} or {number}, as other columns have decimal commas; say --decimal"
    return ""


def plain(text: str) -> str:
    """A number without separators of thousands.

    Examples
    --------
    >>> plain("1,234.5"), plain("1.234,5"), plain("1 234 567")
    ('1234.5', '1234,5', '1234567')
    """
    marks = [mark for mark in text if not mark.isdigit() and mark not in "+-"]
    last = marks[-1]
    if last in ".," and marks.count(last) == 1 and len(marks) > 1:
        head, _, tail = text.rpartition(last)
        return "".join(sign for sign in head if sign.isdigit() or sign in "+-") + last + tail
    return "".join(sign for sign in text if sign.isdigit() or sign in "+-")


def with_point(value: Any) -> Any:
    """A number with a decimal comma as a text with a decimal point; anything else unchanged.

    Examples
    --------
    >>> with_point(" 1,5 "), with_point("high"), with_point(None)
    ('1.5', 'high', None)
    """
    if isinstance(value, str) and _COMMA.fullmatch(text := value.strip()):
        return text.replace(",", ".")
    return value


def with_numbers(
    frame: Any,
    written: Any,
    texts: Collection[str],
    decimal: str | None,
    notes: list[str],
    problems: list[Problem],
) -> Any:
    """The frame with numbers where texts have decimal commas; what is ambiguous is a problem."""
    import pandas as pd

    found = evidence_in(written, texts)
    verdict = decide(found, decimal, any(_has_fractions(frame[name]) for name in frame.columns))
    changes: dict[str, Any] = {}
    for name in verdict.commas:
        cells = written[name].map(with_point)
        numbers = pd.to_numeric(cells, errors="coerce")
        # A cell that is no number stays as it is, to be named later.
        changes[name] = numbers if bool((numbers.isna() == written[name].isna()).all()) else cells
    for name, problem in verdict.problems.items():
        problems.append(Problem("number", f"column {name!r}", problem))
        changes[name] = 0.0
    if verdict.commas:
        examples = found[verdict.commas[0]].examples
        shown = examples.get("comma") or examples["comma or thousands"]
        columns = "column" if len(verdict.commas) == 1 else "columns"
        where = f"{columns} {shorten(list(verdict.commas))[1:-1]}"
        notes.append(f"decimal commas, such as {shown!r}, are read in {where} (--decimal)")
    return frame.assign(**changes) if changes else frame


def evidence_in(frame: Any, texts: Collection[str]) -> dict[str, Evidence]:
    """How numbers are written in the columns of texts that have no other role."""
    return {
        name: evidence_of(_distinct(frame[name]))
        for name in frame.columns
        if fold(name) not in texts and frame[name].dtype.kind == "O"
    }


def _distinct(column: Any) -> Any:
    try:
        return column.dropna().unique()
    except TypeError:  # lists and objects of JSON
        return column.dropna()


def _has_fractions(column: Any) -> bool:
    return column.dtype.kind == "f" and bool(((column % 1) != 0)[column.notna()].any())

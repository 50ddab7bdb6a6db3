"""Problems of a data set: readers raise them together, `check` lists them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from gaussianmlr.errors import SHOWN_ROWS, DataError, summarised

Severity = Literal["error", "warning"]
_SHOWN_NAMES = 3  # of labels with one problem


@dataclass(frozen=True)
class Problem:
    """One thing wrong with a data set.

    Parameters
    ----------
    kind : str
        What it concerns: ``"order"``, ``"feature"``, ``"image"``, ``"split"``, ...
    where : str
        The row, file or column.
    message : str
        The offending value and what was expected.
    severity : {"error", "warning"}
        An error must be fixed before the data can be used; a warning should be looked at.

    Examples
    --------
    >>> print(Problem("order", "row 3", "empty bucket at the end"))
    row 3: empty bucket at the end
    """

    kind: str
    where: str
    message: str
    severity: Severity = "error"

    def __str__(self) -> str:
        return f"{self.where}: {self.message}"


class Problems(list[Problem]):
    """A list of problems that can be raised as one error; and notes of the reader."""

    def __init__(self, problems: Iterable[Problem] = ()) -> None:
        super().__init__(problems)
        self.notes: list[str] = []

    def add(self, kind: str, where: str, message: str, severity: Severity = "error") -> None:
        """Add a problem."""
        self.append(Problem(kind, where, message, severity))

    def raise_errors(self, source: str) -> None:
        """Raise one `DataError` for all errors among them: equal ones in one line, the first ten lines."""
        errors = [problem for problem in self if problem.severity == "error"]
        if not errors:
            return
        noun = "problem" if len(errors) == 1 else "problems"
        found = summary(errors)
        lines = [f"{len(errors)} {noun} in {source}:", *(f"  {problem}" for problem in found[:SHOWN_ROWS])]
        if len(found) > SHOWN_ROWS:
            lines.append(f"  ... and {len(found) - SHOWN_ROWS} more; `gmlr data check` lists all")
        raise DataError("\n".join(lines))


def summary(problems: Iterable[Problem]) -> list[Problem]:
    """Problems with those that are equal but for row and value, or but for the label, made one.

    Examples
    --------
    >>> labels = [Problem("label", f"label {label!r}", "never applies") for label in "abcde"]
    >>> print(*summary(labels))
    labels 'a', 'b', 'c' and 2 more: never applies
    >>> rows = [Problem("feature", f"row {row}", "'?' in column 'age'; expected 1") for row in range(9)]
    >>> print(*summary(rows))
    rows 0, 1, 2 and 6 more: '?' in column 'age'; expected 1
    """
    given = list(problems)
    of_rows = [
        (number, problem) for number, problem in enumerate(given) if re.match(r"row \d", problem.where)
    ]
    kinds: dict[tuple[str, Severity], list[tuple[int, Problem]]] = {}
    for number, problem in of_rows:
        kinds.setdefault((problem.kind, problem.severity), []).append((number, problem))
    found = dict(enumerate(given))
    for alike in kinds.values():
        rows = [(problem.where.removeprefix("row "), problem.message) for _, problem in alike]
        for line in summarised(rows):
            first, *others = (alike[place][0] for place in line.places)
            if others:
                found[first] = replace(given[first], where=line.where)
            for other in others:
                del found[other]
    return _labels_together(found.values())


def _labels_together(problems: Iterable[Problem]) -> list[Problem]:
    """Problems with equal ones of several labels made one."""
    found: dict[Problem, list[str]] = {}
    for problem in problems:
        name = problem.where.removeprefix("label ")
        alike = replace(problem, where="") if name != problem.where else problem
        found.setdefault(alike, []).append(name)
    joined = []
    for problem, names in found.items():
        more = f" and {len(names) - _SHOWN_NAMES} more" if len(names) > _SHOWN_NAMES else ""
        where = f"label{'s' if len(names) > 1 else ''} {', '.join(names[:_SHOWN_NAMES])}{more}"
        joined.append(problem if problem.where else replace(problem, where=where))
    return joined

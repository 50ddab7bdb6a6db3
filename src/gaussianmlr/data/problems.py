"""Problems of a data set: readers raise them together, `check` lists them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from gaussianmlr.errors import SHOWN_ROWS, DataError

Severity = Literal["error", "warning"]


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
    """A list of problems that can be raised as one error."""

    def add(self, kind: str, where: str, message: str, severity: Severity = "error") -> None:
        """Add a problem."""
        self.append(Problem(kind, where, message, severity))

    def raise_errors(self, source: str) -> None:
        """Raise one `DataError` for all errors among them, the first ten in full."""
        errors = [problem for problem in self if problem.severity == "error"]
        if not errors:
            return
        noun = "problem" if len(errors) == 1 else "problems"
        lines = [f"{len(errors)} {noun} in {source}:", *(f"  {problem}" for problem in errors[:SHOWN_ROWS])]
        if len(errors) > SHOWN_ROWS:
            lines.append(f"  ... and {len(errors) - SHOWN_ROWS} more; `gmlr data check` lists all")
        raise DataError("\n".join(lines))

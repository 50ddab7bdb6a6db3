"""Tables as Markdown, LaTeX and CSV, with every text escaped."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["csv_text", "latex", "latex_table", "markdown", "markdown_table"]

_LATEX = {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}",
    ">": r"\textgreater{}", "|": r"\textbar{}", **{sign: f"\\{sign}" for sign in "&%$#_{}"},
}  # fmt: skip


Cell = TypeVar("Cell")
_FORMULA = ("=", "+", "-", "@", "\t", "\n")


def latex(text: str) -> str:
    r"""Escape a text for LaTeX.

    Examples
    --------
    >>> latex("50% of a_b & {c}")
    '50\\% of a\\_b \\& \\{c\\}'
    """
    return "".join(_LATEX.get(sign, sign) for sign in " ".join(text.split()))


def markdown(text: str) -> str:
    r"""Escape a text for a cell of a Markdown table.

    Examples
    --------
    >>> markdown("a|b_c")
    'a\\|b\\_c'
    """
    return re.sub(r"([\\|*_`<\[&~])", r"\\\1", " ".join(text.split()))


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]], texts: int = 1) -> list[str]:
    r"""Lines of a Markdown table: the first `texts` columns are left-aligned, the others right-aligned.

    Examples
    --------
    >>> print(*markdown_table(["name", "F1"], [["a", "90.1"]]), sep="\n")
    | name | F1 |
    | --- | ---: |
    | a | 90.1 |
    """
    rule = ["---"] * texts + ["---:"] * (len(head) - texts)
    first, *others = (f"| {' | '.join(cells)} |" for cells in (head, rule, *rows))
    return [first.replace("|  |", "| |"), *others]


def latex_table(columns: str, groups: Iterable[tuple[Sequence[str], Iterable[Sequence[str]]]]) -> list[str]:
    r"""Lines of a booktabs ``tabular``: groups of rows, each with its own headings.

    Examples
    --------
    >>> print(*latex_table("lr", [(["name", "F1"], [["a", "90.1"]])]), sep="\n")
    \begin{tabular}{lr}
    \toprule
    name & F1 \\
    \midrule
    a & 90.1 \\
    \bottomrule
    \end{tabular}
    """
    lines = [rf"\begin{{tabular}}{{{columns}}}"]
    for number, (head, rows) in enumerate(groups):
        first, *others = (" & ".join(cells) + r" \\" for cells in (head, *rows))
        lines += [r"\midrule" if number else r"\toprule", first, r"\midrule", *others]
    return [*lines, r"\bottomrule", r"\end{tabular}"]


def csv_text(head: Sequence[str], rows: Iterable[Sequence[Any]], *, escape_formulas: bool = False) -> str:
    r"""Rows as CSV; `escape_formulas` makes texts that a spreadsheet would run as formulas `inert`.

    Examples
    --------
    >>> csv_text(["a", "b"], [[1, "x,y"]])
    'a,b\n1,"x,y"\n'
    >>> csv_text(["name", "size"], [["@a", -1]], escape_formulas=True)
    "name,size\n'@a,-1\n"
    """
    return csv_lines([head, *rows], escape_formulas=escape_formulas)


def csv_lines(rows: Iterable[Sequence[Any]], *, escape_formulas: bool = False) -> str:
    """Lines of CSV without a head, as `csv_text` writes them."""
    text = io.StringIO()
    chosen = (map(inert, row) for row in rows) if escape_formulas else rows
    csv.writer(text, lineterminator="\n").writerows(chosen)
    return text.getvalue()


def inert(cell: Cell) -> Cell | str:
    """Prefix a text that begins like a formula with an apostrophe; all else is unchanged.

    Carriage returns become line feeds: writers do not quote them, so they would start a new row.

    References
    ----------
    OWASP, "CSV injection".

    Examples
    --------
    >>> inert("=HYPERLINK(1)"), inert("-1.5"), inert(-1.5), inert("sky > sea")
    ("'=HYPERLINK(1)", '-1.5', -1.5, 'sky > sea')
    """
    if not isinstance(cell, str):
        return cell
    text = cell.replace("\r\n", "\n").replace("\r", "\n")
    try:
        float(text)
    except ValueError:
        return f"'{text}" if text.startswith(_FORMULA) else text
    return text


def inert_frame(frame: pd.DataFrame) -> pd.DataFrame:
    """A frame with all cells and column names `inert`."""
    return frame.map(inert).rename(columns=inert)

"""A comparison as Markdown, LaTeX and CSV: mean and standard deviation over the runs, in percent."""

from __future__ import annotations

import math
import re

from gaussianmlr._utils.display import NAMES
from gaussianmlr._utils.tables import csv_text, latex, latex_table, markdown, markdown_table
from gaussianmlr.comparison.verdict import LOWER, Comparison, Summary

__all__ = ["headings", "p_text", "spread_text", "to_csv", "to_latex", "to_markdown"]


def headings(comparison: Comparison) -> dict[str, str]:
    """Headings of the metrics, in their order."""
    return {name: NAMES.get(name, name) for name in comparison.metrics}


def spread_text(found: Summary | None, between: str = " ± ") -> str:
    """Mean and standard deviation in percent; only the mean for a single run.

    Examples
    --------
    >>> spread_text(Summary(0.7123, 0.0045, ())), spread_text(Summary(0.7, math.nan, ())), spread_text(None)
    ('71.23 ± 0.45', '70.00', '-')
    """
    if found is None:
        return "-"
    mean = f"{100 * found.mean:.2f}"
    return mean if math.isnan(found.std) else f"{mean}{between}{100 * found.std:.2f}"


def p_text(comparison: Comparison) -> dict[str, str]:
    """The adjusted p-value of every contender against the best, which has none.

    Small ones are shown as by `p_shown`.
    """
    found = {one.other: one.adjusted for one in comparison.verdict.against}
    return {name: p_shown(found[name]) if name in found else "" for name in comparison.ranking}


def p_shown(p: float) -> str:
    """A p-value with three decimals.

    Examples
    --------
    >>> p_shown(0.0004), p_shown(0.25)
    ('<0.001', '0.250')
    """
    return "<0.001" if p < 0.001 else f"{p:.3f}"


def to_markdown(comparison: Comparison) -> str:
    """A page with setup, table and verdict. The best of each column is bold."""
    heads, p = headings(comparison), p_text(comparison)
    rows = []
    for name in comparison.ranking:
        texts = {metric: spread_text(comparison.summary(name, metric)) for metric in heads}
        cells = [f"**{text}**" if name in comparison.best(metric) else text for metric, text in texts.items()]
        rows.append([markdown(name), *cells, p[name] or "best"])
    arrows = [f"{head} {'↓' if name in LOWER else '↑'}" for name, head in heads.items()]
    spread = "; mean ± standard deviation over the runs" if comparison.runs > 1 else ""
    lines = [
        f"# Comparison on {markdown(comparison.data)}",
        "",
        markdown(comparison.setup()) + ".",
        "",
        *markdown_table(["contender", *arrows, "p"], rows),
        "",
        f"Percent{spread}; bold: best mean. p: tau-b against the best, {comparison.verdict.test}.",
        "",
        markdown(comparison.verdict.text()),
        "",
        "Made with " + ", ".join(f"{name} {version}" for name, version in comparison.versions.items()) + ".",
    ]
    return "\n".join(lines) + "\n"


def to_latex(comparison: Comparison) -> str:
    r"""A table for a paper, which needs ``\usepackage{booktabs}``."""
    heads, p = headings(comparison), p_text(comparison)
    rows = []
    for name in comparison.ranking:
        cells = []
        for metric in heads:
            text = spread_text(comparison.summary(name, metric), r" \pm ")
            if name in comparison.best(metric):
                text = re.sub(r"^[-\d.]+", r"\\mathbf{\g<0>}", text)
            cells.append("--" if text == "-" else f"${text}$")
        rows.append([latex(name), *cells, f"${p[name]}$" if p[name] else "best"])
    arrows = [rf"{latex(head)} $\{'down' if name in LOWER else 'up'}arrow$" for name, head in heads.items()]
    spread = "Mean and standard deviation over the runs, in percent" if comparison.runs > 1 else "In percent"
    lines = [
        r"% needs \usepackage{booktabs}",
        r"\begin{table}",
        r"\centering",
        *latex_table(f"l{'c' * len(heads)}r", [(["Contender", *arrows, "$p$"], rows)]),
        rf"\caption{{{latex(comparison.setup())}. {spread}. $p$: tau-b against the best, "
        rf"{latex(comparison.verdict.test)}.}}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def to_csv(comparison: Comparison, *, escape_formulas: bool = False) -> str:
    """One row per contender and metric, in percent; `p` is the adjusted p of the paired test of tau-b."""
    p = {one.other: f"{one.adjusted:.6g}" for one in comparison.verdict.against}
    rows = []
    for name in comparison.ranking:
        first = comparison.of(name)[0]
        for metric in comparison.metrics:
            if found := comparison.summary(name, metric):
                std = "" if math.isnan(found.std) else f"{100 * found.std:.4f}"
                numbers = [f"{100 * found.mean:.4f}", std, len(found.values)]
                shown = p.get(name, "") if metric == "tau_b" else ""
                rows.append([comparison.data, name, first.method, first.supervision, metric, *numbers, shown])
    head = ["data", "contender", "method", "supervision", "metric", "value", "std", "runs", "p"]
    return csv_text(head, rows, escape_formulas=escape_formulas)

r"""A comparison as Markdown, LaTeX and CSV: mean and standard deviation over the runs, in percent."""

from __future__ import annotations

import csv
import io
import math
import re

from gaussianmlr.console import NAMES
from gaussianmlr.judging import LOWER, Comparison, Summary

__all__ = ["headings", "p_text", "spread_text", "to_csv", "to_latex", "to_markdown"]

_LATEX = {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}",
    ">": r"\textgreater{}", **{sign: f"\\{sign}" for sign in "&%$#_{}"},
}  # fmt: skip


def headings(comparison: Comparison) -> dict[str, str]:
    """What the columns of the metrics are called, in their order."""
    return {name: NAMES.get(name, name) for name in comparison.metrics}


def spread_text(found: Summary | None, between: str = " ± ") -> str:
    """Mean and standard deviation in percent; the mean alone for a single run.

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

    Small ones are cut as in `p_shown`.
    """
    found = {one.other: one.adjusted for one in comparison.verdict.against}
    return {name: p_shown(found[name]) if name in found else "" for name in comparison.ranking}


def p_shown(p: float) -> str:
    """A p-value, cut at what a table can show.

    Examples
    --------
    >>> p_shown(0.0004), p_shown(0.25)
    ('<0.001', '0.250')
    """
    return "<0.001" if p < 0.001 else f"{p:.3f}"


def to_markdown(comparison: Comparison) -> str:
    """A page: how, who, the table, the verdict. The best of each column is bold."""
    heads = headings(comparison)
    arrows = [f"{head} {'↓' if name in LOWER else '↑'}" for name, head in heads.items()]
    lines = [
        f"# Comparison on {comparison.data}",
        "",
        comparison.setup() + ".",
        "",
        "| contender | " + " | ".join(arrows) + " | p |",
        "| --- |" + " ---: |" * (len(arrows) + 1),
    ]
    p = p_text(comparison)
    for name in comparison.ranking:
        cells = []
        for metric in heads:
            text = spread_text(comparison.summary(name, metric))
            cells.append(f"**{text}**" if name in comparison.best(metric) else text)
        lines.append(f"| {_markdown(name)} | " + " | ".join(cells) + f" | {p[name] or 'best'} |")
    spread = "; mean ± standard deviation over the runs" if comparison.runs > 1 else ""
    lines += [
        "",
        f"Percent{spread}; bold: best mean. p: tau-b against the best, {comparison.verdict.test}.",
        "",
        _markdown(comparison.verdict.text()),
        "",
        "Made with " + ", ".join(f"{name} {version}" for name, version in comparison.versions.items()) + ".",
    ]
    return "\n".join(lines) + "\n"


def to_latex(comparison: Comparison) -> str:
    r"""A table for a paper, which needs ``\usepackage{booktabs}``."""
    heads = headings(comparison)
    arrows = [
        f"{_latex(head)} {'$' + chr(92) + ('down' if name in LOWER else 'up') + 'arrow$'}"
        for name, head in heads.items()
    ]
    lines = [
        r"% needs \usepackage{booktabs}",
        r"\begin{table}",
        r"\centering",
        r"\begin{tabular}{l" + "c" * len(heads) + "r}",
        r"\toprule",
        " & ".join(["Contender", *arrows, "$p$"]) + r" \\",
        r"\midrule",
    ]
    p = p_text(comparison)
    for name in comparison.ranking:
        cells = []
        for metric in heads:
            text = spread_text(comparison.summary(name, metric), r" \pm ")
            if name in comparison.best(metric):
                text = re.sub(r"^[-\d.]+", r"\\mathbf{\g<0>}", text)
            cells.append("--" if text == "-" else f"${text}$")
        lines.append(" & ".join([_latex(name), *cells, f"${p[name]}$" if p[name] else "best"]) + r" \\")
    spread = "Mean and standard deviation over the runs, in percent" if comparison.runs > 1 else "In percent"
    lines += [
        r"\bottomrule",
        r"\end{tabular}",
        rf"\caption{{{_latex(comparison.setup())}. {spread}. $p$: tau-b against the best, "
        rf"{_latex(comparison.verdict.test)}.}}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def to_csv(comparison: Comparison) -> str:
    """A row a contender and metric, in percent; `p` is that of the paired test of tau-b, adjusted."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["data", "contender", "method", "supervision", "metric", "value", "std", "runs", "p"])
    p = {one.other: one.adjusted for one in comparison.verdict.against}
    for name in comparison.ranking:
        first = comparison.of(name)[0]
        for metric in comparison.metrics:
            found = comparison.summary(name, metric)
            if found is None:
                continue
            std = "" if math.isnan(found.std) else f"{100 * found.std:.4f}"
            shown = f"{p[name]:.6g}" if metric == "tau_b" and name in p else ""
            writer.writerow(
                [comparison.data, name, first.method, first.supervision, metric,
                 f"{100 * found.mean:.4f}", std, len(found.values), shown]
            )  # fmt: skip
    return text.getvalue()


def _latex(text: str) -> str:
    """A text as LaTeX prints it."""
    return "".join(_LATEX.get(sign, sign) for sign in text)


def _markdown(text: str) -> str:
    """A text that stays in its cell of a table."""
    return re.sub(r"([|*_`<])", r"\\\1", text)

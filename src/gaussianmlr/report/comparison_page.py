"""The page of a comparison."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markupsafe import Markup

from gaussianmlr._utils.display import NAMES, clock
from gaussianmlr._utils.strict_json import dumps, read_json
from gaussianmlr._utils.tables import csv_text
from gaussianmlr.comparison.cells import Cell, cell_files, metrics_of, read_cell, versions_of
from gaussianmlr.comparison.plot import ComparisonDisplay
from gaussianmlr.comparison.run import FORMAT
from gaussianmlr.comparison.splits import Run
from gaussianmlr.comparison.tables import (
    headings,
    p_shown,
    p_text,
    spread_text,
    to_csv,
    to_latex,
    to_markdown,
)
from gaussianmlr.comparison.verdict import LEVEL, LOWER, Comparison
from gaussianmlr.errors import DataError
from gaussianmlr.report.downloads import Download
from gaussianmlr.report.page import Data, page
from gaussianmlr.report.recipe_tables import recipe_section, setting, versions_section
from gaussianmlr.report.svg import drawn

__all__ = ["Found", "comparison_page", "read_comparison"]


@dataclass(frozen=True)
class Found:
    """Contents of the folder of a comparison.

    Attributes
    ----------
    comparison : Comparison or None
        Over the runs that every contender has finished; None if there are none.
    cells : list of Cell
        All finished cells.
    missing : list of str
        Requested cells that are missing, by contender and run.
    broken : list of str
        Files that cannot be read as cells.
    plan : dict
        Data, splits and recipe shared by all cells.
    """

    comparison: Comparison | None
    cells: list[Cell]
    missing: list[str]
    broken: list[str]
    plan: dict[str, Any]


def read_comparison(folder: Path) -> Found:
    """Read the cells of a comparison, finished or not.

    Raises
    ------
    DataError
        If the folder holds no comparison, or its plan does not name the contenders.
    """
    file = folder / "plan.json"
    try:
        plan = read_json(file)
        if plan["format"] != FORMAT:
            raise ValueError(f"its format is {plan['format']!r}")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(f"{file} is not the plan of a comparison: {error}") from None
    if "asked" not in plan:
        raise DataError(
            f"{file} does not name the contenders; the same `gmlr compare` adds them without "
            "training anything again"
        )
    cells, broken = [], []
    for one in cell_files(folder / "cells"):
        try:
            cells.append(read_cell(one))
        except DataError:
            broken.append(one.name)
    asked = plan["asked"]
    runs = [Run(*run) for run in asked["runs"]]
    there = {(cell.contender, Run(cell.seed, cell.fold)): cell for cell in cells}
    missing = [
        f"{name}, {run.name}" for run in runs for name in asked["contenders"] if (name, run) not in there
    ]
    return Found(_compared(plan, runs, there), cells, missing, broken, plan)


def _compared(plan: dict[str, Any], runs: list[Run], there: dict[tuple[str, Run], Cell]) -> Comparison | None:
    """The contenders with any finished cell, compared on the runs that all of them have finished."""
    asked = plan["asked"]
    names = [name for name in asked["contenders"] if any((name, run) in there for run in runs)]
    whole_runs = [run for run in runs if names and all((name, run) in there for name in names)]
    if not whole_runs:
        return None
    return Comparison(
        data=asked["name"],
        contenders=tuple(names),
        cells=tuple(there[name, run] for run in whole_runs for name in names),
        one_test=asked["own_test"] or len(whole_runs) == 1,
        drawn=not asked["own_test"],
        folds=plan["folds"],
        recipe=plan["recipe"],
    )


def comparison_page(folder: Path, *, escape_formulas: bool = False) -> bytes:
    """The report of the comparison in a folder."""
    found = read_comparison(folder)
    if not found.cells:
        raise DataError(f"{folder}: no cell of the comparison is finished yet")
    comparison = found.comparison
    sections = {"glance": _glance(found)}
    if comparison is not None:
        sections["methods"] = _methods(comparison)
        sections["tests"] = _tests(comparison)
        # One drawing per metric, so that they also fit on small screens.
        panels = [_panel(comparison, metric) for metric in comparison.metrics]
        sections["picture"] = {"several": comparison.runs > 1, "panels": panels}
    sections["cells"] = _cells(found)
    sections["recipe"] = recipe_section(found.plan["recipe"], _recipes(found))
    digests = {"fingerprint of the data": found.plan["data"]}
    sections["versions"] = versions_section(versions_of(found.cells), digests)
    sections["downloads"] = {"links": _links(found, escape_formulas)}
    name = found.plan["asked"]["name"]
    count = len({cell.contender for cell in found.cells})
    return page(f"Comparison on {name}", f"{count} contenders, {len(found.cells)} cells", sections)


def _glance(found: Found) -> Data:
    comparison, notes = found.comparison, []
    if comparison is None:
        notes.append("No run has been finished by every contender yet, so nothing can be compared.")
    if found.missing:
        shown = "; ".join(found.missing[:12]) + (" ..." if len(found.missing) > 12 else "")
        count = f"{len(found.missing)} cell{'s are' if len(found.missing) > 1 else ' is'} missing"
        counted = (
            "" if comparison is None else " Means and tests use the runs that all contenders have finished."
        )
        notes.append(f"{count}: {shown}.{counted} The same `gmlr compare` resumes.")
    if found.broken:
        notes.append(f"Unreadable and left out: {', '.join(found.broken)}.")
    return {
        "verdict": comparison.verdict.text() if comparison else None,
        "setup": comparison.setup() if comparison else None,
        "figures": None,
        "notes": notes,
        "known": [
            ("contenders", len({cell.contender for cell in found.cells})),
            ("runs compared", comparison.runs if comparison else 0),
            ("cells finished", f"{len(found.cells)} of {len(found.cells) + len(found.missing)}"),
            ("training time, all cells", clock(sum(cell.seconds for cell in found.cells))),
        ],
        "labels": None,
    }


def _methods(comparison: Comparison) -> Data:
    """Rows of pairs: a text, and whether it is the best of its column."""
    heads, p = headings(comparison), p_text(comparison)
    rows = []
    for name in comparison.ranking:
        cells = comparison.of(name)
        seconds = f"{sum(cell.seconds for cell in cells) / len(cells):.1f}"
        means = [
            (spread_text(comparison.summary(name, metric)), name in comparison.best(metric))
            for metric in heads
        ]
        rows.append([(name, False), *means, (p[name] or "best", False), (seconds, False)])
    arrows = [f"{head}\N{NO-BREAK SPACE}{'↓' if metric in LOWER else '↑'}" for metric, head in heads.items()]
    return {"several": comparison.runs > 1, "head": ["contender", *arrows, "p", "seconds"], "rows": rows}


def _tests(comparison: Comparison) -> Data:
    verdict = comparison.verdict
    rows = [
        [
            f"{verdict.best} against {one.other}",
            f"{100 * one.difference:+.2f}",
            p_shown(one.p),
            p_shown(one.adjusted),
            "beyond noise" if one.adjusted < LEVEL else "no clear difference",
        ]
        for one in verdict.against
    ]
    test = verdict.test[:1].upper() + verdict.test[1:]
    return {"verdict": verdict.text(), "test": test, "level": LEVEL, "rows": rows}


def _panel(comparison: Comparison, metric: str) -> Markup:
    display = ComparisonDisplay.from_comparison(comparison, [metric])
    means = (f"{name} {100 * comparison.mean(name, metric):.2f}" for name in comparison.ranking)
    words = f"{NAMES.get(metric, metric)}, mean in percent: {', '.join(means)}"
    return drawn(f"panel-{metric}", words, (3.9, 0.95 + 0.3 * len(comparison.contenders)), display.plot)


def _cells(found: Found) -> Data:
    names = metrics_of(found.cells)
    counted = {id(cell) for cell in found.comparison.cells} if found.comparison else set()
    rows = []
    for cell in sorted(found.cells, key=lambda one: (one.seed, one.fold or 0, one.contender)):
        sizes = " / ".join(f"{cell.sizes[part]:,}" for part in ("train", "validation", "test"))
        values = [f"{100 * cell.metrics[name]:.2f}" if name in cell.metrics else "-" for name in names]
        fold = "-" if cell.fold is None else cell.fold
        compared = "yes" if id(cell) in counted else "no"
        rows.append([cell.contender, cell.seed, fold, *values, sizes, f"{cell.seconds:.1f}", compared])
    head = ["contender", "seed", "fold", *(NAMES.get(name, name) for name in names)]
    return {"head": [*head, "train / validation / test", "seconds", "compared"], "rows": rows}


def _recipes(found: Found) -> list[list[str]]:
    """The settings of each contender that differ from the shared recipe."""
    base: dict[str, Any] = found.plan["recipe"]
    rows: dict[str, list[str]] = {}
    for cell in found.cells:
        text = str(cell.about.get("estimator", ""))
        if recipe := cell.about.get("recipe"):
            own = {
                name: value for name, value in recipe.items() if value != base.get(name) and name != "seed"
            }
            text = ", ".join(f"{name} = {setting(value)}" for name, value in own.items()) or "as above"
        rows.setdefault(cell.contender, [cell.contender, text])
    return list(rows.values())


def _links(found: Found, escape_formulas: bool) -> list[Download]:
    names, comparison = metrics_of(found.cells), found.comparison
    rows = (
        [cell.contender, cell.method, cell.supervision, cell.seed, "" if cell.fold is None else cell.fold]
        + [cell.metrics.get(name, "") for name in names]
        + [cell.seconds]
        for cell in found.cells
    )
    head = ["contender", "method", "supervision", "seed", "fold", *names, "seconds"]
    cells = csv_text(head, rows, escape_formulas=escape_formulas)
    links = [Download("cells.csv", cells, "every cell; metrics as fractions")]
    if comparison is None:
        return links
    table = to_csv(comparison, escape_formulas=escape_formulas)
    whole = dumps(comparison.to_dict(), indent=1, ensure_ascii=False)
    return [
        Download("comparison.csv", table, "the table, in percent"),
        *links,
        Download("comparison.json", whole, "table, tests, recipe and versions"),
        Download("comparison.md", to_markdown(comparison), "the table as Markdown"),
        Download("comparison.tex", to_latex(comparison), "the table as LaTeX"),
    ]

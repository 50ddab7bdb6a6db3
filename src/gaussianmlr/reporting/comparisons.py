"""The page of a comparison."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gaussianmlr.comparing import FORMAT
from gaussianmlr.console import NAMES, clock
from gaussianmlr.errors import DataError
from gaussianmlr.judging import LEVEL, LOWER, Cell, Comparison
from gaussianmlr.plots import ComparisonDisplay
from gaussianmlr.reporting.downloads import csv_text, downloads_section
from gaussianmlr.reporting.drawing import drawn
from gaussianmlr.reporting.html import Html, Section, download, element, facts, note, page, section, table
from gaussianmlr.reporting.recipes import made_with, recipe_section, setting
from gaussianmlr.splitting import Run
from gaussianmlr.tabulating import headings, p_shown, p_text, spread_text, to_csv, to_latex, to_markdown

__all__ = ["Found", "comparison_page", "read_comparison"]

_COLUMNS = (
    "bold: best mean. p: tau-b against the best, adjusted. Seconds: time of learning, mean over the runs."
)

_MARKS = "Blue circles were trained on orders (strong), orange squares on relevance alone (weak)."


@dataclass(frozen=True)
class Found:
    """What lies in the folder of a comparison.

    Attributes
    ----------
    comparison : Comparison or None
        Of the runs that every contender has finished; None where there is none.
    cells : list of Cell
        Everything that is finished.
    missing : list of str
        What was asked for and is not there, by contender and run.
    broken : list of str
        Files that hold no cell.
    plan : dict
        Data, splits and recipe that all of them share.
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
        For a folder that holds none, or none that says who takes part.
    """
    file = folder / "plan.json"
    try:
        plan = json.loads(file.read_text("utf-8"))
        if plan["format"] != FORMAT:
            raise ValueError(f"its format is {plan['format']!r}")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(f"{file} is no plan of a comparison: {error}") from None
    if "asked" not in plan:
        raise DataError(
            f"{file} does not say who was asked for; the same `gmlr compare` again adds it, and trains "
            "nothing anew"
        )
    cells, broken = [], []
    for one in sorted((folder / "cells").glob("*.json")):
        try:
            cells.append(Cell(**json.loads(one.read_text("utf-8"))))
        except (OSError, ValueError, TypeError):
            broken.append(one.name)
    asked = plan["asked"]
    runs = [Run(*run) for run in asked["runs"]]
    there = {(cell.contender, Run(cell.seed, cell.fold)): cell for cell in cells}
    missing = [
        f"{name}, {run.name}" for run in runs for name in asked["contenders"] if (name, run) not in there
    ]
    return Found(_compared(plan, runs, there), cells, missing, broken, plan)


def _compared(plan: dict[str, Any], runs: list[Run], there: dict[tuple[str, Run], Cell]) -> Comparison | None:
    """A fair comparison: contenders that have finished anything, on the runs that all of them have."""
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


def comparison_page(folder: Path) -> bytes:
    """The report of the comparison in a folder."""
    found = read_comparison(folder)
    if not found.cells:
        raise DataError(f"{folder}: no cell of the comparison is finished yet")
    comparison = found.comparison
    sections = [_glance(found)]
    if comparison is not None:
        sections += [_methods(comparison), _tests(comparison), _picture(comparison)]
    sections += [_cells(found), _recipes(found), _versions(found), downloads_section(_links(found))]
    name = found.plan["asked"]["name"]
    count = len({cell.contender for cell in found.cells})
    return page(f"Comparison on {name}", f"{count} contenders, {len(found.cells)} cells", sections)


def _glance(found: Found) -> Section:
    comparison = found.comparison
    parts: list[Any] = []
    if comparison is None:
        parts.append(note("No run has been finished by every contender yet, so that none can be compared."))
    else:
        parts += [
            element("p", comparison.verdict.text(), class_="verdict"),
            element("p", f"{comparison.setup()}."),
        ]
    if found.missing:
        shown = "; ".join(found.missing[:12]) + (" ..." if len(found.missing) > 12 else "")
        count = f"{len(found.missing)} cell{'s are' if len(found.missing) > 1 else ' is'} missing"
        counted = "" if comparison is None else " Means and tests are over the runs that all contenders have."
        parts.append(note(f"{count}: {shown}.{counted} The same `gmlr compare` goes on."))
    if found.broken:
        parts.append(note(f"Not readable, and left out: {', '.join(found.broken)}."))
    seconds = sum(cell.seconds for cell in found.cells)
    pairs = [
        ("contenders", len({cell.contender for cell in found.cells})),
        ("runs compared", comparison.runs if comparison else 0),
        ("cells finished", f"{len(found.cells)} of {len(found.cells) + len(found.missing)}"),
        ("time of learning, all cells", clock(seconds)),
    ]
    return section("At a glance", parts, facts(pairs), anchor="glance")


def _methods(comparison: Comparison) -> Section:
    heads, p = headings(comparison), p_text(comparison)
    rows = []
    for name in comparison.ranking:
        row: list[Any] = [name]
        for metric in heads:
            text = spread_text(comparison.summary(name, metric))
            row.append(element("b", text) if name in comparison.best(metric) else text)
        cells = comparison.of(name)
        row += [p[name] or "best", f"{sum(cell.seconds for cell in cells) / len(cells):.1f}"]
        rows.append(row)
    arrows = [f"{head}\N{NO-BREAK SPACE}{'↓' if metric in LOWER else '↑'}" for metric, head in heads.items()]
    head = ["contender", *arrows, "p", "seconds"]
    spread = "mean ± standard deviation over the runs; " if comparison.runs > 1 else ""
    return section(
        "Methods",
        table("Contenders by tau-b", head, rows, numbers=set(range(1, len(head))), hide=True),
        element("p", f"In percent; {spread}{_COLUMNS}", class_="soft small"),
        anchor="methods",
    )


def _tests(comparison: Comparison) -> Section:
    verdict = comparison.verdict
    if not verdict.against:
        return section("Who is better", element("p", verdict.text()), anchor="tests")
    rows = [
        [
            f"{verdict.best} against {one.other}",
            f"{100 * one.difference:+.2f}",
            p_shown(one.p),
            p_shown(one.adjusted),
            "beyond noise" if one.adjusted < LEVEL else "not told apart",
        ]
        for one in verdict.against
    ]
    how = verdict.test[:1].upper() + verdict.test[1:]
    head = ("pair", "difference of tau-b", "p", "adjusted p", "verdict")
    return section(
        "Who is better",
        element("p", f"{how}. A difference counts below an adjusted p of {LEVEL}."),
        table("Paired tests of tau-b, in percent", head, rows, numbers={1, 2, 3}, hide=True),
        anchor="tests",
    )


def _picture(comparison: Comparison) -> Section:
    """A drawing a metric, so that they find their places on small screens too."""
    several = "mean ± standard deviation; below it, the runs. " if comparison.runs > 1 else "one run each. "
    return section(
        "Picture",
        element("p", f"A panel a metric, a mark a contender: {several}{_MARKS}"),
        element("div", [_panel(comparison, metric) for metric in comparison.metrics], class_="panels"),
        anchor="picture",
    )


def _panel(comparison: Comparison, metric: str) -> Html:
    display = ComparisonDisplay.from_comparison(comparison, [metric])
    means = (f"{name} {100 * comparison.mean(name, metric):.2f}" for name in comparison.ranking)
    words = f"{NAMES.get(metric, metric)}, mean in percent: {', '.join(means)}"
    return drawn(f"panel-{metric}", words, (3.9, 0.95 + 0.3 * len(comparison.contenders)), display.plot)


def _cells(found: Found) -> Section:
    names = list(dict.fromkeys(name for cell in found.cells for name in cell.metrics))
    counted = {id(cell) for cell in found.comparison.cells} if found.comparison else set()
    rows = []
    for cell in sorted(found.cells, key=lambda one: (one.seed, one.fold or 0, one.contender)):
        sizes = " / ".join(f"{cell.sizes[part]:,}" for part in ("train", "validation", "test"))
        values = [f"{100 * cell.metrics[name]:.2f}" if name in cell.metrics else "-" for name in names]
        rows.append(
            [
                cell.contender,
                cell.seed,
                "-" if cell.fold is None else cell.fold,
                *values,
                sizes,
                f"{cell.seconds:.1f}",
                "yes" if id(cell) in counted else "no",
            ]
        )
    head = ["contender", "seed", "fold", *(NAMES.get(name, name) for name in names)]
    head += ["train / validation / test", "seconds", "compared"]
    return section(
        "Cells",
        element(
            "p",
            "A cell is a contender on one split with one seed, measured once on the test part. In percent.",
        ),
        table("Cells", head, rows, numbers=set(range(1, len(head) - 1)), hide=True),
        anchor="cells",
    )


def _recipes(found: Found) -> Section:
    base = found.plan["recipe"]
    rows = []
    for name in dict.fromkeys(cell.contender for cell in found.cells):
        about = next(cell.about for cell in found.cells if cell.contender == name)
        if "recipe" in about:
            own = {
                key: value
                for key, value in about["recipe"].items()
                if value != base.get(key) and key != "seed"
            }
            text = ", ".join(f"{key} = {setting(value)}" for key, value in own.items()) or "as above"
        else:
            text = str(about.get("estimator", ""))
        rows.append([name, element("code", text)])
    return recipe_section(
        base,
        element("h3", "What contenders do differently"),
        table("By contender", ("contender", "settings of its own"), rows, hide=True),
        words="The budget that all networks share; seeds are those of the cells.",
    )


def _versions(found: Found) -> Section:
    versions: dict[str, dict[str, None]] = {}
    for cell in found.cells:
        for name, version in cell.versions.items():
            versions.setdefault(name, {})[version] = None
    shown = {name: ", ".join(known) for name, known in versions.items()}
    return made_with(shown, None, {"fingerprint of the data": found.plan["data"]})


def _links(found: Found) -> list[Html]:
    names = list(dict.fromkeys(name for cell in found.cells for name in cell.metrics))
    rows = (
        [cell.contender, cell.method, cell.supervision, cell.seed, "" if cell.fold is None else cell.fold]
        + [cell.metrics.get(name, "") for name in names]
        + [cell.seconds]
        for cell in found.cells
    )
    head = ["contender", "method", "supervision", "seed", "fold", *names, "seconds"]
    links = [download("cells.csv", csv_text(head, rows), "text/csv", "every cell; metrics as fractions")]
    if found.comparison is None:
        return links
    whole_of_it = json.dumps(found.comparison.to_dict(), indent=1, ensure_ascii=False)
    return [
        download("comparison.csv", to_csv(found.comparison), "text/csv", "the table, in percent"),
        *links,
        download("comparison.json", whole_of_it, "application/json", "table, tests, recipe and versions"),
        download("comparison.md", to_markdown(found.comparison), "text/markdown", "the table as Markdown"),
        download("comparison.tex", to_latex(found.comparison), "text/plain", "the table as LaTeX"),
    ]

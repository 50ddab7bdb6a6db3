"""Tables from cells: our numbers, those of the paper, the difference, and what was not run."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gaussianmlr._utils.files import write_text
from gaussianmlr._utils.tables import csv_text, latex, latex_table, markdown, markdown_table
from gaussianmlr.model.presets import Preset
from gaussianmlr.paper.cells import METRICS, Cell, short
from gaussianmlr.paper.plans import FINE_TUNED, cells_of
from gaussianmlr.paper.published import Number, published

__all__ = ["Row", "Table", "make_table", "to_csv", "to_latex", "to_markdown", "write_tables"]

Landed = Mapping[Cell, Mapping[str, Any]]

TITLES = {
    "gray": "Ranked MNIST, gray",
    "color": "Ranked MNIST, colour",
    "real": "Real data",
    "error-bars": "Real data, error bars",
    "small-change": "Ranked MNIST, small change",
    "rivals": "Rivals and ablations",
}
METHODS = {
    "crpc": "CRPC",
    "lsep": "LSEP",
    "gmlr": "GaussianMLR",
    "ranknet": "RankNet",
    "zlpr": "ZLPR",
    "pl": "Plackett-Luce",
    "br": "Binary relevance",
}
HEADS = {
    "tau_b": ("tau-b", r"$\tau_b$", 1),
    "spearman_rho": ("rho", r"$\rho$", 1),
    "gamma": ("gamma", r"$\gamma$", 1),
    "hamming_loss": ("HL", "HL", -1),
    "max1_error": ("M-1", "M-1", -1),
    "f1": ("F1", "F1", 1),
}  # name, LaTeX, +1 if larger is better


@dataclass(frozen=True)
class Row:
    """One method on one data set, over all its finished seeds."""

    cell: Cell  # with seed 0
    ours: dict[str, Number] | None
    paper: dict[str, Number] | None
    wanted: int  # seeds

    @property
    def title(self) -> str:
        """The method in words, with deviations from the preset."""
        cell = self.cell
        tuned = set(FINE_TUNED) <= set(cell.settings)
        parts = ["fine-tuned"] if tuned else []
        parts += [short(text) for text in cell.settings if not (tuned and text in FINE_TUNED)]
        parts += [] if cell.images is None else [f"{cell.images:,} images"]
        parts += filter(None, [cell.reading])
        more = f" ({', '.join(parts)})" if parts else ""
        return f"{METHODS.get(cell.method, cell.method)} {cell.supervision}{more}"


@dataclass(frozen=True)
class Table:
    """A table: rows by data set, and notes."""

    name: str
    preset: str
    rows: tuple[Row, ...]
    notes: tuple[str, ...]

    @property
    def datasets(self) -> tuple[str, ...]:
        """The data sets, in order."""
        return tuple(dict.fromkeys(row.cell.dataset for row in self.rows))


def make_table(name: str, landed: Landed, preset: Preset, seeds: int | None = None) -> Table:
    """Build a table from the finished cells.

    Parameters
    ----------
    name : str
        One of `plans.TABLES`.
    landed : mapping
        Cells and their contents, from `read_cells`.
    preset : {"paper", "cpu", "smoke"}
        Preset of the cells.
    seeds : int, optional
        As in `cells_of`; finished seeds beyond it count too.

    Examples
    --------
    >>> table = make_table("small-change", {}, "cpu")
    >>> table.rows[-1].title, table.rows[-1].ours, table.rows[-1].paper["tau_b"].mean
    ('GaussianMLR strong', None, 92.65)
    """
    wanted: dict[Cell, int] = {}
    for cell in cells_of(name, preset, seeds):
        wanted[cell.at(seed=0)] = wanted.get(cell.at(seed=0), 0) + 1
    if name == "rivals":  # and all other variants
        for cell in landed:
            if cell.preset == preset and (cell.settings or cell.images is not None):
                wanted.setdefault(cell.at(seed=0), 1)
    rows = []
    used: list[Mapping[str, Any]] = []
    for cell, count in wanted.items():
        runs = [facts for one, facts in landed.items() if one.at(seed=0) == cell]
        used += runs
        rows.append(Row(cell, _mean(runs), _paper(name, cell), count))
    return Table(name, preset, tuple(rows), tuple(_notes(rows, used)))


def _mean(runs: Sequence[Mapping[str, Any]]) -> dict[str, Number] | None:
    if not runs:
        return None
    found = {}
    for name in METRICS:
        values = [float(run["metrics"][name]) for run in runs]
        std = statistics.stdev(values) if len(values) > 1 else None
        found[name] = Number(statistics.fmean(values), std, len(values))
    return found


def _paper(table: str, cell: Cell) -> dict[str, Number] | None:
    # Rivals are shown beside the paper's numbers for their data set.
    tables = ("gray", "color", "small-change", "error-bars") if table == "rivals" else (table,)
    found = (published().get((one, cell.dataset, cell.method, cell.supervision)) for one in tables)
    return next(filter(None, found), None)


def _notes(rows: Sequence[Row], used: Sequence[Mapping[str, Any]]) -> Iterable[str]:
    yield from _missing(rows)
    if not used:
        return
    seen = sorted({int(run["images_seen"]) for run in used})
    yield f"Training images seen (all stages and folds together): {', '.join(f'{n:,}' for n in seen)}."
    yield from _data_notes([run["data"] for run in used if "data" in run])
    recipes = [run["recipe"] for run in used if "recipe" in run]
    if networks := sorted({f"{recipe['backbone']}, head {recipe['head']}" for recipe in recipes}):
        yield f"Networks: {'; '.join(networks)}. The recipe of every cell is in its file."
    hours = sum(float(run["seconds"]) for run in used) / 3600
    if hours >= 0.05:
        yield f"Training time of these cells together: {hours:.2f} hours."


def _missing(rows: Sequence[Row]) -> Iterable[str]:
    """Rows that were not run, and rows with too few seeds."""
    by_set: dict[str, list[str]] = {}
    for row in rows:
        if row.ours is None:
            by_set.setdefault(row.cell.dataset, []).append(row.title)
    if by_set:
        count = sum(map(len, by_set.values()))
        listed = "; ".join(f"{name}: {', '.join(titles)}" for name, titles in by_set.items())
        yield f"Not run: {count} of {len(rows)} rows. {listed}."
    for row in rows:
        if row.ours is not None and (count := row.ours["tau_b"].seeds) < row.wanted:
            yield f"{row.cell.dataset}, {row.title}: {count} of {row.wanted} seeds run."


def _data_notes(data: Sequence[Mapping[str, Any]]) -> Iterable[str]:
    for protocol in sorted({one["protocol"] for one in data if "protocol" in one}):
        yield f"Protocol: {protocol}; the paper tested on its own split, so the difference is a guide only."
    for count in sorted({one["test_images"] for one in data if "test_images" in one}):
        yield f"Measured once on {count:,} test images."
    if digits := sorted({one["digits"]["test"]["name"] for one in data if "digits" in one}):
        yield f"Test digits: {'; '.join(digits)}."


def best_of(rows: Sequence[Row], dataset: str, supervision: str) -> dict[str, float]:
    """The best of our means, by metric, among the rows of a data set and a supervision."""
    found = {}
    for name, (_, _, sign) in HEADS.items():
        values = [
            row.ours[name].mean
            for row in rows
            if row.ours and (row.cell.dataset, row.cell.supervision) == (dataset, supervision)
        ]
        if values:
            found[name] = sign * max(sign * value for value in values)
    return found


def _number(value: Number) -> str:
    return f"{value.mean:.2f}" if value.std is None else f"{value.mean:.2f} ± {value.std:.2f}"


def _lines(table: Table, dataset: str) -> Iterable[tuple[str, str, list[str], list[bool]]]:
    """Lines of a data set: title, origin, the six texts, and which of them are our best."""
    for row in table.rows:
        if row.cell.dataset != dataset:
            continue
        best = best_of(table.rows, dataset, row.cell.supervision)
        if row.ours is None:
            yield row.title, "ours", ["not run"] * len(METRICS), [False] * len(METRICS)
        else:
            texts = [_number(row.ours[name]) for name in METRICS]
            yield row.title, "ours", texts, [row.ours[name].mean == best[name] for name in METRICS]
        if row.paper is not None:
            yield "", "paper", [_number(row.paper[name]) for name in METRICS], [False] * len(METRICS)
            if row.ours is not None:
                gaps = [f"{row.ours[name].mean - row.paper[name].mean:+.2f}" for name in METRICS]
                yield "", "difference", gaps, [False] * len(METRICS)


def to_markdown(table: Table) -> str:
    """The table as Markdown; our best weak and our best strong result are bold."""
    lines = [f"# {TITLES[table.name]}", "", f"Preset `{table.preset}`, percent. tau-b, rho, gamma and F1: "]
    lines[-1] += "larger is better; HL and M-1: smaller is better. Bold: our best of each supervision."
    for dataset in table.datasets:
        rows = [
            [markdown(title), whose, *(f"**{text}**" if mark else text for text, mark in zip(texts, marks))]
            for title, whose, texts, marks in _lines(table, dataset)
        ]
        head = ["method", "", *(head for head, _, _ in HEADS.values())]
        lines += ["", f"## {dataset}", "", *markdown_table(head, rows, texts=2)]
    lines += ["", *(f"- {markdown(note)}" for note in table.notes)] if table.notes else []
    return "\n".join(lines) + "\n"


def to_latex(table: Table) -> str:
    """The table as LaTeX, for the package booktabs."""
    arrows = [rf"{head} $\{'up' if sign > 0 else 'down'}arrow$" for _, head, sign in HEADS.values()]
    groups = []
    for dataset in table.datasets:
        rows = []
        for title, whose, texts, marks in _lines(table, dataset):
            plain = [text.replace(" ± ", r" $\pm$ ").replace("-", "$-$") for text in texts]
            shown = [rf"\textbf{{{text}}}" if mark else text for text, mark in zip(plain, marks)]
            rows.append([latex(title), whose, *shown])
        groups.append(([rf"\multicolumn{{2}}{{l}}{{\textbf{{{latex(dataset)}}}}}", *arrows], rows))
    lines = latex_table("ll" + "r" * len(HEADS), groups)
    return "\n".join([*lines, *(f"% {note}" for note in table.notes)]) + "\n"


def to_csv(table: Table) -> str:
    """The table as CSV, one line per number; empty where nothing was run or printed."""
    rows = []
    for row in table.rows:
        cell = row.cell
        parts = [*cell.settings, *([] if cell.images is None else [f"images={cell.images}"])]
        variant = " ".join([*parts, *filter(None, [cell.reading])])
        for name in METRICS:
            ours = row.ours[name] if row.ours else None
            paper = row.paper[name] if row.paper else None
            place = [table.name, table.preset, cell.dataset, cell.method, cell.supervision, variant, name]
            of_ours = [f"{ours.mean:.4f}", _std(ours, ".4f"), ours.seeds] if ours else ["", "", 0]
            of_paper = [paper.mean, _std(paper, "")] if paper else ["", ""]
            gap = f"{ours.mean - paper.mean:.4f}" if ours and paper else ""
            rows.append([*place, *of_ours, *of_paper, gap])
    head = ["table", "preset", "dataset", "method", "supervision", "variant", "metric"]
    return csv_text([*head, "ours", "ours_std", "seeds", "paper", "paper_std", "difference"], rows)


def _std(value: Number, form: str) -> str:
    return "" if value.std is None else format(value.std, form)


def write_tables(
    names: Iterable[str], landed: Landed, preset: Preset, folder: str | Path, seeds: int | None = None
) -> list[Path]:
    """Write tables as Markdown, LaTeX and CSV, and return the files.

    Parameters
    ----------
    names : iterable of str
        Names from `plans.TABLES`.
    landed : mapping
        The finished cells.
    preset, seeds
        As in `make_table`.
    folder : path-like
        Folder of the files ``NAME-PRESET.md``, ``.tex`` and ``.csv``.
    """
    written = []
    for name in names:
        table = make_table(name, landed, preset, seeds)
        for suffix, text in (("md", to_markdown(table)), ("tex", to_latex(table)), ("csv", to_csv(table))):
            file = Path(folder) / f"{name}-{preset}.{suffix}"
            write_text(file, text)
            written.append(file)
    return written

"""Tables from cells: our numbers, those of the paper, the difference, and what was not run."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gaussianmlr._utils.files import write_text
from gaussianmlr._utils.tables import csv_text, latex, latex_table, markdown, markdown_table
from gaussianmlr.metrics.bootstrap import Interval
from gaussianmlr.model.presets import Preset
from gaussianmlr.paper.cells import METRICS, MORE, TESTED, TWINS, Cell, short
from gaussianmlr.paper.evidence import Evidence, Landed
from gaussianmlr.paper.plans import FINE_TUNED, cells_of
from gaussianmlr.paper.published import Number, published

__all__ = ["Row", "Table", "make_table", "to_csv", "to_latex", "to_markdown", "write_tables"]

TITLES = {
    "gray": "Ranked MNIST, gray",
    "color": "Ranked MNIST, colour",
    "real": "Real data",
    "error-bars": "Real data, error bars",
    "small-change": "Ranked MNIST, small change",
    "nsid-test": "Natural scenes, the paper's split",
    "loss": "GaussianMLR: the preset's loss and the paper's",
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
    "f1_instance": ("F1 inst.", "F1$_i$", 1),
    "positives_tau": ("tau-b pos.", r"$\tau_b^+$", 1),
}  # name, LaTeX, +1 if larger is better
PEOPLE = "People, each against the other nine"


@dataclass(frozen=True)
class Row:
    """One method on one data set, over all its finished seeds."""

    cell: Cell  # with seed 0
    ours: dict[str, Number] | None
    paper: dict[str, Number] | None
    wanted: int  # seeds
    intervals: dict[str, Interval] | None = None  # over instances; None without per-instance values

    @property
    def title(self) -> str:
        """The method in words, with deviations from the preset."""
        cell = self.cell
        tuned = set(FINE_TUNED) <= set(cell.settings)
        parts = ["fine-tuned"] if tuned else []
        parts += [short(text) for text in cell.settings if not (tuned and text in FINE_TUNED)]
        reduced = cell.preset == "paper" and cell.images is not None
        parts += ["the paper's network, reduced"] if reduced else []
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


def make_table(
    name: str, landed: Landed, preset: Preset, seeds: int | None = None, evidence: Evidence | None = None
) -> Table:
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
    evidence : Evidence, optional
        The same cells with their per-instance values, for intervals.

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
        listed = {one for other in ("nsid-test", "loss") for one in cells_of(other, preset)}
        for cell in landed:
            variant = cell.settings or cell.images is not None
            reduced = cell.preset == "paper" and preset == "cpu" and cell.images is not None
            if (cell.preset == preset or reduced) and variant and cell not in listed:
                wanted.setdefault(cell.at(seed=0), 1)
    rows = []
    used: list[Mapping[str, Any]] = []
    evidence = evidence or Evidence(landed)
    for cell, count in wanted.items():
        runs = [landed[one] for one in evidence.seeds_of(cell)]
        used += runs
        found = {metric: evidence.interval(cell, metric) for metric in HEADS}
        intervals = {metric: one for metric, one in found.items() if one is not None}
        rows.append(Row(cell, _mean(runs), _paper(name, cell), count, intervals or None))
    return Table(name, preset, tuple(rows), tuple(_notes(rows, used, evidence)))


def _mean(runs: Sequence[Mapping[str, Any]]) -> dict[str, Number] | None:
    if not runs:
        return None
    found = {}
    for name in HEADS:
        values = [float(run["metrics"][name]) for run in runs if name in run["metrics"]]
        if values:  # cells of the first versions lack some
            std = statistics.stdev(values) if len(values) > 1 else None
            found[name] = Number(statistics.fmean(values), std, len(values))
    return found


def _paper(table: str, cell: Cell) -> dict[str, Number] | None:
    # Rivals are shown beside the paper's numbers for their data set.
    everywhere = ("gray", "color", "small-change", "error-bars")
    tables = everywhere if table in ("rivals", "loss", "nsid-test") else (table,)
    dataset = "nsid" if cell.dataset == TESTED else cell.dataset
    found = (published().get((one, dataset, cell.method, cell.supervision)) for one in tables)
    return next(filter(None, found), None)


def _notes(rows: Sequence[Row], used: Sequence[Mapping[str, Any]], evidence: Evidence) -> Iterable[str]:
    yield from _missing(rows)
    if not used:
        return
    yield from _values_notes(rows, evidence)
    yield from _twin_notes(rows)
    yield from _people(used)
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


def _values_notes(rows: Sequence[Row], evidence: Evidence) -> Iterable[str]:
    """What the intervals are, and which rows have none."""
    if any(row.intervals for row in rows):
        yield (
            "95 %: bootstrap interval over test instances of the mean over the seeds; it knows nothing of "
            "other trainings, whose spread over seeds stands behind the ±."
        )
    bare = [row for row in rows if row.ours is not None and not evidence.has_values(row.cell)]
    if bare:
        ran = sum(row.ours is not None for row in rows)
        yield (
            f"{len(bare)} of the {ran} rows that ran are from before cells kept per-instance values: "
            "they have no interval, and - instead of "
            "F1 per instance (F1 inst.) and tau-b of positives (tau-b pos.)."
        )
    yield (
        "F1 counts over all instances and labels (micro); F1 inst. is the mean over instances. The paper "
        "says that its metrics are means over instances; its F1 stands in the column of micro F1, with which "
        "its Hamming losses agree."
    )


def _twin_notes(rows: Sequence[Row]) -> Iterable[str]:
    weak = [row for row in rows if row.ours and row.cell.supervision == "weak" and row.cell.dataset in TWINS]
    if weak:
        yield (
            "Weak rows of the two mix sets of a colour are one training: images and weak labels are the "
            "same, only the order they are tested on differs. Neither order chose the epoch."
        )


def _people(used: Sequence[Mapping[str, Any]]) -> Iterable[str]:
    """How well people agree on the same test images, in the paper's columns."""
    found = next((run["data"]["people"] for run in used if "people" in run.get("data", {})), None)
    if found:
        numbers = ", ".join(f"{HEADS[name][0]} {found[name]:.2f}" for name in METRICS)
        yield f"{PEOPLE} (mean of ten): {numbers}."


def _data_notes(data: Sequence[Mapping[str, Any]]) -> Iterable[str]:
    for protocol in sorted({one["protocol"] for one in data if "protocol" in one}):
        if "cross" in protocol:
            protocol += "; the paper tested on its own split, so the difference is a guide only"
        yield f"Protocol: {protocol}."
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
            if row.ours
            and name in row.ours
            and (row.cell.dataset, row.cell.supervision) == (dataset, supervision)
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
        own = [other for other in table.rows if other.cell.preset == table.preset]
        best = best_of(own, dataset, row.cell.supervision)
        if row.ours is None:
            yield row.title, "ours", ["not run"] * len(HEADS), [False] * len(HEADS)
        else:
            yield (
                row.title,
                "ours",
                [_number(row.ours[name]) if name in row.ours else "-" for name in HEADS],
                [name in row.ours and row.ours[name].mean == best.get(name) for name in HEADS],
            )
        if row.intervals:
            found = (row.intervals.get(name) for name in HEADS)
            spans = [f"[{one.low:.2f}, {one.high:.2f}]" if one else "-" for one in found]
            yield "", "95 %", spans, [False] * len(HEADS)
        if row.paper is not None:
            blank = [""] * len(MORE)
            yield "", "paper", [*(_number(row.paper[name]) for name in METRICS), *blank], [False] * len(HEADS)
            if row.ours is not None:
                gaps = [f"{row.ours[name].mean - row.paper[name].mean:+.2f}" for name in METRICS]
                yield "", "difference", [*gaps, *blank], [False] * len(HEADS)


def to_markdown(table: Table) -> str:
    """The table as Markdown; our best weak and our best strong result are bold."""
    about = (
        f"Preset `{table.preset}`, percent. HL and M-1: smaller is better; all others: larger is better. "
        "Bold: our best of each supervision."
    )
    lines = [f"# {TITLES[table.name]}", "", about]
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
        for name in HEADS:
            ours = row.ours.get(name) if row.ours else None
            paper = row.paper.get(name) if row.paper else None
            interval = (row.intervals or {}).get(name)
            place = [table.name, table.preset, cell.dataset, cell.method, cell.supervision, variant, name]
            of_ours = [f"{ours.mean:.4f}", _std(ours, ".4f"), ours.seeds] if ours else ["", "", 0]
            of_paper = [paper.mean, _std(paper, "")] if paper else ["", ""]
            gap = f"{ours.mean - paper.mean:.4f}" if ours and paper else ""
            span = [f"{interval.low:.4f}", f"{interval.high:.4f}"] if interval else ["", ""]
            rows.append([*place, *of_ours, *span, *of_paper, gap])
    place = ["table", "preset", "dataset", "method", "supervision", "variant", "metric"]
    ours_head, paper_head = ["ours", "ours_std", "seeds", "low", "high"], ["paper", "paper_std", "difference"]
    return csv_text([*place, *ours_head, *paper_head], rows)


def _std(value: Number, form: str) -> str:
    return "" if value.std is None else format(value.std, form)


def write_tables(
    names: Iterable[str],
    landed: Landed,
    preset: Preset,
    folder: str | Path,
    seeds: int | None = None,
    evidence: Evidence | None = None,
) -> list[Path]:
    """Write tables as Markdown, LaTeX and CSV, and return the files.

    Parameters
    ----------
    names : iterable of str
        Names from `plans.TABLES`.
    landed : mapping
        The finished cells.
    preset, seeds, evidence
        As in `make_table`.
    folder : path-like
        Folder of the files ``NAME-PRESET.md``, ``.tex`` and ``.csv``.
    """
    written = []
    for name in names:
        table = make_table(name, landed, preset, seeds, evidence)
        for suffix, text in (("md", to_markdown(table)), ("tex", to_latex(table)), ("csv", to_csv(table))):
            file = Path(folder) / f"{name}-{preset}.{suffix}"
            write_text(file, text)
            written.append(file)
    return written

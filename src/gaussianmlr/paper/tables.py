"""Tables from cells alone: ours beside the paper's, with the difference, and what was not run."""

from __future__ import annotations

import csv
import io
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gaussianmlr.files import write_text
from gaussianmlr.paper.cells import METRICS, Cell, short
from gaussianmlr.paper.plans import FINE_TUNED, cells_of
from gaussianmlr.paper.published import Number, published
from gaussianmlr.presets import Preset

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
}  # name, LaTeX, whether larger or smaller is better


@dataclass(frozen=True)
class Row:
    """One method on one data set, over all its seeds that have landed."""

    cell: Cell  # with seed 0
    ours: dict[str, Number] | None
    paper: dict[str, Number] | None
    wanted: int  # seeds

    @property
    def title(self) -> str:
        """The method in words, with what differs from the preset."""
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
    """A table: its rows by data set, and what must be said with it."""

    name: str
    preset: str
    rows: tuple[Row, ...]
    notes: tuple[str, ...]

    @property
    def datasets(self) -> tuple[str, ...]:
        """The data sets, in order."""
        return tuple(dict.fromkeys(row.cell.dataset for row in self.rows))


def make_table(name: str, landed: Landed, preset: Preset, seeds: int | None = None) -> Table:
    """Put a table together from the cells that are there.

    Parameters
    ----------
    name : str
        One of `plans.TABLES`.
    landed : mapping
        Cells and what their files hold, of `read_cells`.
    preset : {"paper", "cpu", "smoke"}
        Whose cells.
    seeds : int, optional
        As in `cells_of`; seeds beyond it count too where they have landed.

    Examples
    --------
    >>> table = make_table("small-change", {}, "cpu")
    >>> table.rows[-1].title, table.rows[-1].ours, table.rows[-1].paper["tau_b"].mean
    ('GaussianMLR strong', None, 92.65)
    """
    wanted: dict[Cell, int] = {}
    for cell in cells_of(name, preset, seeds):
        wanted[cell.at(seed=0)] = wanted.get(cell.at(seed=0), 0) + 1
    if name == "rivals":  # and whatever else was tried
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
    # Rivals stand beside whatever the paper printed of their data set.
    tables = ("gray", "color", "small-change", "error-bars") if table == "rivals" else (table,)
    found = (published().get((one, cell.dataset, cell.method, cell.supervision)) for one in tables)
    return next(filter(None, found), None)


def _notes(rows: Sequence[Row], used: Sequence[Mapping[str, Any]]) -> Iterable[str]:
    missing = [row for row in rows if row.ours is None]
    if missing:
        by_set: dict[str, list[str]] = {}
        for row in missing:
            by_set.setdefault(row.cell.dataset, []).append(row.title)
        listed = "; ".join(f"{name}: {', '.join(titles)}" for name, titles in by_set.items())
        yield f"Not run: {len(missing)} of {len(rows)} rows. {listed}."
    for row in rows:
        if row.ours is not None and row.ours["tau_b"].seeds < row.wanted:
            count = row.ours["tau_b"].seeds
            yield f"{row.cell.dataset}, {row.title}: {count} of {row.wanted} seeds run."
    if not used:
        return
    seen = sorted({int(run["images_seen"]) for run in used})
    yield f"Training images seen (all stages and folds together): {', '.join(f'{n:,}' for n in seen)}."
    data = [run.get("data", {}) for run in used]
    for protocol in sorted({one["protocol"] for one in data if "protocol" in one}):
        yield f"Protocol: {protocol}; the paper tested on its own split, so the difference is a guide only."
    for count in sorted({one["test_images"] for one in data if "test_images" in one}):
        yield f"Measured once on {count:,} test images."
    digits = sorted({one["digits"]["test"]["name"] for one in data if "digits" in one})
    if digits:
        yield f"Test digits: {'; '.join(digits)}."
    networks = sorted(
        {f"{run['recipe']['backbone']}, head {run['recipe']['head']}" for run in used if "recipe" in run}
    )
    if networks:
        yield f"Networks: {'; '.join(networks)}. The recipe of every cell is in its file."
    hours = sum(float(run["seconds"]) for run in used) / 3600
    if hours >= 0.05:
        yield f"Training time of these cells together: {hours:.2f} hours."


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
    """Of a data set: title, whose numbers, the six texts, and which of them are the best of ours."""
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
    """The table as Markdown; the best of ours among weak and among strong methods is bold."""
    lines = [f"# {TITLES[table.name]}", "", f"Preset `{table.preset}`, percent. tau-b, rho, gamma and F1: "]
    lines[-1] += "larger is better; HL and M-1: smaller is better. Bold: our best of each supervision."
    for dataset in table.datasets:
        heads = " | ".join(head for head, _, _ in HEADS.values())
        lines += [
            "",
            f"## {dataset}",
            "",
            f"| method | | {heads} |",
            "| --- | --- |" + " ---: |" * len(HEADS),
        ]
        for title, whose, texts, marks in _lines(table, dataset):
            shown = [f"**{text}**" if mark else text for text, mark in zip(texts, marks)]
            lines.append(f"| {title} | {whose} | {' | '.join(shown)} |")
    lines += ["", *(f"- {note}" for note in table.notes)] if table.notes else []
    return "\n".join(lines) + "\n"


def to_latex(table: Table) -> str:
    """The table as LaTeX, for the package booktabs."""
    lines = [r"\begin{tabular}{ll" + "r" * len(HEADS) + "}", r"\toprule"]
    for number, dataset in enumerate(table.datasets):
        lines += [r"\midrule"] if number else []
        heads = " & ".join(
            rf"{head} $\{'uparrow' if sign > 0 else 'downarrow'}$" for _, head, sign in HEADS.values()
        )
        lines += [rf"\multicolumn{{2}}{{l}}{{\textbf{{{_escaped(dataset)}}}}} & {heads} \\", r"\midrule"]
        for title, whose, texts, marks in _lines(table, dataset):
            plain = [text.replace(" ± ", r" $\pm$ ").replace("-", "$-$") for text in texts]
            shown = [rf"\textbf{{{text}}}" if mark else text for text, mark in zip(plain, marks)]
            lines.append(rf"{_escaped(title)} & {whose} & {' & '.join(shown)} \\")
    lines += [r"\bottomrule", r"\end{tabular}", *(f"% {note}" for note in table.notes)]
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    return text.replace("_", r"\_").replace("%", r"\%").replace("&", r"\&")


def to_csv(table: Table) -> str:
    """The table as CSV, a line a number; empty where nothing was run or printed."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    head = ["table", "preset", "dataset", "method", "supervision", "variant", "metric"]
    writer.writerow([*head, "ours", "ours_std", "seeds", "paper", "paper_std", "difference"])
    for row in table.rows:
        cell = row.cell
        parts = [*cell.settings, *([] if cell.images is None else [f"images={cell.images}"])]
        variant = " ".join([*parts, *filter(None, [cell.reading])])
        for name in METRICS:
            ours = row.ours[name] if row.ours else None
            paper = row.paper[name] if row.paper else None
            gap = f"{ours.mean - paper.mean:.4f}" if ours and paper else ""
            numbers = [
                f"{ours.mean:.4f}" if ours else "",
                f"{ours.std:.4f}" if ours and ours.std is not None else "",
                ours.seeds if ours else 0,
                paper.mean if paper else "",
                paper.std if paper and paper.std is not None else "",
            ]
            place = [table.name, table.preset, cell.dataset, cell.method, cell.supervision, variant, name]
            writer.writerow([*place, *numbers, gap])
    return text.getvalue()


def write_tables(
    names: Iterable[str], landed: Landed, preset: Preset, folder: str | Path, seeds: int | None = None
) -> list[Path]:
    """Write tables as Markdown, LaTeX and CSV to a folder, and say which files.

    Parameters
    ----------
    names : iterable of str
        Tables, of `plans.TABLES`.
    landed : mapping
        The cells that are there.
    preset, seeds
        As in `make_table`.
    folder : path-like
        Where files ``NAME-PRESET.md``, ``.tex`` and ``.csv`` appear.
    """
    written = []
    for name in names:
        table = make_table(name, landed, preset, seeds)
        for suffix, text in (
            ("md", to_markdown(table)),
            ("tex", to_latex(table)),
            ("csv", to_csv(table)),
        ):
            file = Path(folder) / f"{name}-{preset}.{suffix}"
            write_text(file, text)
            written.append(file)
    return written

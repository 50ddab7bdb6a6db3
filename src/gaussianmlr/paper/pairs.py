"""Whether methods differ: paired tests on every data set, and mean ranks over data sets."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from gaussianmlr._utils.files import write_text
from gaussianmlr._utils.tables import csv_text, markdown, markdown_table
from gaussianmlr.metrics.over_sets import OverSets, over_sets
from gaussianmlr.metrics.paired import PairedTest, all_pairs
from gaussianmlr.model.presets import Preset
from gaussianmlr.paper.cells import TESTED, Cell
from gaussianmlr.paper.evidence import Evidence
from gaussianmlr.paper.plans import COLOR, GRAY, SIX, SMALL
from gaussianmlr.paper.tables import HEADS, METHODS

__all__ = ["Difference", "Standing", "differences", "standings", "title_of", "write_pairs"]

METRICS = ("tau_b", "hamming_loss", "f1_instance", "positives_tau")  # means over instances, as tests need
RANKED = ("tau_b", "hamming_loss", "f1")  # that all cells have
NINE = (*GRAY, *COLOR, SMALL)
SETS = (*NINE, "nsid", TESTED, "avdp")
LEVEL = 0.05


@dataclass(frozen=True)
class Difference:
    """Two methods on a data set: the difference in percent, its test, and p adjusted for all pairs there."""

    dataset: str
    metric: str
    one: Cell
    other: Cell
    seeds: int
    test: PairedTest
    adjusted: float


@dataclass(frozen=True)
class Standing:
    """Methods ranked over the data sets that all of them ran on."""

    metric: str
    methods: tuple[Cell, ...]  # of the first set
    sets: tuple[str, ...]
    found: OverSets


def title_of(cell: Cell) -> str:
    """Method and supervision in words."""
    return f"{METHODS[cell.method]} {cell.supervision}"


def differences(evidence: Evidence, preset: Preset) -> Iterator[Difference]:
    """All pairs of the six methods on every data set, as far as their cells have per-instance values.

    P-values are adjusted by Holm's method for the pairs of one data set and metric.
    """
    for dataset, metric in itertools.product(SETS, METRICS):
        cells = {
            cell.name: cell
            for cell in (Cell(dataset, *one, preset) for one in SIX)
            if evidence.has_values(cell)
        }
        tests = {
            (one, other): found
            for one, other in itertools.combinations(cells, 2)
            if (found := evidence.compare(cells[one], cells[other], metric)) is not None
        }
        whole = all(pair in tests for pair in itertools.combinations(cells, 2))
        if len(cells) < 2 or not whole:
            continue
        for pair in all_pairs(list(cells), lambda one, other, tests=tests: tests[one, other]):  # type: ignore[misc]
            mine, theirs = cells[pair.one], cells[pair.other]
            seeds = evidence.paired_seeds(mine, theirs)
            yield Difference(dataset, metric, mine, theirs, seeds, pair.test, pair.adjusted)


def standings(evidence: Evidence, preset: Preset, metric: str) -> list[Standing]:
    """The strong methods on the sets of Ranked MNIST where all three ran, and all six where they did."""
    found = []
    for methods in (SIX[3:], SIX):
        table = {}
        for dataset in NINE:
            means = evidence.means([Cell(dataset, *one, preset) for one in methods], metric)
            if means is not None:
                table[dataset] = means
        if len(table) > 1:
            cells = tuple(Cell(next(iter(table)), *one, preset) for one in methods)
            ranked = over_sets(list(table.values()), larger_is_better=HEADS[metric][2] > 0, level=LEVEL)
            found.append(Standing(metric, cells, tuple(table), ranked))
    return found


def untested(evidence: Evidence, preset: Preset) -> dict[str, list[Cell]]:
    """Cells that ran without per-instance values, by data set."""
    found: dict[str, list[Cell]] = {}
    for dataset, one in itertools.product(SETS, SIX):
        cell = Cell(dataset, *one, preset)
        if evidence.seeds_of(cell) and not evidence.has_values(cell):
            found.setdefault(dataset, []).append(cell)
    return found


def to_markdown(evidence: Evidence, preset: Preset) -> str:
    """Both kinds of tests as a page."""
    lines = ["# Do methods differ?", "", f"Preset `{preset}`; differences in percent.", ""]
    lines += ["## Over data sets", ""]
    lines += _standings_text([one for metric in RANKED for one in standings(evidence, preset, metric)])
    lines += ["", "## On each data set", ""]
    lines += _differences_text(list(differences(evidence, preset)))
    if bare := untested(evidence, preset):
        listed = "; ".join(f"{name}: {', '.join(map(title_of, cells))}" for name, cells in bare.items())
        lines += ["", f"Not tested, as their cells are from before cells kept per-instance values: {listed}."]
    return "\n".join(lines) + "\n"


def _standings_text(found: Sequence[Standing]) -> Iterable[str]:
    if not found:
        yield "No two data sets on which several methods ran."
        return
    yield (
        "Mean rank over sets of Ranked MNIST, 1 is the best, each method at the mean of its seeds. Methods "
        f"whose mean ranks are closer than the critical difference (Nemenyi, {LEVEL:g}) are not told apart; "
        "p: Friedman's test that all are alike. Sets share digits and ways of drawing, so they are fewer "
        "than they seem."
    )
    yield ""
    rows = []
    for one in found:
        pairs = sorted(zip(one.found.ranks, map(title_of, one.methods)))
        ranks = ", ".join(f"{title} {rank:.2f}" for rank, title in pairs)
        numbers = [f"{one.found.critical:.2f}", _p(one.found.p)]
        rows.append([HEADS[one.metric][0], str(len(one.sets)), ranks, *numbers])
    yield from markdown_table(["metric", "sets", "mean ranks", "critical difference", "p"], rows, texts=3)


def _differences_text(found: Sequence[Difference]) -> Iterable[str]:
    if not found:
        yield "No data set on which two methods have per-instance values."
        return
    yield (
        "Paired tests over test instances (and seeds, where there are several: both random); p adjusted by "
        "Holm's method for all pairs of a data set and metric. With one seed a test compares these two "
        "trained models, not their methods."
    )
    for dataset in dict.fromkeys(one.dataset for one in found):
        rows = [
            [
                HEADS[one.metric][0],
                markdown(f"{title_of(one.one)} - {title_of(one.other)}"),
                f"{one.test.difference:+.2f}",
                "[{:+.2f}, {:+.2f}]".format(*one.test.interval()),
                str(one.seeds),
                _p(one.test.p),
                f"**{_p(one.adjusted)}**" if one.adjusted < LEVEL else _p(one.adjusted),
            ]
            for one in found
            if one.dataset == dataset
        ]
        yield from ["", f"### {dataset}", ""]
        yield from markdown_table(
            ["metric", "pair", "difference", "95 %", "seeds", "p", "p adjusted"], rows, texts=2
        )


def _p(p: float) -> str:
    return "<0.001" if p < 0.001 else f"{p:.3f}"


def to_csv(evidence: Evidence, preset: Preset) -> str:
    """The tests on each data set, one line each."""
    head = ["preset", "dataset", "metric", "one", "other", "difference", "seeds", "statistic", "freedom", "p"]
    rows = [
        [
            *(preset, one.dataset, one.metric, title_of(one.one), title_of(one.other)),
            f"{one.test.difference:.4f}",
            one.seeds,
            *(f"{number:.6g}" for number in (one.test.statistic, one.test.freedom, one.test.p, one.adjusted)),
        ]
        for one in differences(evidence, preset)
    ]
    return csv_text([*head, "p_adjusted"], rows)


def write_pairs(evidence: Evidence, preset: Preset, folder: Path) -> list[Path]:
    """Write ``tests-PRESET.md`` and ``.csv``, and return the files."""
    written = []
    for suffix, text in (("md", to_markdown(evidence, preset)), ("csv", to_csv(evidence, preset))):
        file = folder / f"tests-{preset}.{suffix}"
        write_text(file, text)
        written.append(file)
    return written

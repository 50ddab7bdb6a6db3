"""What cells say for or against a claim: differences of methods, and verdicts that follow from them."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from gaussianmlr.metrics.paired import PairedTest, crossed_t
from gaussianmlr.model.presets import Preset
from gaussianmlr.paper.cells import Cell
from gaussianmlr.paper.evidence import Evidence
from gaussianmlr.paper.pairs import LEVEL, NINE

__all__ = [
    "Claim",
    "Court",
    "Gap",
    "Verdict",
    "ahead",
    "p_of",
    "range_of",
    "shown",
    "untested_note",
    "versus",
]

Verdict = Literal["confirmed", "refuted", "level", "in part", "untested"]


@dataclass(frozen=True)
class Claim:
    """What the paper says, what the cells say, and the verdict."""

    title: str
    paper: str
    verdict: Verdict
    evidence: tuple[str, ...]


class Gap(NamedTuple):
    """The difference of two cells' means in percent, and its test, not adjusted; None without values."""

    dataset: str
    difference: float
    test: PairedTest | None
    seeds: int


class Court:
    """Differences and probes of the cells of one preset.

    Parameters
    ----------
    evidence : Evidence
        The cells.
    preset : {"paper", "cpu", "smoke"}
        Their preset.
    """

    def __init__(self, evidence: Evidence, preset: Preset) -> None:
        self.evidence, self.preset = evidence, preset

    def cell(self, dataset: str, method: str, supervision: str = "strong", *settings: str) -> Cell:
        """A cell of the preset with seed 0."""
        return Cell(dataset, method, supervision, self.preset, settings=settings)

    def gap(self, one: Cell, other: Cell, metric: str = "tau_b") -> Gap | None:
        """The first minus the second, at their common seeds; None if one was not run."""
        seeds = self.common_seeds(one, other)
        if not seeds:
            return None
        difference = self.mean(one, seeds, metric) - self.mean(other, seeds, metric)
        return Gap(one.dataset, difference, self.evidence.compare(one, other, metric), len(seeds))

    def common_seeds(self, one: Cell, other: Cell) -> list[int]:
        """The seeds that both cells were run with."""
        landed = self.evidence.landed
        return [cell.seed for cell in self.evidence.seeds_of(one) if other.at(seed=cell.seed) in landed]

    def mean(self, cell: Cell, seeds: Sequence[int], metric: str) -> float:
        """The mean of a cell's metric over seeds, in percent."""
        landed = self.evidence.landed
        return statistics.fmean(landed[cell.at(seed=seed)]["metrics"][metric] for seed in seeds)

    def gaps(self, pairs: Iterable[tuple[Cell, Cell]], metric: str = "tau_b") -> list[Gap]:
        """Those of the pairs that were run."""
        found = (self.gap(*pair, metric) for pair in pairs)
        return [one for one in found if one is not None]

    def probes(self, method: str, supervision: str, sets: Sequence[str] = NINE) -> dict[str, Any]:
        """The adjusting probes by data set."""
        found = {}
        for dataset in sets:
            facts = self.evidence.landed.get(self.cell(dataset, method, supervision), {})
            if probe := facts.get("probes", {}).get("adjusting"):
                found[dataset] = probe
        return found


def shown(gaps: Sequence[Gap]) -> str:
    """Differences data set by data set."""
    parts = []
    for one in gaps:
        tested = "" if one.test is None else f" {_interval(one.test)}"
        seeds = "" if one.seeds == 1 else f" ({one.seeds} seeds)"
        parts.append(f"{one.dataset} {one.difference:+.2f}{seeds}{tested}")
    return ", ".join(parts)


def mean_of(gaps: Sequence[Gap]) -> str:
    """Mean difference over data sets, with its standard error."""
    values = [one.difference for one in gaps]
    if len(values) < 2:
        return f"{values[0]:+.2f}"
    return f"{statistics.fmean(values):+.2f} {_interval(crossed_t([values]))} over {len(values)} sets"


def _interval(test: PairedTest) -> str:
    """The 95 % confidence interval of a difference."""
    low, high = test.interval()
    return f"[{low:+.2f}, {high:+.2f}]"


def untested_note(gaps: Sequence[Gap]) -> Iterator[str]:
    """The sets without a paired test, and why."""
    bare = [one.dataset for one in gaps if one.test is None]
    if bare:
        yield f"No paired test where cells lack per-instance values: {', '.join(dict.fromkeys(bare))}."


def p_of(values: Sequence[float]) -> float:
    """The t-test that differences have the mean 0; 1 for a single one."""
    return crossed_t([values]).p if len(values) > 1 else 1.0


def ahead(gaps: Sequence[Gap]) -> Verdict:
    """Of differences that should be positive: on all sets, none, or some; level where they are noise."""
    if not gaps:
        return "untested"
    values = [one.difference for one in gaps]
    above = sum(value > 0 for value in values)
    if len(values) > 1 and p_of(values) >= LEVEL:
        return "level"
    if above == len(values):
        return "confirmed"
    return "refuted" if statistics.fmean(values) < 0 else "in part"


def versus(
    court: Court, rival: str, sets: Sequence[str] = NINE
) -> tuple[list[Gap], list[Gap], tuple[str, ...]]:
    """Gaps of tau-b and Hamming loss of GaussianMLR against a rival, and both in words."""
    pairs = [(court.cell(dataset, "gmlr"), court.cell(dataset, rival)) for dataset in sets]
    order, loss = court.gaps(pairs), court.gaps(pairs, "hamming_loss")
    lines: tuple[str, ...] = ()
    if order:
        front, better = (sum(one.difference > 0 for one in order), sum(one.difference < 0 for one in loss))
        lines = (
            f"Tau-b {mean_of(order)}, ahead on {front} of {len(order)}: {shown(order)}.",
            f"Hamming loss {mean_of(loss)}, lower on {better} of {len(loss)}.",
        )
    return order, loss, lines


def range_of(values: Iterable[float]) -> str:
    """The smallest and the largest value."""
    found = sorted(values)
    return f"{found[0]:.3f} to {found[-1]:.3f}" if len(found) > 1 else f"{found[0]:.3f}"

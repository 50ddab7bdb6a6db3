"""The result of a comparison: means, spreads, and whether the best contender wins beyond noise."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gaussianmlr.comparison.cells import Cell, metrics_of, versions_of
from gaussianmlr.metrics.paired import PairedTest, all_pairs, crossed_t, resampled_t

__all__ = ["LEVEL", "LOWER", "Against", "Cell", "Comparison", "Summary", "Verdict"]

LEVEL = 0.05  # a difference counts as beyond noise below this adjusted p
LOWER = frozenset({"hamming_loss", "max1_error", "ece"})  # metrics where lower is better
FloatArray = npt.NDArray[np.float64]


class Summary(NamedTuple):
    """A metric of a contender over its runs; the spread is NaN for a single run."""

    mean: float
    std: float
    values: tuple[float, ...]


class Against(NamedTuple):
    """The best contender against another."""

    other: str
    difference: float
    p: float
    adjusted: float


@dataclass(frozen=True)
class Verdict:
    """The contender with the largest mean tau-b, and those it beats beyond noise.

    Attributes
    ----------
    best : str
        The contender with the largest mean.
    against : tuple of Against
        The others, with the p-values of the paired test and those adjusted for all pairs.
    test : str
        Description of the test.
    """

    best: str
    against: tuple[Against, ...]
    test: str

    @property
    def beaten(self) -> tuple[str, ...]:
        """Contenders that the best one beats beyond noise."""
        return tuple(one.other for one in self.against if one.adjusted < LEVEL)

    @property
    def level(self) -> tuple[str, ...]:
        """Contenders without a clear difference from the best."""
        return tuple(one.other for one in self.against if not one.adjusted < LEVEL)

    def text(self) -> str:
        """The verdict in a sentence or two."""
        if not self.against:
            return f"{self.best} is the only contender: there is nothing to compare it with."
        if not self.level:
            return f"{self.best} wins: its tau-b is better than that of every other contender beyond noise."
        if not self.beaten:
            return (
                f"No winner: {self.best} has the largest mean tau-b, "
                "but is not better than any other contender beyond noise."
            )
        return (
            f"{self.best} has the largest mean tau-b. It is better beyond noise than "
            f"{', '.join(self.beaten)}; no clear difference from {', '.join(self.level)}."
        )


@dataclass(frozen=True, repr=False)
class Comparison:
    """All cells of a comparison.

    Attributes
    ----------
    data : str
        What the contenders were compared on.
    contenders : tuple of str
        Their names.
    cells : tuple of Cell
        One cell per contender and run.
    one_test : bool
        Whether all runs share one test part.
    drawn : bool
        Whether the splits were drawn at random; otherwise the data defines them.
    folds : int or None
        Number of folds of a cross-validation.
    recipe : dict
        The settings shared by all networks.
    """

    data: str
    contenders: tuple[str, ...]
    cells: tuple[Cell, ...]
    one_test: bool
    drawn: bool = True
    folds: int | None = None
    recipe: dict[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"Comparison of {', '.join(self.contenders)} on {self.runs} runs"

    def of(self, contender: str) -> list[Cell]:
        """The cells of a contender, run by run."""
        return [cell for cell in self.cells if cell.contender == contender]

    @property
    def runs(self) -> int:
        """Number of runs per contender."""
        return len({(cell.seed, cell.fold) for cell in self.cells})

    @property
    def metrics(self) -> tuple[str, ...]:
        """Names of the metrics that any contender has."""
        return metrics_of(self.cells)

    def summary(self, contender: str, metric: str) -> Summary | None:
        """Mean, spread and values of a metric over the runs; None if the contender does not have it."""
        values = [cell.metrics[metric] for cell in self.of(contender) if metric in cell.metrics]
        if not values:
            return None
        std = float(np.std(values, ddof=1)) if len(values) > 1 else math.nan
        return Summary(float(np.mean(values)), std, tuple(values))

    def mean(self, contender: str, metric: str = "tau_b") -> float:
        """The mean of a metric over the runs; NaN if the contender does not have it."""
        found = self.summary(contender, metric)
        return math.nan if found is None else found.mean

    @property
    def ranking(self) -> tuple[str, ...]:
        """Contenders by falling mean tau-b."""
        return tuple(sorted(self.contenders, key=lambda name: -self.mean(name)))

    def best(self, metric: str) -> set[str]:
        """Contenders with the best mean of a metric, compared at two decimals of a percent."""
        means = {name: round(100 * self.mean(name, metric), 2) for name in self.contenders}
        there = {name: mean for name, mean in means.items() if not math.isnan(mean)}
        first = (min if metric in LOWER else max)(there.values(), default=math.nan)
        return {name for name, mean in there.items() if mean == first}

    def difference(self, one: str, other: str) -> PairedTest:
        """The paired test of two contenders' tau-b; see `metrics.paired` for the choice."""
        if self.one_test:
            table = self._instances(one) - self._instances(other)
            if table.shape[1] < 2:  # a spread needs two instances
                return PairedTest(float(np.mean(table)) if table.size else 0.0, 0.0, 0.0, 1.0)
            return crossed_t(table)
        values = [np.array([cell.metrics["tau_b"] for cell in self.of(name)]) for name in (one, other)]
        return resampled_t(values[0] - values[1], self.ratio)

    def _instances(self, contender: str) -> FloatArray:
        """Tau-b per seed and test instance."""
        table = np.array([cell.tau_b for cell in self.of(contender)], dtype=np.float64)  # None is NaN
        return table[:, ~np.isnan(table).any(axis=0)]

    @property
    def ratio(self) -> float:
        """Test instances per training or validation instance, mean over the runs."""
        sizes = [cell.sizes for cell in self.cells]
        return float(np.mean([size["test"] / (size["train"] + size["validation"]) for size in sizes]))

    @cached_property
    def verdict(self) -> Verdict:
        """The best against all others.

        The best is known only after looking at all contenders, so p-values are adjusted for every pair, not
        only for pairs with the best.
        """
        best = self.ranking[0]
        against = tuple(
            Against(pair.other, pair.test.difference, pair.test.p, pair.adjusted)
            for pair in all_pairs(self.ranking, self.difference)
            if pair.one == best
        )
        return Verdict(best, against, self._test())

    def _test(self) -> str:
        after = "two-sided, Holm-adjusted for all pairs of contenders"
        if not self.one_test:
            return f"corrected resampled t-test (Nadeau and Bengio 2003) over {self.runs} splits, {after}"
        count = self._instances(self.contenders[0]).shape[1]
        if self.runs == 1:
            return (
                f"paired t-test over {count:,} test instances, {after}; with one run it compares these "
                "trained models, not their methods"
            )
        return f"t-test with {self.runs} seeds and {count:,} test instances both random, {after}"

    def setup(self) -> str:
        """One line about data, splits and seeds."""
        first = self.cells[0].sizes
        sizes = f"{first['train']:,} / {first['validation']:,} / {first['test']:,} instances"
        seeds = len({cell.seed for cell in self.cells})
        of_seeds = f"{seeds} seed{'s' if seeds > 1 else ''}"
        if not self.drawn:
            how = f"{of_seeds}, the data's own test part"
        elif self.folds is not None:
            how = f"{self.folds}-fold cross-validation, {of_seeds}"
        else:
            how = f"{of_seeds}, each with a split of its own"
        return f"{self.data}: {how}; train / validation / test {sizes}"

    def to_dict(self) -> dict[str, Any]:
        """The contents of the tables as JSON types; metrics are fractions."""
        verdict = self.verdict
        return {
            "data": self.data,
            "setup": self.setup(),
            "runs": self.runs,
            "contenders": [self._described(name) for name in self.ranking],
            "verdict": {
                "text": verdict.text(),
                "metric": "tau_b",
                "best": verdict.best,
                "better_than": list(verdict.beaten),
                "not_told_apart": list(verdict.level),
                "level": LEVEL,
                "test": verdict.test,
                "against": [one._asdict() for one in verdict.against],
            },
            "recipe": self.recipe,
            "versions": self.versions,
        }

    @property
    def versions(self) -> dict[str, str]:
        """Versions of the software behind the cells."""
        return versions_of(self.cells)

    def _described(self, name: str) -> dict[str, Any]:
        cells = self.of(name)
        summaries = {metric: self.summary(name, metric) for metric in self.metrics}
        return {
            "name": name,
            "method": cells[0].method,
            "supervision": cells[0].supervision,
            "seconds": round(float(np.mean([cell.seconds for cell in cells])), 3),
            "metrics": {
                metric: {
                    "mean": found.mean,
                    "std": None if math.isnan(found.std) else found.std,
                    "values": list(found.values),
                }
                for metric, found in summaries.items()
                if found is not None
            },
        }

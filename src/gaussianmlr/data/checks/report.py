"""What a check found: data, statistics and problems, shown as text or as a plot."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from typing import Any

from gaussianmlr.data.checks.plot import plot
from gaussianmlr.data.dataset import RankedData
from gaussianmlr.data.problems import Problem, summary
from gaussianmlr.data.recognise import Kind
from gaussianmlr.errors import DataError, shorten

_WIDEST = 60  # characters of a label
_MOST_LABELS = 100  # in the table
_KINDS = {
    "table": "a table",
    "images": "a manifest of pictures",
    "texts": "a manifest of text files",
    "nsid": "NSID",
    "avdp": "AVDP",
    "export": "an export of Ranked MNIST",
    "xmlc": "sparse rows and labels",
}


@dataclass(frozen=True, repr=False)
class Report:
    """What `check` found.

    Parameters
    ----------
    path : str
        What was checked.
    kind : {"table", "images", "texts", "nsid", "avdp", "export"}
        What it was read as.
    problems : tuple of Problem
        Each with `kind`, `where`, `message` and `severity` (``"error"`` or ``"warning"``).
    notes : tuple of str
        Decisions of the reader, and why.
    statistics : dict
        See `RankedData.describe`; with ``rankers.agreement`` if there are several rankers.
    data : RankedData or None
        What can be used as it is.
    """

    path: str
    kind: Kind
    problems: tuple[Problem, ...]
    notes: tuple[str, ...]
    statistics: dict[str, Any]
    data: RankedData | None

    @property
    def errors(self) -> tuple[Problem, ...]:
        """Problems that must be fixed."""
        return tuple(problem for problem in self.problems if problem.severity == "error")

    @property
    def warnings(self) -> tuple[Problem, ...]:
        """Problems that should be looked at."""
        return tuple(problem for problem in self.problems if problem.severity == "warning")

    @property
    def ok(self) -> bool:
        """Whether there are no errors."""
        return not self.errors

    def to_dict(self) -> dict[str, Any]:
        """Everything but the data, ready for JSON."""
        return {
            "path": self.path,
            "kind": self.kind,
            "ok": self.ok,
            "problems": [asdict(problem) for problem in self.problems],
            "notes": list(self.notes),
            "statistics": self.statistics,
        }

    def plot(self, file: str | os.PathLike[str]) -> None:
        """Draw the statistics into a PNG."""
        if self.data is None:
            raise DataError(f"{self.path}: nothing to draw, no instance can be used")
        plot(self.data, self.statistics, file)

    def __repr__(self) -> str:
        return _text(self)


def _text(report: Report) -> str:
    """Every problem and the statistics."""
    lines = [f"{report.path}: {_KINDS[report.kind]}"]
    if report.statistics:
        lines += _summary(report.statistics)
        lines += _label_table(report.statistics["labels"])
    lines += [f"note: {note}" for note in report.notes]
    found = (*summary(report.errors), *summary(report.warnings))
    lines += [f"{problem.severity}: {problem}" for problem in found]
    lines.append(f"{_count(len(report.errors), 'error')}, {_count(len(report.warnings), 'warning')}")
    return "\n".join(lines)


def _columns(found: list[dict[str, Any]]) -> list[str]:
    """Columns that are more than numbers without gaps, a line per kind."""
    lines = []
    for kind, plural in {
        "category": "categories",
        "boolean": "booleans",
        "date": "dates",
        "text": "texts",
    }.items():
        some = [one for one in found if one["kind"] == kind]
        named = [
            f"{one['name']} ({one['categories']:,})" if kind == "category" else one["name"] for one in some
        ]
        lines += [f"{plural}: {_listed(named)}"] if some else []
    gaps = [f"{one['name']} {one['gaps']:,}" for one in found if one["gaps"]]
    return [*lines, f"gaps: {_listed(gaps)}"] if gaps else lines


def _listed(names: list[str]) -> str:
    more = f", and {len(names) - 20} more" if len(names) > 20 else ""
    return ", ".join(names[:20]) + more


def _summary(found: dict[str, Any]) -> list[str]:
    positives = found["positives"]
    what = _count(found["instances"], "instance")
    if found["kind"] != "orders":
        what += f" of {_count(found['features'], 'feature')}" if "features" in found else " (pictures)"
    if found["splits"]:
        what += ": " + ", ".join(f"{name or '(none)'} {count:,}" for name, count in found["splits"].items())
    lines = [
        what,
        *_columns(found.get("columns", [])),
        f"relevant labels per instance: {positives['min']} to {positives['max']}, "
        f"mean {positives['mean']:.2f}; with ties {found['ties']:,}, "
        f"with none {found['empty']:,}; unknown cells {found['unknown']:,}",
    ]
    rankers = found.get("rankers")
    if rankers:
        counts = rankers["an_instance"]
        lines.append(f"{_count(rankers['count'], 'ranker')}, {counts['min']} to {counts['max']} per instance")
        agreed = rankers.get("agreement")
        if agreed:
            rest = agreed["against_rest"]
            lines[-1] += (
                f"; one against the rest: tau-b {100 * rest['tau_b']:.1f}, F1 {100 * rest['f1']:.1f}; "
                f"two rankers: tau-b {100 * agreed['pairwise_tau_b']:.1f}"
            )
            lines += _reliabilities(agreed["reliability_of_ranker"])
    return lines


def _reliabilities(each: dict[str, float | None]) -> list[str]:
    """The most and the least reliable ranker."""
    known = {name: value for name, value in each.items() if value is not None}
    if len(known) < 2:
        return []
    best, worst = max(known, key=known.__getitem__), min(known, key=known.__getitem__)
    extremes = [f"{known[name]:.2f} ({shorten(name)})" for name in (worst, best)]
    return ["reliability of rankers (1 = typical): from " + " to ".join(extremes)]


def _label_table(labels: dict[str, dict[str, Any]]) -> list[str]:
    names = {name: name if len(name) <= _WIDEST else f"{name[: _WIDEST - 3]}..." for name in labels}
    width = max([len("label"), *map(len, names.values())])
    lines = [f"  {'label':<{width}}  relevant   share   first  mean place  unknown"]
    often = sorted(labels, key=lambda name: -labels[name]["relevant"])[:_MOST_LABELS]
    for name in often if len(labels) > _MOST_LABELS else labels:
        label = labels[name]
        share = "-" if label["share"] is None else f"{100 * label['share']:.1f} %"
        place = "-" if label["mean_place"] is None else f"{label['mean_place']:.2f}"
        lines.append(
            f"  {names[name]:<{width}}  {label['relevant']:>8,}  {share:>6}  {label['first']:>6.0f}"
            f"  {place:>10}  {label['unknown']:>7,}"
        )
    if len(labels) > _MOST_LABELS:
        lines.append(f"  and {len(labels) - _MOST_LABELS:,} labels that apply less often")
    return lines


def _count(number: int, noun: str) -> str:
    return f"{f'{number:,}' if number else 'no'} {noun}{'' if number == 1 else 's'}"

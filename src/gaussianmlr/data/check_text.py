"""A report as text people read in a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gaussianmlr.data.checking import Report

_KINDS = {
    "table": "a table",
    "images": "a manifest of pictures",
    "nsid": "NSID",
    "avdp": "AVDP",
    "export": "an export of Ranked MNIST",
}


def text(report: Report) -> str:
    """Every problem and the statistics."""
    lines = [f"{report.path}: {_KINDS[report.kind]}"]
    if report.statistics:
        lines += _summary(report.statistics)
        lines += _label_table(report.statistics["labels"])
    lines += [f"note: {note}" for note in report.notes]
    lines += [f"{problem.severity}: {problem}" for problem in (*report.errors, *report.warnings)]
    lines.append(f"{_count(len(report.errors), 'error')}, {_count(len(report.warnings), 'warning')}")
    return "\n".join(lines)


def _summary(found: dict[str, Any]) -> list[str]:
    positives = found["positives"]
    what = _count(found["instances"], "instance")
    if found["kind"] != "orders":
        what += f" of {_count(found['features'], 'feature')}" if "features" in found else " (pictures)"
    if found["splits"]:
        what += ": " + ", ".join(f"{name or '(none)'} {count:,}" for name, count in found["splits"].items())
    lines = [
        what,
        f"relevant labels an instance: {positives['min']} to {positives['max']}, mean {positives['mean']:.2f}"
        f"; with ties {found['ties']:,}, with none {found['empty']:,}; unknown cells {found['unknown']:,}",
    ]
    rankers = found.get("rankers")
    if rankers:
        counts = rankers["an_instance"]
        lines.append(f"{_count(rankers['count'], 'ranker')}, {counts['min']} to {counts['max']} an instance")
        agreed = rankers.get("agreement")
        if agreed:
            rest = agreed["against_rest"]
            lines[-1] += (
                f"; one against the rest: tau-b {100 * rest['tau_b']:.1f}, F1 {100 * rest['f1']:.1f}; "
                f"two rankers: tau-b {100 * agreed['pairwise_tau_b']:.1f}"
            )
    return lines


def _label_table(labels: dict[str, dict[str, Any]]) -> list[str]:
    width = max([len("label"), *map(len, labels)])
    lines = [f"  {'label':<{width}}  relevant   share   first  mean place  unknown"]
    for name, label in labels.items():
        share = "-" if label["share"] is None else f"{100 * label['share']:.1f} %"
        place = "-" if label["mean_place"] is None else f"{label['mean_place']:.2f}"
        lines.append(
            f"  {name:<{width}}  {label['relevant']:>8,}  {share:>6}  {label['first']:>6.0f}"
            f"  {place:>10}  {label['unknown']:>7,}"
        )
    return lines


def _count(number: int, noun: str) -> str:
    return f"{f'{number:,}' if number else 'no'} {noun}{'' if number == 1 else 's'}"

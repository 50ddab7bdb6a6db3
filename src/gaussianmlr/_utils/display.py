"""Display names of metrics, times, and a small table."""

from __future__ import annotations

__all__ = ["LEGEND", "NAMES", "clock", "metrics_table"]

NAMES = {
    "positives_tau": "order of positives",
    "tau_b": "tau-b",
    "spearman_rho": "rho",
    "gamma": "gamma",
    "hamming_loss": "Hamming loss",
    "max1_error": "Max-1 error",
    "f1": "F1",
    "ece": "calibration error",
}
LEGEND = (
    "percent; tau-b, rho, gamma: 100 = the right order, 0 = chance; F1: 100 = the right labels; "
    "Hamming loss, Max-1 error: lower is better, 0 = no mistake"
)


def clock(seconds: float) -> str:
    """Seconds as minutes and seconds, or hours.

    Examples
    --------
    >>> clock(75), clock(3_675)
    ('1:15', '1:01:15')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def metrics_table(rows: dict[str, dict[str, float]]) -> str:
    """The paper's six metrics in percent as plain text, one row per name.

    Examples
    --------
    >>> print(metrics_table({"model": dict.fromkeys(("tau_b", "f1"), 0.5)}))
           tau-b     F1
    model  50.00  50.00
    """
    names = [name for name in NAMES if all(name in row for row in rows.values())]
    heads = [NAMES[name] for name in names]
    wide = max(map(len, rows))
    lines = ["  ".join([" " * wide, *(f"{head:>{max(5, len(head))}}" for head in heads)])]
    for title, row in rows.items():
        cells = (f"{100 * row[name]:>{max(5, len(head))}.2f}" for name, head in zip(names, heads))
        lines.append("  ".join([f"{title:<{wide}}", *cells]))
    return "\n".join(lines)

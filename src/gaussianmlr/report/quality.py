"""The measured sections of a report: metrics, reliability, abstention."""

from __future__ import annotations

import math

import numpy as np

from gaussianmlr._utils.display import NAMES
from gaussianmlr.comparison.verdict import LOWER
from gaussianmlr.model.calibration import BeforeAfter
from gaussianmlr.plots import CoverageDisplay, ReliabilityDisplay
from gaussianmlr.report.measure import Evidence
from gaussianmlr.report.page import Data
from gaussianmlr.report.svg import drawn

__all__ = [
    "abstention_section",
    "figures_of",
    "metrics_section",
    "reliability_section",
    "warnings_of",
    "where",
]

MEANINGS = {
    "tau_b": "agreement of predicted and true order over all pairs of labels; 100 = identical, 0 = chance",
    "spearman_rho": "correlation of predicted and true places; 100 = identical, 0 = chance",
    "gamma": "agreement over the pairs tied in neither order; 100 = identical, 0 = chance",
    "hamming_loss": "labels whose relevance is predicted wrongly; 0 = none",
    "max1_error": "instances whose first predicted label is not relevant; 0 = none",
    "f1": "relevance: harmonic mean of precision and recall, over all labels together; 100 = all right",
}
_PARTS = {
    "all": "everything in",
    "validation": "the validation part of",
    "test": "the test part of",
    "train": "the training part of",
}
_CONFIDENCES = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
_SEEN = (
    "The best epoch was chosen on the validation part and the temperatures were fitted to it, so the numbers "
    "are slightly better than on new data; to measure on new data, pass --data with a test part."
)
_PERHAPS_SEEN = (
    "If the run was trained on this data, its best epoch was chosen on this part and its temperatures were "
    "fitted to it, so the numbers are slightly better than on new data."
)
_TRAINED_ON = "If the model was trained on these instances, the numbers are better than on new data."


def where(evidence: Evidence) -> str:
    """The measured data in words."""
    total, count = len(evidence.data), len(evidence.rows)
    part = _PARTS.get(evidence.split, f"the part “{evidence.split}” of")
    some = f"a random sample of {count:,} of the {total:,}" if count < total else f"all {count:,}"
    return f"{part} {evidence.name}: {some} instances"


def warnings_of(evidence: Evidence) -> list[str]:
    """Reasons why the numbers may be too good, and other remarks."""
    found = [f"{text[:1].upper()}{text[1:]}." for text in evidence.notes]
    if evidence.split == "validation":
        found.append(_SEEN if evidence.own else _PERHAPS_SEEN)
    if evidence.split == "train":
        found.append(_TRAINED_ON)
    return found


def figures_of(evidence: Evidence) -> list[tuple[str, tuple[str, str]]]:
    """The main numbers, and whether higher or lower is better."""
    values = {name: evidence.metrics[name] for name in ("tau_b", "f1", "hamming_loss", "max1_error")}
    values["ece"] = evidence.reliability["relevance"].ece_after
    return [
        (NAMES[name], (f"{100 * value:.2f}", "lower" if name in LOWER else "higher"))
        for name, value in values.items()
    ]


def metrics_section(evidence: Evidence, recorded: dict[str, float]) -> Data:
    """The six metrics of the paper."""
    tau = evidence.tau_b[(evidence.truth >= 0).any(1)]
    error = f"{196 * tau.std(ddof=1) / math.sqrt(len(tau)):.2f}" if len(tau) > 1 else ""
    rows = []
    for name, value in evidence.metrics.items():
        then = f"{100 * recorded[name]:.2f}" if name in recorded else "-"
        heading = f"{NAMES[name]} {'↓' if name in LOWER else '↑'}"
        others = [f"{100 * peer[name]:.2f}" for peer in evidence.peers.metrics.values()]
        error_shown = error if name == "tau_b" else ""
        rows.append([heading, f"{100 * value:.2f}", error_shown, *others, then, MEANINGS[name]])
    return {
        "where": where(evidence),
        "rows": rows,
        "peers": list(evidence.peers.metrics),
        "notes": evidence.peers.notes,
    }


def reliability_section(evidence: Evidence) -> Data:
    """Relevance and pairs, before and after calibration."""
    calibration, found = evidence.model.calibration, evidence.reliability
    head = ("of", "as learned") if calibration is None else ("of", "before", "after")
    errors = [
        (what, f"{100 * both.ece_before:.2f}", f"{100 * both.ece_after:.2f}") for what, both in found.items()
    ]
    return {
        "calibration": calibration,
        "no_sigma": _without_sigma(evidence),
        "head": head,
        "errors": [row[: len(head)] for row in errors],
        "of": {what: _reliability(what, both, calibration is not None) for what, both in found.items()},
    }


def _reliability(what: str, both: BeforeAfter, calibrated: bool) -> Data:
    words = f"Reliability of {what}: calibration error {100 * both.ece_before:.2f} percent"
    shown = {"before": both.before, "after": both.after} if calibrated else {"as learned": both.before}
    if calibrated:
        display = ReliabilityDisplay.from_report(both, about=what)
        words += f" before and {100 * both.ece_after:.2f} percent after calibration"
    else:
        display = ReliabilityDisplay(shown, about=what)
    rows = []
    for name, one in shown.items():
        edges, said, came, counts = (np.asarray(part) for part in one)
        for place in np.flatnonzero(counts):
            span = f"{name}, {edges[place]:.2f} to {edges[place + 1]:.2f}"
            rows.append([span, f"{said[place]:.3f}", f"{came[place]:.3f}", f"{counts[place]:,}"])
    return {"drawing": drawn(f"reliability-{what}", words, (4.4, 4.4), display.plot), "rows": rows}


def _without_sigma(evidence: Evidence) -> str | None:
    """The method's name, if it has no sigma."""
    return evidence.model.method.name if evidence.prediction.raw is None else None


def abstention_section(evidence: Evidence) -> Data:
    """Coverage against accuracy."""
    curve = evidence.abstention
    if curve is None:
        return {"no_sigma": _without_sigma(evidence)}

    rows, words = [], ""
    for confidence in _CONFIDENCES:
        place = int(np.abs(curve.confidences - confidence).argmin())
        coverage, accuracy = 100 * curve.coverage[place], 100 * curve.accuracy[place]
        count = curve.counts[place]
        right = f"{accuracy:.2f}" if count else "-"
        rows.append([f"{100 * confidence:.0f}", f"{coverage:.2f}", right, f"{count:,}"])
        if confidence == 0.9:
            words = (
                f"Accuracy against coverage. At confidence 0.9, {coverage:.1f} percent of the pairs are "
                f"compared and {accuracy:.1f} percent of these comparisons are right"
            )
    display = CoverageDisplay({evidence.model.method.name: curve})
    return {"no_sigma": None, "drawing": drawn("coverage", words, (5.6, 4.0), display.plot), "rows": rows}

"""The sections of a report that were measured: metrics, reliability, abstention, examples."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gaussianmlr.calibration import BeforeAfter
from gaussianmlr.console import NAMES
from gaussianmlr.judging import LOWER
from gaussianmlr.plots import CoverageDisplay, ReliabilityDisplay
from gaussianmlr.reporting.drawing import drawn
from gaussianmlr.reporting.examples import example_cards
from gaussianmlr.reporting.gathering import Evidence
from gaussianmlr.reporting.html import Html, Section, details, element, facts, figure, note, section, table
from gaussianmlr.reporting.numbers import pick_examples
from gaussianmlr.reporting.ordering import order_section

__all__ = ["figures_of", "measured_sections", "warnings_of", "where"]

MEANINGS = {
    "tau_b": "agreement of predicted and true order over all pairs of labels; 100 = the same",
    "spearman_rho": "correlation of predicted and true positions",
    "gamma": "agreement over the pairs that both orders tell apart",
    "hamming_loss": "labels on the wrong side of relevance",
    "max1_error": "instances whose most significant label is not relevant",
    "f1": "relevance: balance of what is found and what is right, over all labels together",
}
_PARTS = {
    "all": "everything in",
    "validation": "the validation part of",
    "test": "the test part of",
    "train": "the training part of",
}
_CONFIDENCES = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
_SEEN = (
    "The best epoch was chosen on the validation part and temperatures were fitted to it, so that the model "
    "looks a little better here than on new data; give --data with a test part to see that."
)
_PERHAPS_SEEN = (
    "If the run was trained on this data, its best epoch was chosen on this part and its temperatures were "
    "fitted to it: it looks a little better here than on new data."
)
_TRAINED_ON = "A model that was trained on these instances looks better here than it is."
_BESIDE = (
    "± 95 %: of the mean over instances like these, for this trained model. After training: on the "
    "validation part of the run, as it recorded them."
)
_RELIABLE = "What the model says against what came true; on the diagonal, probabilities mean what they say. "
_ABSTAINING = (
    "A partial order says only what is sure. The surer it must be, the fewer of the truly ordered pairs it "
    "compares (coverage), and the more of these comparisons are right (accuracy)."
)


def where(evidence: Evidence) -> str:
    """What was measured on, in words."""
    total, count = len(evidence.data), len(evidence.rows)
    part = _PARTS.get(evidence.split, f"the part “{evidence.split}” of")
    some = f"a random sample of {count:,} of the {total:,}" if count < total else f"all {count:,}"
    return f"{part} {evidence.name}: {some} instances"


def warnings_of(evidence: Evidence) -> list[Html]:
    """What flatters the numbers, said beside them."""
    found = [f"{text[:1].upper()}{text[1:]}." for text in evidence.notes]
    if evidence.split == "validation":
        found.append(_SEEN if evidence.own else _PERHAPS_SEEN)
    if evidence.split == "train":
        found.append(_TRAINED_ON)
    return [note(text) for text in found]


def figures_of(evidence: Evidence) -> Html:
    """The numbers people look at first."""

    def shown(name: str, value: float) -> tuple[str, Any]:
        better = "less is better" if name in LOWER else "more is better"
        return NAMES[name], [f"{100 * value:.2f}", element("small", better)]

    first = ("tau_b", "f1", "hamming_loss", "max1_error")
    values = {**{name: evidence.metrics[name] for name in first}, "ece": _relevance(evidence).ece_after}
    return facts([shown(*pair) for pair in values.items()], class_="figures")


def _relevance(evidence: Evidence) -> BeforeAfter:
    return evidence.reliability["relevance"]


def measured_sections(evidence: Evidence, examples: int, recorded: dict[str, float]) -> list[Section]:
    """All of them."""
    return [
        metrics_section(evidence, recorded),
        reliability_section(evidence),
        order_section(evidence),
        abstention_section(evidence),
        examples_section(evidence, examples),
    ]


def metrics_section(evidence: Evidence, recorded: dict[str, float]) -> Section:
    """The paper's six."""
    tau = evidence.tau_b[(evidence.truth >= 0).any(1)]
    error = 1.96 * float(tau.std(ddof=1)) / math.sqrt(len(tau)) if len(tau) > 1 else math.nan
    rows = []
    for name, value in evidence.metrics.items():
        more = f"{100 * error:.2f}" if name == "tau_b" and not math.isnan(error) else ""
        then = f"{100 * recorded[name]:.2f}" if name in recorded else "-"
        heading = f"{NAMES[name]} {'↓' if name in LOWER else '↑'}"
        rows.append([heading, f"{100 * value:.2f}", more, then, MEANINGS[name]])
    head = (
        "metric",
        "measured",
        "±\N{NO-BREAK SPACE}95\N{NO-BREAK SPACE}%",
        "after training",
        "what it says",
    )
    return section(
        "Metrics",
        element("p", f"In percent, on {where(evidence)}."),
        table("Metrics in percent", head, rows, numbers={1, 2, 3}, class_="wide metrics", hide=True),
        element("p", _BESIDE, class_="soft small"),
        anchor="metrics",
    )


def reliability_section(evidence: Evidence) -> Section:
    """Relevance and pairs, before and after calibration."""
    calibration, found = evidence.model.calibration, evidence.reliability
    if calibration is None:
        words = "The model has no temperatures: its probabilities are as it learned them."
    else:
        pairs = f" and {calibration.pairs:.3g} for pairs" if "pairs" in found else ""
        words = f"The temperatures are {calibration.relevance:.3g} for relevance{pairs}."
    if evidence.paired < len(evidence.rows):
        words += f" Pairs are those of {evidence.paired:,} instances."
    head = ("of", "as learned") if calibration is None else ("of", "before", "after")
    errors = [(what, f"{both.ece_before:.4f}", f"{both.ece_after:.4f}") for what, both in found.items()]
    plots = [_reliability(what, both, calibration is not None) for what, both in found.items()]
    return section(
        "Reliability",
        element("p", _RELIABLE, words),
        _without_sigma(evidence, "says nothing of pairs"),
        element("div", plots, class_="plots"),
        table("Expected calibration error", head, (row[: len(head)] for row in errors), numbers={1, 2}),
        [_bins(what, both, calibration is not None) for what, both in found.items()],
        anchor="reliability",
    )


def _reliability(what: str, both: BeforeAfter, calibrated: bool) -> Html:
    words = f"Reliability of {what}: calibration error {both.ece_before:.3f}"
    if calibrated:
        display = ReliabilityDisplay.from_report(both, about=what)
        words += f" before and {both.ece_after:.3f} after calibration"
    else:
        display = ReliabilityDisplay({"as learned": both.before}, about=what)
    shown = {
        "relevance": "Probabilities of relevance.",
        "pairs": "Probabilities that one label is above another.",
    }
    drawing = drawn(f"reliability-{what}", words, (4.4, 4.4), display.plot)
    return figure(drawing, f"{shown[what]} Larger dots stand for more of them.")


def _bins(what: str, both: BeforeAfter, calibrated: bool) -> Html:
    rows = []
    after = [("after", both.after)] if calibrated else []
    for name, one in (("before" if calibrated else "as learned", both.before), *after):
        edges, said, came, counts = (np.asarray(part) for part in one)
        for place in np.flatnonzero(counts):
            span = f"{name}, {edges[place]:.2f} to {edges[place + 1]:.2f}"
            rows.append([span, f"{said[place]:.3f}", f"{came[place]:.3f}", f"{counts[place]:,}"])
    head = ("bin", "predicted", "came true", "how many")
    made = table(f"Reliability of {what}", head, rows, numbers={1, 2, 3}, hide=True)
    return details(f"The numbers of {what}", made)


def _without_sigma(evidence: Evidence, words: str) -> Html | None:
    if evidence.prediction.raw is not None:
        return None
    return note(f"The method {evidence.model.method.name} has no sigma: it {words}.")


def abstention_section(evidence: Evidence) -> Section:
    """Coverage against accuracy."""
    curve = evidence.abstention
    if curve is None:
        why = _without_sigma(evidence, "cannot say how sure it is of a pair, and cannot abstain")
        return section("Abstention", why, anchor="abstention")

    def at(confidence: float) -> tuple[float, float, int]:
        place = int(np.abs(curve.confidences - confidence).argmin())
        return 100 * curve.coverage[place], 100 * curve.accuracy[place], int(curve.counts[place])

    rows = []
    for confidence in _CONFIDENCES:
        coverage, accuracy, count = at(confidence)
        right = f"{accuracy:.2f}" if count else "-"
        rows.append([f"{100 * confidence:.0f}", f"{coverage:.2f}", right, f"{count:,}"])
    coverage, accuracy, _ = at(0.9)
    words = (
        f"Accuracy against coverage. At confidence 0.9, {coverage:.1f} percent of the pairs are compared and "
        f"{accuracy:.1f} percent of these comparisons are right"
    )
    display = CoverageDisplay({evidence.model.method.name: curve})
    drawing = drawn("coverage", words, (5.6, 4.0), display.plot)
    head = ("confidence", "coverage", "accuracy", "comparisons")
    return section(
        "Abstention",
        element("p", _ABSTAINING),
        element(
            "div",
            figure(drawing, "Dots: the confidence a comparison needs."),
            table("Partial orders at rising confidence, percent", head, rows, numbers={0, 1, 2, 3}),
            class_="plots",
        ),
        anchor="abstention",
    )


def examples_section(evidence: Evidence, count: int) -> Section:
    """The best and the worst."""
    picked = pick_examples(evidence.tau_b, evidence.truth, count)
    no_sigma = evidence.prediction.raw is None
    bars = "scores" if no_sigma else "mean significances with one sigma to each side"
    words = (
        f"By tau-b; among equals those with more relevant labels. Bars are {bars}, blue where the label is "
        "predicted relevant; to the right stands the true rank: larger is more significant, – irrelevant."
    )
    none = element("p", "No other instance orders two labels.", class_="soft")
    return section(
        "Examples",
        element("p", words),
        element("h3", "Best"),
        example_cards(evidence, picked.best, "best") if picked.best else none,
        element("h3", "Worst"),
        example_cards(evidence, picked.worst, "worst") if picked.worst else none,
        anchor="examples",
    )

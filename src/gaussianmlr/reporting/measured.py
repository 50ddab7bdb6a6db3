"""The sections of a report that were measured: metrics, reliability, order, abstention, examples."""

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
from gaussianmlr.reporting.html import Html, details, element, facts, figure, note, section, table
from gaussianmlr.reporting.numbers import Confusion, pick_examples, place_table

__all__ = ["measured_sections", "where"]

MEANINGS = {
    "tau_b": "agreement of predicted and true order over all pairs of labels, ties counted; 100 is the same order",
    "spearman_rho": "correlation of predicted and true positions",
    "gamma": "agreement over the pairs that both orders tell apart",
    "hamming_loss": "labels on the wrong side of relevance",
    "max1_error": "instances whose most significant label is not relevant",
    "f1": "relevance: balance of what is found and what is right, over all labels together",
}
_MOST_LABELS = 14  # of a matrix on a page
_MOST_PLACES = 8
_MOST_PAIRS = 12
_CONFIDENCES = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)


def where(evidence: Evidence) -> str:
    """What was measured on, in words."""
    total, count = len(evidence.data), len(evidence.rows)
    parts = {
        "all": "everything in",
        "validation": "the validation part of",
        "test": "the test part of",
        "train": "the training part of",
    }
    part = parts.get(evidence.split, f"the part “{evidence.split}” of")
    some = f"a random sample of {count:,} of the {total:,}" if count < total else f"all {count:,}"
    return f"{part} {evidence.name}: {some} instances"


def warnings_of(evidence: Evidence) -> list[Html]:
    """What flatters the numbers, said beside them."""
    found = [note(text[:1].upper() + text[1:] + ".") for text in evidence.notes]
    if evidence.seen:
        found.append(
            note(
                "The best epoch was chosen on the validation part and the temperatures were fitted to it, so that "
                "the model looks a little better here than on new data; give --data with a test part to see that."
            )
        )
    if evidence.split == "train":
        found.append(note("The model was trained on these instances: it looks better here than it is."))
    return found


def measured_sections(evidence: Evidence, examples: int, recorded: dict[str, float]) -> list[Html]:
    """All of them."""
    return [
        metrics_section(evidence, recorded),
        reliability_section(evidence),
        order_section(evidence),
        abstention_section(evidence),
        examples_section(evidence, examples),
    ]


def metrics_section(evidence: Evidence, recorded: dict[str, float]) -> Html:
    """The paper's six."""
    tau = evidence.tau_b[(evidence.truth >= 0).any(1)]
    error = 1.96 * float(tau.std(ddof=1)) / math.sqrt(len(tau)) if len(tau) > 1 else math.nan
    rows = []
    for name, value in evidence.metrics.items():
        shown = f"{100 * value:.2f}"
        more = f"± {100 * error:.2f}" if name == "tau_b" and not math.isnan(error) else ""
        then = f"{100 * recorded[name]:.2f}" if name in recorded else "-"
        heading = f"{NAMES[name]} {'↓' if name in LOWER else '↑'}"
        rows.append([heading, shown, more, then, MEANINGS[name]])
    head = ("metric", "measured", "95 %", "after training", "what it says")
    return section(
        "Metrics",
        element("p", f"In percent, on {where(evidence)}."),
        warnings_of(evidence),
        table("Metrics in percent", head, rows, numbers={1, 2, 3}, class_="wide", hide=True),
        element(
            "p",
            "95 %: of the mean over instances like these, for this trained model. After training: on the validation "
            "part of the run, as it recorded them.",
            class_="soft small",
        ),
        anchor="metrics",
    )


def reliability_section(evidence: Evidence) -> Html:
    """Relevance and pairs, before and after calibration."""
    calibration = evidence.model.calibration
    found = evidence.reliability
    plots = [_reliability(what, both, calibration is not None) for what, both in found.items()]
    words = (
        "The model has no temperatures: its probabilities are as it learned them."
        if calibration is None
        else f"Temperatures: {calibration.relevance:.3g} for relevance"
        + (f", {calibration.pairs:.3g} for pairs." if "pairs" in found else ".")
    )
    less = (
        f" Of pairs, {evidence.paired:,} instances are looked at."
        if evidence.paired < len(evidence.rows)
        else ""
    )
    rows = []
    for what, both in found.items():
        rows.append([what, f"{both.ece_before:.4f}", f"{both.ece_after:.4f}"])
    return section(
        "Reliability",
        element("p", "What the model says against what came true; on the diagonal, probabilities mean what they ",
                "say. ", words, less),
        _without_sigma(evidence, "says nothing of pairs"),
        element("div", plots, class_="plots"),
        table("Expected calibration error", ("of", "before", "after"), rows, numbers={1, 2}),
        [_bins(what, both) for what, both in found.items()],
        anchor="reliability",
    )  # fmt: skip


def _reliability(what: str, both: BeforeAfter, calibrated: bool) -> Html:
    display = (
        ReliabilityDisplay.from_report(both, about=what)
        if calibrated
        else ReliabilityDisplay({"as learned": both.before}, about=what)
    )
    words = f"Reliability of {what}: calibration error {both.ece_before:.3f} before"
    words += f" and {both.ece_after:.3f} after calibration" if calibrated else " any calibration"
    shown = {
        "relevance": "Probabilities of relevance.",
        "pairs": "Probabilities that one label is above another.",
    }
    return figure(
        drawn(f"reliability-{what}", words, (4.4, 4.4), display.plot),
        f"{shown[what]} Larger dots stand for more of them.",
    )


def _bins(what: str, both: BeforeAfter) -> Html:
    rows = []
    for one, name in ((both.before, "before"), (both.after, "after")):
        edges, predicted, observed, counts = (np.asarray(part) for part in one)
        for place in np.flatnonzero(counts):
            span = f"{edges[place]:.2f} to {edges[place + 1]:.2f}"
            rows.append(
                [f"{name}, {span}", f"{predicted[place]:.3f}", f"{observed[place]:.3f}", f"{counts[place]:,}"]
            )
    head = ("bin", "predicted", "came true", "how many")
    return details(
        f"The numbers of {what}", table(f"Reliability of {what}", head, rows, numbers={1, 2, 3}, hide=True)
    )


def _without_sigma(evidence: Evidence, words: str) -> Html | None:
    if evidence.prediction.raw is not None:
        return None
    return note(f"The method {evidence.model.method.name} has no sigma: it {words}.")


def order_section(evidence: Evidence) -> Html:
    """Which labels stand the wrong way round, and at which places."""
    labels, found = evidence.model.labels, evidence.confusion
    if len(labels) < 2:
        return section("Order", element("p", "One label: there is nothing to order."), anchor="order")
    wrong, total = int(found.wrong.sum()), int(found.total.sum())
    share = f"{wrong:,} of {total:,} truly ordered pairs ({100 * wrong / max(1, total):.2f} %)"
    return section(
        "Order",
        element(
            "p",
            f"{share} are predicted the wrong way round. Pairs that the prediction ties, most often two labels "
            "that it takes for irrelevant, are no mistake here.",
        ),
        element("h3", "Confusion of order"),
        element("p", "How often, in percent, the label of the row is predicted above the label of the column where "
                     "it truly stands below; hover for counts.", class_="soft"),
        _matrix(evidence, found),
        _worst_pairs(labels, found),
        element("h3", "Predicted place by true place"),
        element("p", "Of the labels at a true place, how many percent are predicted at each place; 1 is the "
                     "most significant, and tied labels share a place.", class_="soft"),
        _places(evidence),
        anchor="order",
    )  # fmt: skip


def _matrix(evidence: Evidence, found: Confusion) -> Html:
    labels = evidence.model.labels
    often = np.argsort(-(found.wrong.sum(0) + found.wrong.sum(1)), kind="stable")[:_MOST_LABELS]
    chosen = np.sort(often)
    largest = np.nanmax(np.append(found.share, 0.0)) or 1.0

    def cell(row: int, column: int) -> Html:
        if row == column or not found.total[row, column]:
            return element("td", "·", class_="empty", title=None if row == column else "never truly below")
        share = found.share[row, column]
        text = f"{100 * share:.1f}" if 0 < share < 0.0995 else f"{100 * share:.0f}"
        counts = (
            f"{labels[row]} above {labels[column]}: {found.wrong[row, column]} of {found.total[row, column]}"
        )
        return element("td", text, style=f"--heat: {55 * share / largest:.0f}%", title=counts)

    rows = [[labels[row], *(cell(row, column) for column in chosen)] for row in chosen]
    some = (
        f", the {len(chosen)} labels of {len(labels)} with the most mistakes"
        if len(chosen) < len(labels)
        else ""
    )
    head = ["predicted above →", *(labels[column] for column in chosen)]
    return table(f"Confusion of order, percent{some}", head, rows, class_="heat", hide=not some)


def _worst_pairs(labels: tuple[str, ...], found: Confusion) -> Html | None:
    order = np.argsort(-found.wrong, axis=None, kind="stable")[:_MOST_PAIRS]
    rows = []
    for row, column in zip(*np.unravel_index(order, found.wrong.shape)):
        if found.wrong[row, column]:
            counts = f"{found.wrong[row, column]:,} of {found.total[row, column]:,}"
            rows.append(
                [f"{labels[row]} above {labels[column]}", counts, f"{100 * found.share[row, column]:.1f}"]
            )
    if not rows:
        return None
    head = ("predicted, against the truth", "instances", "percent")
    return details("The pairs with the most mistakes", table("Pairs", head, rows, numbers={1, 2}, hide=True))


def _places(evidence: Evidence) -> Html:
    most = int(min(_MOST_PLACES, max(1, (evidence.truth > 0).sum(1).max(initial=1))))
    counts = place_table(evidence.prediction.ranks, evidence.truth, most)
    names = [
        *(str(place) for place in range(1, most)),
        f"{most}" if most < _MOST_PLACES else f"{most} or later",
    ]
    names.append("not relevant")

    def cell(row: int, column: int) -> Html:
        total = counts[row].sum()
        if not total:
            return element("td", "·", class_="empty")
        share = counts[row, column] / total
        said = f"{counts[row, column]:,} of {total:,}"
        return element("td", f"{100 * share:.1f}", style=f"--heat: {60 * share:.0f}%", title=said)

    rows = [[name, *(cell(row, column) for column in range(len(names)))] for row, name in enumerate(names)]
    return table(
        "Predicted place by true place, percent of the row", ["true ↓ predicted →", *names], rows,
        class_="heat good-heat", hide=True,
    )  # fmt: skip


def abstention_section(evidence: Evidence) -> Html:
    """Coverage against accuracy."""
    curve = evidence.abstention
    if curve is None:
        return section(
            "Abstention", _without_sigma(evidence, "cannot say how sure it is of a pair, and cannot abstain"),
            anchor="abstention",
        )  # fmt: skip
    rows = []
    for wanted in _CONFIDENCES:
        at = int(np.abs(curve.confidences - wanted).argmin())
        accuracy = f"{100 * curve.accuracy[at]:.2f}" if curve.counts[at] else "-"
        rows.append(
            [f"{100 * wanted:.0f}", f"{100 * curve.coverage[at]:.2f}", accuracy, f"{curve.counts[at]:,}"]
        )
    at = int(np.abs(curve.confidences - 0.9).argmin())
    words = (
        f"Accuracy against coverage. At confidence 0.9, {100 * curve.coverage[at]:.1f} percent of the pairs are "
        f"compared and {100 * curve.accuracy[at]:.1f} percent of these comparisons are right"
    )
    display = CoverageDisplay({evidence.model.method.name: curve})
    head = ("confidence", "coverage", "accuracy", "comparisons")
    return section(
        "Abstention",
        element("p", "A partial order says only what is sure. The surer it must be, the fewer of the truly ordered "
                     "pairs it compares (coverage), and the more of these comparisons are right (accuracy)."),
        element(
            "div",
            figure(drawn("coverage", words, (5.6, 4.0), display.plot), "Dots: the confidence a comparison needs."),
            table("Partial orders at rising confidence, percent", head, rows, numbers={0, 1, 2, 3}),
            class_="plots",
        ),
        anchor="abstention",
    )  # fmt: skip


def examples_section(evidence: Evidence, count: int) -> Html:
    """The best and the worst."""
    picked = pick_examples(evidence.tau_b, evidence.truth, count)
    bars = "scores" if evidence.prediction.raw is None else "mean significances with one sigma to each side"
    return section(
        "Examples",
        element("p", f"By tau-b; among equals those with more relevant labels. Bars are {bars}, blue where the label "
                     "is predicted relevant; to the right stands the true rank, larger for more significant, – for irrelevant."),
        element("h3", "Best"),
        example_cards(evidence, picked.best, "best"),
        element("h3", "Worst"),
        example_cards(evidence, picked.worst, "worst") if picked.worst else element("p", "None is left."),
        anchor="examples",
    )  # fmt: skip


def figures_of(evidence: Evidence) -> Html:
    """The numbers people look at first."""

    def shown(name: str) -> tuple[str, Any]:
        less = "less is better" if name in LOWER else "more is better"
        return NAMES[name], [f"{100 * evidence.metrics[name]:.2f}", element("small", less)]

    pairs = [shown(name) for name in ("tau_b", "f1", "hamming_loss", "max1_error")]
    error = evidence.reliability["relevance"].ece_after
    pairs.append((NAMES["ece"], [f"{100 * error:.2f}", element("small", "less is better")]))
    return facts(pairs, class_="figures")

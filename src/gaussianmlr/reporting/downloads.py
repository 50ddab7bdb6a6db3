"""The numbers of a report as files that live in its links."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from gaussianmlr.orders import to_text
from gaussianmlr.reporting.gathering import Evidence
from gaussianmlr.reporting.html import Html, Section, download, element, section

__all__ = ["csv_text", "downloads_section", "measures", "of_evidence"]

_MOST_BYTES = 1_500_000
_MOST_LABELS = 100  # of a matrix that is handed out


def csv_text(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Rows as CSV."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(head)
    writer.writerows(rows)
    return text.getvalue()


def downloads_section(links: list[Html]) -> Section:
    """The list of files."""
    words = "The files are inside this page: they can be saved without a connection."
    return section(
        "Downloads", element("p", words, class_="soft"), element("ul", links, class_="downloads"),
        anchor="downloads",
    )  # fmt: skip


def of_evidence(evidence: Evidence, facts: dict[str, Any]) -> list[Html]:
    """Predictions, metrics, and the confusion of order."""
    predictions, words = _predictions(evidence)
    found = [
        download("predictions.csv", predictions, "text/csv", words),
        download(
            "metrics.json",
            json.dumps({**facts, **measures(evidence)}, indent=1, ensure_ascii=False, allow_nan=False),
            "application/json",
            "everything that was measured, with the recipe and versions",
        ),
    ]
    labels = evidence.model.labels
    if 1 < len(labels) <= _MOST_LABELS:
        wrong, total = evidence.confusion
        rows = ([labels[u], labels[v], wrong[u, v], total[u, v]] for u, v in zip(*np.nonzero(total)))
        head = ("predicted_above", "than", "wrong", "truly_below")
        found.append(
            download(
                "confusion.csv", csv_text(head, rows), "text/csv", "the confusion of order, a row a pair"
            )
        )
    return found


def measures(evidence: Evidence) -> dict[str, Any]:
    """What was measured, ready for JSON; metrics are fractions."""
    curve = evidence.abstention
    return {
        "measured_on": {
            "data": evidence.name,
            "part": evidence.split,
            "instances": len(evidence.rows),
            "of": len(evidence.data),
        },
        "metrics": evidence.metrics,
        "calibration_error": {
            what: {"before": both.ece_before, "after": both.ece_after}
            for what, both in evidence.reliability.items()
        },
        "reliability": {
            what: {
                name: {key: np.asarray(part).tolist() for key, part in one._asdict().items()}
                for name, one in (("before", both.before), ("after", both.after))
            }
            for what, both in evidence.reliability.items()
        },
        "abstention": curve and {key: np.asarray(part).tolist() for key, part in curve._asdict().items()},
    }


def _predictions(evidence: Evidence) -> tuple[str, str]:
    """A row an instance; of very many labels the orders alone, so that the page stays light."""
    found, truth = evidence.prediction, evidence.truth
    head = ["instance", "tau_b", "true_order", "predicted_order"]
    orders = list(zip(found.names, evidence.tau_b, to_text(truth, found.labels), found.orders))
    rows = [[name, _number(tau), true, said] for name, tau, true, said in orders]
    columns: dict[str, Any] = {"true_rank": truth, "rank": found.ranks}
    if found.raw is None:
        columns["score"] = found.scores
    else:
        columns |= {"significance": found.significance, "sigma": found.sigma}
    columns["p_relevant"] = found.p_relevant
    names = [f"{column}:{label}" for label in found.labels for column in columns]
    values = np.stack(list(columns.values()), axis=-1).reshape(len(rows), -1)
    whole = csv_text(
        [*head, *names], ([*row, *map(_number, numbers)] for row, numbers in zip(rows, values.tolist()))
    )
    if len(whole) <= _MOST_BYTES:
        return whole, "every instance that was measured: orders, ranks, significances, probabilities"
    return csv_text(
        head, rows
    ), "every instance that was measured: orders alone, the rest would be too much here"


def _number(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.5g}"

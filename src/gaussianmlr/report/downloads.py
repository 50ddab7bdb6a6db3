"""The numbers of a report as files embedded in its links."""

from __future__ import annotations

import base64
import math
from typing import Any, NamedTuple

import numpy as np

from gaussianmlr._utils.strict_json import dumps
from gaussianmlr._utils.tables import csv_text
from gaussianmlr.orders import to_text
from gaussianmlr.report.guarantees import guarantees_of
from gaussianmlr.report.measure import Evidence

__all__ = ["Download", "measures", "of_evidence"]

_KINDS = {"csv": "text/csv", "json": "application/json", "md": "text/markdown", "tex": "text/plain"}
_MOST_BYTES = 1_500_000
_MOST_LABELS = 100  # of a matrix that can be downloaded


class Download(NamedTuple):
    """A file embedded in a link of the page."""

    name: str
    text: str
    words: str

    @property
    def address(self) -> str:
        """The file as a data URL."""
        coded = base64.b64encode(self.text.encode("utf-8", "replace")).decode()
        return f"data:{_KINDS[self.name.rpartition('.')[2]]};charset=utf-8;base64,{coded}"

    @property
    def size(self) -> str:
        """The size in kB or MB."""
        size = len(self.text.encode("utf-8", "replace"))
        return f"{size / 1e6:.1f} MB" if size >= 1e6 else f"{max(1, round(size / 1e3))} kB"


def of_evidence(
    evidence: Evidence, facts: dict[str, Any], *, escape_formulas: bool = False
) -> list[Download]:
    """Predictions, metrics, and the confusion of order."""
    predictions, words = _predictions(evidence, escape_formulas)
    found = [
        Download("predictions.csv", predictions, words),
        Download(
            "metrics.json",
            dumps({**facts, **measures(evidence)}, indent=1, ensure_ascii=False),
            "everything that was measured, with the recipe and versions",
        ),
    ]
    labels = evidence.model.labels
    if 1 < len(labels) <= _MOST_LABELS:
        labels = tuple(labels[label] for label in evidence.confused)
        wrong, total = evidence.confusion
        rows = ([labels[u], labels[v], wrong[u, v], total[u, v]] for u, v in zip(*np.nonzero(total)))
        head = ("predicted_above", "than", "wrong", "truly_below")
        confusion = csv_text(head, rows, escape_formulas=escape_formulas)
        words = "the confusion of order, one row per pair"
        found.append(Download("confusion.csv", confusion, words))
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
        "peers": evidence.peers.metrics,
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
        "guarantees": guarantees_of(evidence),
        "abstention": curve and {key: np.asarray(part).tolist() for key, part in curve._asdict().items()},
    }


def _predictions(evidence: Evidence, escape_formulas: bool) -> tuple[str, str]:
    """One row per instance; orders only where many labels would make the page large."""
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
    words = "every instance that was measured: orders only, the full table would be too large here"
    if truth.size * len(columns) * 2 > _MOST_BYTES:  # a digit and a comma each
        return csv_text(head, rows, escape_formulas=escape_formulas), words
    names = [f"{column}:{label}" for label in found.labels for column in columns]
    values = np.stack(list(columns.values()), axis=-1).reshape(len(orders), -1)
    more = ([*row, *map(_number, numbers)] for row, numbers in zip(rows, values.tolist()))
    whole = csv_text([*head, *names], more, escape_formulas=escape_formulas)
    if len(whole) <= _MOST_BYTES:
        return whole, "every instance that was measured: orders, ranks, significances, probabilities"
    return csv_text(head, rows, escape_formulas=escape_formulas), words


def _number(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.5g}"

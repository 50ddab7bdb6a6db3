"""The section of a report on guarantees: promised against observed."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from gaussianmlr.report.measure import Evidence
from gaussianmlr.report.page import Data

__all__ = ["guarantees_of", "guarantees_section"]

_ALPHAS = (0.01, 0.05, 0.1, 0.2)


def guarantees_of(evidence: Evidence) -> list[dict[str, Any]]:
    """What was observed at the levels that there are enough calibration rows for, ready for JSON."""
    known = evidence.model.guarantees
    if known is None:
        return []
    least = known.smallest_alpha - 1e-9
    some, truth = evidence.prediction[: evidence.paired], evidence.truth[: evidence.paired]
    return [
        {"alpha": alpha, **asdict(some.guaranteed(alpha).observed(truth))}
        for alpha in _ALPHAS
        if alpha >= least
    ]


def guarantees_section(evidence: Evidence) -> Data:
    """Coverage and sizes at several levels."""
    found, known = guarantees_of(evidence), evidence.model.guarantees
    assert known is not None
    rows = [
        [
            f"{one['alpha']:g}",
            f"{100 * (1 - one['alpha']):g}",
            f"{100 * one['covered']:.1f}",
            f"{one['set_size']:.2f}",
            f"{100 * one['placed']:.1f}",
            f"{one['width']:.2f}",
            f"{100 * one['wrong']:.1f}",
            f"{one['statements']:.2f}",
        ]
        for one in found
    ]
    return {
        "calibrated": f"{known.rows:,}",
        "measured": f"{evidence.paired:,}",
        "chosen_on": evidence.split == "validation",
        "rows": rows,
    }

"""Methods that learn a threshold of indifference, below which relevant labels tie."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from gaussianmlr.errors import DataError
from gaussianmlr.losses import Supervision
from gaussianmlr.methods.base import Method, Output, Outputs
from gaussianmlr.normal.tails import single_or_better

__all__ = [
    "SETTINGS",
    "Thresholds",
    "Ties",
    "check_ties",
    "learns_ties",
    "raw_of",
    "tau_of",
    "threshold_output",
]

Ties = Literal["none", "learned", "auto"]
Thresholds = Literal["model", "label"]
SETTINGS: tuple[Ties, ...] = ("none", "learned", "auto")
_GAIN = 10.0  # parameters are a tenth of what they say: one number has few steps to be learned in
_START = 0.5  # threshold before training


def check_ties(ties: Ties, thresholds: Thresholds) -> None:
    """Refuse unknown settings."""
    if ties not in SETTINGS:
        raise DataError(f"ties is 'none', 'learned' or 'auto', not {ties!r}")
    if thresholds not in ("model", "label"):
        raise DataError(f"thresholds is 'model' or 'label', not {thresholds!r}")


def threshold_output(ties: Ties, thresholds: Thresholds, supervision: Supervision) -> tuple[Output, ...]:
    """The output of the thresholds, if they are learned, as a tuple to be added to others."""
    # A bipartition does not say which labels tie.
    return () if ties == "none" or supervision == "weak" else (Output("tau", of=thresholds, fixed=True),)


def learns_ties(method: Method) -> bool:
    """Whether a method learns thresholds.

    Examples
    --------
    >>> from gaussianmlr import methods
    >>> learns_ties(methods.make("gmlr")), learns_ties(methods.make("gmlr", ties="learned"))
    (False, True)
    """
    return any(output.name == "tau" for output in method.outputs)


def tau_of(outputs: Outputs) -> Tensor | None:
    r"""Thresholds :math:`\operatorname{softplus}` of the output, [N, K] or [N, 1]; None without one.

    Examples
    --------
    >>> tau_of({"tau": torch.zeros(1, 1)})
    tensor([[0.5000]])
    """
    raw = outputs.get("tau")
    if raw is None:
        return None
    return torch.nn.functional.softplus(_GAIN * single_or_better(raw) + _inverse(_START))


def raw_of(tau: Tensor) -> Tensor:
    """What a network puts out for thresholds, the inverse of `tau_of`.

    Examples
    --------
    >>> tau_of({"tau": raw_of(torch.tensor([[0.3]]))})
    tensor([[0.3000]])
    """
    return (tau + torch.log(-torch.expm1(-tau)) - _inverse(_START)) / _GAIN


def _inverse(tau: float) -> float:
    return float(torch.tensor(tau, dtype=torch.float64).expm1().log())

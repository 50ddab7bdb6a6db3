"""The parts of a prediction: their types, that they fit one another, and the scale of significances."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import torch

from gaussianmlr import normal
from gaussianmlr._utils.arrays import FloatArray, beside, fixed, matrix, refuse
from gaussianmlr.errors import DataError, shorten
from gaussianmlr.model.scale import JndScale
from gaussianmlr.orders import check_labels

if TYPE_CHECKING:
    from gaussianmlr.model.guarantees import Conformal

__all__ = [
    "IntArray",
    "Interval",
    "Parts",
    "Scale",
    "Significances",
    "law_of",
    "scaled",
]

IntArray = npt.NDArray[np.int64]
Scale = Literal["jnd", "canonical", "raw"]

_OF_ALL = "ranks, orders, scores and p_relevant"
_OF_SIGMA = (
    "significance, sigma, degree, p_above, p_tie, p_first, p_rank, expected_rank, rank_interval and "
    "partial_order"
)


class Significances(NamedTuple):
    """Means and standard deviations, float arrays [N, K]."""

    mu: FloatArray
    sigma: FloatArray


class Interval(NamedTuple):
    """Smallest and largest rank, int arrays [N, K]."""

    low: IntArray
    high: IntArray


@dataclass(frozen=True, eq=False, repr=False)
class Parts:
    """The value of a `Prediction`, which has its parameters: checked, fixed and compared by its numbers."""

    scores: FloatArray
    p_relevant: FloatArray
    labels: tuple[str, ...]
    raw: Significances | None = None
    method: str = ""
    names: tuple[Any, ...] = ()
    jnd: JndScale | None = None
    scale: Scale | None = None
    conformal: Conformal | None = None
    tau: FloatArray | None = None

    def __post_init__(self) -> None:
        parts = _checked(self.scores, self.p_relevant, self.labels, self.raw, self.names, self.tau)
        for name, value in {**parts, "scale": _scale(self.scale, parts["raw"], self.jnd)}.items():
            object.__setattr__(self, name, value)

    def __len__(self) -> int:
        return len(self.scores)

    def __getitem__(self, which: Any) -> Self:
        """Some instances: a slice, indices or booleans; a single index gives a prediction of length one."""
        chosen = _places(which, len(self))
        raw = self.raw and Significances(*(part[chosen] for part in self.raw))
        names = tuple(self.names[place] for place in chosen)
        return replace(
            self,
            scores=self.scores[chosen],
            p_relevant=self.p_relevant[chosen],
            raw=raw,
            names=names,
            tau=None if self.tau is None else self.tau[chosen],
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Parts):
            return NotImplemented
        of = ("labels", "method", "names", "jnd", "scale", "conformal")
        same = all(getattr(self, name) == getattr(other, name) for name in of)
        mine, others = (
            (one.scores, one.p_relevant, *(one.raw or ()), *(() if one.tau is None else (one.tau,)))
            for one in (self, other)
        )
        return same and len(mine) == len(others) and all(map(np.array_equal, mine, others))

    __hash__ = None  # type: ignore[assignment]  # arrays have none


def _checked(
    scores: FloatArray,
    p_relevant: FloatArray,
    labels: Iterable[str],
    raw: Significances | None,
    names: Iterable[Any],
    tau: FloatArray | None,
) -> dict[str, Any]:
    """The fields of a `Prediction` as arrays that cannot be changed, all of one shape.

    Examples
    --------
    >>> _checked(np.array([[2.0]]), np.array([[0.9]]), ["a", "b"], None, (), None)
    Traceback (most recent call last):
        ...
    gaussianmlr.errors.DataError: expected scores of 2 labels, got shape [1, 1]
    """
    scores, chances = matrix(scores, "scores"), matrix(p_relevant, "p_relevant")
    labels = check_labels(labels)
    if scores.shape[1] != len(labels):
        raise DataError(f"expected scores of {len(labels)} labels, got shape {list(scores.shape)}")
    names = tuple(names) or tuple(range(len(scores)))
    if len(names) != len(scores):
        raise DataError(f"expected a name for each of {len(scores)} instances, got {len(names)}")
    if raw is not None:
        raw = Significances(matrix(raw[0], "mu"), matrix(raw[1], "sigma"))
    others = {"p_relevant": chances, **({} if raw is None else raw._asdict())}
    if tau is not None:
        others["tau"] = tau = matrix(tau, "tau")
        refuse(tau < 0, tau, "tau", "a number from 0 up")
    for name, part in others.items():
        if part.shape != scores.shape:
            raise DataError(
                f"expected {name} of the scores' shape {list(scores.shape)}, got {list(part.shape)}"
            )
    if raw is not None:
        refuse(raw.sigma <= 0, raw.sigma, "sigma", "a number above 0")
    return {
        "scores": fixed(scores),
        "p_relevant": fixed(beside(scores, chances)),
        "labels": labels,
        "tau": None if tau is None else fixed(tau),
        "raw": raw and Significances(*map(fixed, raw)),
        "names": names,
    }


def _places(which: Any, count: int) -> IntArray:
    """The places among so many instances that a slice, indices or booleans choose.

    Examples
    --------
    >>> _places(slice(1, None), 3), _places(-1, 3)
    (array([1, 2]), array([2]))
    """
    try:
        return np.atleast_1d(np.arange(count)[which])
    except IndexError:
        raise IndexError(f"no instance {shorten(which)} among {count}") from None


def law_of(raw: Significances | None, method: str) -> Significances:
    """The raw mu and sigma, or an error that says what there is without them."""
    if raw is None:
        method = f"the method {method!r}" if method else "this method"
        raise DataError(f"{method} has no sigma: it gives {_OF_ALL}, but not {_OF_SIGMA}")
    return raw


def _scale(asked: Scale | None, raw: Significances | None, jnd: JndScale | None) -> Scale | None:
    """The scale that was asked for, if there is one; else the default."""
    if raw is None:
        return None
    if asked is None:
        return "canonical" if jnd is None else "jnd"
    if asked not in ("jnd", "canonical", "raw"):
        raise DataError(f"scale is 'jnd', 'canonical' or 'raw', not {asked!r}")
    if asked == "jnd" and jnd is None:
        raise DataError(
            "this model has no scale of just noticeable differences: it was trained without validation "
            "data, with jnd=false, or by an older version; 'canonical' and 'raw' are there"
        )
    return asked


def scaled(raw: Significances, scale: Scale | None, jnd: JndScale | None) -> Significances:
    """Significances on a scale, from the raw ones.

    Examples
    --------
    >>> scaled(Significances(np.array([[6.0, -4.0]]), np.array([[2.0, 2.0]])), "canonical", None).mu
    array([[ 3., -2.]])
    """
    if scale == "raw":
        return raw
    mu, sigma = (part.numpy() for part in normal.canonical(torch.tensor(raw.mu), torch.tensor(raw.sigma)))
    law = (mu, sigma) if scale != "jnd" or jnd is None else jnd.apply(mu, sigma)
    return Significances(*map(fixed, law))

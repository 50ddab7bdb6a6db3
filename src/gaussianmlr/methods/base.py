"""The base class of methods: outputs per label or pair, a loss, a reading, stages. And the registry."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, TypeVar

import torch
from torch import Tensor

from gaussianmlr._utils import trust
from gaussianmlr.errors import DataError
from gaussianmlr.losses import Reduction, Supervision, Weights
from gaussianmlr.normal.tails import single_or_better
from gaussianmlr.normal.ties import best_buckets

Outputs = Mapping[str, Tensor]


@dataclass(frozen=True)
class Output:
    """One number per label, one per pair of labels (pairs as in `losses.pair_indices`), or one alone.

    Parameters
    ----------
    name : str
        Its name.
    of : {"label", "pair", "model"}
        What it has one number per.
    fixed : bool
        Whether the numbers are learned parameters, the same for every instance.

    Examples
    --------
    >>> Output("mu").size(9), Output("logit", of="pair").size(9), Output("tau", "model", fixed=True).size(9)
    (9, 45, 1)
    """

    name: str
    of: Literal["label", "pair", "model"] = "label"
    fixed: bool = False

    def size(self, labels: int) -> int:
        """How many numbers an instance with this many labels has."""
        return {"label": labels, "pair": labels * (labels + 1) // 2, "model": 1}[self.of]


@dataclass(frozen=True)
class Stage:
    """A part of training: all of the network, or only the layers of some outputs.

    If only some layers are trained, everything else is frozen, including batch-norm statistics; see
    `begin_stage`.

    Examples
    --------
    >>> from gaussianmlr import methods
    >>> [stage.name for stage in methods.make("lsep").stages]
    ['ranking', 'threshold']
    """

    name: str
    trains: tuple[str, ...] | None = None


class Reading(NamedTuple):
    """What a method predicts for a batch.

    Attributes
    ----------
    scores : Tensor [N, K]
        Larger = more significant; a label is relevant where its score is above zero.
    p_relevant : Tensor [N, K]
        Probability of relevance; above one half only where the score is above zero.
    mu, sigma : Tensor [N, K] or None
        Significances, for methods that have them.
    tau : Tensor [N, K] or None
        Thresholds of indifference in the units of the scores, for methods that predict ties.
    """

    scores: Tensor
    p_relevant: Tensor
    mu: Tensor | None = None
    sigma: Tensor | None = None
    tau: Tensor | None = None

    @classmethod
    def of_scores(cls, scores: Tensor, tau: Tensor | None = None) -> Reading:
        """Reading of a method whose scores are log-odds of relevance."""
        return cls(scores, torch.sigmoid(single_or_better(scores)), tau=tau)

    @property
    def ranks(self) -> Tensor | None:
        """The most likely orders with ties as ranks [N, K]; None for methods that predict none.

        See `normal.best_buckets`. Without ties, the order is that of the scores.
        """
        return None if self.tau is None else best_buckets(self.scores, self.sigma, self.tau)

    def rows(self, which: Tensor) -> Reading:
        """The readings of some instances."""
        return Reading(*(None if part is None else part[which] for part in self))  # type: ignore[arg-type]

    @classmethod
    def join(cls, parts: Sequence[Reading]) -> Reading:
        """The readings of several batches as one, in main memory."""
        columns = [[part for part in column if part is not None] for column in zip(*parts)]
        return cls(*(torch.cat(column).cpu() if column else None for column in columns))  # type: ignore[arg-type]


@dataclass(frozen=True)
class Method(ABC):
    """How scores are learned from orders and read; independent of backbones and heads.

    Your own method sets `name` and `outputs`, implements `loss` and `read`, and is registered by
    `register`; settings are dataclass fields.

    Parameters
    ----------
    supervision : {"strong", "weak"}
        Whether the order among relevant labels is used.

    Examples
    --------
    >>> from gaussianmlr import losses
    >>> class Hinge(Method):
    ...     name, outputs = "hinge", (Output("score"),)
    ...
    ...     def loss(self, outputs, ranks, *, stage=None, reduction="mean"):
    ...         signs = (ranks > 0) * 2.0 - 1.0
    ...         return losses.reduce((1 - signs * outputs["score"]).relu().sum(-1), reduction)
    ...
    ...     def read(self, outputs):
    ...         return Reading.of_scores(outputs["score"])
    >>> Hinge().loss({"score": torch.tensor([[2.0, 0.5]])}, torch.tensor([[1, 0]]))
    tensor(1.5000)
    """

    supervision: Supervision = "strong"

    name: ClassVar[str]
    outputs: ClassVar[tuple[Output, ...]]
    stages: ClassVar[tuple[Stage, ...]] = (Stage("all"),)
    supervisions: ClassVar[tuple[Supervision, ...]] = ("strong", "weak")

    def __post_init__(self) -> None:
        if self.supervision not in self.supervisions:
            known = " or ".join(map(repr, self.supervisions))
            raise DataError(f"method {self.name!r} takes supervision {known}, not {self.supervision!r}")

    @abstractmethod
    def loss(
        self,
        outputs: Outputs,
        ranks: Tensor,
        *,
        stage: str | None = None,
        reduction: Reduction = "mean",
        weights: Weights | None = None,
    ) -> Tensor:
        """Loss of a batch in a stage, by default the first. Supporting `weights` is optional."""

    @abstractmethod
    def read(self, outputs: Outputs) -> Reading:
        """Scores whose zero is the threshold, and what else the method predicts."""

    def settings(self) -> dict[str, Any]:
        """The fields; ``make(method.name, **method.settings())`` makes the method again."""
        return dataclasses.asdict(self)


GROUP = "gaussianmlr.methods"  # entry points of installed packages
_REGISTRY: dict[str, type[Method]] = {}
AnyMethod = TypeVar("AnyMethod", bound=type[Method])


def register(method: AnyMethod) -> AnyMethod:
    """Register a method under its name; use it as a decorator.

    Examples
    --------
    >>> from gaussianmlr.methods import make
    >>> register(type(make("gmlr"))).name  # the same one again
    'gmlr'
    """
    if not isinstance(getattr(method, "name", None), str):
        raise DataError(f'{_path(method)} has no name; expected a string, as in `name = "mine"`')
    other = _REGISTRY.setdefault(method.name, method)
    if _path(other) != _path(method):
        raise DataError(f"a method named {method.name!r} is already registered: {_path(other)}")
    _REGISTRY[method.name] = method  # the same one again, after a reload
    return method


def _path(method: type[Method]) -> str:
    return f"{method.__module__}:{method.__qualname__}"


def available() -> tuple[str, ...]:
    """Names of the registered methods, including those of installed packages.

    Examples
    --------
    >>> from gaussianmlr import methods
    >>> methods.available()
    ('br', 'crpc', 'gmlr', 'lsep', 'pl', 'ranknet', 'zlpr')
    """
    return tuple(sorted({*_REGISTRY, *trust.offered(GROUP)}))


def make(name: str, **settings: Any) -> Method:
    """Make a method from its name and settings.

    Parameters
    ----------
    name : str
        A name in `available`, or ``"package.module:Class"`` for a method of another module.
    **settings
        Its fields.

    Examples
    --------
    >>> from gaussianmlr import methods
    >>> methods.make("gmlr", supervision="weak")
    Gmlr(supervision='weak', bound=4.0, gauge='free', balance='parts', ties='none', thresholds='model')
    """
    method = find(name)
    fields = {field.name for field in dataclasses.fields(method)}
    strange = sorted(set(settings) - fields)
    if strange:
        raise DataError(f"method {name!r} has no setting {strange[0]!r}; it has {', '.join(sorted(fields))}")
    return method(**settings)


def find(name: str) -> type[Method]:
    """The class of a method; a method of an installed package is imported now.

    Examples
    --------
    >>> find("gmlr").__name__
    'Gmlr'
    """
    found = _REGISTRY.get(name)
    if found is not None:
        return found
    found = trust.find(name, "method") if ":" in name else trust.installed(GROUP, name)
    if found is None:
        raise DataError(f"no method {name!r}; known are {', '.join(available())}, or 'package.module:Class'")
    if not (isinstance(found, type) and issubclass(found, Method)):
        raise DataError(f"{name!r} is not a method: expected a subclass of gaussianmlr.methods.Method")
    if lacking := sorted(getattr(found, "__abstractmethods__", ())):
        raise DataError(f"{name!r} is not a complete method: it lacks {', '.join(lacking)}")
    return found


def check_named(name: str, where: str | Path) -> None:
    """Refuse a method named by a file if it is code that the user has not allowed (see `trust`).

    Examples
    --------
    >>> check_named("evil:Method", "config.json")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    gaussianmlr.errors.DataError: config.json ...
    """
    if ":" in name:
        trust.check(name, "method", where)

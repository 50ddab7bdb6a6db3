"""Who takes part in a comparison: networks by the name of their method, and anything with fit and scores."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor

from gaussianmlr.batches import Arrays, RankedSet, batches
from gaussianmlr.checkpoints import IDLE
from gaussianmlr.errors import DataError
from gaussianmlr.fitting import fit, weights_of
from gaussianmlr.methods import available, make
from gaussianmlr.rankers import aggregate
from gaussianmlr.recipe import Recipe
from gaussianmlr.sources import Source
from gaussianmlr.training import Watcher

__all__ = ["Classic", "Contender", "Estimator", "Network", "Outcome", "Task", "contenders_of"]

Wanted = Literal["strong", "weak", "both"]


class Task(NamedTuple):
    """What a contender is given: the same for all of them, but for the name of the method."""

    source: Source  # train, validation and test part of one split
    recipe: Recipe  # with the seed of the run
    folder: Path  # to keep what is needed to go on after an interruption
    accelerator: str
    watcher: Watcher | None


class Outcome(NamedTuple):
    """What a contender says of the test part."""

    scores: Tensor  # [N, K]
    p_relevant: Tensor | None  # [N, K], of contenders that give probabilities
    ranks: Tensor  # [N, K], the truth
    seconds: float  # of learning
    facts: dict[str, Any]  # what else is worth keeping


class Contender(Protocol):
    """Anything that learns from a train and a validation part, and scores a test part."""

    @property
    def name(self) -> str:
        """How it is called, such as ``gmlr:weak``."""

    @property
    def method(self) -> str:
        """The name without the supervision."""

    @property
    def supervision(self) -> str:
        """What it uses of the orders: strong or weak."""

    def describe(self, recipe: Recipe) -> dict[str, Any]:
        """What it does with a recipe, ready for JSON; another description is another contender."""

    def run(self, task: Task) -> Outcome:
        """Learn and score; the test part is looked at in the end, once."""


@dataclass(frozen=True)
class Network:
    """A method on the recipe's backbone and head.

    Parameters
    ----------
    method : str
        A name in `methods.available`, or ``"package.module:Class"``.
    supervision : {"strong", "weak"}
        What it may use of the orders.

    Examples
    --------
    >>> Network("gmlr", "weak").name
    'gmlr:weak'
    """

    method: str
    supervision: str = "strong"

    def __post_init__(self) -> None:
        make(self.method, supervision=self.supervision)  # refuses what there is not

    @property
    def name(self) -> str:
        """Method and supervision."""
        return f"{self.method}:{self.supervision}"

    def describe(self, recipe: Recipe) -> dict[str, Any]:
        """The whole recipe, but for what changes nothing."""
        own = self._own(recipe)
        method = make(own.method, **own.method_settings)  # refused now, not after hours
        weights_of(own, method, (*own.label_weights, "any other"))
        fields = {name: value for name, value in own.to_dict().items() if name not in IDLE}
        return {"kind": "network", "recipe": fields}

    def _own(self, recipe: Recipe) -> Recipe:
        """The recipe with this method; settings of a method in it are for that method alone."""
        kept = recipe.method_settings if recipe.method == self.method else {}
        return recipe.replace(method=self.method, method_settings={**kept, "supervision": self.supervision})

    def run(self, task: Task) -> Outcome:
        """Train, going on where an earlier try was cut, and read the test part by the best epoch."""
        source = task.source
        recipe = self._own(task.recipe)
        fitted = fit(
            recipe,
            source.train,
            source.validation,
            labels=source.labels,
            out=task.folder,
            inputs=source.inputs,
            fingerprint=source.fingerprint,
            accelerator=task.accelerator,
            watcher=task.watcher,
        )
        if fitted.result.interrupted:
            raise KeyboardInterrupt
        scores, chances, ranks = [], [], []
        for batch in batches(_test(source), torch.arange(len(_test(source))), recipe.batch_size):
            reading = fitted.model.read(batch.inputs, recipe.batch_size)
            scores.append(reading.scores.float())
            chances.append(reading.p_relevant.float())
            ranks.append(batch.ranks)
        result = fitted.result
        facts = {"instances_seen": result.images, "epochs": len(result.history)}
        return Outcome(torch.cat(scores), torch.cat(chances), torch.cat(ranks), result.seconds, facts)


class Estimator(Protocol):
    """What a classic contender is made of; `predict_proba` may give P(relevant) [N, K] besides."""

    def fit(self, X: Any, ranks: Any, /) -> Any:
        """Learn from rows [N, D] and ranks [N, K], and `sample_weight` where there is one."""

    def decision_function(self, X: Any, /) -> Any:
        """Scores [N, K]; a label is relevant where its score is above zero."""


@dataclass(frozen=True)
class Classic:
    """A rival without a network, for tables.

    It needs no validation part to choose an epoch by, so it learns from both parts: what is tested on is
    what all contenders could not learn from.

    Parameters
    ----------
    method : str
        What it is called.
    make : callable
        Gives a new estimator from a seed.
    supervision : {"strong", "weak"}
        What it uses of the orders.
    """

    method: str
    make: Callable[[int], Estimator]
    supervision: str = "strong"

    @property
    def name(self) -> str:
        """The name alone: it has one supervision."""
        return self.method

    def describe(self, recipe: Recipe) -> dict[str, Any]:
        """The estimator, as it shows itself."""
        return {"kind": "classic", "estimator": " ".join(repr(self.make(recipe.seed)).split())}

    def run(self, task: Task) -> Outcome:
        """Learn from the train and the validation part, and score the test part."""
        train, validation = task.source.train, task.source.validation
        learned = [_table(part, self.name) for part in (train, validation)]
        tested = _table(_test(task.source), self.name)
        x, ranks = (np.concatenate(parts) for parts in zip(*learned))
        weights = getattr(train, "weights", None)
        more = {}
        if weights is not None:  # validation instances have none, and count as much as the others on average
            more["sample_weight"] = np.append(
                weights.numpy(), np.full(len(validation), weights.mean().item())
            )
        estimator: Any = self.make(task.recipe.seed)
        began = time.monotonic()
        estimator.fit(x, ranks, **more)
        seconds = time.monotonic() - began
        scores = torch.as_tensor(np.asarray(estimator.decision_function(tested[0]), dtype=np.float64))
        read = getattr(estimator, "predict_proba", None)
        chances = None if read is None else torch.as_tensor(np.asarray(read(tested[0]), dtype=np.float64))
        return Outcome(scores, chances, torch.from_numpy(tested[1]), seconds, {})


def _test(source: Source) -> RankedSet:
    if source.test is None:
        raise DataError("expected data with a test part")
    return source.test


def _table(data: RankedSet, name: str) -> tuple[Any, Any]:
    if not isinstance(data, Arrays):
        raise DataError(f"{name} takes tables, not pictures; leave it out, or give features")
    ranks = data.ranks.numpy()
    return data.inputs.numpy(), aggregate(ranks) if ranks.ndim == 3 else ranks


def _forest(seed: int) -> Estimator:
    from gaussianmlr.classic import CalibratedRanker

    return CalibratedRanker(random_state=seed)


def _neighbours(seed: int) -> Estimator:
    from gaussianmlr.classic import NeighbourRanker

    return NeighbourRanker()


def _dummy(seed: int) -> Estimator:
    from gaussianmlr.classic import DummyRanker

    return DummyRanker()


# The one place where rivals without a network are made known.
CLASSIC = {
    one.name: one
    for one in (Classic("forest", _forest), Classic("neighbours", _neighbours), Classic("dummy", _dummy))
}


def contenders_of(
    names: Iterable[str | Contender], supervision: Wanted | None = None, *, tables: bool = True
) -> tuple[Contender, ...]:
    """Contenders by their names, each once.

    Parameters
    ----------
    names : iterable of str
        ``gmlr``, ``gmlr:weak``, ``package.module:Class:weak``; on tables ``forest``, ``neighbours`` and
        ``dummy``; or ``all``. Contenders are themselves.
    supervision : {"strong", "weak", "both"}, optional
        For names that do not say it; strong where a method has it.
    tables : bool
        Whether the data is a table, which rivals without a network need.

    Examples
    --------
    >>> [contender.name for contender in contenders_of(["gmlr", "lsep:weak", "br"])]
    ['gmlr:strong', 'lsep:weak', 'br:weak']
    >>> [contender.name for contender in contenders_of(["gmlr"], "both")]
    ['gmlr:strong', 'gmlr:weak']
    """
    if supervision not in (None, "strong", "weak", "both"):
        raise DataError(f"supervision is 'strong', 'weak' or 'both', not {supervision!r}")
    found: dict[str, Contender] = {}
    for name in names:
        for contender in [name] if not isinstance(name, str) else _named(name, supervision, tables):
            found.setdefault(contender.name, contender)
    if not found:
        raise DataError("expected one contender or more, such as gmlr or lsep:weak")
    return tuple(found.values())


def _named(name: str, supervision: Wanted | None, tables: bool) -> list[Contender]:
    if name == "all":
        networks = [one for method in available() for one in _networks(method, supervision or "both")]
        return [*networks, *(CLASSIC.values() if tables else ())]
    if name in CLASSIC:
        if not tables:
            raise DataError(f"{name} takes tables, not pictures; leave it out")
        return [CLASSIC[name]]
    method, _, said = name.rpartition(":")
    if said in ("strong", "weak"):
        return [Network(method, said)]
    if said == "both":
        return _networks(method, "both")
    if method in available():
        raise DataError(f"{name!r}: the supervision is 'strong', 'weak' or 'both', not {said!r}")
    return _networks(name, supervision or "strong")


def _networks(method: str, wanted: Wanted) -> list[Contender]:
    if ":" not in method and method not in available():
        raise DataError(f"no contender {method!r}; known are {', '.join([*available(), *CLASSIC])}, and all")
    known = make(method).supervisions
    chosen = known if wanted == "both" else (wanted,) if wanted in known else known[:1]
    return [Network(method, one) for one in chosen]

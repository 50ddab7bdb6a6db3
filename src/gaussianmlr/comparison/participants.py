"""Contenders of a comparison: networks by method name, and classic estimators."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor

from gaussianmlr._utils.progress import Watcher
from gaussianmlr.data.loading import Arrays, RankedSet
from gaussianmlr.data.open import Source
from gaussianmlr.errors import DataError
from gaussianmlr.estimators.classic import CalibratedRanker, DummyRanker, NeighbourRanker
from gaussianmlr.methods import available, make
from gaussianmlr.model.evaluate import read
from gaussianmlr.model.network import expand_of, has_texts, texts_of
from gaussianmlr.model.recipe import Recipe
from gaussianmlr.rankers import aggregate
from gaussianmlr.training.features import compute_features
from gaussianmlr.training.fit import fit, weights_of
from gaussianmlr.training.run_folder import IDLE

__all__ = ["Classic", "Contender", "Estimator", "Network", "Outcome", "Task", "contenders_of"]

Wanted = Literal["strong", "weak", "both"]


class Task(NamedTuple):
    """Input of a contender, the same for all of them."""

    source: Source  # train, validation and test part of one split
    recipe: Recipe  # with the seed of the run
    folder: Path  # for checkpoints, to resume after an interruption
    accelerator: str
    watcher: Watcher | None


class Outcome(NamedTuple):
    """Predictions of a contender for the test part."""

    scores: Tensor  # [N, K]
    p_relevant: Tensor | None  # [N, K], if the contender gives probabilities
    ranks: Tensor  # [N, K], the truth
    seconds: float  # training time
    facts: dict[str, Any]  # stored in the cell


class Contender(Protocol):
    """Anything that is trained on a train and a validation part, and scores a test part."""

    @property
    def name(self) -> str:
        """Its name, for example ``gmlr:weak``."""

    @property
    def method(self) -> str:
        """The name without the supervision."""

    @property
    def supervision(self) -> str:
        """Supervision: strong or weak."""

    def describe(self, recipe: Recipe) -> dict[str, Any]:
        """Its settings with a recipe, as JSON types; they identify the contender."""

    def run(self, task: Task) -> Outcome:
        """Train, then score the test part once."""


@dataclass(frozen=True)
class Network:
    """A method on the recipe's backbone and head.

    Parameters
    ----------
    method : str
        A name in `methods.available`, or ``"package.module:Class"``.
    supervision : {"strong", "weak"}
        The supervision of the method.

    Examples
    --------
    >>> Network("gmlr", "weak").name
    'gmlr:weak'
    """

    method: str
    supervision: str = "strong"

    def __post_init__(self) -> None:
        make(self.method, supervision=self.supervision)  # refuses unknown ones

    @property
    def name(self) -> str:
        """Method and supervision."""
        return f"{self.method}:{self.supervision}"

    def describe(self, recipe: Recipe) -> dict[str, Any]:
        """The recipe, without the fields that do not change the result."""
        own = self._own(recipe)
        method = make(own.method, **own.method_settings)  # refused before any training
        weights_of(own, method, (*own.label_weights, "any other"))
        fields = {name: value for name, value in own.to_dict().items() if name not in IDLE}
        return {"kind": "network", "recipe": fields}

    def _own(self, recipe: Recipe) -> Recipe:
        """The recipe with this method; its method settings apply only to its own method."""
        kept = recipe.method_settings if recipe.method == self.method else {}
        return recipe.replace(method=self.method, method_settings={**kept, "supervision": self.supervision})

    def run(self, task: Task) -> Outcome:
        """Train, or resume an interrupted training, and read the test part by the best epoch."""
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
        reading, ranks = read(fitted.model, _test(source), recipe.batch_size, calibrated=True)
        result = fitted.result
        facts = {"instances_seen": result.images, "epochs": len(result.history)}
        return Outcome(reading.scores.float(), reading.p_relevant.float(), ranks, result.seconds, facts)


class Estimator(Protocol):
    """Estimator of a classic contender; it may also have `predict_proba`: P(relevant) [N, K]."""

    def fit(self, X: Any, ranks: Any, /) -> Any:
        """Fit rows [N, D] and ranks [N, K]; `sample_weight` is passed if the data has weights."""

    def decision_function(self, X: Any, /) -> Any:
        """Scores [N, K]; a label is relevant if its score is above zero."""


@dataclass(frozen=True)
class Classic:
    """A contender without a network, for tables.

    It has no epochs to choose from, so it is trained on the train and the validation part together.

    Parameters
    ----------
    method : str
        Its name.
    make : callable
        Called with a seed; returns a new estimator.
    supervision : {"strong", "weak"}
        Its supervision.
    """

    method: str
    make: Callable[[int], Estimator]
    supervision: str = "strong"

    @property
    def name(self) -> str:
        """The name without a supervision."""
        return self.method

    def describe(self, recipe: Recipe) -> dict[str, Any]:
        """The representation of the estimator."""
        return {"kind": "classic", "estimator": " ".join(repr(self.make(recipe.seed)).split())}

    def run(self, task: Task) -> Outcome:
        """Learn from the train and the validation part, and score the test part."""
        train, validation = task.source.train, task.source.validation
        learned = [_table(part, self.name, task) for part in (train, validation)]
        tested = _table(_test(task.source), self.name, task)
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
        chances = None
        if hasattr(estimator, "predict_proba"):
            chances = torch.as_tensor(np.asarray(estimator.predict_proba(tested[0]), dtype=np.float64))
        return Outcome(scores, chances, torch.from_numpy(tested[1]), seconds, {})


def _test(source: Source) -> RankedSet:
    if source.test is None:
        raise DataError("expected data with a test part")
    return source.test


def _table(data: RankedSet, name: str, task: Task) -> tuple[Any, Any]:
    if not isinstance(data, Arrays):
        raise DataError(f"{name} takes tables, not pictures; leave it out, or give features")
    ranks = data.ranks.numpy()
    about = task.source.inputs
    if has_texts(about):  # the features of the encoder before any training
        inputs = compute_features(texts_of(about, task.recipe), data.inputs)
    else:
        expand = expand_of(about)
        inputs = data.inputs if expand is None else expand(data.inputs)
    return inputs.numpy(), aggregate(ranks) if ranks.ndim == 3 else ranks


# Contenders without a network, by name.
CLASSIC = {
    one.name: one
    for one in (
        Classic("forest", lambda seed: CalibratedRanker(random_state=seed)),
        Classic("neighbours", lambda seed: NeighbourRanker()),
        Classic("dummy", lambda seed: DummyRanker()),
    )
}


def contenders_of(
    names: Iterable[str | Contender], supervision: Wanted | None = None, *, tables: bool = True
) -> tuple[Contender, ...]:
    """Contenders by name, each once.

    Parameters
    ----------
    names : iterable of str
        ``gmlr``, ``gmlr:weak``, ``package.module:Class:weak``; on tables ``forest``, ``neighbours`` and
        ``dummy``; or ``all``. Contender objects are used as they are.
    supervision : {"strong", "weak", "both"}, optional
        For names without one; by default strong, if the method has it.
    tables : bool
        Whether the data is a table, as contenders without a network require.

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

"""The trials of a search in Optuna's SQLite storage: what was tried, what is next, what is best."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from gaussianmlr._utils.extras import require
from gaussianmlr._utils.files import aside
from gaussianmlr.errors import DataError
from gaussianmlr.model.recipe import Recipe
from gaussianmlr.tuning.space import Dimension, applied, asked
from gaussianmlr.tuning.trials import Score, Trial

__all__ = ["Study"]

_NAME = "gaussianmlr"  # of the study in its storage
_BEGIN = 8  # trials drawn at random before the sampler learns from them, and before any is pruned

_KEPT = 75.0  # percent of the trials that are as good as others at the same point


class Study:
    """The trials of a search, in a file of SQLite.

    Every trial has a generator of its own, by seed and number, and the default recipe is trial 0. So the next
    trial depends on the finished ones alone: a search that was interrupted tries what it would have tried.

    Parameters
    ----------
    file : Path
        The storage; created if it is missing.
    base : Recipe
        The default recipe.
    space : sequence of Dimension
        What is varied.
    seed : int
        Seed of the search.
    prune : bool
        Whether trials that are among the worst quarter at the same point are stopped.
    """

    def __init__(
        self, file: Path, base: Recipe, space: Sequence[Dimension], *, seed: int = 0, prune: bool = True
    ) -> None:
        require("a search over recipes", "optuna")
        import optuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self.base, self.space, self.seed = base, tuple(space), seed
        # Gently: folds are small, and so are the differences between good recipes.
        pruner = optuna.pruners.PercentilePruner(_KEPT, n_startup_trials=_BEGIN)
        with _quiet():
            try:
                if not file.exists():
                    with aside(file) as part:
                        first = _storage(part)
                        optuna.create_study(storage=first, study_name=_NAME, direction="maximize")
                        first.engine.dispose()
                self._study = optuna.load_study(
                    storage=_storage(file),
                    study_name=_NAME,
                    pruner=pruner if prune else optuna.pruners.NopPruner(),
                )
            except Exception as error:  # SQLAlchemy's, sqlite3's and Optuna's own have no common class
                why = str(error).partition("\n")[0]
                raise DataError(f"{file} is not the storage of a search: {why}") from None
        self._trials: dict[int, Any] = {}  # those of this process, by number
        self._states = optuna.trial.TrialState

    def begun(self) -> int:
        """Number of trials that began, finished or not."""
        return len(self.rows())

    def is_done(self, trials: int) -> bool:
        """Whether so many trials are finished."""
        return sum(bool(one.state.is_finished()) for one in self.rows()) >= trials

    def rows(self) -> list[Any]:
        """All trials that began, as Optuna stores them."""
        return [one for one in self._study.get_trials(deepcopy=False) if one.state != self._states.WAITING]

    def unfinished(self) -> Iterator[Trial]:
        """The trials that a dead process had under way, to be done again."""
        import optuna

        for one in self.rows():
            if one.state == self._states.RUNNING and one.number not in self._trials:
                self._study.sampler = self._sampler(one.number)
                with _quiet():
                    again = self._begin(optuna.trial.Trial(self._study, one._trial_id))
                yield again

    def next(self) -> Trial:
        """A new trial, chosen by the finished ones."""
        with _quiet():
            if not self._study.get_trials(deepcopy=False):
                self._study.enqueue_trial({one.name: one.default for one in self.space})
            self._study.sampler = self._sampler(self.begun())
            return self._begin(self._study.ask())

    def _begin(self, trial: Any) -> Trial:
        self._trials[trial.number] = trial
        values = asked(trial, self.space)
        # Not the values of the default one by one, which may leave out what it chooses itself.
        return Trial(trial.number, self.base if trial.number == 0 else self.recipe(values))

    def recipe(self, values: dict[str, Any]) -> Recipe:
        """The recipe of a trial by its values."""
        return applied(self.base, values)

    def _sampler(self, number: int) -> Any:
        import optuna

        seed = int(np.random.SeedSequence([self.seed, number]).generate_state(1)[0])
        return optuna.samplers.TPESampler(seed=seed, n_startup_trials=_BEGIN)

    def heard(self, trial: Trial, step: int, value: float) -> bool:
        """Keep what a trial reports on its way; whether it should stop."""
        one = self._trials[trial.number]
        with _quiet():
            one.report(value, step)
            return trial.number > 0 and bool(one.should_prune())

    def tell(self, trial: Trial, score: Score) -> None:
        """Finish a trial."""
        one = self._trials[trial.number]
        one.set_user_attr("seconds", round(score.seconds, 3))
        one.set_user_attr("standard_error", score.standard_error)
        one.set_user_attr("parts", score.parts)
        one.set_user_attr("rows", score.rows)
        state = self._states.PRUNED if score.pruned else self._states.COMPLETE
        with _quiet():
            self._study.tell(trial.number, None if score.pruned else score.value, state=state)

    def fail(self, trial: Trial, why: str) -> None:
        """Finish a trial that cannot be trained."""
        self._trials[trial.number].set_user_attr("why", why)
        with _quiet():
            self._study.tell(trial.number, state=self._states.FAIL)


def _storage(file: Path) -> Any:
    import optuna
    from sqlalchemy import URL

    url = URL.create("sqlite", database=str(file.absolute())).render_as_string()
    return optuna.storages.RDBStorage(url)


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the warnings of what Optuna calls experimental, and of reports that are repeated."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield

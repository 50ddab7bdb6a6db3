"""What an experiment is given, and the row of counts that it returns."""

import threading
import time
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from random import Random


def random_of(*words):
    """A generator that follows from the words alone."""
    return Random("/".join(map(str, words)))


@dataclass
class Plan:
    """Seed, size and time limit of a run."""

    folder: Path  # scratch space, removed at the end
    seed: int = 0
    scale: float = 1.0  # of all counts
    jobs: int = 2
    deadline: float = float("inf")  # of this experiment, by time.monotonic
    began: float = field(default_factory=time.monotonic)
    _said: float = 0.0

    def count(self, full):
        """Number of cases to run, given the number at full scale."""
        return max(1, round(full * self.scale))

    def random(self, *words):
        """A generator for one case, the same in every run and process."""
        return random_of(self.seed, *words)

    @property
    def is_over(self):
        return time.monotonic() > self.deadline

    def say(self, text):
        self._said = time.monotonic()
        passed = int(time.monotonic() - self.began)
        print(f"[{passed // 60:02}:{passed % 60:02}] {text}", flush=True)

    def say_sometimes(self, text, every=20.0):
        """Say it, unless something was said just now."""
        if time.monotonic() - self._said > every:
            self.say(text)

    def space(self, *words):
        """An empty folder of its own."""
        folder = self.folder.joinpath(*map(str, words))
        folder.mkdir(parents=True)
        return folder


@dataclass
class Row:
    """What happened in one experiment; anything in `failures` fails the run."""

    experiment: str
    attack: str
    promise: str
    planned: int
    done: int = 0
    counts: Counter = field(default_factory=Counter)
    failures: list = field(default_factory=list)
    seconds: float = 0.0

    @property
    def ok(self):
        return self.done > 0 and not self.failures

    def fail(self, plan, kind, case, text):
        """Note that something was lost, wrong, crashed or hung."""
        self.failures.append({"kind": kind, "case": str(case), "text": text[-2000:]})
        plan.say(f"{self.experiment}: {kind} at case {case} (seed {plan.seed}): {text[-600:]}")


class WrongError(AssertionError):
    """A promise that was not kept; its kind is a word for the table."""

    def __init__(self, kind, text):
        super().__init__(text)
        self.kind = kind


def expect(holds, kind, text):
    if not holds:
        raise WrongError(kind, text)


def each(plan, row, cases: Iterable, attack, jobs=None):
    """Run `attack(case)`, which gives counts, for every case, some at a time, until the time is up."""
    lock = threading.Lock()

    def run(case):
        if plan.is_over:
            return
        try:
            found = attack(case)
        except WrongError as error:
            row.fail(plan, error.kind, case, str(error))
            found = {}
        with lock:
            row.done += 1
            row.counts.update(found)
        if row.done % max(1, row.planned // 5) == 0:
            plan.say(f"{row.experiment}: {row.done} of {row.planned} {dict(row.counts)}")

    with ThreadPoolExecutor(jobs or plan.jobs) as pool:
        list(pool.map(run, cases))
    return row

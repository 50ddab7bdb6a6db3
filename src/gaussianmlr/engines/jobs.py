"""Independent jobs, in this process or on the machines of a Ray cluster.

`run` calls one function for many items. Items are taken as they are needed and results are given as they
come, so whoever calls it writes each result whole under its final name, and may choose the next item by the
results so far. Machines of a cluster need no common disk: a job gets its item and what all jobs share over
the network, and its result comes back the same way.
"""

from __future__ import annotations

import contextlib
import functools
import tempfile
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

from gaussianmlr._utils.extras import require
from gaussianmlr._utils.leftovers import remove, sweep, temporary
from gaussianmlr.engines.cluster import LOCAL, joined
from gaussianmlr.errors import DataError, shorten

__all__ = ["Engine", "Tell", "run", "scratch"]

Item = TypeVar("Item")
Result = TypeVar("Result")
Shared = TypeVar("Shared")
# Called by a job with a step and a value; whether the job should stop early.
Tell = Callable[[int, float], bool]
Name = Literal["local", "ray"]

RETRIES = 5  # times that a job is started again after its worker was lost, before it is given up
_PATIENCE = 0.5  # seconds between two looks at what running jobs report
_LEAVE = 10.0  # seconds that running jobs have to end cleanly


@dataclass(frozen=True)
class Engine:
    """Where jobs run, and with how much.

    Parameters
    ----------
    name : {"local", "ray"}
        One after the other in this process, or many at a time on a Ray cluster.
    address : str, optional
        Ray: ``"auto"`` or ``HOST:PORT`` of a cluster; by default one is started for the run.
    workers : int, optional
        Ray: jobs at a time; by default as many as the cores of the cluster allow.
    threads : int, optional
        Ray: cores and threads of a job, 1 by default. A job gives the bits of a local one with as many.
    gpus : float
        Ray: GPUs of a job.

    Examples
    --------
    >>> Engine("ray", workers=0)
    Traceback (most recent call last):
        ...
    gaussianmlr.errors.DataError: workers is 0; expected 1 or more
    """

    name: Name = "local"
    address: str | None = None
    workers: int | None = None
    threads: int | None = None
    gpus: float = 0.0

    def __post_init__(self) -> None:
        if self.name not in get_args(Name):
            raise DataError(f"engine is {shorten(self.name)}; expected 'local' or 'ray'")
        if self.name == "local" and (self.address is not None or self.workers is not None):
            raise DataError("--ray-address and --workers are for --engine ray")
        for name, value in (("workers", self.workers), ("threads", self.threads)):
            if value is not None and value < 1:
                raise DataError(f"{name} is {value}; expected 1 or more")
        if self.name == "ray":
            require("--engine ray", "ray")

    @property
    def is_local(self) -> bool:
        """Whether jobs run in this process."""
        return self.name == "local"


def run(
    function: Callable[[Shared, Item, Tell], Result],
    shared: Shared,
    items: Iterable[Item],
    engine: Engine | None = None,
    *,
    heard: Callable[[Item, int, float], bool] | None = None,
    say: Callable[[str], None] = lambda line: None,
) -> Generator[tuple[Item, Result], None, None]:
    """Call a function for every item, and give each item with its result as soon as it is there.

    Locally items are done one after the other, in their order. On Ray as many run at a time as the cluster
    has cores for; jobs of a lost machine are started again on others. The first error ends the run: jobs
    that are under way are cancelled when the iterator is closed.

    Parameters
    ----------
    function : callable
        Called as ``function(shared, item, tell)``; a function of a module that all machines have. On Ray its
        folder is its own machine's, so files that it should leave are part of its result.
    shared : object
        What all jobs have in common; on Ray it is sent once per process.
    items : iterable
        The items; the next one is taken when there is room for it.
    engine : Engine, optional
        Where to run; local by default.
    heard : callable, optional
        Called here as ``heard(item, step, value)`` when a job reports; whether that job should stop early.
    say : callable
        Called with lines for people.

    Raises
    ------
    DataError
        What a job raised, or if the worker of a job was lost again and again.

    Examples
    --------
    >>> def power(base, exponent, tell):
    ...     return base**exponent
    >>> dict(run(power, 2, [3, 5]))
    {3: 8, 5: 32}
    """
    engine = engine or Engine()
    if engine.is_local:
        for item in items:
            yield item, function(shared, item, functools.partial(heard, item) if heard else _unheard)
        return
    with joined(engine.address or LOCAL, cores_of(engine)) as ray:
        yield from _RayRun(ray, engine, function, shared, heard, say).run(iter(items))


def _unheard(step: int, value: float) -> bool:
    return False


def cores_of(engine: Engine) -> int | None:
    """Cores of a cluster that is started for a run."""
    return None if engine.workers is None else engine.workers * (engine.threads or 1)


@contextlib.contextmanager
def scratch() -> Iterator[Path]:
    """A folder of this process for one job; those of dead processes are removed first."""
    place = Path(tempfile.gettempdir())
    sweep(place)
    folder = temporary(place / "gmlr-job")
    folder.mkdir()
    try:
        yield folder
    finally:
        remove(folder)


class _RayRun:
    """The jobs of one run on a Ray cluster."""

    def __init__(
        self,
        ray: Any,
        engine: Engine,
        function: Callable[..., Any],
        shared: Any,
        heard: Callable[[Any, int, float], bool] | None,
        say: Callable[[str], None],
    ) -> None:
        self.ray, self.engine, self.heard, self.say = ray, engine, heard, say
        self.running: dict[Any, tuple[int, Any]] = {}  # jobs by what Ray calls their results
        self._numbers = 0
        self._warned = False
        cores = engine.threads or 1
        # An actor on this machine, which lives as long as the run, passes on what jobs report.
        here = {"ray.io/node-id": ray.get_runtime_context().get_node_id()}
        self.board = None
        if heard is not None:
            self.board = ray.remote(num_cpus=0, label_selector=here)(_Board).remote()
        self._start = ray.remote(num_cpus=cores, num_gpus=engine.gpus, max_retries=RETRIES)(_job).remote
        self._arguments = (function, ray.put(shared), self.board, cores)

    def run(self, items: Iterator[Any]) -> Iterator[tuple[Any, Any]]:
        """The items with their results, as they come."""
        try:
            while self._fill(items) or self.running:
                done, _ = self.ray.wait(list(self.running), timeout=_PATIENCE)
                self._listen()
                for reference in done:
                    item = self.running.pop(reference)[1]
                    yield item, self._result(reference, item)
                self._warn_if_stuck(bool(done))
        finally:
            self._stop()

    def _fill(self, items: Iterator[Any]) -> bool:
        """Start jobs while there is room; False once there are no more items."""
        while len(self.running) < self._room():
            try:
                item = next(items)
            except StopIteration:
                return False
            self._numbers += 1
            function, shared, board, cores = self._arguments
            # In a list Ray passes on the reference, so that a process can fetch what is shared once.
            reference = self._start(function, [shared], item, self._numbers, board, cores)
            self.running[reference] = (self._numbers, item)
        return True

    def _room(self) -> int:
        """Jobs at a time: machines may come and go."""
        has = self.ray.cluster_resources()
        rooms = [int(has.get("CPU", 0)) // (self.engine.threads or 1)]
        if self.engine.gpus:
            rooms.append(int(has.get("GPU", 0) / self.engine.gpus))
        return max(1, min(rooms if self.engine.workers is None else [*rooms, self.engine.workers]))

    def _warn_if_stuck(self, done: bool) -> None:
        """Say once if no machine is large enough for a job: the last one may have been lost."""
        has = self.ray.cluster_resources()
        cores, gpus = self.engine.threads or 1, self.engine.gpus
        stuck = not done and (has.get("CPU", 0) < cores or has.get("GPU", 0) < gpus)
        if stuck and not self._warned:
            needs = f"{cores} cores" + (f" and {gpus:g} GPUs" if gpus else "")
            self.say(f"the Ray cluster does not have {needs} for a job; waiting for a machine")
        self._warned = stuck

    def _listen(self) -> None:
        """Hear what jobs have reported, and tell them to stop."""
        if self.board is None or self.heard is None:
            return
        items = dict(self.running.values())
        for number, step, value in self.ray.get(self.board.take.remote()):
            if number in items and self.heard(items[number], step, value):
                self.board.stop.remote(number)

    def _result(self, reference: Any, item: Any) -> Any:
        try:
            found, error = self.ray.get(reference)
        except self.ray.exceptions.RayTaskError:
            raise  # an error in the code, with the worker's traceback
        except self.ray.exceptions.RayError as lost:
            why = str(lost).partition("\n")[0]
            raise DataError(f"the worker of {item} was lost {RETRIES + 1} times: {why}") from None
        if error is not None:
            raise error
        return found

    def _stop(self) -> None:
        """Cancel what is under way; jobs get a moment to remove their files."""
        if not self.running:
            return
        for reference in self.running:
            self.ray.cancel(reference)
        self.ray.wait(list(self.running), num_returns=len(self.running), timeout=_LEAVE)


class _Board:
    """Passes what jobs report to the driver, and its answers back."""

    def __init__(self) -> None:
        self.reports: list[tuple[int, int, float]] = []
        self.stopped: set[int] = set()

    def report(self, number: int, step: int, value: float) -> bool:
        """Keep a report; whether the job should stop."""
        self.reports.append((number, step, value))
        return number in self.stopped

    def take(self) -> list[tuple[int, int, float]]:
        """The reports since the last call."""
        taken, self.reports = self.reports, []
        return taken

    def stop(self, number: int) -> None:
        """Let a job stop at its next report."""
        self.stopped.add(number)


def _job(
    function: Callable[..., Any], shared: list[Any], item: Any, number: int, board: Any, cores: int
) -> tuple[Any, DataError | OSError | None]:
    """In a worker: the result of a job, or the error of a user."""
    import ray

    from gaussianmlr._utils.memory import keep_freed_memory
    from gaussianmlr._utils.threads import asked_threads

    def tell(step: int, value: float) -> bool:
        return bool(ray.get(board.report.remote(number, step, value)))

    keep_freed_memory()
    try:
        with asked_threads(cores):
            return function(_fetched(shared[0]), item, _unheard if board is None else tell), None
    except (DataError, OSError) as error:
        return None, error


@functools.lru_cache(maxsize=1)
def _fetched(shared: Any) -> Any:
    """What jobs share, loaded once per process: Ray reuses worker processes."""
    import ray

    return ray.get(shared)

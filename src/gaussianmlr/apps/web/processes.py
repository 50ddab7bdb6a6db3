"""Several processes behind one port: forked from one that has loaded everything, replaced when they die."""

from __future__ import annotations

import contextlib
import gc
import os
import select
import signal
import socket
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from multiprocessing import get_context
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess

from gaussianmlr.errors import DataError

__all__ = ["Accepting", "check_forking", "run_processes"]

_LONGEST_PAUSE = 30.0  # seconds between two starts of a process that ends before it is ready
Serve = Callable[[int, socket.socket, Callable[[], None], int], None]


def check_forking() -> None:
    """Refuse several processes where they cannot be forked safely."""
    if not sys.platform.startswith("linux"):
        raise DataError(
            "several workers share the model by forking, which is safe on Linux only; start several servers "
            "on ports of their own, behind a proxy"
        )


class Accepting(socket.socket):
    """The listening socket of one of several processes.

    A process accepts one connection at a time, so that busy processes leave connections to idle ones; the
    queue of connections keeps its length.
    """

    @classmethod
    def of(cls, listener: socket.socket) -> Accepting:
        """A listening socket, for this process."""
        return cls(listener.family, listener.type, listener.proto, os.dup(listener.fileno()))

    def listen(self, backlog: int = 0, /) -> None:
        """Do nothing: the socket listens already."""


def run_processes(
    count: int,
    listener: socket.socket,
    serve: Serve,
    *,
    ready: Callable[[], None],
    died: Callable[[int], None] = lambda number: None,
    say: Callable[[str], None] = lambda text: print(text, file=sys.stderr, flush=True),
    grace: float = 60.0,
) -> None:
    """Fork processes that serve until SIGINT or SIGTERM; one that ends before is replaced.

    What this process has loaded is shared by all of them, as long as nobody writes to it. It should have no
    threads.

    Parameters
    ----------
    count : int
        Number of processes.
    listener : socket
        The listening socket, which is closed at the end.
    serve : callable
        Called in each process with its number, its listening socket, a function to call once it serves, and
        a file descriptor. It must return after the descriptor has reached its end, which happens when all are
        to stop, or when this process has died.
    ready : callable
        Called once all processes serve.
    died : callable
        Called with the number of a process that ended by itself.
    say : callable
        Told in one line that a process ended.
    grace : float
        Seconds that processes have to stop; then they are killed.

    Raises
    ------
    DataError
        If a process ends before any has served.
    """
    _Processes(count, listener, serve, ready, died, say).run(grace)


class _Processes:
    def __init__(
        self,
        count: int,
        listener: socket.socket,
        serve: Serve,
        ready: Callable[[], None],
        died: Callable[[int], None],
        say: Callable[[str], None],
    ) -> None:
        self.count, self.listener, self.serve = count, listener, serve
        self.ready, self.died, self.say = ready, died, say
        self.running: dict[int, BaseProcess] = {}
        self.due = dict.fromkeys(range(count), 0.0)  # when to start which process
        self.pauses: dict[int, float] = {}
        self.serving: set[int] = set()
        self.began = False  # whether all have served
        self.lifeline, self._hold = os.pipe()
        self.news, self._news_in = os.pipe()  # a byte per process that serves: its number
        self.woken, self._wake = os.pipe()

    def run(self, grace: float) -> None:
        gc.collect()
        gc.freeze()  # the collector would write to objects that are shared
        with self._signals():
            try:
                while not self._stopped():
                    self._start_due()
                    self._wait()
                    self._replace()
            finally:
                self._stop(grace)

    @contextlib.contextmanager
    def _signals(self) -> Iterator[None]:
        os.set_blocking(self._wake, False)

        def handle(*_: object) -> None:
            with contextlib.suppress(BlockingIOError):
                os.write(self._wake, b"x")

        before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _stopped(self) -> bool:
        return bool(select.select([self.woken], [], [], 0)[0])

    def _start_due(self) -> None:
        for number in [number for number, moment in self.due.items() if moment <= time.monotonic()]:
            del self.due[number]
            process = get_context("fork").Process(target=self._work, args=(number,), name=f"worker {number}")
            with warnings.catch_warnings():
                # The only threads are those of libraries that know about forking, such as OpenBLAS.
                warnings.simplefilter("ignore", DeprecationWarning)
                process.start()
            self.running[number] = process

    def _work(self, number: int) -> None:
        for signal_number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(signal_number, signal.SIG_IGN)  # until the server has handlers of its own
        for descriptor in (self._hold, self._wake, self.woken, self.news):
            os.close(descriptor)
        accepting = Accepting.of(self.listener)
        self.listener.close()
        self.serve(number, accepting, lambda: _tell(self._news_in, number), self.lifeline)

    def _wait(self) -> None:
        soonest = min(self.due.values(), default=float("inf")) - time.monotonic()
        sentinels = [process.sentinel for process in self.running.values()]
        found = wait(
            [self.news, self.woken, *sentinels], None if soonest == float("inf") else max(0.0, soonest)
        )
        if self.news in found:
            for number in os.read(self.news, 1024):
                self.serving.add(number)
                self.pauses.pop(number, None)
            if len(self.serving) == self.count and not self.began:
                self.began = True
                self.ready()

    def _replace(self) -> None:
        for number, process in list(self.running.items()):
            if process.exitcode is None or self._stopped():
                continue
            del self.running[number]
            self.died(number)
            text = f"worker {number} (process {process.pid}) ended {_how(process.exitcode)}"
            process.close()
            if number in self.serving:
                self.serving.discard(number)
                pause = 0.0
            elif not self.began:
                raise DataError(f"{text} before it served; see the message above")
            else:
                pause = self.pauses[number] = min(_LONGEST_PAUSE, 2 * self.pauses.get(number, 0.25))
            self.due[number] = time.monotonic() + pause
            self.say(f"{text}; a new one starts" + (f" in {pause:g} s" if pause else ""))

    def _stop(self, grace: float) -> None:
        self.listener.close()
        os.close(self._hold)  # every process sees the end of its lifeline
        if self._stopped():
            os.read(self.woken, 1024)
        deadline = time.monotonic() + grace
        while self.running:
            left = max(0.0, deadline - time.monotonic())
            wait([self.woken, *(process.sentinel for process in self.running.values())], left)
            again = self._stopped()  # a second signal: at once
            for number, process in list(self.running.items()):
                if process.exitcode is None and (again or time.monotonic() > deadline):
                    process.kill()
                    process.join()
                if process.exitcode is not None:
                    self.running.pop(number).close()
        for descriptor in (self.lifeline, self.news, self._news_in, self.woken, self._wake):
            os.close(descriptor)


def _tell(descriptor: int, number: int) -> None:
    os.write(descriptor, bytes([number]))


def _how(code: int | None) -> str:
    if code is not None and code < 0:
        return f"by {signal.Signals(-code).name}"
    return f"with exit code {code}"

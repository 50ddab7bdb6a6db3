"""Ctrl-C and SIGTERM: stop where work can be resumed."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["on_interrupt", "stoppable"]


@contextmanager
def on_interrupt(stop: Callable[[], None]) -> Iterator[None]:
    """The first Ctrl-C calls `stop`; the second stops at once, as usual.

    Parameters
    ----------
    stop : callable
        Requests an early end.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)

    def handle(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, before)
        stop()

    signal.signal(signal.SIGINT, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def stoppable(said: str) -> Iterator[None]:
    """End a command by Ctrl-C or SIGTERM with one message and exit code 130 or 143.

    SIGTERM does what Ctrl-C does at that moment: it raises `KeyboardInterrupt`, or calls the function given
    to `on_interrupt`.

    Parameters
    ----------
    said : str
        The message; nothing is printed if it is empty.

    Examples
    --------
    >>> try:
    ...     with stoppable("stopped; the same command resumes"):
    ...         signal.raise_signal(signal.SIGTERM)
    ... except SystemExit as end:
    ...     print(end.code)
    143
    """
    code = 130
    first = threading.current_thread() is threading.main_thread()

    def handle(number: int, frame: FrameType | None) -> None:
        nonlocal code
        code = 143
        now = signal.getsignal(signal.SIGINT)
        if not callable(now):  # a shell lets background jobs ignore it
            raise KeyboardInterrupt
        now(signal.SIGINT, frame)

    before = signal.signal(signal.SIGTERM, handle) if first else None
    try:
        yield
    except KeyboardInterrupt:
        if said:
            print(said, file=sys.stderr, flush=True)
        sys.exit(code)
    finally:
        if first:
            signal.signal(signal.SIGTERM, before)

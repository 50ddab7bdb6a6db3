"""Joining a Ray cluster, and leaving it without a trace."""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import signal
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gaussianmlr._utils.extras import require
from gaussianmlr._utils.trust import sees_current_folder
from gaussianmlr.errors import DataError

__all__ = ["LOCAL", "STORE", "joined"]

LOCAL = "local"  # what Ray calls a cluster of its own, made for one run
STORE = 256 << 20  # bytes of messages in flight


@contextlib.contextmanager
def joined(address: str, workers: int | None = None, *, store: int = STORE) -> Iterator[Any]:
    """Join a Ray cluster; one started for this run is removed afterwards.

    Parameters
    ----------
    address : str
        ``"local"`` starts Ray on this machine and ends it afterwards; ``"auto"`` or ``HOST:PORT`` joins a
        cluster. A process that has joined one already uses that.
    workers : int, optional
        Cores of a cluster that is started; all if left out.
    store : int
        Bytes of the object store of a cluster that is started.

    Yields
    ------
    module
        `ray`.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    require("a Ray cluster", "ray")
    import ray

    if ray.is_initialized():
        yield ray
        return
    settings: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    folder = None
    if address == LOCAL:
        # Ray's sockets need a short path, which the user's own temporary folder may not be.
        folder = tempfile.mkdtemp(prefix="ray-", dir="/tmp" if Path("/tmp").is_dir() else None)
        settings |= {"num_cpus": workers, "include_dashboard": False, "_temp_dir": folder}
        settings |= {"object_store_memory": store}
    empty = tempfile.mkdtemp(prefix="gmlr-")
    try:
        try:
            # Workers import from the folder Ray is started in: from none, if this process does not either.
            with (
                _own_sigterm(),
                contextlib.nullcontext() if sees_current_folder() else contextlib.chdir(empty),
            ):
                ray.init(address, **settings)
        except Exception as error:  # Ray raises bare ones too, for a cluster that starts too slowly
            ray.shutdown()
            raise DataError(f"cannot join a Ray cluster at {address!r}: {error}") from None
        try:
            yield ray
        finally:
            ray.shutdown()
    finally:
        for made in filter(None, (folder, empty)):
            shutil.rmtree(made, ignore_errors=True)


@contextlib.contextmanager
def _own_sigterm() -> Iterator[None]:
    """Keep this process's answer to SIGTERM, which Ray replaces by its own."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)

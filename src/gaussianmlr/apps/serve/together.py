"""Several processes that serve one model, which they share in memory."""

from __future__ import annotations

import socket
from collections.abc import Callable

from gaussianmlr._utils.threads import asked_threads, threads_in_use
from gaussianmlr.apps.serve.app import serving_app
from gaussianmlr.apps.serve.service import Limits
from gaussianmlr.apps.web.counts import RequestCounts
from gaussianmlr.apps.web.processes import check_forking, run_processes
from gaussianmlr.apps.web.server import check_listening, listen, run_server, shown_address
from gaussianmlr.model.model import Model
from gaussianmlr.model.quick import quickened

__all__ = ["serve_together"]


def serve_together(
    load: Callable[[], Model],
    workers: int,
    limits: Limits,
    host: str = "127.0.0.1",
    port: int = 8000,
    *,
    token: str | None = None,
    threads: int | None = None,
    say: Callable[[Model, str], None],
    log_level: str = "warning",
) -> None:
    """Load a model, fork processes that share it, and serve until SIGINT or SIGTERM.

    Parameters
    ----------
    load : callable
        Returns the model.
    workers : int
        Number of processes. One that dies is replaced.
    limits : Limits
        Limits of the server. Concurrent requests count over all processes.
    host, port, token, log_level
        As in `web.server.run_server`.
    threads : int, optional
        Threads of each process; by default the cores are shared out.
    say : callable
        Called with the model and the address once all processes accept connections.
    """
    check_forking()
    check_listening(host, token)
    listener = listen(host, port)
    try:
        with asked_threads(1):  # a process with threads cannot be forked
            model = load()
        each = threads or max(1, threads_in_use() // workers)
        counts, grace = RequestCounts(workers), 2 * limits.seconds

        def serve(number: int, accepting: socket.socket, ready: Callable[[], None], lifeline: int) -> None:
            counts.take(number)
            with asked_threads(each):
                run_server(
                    # onnxruntime, where it runs the backbone, has threads and weights of its own.
                    serving_app(quickened(model), limits, token, counts),
                    host,
                    port,
                    token=token,
                    say=lambda _: ready(),
                    grace=grace,
                    log_level=log_level,
                    listener=accepting,
                    lifeline=lifeline,
                )

        address = shown_address(host, listener, token)
        run_processes(
            workers,
            listener,
            serve,
            ready=lambda: say(model, address),
            died=counts.died,
            grace=grace + 5.0,
        )
    finally:
        listener.close()

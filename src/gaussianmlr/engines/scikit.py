"""Searches of scikit-learn, `GridSearchCV` and the like, on a Ray cluster."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from gaussianmlr.engines.cluster import LOCAL, joined
from gaussianmlr.engines.jobs import RETRIES, Engine, cores_of

__all__ = ["joblib_on_ray"]


@contextlib.contextmanager
def joblib_on_ray(
    address: str = LOCAL, *, workers: int | None = None, threads: int | None = None
) -> Iterator[None]:
    """Run what joblib runs, such as the fits of `GridSearchCV`, as tasks of a Ray cluster.

    Every fit is a task; those of a lost machine are run again on others. Estimators, data and results travel
    as Ray sends them, so machines need no common disk, but all must have the packages and be trusted.

    Parameters
    ----------
    address : str
        ``"auto"`` or ``HOST:PORT`` of a cluster; by default one is started for the block.
    workers : int, optional
        Tasks at a time; by default as many as the cores allow.
    threads : int, optional
        Cores and threads of a task, 1 by default.

    Examples
    --------
    >>> from sklearn.model_selection import GridSearchCV
    >>> from gaussianmlr import GaussianMLR
    >>> search = GridSearchCV(GaussianMLR(random_state=0), {"rate": [0.001, 0.01]}, n_jobs=-1)
    >>> with joblib_on_ray("auto"):  # doctest: +SKIP
    ...     search.fit(X, y)
    """
    import joblib
    from joblib._parallel_backends import ParallelBackendBase
    from joblib.parallel import SequentialBackend

    engine = Engine("ray", address, workers, threads)
    cores = threads or 1

    class Tasks(ParallelBackendBase):  # type: ignore[misc]
        """One Ray task per batch of calls."""

        supports_retrieve_callback = True
        default_n_jobs = -1

        def effective_n_jobs(self, n_jobs: int | None) -> int:
            rooms = max(1, int(ray.cluster_resources().get("CPU", 0)) // cores)
            rooms = rooms if workers is None else min(rooms, workers)
            return rooms if n_jobs is None or n_jobs < 0 else min(rooms, n_jobs)

        def submit(self, func: Callable[[], Any], callback: Callable[[Any], None] | None = None) -> Any:
            future = start(func, cores).future()
            if callback is not None:
                future.add_done_callback(callback)
            return future

        def retrieve_result_callback(self, out: Any) -> Any:
            return out.result()

        def get_nested_backend(self) -> tuple[Any, None]:
            return SequentialBackend(nesting_level=1), None

    with joined(address, cores_of(engine)) as ray:
        start = ray.remote(num_cpus=cores, max_retries=RETRIES)(_call).remote
        with joblib.parallel_config(backend=Tasks()):
            yield


def _call(function: Callable[[], Any], threads: int) -> Any:
    from gaussianmlr._utils.threads import asked_threads

    with asked_threads(threads):
        return function()

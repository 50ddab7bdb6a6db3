"""The predictions of `predicting.predict` by many machines: a Ray Data pipeline.

One task on the driver's machine names the instances, a batch a row; tasks on all machines read the pictures
and run the network; the driver takes the answers in their order. A machine that is lost costs only the
batches it held: they are given to others.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import logging
import os
import pickle
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from gaussianmlr.errors import DataError
from gaussianmlr.model import Inputs, Model
from gaussianmlr.predicting import Predictions, answer, check_settings, told
from gaussianmlr.streams import STANDARD_INPUT, Bad, Item, Unread, check, located, read

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["LOCAL", "predict_on_ray"]

LOCAL = "local"  # what Ray calls a cluster of its own, made for one run
_COLUMN = "pickled"
_STORE = 256 << 20  # bytes of names and answers on the way; pictures are read where they are used


def predict_on_ray(
    model: Model,
    sources: Iterable[str | os.PathLike[str]],
    *,
    batch_size: int = 64,
    confidence: float | None = None,
    bad: Callable[[Bad], None] | None = None,
    standard_input: IO[str] | None = None,
    address: str = LOCAL,
    workers: int | None = None,
) -> Iterator[Predictions]:
    """Predict instances as they come, by the workers of a Ray cluster.

    Gives what ``predict(model, stream(sources, model.inputs))`` gives, batch by batch, in the same order.

    Parameters
    ----------
    model : Model
        What predicts; it is sent to the machines, once each process.
    sources : iterable of str or path
        As in `streams.stream`. Tables are read on this machine; pictures by the workers, which must find them
        under the same paths.
    batch_size, confidence, bad
        As in `predicting.predict`.
    standard_input : text stream, optional
        What ``-`` reads, to its end and before anything is predicted.
    address : str
        ``"local"`` starts Ray on this machine and ends it afterwards; ``"auto"`` or ``HOST:PORT`` joins a
        cluster. A process that has joined one already uses that.
    workers : int, optional
        Batches that are predicted at the same time, with a processor core for each; all cores if left out.

    Examples
    --------
    >>> from gaussianmlr.recipe import Recipe
    >>> from gaussianmlr.model import build
    >>> inputs = {"kind": "table", "channels": 2, "columns": ["a", "b"]}
    >>> recipe = Recipe(backbone="mlp")
    >>> model = Model(*build(recipe, 3, inputs), ("sky", "sea", "sun"), recipe, inputs)
    >>> next(predict_on_ray(model, ["nowhere.csv"]))  # before Ray is started
    Traceback (most recent call last):
        ...
    gaussianmlr.errors.DataError: nowhere.csv: does not exist; expected pictures, folders, tables or '-'
    """
    if workers is not None and workers < 1:
        raise DataError(f"workers is {workers}; expected 1 or more")
    check_settings(model, batch_size, confidence)
    chosen = check(sources, model.inputs)
    with tempfile.TemporaryDirectory(prefix="gmlr-") as spool, _joined(address, workers, _size(model)):
        listing = _Listing(chosen, model.inputs, batch_size, str(Path.cwd()))
        if STANDARD_INPUT in chosen:
            listing.rows = _spooled(standard_input, Path(spool))
        for found in _answers(listing, model, confidence, workers):
            yield from told(found, bad)


def _size(model: Model) -> int:
    return sum(value.numel() * value.element_size() for value in model.network.state_dict().values())


@contextlib.contextmanager
def _joined(address: str, workers: int | None, size: int) -> Iterator[None]:
    """A process that is part of a Ray cluster; one made for it leaves nothing behind."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    ray = _ray()
    if ray.is_initialized():
        yield
        return
    settings: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    folder = None
    if address == LOCAL:
        # Ray's sockets need a short path, which the user's own temporary folder may not be.
        folder = tempfile.mkdtemp(prefix="ray-", dir="/tmp" if Path("/tmp").is_dir() else None)
        settings |= {"num_cpus": workers, "include_dashboard": False, "_temp_dir": folder}
        settings |= {"object_store_memory": _STORE + 2 * size}
    try:
        try:
            ray.init(address, **settings)
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise DataError(f"cannot join a Ray cluster at {address!r}: {error}") from None
        try:
            yield
        finally:
            ray.shutdown()
    finally:
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)


def _ray() -> Any:
    try:
        import ray
        import ray.data
    except ImportError:
        raise DataError("prediction on Ray needs the extra: pip install 'gaussianmlr[ray]'") from None
    return ray


def _answers(listing: _Listing, model: Model, confidence: float | None, workers: int | None) -> Iterator[Any]:
    ray = _ray()
    cores = int(ray.cluster_resources().get("CPU", 0))
    if cores < 1:
        raise DataError("the Ray cluster has no processor core to predict with; add a machine to it")
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    context = ray.data.DataContext.get_current().copy()
    context.enable_progress_bars = context.print_on_execution_start = False
    context.execution_options.preserve_order = True
    context.target_max_block_size = 1  # a row, which is a batch, is a block, which is a task
    with ray.data.DataContext.current(context):
        rows = ray.data.read_datasource(
            _datasource(listing),
            num_cpus=0,
            override_num_blocks=1,
            # Where the user's paths mean what they say; and it lives as long as the driver does.
            label_selector={"ray.io/node-id": ray.get_runtime_context().get_node_id()},
        ).map_batches(
            _answered,
            batch_size=None,
            batch_format="pyarrow",
            fn_args=(ray.put(model), confidence),
            num_cpus=1,
            # Tasks, not actors: any worker takes the next try of a batch, where a lost actor's batches wait
            # for a free core to start it on, and everything behind them waits too.
            compute=ray.data.TaskPoolStrategy(size=min(workers or cores, cores)),
        )
        for row in rows.iter_rows():
            found = pickle.loads(row[_COLUMN])
            if isinstance(found, Exception):
                raise found
            yield found


@dataclass
class _Listing:
    """What is to be predicted: batches of instances, named on the driver's machine."""

    sources: list[str]
    inputs: Inputs
    batch_size: int
    folder: str
    rows: str | None = None  # the file that has taken standard input

    def __call__(self) -> Iterator[pa.Table]:
        """Each batch as a table of one row; an error, if there is one, as the last."""
        with contextlib.chdir(self.folder), contextlib.ExitStack() as stack:
            text = None if self.rows is None else stack.enter_context(_text(self.rows))
            coming = located(self.sources, self.inputs, text)
            while True:
                try:
                    batch = [_portable(one) for one in itertools.islice(coming, self.batch_size)]
                except (DataError, OSError) as error:
                    yield _packed(error)
                    return
                if not batch:
                    return
                yield _packed(batch)


def _portable(one: Item | Bad | Unread) -> Item | Bad | Unread:
    """The same instance for a process that has another working directory."""
    return one._replace(file=one.file.absolute()) if isinstance(one, Unread) else one


def _datasource(listing: _Listing) -> Any:
    from ray.data import Datasource, ReadTask
    from ray.data.block import BlockMetadata

    class Batches(Datasource):
        """Everything by one task: the order of instances is part of the result."""

        def estimate_inmemory_data_size(self) -> None:
            return None

        def get_read_tasks(self, *_: Any, **__: Any) -> list[Any]:
            unknown = BlockMetadata(num_rows=None, size_bytes=None, input_files=None, exec_stats=None)
            return [ReadTask(listing, unknown)]

    return Batches()  # type: ignore[no-untyped-call]


def _answered(rows: pa.Table, model: Any, confidence: float | None) -> pa.Table:
    """In a worker: the answer to a batch, or the error that stops the run."""
    (found,) = (pickle.loads(row) for row in rows[_COLUMN].to_pylist())
    if isinstance(found, Exception):
        return rows
    try:
        here = _fetched(model)
        return _packed(answer(here, [read(one, here.inputs) for one in found], confidence))
    except (DataError, OSError) as error:
        return _packed(error)


@functools.lru_cache(maxsize=1)
def _fetched(model: Any) -> Model:
    """The model, once a process: Ray keeps the processes of its workers from task to task."""
    import ray
    import torch

    torch.set_num_threads(1)  # a task has one core
    here: Model = ray.get(model)
    return here


def _packed(value: Any) -> pa.Table:
    import pyarrow as pa

    return pa.table({_COLUMN: pa.array([pickle.dumps(value)], pa.large_binary())})


def _spooled(standard_input: IO[str] | None, folder: Path) -> str | None:
    """Standard input as a file: a task that has to be run again reads the same rows."""
    if standard_input is None:
        return None
    file = folder / "rows"
    with file.open("w", encoding="utf-8", newline="") as copy:
        shutil.copyfileobj(standard_input, copy)
    return str(file)


def _text(file: str) -> IO[str]:
    return Path(file).open(encoding="utf-8", newline="")

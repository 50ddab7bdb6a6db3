"""Predictions by many machines, with Ray Data.

One task on the driver's machine lists the instances, one batch per row; tasks on all machines read the
pictures and run the network; the driver takes the answers in order. Batches of a lost machine are run again
on others.

Batches and answers are JSON and safetensors. The model and the code of tasks travel as Ray sends them, by
its own pickle: all machines of a cluster's network must be trusted, see SECURITY.md.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import logging
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from gaussianmlr._utils.extras import require
from gaussianmlr.data.inputs import Inputs
from gaussianmlr.data.readers.layout import Layout
from gaussianmlr.engines.cluster import LOCAL, STORE, joined
from gaussianmlr.errors import DataError
from gaussianmlr.inference.parcels import Batch, Parcel, pack, unpack
from gaussianmlr.inference.predict import Answer, Predictions, answer, check_settings, told
from gaussianmlr.inference.rows import STANDARD_INPUT
from gaussianmlr.inference.streams import Bad, Item, Unread, check, located, read
from gaussianmlr.model.model import Model

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["LOCAL", "predict_on_ray"]


def predict_on_ray(
    model: Model,
    sources: Iterable[str | os.PathLike[str]],
    *,
    batch_size: int = 64,
    confidence: float | None = None,
    guarantee: float | None = None,
    bad: Callable[[Bad], None] | None = None,
    standard_input: IO[str] | None = None,
    address: str = LOCAL,
    workers: int | None = None,
    layout: Layout | None = None,
) -> Iterator[Predictions]:
    """Predict instances as they come, by the workers of a Ray cluster.

    Gives what ``predict(model, stream(sources, model.inputs))`` gives, batch by batch, in the same order.

    Parameters
    ----------
    model : Model
        The model; it is sent once per process.
    sources : iterable of str or path
        As in `streams.stream`. Tables are read on this machine; pictures by the workers, which must find them
        under the same paths.
    batch_size, confidence, guarantee, bad
        As in `predict.predict`.
    standard_input : text stream, optional
        The input of ``-``, read completely before anything is predicted.
    address : str
        ``"local"`` starts Ray on this machine and ends it afterwards; ``"auto"`` or ``HOST:PORT`` joins a
        cluster. A process that has joined one already uses that.
    workers : int, optional
        Number of batches predicted at the same time, each on one core; all cores if left out.
    layout : Layout, optional
        As in `streams.stream`.

    Examples
    --------
    >>> from gaussianmlr.model.recipe import Recipe
    >>> from gaussianmlr.model.model import build
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
    check_settings(model, batch_size, confidence, guarantee)
    chosen = check(sources, model.inputs)
    require("prediction on Ray", "ray")
    store = STORE + 2 * _size(model)
    with tempfile.TemporaryDirectory(prefix="gmlr-") as spool, joined(address, workers, store=store) as ray:
        listing = _Listing(chosen, model.inputs, batch_size, str(Path.cwd()), layout=layout)
        if STANDARD_INPUT in chosen:
            listing.rows = _spooled(standard_input, Path(spool))
        for found in _answers(ray, listing, model, (confidence, guarantee), workers):
            yield from told(found, bad)


def _size(model: Model) -> int:
    return sum(value.numel() * value.element_size() for value in model.network.state_dict().values())


def _answers(
    ray: Any, listing: _Listing, model: Model, sure: tuple[float | None, float | None], workers: int | None
) -> Iterator[Answer]:
    import ray.data as _  # noqa: F401  (Ray loads it on demand)

    cores = int(ray.cluster_resources().get("CPU", 0))
    if cores < 1:
        raise DataError("the Ray cluster has no processor core to predict with; add a machine to it")
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    context = ray.data.DataContext.get_current().copy()
    context.enable_progress_bars = context.print_on_execution_start = False
    context.execution_options.preserve_order = True
    context.target_max_block_size = 1  # one row per block: each batch is a task
    with ray.data.DataContext.current(context):
        rows = ray.data.read_datasource(
            _datasource(listing),
            num_cpus=0,
            override_num_blocks=1,
            # On the driver's machine, where the user's paths are valid and which lives as long as the run.
            label_selector={"ray.io/node-id": ray.get_runtime_context().get_node_id()},
        ).map_batches(
            _answered,
            batch_size=None,
            batch_format="pyarrow",
            fn_args=(ray.put(model), *sure),
            num_cpus=1,
            # Tasks, not actors: any worker takes the next try of a batch, where a lost actor's batches wait
            # for a free core to start it on, and everything behind them waits too.
            compute=ray.data.TaskPoolStrategy(size=min(workers or cores, cores)),
        )
        for row in rows.iter_rows():
            found = unpack(Parcel(**row))
            if isinstance(found, Exception):
                raise found
            assert isinstance(found, Answer)
            yield found


@dataclass
class _Listing:
    """What is to be predicted: batches of instances, named on the driver's machine."""

    sources: list[str]
    inputs: Inputs
    batch_size: int
    folder: str
    rows: str | None = None  # the file that has taken standard input
    layout: Layout | None = None

    def __call__(self) -> Iterator[pa.Table]:
        """Each batch as a table of one row; an error, if there is one, as the last."""
        with contextlib.chdir(self.folder), contextlib.ExitStack() as stack:
            text = None if self.rows is None else stack.enter_context(_text(self.rows))
            coming = located(self.sources, self.inputs, text, layout=self.layout)
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
        """One task for everything, which keeps the order of instances."""

        def estimate_inmemory_data_size(self) -> None:
            return None

        def get_read_tasks(self, *_: Any, **__: Any) -> list[Any]:
            unknown = BlockMetadata(num_rows=None, size_bytes=None, input_files=None, exec_stats=None)
            return [ReadTask(listing, unknown)]

    return Batches()  # type: ignore[no-untyped-call]


def _answered(rows: pa.Table, model: Any, confidence: float | None, guarantee: float | None) -> pa.Table:
    """In a worker: the answer to a batch, or the error that stops the run."""
    (found,) = (unpack(Parcel(**row)) for row in rows.to_pylist())
    if isinstance(found, Exception):
        return rows
    assert isinstance(found, list)
    try:
        here = _fetched(model)
        items = [read(one, here.inputs) for one in found]
        return _packed(answer(here, items, confidence, guarantee))
    except (DataError, OSError) as error:
        return _packed(error)


@functools.lru_cache(maxsize=1)
def _fetched(model: Any) -> Model:
    """The model, loaded once per process: Ray reuses worker processes."""
    import ray
    import torch

    torch.set_num_threads(1)  # a task has one core
    here: Model = ray.get(model)
    return here


def _packed(value: Batch | Answer | DataError | OSError) -> pa.Table:
    import pyarrow as pa

    parcel = pack(value)
    columns = {"text": pa.large_string(), "tensors": pa.large_binary()}
    return pa.table({name: pa.array([getattr(parcel, name)], kind) for name, kind in columns.items()})


def _spooled(standard_input: IO[str] | None, folder: Path) -> str | None:
    """Standard input as a file, so that a task that is run again reads the same rows."""
    if standard_input is None:
        return None
    file = folder / "rows"
    with file.open("w", encoding="utf-8", newline="") as copy:
        shutil.copyfileobj(standard_input, copy)
    return str(file)


def _text(file: str) -> IO[str]:
    return Path(file).open(encoding="utf-8", newline="")

"""Opens data that is streamed: rows on disk in the folder of a run, ready to train on or to measure."""

from __future__ import annotations

import contextlib
import hashlib
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from filelock import FileLock

from gaussianmlr._utils.files import aside
from gaussianmlr.data.inputs import Inputs
from gaussianmlr.data.loading import RankedSet
from gaussianmlr.data.open import SIDE, Source, channels_of, image_inputs
from gaussianmlr.data.splits import CONFORMAL
from gaussianmlr.data.streaming.build import build
from gaussianmlr.data.streaming.files import RowFiles
from gaussianmlr.data.streaming.learn import divide, learn_inputs
from gaussianmlr.data.streaming.look import Look
from gaussianmlr.data.streaming.sets import StreamedRows, held_part
from gaussianmlr.data.streaming.store import Store
from gaussianmlr.errors import DataError

__all__ = ["PLACE", "open_rows"]

PLACE = ".rows"  # in the folder of a run
Progress = Callable[[int, int], None]


def open_rows(
    rows: RowFiles,
    seen: Look,
    folder: Path,
    *,
    image_size: int | None = None,
    channels: int | None = None,
    conformal: float = 0.0,
    progress: Progress | None = None,
) -> Source:
    """Read files into a folder, once, and make their rows ready to train on.

    Parameters
    ----------
    rows, seen : RowFiles, Look
        The files, and what their first rows say.
    folder : Path
        Where the rows are kept; rows of the same files and options that are there are used.
    image_size, channels, conformal
        As in `open_data`.
    progress : callable, optional
        As of `build`.
    """
    if image_size is not None and rows.kind != "images":
        raise DataError(f"image_size is for pictures, got {image_size}; other data has the size it has")
    key = hashlib.sha256(f"{rows.key()} {conformal!r}".encode()).hexdigest()
    with _lock(folder):
        store = _there(folder, key)
        if store is None:
            shutil.rmtree(folder, ignore_errors=True)
            with aside(folder) as part:
                store = build(rows, seen, part, progress)
                notes = divide(store, conformal=conformal)
                store.about.notes = [*notes, *store.about.notes]
                store.about.inputs = dict(_inputs(store, image_size, channels))
                store.about.key = key
                store.save()
            store = Store(folder)
    inputs: Inputs = store.about.inputs  # type: ignore[assignment]
    if store.about.kind == "images":
        inputs = _inputs(store, image_size, channels)

    def held(part: str) -> RankedSet:
        return StreamedRows(store, inputs, part).in_memory()

    return Source(
        train=StreamedRows(store, inputs, "train", weights=True),
        validation=held("validation"),
        test=None,
        conformal=held(CONFORMAL) if conformal else None,
        labels=tuple(store.about.labels),
        inputs=inputs,
        fingerprint=store.about.fingerprint,
        notes=tuple(store.about.notes),
    )


@contextlib.contextmanager
def _lock(folder: Path) -> Iterator[None]:
    """Let one process read the data, and others wait for it."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder.with_name(f"{folder.name}.lock"))
        lock.acquire()
    except OSError as error:
        reason = error.strerror or error
        raise DataError(f"cannot write to the folder {folder.parent}: {reason}") from None
    try:
        yield
    finally:
        lock.release()


def _there(folder: Path, key: str) -> Store | None:
    """The rows that are there, if they are of the same files and options."""
    if not folder.is_dir():
        return None
    try:
        store = Store(folder)
    except DataError:
        return None
    return store if store.about.key == key else None


def _inputs(store: Store, image_size: int | None, channels: int | None) -> Inputs:
    if store.about.kind == "features":
        return learn_inputs(store)
    if channels is None:
        sample = held_part(store, "validation")
        channels = channels_of(sample.images or ())
    return image_inputs(SIDE if image_size is None else image_size, channels)

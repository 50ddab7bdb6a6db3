"""Atomic writes: a file appears under its final name only when it is complete. And locks of folders."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock, Timeout

from gaussianmlr._utils.leftovers import remove, sweep, temporary
from gaussianmlr.errors import DataError

_swept: set[Path] = set()  # folders that this process has cleaned


@contextlib.contextmanager
def aside(path: str | os.PathLike[str], *, replace: bool = False) -> Iterator[Path]:
    """Yield a path beside `path` to write to, and move the result into place at the end.

    The parent folder is created if it is missing. If the block raises, what was written is removed and
    `path` stays as it was. The first write to a folder also removes what dead processes left there (see
    `leftovers.sweep`).

    Parameters
    ----------
    path : path-like
        The finished file or folder. An existing file is replaced, or the target of an existing link; a
        device or pipe receives what was written.
    replace : bool
        Whether a folder that is not empty is replaced too.

    Yields
    ------
    pathlib.Path
        An unused name in the same folder.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with aside(Path(folder) / "numbers.csv") as part:
    ...         _ = part.write_text("1,2,3")
    ...     print([file.name for file in Path(folder).iterdir()])
    ['numbers.csv']
    """
    final = Path(path)
    if final.exists() and not (final.is_file() or final.is_dir()):  # must not be replaced by a file
        with tempfile.TemporaryDirectory() as folder:
            yield Path(folder) / final.name
            with (Path(folder) / final.name).open("rb") as whole, final.open("wb") as stream:
                shutil.copyfileobj(whole, stream)
        return
    if final.is_symlink():
        final = final.resolve()
    final.parent.mkdir(parents=True, exist_ok=True)
    if (parent := final.parent.resolve()) not in _swept:  # only once, as exports write many files
        _swept.add(parent)
        sweep(parent)
    part = temporary(final)
    try:
        yield part
        publish(part, final, replace=replace)
    except BaseException:
        remove(part)
        raise


def publish(part: Path, final: Path, *, replace: bool = False) -> None:
    """Flush `part` to disk, then rename it in one step.

    Folders cannot replace each other in one step: with `replace`, the existing one is moved aside first. If
    the process dies in between, `leftovers.sweep` restores it.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     part, final = Path(folder) / "part", Path(folder) / "whole"
    ...     _ = part.write_bytes(b"all of it")
    ...     publish(part, final)
    ...     print(final.read_bytes(), part.exists())
    b'all of it' False
    """
    if part.is_dir():
        # One flush of everything: a folder may hold tens of thousands of files.
        if hasattr(os, "sync"):
            os.sync()
    else:
        _sync(part)
        if final.is_dir():
            raise DataError(f"{final} is a folder; expected the name of a file")
    if replace and final.is_dir():
        _exchange(part, final)
    else:
        part.replace(final)
    if os.name == "posix":
        _sync(final.parent)


def _exchange(part: Path, final: Path) -> None:
    old = temporary(final, "old")
    try:
        final.rename(old)
        part.replace(final)
    except BaseException:
        if old.exists() and not final.exists():
            old.rename(final)  # restore the old one
        raise
    remove(old)


@contextlib.contextmanager
def alone(lock: Path) -> Iterator[bool]:
    """Hold a lock file; yield whether this process got the lock.

    The system releases the lock of a process that dies.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, alone(Path(folder) / ".lock") as first:
    ...     with alone(Path(folder) / ".lock") as second:
    ...         print(first, second)
    True False
    """
    lock.parent.mkdir(parents=True, exist_ok=True)
    holder = FileLock(lock)
    try:
        holder.acquire(timeout=0)
    except Timeout:
        yield False
        return
    try:
        yield True
    finally:
        holder.release()


@contextlib.contextmanager
def held(folder: Path) -> Iterator[None]:
    """Create a folder if it is missing, and lock it for this process.

    Raises
    ------
    DataError
        If another process holds it, or it cannot be written to.
    """
    with contextlib.ExitStack() as stack:
        try:
            first = stack.enter_context(alone(folder / ".lock"))
        except OSError as error:
            raise DataError(f"cannot write to the folder {folder}: {error.strerror or error}") from None
        if not first:
            raise DataError(f"another process is at work in {folder}; wait for it, or choose another folder")
        sweep(folder)
        yield


def write_bytes(path: str | os.PathLike[str], data: bytes) -> None:
    r"""Write a file atomically.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_bytes(Path(folder) / "deep" / "data.bin", b"\x00\x01")
    ...     print((Path(folder) / "deep" / "data.bin").read_bytes())
    b'\x00\x01'
    """
    with aside(path) as part:
        part.write_bytes(data)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a UTF-8 file with plain newlines atomically.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_text(Path(folder) / "note.txt", "mu, sigma")
    ...     print((Path(folder) / "note.txt").read_text())
    mu, sigma
    """
    write_bytes(path, text.encode())


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)

"""Nothing half-written: a file appears under its final name when it is whole; folders of one process."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from gaussianmlr.errors import DataError


@contextlib.contextmanager
def aside(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a path beside `path` to write to, and move the result into place at the end.

    The parent folder is made where it is missing. When the block raises, what was written is
    removed and `path` stays as it was.

    Parameters
    ----------
    path : path-like
        Where the finished file (or folder) shall stand. A file there is replaced, or that which a link
        there points to; a device or pipe gets what was written.

    Yields
    ------
    pathlib.Path
        A name in the same folder that nothing uses yet.

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
    if final.exists() and not (final.is_file() or final.is_dir()):  # it must not become a file
        with tempfile.TemporaryDirectory() as folder:
            yield Path(folder) / final.name
            with (Path(folder) / final.name).open("rb") as whole, final.open("wb") as stream:
                shutil.copyfileobj(whole, stream)
        return
    if final.is_symlink():
        final = final.resolve()
    final.parent.mkdir(parents=True, exist_ok=True)
    part = final.with_name(f".{final.name}.{secrets.token_hex(6)}.part")
    try:
        yield part
        publish(part, final)
    except BaseException:
        _remove(part)
        raise


def publish(part: Path, final: Path) -> None:
    """Make `part` durable, then give it its final name in one step.

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
    part.replace(final)
    if os.name == "posix":
        _sync(final.parent)


@contextlib.contextmanager
def alone(lock: Path) -> Iterator[bool]:
    """Hold a lock, the file of that name, and say whether this process is the first to ask for it.

    The system frees the lock of a process that dies.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, alone(Path(folder) / ".lock") as first:
    ...     with alone(Path(folder) / ".lock") as second:
    ...         print(first, second)
    True False
    """
    from filelock import FileLock, Timeout

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
    """A folder, made where it is missing, in which one process at a time may be at work.

    Raises
    ------
    DataError
        Where another process is, or the folder cannot be written to.
    """
    with contextlib.ExitStack() as stack:
        try:
            first = stack.enter_context(alone(folder / ".lock"))
        except OSError as error:
            raise DataError(f"cannot write to the folder {folder}: {error.strerror or error}") from None
        if not first:
            raise DataError(f"another process is at work in {folder}; wait for it, or choose another folder")
        yield


def write_bytes(path: str | os.PathLike[str], data: bytes) -> None:
    r"""Write a whole file or nothing.

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
    """Write a whole UTF-8 file with plain newlines, or nothing.

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


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)

"""Reading within bounds: regular files, lines of limited length, archives of limited size."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import stat
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, TextIO, cast

from gaussianmlr.errors import DataError, shorten

__all__ = [
    "LONGEST_LINE",
    "check_file",
    "check_unpacked",
    "is_folder",
    "lines_of",
    "most_unpacked",
    "open_bytes",
    "open_text",
    "read_regular",
    "shorter",
]

LONGEST_LINE = 1 << 26  # bytes: a row of a million columns fits
_RATIO = 100  # the best compression of honest tables and arrays
_FREE = 1 << 27  # bytes that any file may unpack to
_BLOCK = 1 << 20
_LONGEST_NAME = 150  # bytes; file systems allow 255, including suffixes of temporary files


def check_file(path: str | os.PathLike[str], expected: str) -> Path:
    """The path of a regular file; missing files, folders, pipes and devices are refused.

    Examples
    --------
    >>> check_file("nowhere.csv", "a table")
    Traceback (most recent call last):
        ...
    gaussianmlr.errors.DataError: nowhere.csv: does not exist; expected a table
    >>> check_file("x" * 300, "a table")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    gaussianmlr.errors.DataError: 'xxx...: File name too long; expected a table
    """
    file = Path(path)
    try:
        mode = file.stat().st_mode
    except FileNotFoundError:
        raise DataError(f"{file}: does not exist; expected {expected}") from None
    except (OSError, ValueError) as error:  # a NUL in the name is a ValueError
        reason = getattr(error, "strerror", None) or error
        raise DataError(f"{_shown(file)}: {reason}; expected {expected}") from None
    if not stat.S_ISREG(mode):
        raise DataError(f"{file}: {_kind(mode)}; expected {expected}")
    return file


def read_regular(path: str | os.PathLike[str], most: int = 16 << 20) -> bytes:
    """The bytes of a regular file of at most `most` bytes.

    Raises
    ------
    DataError
        For pipes, devices and larger files; an `OSError` where it cannot be read.

    Examples
    --------
    >>> read_regular(os.devnull)
    Traceback (most recent call last):
        ...
    gaussianmlr.errors.DataError: /dev/null is a pipe or device, not a regular file
    """
    # Opening a pipe that has no writer would block.
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with os.fdopen(handle, "rb") as stream:
        if not stat.S_ISREG(mode := os.fstat(handle).st_mode):
            raise DataError(f"{path} {_kind(mode)}")
        data = stream.read(most + 1)
    if len(data) > most:
        raise DataError(f"{path} is larger than {most:,} bytes")
    return data


def is_folder(path: str | os.PathLike[str]) -> bool:
    """Whether a path is a folder; unlike `Path.is_dir`, never raises.

    Examples
    --------
    >>> is_folder("."), is_folder("x" * 300)
    (True, False)
    """
    return os.path.isdir(path)  # noqa: PTH112 (Path.is_dir raises for names that are too long)


def shorter(name: str) -> str:
    """A name that fits into a file system: one that is too long ends in a digest.

    Examples
    --------
    >>> shorter("lsep_seed0")
    'lsep_seed0'
    >>> len(shorter("x" * 300)), shorter("x" * 300) == shorter("x" * 301)
    (150, False)
    """
    if len(name.encode()) <= _LONGEST_NAME:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:16]
    return name.encode()[: _LONGEST_NAME - 17].decode(errors="ignore") + f"-{digest}"


def open_text(path: Path, *, held: bool = True, encoding: str = "utf-8-sig") -> TextIO:
    """A text file, gzipped if its name ends in ``.gz``, with its line ends as they are.

    A line longer than `LONGEST_LINE` is a `DataError`. If the whole file is `held` in memory, so is unpacking
    to more than a hundred times its size.
    """
    return io.TextIOWrapper(open_bytes(path, held=held), encoding=encoding, newline="")


def open_bytes(path: Path, *, held: bool = True) -> io.BufferedReader:
    """The bytes of a text file, unpacked, within the limits of `open_text`."""
    check_file(path, "a table")
    packed = path.suffix.lower() == ".gz"
    stream = cast("IO[bytes]", gzip.GzipFile(path) if packed else path.open("rb", buffering=0))
    raw = _Bounded(stream, path, path.stat().st_size if packed and held else None)
    return io.BufferedReader(raw, _BLOCK)


def lines_of(stream: IO[str], name: str) -> Iterator[str]:
    """The lines of a text stream of any length; refuses lines longer than `LONGEST_LINE`."""
    read = getattr(stream, "readline", None)
    lines = iter(lambda: read(LONGEST_LINE + 1), "") if read is not None else iter(stream)
    for number, line in enumerate(lines, 1):
        if len(line) > LONGEST_LINE:
            raise DataError(_too_long(name, number))
        yield line


def most_unpacked(path: Path) -> int:
    """Bytes that a file of arrays may unpack to."""
    return max(8 * _FREE, _RATIO * path.stat().st_size)


def check_unpacked(path: Path, size: int) -> None:
    """Refuse a file that unpacks to more bytes than arrays do."""
    if size > (most := most_unpacked(path)):
        raise DataError(
            f"{path}: unpacks to {size:,} bytes; expected at most {most:,} of a file of this size"
        )


class _Bounded(io.RawIOBase):
    """A raw stream that limits the length of lines and of the whole."""

    def __init__(self, stream: IO[bytes], path: Path, packed: int | None) -> None:
        self.stream, self.path = stream, path
        self.most = None if packed is None else max(_FREE, _RATIO * packed)
        self.line, self.length, self.total = 1, 0, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            block = self.stream.read(len(buffer))
        except (OSError, EOFError, zlib.error) as error:
            raise DataError(f"{self.path}: damaged or cut off: {error}") from None
        buffer[: len(block)] = block
        self._count(block)
        return len(block)

    def close(self) -> None:
        self.stream.close()
        super().close()

    def _count(self, block: bytes) -> None:
        mark = b"\n" if b"\n" in block else b"\r"  # files of old Macintoshes have only \r
        lines = block.count(mark)
        length = self.length + (block.index(mark) if lines else len(block))
        if length > LONGEST_LINE:
            raise DataError(_too_long(str(self.path), self.line))
        self.length = len(block) - block.rindex(mark) - 1 if lines else length
        self.line += lines
        self.total += len(block)
        if self.most is not None and self.total > self.most:
            raise DataError(
                f"{self.path}: unpacks to more than {self.most:,} bytes, {_RATIO} times its size or more; "
                "unpack it first if this is intended"
            )


def _kind(mode: int) -> str:
    return "is a folder" if stat.S_ISDIR(mode) else "is a pipe or device, not a regular file"


def _too_long(name: str, line: int) -> str:
    return f"{name}: line {line} is longer than {LONGEST_LINE:,} bytes; expected one row per line"


def _shown(path: Path) -> str:
    name = str(path)
    return name if len(name) <= 200 and name.isprintable() else shorten(name, 200)

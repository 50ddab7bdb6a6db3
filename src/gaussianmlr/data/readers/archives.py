"""Folders and archives of data; archives are unpacked within limits."""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO

from gaussianmlr._utils.bounded import check_file, is_folder
from gaussianmlr._utils.cache import cache_folder
from gaussianmlr._utils.files import aside
from gaussianmlr.errors import DataError

ARCHIVE_SUFFIXES = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")
MAX_BYTES = 20 * 2**30
MAX_FILES = 500_000
_BLOCK = 1 << 20


def is_archive(path: Path) -> bool:
    """Whether a path has the suffix of an archive."""
    return path.name.lower().endswith(ARCHIVE_SUFFIXES)


def folder_of(
    path: str | os.PathLike[str], *, max_bytes: int = MAX_BYTES, max_files: int = MAX_FILES
) -> Path:
    """The folder itself, or the one an archive is unpacked to.

    An archive is unpacked once, below ``GAUSSIANMLR_CACHE`` or the user's cache folder, under the
    SHA-256 of its bytes. Links, paths that lead out of it, and archives with more than `max_bytes` or
    `max_files` (counted while unpacking) are refused.
    """
    given = Path(path)
    if is_folder(given):
        return given
    check_file(given, "a folder or an archive")
    if not is_archive(given):
        raise DataError(f"{given}: expected a folder or an archive ({', '.join(ARCHIVE_SUFFIXES)})")
    with given.open("rb") as file:
        target = cache_folder("archives") / hashlib.file_digest(file, "sha256").hexdigest()
    if target.is_dir():
        return target
    _unpack(given, target, _Budget(given, max_bytes, max_files))
    return target


def _unpack(archive: Path, target: Path, budget: _Budget) -> None:
    unpack = _unzip if archive.name.lower().endswith(".zip") else _untar
    try:
        with aside(target) as part:
            part.mkdir()
            unpack(archive, part, budget)
    except OSError as error:
        if not target.is_dir():  # else another process was faster
            raise DataError(f"{archive}: cannot be unpacked: {error}") from None
    except DataError:
        raise
    except Exception as error:  # a damaged file can make zip and tar raise anything
        raise DataError(f"{archive}: damaged or cut off: {error}") from None


class _Budget:
    """Counts what is written, which the archive may misstate."""

    def __init__(self, archive: Path, max_bytes: int, max_files: int) -> None:
        self.archive, self.bytes, self.files = archive, max_bytes, max_files

    def file(self) -> None:
        self.files -= 1
        if self.files < 0:
            raise DataError(f"{self.archive}: holds too many files to be unpacked safely")

    def spend(self, count: int) -> None:
        self.bytes -= count
        if self.bytes < 0:
            raise DataError(f"{self.archive}: unpacks to too many bytes to be safe")


def _unzip(archive: Path, folder: Path, budget: _Budget) -> None:
    with zipfile.ZipFile(archive) as file:
        for entry in file.infolist():
            if stat.S_ISLNK(entry.external_attr >> 16):
                raise DataError(f"{archive}: {entry.filename!r} is a link; only files are unpacked")
            target = _inside(archive, folder, entry.filename)
            if entry.is_dir():
                continue
            with file.open(entry) as content:
                _copy(content, target, budget)


def _untar(archive: Path, folder: Path, budget: _Budget) -> None:
    with tarfile.open(archive) as file:
        for entry in file:
            target = _inside(archive, folder, entry.name)
            if entry.isdir():
                continue
            content = file.extractfile(entry) if entry.isreg() else None
            if content is None:
                raise DataError(f"{archive}: {entry.name!r} is a link or device; only files are unpacked")
            with content:
                _copy(content, target, budget)


def _inside(archive: Path, folder: Path, name: str) -> Path:
    parts = PurePosixPath(name.replace("\\", "/"))
    if parts.is_absolute() or ".." in parts.parts or ":" in name or "\0" in name:
        raise DataError(f"{archive}: {name!r} leads out of the archive; it is not unpacked")
    return folder / parts


def _copy(content: IO[bytes], target: Path, budget: _Budget) -> None:
    budget.file()
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("xb") as out:  # "x": an archive that names a file twice is refused
        while block := content.read(_BLOCK):
            budget.spend(len(block))
            out.write(block)


def find_file(folder: Path, name: str) -> Path | None:
    """The file of that name nearest to the top of a folder."""
    if (folder / name).is_file():
        return folder / name
    found = sorted(_walk(folder, name), key=lambda path: (len(path.parts), path))
    return found[0] if found else None


def _walk(folder: Path, name: str) -> Iterator[Path]:
    with contextlib.suppress(PermissionError):
        yield from (path for path in folder.rglob(name) if path.is_file())

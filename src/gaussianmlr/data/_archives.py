"""Data sets as they are handed round: folders, zip files, tarballs. Archives are unpacked with care."""

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

from gaussianmlr.errors import DataError
from gaussianmlr.files import aside

ARCHIVE_SUFFIXES = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")
MAX_BYTES = 20 * 2**30
MAX_FILES = 500_000
_BLOCK = 1 << 20


def is_archive(path: Path) -> bool:
    """Whether a path is called like an archive."""
    return path.name.lower().endswith(ARCHIVE_SUFFIXES)


def folder_of(
    path: str | os.PathLike[str], *, max_bytes: int = MAX_BYTES, max_files: int = MAX_FILES
) -> Path:
    """The folder itself, or the one an archive is unpacked to.

    An archive is unpacked once, below ``GAUSSIANMLR_CACHE`` or the user's cache folder, under the
    SHA-256 of its bytes. Nothing of it is written outside, links are refused, and so is an
    archive that holds more than `max_bytes` or `max_files`, whatever it says of itself.
    """
    given = Path(path)
    if given.is_dir():
        return given
    if not given.exists():
        raise DataError(f"{given}: does not exist; expected a folder or an archive")
    if not is_archive(given):
        raise DataError(f"{given}: expected a folder or an archive ({', '.join(ARCHIVE_SUFFIXES)})")
    target = cache_root() / "archives" / _digest(given)
    if target.is_dir():
        return target
    budget = _Budget(given, max_bytes, max_files)
    try:
        with aside(target) as part:
            part.mkdir()
            if given.name.lower().endswith(".zip"):
                _unzip(given, part, budget)
            else:
                _untar(given, part, budget)
    except OSError as error:
        if target.is_dir():  # another process was quicker
            return target
        raise DataError(f"{given}: cannot be unpacked: {error}") from None
    except (zipfile.BadZipFile, tarfile.TarError, EOFError, NotImplementedError, RuntimeError) as error:
        raise DataError(f"{given}: damaged or cut off: {error}") from None
    except Exception as error:
        if isinstance(error, DataError) or not type(error).__module__.startswith(("zlib", "lzma", "_")):
            raise
        raise DataError(f"{given}: damaged or cut off: {error}") from None
    return target


def cache_root() -> Path:
    """Where unpacked archives are kept: ``GAUSSIANMLR_CACHE``, else the user's cache folder."""
    import platformdirs

    given = os.environ.get("GAUSSIANMLR_CACHE")
    return Path(given) if given else Path(platformdirs.user_cache_dir("gaussianmlr", appauthor=False))


class _Budget:
    """Counts what was really written, not what the archive claims."""

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


def _digest(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def find_file(folder: Path, name: str) -> Path | None:
    """The file of that name nearest to the top of a folder."""
    if (folder / name).is_file():
        return folder / name
    found = sorted(_walk(folder, name), key=lambda path: (len(path.parts), path))
    return found[0] if found else None


def _walk(folder: Path, name: str) -> Iterator[Path]:
    with contextlib.suppress(PermissionError):
        yield from (path for path in folder.rglob(name) if path.is_file())

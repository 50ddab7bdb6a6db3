"""Folders that travel between machines as names and bytes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from gaussianmlr._utils.files import aside

__all__ = ["packed", "unpack"]


def packed(folder: Path) -> dict[str, bytes]:
    """The files of a folder and of its subfolders by their relative names; hidden ones are left out.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "a.txt").write_bytes(b"1")
    ...     unpack(packed(Path(folder)), Path(folder) / "copy")
    ...     sorted(packed(Path(folder)))
    ['a.txt', 'copy/a.txt']
    """
    names = {path: path.relative_to(folder) for path in sorted(folder.rglob("*")) if path.is_file()}
    return {
        name.as_posix(): path.read_bytes()
        for path, name in names.items()
        if not any(part.startswith(".") for part in name.parts)
    }


def unpack(files: Mapping[str, bytes], folder: Path) -> None:
    """Write what `packed` gave as a folder, whole or not at all; an existing one is replaced."""
    with aside(folder, replace=True) as part:
        part.mkdir()
        for name, data in files.items():
            (part / name).parent.mkdir(parents=True, exist_ok=True)
            (part / name).write_bytes(data)

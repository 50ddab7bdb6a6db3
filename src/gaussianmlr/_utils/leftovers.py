"""Cleaning up after processes that died: partial files are removed, a folder moved aside is restored.

Temporary names contain their owner: ``.{name}.{owner}.part`` while something is written, and
``.{name}.{owner}.old`` for a folder that is being replaced.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
import secrets
import shutil
import socket
import time
from pathlib import Path

__all__ = ["sweep", "temporary"]

_DAY = 86_400.0  # seconds without a change, after which an owner on another machine counts as dead
_LONGEST = 200  # bytes of a name that are kept in a temporary one; file systems allow 255
_OURS = re.compile(
    r"\.(?P<name>.+)\.(?:(?P<place>[0-9a-f]{8})-(?P<pid>\d+)-(?P<started>\d+)-[0-9a-f]{6}|[0-9a-f]{12})"
    r"\.(?P<kind>part|old)"
)


def temporary(final: Path, kind: str = "part") -> Path:
    """An unused name beside `final` that contains this process.

    Parameters
    ----------
    final : Path
        The final path.
    kind : {"part", "old"}
        Whether it will replace `final`, or is the old content of `final`.

    Examples
    --------
    >>> found = temporary(Path("run") / "best.pt")
    >>> found.name.startswith(".best.pt."), found.suffix, found.parent.name
    (True, '.part', 'run')
    """
    pid = os.getpid()
    name = final.name
    if kind == "part":  # the name of an old folder must be restored in full
        name = name.encode(errors="surrogateescape")[:_LONGEST].decode(errors="ignore")
    owner = f"{_place()}-{pid}-{_started(pid) or 0}-{secrets.token_hex(3)}"
    return final.with_name(f".{name}.{owner}.{kind}")


def sweep(folder: Path) -> None:
    """Remove what dead processes were writing to a folder, and restore what they had moved aside.

    A process of this machine is dead if its id is free or belongs to another process. Processes of other
    machines, containers and earlier boots cannot be checked: their files are removed after a day without
    changes. A folder that was moved aside is restored if its place is empty and its owner is not known to be
    alive.

    Parameters
    ----------
    folder : Path
        Only its own entries are checked, not those of subfolders. A missing folder is ignored.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     mine, other = temporary(Path(folder) / "a.csv"), Path(folder) / "notes.part"
    ...     _ = mine.write_text("1,"), other.write_text("")
    ...     sweep(Path(folder))
    ...     print(mine.exists(), other.exists())
    True True
    """
    try:
        names = [entry.name for entry in os.scandir(folder) if entry.name.startswith(".")]
    except OSError:
        return
    for name in names:
        found = _OURS.fullmatch(name)
        if found is None:
            continue
        path = folder / name
        known = os.name == "posix" and found["place"] == _place()  # elsewhere signal 0 is not a check
        if known and _is_alive(int(found["pid"]), int(found["started"])):
            continue
        if found["kind"] == "old" and not (folder / found["name"]).exists():
            _put_back(path, folder / found["name"])
        elif known or _is_forgotten(path):
            remove(path)


def remove(path: Path) -> None:
    """Remove a file or a whole folder; not an error if it is missing."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        try:
            path.unlink(missing_ok=True)
        except OSError:
            return


def _put_back(path: Path, final: Path) -> None:
    try:
        path.rename(final)
    except OSError:  # another process was faster, or the folder is read-only
        return


@functools.cache
def _place() -> str:
    """A digest of host, boot and process namespace: equal for processes that can see each other."""
    facts = [socket.gethostname()]
    try:
        facts.append(Path("/proc/sys/kernel/random/boot_id").read_text())
        facts.append(str(Path("/proc/self/ns/pid").stat().st_ino))
    except OSError:  # not Linux
        pass
    return hashlib.sha256("\0".join(facts).encode()).hexdigest()[:8]


def _started(pid: int) -> int | None:
    """Start of a process in ticks since boot; 0 if it is dead, None if the system does not tell."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
        return 0 if fields[0] in "ZX" else int(fields[19])
    except (OSError, ValueError, IndexError):
        return None


def _is_alive(pid: int, started: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):  # it belongs to another user
        pass
    now = _started(pid)
    return now is None or not started or now == started


def _is_forgotten(path: Path) -> bool:
    """Whether a file, or anything in a folder, is unchanged for a day."""
    try:
        times = [one.lstat().st_mtime for one in (path, *path.rglob("*"))]
    except OSError:  # it is being changed
        return False
    return time.time() - max(times) > _DAY

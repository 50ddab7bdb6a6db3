"""Memory allocation of a process."""

from __future__ import annotations

import ctypes
import os
import sys

__all__ = ["keep_freed_memory"]

# glibc's malloc.h: M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_MAX.
_TRIM_THRESHOLD, _TOP_PAD, _MMAP_MAX = -1, -2, -4
_SETTINGS = {_TRIM_THRESHOLD: 2**31 - 1, _TOP_PAD: 2**26, _MMAP_MAX: 0}


def keep_freed_memory() -> bool:
    """Let this process keep freed memory for its next tensors.

    By default glibc returns every large block to the system at once, and the system clears the pages before
    it hands them out again. A training step frees and allocates the same hundreds of megabytes each time, so
    a good part of a step on a CPU may go into that. With this setting the process keeps its peak memory. The
    commands that train call it themselves; your own program should call it once and early, as it affects the
    whole process.

    Nothing is done without glibc (macOS, Windows, Alpine), or if the environment has its own settings
    (``MALLOC_*``, ``GLIBC_TUNABLES``, or another allocator by ``LD_PRELOAD``).

    Returns
    -------
    bool
        Whether freed memory is kept.

    References
    ----------
    The GNU C Library manual, "Malloc Tunable Parameters".

    Examples
    --------
    >>> from gaussianmlr._utils.memory import keep_freed_memory
    >>> keep_freed_memory() in (True, False)
    True
    """
    own = any(name.startswith("MALLOC_") for name in os.environ)
    if own or os.environ.get("GLIBC_TUNABLES") or os.environ.get("LD_PRELOAD"):
        return False
    if sys.platform != "linux":
        return False
    library = ctypes.CDLL(None)
    if not hasattr(library, "gnu_get_libc_version"):
        return False  # musl has a mallopt that does nothing
    return all(library.mallopt(name, value) == 1 for name, value in _SETTINGS.items())

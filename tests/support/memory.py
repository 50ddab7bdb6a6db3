"""Memory of a process."""

import re
from pathlib import Path


def peak_megabytes():
    """Peak of this program alone; `ru_maxrss` of a child begins with what its parent held."""
    return int(re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())[1]) // 1024


def peak_of(call):
    """Megabytes that a call takes at most, besides what is held already (Linux)."""
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    before = _megabytes("VmRSS")
    call()
    return _megabytes("VmHWM") - before


def _megabytes(name):
    return int(re.search(rf"{name}:\s+(\d+) kB", Path("/proc/self/status").read_text())[1]) / 1024

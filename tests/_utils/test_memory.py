"""The system's own count of page faults says whether freed memory is kept."""

import os
import platform
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

MEGABYTES = 64
SCRIPT = f"""
import resource, sys
import torch
from gaussianmlr._utils.memory import keep_freed_memory

print(keep_freed_memory() if sys.argv[1] == "keep" else None)
torch.set_num_threads(1)


def use():
    torch.ones({MEGABYTES} * 2**20 // 4).sum()


for _ in range(20):
    use()  # the heap grows for a few rounds before freed blocks fit
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(20):
    use()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""
glibc = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the C library is not glibc")


def _run(what, **environment):
    plain = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}
    plain = {name: value for name, value in plain.items() if name not in ("GLIBC_TUNABLES", "LD_PRELOAD")}
    words = [sys.executable, "-c", SCRIPT, what]
    shown = subprocess.run(words, env={**plain, **environment}, capture_output=True, text=True, check=True)
    kept, faults = shown.stdout.split()
    return kept, int(faults)


@glibc
def test_tensors_reuse_what_was_freed():
    pages = MEGABYTES * 2**20 // os.sysconf("SC_PAGE_SIZE")
    _, without = _run("leave")
    assert without > 10 * pages  # or there is nothing to gain, and no reason for this module
    kept, faults = _run("keep")
    assert kept == "True"
    assert faults < pages


@pytest.mark.parametrize(
    "own",
    [
        {"MALLOC_ARENA_MAX": "4"},
        {"GLIBC_TUNABLES": "glibc.malloc.trim_threshold=131072"},
        {"LD_PRELOAD": "libm.so.6"},
    ],
)
@glibc
def test_settings_of_the_environment_are_left_alone(own):
    assert _run("keep", **own)[0] == "False"


def test_other_systems_are_left_alone(monkeypatch):
    from gaussianmlr._utils import memory as allocation

    for name in [name for name in os.environ if name.startswith(("MALLOC_", "GLIBC_", "LD_PRELOAD"))]:
        monkeypatch.delenv(name)
    monkeypatch.setattr(sys, "platform", "darwin")
    assert allocation.keep_freed_memory() is False

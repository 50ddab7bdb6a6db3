"""A real Ray cluster of three machines on this one, whose workers can be killed."""

import contextlib
import shutil
import subprocess
import tempfile
import time

import pytest


def processes():
    """(parent, command line) of everything that runs."""
    listed = subprocess.run(["ps", "-A", "-o", "ppid=,args="], capture_output=True, text=True, check=True)
    return [tuple(line.split(maxsplit=1)) for line in listed.stdout.splitlines() if len(line.split()) > 1]


def within(seconds, condition):
    end = time.monotonic() + seconds
    while not (found := condition()) and time.monotonic() < end:
        time.sleep(0.1)
    return found


@contextlib.contextmanager
def cluster():
    """A head without cores and two workers with one each; afterwards no process and no file is left."""
    from ray.cluster_utils import Cluster

    folder = tempfile.mkdtemp(prefix="ray-", dir="/tmp")  # sockets need a short path
    quick = {
        "health_check_period_ms": 500,
        "health_check_timeout_ms": 2000,
        "health_check_failure_threshold": 4,
    }
    store = {"object_store_memory": 80 << 20}
    head = {"num_cpus": 0, "include_dashboard": False, "_system_config": quick, **store}
    made = Cluster()
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("RAY_TMPDIR", folder)
            patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
            patch.setenv("RAY_worker_niceness", "0")  # or a busy machine would hardly let them begin
            made.add_node(**head)
            nodes = [made.add_node(num_cpus=1, **store) for _ in range(2)]
        yield made, nodes
    finally:
        made.shutdown()
        gone = within(20, lambda: not [line for _, line in processes() if folder in line])
        shutil.rmtree(folder)
        assert gone


def busy(node, task):
    """Whether a worker process of this node does a task at this moment."""
    raylet = node.all_processes["raylet"][0].process.pid
    return any(int(parent) == raylet and task in line for parent, line in processes())

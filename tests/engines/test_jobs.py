"""Cells on a real Ray cluster, one of whose machines is killed: the cells of the local run."""

import json
import subprocess

import pytest

from support.clusters import busy, cluster, within
from support.commanding import ENVIRONMENT, command, gmlr, make_table

pytestmark = pytest.mark.slow

ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'gaussianmlr[ray]'")

TASK = "ray::_job"
# Trees too, and long enough that a machine can be killed within.
COMPARED = ("--method", "gmlr,crpc,forest", "--seeds", "2", "--epochs", "60", "--set", "patience=none")


def cells(folder):
    """All that two runs of a comparison must have in common: everything but the time."""
    found = {file.name: json.loads(file.read_text()) for file in sorted((folder / "cells").iterdir())}
    for cell in found.values():
        assert cell.pop("seconds") > 0
        cell.pop("sha256")
    return found


def test_cells_survive_the_loss_of_a_machine(tmp_path):
    table = tmp_path / "hikes.csv"
    make_table(160).drop(columns="split").to_csv(table, index=False)
    local = gmlr("compare", table, "--out", tmp_path / "local", *COMPARED)
    assert local.returncode == 0, local.stderr
    said, out = tmp_path / "said", tmp_path / "ray"
    with cluster() as (made, nodes), said.open("w") as err:
        on_ray = ("--engine", "ray", "--ray-address", made.address)
        asked = command("compare", table, "--out", out, *COMPARED, *on_ray)
        running = subprocess.Popen(asked, stdout=err, stderr=err, env=ENVIRONMENT)
        try:
            assert within(120, lambda: running.poll() is not None or all(busy(node, TASK) for node in nodes))
            assert running.poll() is None, said.read_text()
            assert busy(nodes[0], TASK)
            made.remove_node(nodes[0], allow_graceful=False)  # SIGKILL
            assert len(list((out / "cells").glob("*.json"))) < 4
            assert running.wait(timeout=240) == 0, said.read_text()
        finally:
            running.kill()
        print(said.read_text())
    assert cells(out) == cells(tmp_path / "local")

"""Cells on a real Ray cluster, one of whose machines is killed: the cells of the local run."""

import json
import signal
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV

from gaussianmlr import DataError, GaussianMLR
from gaussianmlr.data.open import find_data
from gaussianmlr.engines import Engine, joblib_on_ray, run
from gaussianmlr.model.recipe import Recipe
from gaussianmlr.paper.cells import Cell, read_cells
from gaussianmlr.paper.places import Places, Sources
from gaussianmlr.paper.run import run_all
from gaussianmlr.paper.values import read_values
from gaussianmlr.tuning.search import tune
from support.clusters import busy, cluster, within
from support.commanding import ENVIRONMENT, command, gmlr, make_table

ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'gaussianmlr[ray]'")

TASK = "ray::_job"
COMPARED = ("--method", "gmlr,crpc,forest", "--seeds", "2", "--epochs", "60", "--set", "patience=none")


def cells(folder):
    """All that two runs of a comparison must have in common: everything but the time."""
    found = {file.name: json.loads(file.read_text()) for file in sorted((folder / "cells").iterdir())}
    for cell in found.values():
        assert cell.pop("seconds") > 0
        cell.pop("sha256")
    return found


def started(said, *arguments):
    with said.open("w") as err:
        return subprocess.Popen(command(*arguments), stdout=err, stderr=err, env=ENVIRONMENT)


def check_stop(table, tmp, on_ray):
    """SIGTERM keeps what is finished, says how to go on, and leaves no folder of a job."""
    said, out = tmp / "stopped.txt", tmp / "stopped"
    running = started(said, "compare", table, "--out", out, *COMPARED, *on_ray)
    try:
        assert within(240, lambda: running.poll() is not None or list(out.glob("cells/*.json")))
        running.send_signal(signal.SIGTERM)
        assert running.wait(timeout=120) == 143, said.read_text()
    finally:
        running.kill()
    assert f"the same command resumes from {out}" in said.read_text()
    assert 1 <= len(cells(out)) < 6
    assert within(20, lambda: not list(Path(tempfile.gettempdir()).glob(".gmlr-job.*.part")))
    return out


def check_paper(tmp, engine):
    """A cell of the paper: metrics, values of every test image, and the model it leaves."""
    cell, found = Cell("gray-s", "crpc", "strong", "smoke"), {}
    for name, place in (("local", Engine()), ("ray", engine)):
        places = Places(tmp / f"{name}-work", tmp / f"{name}-results")
        assert run_all([cell], places, Sources("embedded"), engine=place)
        landed = read_cells(places.cells)
        found[name] = {
            one: (facts["metrics"], facts["data"], read_values(places.cells, facts).scores.tobytes())
            for one, facts in landed.items()
        }
        found[name]["model"] = (places.run(cell) / "model/model.safetensors").read_bytes()
    assert len(found["ray"]) == 3
    assert found["ray"] == found["local"]


def check_search(table, tmp, engine):
    recipe = Recipe(backbone="mlp", epochs=4, batch_size=32)
    found = [
        tune(table, out=tmp / "search" / place.name, recipe=recipe, trials=4, folds=2, engine=place)
        for place in (Engine(), engine)
    ]
    one, other = ([(row.number, row.value, row.changes) for row in search.rows] for search in found)
    assert one == other  # the first trials do not depend on each other


def check_scikit(table):
    data = find_data(table)
    grid = {"rate": [0.001, 0.01]}
    searches = [
        GridSearchCV(
            GaussianMLR(model="network", n_members=1, epochs=2, random_state=0), grid, cv=2, n_jobs=jobs
        )
        for jobs in (1, -1)
    ]
    searches[0].fit(data.features, data.ranks)
    with joblib_on_ray("auto"):  # this process has joined the cluster
        searches[1].fit(data.features, data.ranks)
    one, other = (search.cv_results_["mean_test_score"] for search in searches)
    assert np.isfinite(one).all()
    assert one.tolist() == other.tolist()


def check_errors(engine):
    def unlucky(shared, item, tell):
        if item == 2:
            raise DataError(f"no luck with {item}")
        return shared * item

    assert dict(run(unlucky, 10, [1, 3], engine)) == {1: 10, 3: 30}
    with pytest.raises(DataError, match="no luck with 2"):
        list(run(unlucky, 10, [1, 2], engine))


def check_reports(engine):
    """A job hears that it should stop."""

    def job(shared, item, tell):
        import time

        for step in range(200):
            if tell(step, float(item)):
                return step
            time.sleep(0.05)
        return None

    found = run(job, None, [2], engine, heard=lambda item, step, value: (item, value) == (2, 2.0))
    assert 0 < dict(found)[2] < 200


@pytest.mark.slow
def test_cells_survive_the_loss_of_a_machine(tmp_path):
    table = tmp_path / "hikes.csv"
    make_table(160).drop(columns="split").to_csv(table, index=False)
    local = gmlr("compare", table, "--out", tmp_path / "local", *COMPARED)
    assert local.returncode == 0, local.stderr
    said, out = tmp_path / "said.txt", tmp_path / "ray"
    with cluster() as (made, nodes):
        on_ray = ("--engine", "ray", "--ray-address", made.address)
        running = started(said, "compare", table, "--out", out, *COMPARED, *on_ray)
        try:
            assert within(240, lambda: running.poll() is not None or busy(nodes[0], TASK))
            assert running.poll() is None, said.read_text()
            made.remove_node(nodes[0], allow_graceful=False)  # SIGKILL
            assert len(list(out.glob("cells/*.json"))) < 4
            assert running.wait(timeout=480) == 0, said.read_text()
        finally:
            running.kill()
        assert cells(out) == cells(tmp_path / "local")
        stopped = check_stop(table, tmp_path, on_ray)
        resumed = gmlr("compare", table, "--out", stopped, *COMPARED)  # locally
        assert "of 6 cells exist already" in resumed.stderr
        assert cells(stopped) == cells(tmp_path / "local")
        # Joined once, as a notebook is: what is below shares the worker processes.
        ray.init(made.address, log_to_driver=False)
        try:
            on_cluster = Engine("ray")
            check_paper(tmp_path, on_cluster)
            check_search(table, tmp_path, on_cluster)
            check_scikit(table)
            check_errors(on_cluster)
            check_reports(on_cluster)
        finally:
            ray.shutdown()


def test_local_jobs_see_the_results_before_the_next_item_is_taken():
    done, told = [], []

    def items():
        for number in range(3):
            assert done == list(range(number))
            yield number

    def job(shared, item, tell):
        assert tell(7, item / 2) == (item == 2)
        return shared * item

    def heard(item, step, value):
        told.append((item, step, value))
        return item == 2

    for item, result in run(job, 10, items(), heard=heard):
        assert result == 10 * item
        done.append(item)
    assert told == [(0, 7, 0.0), (1, 7, 0.5), (2, 7, 1.0)]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"name": "slurm"}, "engine is 'slurm'; expected 'local' or 'ray'"),
        ({"workers": 2}, "--ray-address and --workers are for --engine ray"),
        ({"name": "ray", "workers": 0}, "workers is 0; expected 1 or more"),
        ({"name": "ray", "threads": 0}, "threads is 0; expected 1 or more"),
    ],
)
def test_engines_that_cannot_be(settings, message):
    with pytest.raises(DataError, match=message):
        Engine(**settings)


def test_a_missing_ray_is_one_message(monkeypatch):
    monkeypatch.setattr("gaussianmlr._utils.extras.find_spec", lambda name: None)
    with pytest.raises(DataError, match=r"--engine ray needs ray: pip install 'gaussianmlr\[ray\]'"):
        Engine("ray")

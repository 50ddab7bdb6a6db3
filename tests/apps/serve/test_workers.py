"""`gmlr serve --workers`: real processes are killed, overloaded and stopped; answers are the model's."""

import concurrent.futures
import os
import re
import signal
import sys
import time
from pathlib import Path

import httpx
import numpy as np
import pytest
import torch

from gaussianmlr.data.inputs import read_rows
from gaussianmlr.model.model import Model, build
from gaussianmlr.model.recipe import Recipe
from support.commanding import gmlr
from support.paging import running

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="workers are forked on Linux only"),
]

WORKERS = 3
MANY = 40_000  # labels: about 160 MB of weights
TOKEN = "a-token-of-workers"


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    inputs, recipe = {"kind": "table", "channels": 3}, Recipe(backbone="mlp")
    labels = tuple(f"label {number}" for number in range(MANY))
    return Model(*build(recipe, MANY, inputs), labels, recipe, inputs)


@pytest.fixture(scope="module")
def folder(tmp_path_factory, model):
    return model.save(tmp_path_factory.mktemp("workers") / "model")


def children(process):
    return [int(word) for word in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


def alive(process):
    try:
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def kilobytes(process, name):
    text = Path(f"/proc/{process}/smaps_rollup").read_text()
    return int(re.search(rf"^{name}:\s+(\d+) kB", text, re.MULTILINE).group(1))


def counter(url, name):
    text = httpx.get(f"{url}/metrics", timeout=60).text
    found = re.search(rf"^{re.escape(name)} (\S+)", text, re.MULTILINE)
    return float(found.group(1)) if found else 0.0


def ask(url, row):
    # A connection of its own, which any worker may accept.
    return httpx.post(f"{url}/predict", json={"rows": [row], "top": 3}, timeout=60)


def first(answer):
    return list(answer.json()["instances"][0]["labels"])


def wait_until(true, seconds=60):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_a_dead_worker_is_replaced_and_its_counts_stay(model, folder):
    rows = np.random.default_rng(0).normal(size=(24, 3)).tolist()
    top = model.predict(read_rows(rows, model.inputs)).top_places(3).tolist()
    expected = [[model.labels[place] for place in places] for places in top]
    with running("-m", "gaussianmlr", "serve", folder, "--port", 0, "--workers", WORKERS) as server:
        parent = server.process.pid
        began = children(parent)
        assert len(began) == WORKERS
        warm = counter(server.url, "gmlr_instances_total")  # each worker has read one to warm up
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(lambda row: ask(server.url, row), rows))
        assert [first(one) for one in answers] == expected
        assert httpx.post(f"{server.url}/predict", json={"rows": [[1.0]]}, timeout=60).status_code == 400
        assert counter(server.url, 'gmlr_requests_total{status="200"}') == len(rows)
        assert counter(server.url, 'gmlr_requests_total{status="400"}') == 1
        assert counter(server.url, "gmlr_instances_total") == warm + len(rows)
        assert (
            counter(server.url, "gmlr_workers") == counter(server.url, "gmlr_worker_starts_total") == WORKERS
        )

        os.kill(began[0], signal.SIGKILL)
        answers = [ask(server.url, row) for row in rows]
        assert [first(one) for one in answers] == expected
        wait_until(lambda: counter(server.url, "gmlr_worker_starts_total") == WORKERS + 1)
        now = children(parent)
        assert len(now) == WORKERS
        assert len({*now} - {*began}) == 1
        assert counter(server.url, 'gmlr_requests_total{status="200"}') == 2 * len(rows)
        assert counter(server.url, "gmlr_requests_under_way") == 0

        code, errors = server.stop()
        assert (code, f"worker 0 (process {began[0]}) ended by SIGKILL" in errors) == (0, True)
        assert not any(map(alive, now))


def test_weights_are_in_memory_once_and_workers_end_with_their_parent(model, folder):
    weights = sum(tensor.nbytes for tensor in model.network.state_dict().values()) / 1024
    with running("-m", "gaussianmlr", "serve", folder, "--port", 0, "--workers", WORKERS) as server:
        for number in range(4 * WORKERS):
            assert ask(server.url, [float(number)] * 3).status_code == 200
        workers = children(server.process.pid)
        assert all(kilobytes(one, "Rss") > weights for one in workers)
        assert (
            sum(kilobytes(one, "Pss") for one in workers) < sum(kilobytes(one, "Rss") for one in workers) / 2
        )
        assert max(kilobytes(one, "Private_Dirty") for one in workers) < weights

        os.kill(server.process.pid, signal.SIGKILL)
        wait_until(lambda: not any(map(alive, workers)))


def test_limits_and_tokens_hold_for_all_workers_together(folder):
    with running(
        "-m", "gaussianmlr", "serve", folder, "--port", 0, "--workers", 2, "--requests", 2, "--token", TOKEN
    ) as server:
        headers = {"authorization": f"Bearer {TOKEN}"}
        assert {httpx.get(f"{server.url}/info", timeout=60).status_code for _ in range(6)} == {401}
        assert {
            httpx.get(f"{server.url}/info", headers=headers, timeout=60).status_code for _ in range(6)
        } == {200}
        body = {
            "rows": [[1.0, 2.0, 3.0]] * 2,
            "readings": ["p_first"],
            "top": 5,
        }  # more than a second of work

        def send(_):
            return httpx.post(f"{server.url}/predict", json=body, headers=headers, timeout=120).status_code

        with concurrent.futures.ThreadPoolExecutor(12) as pool:
            found = list(pool.map(send, range(12)))
        assert {*found} == {200, 503}
        assert found.count(200) <= 4  # both workers may look at the same moment

        port = server.url.rpartition(":")[2]
        taken = gmlr("serve", folder, "--port", port, "--workers", 2)
        assert (taken.returncode, f"port {port}" in taken.stderr) == (2, True)
        assert "Traceback" not in taken.stderr

        workers = children(server.process.pid)
        code, errors = server.stop(signal.SIGINT)
        assert (code, errors) == (0, "")
        assert not any(map(alive, workers))

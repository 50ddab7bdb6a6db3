"""Training on streamed rows: it resumes bit for bit, two processes agree with one, and memory is bounded."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from gaussianmlr import DataError
from gaussianmlr.cli.main import app
from gaussianmlr.data.streaming import store
from support import streamed_run
from support.commanding import gmlr, make_table

pytest.importorskip("pyarrow")
pytestmark = pytest.mark.slow
SCRIPT = Path(streamed_run.__file__)


def start(*arguments):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONUNBUFFERED": "1"}
    return subprocess.Popen(
        [sys.executable, str(SCRIPT), *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment | {"OMP_NUM_THREADS": "1"},
    )


def finish(process):
    output, _ = process.communicate(timeout=240)
    assert process.returncode == 0, output
    return output


def parts_of(frame, folder, count=3):
    folder.mkdir()
    for number, part in enumerate(np.array_split(np.arange(len(frame)), count)):
        frame.iloc[part].to_parquet(folder / f"part-{number}.parquet", index=False)
    return folder


def test_a_killed_run_resumes_bit_for_bit(tmp_path):
    """Two epochs of 22 steps over 1,372 rows; killed in the middle of the second."""
    data = parts_of(make_table(1_715).drop(columns="split"), tmp_path / "parts")
    whole = finish(start(data, tmp_path / "whole", tmp_path / "whole.pt"))
    assert whole.count("step") == 2 * 22
    process = start(data, tmp_path / "cut", tmp_path / "cut.pt")
    seen = 0
    for line in process.stdout:
        seen += line.strip() == "step"
        if seen == 32:
            break
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert not (tmp_path / "cut.pt").exists()
    again = finish(start(data, tmp_path / "cut", tmp_path / "cut.pt"))
    assert again.count("step") <= 2 * 22 - 31  # it resumed within the epoch
    one, other = (torch.load(tmp_path / f"{name}.pt", weights_only=True) for name in ("whole", "cut"))
    assert [row["loss"] for row in one["history"]] == [row["loss"] for row in other["history"]]
    assert one["state"].keys() == other["state"].keys()
    assert all(torch.equal(one["state"][name], other["state"][name]) for name in one["state"])


def test_two_processes_train_as_one_does(tmp_path):
    """Over gloo on loopback; as in memory, only the order of sums differs: metrics agree to 1e-4."""
    data = parts_of(make_table(500).drop(columns="split"), tmp_path / "parts")
    found = {}
    for devices in (1, 2):
        out = tmp_path / f"run{devices}"
        done = gmlr(
            *("train", data, "--out", out, "--stream", "--epochs", 3, "--set", "batch_size=24", "--no-peers"),
            *("--accelerator", "cpu", "--devices", devices, "--json"),
        )
        assert done.returncode == 0, done.stderr
        found[devices] = json.loads(done.stdout)
        found[devices]["epochs"] = pd.read_csv(out / "epochs.csv")
        assert not (out / ".rows").exists()
    one, two = found[1], found[2]
    assert one["instances_seen"] == two["instances_seen"] == 3 * 400
    assert two["metrics"] == pytest.approx(one["metrics"], abs=1e-4)
    for measure in ("train_loss", "loss", "tau_b", "hamming_loss"):
        assert two["epochs"][measure].tolist() == pytest.approx(one["epochs"][measure].tolist(), abs=1e-4)


def test_memory_does_not_grow_with_the_rows(tmp_path):
    """Four times the files of 50,000 rows, 114 MB more in double precision: at most 30 MB more memory."""
    values, peaks = np.random.default_rng(0).normal(size=(50_000, 50)), []
    frame = pd.DataFrame(values, columns=[f"x{place}" for place in range(50)])
    order = values[:, :3].argsort(1).argsort(1)
    for place, name in enumerate("abc"):
        frame[f"label:{name}"] = order[:, place].astype(np.int8)
    one = parts_of(frame, tmp_path / "one", 1) / "part-0.parquet"
    for files in (2, 8):
        data = tmp_path / f"files{files}"
        data.mkdir()
        for number in range(files):
            shutil.copy(one, data / f"part-{number}.parquet")
        out = tmp_path / f"run{files}"
        output = finish(start(data, out, tmp_path / "w.pt", "--batch-size", 4096, "--epochs", 1))
        peaks.append(int(output.split("peak ")[1]))
    assert peaks[1] - peaks[0] < 30, peaks


def test_streamed_rows_are_learned_as_well_as_rows_in_memory(tmp_path, monkeypatch):
    from typer.testing import CliRunner

    monkeypatch.setattr(store, "SHARD", 1)  # shards of 64 rows
    frame = make_table(1_500).drop(columns="split").sort_values("a")  # sorted, as files often are
    frame.to_csv(tmp_path / "table.csv", index=False)
    found = []
    for way in ("--stream", "--no-stream"):
        result = CliRunner().invoke(
            app,
            [
                *("train", str(tmp_path / "table.csv"), "--out", str(tmp_path / way), way, "--epochs", "8"),
                *("--model", "network", "--no-peers", "--json", "--quiet"),
            ],
        )
        assert result.exit_code == 0, result.output
        found.append(json.loads(result.stdout)["metrics"])
    assert found[0] == pytest.approx(found[1], abs=0.02)
    assert found[0]["tau_b"] > 0.8


def test_trees_say_that_they_need_rows_in_memory(tmp_path):
    from typer.testing import CliRunner

    make_table(60).to_csv(tmp_path / "table.csv", index=False)
    arguments = ["train", str(tmp_path / "table.csv"), "--out", str(tmp_path / "run"), "--stream"]
    result = CliRunner().invoke(app, [*arguments, "--model", "trees"])
    assert isinstance(result.exception, DataError)
    assert "trees need all of them in memory" in str(result.exception)
    result = CliRunner().invoke(app, [*arguments, "--model", "auto", "--epochs", "1", "--no-peers"])
    assert result.exit_code == 0, result.output

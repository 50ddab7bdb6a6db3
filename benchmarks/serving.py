"""`gmlr serve` under wrk, beside calling the model directly: `python benchmarks/serving.py`.

A small table model and a `fast` backbone for pictures of 64 x 64, 32 instances per request. The peer is the
same work without a server, in as many processes: lists or files to tensors, ``model.predict``, ``to_dict``.
Both are measured in turns, in processor seconds; those of the server are what all of its processes spend.
Then clients that do not wait overload a server, and the proportional set size of its processes says how much
memory the workers share. Load goes to 127.0.0.1 only, for a few seconds each.

Bars: instances per core-second are at least 0.7 (`mlp`) and 0.9 (`fast`) of the direct call's; answers are
those of the direct call; an overloaded server answers 200 or 503 and nothing else; a further worker takes
less than half the memory of the weights.
"""

from __future__ import annotations

import argparse
import base64
import io
import json
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import numpy as np
import torch
from PIL import Image

from gaussianmlr.apps.serve.service import read_picture
from gaussianmlr.data import Preprocess
from gaussianmlr.data.inputs import Inputs, read_rows
from gaussianmlr.model.model import Model, build
from gaussianmlr.model.prediction import Prediction
from gaussianmlr.model.recipe import Recipe

BATCH, ROUNDS, MANY = 32, 5, 100_000
SCRIPT = """
local counts = {}
function setup(thread) table.insert(counts, thread) end
function init(args) ok, busy, other = 0, 0, 0 end
wrk.method, wrk.path, wrk.headers["Content-Type"] = "POST", "/predict", "application/json"
local file = io.open("BODY", "rb"); wrk.body = file:read("*a"); file:close()
function response(status)
  if status == 200 then ok = ok + 1 elseif status == 503 then busy = busy + 1 else other = other + 1 end
end
function done(summary, latency)
  local ok, busy, other = 0, 0, 0
  for _, one in ipairs(counts) do
    ok, busy, other = ok + one:get("ok"), busy + one:get("busy"), other + one:get("other")
  end
  local errors = summary.errors.connect + summary.errors.read + summary.errors.write + summary.errors.timeout
  local half, most = latency:percentile(50), latency:percentile(99)
  io.write(string.format("FOUND %d %d %d %d %d %d\\n", ok, busy, other, errors, half, most))
end
"""


class Case(NamedTuple):
    """A model, the JSON of a request, the same request without a server, and the bar."""

    model: Model
    body: dict[str, Any]
    direct: Callable[[], Prediction]
    least: float


class Load(NamedTuple):
    """What wrk counted; times in microseconds."""

    ok: int
    busy: int
    other: int
    errors: int
    p50: int
    p99: int


def table_case() -> Case:
    model = made("mlp", {"kind": "table", "channels": 64})
    rows = np.random.default_rng(0).normal(size=(BATCH, 64)).tolist()
    return Case(model, {"rows": rows}, lambda: model.predict(read_rows(rows, model.inputs)), 0.7)


def image_case() -> Case:
    preprocess = Preprocess(size=(64, 64), crop=None, mean=(0.0,), std=(1.0,), channels=1)
    inputs: Inputs = {"kind": "image", "channels": 1, "size": [64, 64], "preprocess": preprocess.to_dict()}
    model, files = made("fast", inputs), []
    for pixels in np.random.default_rng(0).integers(0, 255, (BATCH, 64, 64), dtype=np.uint8):
        Image.fromarray(pixels).save(stream := io.BytesIO(), "PNG")
        files.append(stream.getvalue())

    def direct() -> Prediction:
        return model.predict(torch.stack([read_picture(file, model, "x", 10_000) for file in files]))

    return Case(model, {"images": [base64.b64encode(file).decode() for file in files]}, direct, 0.9)


def made(backbone: str, inputs: Inputs, labels: int = 10) -> Model:
    torch.manual_seed(0)
    recipe, names = Recipe(backbone=backbone), tuple(f"label {number}" for number in range(labels))
    return Model(*build(recipe, labels, inputs), names, recipe, inputs)


@contextmanager
def server(folder: Path, *options: object) -> Iterator[tuple[str, int]]:
    """Address and process of a server."""
    command = [sys.executable, "-m", "gaussianmlr", "serve", str(folder), "--port", "0", *map(str, options)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        found = re.search(r"http://\S+:\d+", process.stdout.readline())
        assert found is not None
        yield found.group(), process.pid
    finally:
        process.terminate()
        process.wait(60)


def wrk(url: str, folder: Path, clients: int, seconds: float) -> Load:
    """Load a server with the request of a folder; every client sends again as soon as it has an answer."""
    script = folder / "wrk.lua"
    script.write_text(SCRIPT.replace("BODY", str(folder / "body.json")))
    command = ["wrk", "-t1", f"-c{clients}", f"-d{seconds:g}s", "--timeout", "30s", "-s", str(script), url]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    found = re.search(r"FOUND (.*)", text)
    assert found is not None, text
    return Load(*map(int, found.group(1).split()))


def counters(url: str) -> tuple[float, float]:
    """Instances and processor seconds of a server, over all of its processes."""
    text = httpx.get(f"{url}/metrics", timeout=60).text
    instances, seconds = (
        float(re.search(rf"^{name} (\S+)", text, re.MULTILINE).group(1))  # type: ignore[union-attr]
        for name in ("gmlr_instances_total", "process_cpu_seconds_total")
    )
    return instances, seconds


def rate_of_direct(case: Case, processes: int, seconds: float) -> float:
    """Instances per core-second without a server, in as many processes as it has: cores share caches."""

    def work() -> None:
        began, spent, count = time.perf_counter(), time.process_time(), 0
        while time.perf_counter() - began < seconds:
            case.direct().to_dict()
            count += BATCH
        found.put((count, time.process_time() - spent))

    forking = get_context("fork")
    found = forking.SimpleQueue()
    running = [forking.Process(target=work) for _ in range(processes)]
    for one in running:
        one.start()
    counts, spent = zip(*(found.get() for _ in running))
    for one in running:
        one.join()
    return float(sum(counts) / sum(spent))


def measure(name: str, case: Case, folder: Path, workers: int, seconds: float) -> bool:
    folder.mkdir()
    case.model.save(folder / "model")
    (folder / "body.json").write_text(json.dumps(case.body))
    case.direct().to_dict()
    rates, ratios, loads = [], [], []
    with server(folder / "model", "--workers", workers) as (url, _):
        answer = httpx.post(f"{url}/predict", json=case.body, timeout=60).json()
        same = [one["order"] for one in answer["instances"]] == case.direct().orders
        wrk(url, folder, 4 * workers, 1)  # what is loaded on first use is loaded
        for _ in range(ROUNDS):
            before = counters(url)
            loads.append(wrk(url, folder, 4 * workers, seconds))
            after = counters(url)
            rates.append((after[0] - before[0]) / (after[1] - before[1]))
            ratios.append(rates[-1] / rate_of_direct(case, workers, seconds))
    ratio, rate = statistics.median(ratios), statistics.median(rates)
    lost = sum(load.busy + load.other + load.errors for load in loads)
    fine = ratio >= case.least and same and not lost
    print(
        f"{name}: {rate:,.0f} instances per core-second, {ratio:.2f} of the direct call's "
        f"(least {case.least:g}; rounds {' '.join(f'{one:.2f}' for one in ratios)}); {workers} workers, "
        f"{4 * workers} clients, p99 {statistics.median(load.p99 for load in loads) / 1000:.0f} ms, "
        f"{sum(load.ok for load in loads):,} answers, {lost} lost"
        f"{'' if same else ', ANOTHER ANSWER'}{'' if fine else '  MISSED'}",
        flush=True,
    )
    with server(folder / "model", "--workers", workers, "--requests", 8) as (url, _):
        quiet = wrk(url, folder, 4, seconds)
        load = wrk(url, folder, 64, 2 * seconds)
    sound = load.ok > 0 and load.other + load.errors + quiet.other + quiet.errors == 0
    share = load.busy / max(1, load.ok + load.busy)
    print(
        f"{name}, overload, 64 clients where 8 requests may be under way: p99 {load.p99 / 1000:.0f} ms, "
        f"{share:.0%} of {load.ok + load.busy:,} answers are 503, {load.ok / (2 * seconds):,.0f} requests/s "
        f"answered; "
        f"4 clients: p99 {quiet.p99 / 1000:.0f} ms, {quiet.ok / seconds:,.0f} requests/s; "
        f"{load.other + load.errors} lost{'' if sound else '  MISSED'}",
        flush=True,
    )
    return fine and sound


def memory(folder: Path) -> bool:
    """Proportional set size of servers with one and with four workers, of a model with large weights."""
    model = made("mlp", {"kind": "table", "channels": 64}, labels=MANY)
    weights = sum(tensor.nbytes for tensor in model.network.state_dict().values()) / 2**20
    model.save(folder)
    body = {"rows": [[0.0] * 64], "top": 5}
    found = {}
    for workers in (1, 4):
        with server(folder, "--workers", workers) as (url, process):
            for _ in range(4 * workers):
                httpx.post(f"{url}/predict", json=body, timeout=60).raise_for_status()
            found[workers] = sum(map(proportional, [process, *children(process)]))
    each = (found[4] - found[1]) / 3
    fine = bool(each < weights / 2)
    print(
        f"memory: a model of {weights:,.0f} MB takes {found[1]:,.0f} MB with one worker, {found[4]:,.0f} MB "
        f"with four (proportional set size): {each:,.0f} MB per further worker{'' if fine else '  MISSED'}"
    )
    return fine


def children(process: int) -> list[int]:
    text = Path(f"/proc/{process}/task/{process}/children").read_text()
    return [int(word) for word in text.split()]


def proportional(process: int) -> float:
    """Megabytes of memory; what several processes share counts in parts."""
    found = re.search(r"^Pss:\s+(\d+) kB", Path(f"/proc/{process}/smaps_rollup").read_text(), re.MULTILINE)
    assert found is not None
    return int(found.group(1)) / 1024


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=3.0, help="length of each load")
    given = parser.parse_args()
    if shutil.which("wrk") is None:
        print("wrk is not installed: https://github.com/wg/wrk, package wrk of Debian", file=sys.stderr)
        return 2
    torch.set_num_threads(1)
    os.environ["OMP_NUM_THREADS"] = "1"
    print(
        f"Python {platform.python_version()}, torch {torch.__version__}, {os.cpu_count()} cores, "
        f"load {os.getloadavg()[0]:.1f}, {BATCH} instances per request"
    )
    with tempfile.TemporaryDirectory() as made_here:
        folder = Path(made_here)
        found = [
            measure("mlp, 64 columns", table_case(), folder / "table", given.workers, given.seconds),
            measure("fast, PNG of 64 x 64", image_case(), folder / "images", given.workers, given.seconds),
            memory(folder / "large"),
        ]
    return 0 if all(found) else 1


if __name__ == "__main__":
    sys.exit(main())

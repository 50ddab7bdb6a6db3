"""`gmlr serve` beside calling the model directly, over loopback, with limits of count and time.

A small table model and a fast backbone for images of 64 x 64. The peer is ``model.predict`` on one instance
at a time, by the same process that then starts the server and asks it for one instance a request, from 1, 8
and 64 clients at once; then from ten times as many clients as it lets in,
where each is sent away or answered.
Processor time is the server's own, so that what else the machine does, the client included, is not in it.

Bars: no request is lost, no answer is another's.
"""

from __future__ import annotations

import asyncio
import io
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import torch
from PIL import Image

from gaussianmlr.apps.serve.service import read_picture
from gaussianmlr.data import Preprocess
from gaussianmlr.data.inputs import Inputs, read_rows
from gaussianmlr.model.model import Model, build
from gaussianmlr.model.recipe import Recipe

REQUESTS, DIFFERENT, LABELS = 200, 32, tuple("abcdefghij")
Ask = tuple[str, dict[str, Any]]


def table_model() -> tuple[Model, list[Ask], Callable[[int], torch.Tensor]]:
    inputs: Inputs = {"kind": "table", "channels": 64}
    rows = np.random.default_rng(0).normal(size=(DIFFERENT, 64)).tolist()
    model = made("mlp", inputs)
    asks: list[Ask] = [("/predict", {"json": {"rows": [row]}}) for row in rows]
    return model, asks, lambda place: read_rows([rows[place]], model.inputs)


def image_model() -> tuple[Model, list[Ask], Callable[[int], torch.Tensor]]:
    preprocess = Preprocess(size=(64, 64), crop=None, mean=(0.0,), std=(1.0,), channels=1)
    inputs: Inputs = {"kind": "image", "channels": 1, "size": [64, 64], "preprocess": preprocess.to_dict()}
    model = made("fast", inputs)
    files = []
    for pixels in np.random.default_rng(0).integers(0, 255, (DIFFERENT, 64, 64), dtype=np.uint8):
        Image.fromarray(pixels).save(stream := io.BytesIO(), "PNG")
        files.append(stream.getvalue())
    asks: list[Ask] = [("/predict/files", {"files": {"images": file}}) for file in files]
    return model, asks, lambda place: read_picture(files[place], model, "x", 10_000)[None]


def made(backbone: str, inputs: Inputs) -> Model:
    torch.manual_seed(0)
    recipe = Recipe(backbone=backbone)
    return Model(*build(recipe, len(LABELS), inputs), LABELS, recipe, inputs)


async def load(url: str, asks: list[Ask], clients: int, orders: list[str]) -> tuple[float, float, int, int]:
    """Requests/s, p99 in ms, how many were sent away, how many answers were wrong or missing."""
    times: list[float] = []
    sent_away = wrong = 0
    waiting = iter(range(REQUESTS))
    whole = [message(url, ask) for ask in asks]

    async def client() -> None:
        nonlocal sent_away, wrong
        reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
        for number in waiting:
            start = time.perf_counter()
            while True:
                writer.write(whole[number % DIFFERENT])
                status, body = await answer(reader)
                if status != 503:
                    break
                sent_away += 1
                await asyncio.sleep(0.05)
            times.append(time.perf_counter() - start)
            wrong += status != 200 or first_order(body) != orders[number % DIFFERENT]
        writer.close()

    start = time.perf_counter()
    await asyncio.gather(*(client() for _ in range(clients)))
    rate = REQUESTS / (time.perf_counter() - start)
    return rate, 1000 * float(np.quantile(times, 0.99)), sent_away, wrong + REQUESTS - len(times)


def message(url: str, ask: Ask) -> bytes:
    """A request as it goes over the wire: what a client library would spend is not measured."""
    path, body = ask
    request = httpx.Request("POST", url + path, **body)
    head = [f"{name}: {value}" for name, value in request.headers.items()]
    return "\r\n".join([f"POST {path} HTTP/1.1", *head, "", ""]).encode() + request.read()


async def answer(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
    length = re.search(r"content-length: (\d+)", head)
    assert length is not None
    return int(head.split()[1]), await reader.readexactly(int(length.group(1)))


def first_order(body: bytes) -> str:
    order: str = json.loads(body)["instances"][0]["order"]
    return order


def processor_seconds(url: str) -> float:
    found = re.search(r"^process_cpu_seconds_total (\S+)", httpx.get(f"{url}/metrics").text, re.MULTILINE)
    assert found is not None
    return float(found.group(1))


def server(folder: Path, *options: str) -> tuple[subprocess.Popen[str], str]:
    command = [sys.executable, "-m", "gaussianmlr", "serve", str(folder), "--port", "0", *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    found = re.search(r"http://\S+:\d+", process.stdout.readline())
    assert found is not None
    return process, found.group()


def measure(name: str, made: tuple[Model, list[Ask], Callable[[int], torch.Tensor]], folder: Path) -> bool:
    model, asks, inputs = made
    orders = [model.predict(inputs(place)).orders[0] for place in range(DIFFERENT)]
    times = []
    spent = time.process_time()
    for number in range(REQUESTS):
        start = time.perf_counter()
        model.predict(inputs(number % DIFFERENT)).to_dict()
        times.append(time.perf_counter() - start)
    alone = 1000 * (time.process_time() - spent) / REQUESTS
    direct, slowest = 1 / float(np.mean(times)), 1000 * float(np.quantile(times, 0.99))
    what = f"{name}, called directly"
    print(f"{what:<36}{direct:6.0f} instances/s        p99 {slowest:7.1f} ms, {alone:5.2f} ms of a processor")
    fine = True
    model.save(folder / name)
    for clients, places in ((1, 64), (8, 64), (64, 64), (80, 8)):
        process, url = server(folder / name, "--requests", str(places))
        try:
            asyncio.run(load(url, asks, 4, orders))  # what is loaded on first use is loaded
            spent = processor_seconds(url)
            rate, p99, away, wrong = asyncio.run(load(url, asks, clients, orders))
            spent = 1000 * (processor_seconds(url) - spent) / REQUESTS
        finally:
            process.terminate()
            process.wait(60)
        what = f"{name}, {clients} clients, {places} let in"
        print(
            f"{what:<36}{rate:6.0f} requests/s, {rate / direct:4.2f} x, p99 {p99:7.1f} ms, "
            f"{spent:5.2f} ms of a processor ({spent / alone:.1f} x), "
            f"{away} sent away, {wrong} lost or wrong",
            flush=True,
        )
        fine &= wrong == 0
    return fine


def main() -> int:
    torch.set_num_threads(1)
    os.environ["OMP_NUM_THREADS"] = "1"
    print(
        f"Python {platform.python_version()}, torch {torch.__version__}, {os.cpu_count()} cores, one thread; "
        "the client is a Python process on the same machine"
    )
    with tempfile.TemporaryDirectory() as folder:
        found = [
            measure("table", table_model(), Path(folder)),
            measure("images", image_model(), Path(folder)),
        ]
    return 0 if all(found) else 1


if __name__ == "__main__":
    sys.exit(main())

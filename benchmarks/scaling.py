"""How cost grows with instances N, labels K, relevant labels P and processes, as ratios within one run.

The losses alone (forward and backward, one thread), each row against the first of its block: seconds of the
process's own CPU time, the best of several rounds. With `--devices 2`, an epoch of `fast` on 1,024 images
in one process and in two over gloo: CPU seconds of the busiest process, and what it sends a step. With
`--model`, whole epochs of `gmlr` on tables of several sizes, the constants of

    seconds of an epoch = N (a + b W + c P K) + S (d + e W)

for N instances, W weights and S steps, by least squares of relative errors, and what they say of sizes that
they were not fitted to. Nothing here is a bar; docs/scaling.md explains the numbers.
"""

import argparse
import json
import platform
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from gaussianmlr import losses

Row = dict[str, Any]


def ranks_of(instances: int, labels: int, relevant: int) -> Tensor:
    """Orders with so many relevant labels each, all ranks different."""
    ranks = torch.zeros(instances, labels, dtype=torch.int64)
    where = torch.rand(instances, labels).argsort(-1)[:, :relevant]
    return ranks.scatter_(1, where, torch.arange(1, relevant + 1).expand(instances, -1))


def gmlr(instances: int, labels: int, relevant: int) -> Callable[[], None]:
    ranks = ranks_of(instances, labels, relevant)
    mu, logvar = (torch.randn(instances, labels, requires_grad=True) for _ in range(2))
    return lambda: losses.gmlr(mu, logvar, ranks).backward()  # type: ignore[no-untyped-call]


def lsep(instances: int, labels: int, relevant: int) -> Callable[[], None]:
    ranks, scores = ranks_of(instances, labels, relevant), torch.randn(instances, labels, requires_grad=True)
    return lambda: losses.lsep(scores, ranks).backward()  # type: ignore[no-untyped-call]


def crpc(instances: int, labels: int, relevant: int) -> Callable[[], None]:
    pairs = torch.randn(instances, labels * (labels + 1) // 2, requires_grad=True)
    ranks = ranks_of(instances, labels, relevant)
    return lambda: losses.crpc(pairs, ranks).backward()  # type: ignore[no-untyped-call]


# What changes, and (instances, labels, relevant) of each row; the first of a block is the unit.
BLOCKS: list[tuple[str, Callable[[int, int, int], Callable[[], None]], list[tuple[int, int, int]]]] = [
    ("N", gmlr, [(256, 100, 5), (1024, 100, 5), (4096, 100, 5)]),
    ("K", gmlr, [(64, 100, 5), (64, 1000, 5), (64, 10000, 5)]),
    ("P", gmlr, [(64, 1000, 5), (64, 1000, 20), (64, 1000, 80)]),
    ("K", lsep, [(64, 100, 5), (64, 1000, 5), (64, 10000, 5)]),
    ("K", crpc, [(64, 30, 5), (64, 100, 5), (64, 300, 5)]),
]


def seconds(step: Callable[[], None], rounds: int) -> float:
    step()  # memory is laid out on first use
    best = float("inf")
    for _ in range(rounds):
        start = time.process_time()
        step()
        best = min(best, time.process_time() - start)
    return best


def losses_table(rounds: int) -> list[Row]:
    rows = []
    for what, loss, sizes in BLOCKS:
        unit = None
        for size in sizes:
            taken = seconds(loss(*size), rounds)
            unit = unit or taken
            rows.append(
                dict(zip(("N", "K", "P"), size))
                | {"loss": loss.__name__, "grows": what, "ratio": taken / unit}
            )
    return rows


def epoch(rank: int, world: int, port: int, answers: Any) -> None:
    """An epoch in one of some processes, the same whole batches however many there are."""
    import os

    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(world)}
    from lightning.fabric import Fabric

    from gaussianmlr.data.loading import Arrays
    from gaussianmlr.model.model import build
    from gaussianmlr.model.recipe import Recipe
    from gaussianmlr.training.engine import train

    torch.set_num_threads(1)
    torch.manual_seed(0)
    images = torch.randint(0, 256, (1024, 1, 96, 96), dtype=torch.uint8)
    data = Arrays(images, ranks_of(1024, 10, 4))
    recipe = Recipe(backbone="fast", epochs=1, batch_size=64)
    fabric = Fabric(accelerator="cpu", devices=world, strategy="ddp" if world > 1 else "auto")
    fabric.launch()
    network, method = build(recipe, 10, {"kind": "image", "channels": 1})
    start = time.process_time()
    train(network, method, recipe, data, None, fabric=fabric)
    answers.put((time.process_time() - start, 4 * sum(p.numel() for p in network.parameters())))
    fabric.barrier()


def devices_table(world: int) -> list[Row]:
    import socket

    from torch import multiprocessing

    rows: list[Row] = []
    context = multiprocessing.get_context("spawn")
    for count in (1, world):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        answers = context.Queue()
        started = [context.Process(target=epoch, args=(rank, count, port, answers)) for rank in range(count)]
        for process in started:
            process.start()
        found = [answers.get(timeout=900) for _ in started]
        for process in started:
            process.join()
        taken = max(one for one, _ in found)
        unit = rows[0]["cpu_seconds"] if rows else taken
        rows.append({"devices": count, "cpu_seconds": taken, "ratio": taken / unit, "bytes": found[0][1]})
    return rows


class Size(NamedTuple):
    """An epoch on a table: instances of a step, steps, columns, labels, relevant ones, units of a layer."""

    batch: int
    steps: int
    columns: int
    labels: int
    relevant: int
    width: int


FITTED = [
    Size(64, 100, 50, 5, 2, 256),
    Size(1024, 20, 50, 5, 2, 256),
    Size(4096, 8, 50, 5, 2, 256),
    Size(256, 20, 50, 100, 5, 256),
    Size(256, 5, 50, 1_000, 10, 256),
    Size(64, 10, 50, 10_000, 10, 256),
    Size(256, 10, 500, 10, 3, 1024),
    Size(64, 40, 500, 10, 3, 1024),
    Size(64, 100, 10, 5, 2, 64),
]
ASKED = [
    Size(512, 10, 200, 30, 5, 512),
    Size(128, 6, 20, 3_000, 10, 256),
    Size(256, 10, 100, 300, 20, 128),
    Size(32, 100, 20, 10, 3, 256),
]


def table_epoch(size: Size, rounds: int) -> tuple[float, list[float]]:
    """CPU seconds of an epoch, the best of several, and what the constants of the model are factors of."""
    from gaussianmlr.data.inputs import Inputs
    from gaussianmlr.data.loading import Arrays
    from gaussianmlr.model.model import build
    from gaussianmlr.model.recipe import Recipe
    from gaussianmlr.training.engine import train

    count = size.batch * size.steps
    data = Arrays(torch.randn(count, size.columns), ranks_of(count, size.labels, size.relevant))
    recipe = Recipe(
        backbone="mlp",
        backbone_settings={"width": size.width},
        head_settings={"hidden": size.width},
        epochs=1,
        batch_size=size.batch,
    )
    inputs: Inputs = {"kind": "table", "channels": size.columns}
    best = float("inf")
    for _ in range(rounds):
        network, method = build(recipe, size.labels, inputs)
        start = time.process_time()
        train(network, method, recipe, data, None)
        best = min(best, time.process_time() - start)
    weights = sum(parameter.numel() for parameter in network.parameters())
    pairs = size.relevant * size.labels
    return best, [count, count * weights, count * pairs, size.steps, size.steps * weights]


def model_table(rounds: int) -> tuple[list[float], list[Row]]:
    """The constants, in seconds, and measured beside computed seconds of each size."""
    import numpy as np
    from scipy.optimize import nnls

    table_epoch(FITTED[0], 1)  # what is loaded on first use is loaded
    measured = {size: table_epoch(size, rounds) for size in FITTED + ASKED}
    taken, factors = (np.array(part) for part in zip(*(measured[size] for size in FITTED)))
    found, _ = nnls(factors / taken[:, None], np.ones(len(taken)))
    rows = [
        {**size._asdict(), "fitted": size in FITTED, "seconds": spent, "model": float(found @ part)}
        for size, (spent, part) in measured.items()
    ]
    return found.tolist(), rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--devices", type=int, default=1, help="processes to compare with one")
    parser.add_argument("--model", action="store_true", help="the constants of the cost model alone")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    if options.model:
        constants, sizes = model_table(options.rounds)
        if options.json:
            print(json.dumps({"constants": constants, "sizes": sizes}))
            return 0
        print(", ".join(f"{name} = {value:.3g} s" for name, value in zip("abcde", constants)))
        for row in sizes:
            told = "{batch:5d} x {steps:3d} rows, {columns:3d} columns, {labels:6d} labels, "
            told += "{relevant:2d} relevant, width {width:4d}: {seconds:7.3f} s, model {model:7.3f} s"
            print(
                told.format(**row),
                f"({row['model'] / row['seconds']:.2f}{'' if row['fitted'] else ', not fitted'})",
            )
        return 0
    rows = losses_table(options.rounds)
    spread = devices_table(options.devices) if options.devices > 1 else []
    about = {"torch": torch.__version__, "machine": platform.machine()}
    if options.json:
        print(json.dumps({**about, "losses": rows, "devices": spread}))
        return 0
    print(f"torch {about['torch']}, {about['machine']}, one thread a process")
    for row in rows:
        print("{loss:>5} by {grows}: N {N:5d}  K {K:6d}  P {P:3d}  {ratio:7.2f}x".format(**row))
    for row in spread:
        print(
            f"{row['devices']} process(es): {row['ratio']:.2f}x the CPU seconds a process, "
            f"gradients of {row['bytes'] / 1e6:.1f} MB a step"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())

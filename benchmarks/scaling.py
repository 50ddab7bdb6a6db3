"""How cost grows with instances N, labels K, relevant labels P and processes, as ratios within one run.

The losses alone (forward and backward, one thread), each row against the first of its block: seconds of the
process's own CPU time, the best of several rounds. With `--devices 2`, an epoch of `fast` on 1,024 images
in one process and in two over gloo: CPU seconds of the busiest process, and what it sends a step. Nothing
here is a bar; docs/scaling.md explains the numbers.
"""

import argparse
import json
import platform
import sys
import time
from collections.abc import Callable
from typing import Any

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


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--devices", type=int, default=1, help="processes to compare with one")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
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

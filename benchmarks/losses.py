"""GaussianMLR's loss against a plain one that compares all K^2 pairs, in one run.

Bars: at batch 64, K = 1000 and 10 positives, forward + backward is at least 20x faster and at
least 20x smaller in peak memory; K = 10,000 works in 1 GB. Exits with 1 where a bar is missed.
"""

import argparse
import json
import platform
import resource
import subprocess
import sys
import time

import torch
from torch import Tensor

from gaussianmlr import losses

BATCH, POSITIVES = 64, 10


def all_pairs(mu: Tensor, logvar: Tensor, ranks: Tensor) -> Tensor:
    """The same loss from the full [N, K, K] comparison, as one would write it first."""
    variance = logvar.exp()
    z = mu / variance.sqrt()
    relevance = torch.special.log_ndtr(torch.where(ranks > 0, z, -z)).mean(-1)
    difference = mu.unsqueeze(-1) - mu.unsqueeze(-2)
    spread = (variance.unsqueeze(-1) + variance.unsqueeze(-2)).sqrt()
    is_pair = ranks.unsqueeze(-1) > ranks.unsqueeze(-2)
    logs = torch.special.log_ndtr(difference / spread)
    order = torch.where(is_pair, logs, 0.0).sum((-1, -2)) / is_pair.sum((-1, -2)).clamp(min=1)
    loss: Tensor = -(relevance + order).mean()
    return loss


VARIANTS = {"gaussianmlr.losses.gmlr": losses.gmlr, "all K^2 pairs": all_pairs}


def inputs(labels: int) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    mu = torch.randn(BATCH, labels, generator=generator, requires_grad=True)
    logvar = torch.randn(BATCH, labels, generator=generator, requires_grad=True)
    ranks = torch.zeros(BATCH, labels, dtype=torch.long)
    places = torch.rand(BATCH, labels, generator=generator).argsort(-1)[:, :POSITIVES]
    ranks.scatter_(1, places, torch.arange(1, POSITIVES + 1).expand(BATCH, -1))
    return mu, logvar, ranks


def megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(variant: str, labels: int, repeats: int) -> dict[str, float]:
    """Runs in a process of its own, so that its peak memory is its own."""
    loss = VARIANTS[variant]
    loss(*inputs(20)).backward()  # type: ignore[no-untyped-call]  # loads what torch loads on first use
    batch = inputs(labels)
    before, seconds, value = megabytes(), [], torch.zeros(())
    for _ in range(repeats):
        start = time.perf_counter()
        value = loss(*batch)
        value.backward()  # type: ignore[no-untyped-call]
        seconds.append(time.perf_counter() - start)
    return {"value": value.item(), "seconds": min(seconds), "megabytes": megabytes() - before}


def in_own_process(variant: str, labels: int, repeats: int) -> dict[str, float]:
    command = [
        sys.executable,
        __file__,
        "--variant",
        variant,
        "--labels",
        str(labels),
        "--repeats",
        str(repeats),
    ]
    found: dict[str, float] = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    return found


def main() -> int:
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads, Python {platform.python_version()}")
    print(f"batch {BATCH}, {POSITIVES} positives, forward + backward\n")
    ours, plain = (in_own_process(name, 1000, repeats) for name, repeats in zip(VARIANTS, (20, 3)))
    for name, found in zip(VARIANTS, (ours, plain)):
        print(f"{name:>24}, K = 1,000: {1000 * found['seconds']:8.1f} ms {found['megabytes']:8.1f} MB")
    faster, smaller = plain["seconds"] / ours["seconds"], plain["megabytes"] / ours["megabytes"]
    large = in_own_process("gaussianmlr.losses.gmlr", 10_000, 3)
    print(f"{faster:.0f}x faster, {smaller:.0f}x smaller (bar: 20x each)")
    print(f"K = 10,000: {1000 * large['seconds']:.0f} ms, {large['megabytes']:.0f} MB (bar: 1,000 MB)")
    same = abs(ours["value"] - plain["value"]) < 1e-5 * abs(plain["value"])
    print(f"same value: {same}")
    return 0 if same and faster >= 20 and smaller >= 20 and large["megabytes"] < 1000 else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--variant", choices=VARIANTS)
    parser.add_argument("--labels", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=3)
    chosen = parser.parse_args()
    if chosen.variant:
        print(json.dumps(measure(chosen.variant, chosen.labels, chosen.repeats)))
    else:
        sys.exit(main())

"""Metrics against scipy, row by row, and their memory; exits with 1 where a bar is missed."""

from __future__ import annotations

import platform
import resource
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np
import scipy
import torch

from gaussianmlr import metrics
from gaussianmlr.orders.reading import FloatArray, IntArray

SPEED_BAR = 50.0
MEMORY_BAR = 1e9


def sample(count: int, labels: int, positives: int | None = None) -> tuple[FloatArray, IntArray]:
    """Random orders, and scores that know something of them."""
    rng = np.random.default_rng(0)
    places = rng.permuted(np.tile(np.arange(1, labels + 1), (count, 1)), axis=1)
    many = rng.integers(1, labels + 1, (count, 1)) if positives is None else positives
    ranks: IntArray = np.clip(places - (labels - many), 0, None).astype(np.int64)
    return ranks - 0.5 + rng.normal(0, 0.3 * labels, ranks.shape), ranks


def seconds(work: Callable[[], object], repeats: int) -> float:
    found = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        found.append(time.perf_counter() - start)
    return min(found)


def speed() -> bool:
    from scipy.stats import kendalltau

    scores, ranks = sample(10_000, 10)
    claimed = np.maximum(scores, 0)

    def row_loop() -> list[float]:
        return [float(kendalltau(a, b).statistic) for a, b in zip(claimed, ranks)]

    expected = np.nan_to_num(row_loop())
    found = metrics.kendall_tau_b(scores, ranks, reduction="none")
    gap = float(np.abs(expected - found).max())
    loop = seconds(row_loop, 1)
    ours = seconds(lambda: metrics.kendall_tau_b(scores, ranks), 15)
    six = seconds(lambda: metrics.evaluate(scores, ranks), 15)
    good = loop / ours >= SPEED_BAR and gap < 1e-9
    print(
        f"tau-b, 10,000 x 10: scipy row loop {loop:.2f} s, here {ours * 1e3:.1f} ms, "
        f"{loop / ours:.0f}x faster (bar {SPEED_BAR:.0f}x), "
        f"largest difference {gap:.1e}: {'met' if good else 'MISSED'}"
    )
    print(
        f"all six of the paper at once: {six * 1e3:.1f} ms, {loop / six:.0f}x faster than tau-b in the loop"
    )
    return good


def memory() -> bool:
    """Peak of a whole process, library and all: nothing the metrics do is left out of the count."""
    good = True
    for positives in ("10", "any"):
        run = subprocess.run(
            [sys.executable, __file__, "--peak", positives], capture_output=True, text=True, check=True
        )
        peak, before, took = map(float, run.stdout.split())
        met = peak < MEMORY_BAR
        good &= met
        print(
            f"all six, 1,000 x 1,000, {positives} positives: {took:.2f} s, process peak {peak / 1e6:.0f} MB "
            f"({before / 1e6:.0f} MB before the call; bar {MEMORY_BAR / 1e6:.0f} MB): "
            f"{'met' if met else 'MISSED'}"
        )
    return good


def peak_of_one(positives: str) -> None:
    scores, ranks = sample(1_000, 1_000, None if positives == "any" else int(positives))
    metrics.evaluate(scores[:2], ranks[:2])
    before = peak()
    start = time.perf_counter()
    metrics.evaluate(scores, ranks)
    print(peak(), before, time.perf_counter() - start)


def peak() -> float:
    size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return float(size) * (1 if platform.system() == "Darwin" else 1024)


def main() -> int:
    torch.set_num_threads(1)  # as the row loop has; else a busy second core is measured
    if sys.argv[1:2] == ["--peak"]:
        peak_of_one(sys.argv[2])
        return 0
    print(
        f"Python {platform.python_version()}, numpy {np.__version__}, scipy {scipy.__version__}, "
        f"torch {torch.__version__}, one thread"
    )
    results = [speed(), memory()]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())

"""What threads cost on a small table: a fit as torch is set by default against one thread, in CPU seconds.

Each fit of `GaussianMLR` on 1,054 x 16 features and 14 labels runs in a process of its own, in turn; the best
of each counts. Exits with 1 where the default takes more than 1.5x.
"""

import argparse
import os
import subprocess
import sys

BAR = 1.5
SCRIPT = """
import resource, sys
import numpy as np
import torch
from gaussianmlr import GaussianMLR

if sys.argv[1] == "one":
    torch.set_num_threads(1)
before = torch.get_num_threads()
rng = np.random.default_rng(0)
X = rng.normal(size=(int(sys.argv[2]), 16))
scores = X @ rng.normal(size=(16, 14))
y = np.where(scores > 0, scores.argsort(1).argsort(1) + 1, 0)
start = resource.getrusage(resource.RUSAGE_SELF)
GaussianMLR(random_state=0).fit(X, y)
end = resource.getrusage(resource.RUSAGE_SELF)
print(end.ru_utime + end.ru_stime - start.ru_utime - start.ru_stime, before, torch.get_num_threads())
"""


def seconds(which: str, rows: int) -> tuple[float, int, int]:
    """CPU seconds of a fit, and torch's threads before and after it."""
    unset = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")
    plain = {name: value for name, value in os.environ.items() if name not in unset}
    words = [sys.executable, "-c", SCRIPT, which, str(rows)]
    shown = subprocess.run(words, env=plain, capture_output=True, text=True, check=True).stdout.split()
    return float(shown[-3]), int(shown[-2]), int(shown[-1])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1054)
    parser.add_argument("--rounds", type=int, default=2)
    options = parser.parse_args()
    best = {"default": float("inf"), "one": float("inf")}
    for _ in range(options.rounds):
        for which in best:
            spent, before, after = seconds(which, options.rows)
            if before != after:
                raise SystemExit(f"torch had {before} threads before the fit and {after} after it")
            best[which] = min(best[which], spent)
    ratio = best["default"] / best["one"]
    verdict = "" if ratio <= BAR else ", MISSED"
    print(f"by default {best['default']:.2f} s, with one thread {best['one']:.2f} s of CPU")
    print(f"default / one thread: {ratio:.2f}x (bar {BAR}x{verdict})")
    return 0 if ratio <= BAR else 1


if __name__ == "__main__":
    sys.exit(main())

"""How time and memory grow with the number of labels: `python benchmarks/labels.py`.

With `--fit`, `GaussianMLR().fit` on 2,000 rows of 20 columns and 10,000 labels, to its end: more than ten
minutes of processor time or 4 GB are an error. With `--file`, a file of a million rows and 100,000 labels, in
the format of the extreme classification repository, is written and opened as `gmlr train` opens it: more than
4 GB are an error.

Every instance has ten relevant labels. Each number of labels has a process of its own; a step's memory is its
peak beyond what was held before it. The exponent is that of the last two numbers of labels: 1 = like K, 2 =
like K^2. An exponent above 1.2 is an error.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

MOST = 1.2
POSITIVES = 10
ROWS = 48
SOME = 0.1, 50.0  # seconds and megabytes below which a step is too small to have an exponent
FLOORS = 0.005, 25.0  # what a smaller step counts as, being mostly overhead or memory that was held before


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--labels", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    parser.add_argument("--one", type=int, help="measure one number of labels and print JSON")
    parser.add_argument("--fit", action="store_true", help="2,000 rows x 10,000 labels")
    parser.add_argument("--file", action="store_true", help="a file of 1,000,000 rows x 100,000 labels")
    given = parser.parse_args()
    if given.fit or given.file:
        sys.exit(fit() if given.fit else open_file())
    if given.one:
        print(json.dumps(measured(given.one)))
        return
    found = {}
    for labels in given.labels:
        command = [sys.executable, __file__, "--one", str(labels)]
        found[labels] = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
        print(f"{labels:,} labels measured", file=sys.stderr)
    sys.exit(report(found))


def fit() -> int:
    import numpy as np
    from scipy.sparse import csr_array

    from gaussianmlr import GaussianMLR

    rng, rows, labels = np.random.default_rng(0), 2_000, 10_000
    places = np.concatenate([rng.choice(labels, POSITIVES, replace=False) for _ in range(rows)])
    where = np.repeat(np.arange(rows), POSITIVES), places
    ranks = csr_array((np.tile(np.arange(POSITIVES, 0, -1), rows), where), shape=(rows, labels))
    start = time.process_time()
    GaussianMLR(random_state=0).fit(rng.normal(size=(rows, 20)), ranks)
    spent, peak = time.process_time() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    fine = spent < 600 and peak < 4096
    print(
        f"fit of {rows:,} rows x {labels:,} labels: {spent:.0f} s, {peak:,.0f} MB{'' if fine else ' MISSED'}"
    )
    return 0 if fine else 1


def open_file(rows: int = 1_000_000, labels: int = 100_000, columns: int = 100_000, cells: int = 20) -> int:
    import numpy as np

    from gaussianmlr.data.loading import fetch
    from gaussianmlr.data.open import open_data

    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "made.txt"
        with file.open("w") as text:
            text.write(f"{rows} {columns} {labels}\n")
            for start in range(0, rows, 10_000):
                count = min(10_000, rows - start)
                # Steps of at least one make the numbers of a row different.
                named, held = (
                    np.cumsum(1 + rng.integers(0, size // most - 1, (count, most)), axis=1).tolist()
                    for size, most in ((labels, POSITIVES), (columns, cells))
                )
                for one, some in zip(named, held):
                    numbers = " ".join([f"{place}:0.5" for place in some])
                    print(",".join(map(str, one)), numbers, file=text)
        length, begun = file.stat().st_size / 2**20, time.process_time()
        source = open_data(file)
        spent = time.process_time() - begun
        inputs, ranks = fetch(source.train, list(range(64)))[:2]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    fine = peak < 4096
    print(
        f"a file of {length:,.0f} MB, {len(source.train):,} + {len(source.validation):,} rows x "
        f"{labels:,} labels x {columns:,} columns: opened in {spent:.0f} s, {peak:,.0f} MB; batches of "
        f"{list(inputs.shape)} and {list(ranks.shape)}{'' if fine else ' MISSED'}"
    )
    return 0 if fine else 1


def report(found: dict[int, dict[str, tuple[float, float]]]) -> int:
    """Print the table; the number of steps above the limit."""
    sizes = list(found)
    print("| step | " + " | ".join(f"K = {size:,}" for size in sizes) + " | exponents of time, memory |")
    print("| --- |" + " --- |" * (len(sizes) + 1))
    wrong = 0
    for step in found[sizes[0]]:
        cells = [f"{found[size][step][0]:.3g} s, {found[size][step][1]:.0f} MB" for size in sizes]
        before, last = (found[size][step] for size in sizes[-2:])
        growth = math.log(sizes[-1] / sizes[-2])
        exponents = [
            math.log(late / max(early, floor)) / growth if late > least else None
            for early, late, least, floor in zip(before, last, SOME, FLOORS)
        ]
        bad = any(one is not None and one > MOST for one in exponents)
        wrong += bad
        said = ", ".join("small" if one is None else f"{one:.2f}" for one in exponents)
        print(f"| {step} | " + " | ".join(cells) + f" | {said}{' TOO MUCH' if bad else ''} |")
    return wrong


def measured(labels: int) -> dict[str, tuple[float, float]]:
    """Seconds of processor time and megabytes of each step."""
    import numpy as np
    import torch

    from gaussianmlr import MultiLabelRanker, metrics
    from gaussianmlr.data import RankedData
    from gaussianmlr.model.calibration import calibrate, compare
    from gaussianmlr.model.scale import fit_scale
    from gaussianmlr.report.measure import Evidence
    from gaussianmlr.report.run_page import run_page

    rng = np.random.default_rng(0)
    names = tuple(f"label {k}" for k in range(labels))
    X, ranks = rng.normal(size=(ROWS, 8)), np.zeros((ROWS, labels), dtype=np.int64)
    for place in range(ROWS):
        ranks[place, rng.choice(labels, POSITIVES, replace=False)] = np.arange(1, POSITIVES + 1)
    truth = torch.from_numpy(ranks)
    found: dict[str, tuple[float, float]] = {}

    def step(name: str, call: Callable[[], Any]) -> Any:
        Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
        before, spent = _megabytes("VmRSS"), math.inf
        for _ in range(3):  # the quickest: the first may import
            start = time.process_time()
            result = call()
            spent = min(spent, time.process_time() - start)
            if spent > 1:
                break
        found[name] = spent, max(0.0, _megabytes("VmHWM") - before)
        return result

    ranker = MultiLabelRanker("gmlr", n_members=1, epochs=2, hidden=16, random_state=0)
    ranker.fit(X[:, :3], ranks[:, :50])  # imports
    step("fit, 2 epochs with calibration", lambda: ranker.fit(X, ranks))
    model = ranker.to_model()
    reading = step("read", lambda: model.read(torch.from_numpy(X).float()))
    calibration = step("calibrate", lambda: calibrate(reading, truth))
    step("calibration error", lambda: compare(reading, truth, calibration))
    step("just noticeable differences", lambda: fit_scale(reading))
    step("evaluate", lambda: metrics.evaluate(reading.scores, truth))
    row = torch.from_numpy(X[:1]).float()
    step("predict a row", lambda: model.predict(row).scores)
    step("order of a row", lambda: model.predict(row).orders)
    one = model.predict(row)
    step("P(first) of a row", lambda: model.predict(row).p_first)
    step("JSON of a row", lambda: one.to_json())
    step("JSON of a row, top 50 with partial order", lambda: one.to_json(top=50, confidence=0.9))
    step("pairs of a row, top 50", lambda: one.top_pairs(50))
    step("frame of a row", lambda: one.to_frame())
    data = RankedData(ranks, names, X)
    with tempfile.TemporaryDirectory() as folder:
        saved = Path(folder) / "model"
        step("save", lambda: model.save(saved, overwrite=True))
        rows = np.arange(ROWS)
        evidence = Evidence(model, data, "data", "all", rows, reading, ranks, ())
        step("report", lambda: run_page(saved, evidence, 2, lambda done, total: None))
    found["peak of the process"] = 0.0, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return found


def _megabytes(name: str) -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name):
            return int(line.split()[1]) / 1024
    raise OSError(f"no {name} in /proc/self/status: Linux only")


if __name__ == "__main__":
    main()

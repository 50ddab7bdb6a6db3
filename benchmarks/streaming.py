"""Training on more rows than fit in memory: peak memory of the process, and its loader beside its step.

Writes a folder of Parquet files with `--rows` rows of `--columns` columns in bounded memory, and runs
`gmlr train` on it in a process of its own. Prints the peak of that process's memory, the CPU seconds of
reading, of loading batches and of training steps, and the ratio of the last two. Fails if the peak is above
`--most` megabytes, or if loading takes longer than the steps.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

LABELS = 5


def write(folder: Path, rows: int, columns: int, files: int) -> None:
    """Write the table, file by file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    weights = np.random.default_rng(0).normal(size=(columns, LABELS)) / columns**0.5
    folder.mkdir()
    for number, part in enumerate(np.array_split(np.arange(rows), files)):
        rng = np.random.default_rng((1, number))
        x = rng.standard_normal((len(part), columns), dtype=np.float32).astype(np.float64)
        hidden = x @ weights + 0.3 * rng.normal(size=(len(part), LABELS))
        order = hidden.argsort(1).argsort(1) + 1
        ranks = np.maximum(order - (hidden <= 0).sum(1, keepdims=True), 0)
        table = {f"x{place}": x[:, place] for place in range(columns)}
        table |= {f"label:{'abcde'[place]}": ranks[:, place].astype(np.int8) for place in range(LABELS)}
        pq.write_table(
            pa.table(table), folder / f"part-{number:05}.parquet", compression="none", use_dictionary=False
        )


def timed(owner: Any, name: str, spent: dict[str, float], what: str) -> None:
    """Add the CPU seconds of every call of a method."""
    original: Callable[..., Any] = getattr(owner, name)

    def call(*arguments: Any, **options: Any) -> Any:
        began = time.process_time()
        try:
            return original(*arguments, **options)
        finally:
            spent[what] = spent.get(what, 0.0) + time.process_time() - began

    setattr(owner, name, call)


def child(arguments: list[str], answer: Path) -> None:
    """`gmlr train` with clocks, in a process of its own."""
    from gaussianmlr.cli.main import main
    from gaussianmlr.data import loading, streamed
    from gaussianmlr.training import engine

    spent: dict[str, float] = {}
    timed(loading._Fetch, "__getitem__", spent, "loader")
    timed(engine._Run, "_step", spent, "step")
    timed(streamed, "open_rows", spent, "reading")
    sys.argv = ["gmlr", *arguments]
    try:
        main()
    finally:
        answer.write_text(json.dumps(spent))


def run(arguments: list[str], answer: Path) -> tuple[dict[str, float], float]:
    """CPU seconds of a training, and the peak of its memory in megabytes."""
    command = [sys.executable, __file__, "--child", str(answer), "--", *arguments]
    process = subprocess.Popen(command, env={**os.environ, "OMP_NUM_THREADS": "1"})
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"gmlr train ended with {process.returncode}")
    unit = 1 if platform.system() == "Darwin" else 1024
    return json.loads(answer.read_text()), used.ru_maxrss * unit / 2**20


def benchmark() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--columns", type=int, default=50)
    parser.add_argument("--files", type=int, default=100)
    parser.add_argument("--batch-size", type=int, default=4096)
    parser.add_argument("--most", type=int, default=2000, help="megabytes")
    parser.add_argument("--folder", type=Path, help="where to write, by default a temporary folder")
    parser.add_argument("--data", type=Path, help="use this folder, which an earlier run has written")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=chosen.folder) as place:
        folder = Path(place)
        data = chosen.data or folder / "rows"
        if chosen.data is None:
            write(data, chosen.rows, chosen.columns, chosen.files)
        size = sum(file.stat().st_size for file in data.iterdir())
        print(f"{chosen.rows:,} rows x {chosen.columns} columns: {size / 2**20:,.0f} MB of Parquet")
        began = time.monotonic()
        spent, peak = run(
            [
                *("train", str(data), "--out", str(folder / "run"), "--stream", "--no-peers"),
                *("--epochs", "1", "--set", f"batch_size={chosen.batch_size}", "--threads", "1"),
            ],
            folder / "spent.json",
        )
        taken = time.monotonic() - began
    steps = -(-chosen.rows // chosen.batch_size)
    print(f"peak of the process: {peak:,.0f} MB (at most {chosen.most:,})")
    print(f"reading: {spent['reading']:.1f} CPU s, {1e6 * spent['reading'] / chosen.rows:.1f} us per row")
    for what in ("loader", "step"):
        each = 1e3 * spent[what] / steps
        print(f"{what}: {spent[what]:.1f} CPU s, {each:.2f} ms per batch of {chosen.batch_size}")
    ratio = spent["loader"] / spent["step"]
    print(f"loader / step: {ratio:.3f} (at most 1)")
    print(f"all: {taken:.0f} s; Python {platform.python_version()}, torch {version('torch')}, one thread")
    if peak > chosen.most or ratio > 1:
        print("missed", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(sys.argv[4:], Path(sys.argv[2]))
    else:
        sys.exit(benchmark())

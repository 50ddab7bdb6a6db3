"""The table of a run, and where it is kept."""

import datetime
import importlib.metadata
import platform
import subprocess
import sys
from collections import Counter
from pathlib import Path

BEGIN, END = "<!-- chaos: begin -->", "<!-- chaos: end -->"
PACKAGES = ("gaussianmlr", "torch", "numpy", "pandas", "pyarrow", "pillow", "safetensors", "fastapi")
PACKAGES += ("uvicorn",)
PACKAGES += ("schemathesis",)


def facts(asked):
    """What the counts depend on."""
    versions = {"python": platform.python_version(), "sqlite": _sqlite()}
    for name in PACKAGES:
        versions[name] = importlib.metadata.version(name)
    words = ["make chaos"]
    if asked.names or asked.scale != 1 or asked.seed != 0:
        words = ["python -m chaos", *asked.names, f"--scale {asked.scale:g}", f"--seed {asked.seed}"]
    return {
        "command": " ".join(words),
        "seed": asked.seed,
        "date": datetime.date.today().isoformat(),
        "commit": _commit(),
        "processor": f"{_processor()}, {_cores()} cores",
        "system": f"{platform.system()} {platform.release()}",
        "versions": versions,
    }


def markdown(rows, known):
    """The table, and below it where it was made."""
    lines = [
        "| experiment | attack | expected | cases | what happened | failures | seconds |",
        "| --- | --- | --- | ---: | --- | ---: | ---: |",
    ]
    for row in rows:
        cases = f"{row.done:,}" if row.done >= row.planned else f"{row.done:,} of {row.planned:,}"
        happened = ", ".join(f"{count:,} {word}" for word, count in sorted(row.counts.items()) if count)
        kinds = Counter(failure["kind"] for failure in row.failures)
        failed = ", ".join(f"{count} {kind}" for kind, count in kinds.items()) or (
            "0" if row.done else "not run"
        )
        cells = (row.experiment, row.attack, row.promise, cases, happened, failed, f"{row.seconds:.0f}")
        lines.append("| " + " | ".join(cells) + " |")
    versions = ", ".join(f"{name} {version}" for name, version in known["versions"].items())
    lines += [
        "",
        f"`{known['command']}` with seed {known['seed']} on {known['date']}, commit `{known['commit']}`, "
        f"{known['processor']}, {known['system']}; {versions}.",
    ]
    return "\n".join(lines)


def write_page(page, table):
    """Put the table between the markers of a page."""
    text = Path(page).read_text("utf-8")
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{page} has no {BEGIN} ... {END}")
    Path(page).write_text(f"{before}{BEGIN}\n{table}\n{END}{after}", "utf-8")


def _commit():
    here = Path(__file__).parent

    def git(*words):
        return subprocess.run(["git", "-C", here, *words], capture_output=True, text=True).stdout.strip()

    changed = git("status", "--porcelain", "--untracked-files=no")
    return (git("rev-parse", "--short=12", "HEAD") or "unknown") + (" with changes" if changed else "")


def _processor():
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _cores():
    import os

    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count()


def _sqlite():
    import sqlite3

    return sqlite3.sqlite_version

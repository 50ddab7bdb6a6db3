"""The demonstration in real processes, made small."""

import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
import time
from html import escape
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

import gaussianmlr
from gaussianmlr._utils import extras
from gaussianmlr.cli import demo
from gaussianmlr.cli.main import app
from gaussianmlr.data import RankedMNIST
from gaussianmlr.report.mistakes import mistakes_of

COMMAND = [sys.executable, "-m", "gaussianmlr", "demo", "--out"]
SMALL = ["--images", "96", "--epochs", "1"]


@pytest.mark.slow
def test_demo_trains_shows_and_does_nothing_twice(tmp_path):
    command = [*COMMAND, str(tmp_path / "demo"), *SMALL]
    first = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert first.returncode == 0, first.stderr
    assert "epoch   1" in first.stderr
    page = tmp_path / "demo" / "index.html"
    assert page.resolve().as_uri() in first.stdout
    story = first.stdout.split("\n\n")[0].strip().splitlines()
    assert len(story) == 5
    found = json.loads((tmp_path / "demo" / "metrics.json").read_text())
    assert set(found["test"]) == {"strong", "weak"}
    for line, metrics in zip(story[1:3], found["test"].values()):
        values = re.findall(r"-?\d+\.\d", line)
        assert values == [f"{100 * metrics[name]:.1f}" for name in ("tau_b", "positives_tau", "f1")]
    assert found["images_seen"] == 96
    assert len(found["pictured"]) == 6
    html = page.read_text("utf-8")
    assert "<h1>Digits ordered by their size</h1>" in html
    for line in story:
        assert escape(" ".join(line.split()), quote=False) in " ".join(html.split())
    assert html.count('alt="Picture test ') >= 6
    assert html.index('id="chosen"') < html.index('id="metrics"')
    with Image.open(tmp_path / "demo" / "demo.png") as picture:
        assert picture.width > 800
    for name in ("strong", "weak"):
        model = gaussianmlr.load(tmp_path / "demo" / name / "model")
        assert model.labels == tuple("0123456789")
        assert model.method.supervision == name
    again = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert again.returncode == 0
    assert "epoch   1" not in again.stderr  # it was trained already
    assert again.stdout == first.stdout


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="looks for processes as Linux does")
def test_stopping_the_demo_stops_both_processes(tmp_path):
    folder = tmp_path / "demo"
    command = [*COMMAND, str(folder), "--images", "100000", "--epochs", "1"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 300
    wanted = [folder / name / "run.json" for name in ("strong", "weak")]
    if len(os.sched_getaffinity(0)) < 2:
        wanted = wanted[:1]
    while not all(file.is_file() for file in wanted):
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.2)
    time.sleep(2)
    children = children_of(process.pid)
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=120) == 143
    assert "the same command resumes" in process.stderr.read()
    process.stderr.close()
    deadline = time.monotonic() + 30  # the tracker of shared resources ends a little after its owner
    while any(Path(f"/proc/{child}").exists() for child in children):
        assert time.monotonic() < deadline
        time.sleep(0.2)


def children_of(pid):
    return [
        int(folder.name)
        for folder in Path("/proc").iterdir()
        if folder.name.isdigit() and (folder / "stat").read_text().rpartition(")")[2].split()[1] == str(pid)
    ]


def test_missing_packages_are_named_at_once(tmp_path, monkeypatch):
    """By their real names, as if none of them were installed."""
    known = importlib.util.find_spec
    absent = {"mlxtend", "numba", "jinja2", "matplotlib", "PIL"}
    monkeypatch.setattr(extras, "find_spec", lambda name: None if name in absent else known(name))
    shown = CliRunner().invoke(app, ["demo", "--out", str(tmp_path / "demo")])
    assert "mlxtend, numba, jinja2, matplotlib, pillow" in str(shown.exception)
    assert "pip install 'gaussianmlr[ranked-mnist,report]'" in str(shown.exception)
    assert not (tmp_path / "demo").exists()


def test_the_same_minutes_are_stated_everywhere():
    root = Path(__file__).parents[2]
    pages = [root / name for name in ("README.md", "Makefile", "docs/index.md", "docs/command-line.md")]
    for page in (*pages, *(root / "src/gaussianmlr/cli" / name for name in ("main.py", "demo.py"))):
        assert "at most four minutes on two cores" in page.read_text("utf-8").lower(), page.name


def test_pictures_are_the_first_with_two_three_and_four_digits():
    data = RankedMNIST(demo.SETTING, "test", size=200, digits="embedded")
    counts = (data.recipes(range(200)).ranks > 0).sum(1)
    expected, at = [], -1
    for count in (2, 3, 4, 2, 3, 4):
        at = next(index for index in range(at + 1, 200) if counts[index] == count)
        expected.append(at)
    assert demo._varied(data, 6) == expected


def test_training_validation_and_test_digits_differ():
    seen = {}
    for split in ("train", "validation", "test"):
        versions = demo.VERSIONS if split == "train" else 1
        data = RankedMNIST(demo.SETTING, split, digits="embedded", versions=versions)
        seen[split] = {data.digits.images[number // versions].tobytes() for number in data._pool}
    assert len(seen["train"]) > 3300
    assert not seen["train"] & seen["validation"]
    assert not seen["test"] & (seen["train"] | seen["validation"])


@pytest.mark.parametrize(
    ("predicted", "truth", "expected"),
    [
        ([0, 2, 1], [0, 2, 1], ""),
        (
            [0, 1, 2],
            [0, 2, 1],
            "b > c is predicted the other way round (the model gives the true order 25 %)",
        ),
        ([1, 2, 0], [0, 2, 1], "c is missed; a is not there"),
        (
            [0, 1, 1],
            [0, 2, 1],
            "b > c is predicted the other way round (the model gives the true order 25 %)",
        ),
        ([0, 1, 2], [-1, 1, 2], ""),
    ],
)
def test_mistakes_are_named(predicted, truth, expected):
    chances = np.full((3, 3), 0.25)
    assert str(mistakes_of(np.array(predicted), np.array(truth), ("a", "b", "c"), chances)) == expected

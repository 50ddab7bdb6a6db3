"""The demonstration in a real process, made small."""

import json
import subprocess
import sys

import pytest
from PIL import Image

import gaussianmlr

pytestmark = pytest.mark.slow


def test_demo_trains_shows_and_does_nothing_twice(tmp_path):
    command = [sys.executable, "-m", "gaussianmlr", "demo", "--out", str(tmp_path / "demo")]
    command += ["--images", "96", "--epochs", "1"]
    first = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert first.returncode == 0, first.stderr
    assert "order known (strong)" in first.stdout
    assert "epoch   1" in first.stderr
    found = json.loads((tmp_path / "demo" / "metrics.json").read_text())
    assert set(found["test"]) == {"strong", "weak"}
    assert found["images_seen"] == 96
    with Image.open(tmp_path / "demo" / "demo.png") as picture:
        assert picture.width > 800
    model = gaussianmlr.load(tmp_path / "demo" / "strong" / "model")
    assert model.labels == tuple("0123456789")
    again = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert again.returncode == 0
    assert "epoch   1" not in again.stderr  # it was trained already
    assert again.stdout == first.stdout

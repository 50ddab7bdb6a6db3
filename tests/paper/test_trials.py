"""Rates are tried on validation images; a test never chooses one."""

import json

import numpy as np
import pytest

from gaussianmlr import DataError, load
from gaussianmlr.data import RankedMNIST
from gaussianmlr.metrics import evaluate
from gaussianmlr.paper.cells import Cell
from gaussianmlr.paper.places import Places, Sources
from gaussianmlr.paper.trials import read_trials, run_trial, write_rates

pytestmark = pytest.mark.slow


def test_a_trial_is_measured_on_validation_images(tmp_path, monkeypatch):
    places = Places(tmp_path / "work", tmp_path / "results")
    cell = Cell("gray-s", "gmlr", "strong", "smoke", settings=("rate=0.002",))
    opened = []
    original = RankedMNIST.batch
    monkeypatch.setattr(
        RankedMNIST, "batch", lambda self, rows: opened.append(self.split) or original(self, rows)
    )
    assert run_trial(cell, places, Sources("embedded"))
    assert "test" not in opened
    assert not places.cells.exists()
    found = read_trials(places.results / "rates.jsonl")[cell.name]
    monkeypatch.undo()
    model = load(places.run(cell) / "model")
    images = RankedMNIST("gray-s", "validation", size=16, digits="embedded").batch(range(16))
    known = evaluate(model.read(images.images).scores, images.ranks)
    assert found["metrics"]["tau_b"] == pytest.approx(100 * known["tau_b"], abs=1e-2)
    assert found["validation_images"] == 16
    assert found["rate"] == 0.002
    assert run_trial(cell, places, Sources("embedded"))  # there already
    assert len((places.results / "rates.jsonl").read_text().splitlines()) == 1
    text = write_rates(places, "smoke").read_text()
    assert text.count("not run") == 23 * 3
    assert f"| GaussianMLR | 0.002 | **{found['metrics']['tau_b']:.2f}** |" in text
    line = json.loads((places.results / "rates.jsonl").read_text())
    line["metrics"]["tau_b"] = 99.0
    (places.results / "rates.jsonl").write_text(json.dumps(line) + "\n")
    with pytest.raises(DataError, match="line 1: its checksum is wrong"):
        read_trials(places.results / "rates.jsonl")
    assert np.isfinite(known["tau_b"])

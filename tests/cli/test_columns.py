"""A messy table through the commands, as real processes."""

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from gaussianmlr import load
from gaussianmlr.data.inputs import read_rows
from support.messy import USED, messy_table

pytestmark = pytest.mark.slow


def gmlr(*words, cwd):
    done = subprocess.run(
        [sys.executable, "-m", "gaussianmlr", *map(str, words)],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("messy")
    messy_table().to_csv(folder / "table.csv", index=False)
    done = gmlr("train", "table.csv", "--out", "run", "--epochs", 12, cwd=folder)
    assert "column 'nothing' is left out: it is empty" in done.stdout + done.stderr
    return folder


def test_every_file_has_the_same_scores(folder):
    frame = messy_table().tail(60)[["id", *USED]].reset_index(drop=True)
    frame.loc[0, "city"], frame.loc[1, "wet"] = "Atlantis", None
    frame.to_csv(folder / "new.csv", index=False)
    frame.to_parquet(folder / "new.parquet")
    typed = frame.assign(day=pd.to_datetime(frame.day), city=frame.city.astype("category"))
    typed.to_parquet(folder / "typed.parquet")
    frame.to_json(folder / "new.jsonl", orient="records", lines=True)
    found = {}
    for name in ("new.csv", "new.parquet", "typed.parquet", "new.jsonl"):
        done = gmlr("predict", "run", name, "--out", f"{name}.found.csv", cwd=folder)
        assert "column 'city': a category that training rows had rarely or never (1 row)" in done.stderr
        assert (
            "column 'wet': a gap counts as the mean, since the training rows had none (1 row)" in done.stderr
        )
        found[name] = pd.read_csv(folder / f"{name}.found.csv")
    for name, other in found.items():
        pd.testing.assert_frame_equal(other, found["new.csv"], obj=name)
    model = load(folder / "run" / "model")
    records = json.loads(frame.to_json(orient="records"))
    scores = model.predict(read_rows(records, model.inputs)).significance
    written = found["new.csv"][[f"significance:{label}" for label in model.labels]]
    np.testing.assert_allclose(scores, written, rtol=1e-4, atol=1e-5)


def test_the_model_learns_and_is_described(folder):
    done = gmlr("evaluate", "run", "table.csv", "--json", cwd=folder)
    assert json.loads(done.stdout)["metrics"]["tau_b"] > 0.5
    shown = gmlr("info", "run", cwd=folder).stdout
    assert "city: category of 4: Bern, Kyiv, Oslo, Rome; may be empty" in shown
    assert "day: date as days, day of year, weekday" in shown
    checked = gmlr("data", "check", "table.csv", cwd=folder).stdout
    assert "categories: city (4)" in checked
    assert "gaps: age 30, city 30" in checked
    gmlr("report", "run", "--out", "page.html", cwd=folder)
    assert "Rome" in (folder / "page.html").read_text()


def test_rivals_and_onnx(folder):
    names = ("--method", "forest", "--method", "neighbours", "--method", "dummy", "--method", "gmlr")
    done = gmlr("compare", "table.csv", *names, "--epochs", 2, "--seeds", 1, "--out", "compared", cwd=folder)
    assert "forest" in done.stdout
    done = gmlr("export", "run", "--out", "model.onnx", cwd=folder)
    session = pytest.importorskip("onnxruntime").InferenceSession(folder / "model.onnx")
    model = load(folder / "run" / "model")
    rows = read_rows([[None, "Atlantis", "yes", "2024-05-05"], [50, None, "no", None]], model.inputs)
    scores = session.run(["scores"], {"inputs": rows.numpy()})[0]
    np.testing.assert_allclose(scores, model.read(rows).scores, rtol=1e-4, atol=1e-5)

"""Pictures: folds, features once, outputs of pictures that were not trained on; and the smoke test of all."""

import json
import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from scipy import stats

from gaussianmlr import DataError
from gaussianmlr.data import read_nsid
from gaussianmlr.methods import make
from gaussianmlr.paper.cells import Cell, read_cells
from gaussianmlr.paper.photos import open_photos, parts_of, read_outputs
from gaussianmlr.paper.places import Places, Sources
from gaussianmlr.paper.plans import FIGURES, TABLES
from gaussianmlr.paper.run import run_cell
from support.commanding import ENVIRONMENT, command
from support.fakes import avdp, nsid

pytestmark = pytest.mark.slow

COUNT = 24


@pytest.fixture(scope="module")
def scenes(tmp_path_factory):
    """Pictures of noise with random orders, and a cache of features of their own."""
    random = np.random.default_rng(0)
    folder = tmp_path_factory.mktemp("nsid")
    rankings = [
        [tuple(random.permutation(9)[: random.integers(1, 5)] + 1) for _ in range(2)] for _ in range(COUNT)
    ]
    split = {"train": list(range(1, COUNT - 3)), "test": list(range(COUNT - 3, COUNT + 1))}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GAUSSIANMLR_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield nsid(folder, rankings, split, range(1, COUNT + 1))


def test_every_picture_is_tested_once_by_a_network_that_has_not_seen_it(scenes):
    data = open_photos(Cell("nsid", "gmlr", "strong", "cpu"), Sources(nsid=scenes))
    assert set(data.split) == {"train"}
    divisions = []
    for method in ("gmlr", "crpc"):
        parts, protocol = parts_of(Cell("nsid", method, "strong", "cpu", seed=1), data)
        assert "5-fold" in protocol
        assert sorted(np.concatenate([part.test for part in parts])) == list(range(len(data)))
        for part in parts:
            assert sorted([*part.train, *part.test]) == list(range(len(data)))
        divisions.append([part.test.tolist() for part in parts])
    assert divisions[0] == divisions[1]  # methods are compared on the same folds
    other, _ = parts_of(Cell("nsid", "gmlr", "strong", "cpu", seed=2), data)
    assert [part.test.tolist() for part in other] != divisions[0]


def test_the_given_split(scenes, tmp_path):
    cell = Cell("nsid", "gmlr", "strong", "paper")
    data = open_photos(cell, Sources(nsid=scenes))
    (part,), _ = parts_of(cell, data)
    assert set(data.split[part.train]) == {"train"}
    assert set(data.split[part.test]) == {"test"}
    with pytest.raises(DataError, match="expected some of train and test"):
        parts_of(cell, data.subset("train"))
    domains = {
        "one": {"train": [["a.jpg", [1, 2, -1]]], "val": [["b.jpg", [3, -1, -1]]], "test": [["c.jpg", [2]]]}
    }
    pictures = open_photos(
        replace(cell, dataset="avdp"), Sources(avdp=avdp(tmp_path, domains, ["a.jpg", "b.jpg", "c.jpg"]))
    )
    (part,), _ = parts_of(replace(cell, dataset="avdp"), pictures)
    assert (len(part.train), len(part.test)) == (2, 1)
    with pytest.raises(DataError, match="--avdp FOLDER"):
        open_photos(replace(cell, dataset="avdp"), Sources())


def test_a_cell_of_pictures(scenes, tmp_path):
    cell = Cell("nsid", "lsep", "strong", "smoke")
    places = Places(tmp_path / "work", tmp_path / "results")
    assert run_cell(cell, places, Sources(nsid=scenes)) == "landed"
    found = read_cells(places.cells)
    kept = read_outputs(places.run(cell))
    data = read_nsid(scenes).subset("train")
    for one, reading in zip(cell.readings, ("order", "margin")):
        scores = make("lsep", reading=reading).read(kept.outputs).scores.numpy()
        wrong = 100 * ((scores > 0) != (data.ranks[kept.where] > 0)).mean()
        assert found[one]["metrics"]["hamming_loss"] == pytest.approx(wrong, abs=1e-3)
    # One epoch of two stages over four fifths of the pictures, five times.
    assert found[cell]["images_seen"] == 2 * 4 * len(data)
    assert "cross-validation" in found[cell]["data"]["protocol"]
    assert found[cell]["data"]["side"] == 224  # of EfficientNet-Lite0
    assert str(scenes) not in json.dumps(found[cell])
    strip, column = found[cell]["probes"]["extracted"]["plant"], data.labels.index("plant")
    f, people = kept.outputs["score"][:, column].numpy(), data.by_ranker[kept.where, :, column].mean(1)
    assert strip["monotonicity_raw"] == pytest.approx(stats.spearmanr(f, people).statistic, abs=1e-4)
    for name, score in zip(strip["ids"], strip["scores"]):
        assert f[[data.ids[i] for i in kept.where].index(name)] == pytest.approx(score, abs=1e-4)
    (places.cells / f"{cell.name}.json").unlink()
    before = [file.stat().st_mtime_ns for file in sorted(places.run(cell).glob("outputs-*"))]
    assert run_cell(cell, places, Sources(nsid=scenes)) == "landed"  # measured again, not trained again
    assert [file.stat().st_mtime_ns for file in sorted(places.run(cell).glob("outputs-*"))] == before
    assert read_cells(places.cells)[cell]["metrics"] == found[cell]["metrics"]
    (places.cells / f"{cell.name}.json").unlink()
    file = places.run(cell) / "outputs-1.npz"
    whole = file.read_bytes()
    middle = len(whole) // 2
    for damaged in (whole[:-30], b"", bytes(len(whole)), whole[:middle] + b"damage" + whole[middle + 6 :]):
        file.write_bytes(damaged)
        with pytest.raises(DataError, match=r"outputs-1\.npz was changed or cut .* remove it to train"):
            run_cell(cell, places, Sources(nsid=scenes))


def test_everything_from_the_command_line(scenes, tmp_path, monkeypatch):
    """The smoke preset, end to end: cells of two data sets, all tables, all figures."""
    monkeypatch.setitem(ENVIRONMENT, "GAUSSIANMLR_CACHE", os.environ["GAUSSIANMLR_CACHE"])
    words = ["reproduce", "all", "--preset", "smoke", "--digits", "embedded", "--nsid", scenes]
    words += ["--only", "gray-s_gmlr", "--only", "gray-s_crpc-strong", "--only", "nsid_", "--quiet"]
    words += ["--work", tmp_path / "w", "--results", tmp_path / "r"]
    done = subprocess.run(command(*words), capture_output=True, text=True, timeout=1200, env=ENVIRONMENT)
    assert done.returncode == 0, done.stderr
    written = [line for line in done.stdout.splitlines() if line.startswith(str(tmp_path))]
    names = {Path(line).name for line in written}
    assert {f"{name}-smoke.{suffix}" for name in TABLES for suffix in ("md", "tex", "csv")} <= names
    assert {f"{name}-smoke.{suffix}" for name in FIGURES for suffix in ("json", "csv")} <= names
    pictures = [line for line in written if line.endswith(".png")]
    # Adjusting and calibration in two scales, three strips, bars of two sets, variance, two samples.
    assert len(pictures) == 2 + 2 + 3 + 2 + 1 + 2
    for file in pictures:
        with Image.open(file) as picture:
            assert picture.width > 1000
            assert np.asarray(picture.convert("L")).std() > 5
    gray = (tmp_path / "r/tables/gray-smoke.md").read_text()
    assert "Not run: 21 of 24 rows" in gray
    rows = json.loads((tmp_path / "r/figures/adjusting-smoke.json").read_text())["rows"]
    trained = {
        (row["dataset"], row["method"], row["supervision"]) for row in rows if row["state"] == "measured"
    }
    assert trained == {("gray-s", "gmlr", "strong"), ("gray-s", "gmlr", "weak"), ("gray-s", "crpc", "strong")}
    assert "Protocol: 5-fold cross-validation" in (tmp_path / "r/tables/real-smoke.md").read_text()
    strips = json.loads((tmp_path / "r/figures/extracted-smoke.json").read_text())["rows"]
    assert {row["dataset"]: row["state"] for row in strips} == {"nsid": "measured", "nsid-test": "not run"}
    assert all(row["scores"] == sorted(row["scores"]) for row in strips if row["dataset"] == "nsid")
    # Figures are made of cells alone.
    shutil.rmtree(tmp_path / "w")
    drawn = {file.name: file.read_bytes() for file in (tmp_path / "r/figures").iterdir()}
    shutil.rmtree(tmp_path / "r/figures")
    words[1] = "figures"
    done = subprocess.run(command(*words, "--no-train"), capture_output=True, text=True, env=ENVIRONMENT)
    assert done.returncode == 0, done.stderr
    assert {file.name: file.read_bytes() for file in (tmp_path / "r/figures").iterdir()} == drawn

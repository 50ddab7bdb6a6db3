"""Prediction on Ray: the bytes of the local run, from a real cluster, one of whose machines is killed."""

import io
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from gaussianmlr import DataError
from gaussianmlr.data.open import open_data
from gaussianmlr.inference.cluster import predict_on_ray
from gaussianmlr.inference.predict import predict
from gaussianmlr.inference.streams import stream
from gaussianmlr.inference.writers import make_writer
from gaussianmlr.model.recipe import Recipe
from gaussianmlr.training.fit import fit
from support.clusters import busy, cluster, processes, within
from support.commanding import ENVIRONMENT, LABELS, command, gmlr, make_table

pytestmark = pytest.mark.slow

ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'gaussianmlr[ray]'")

PICTURES = 120
TASK = "ray::MapBatches"


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """Large pictures, so that reading them takes a while; two cannot be read."""
    folder = tmp_path_factory.mktemp("photos")
    random = np.random.default_rng(0)
    for number in range(PICTURES):
        small = Image.fromarray(random.integers(0, 255, (8, 8, 3), dtype=np.uint8))
        small.resize((3200, 3200)).save(folder / f"{number:03}.jpg")
    for number in (5, 6):
        file = folder / f"{number:03}.jpg"
        file.write_bytes(file.read_bytes()[:300])
    return folder


@pytest.fixture(scope="module")
def seeing(photos, tmp_path_factory):
    out = tmp_path_factory.mktemp("seeing") / "model"
    names = [f"{number:03}.jpg" for number in range(10, 30)]
    rows = {"image": names, "ranking": ["fire > sea", "sea > fire"] * 10}
    manifest = photos / "manifest.csv"
    pd.DataFrame(rows).to_csv(manifest, index=False)
    source = open_data(manifest, image_size=32)
    manifest.unlink()
    recipe = Recipe(backbone="fast", epochs=1, batch_size=8)
    fit(recipe, source.train, None, labels=source.labels, inputs=source.inputs).model.save(out)
    return out


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    folder = tmp_path_factory.mktemp("table")
    make_table().to_csv(folder / "known.csv", index=False)
    source = open_data(folder / "known.csv")
    recipe = Recipe(backbone="mlp", epochs=4, batch_size=16, rate=0.01)
    model = fit(recipe, source.train, None, labels=source.labels, inputs=source.inputs).model
    model.save(folder / "model")
    make_table(300, seed=9)[["a", "b", "c", "d"]].to_csv(folder / "new.csv", index=False)
    return folder, model


def lines(file):
    return file.read_bytes().count(b"\n")


def files(found, folder):
    """Predictions in every format, as bytes."""
    texts = {}
    for form in ("text", "csv", "jsonl"):
        text = io.StringIO()
        writer = make_writer(form, text, LABELS)
        for batch in found:
            writer.write(batch)
        texts[form] = text.getvalue()
    writer = make_writer("parquet", folder / "rows.parquet", LABELS)
    for batch in found:
        writer.write(batch)
    writer.close()
    return {**texts, "parquet": (folder / "rows.parquet").read_bytes()}


def check_tables(folder, model, tmp):
    """Rows of files and of standard input, bad ones among them, in the formats there are."""
    rows = "id,a,b,c,d\none,1,2,3,4\ntwo,1,2,x,4\nthree,1,2,3\n" + "four,4,3,2,1\n" * 20
    sources = [folder / "new.csv", "-", folder / "new.csv"]
    told = {}

    def said(name):
        return told.setdefault(name, []).append

    inputs = stream(sources, model.inputs, io.StringIO(rows))
    local = predict(model, inputs, batch_size=32, confidence=0.8, bad=said("local"))
    wanted = files(list(local), tmp)
    found = predict_on_ray(
        model,
        sources,
        batch_size=32,
        confidence=0.8,
        bad=said("ray"),
        standard_input=io.StringIO(rows),
    )
    assert files(list(found), tmp) == wanted
    assert wanted["text"].count("\n") == 300 + 21 + 300
    assert [one.name for one in told["local"]] == ["-:two", "-:2"]
    assert told["ray"] == told["local"]


def check_stops(folder, model, tmp):
    """What stops the local run stops this one, with the same words and after the same predictions."""
    (tmp / "narrow.csv").write_text("a,b\n1,2\n")
    (tmp / "wrong.csv").write_text("a,b,c,d\n1,2,3,4\n1,2,3,4\n1,2,3,4\n1,two,3,4\n")
    for last, message in [("narrow.csv", "no columns"), ("wrong.csv", "'two' in column 'b'")]:
        sources, names, words = [folder / "new.csv", tmp / last], [], []
        for found in (
            predict(model, stream(sources, model.inputs), batch_size=3),
            predict_on_ray(model, sources, batch_size=3),
        ):
            names.append([])
            with pytest.raises(DataError, match=message) as caught:
                names[-1].extend(name for batch in found for name in batch.names)
            words.append(str(caught.value))
        assert names[0] == names[1]
        assert len(names[0]) == 300 + 3 * (last == "wrong.csv")
        assert words[0] == words[1]
        (tmp / last).unlink()


def test_a_killed_machine_changes_nothing(seeing, photos, table, tmp_path):
    settings = ["--batch-size", "4", "--confidence", "0.7", "--format", "csv"]
    local = gmlr("predict", seeing, photos, *settings)
    assert local.returncode == 1, local.stderr
    assert "2 skipped" in local.stderr
    found, said = tmp_path / "found", tmp_path / "said"
    with cluster() as (made, nodes), found.open("w") as out, said.open("w") as err:
        asked = ["predict", seeing, photos, *settings, "--engine", "ray", "--ray-address", made.address]
        running = subprocess.Popen(command(*asked), stdout=out, stderr=err, env=ENVIRONMENT)
        try:
            seen = within(
                240,
                lambda: (
                    running.poll() is not None or (all(busy(node, TASK) for node in nodes) and lines(found))
                ),
            )
            assert seen, said.read_text()
            assert running.poll() is None, "it was done before both machines had begun"
            assert busy(nodes[0], TASK)
            made.remove_node(nodes[0], allow_graceful=False)  # SIGKILL
            assert lines(found) < PICTURES / 2
            assert running.wait(timeout=240) == 1
        finally:
            running.kill()
        assert found.read_text() == local.stdout
        # Ray says there what it lost; and every bad file is named once, in its place.
        told = [line for line in said.read_text().splitlines() if "skipped" in line]
        assert told == [line for line in local.stderr.splitlines() if "skipped" in line]
        (tmp_path / "more").mkdir()
        ray.init(made.address, log_to_driver=False)  # joined once, as a notebook is: its workers stay
        try:
            check_tables(*table, tmp_path / "more")
            check_stops(*table, tmp_path / "more")
            assert ray.is_initialized()
        finally:
            ray.shutdown()


def test_a_cluster_for_one_run(table, tmp_path, monkeypatch):
    monkeypatch.setitem(ENVIRONMENT, "RAY_worker_niceness", "0")
    folder, _ = table
    before = set(Path("/tmp").glob("ray*"))
    written = []
    for more in ([], ["--engine", "ray", "--workers", "2"]):
        out = tmp_path / f"{len(written)}.jsonl"
        done = gmlr(
            "predict", folder / "model", folder / "new.csv", "--out", out, "--batch-size", "50", *more
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, "", f"{out}: 300 predicted\n")
        written.append(out.read_bytes())
    assert written[0] == written[1]
    assert len(list(tmp_path.iterdir())) == 2
    assert set(Path("/tmp").glob("ray*")) <= before
    assert not [line for _, line in processes() if "/tmp/ray-" in line]


def test_what_cannot_be_done_is_said_before_anything_is_started(table):
    folder, model = table
    done = gmlr("predict", folder / "model", folder / "new.csv", "--workers", "2")
    assert (done.returncode, done.stderr) == (2, "gmlr: --ray-address and --workers are for --engine ray\n")
    for settings, message in [
        ({"workers": 0}, "workers is 0; expected 1 or more"),
        ({"batch_size": 0}, "batch_size is 0"),
        ({"confidence": 2.0}, "expected a confidence above 0.5"),
    ]:
        with pytest.raises(DataError, match=message):
            next(predict_on_ray(model, [folder / "new.csv"], **settings))

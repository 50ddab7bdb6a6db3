"""Cells: names, plans, trainings in real processes that are killed and shared."""

import json
import os
import signal
import subprocess
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from typer.testing import CliRunner

from gaussianmlr import DataError, load
from gaussianmlr.cli.main import app
from gaussianmlr.data import Digits, RankedMNIST, adjusting_sequences, calibration_set, load_digits
from gaussianmlr.data.ranked_mnist.digits import describe_digits
from gaussianmlr.methods import make
from gaussianmlr.model.recipe import Recipe
from gaussianmlr.paper.canvas import open_canvases
from gaussianmlr.paper.cells import METRICS, Cell, is_landed, read_cells, recipe_of, write_cell
from gaussianmlr.paper.places import Places, Sources
from gaussianmlr.paper.plans import FIGURES, TABLES, cells_of, plan
from gaussianmlr.paper.run import run_cell
from gaussianmlr.paper.values import read_values
from gaussianmlr.training.epochs import for_training
from support.commanding import ENVIRONMENT, command, gmlr

pytestmark = pytest.mark.slow

FACTS = {"metrics": dict.fromkeys(METRICS, 50.0), "images_seen": 1, "seconds": 1.0, "probes": {}}


def naive(scores, ranks):
    """Hamming loss, Max-1 error and F1 in percent, by their definitions."""
    said, true = scores > 0, ranks > 0
    best = scores.argmax(1)
    f1 = 2 * (said & true).sum() / (said.sum() + true.sum())
    return 100 * (said != true).mean(), 100 * (~true[np.arange(len(true)), best]).mean(), 100 * f1


@pytest.fixture(scope="module")
def landed(tmp_path_factory):
    places = Places(tmp_path_factory.mktemp("work"), tmp_path_factory.mktemp("results"))
    cell = Cell("gray-s", "crpc", "strong", "smoke")
    assert run_cell(cell, places, Sources("embedded")) == "landed"
    return cell, places


def test_a_cell_keeps_scores_and_ranks_of_its_test_images(landed):
    """In the order of the images, as its model says them; and versions, processor and commit."""
    cell, places = landed
    found = read_cells(places.cells)
    model = load(places.run(cell) / "model")
    batch = RankedMNIST("gray-s", "test", size=24, digits="embedded").batch(range(24))
    for one, vote in zip(cell.readings, ("correct", "published")):
        model.method = make("crpc", vote=vote)
        values = read_values(places.cells, found[one])
        assert (values.ranks == batch.ranks).all()
        np.testing.assert_allclose(values.scores, model.read(batch.images).scores, rtol=1e-3, atol=1e-6)
        positives = [
            stats.kendalltau(score[rank > 0], rank[rank > 0]).statistic
            for score, rank in zip(values.scores, batch.ranks)
            if (rank > 0).sum() > 1
        ]
        assert found[one]["metrics"]["positives_tau"] == pytest.approx(100 * np.mean(positives), abs=1e-3)
    assert {"scipy", "kornia", "efficientnet-lite-pytorch"} <= set(found[cell]["versions"])
    assert found[cell]["machine"]["processor"]
    file = places.cells / found[cell]["values"]["file"]
    whole = file.read_bytes()
    file.write_bytes(whole[:-1] + b"x")
    with pytest.raises(DataError, match="its checksum is wrong"):
        read_values(places.cells, found[cell])
    file.write_bytes(whole)


def test_weak_twins_are_trained_once_and_tested_on_both_orders(tmp_path):
    places = Places(tmp_path / "work", tmp_path / "results")
    cell = Cell("gray-b-mix", "gmlr", "weak", "smoke")
    assert run_cell(cell, places, Sources("embedded")) == "landed"
    found = read_cells(places.cells)
    assert {one.dataset for one in found} == {"gray-s-mix", "gray-b-mix"}
    assert [one.name for one in places.work.iterdir() if one.is_dir()] == [cell.training.name]
    assert found[cell]["data"]["trained_on"] == "gray-s-mix"
    assert found[cell]["recipe"]["select"] == "loss"  # neither order chooses the epoch
    scale, brightness = (
        read_values(places.cells, found[Cell(name, "gmlr", "weak", "smoke")])
        for name in ("gray-s-mix", "gray-b-mix")
    )
    assert (scale.scores == brightness.scores).all()
    for name, values in (("gray-s-mix", scale), ("gray-b-mix", brightness)):
        images = RankedMNIST(name, "test", size=24, digits="embedded").batch(range(24))
        assert (values.ranks == images.ranks).all()
    assert ((scale.ranks > 0) == (brightness.ranks > 0)).all()
    assert (scale.ranks != brightness.ranks).any()
    assert found[cell]["probes"]["adjusting"] != found[cell.training]["probes"]["adjusting"]
    # A strong method learns another order of each.
    assert Cell("gray-b-mix", "gmlr", "strong", "smoke").training.dataset == "gray-b-mix"


def test_cells_without_values_are_run_again_if_asked(landed, tmp_path):
    cell, places = landed
    elsewhere = Places(places.work, tmp_path)
    for one, facts in read_cells(places.cells).items():
        kept = {name: part for name, part in facts.items() if name not in ("values", "sha256")}
        write_cell(elsewhere.cells, one, kept)
    assert is_landed(cell, elsewhere.cells)
    assert run_cell(cell, elsewhere, Sources("embedded")) == "there"
    assert run_cell(cell, elsewhere, Sources("embedded"), with_values=True) == "landed"
    assert is_landed(cell, elsewhere.cells, with_values=True)
    again = {one.name: facts["metrics"] for one, facts in read_cells(elsewhere.cells).items()}
    assert again == {one.name: facts["metrics"] for one, facts in read_cells(places.cells).items()}


def test_one_training_lands_all_readings(landed):
    """Both votes come from one network, and their numbers are those of naive formulas."""
    cell, places = landed
    assert run_cell(cell, places, Sources("embedded")) == "there"
    found = read_cells(places.cells)
    assert set(found) == set(cell.readings)
    assert [one.name for one in places.work.iterdir() if one.is_dir()] == [cell.name]
    model = load(places.run(cell) / "model")
    batch = RankedMNIST("gray-s", "test", size=24, digits="embedded").batch(range(24))
    for one, vote in zip(cell.readings, ("correct", "published")):
        model.method = make("crpc", vote=vote)
        scores = model.read(batch.images).scores.numpy()
        measured = [found[one]["metrics"][name] for name in ("hamming_loss", "max1_error", "f1")]
        np.testing.assert_allclose(measured, naive(scores, batch.ranks), atol=1e-3)
        assert found[one]["recipe"]["method_settings"].get("vote", "correct") == vote
    facts = found[cell]
    assert facts["images_seen"] == 32
    assert facts["versions"]["torch"]
    assert facts["seconds"] > 0
    assert facts["commit"] is None or len(facts["commit"].split()[0]) == 40
    assert str(places.work) not in json.dumps(facts)


def test_a_cell_keeps_what_figures_show(landed):
    """The usual reading alone, and the numbers are those of its model on the probes."""
    cell, places = landed
    usual, published = (read_cells(places.cells)[one] for one in cell.readings)
    assert "probes" not in published
    model = load(places.run(cell) / "model")
    probe = adjusting_sequences("gray-s", count=2, frames=6, digits="embedded")
    scores = np.stack([model.read(probe[i]).scores[:, probe.labels[i]].double().numpy() for i in range(2)])
    kept = usual["probes"]["adjusting"]
    np.testing.assert_allclose(kept["mean"], scores.mean(0), atol=1e-4)
    np.testing.assert_allclose(kept["deviation"], scores.std(0), atol=1e-4)
    np.testing.assert_allclose(kept["first"], scores[0], atol=1e-4)
    images = calibration_set("gray-s", count=8, digits="embedded")
    four = np.stack([model.read(images[i]).scores[0, images.labels[i]].double().numpy() for i in range(8)])
    np.testing.assert_allclose(usual["probes"]["calibration"]["raw"]["means"], four.mean(0), atol=1e-4)
    np.testing.assert_allclose(usual["probes"]["calibration"]["raw"]["stds"], four.std(0, ddof=1), atol=1e-4)
    test = RankedMNIST("gray-s", "test", digits="embedded")
    for said in usual["probes"]["bars"]["images"]:
        batch = test.batch([said["image"]])
        votes = np.array(said["values"]) - np.array(said["thresholds"])
        np.testing.assert_allclose(votes, model.read(batch.images).scores[0], atol=2e-4)
        assert said["true"] == test.texts(batch.ranks)[0]


def test_a_killed_cell_goes_on_and_two_processes_never_share_one(tmp_path):
    """kill -9 in the third epoch; the end is that of a run nobody disturbed, to the last bit."""
    cell = Cell("gray-s", "gmlr", "strong", "smoke", settings=("epochs=6",), images=192)
    words = ["reproduce", "cell", "gray-s", "gmlr", "strong", "--preset", "smoke", "--digits", "embedded"]
    words += ["--set", "epochs=6", "--images", 192, "--work", tmp_path / "a", "--results", tmp_path / "r"]
    with subprocess.Popen(
        command(*words), stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, env=ENVIRONMENT
    ) as first:
        for line in first.stderr:
            if line.startswith("epoch   1"):
                break
        os.kill(first.pid, signal.SIGSTOP)  # it holds the cell while the other one tries
        other = gmlr(*words)
        assert "running in another process" in other.stderr
        assert f"not run: {cell.name}" in other.stderr
        os.kill(first.pid, signal.SIGKILL)
    assert not list((tmp_path / "r").glob("cells/*.json"))
    again = gmlr(*words)
    assert again.returncode == 0, again.stderr
    assert "resuming at" in again.stderr
    places = Places(tmp_path / "b", tmp_path / "q")
    assert run_cell(cell, places, Sources("embedded")) == "landed"
    undisturbed, resumed = read_cells(tmp_path / "q/cells")[cell], read_cells(tmp_path / "r/cells")[cell]
    assert resumed["metrics"] == undisturbed["metrics"]
    assert resumed["images_seen"] == undisturbed["images_seen"] == 192
    weights = [
        (folder / cell.name / "model/model.safetensors").read_bytes()
        for folder in (tmp_path / "a", places.work)
    ]
    assert weights[0] == weights[1]


def test_a_finished_model_is_measured_without_training_again(landed, tmp_path):
    cell, places = landed
    elsewhere = Places(places.work, tmp_path)
    before = (places.run(cell) / "model/model.safetensors").stat().st_mtime_ns
    assert run_cell(cell, elsewhere, Sources("embedded")) == "landed"
    assert (places.run(cell) / "model/model.safetensors").stat().st_mtime_ns == before
    found, known = read_cells(elsewhere.cells), read_cells(places.cells)
    assert {one: facts["metrics"] for one, facts in found.items()} == {
        one: facts["metrics"] for one, facts in known.items()
    }


def test_images_never_repeat_and_seeds_differ():
    cell = Cell("gray-s", "gmlr", "strong", "cpu", images=40)
    recipe = recipe_of(cell).replace(epochs=4)
    data = open_canvases(cell, recipe, "embedded")
    assert len(data.train) == 10
    drawn = for_training(data.train, recipe)
    seen = [drawn.tensors_at(range(10), epoch)[0].numpy().tobytes() for epoch in range(4)]
    assert len(set(seen)) == 4
    other = open_canvases(cell.at(seed=1), recipe, "embedded")
    assert other.train.tensors(range(10))[0].numpy().tobytes() not in seen
    assert (data.test.batch([5]).images == other.test.batch([5]).images).all()
    assert (data.validation.batch([5]).images == other.validation.batch([5]).images).all()


def test_stages_share_the_images():
    cell = Cell("gray-s", "lsep", "strong", "cpu", images=40)
    recipe = recipe_of(cell)
    assert (recipe.epochs, recipe.later_epochs) == (7, 1)
    assert len(open_canvases(cell, recipe, "embedded").train) * 8 == 40


def test_the_papers_images_repeat_and_share_digits():
    cell = Cell("color-b", "lsep", "weak", "paper", seed=2)
    recipe = recipe_of(cell)
    data = open_canvases(cell, recipe, "embedded")
    assert (len(data.train), len(data.validation), len(data.test)) == (60_000, 10_000, 10_000)
    assert for_training(data.train, recipe) is data.train
    assert data.train.seed == 0
    assert data.train.shared_digits


def test_digits_are_known_by_sum_not_by_place():
    digits = load_digits("test", "embedded")
    moved = Digits(digits.images, digits.labels, "from /some/where")
    assert describe_digits(moved, "test")["md5"] == describe_digits(digits, "test")["md5"]
    assert "/" not in json.dumps(describe_digits(moved, "test"))


def test_cells_on_disk(tmp_path):
    cell = Cell("gray-b", "gmlr", "strong", "cpu", 3, ("rate=0.001", "head=linear"), 128_000)
    write_cell(tmp_path, cell, FACTS)
    assert cell.name == "gray-b_gmlr-strong_cpu_seed3_head-linear_rate-0.001_images-128000"
    assert list(read_cells(tmp_path)) == [cell]
    (tmp_path / f"{cell.name}.json").rename(tmp_path / "other.json")
    with pytest.raises(DataError, match="expected a file of that name"):
        read_cells(tmp_path)
    (tmp_path / "other.json").write_text("{}")
    with pytest.raises(DataError, match="dataset: Field required"):
        read_cells(tmp_path)
    (tmp_path / "other.json").write_text("{")
    with pytest.raises(DataError, match=r"other\.json is not a cell: .*; remove it to run it again"):
        read_cells(tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"dataset": "gray"}, "no data set 'gray'"),
        ({"method": "svm"}, "no method 'svm'"),
        ({"supervision": "some"}, "supervision"),
        ({"preset": "gpu"}, "no preset 'gpu'"),
        ({"reading": "vote=published"}, "no reading"),
        ({"seed": -1}, "expected 0 or more"),
    ],
)
def test_impossible_cells(change, message):
    with pytest.raises(DataError, match=message):
        Cell(**{"dataset": "gray-s", "method": "gmlr", "supervision": "strong", "preset": "cpu", **change})


def test_committed_cells_are_what_their_presets_give():
    """A cell that a later preset would train otherwise must be run again, or be named a variant."""
    cells = read_cells(Path(__file__).parents[2] / "results" / "cells")
    assert cells
    for cell, facts in cells.items():
        kept, wanted = Recipe.from_dict(facts["recipe"]), recipe_of(cell)
        methods = [make(one.method, **one.method_settings) for one in (kept, wanted)]
        assert methods[0] == methods[1], cell.name
        assert kept.replace(method_settings={}) == wanted.replace(method_settings={}), cell.name


def test_plans_name_every_cell_once(tmp_path):
    cells = plan((*TABLES, *FIGURES), "cpu")
    names = [cell.name for cell in cells]
    assert len(names) == len(set(names))
    for what in (*TABLES, *FIGURES):
        assert {cell.training for cell in cells_of(what, "cpu")} <= set(cells)
    assert {cell.dataset for cell in cells_of("gray", "cpu")} == {
        "gray-s",
        "gray-b",
        "gray-s-mix",
        "gray-b-mix",
    }
    assert len(cells_of("color", "cpu", seeds=3)) == 72
    assert not any(is_landed(cell, tmp_path) for cell in cells)
    for one in cells[0].readings:
        write_cell(tmp_path, one, FACTS)
    assert [cell for cell in cells if is_landed(cell, tmp_path)] == cells[:1]


def test_plan_on_the_command_line(tmp_path):
    write_cell(tmp_path / "cells", Cell("gray-s", "gmlr", "strong", "cpu"), FACTS)
    words = [
        "reproduce",
        "gray",
        "--plan",
        "--json",
        "--results",
        str(tmp_path),
        "--work",
        str(tmp_path / "w"),
    ]
    shown = CliRunner().invoke(app, words)
    found = json.loads(shown.stdout)
    states = found["cells"]
    assert states.pop("gray-s_gmlr-strong_cpu_seed0") == {"state": "bare", "seconds": None}
    assert {one["state"] for one in states.values()} == {"missing"}
    # 36 cells of the table, less those of the twin that shares its weak training with gray-s-mix.
    assert len(states) == 36 - 3 - 1
    # The one cell that ran took a second for one image.
    assert found["seconds_left"] == 64_000 * len(states)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["gray", "--images", "5"], "are for one cell"),
        (["grey"], "nothing is named 'grey'; known are all, cells, tables, figures, gray"),
        (["cell", "nsid", "gmlr", "strong"], "needs its pictures: give --nsid FOLDER"),
        (["cell", "gray-s", "gmlr", "strong", "--set", "rat=1"], "no field 'rat' in a recipe"),
        (["cell", "gray-s", "gmlr", "strong", "--seed", "99999999999"], "seed is 99999999999; expected less"),
    ],
)
def test_what_cannot_be_reproduced_is_said_and_leaves_nothing(words, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError, match=message):
        raise CliRunner().invoke(app, ["reproduce", *words]).exception
    assert not list(tmp_path.iterdir())

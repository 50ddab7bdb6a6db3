"""`gmlr train`, `evaluate` and `info`: in real processes for the main paths, inside for the errors."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from PIL import Image
from typer.testing import CliRunner

from gaussianmlr.cli.main import app
from gaussianmlr.errors import DataError
from gaussianmlr.inference.matching import open_origin
from gaussianmlr.model.model import load
from gaussianmlr.model.recipe import Recipe
from gaussianmlr.model.settings import recipe_of
from gaussianmlr.training.origin import read_origin
from support.commanding import ENVIRONMENT, LABELS, command, gmlr, make_table

pytestmark = pytest.mark.slow

QUICK = ("--epochs", "40", "--set", "batch_size=16", "--set", "backbone_settings.norm=batch")


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    file = tmp_path_factory.mktemp("data") / "table.csv"
    make_table().to_csv(file, index=False)
    return file


@pytest.fixture(scope="module")
def run(table, tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "whole"
    done = gmlr("train", table, "--out", out, *QUICK)
    assert done.returncode == 0, done.stderr
    return out, done


def inside(*arguments):
    """The command in this process: its result, and the message of what went wrong."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    return result, str(result.exception)


def weights(run):
    return json.loads((run / "model" / "config.json").read_text())["weights_sha256"]


def test_training_says_what_it_does(run):
    out, done = run
    assert "no validation split: 24 of 120 training instances are held out" in done.stderr
    assert "epoch   1" in done.stderr
    assert "no improvement for 15 epochs: stopping early" in done.stderr
    assert "tau-b" in done.stdout
    assert f"model: {out / 'model'}" in done.stdout
    assert "\x1b" not in done.stdout + done.stderr  # a pipe is no terminal


def test_who_trains_pictures_from_nothing_is_told_of_the_preset(table, tmp_path):
    lines = ["image,ranking"]
    for number in range(6):
        Image.new("L", (32, 32), 40 * number).save(tmp_path / f"{number}.png")
        lines.append(f"{number}.png,sky > sea")
    (tmp_path / "manifest.csv").write_text("\n".join(lines))
    arguments = ("--epochs", 1, "--image-size", 32, "--set", "head=linear")
    result, _ = inside("train", tmp_path, "--out", tmp_path / "run", *arguments)
    assert "learns these pictures from scratch; --preset cpu uses pretrained ones" in result.output
    result, _ = inside("train", table, "--out", tmp_path / "table", "--epochs", 1)
    assert "--preset" not in result.output


def test_pictures_come_at_the_size_of_the_backbone(tmp_path, monkeypatch):
    """A backbone made for 48 x 48 gets that, and its model keeps it; an option says otherwise."""
    (tmp_path / "small_backbone.py").write_text(
        "from gaussianmlr.nn.backbones.base import Inputs\n"
        "from gaussianmlr.nn.backbones.fast import Fast\n"
        "class Small(Fast):\n"
        "    def __init__(self, channels=3):\n"
        "        super().__init__(channels, widths=(4, 4), blocks=(1,))\n"
        "        self.inputs = Inputs.of_values(channels, 'unit', size=48)\n"
        "def gray(channels=1):\n"
        "    from torch import nn\n"
        "    return nn.Sequential(nn.Conv2d(1, 4, 9, 8), nn.AdaptiveAvgPool2d(1), nn.Flatten())\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "pictures").mkdir()
    lines = ["image,ranking"]
    for number in range(6):
        Image.new("RGB", (64, 40), (40 * number, 0, 9)).save(tmp_path / "pictures" / f"{number}.png")
        lines.append(f"{number}.png,sky > sea")
    (tmp_path / "pictures" / "manifest.csv").write_text("\n".join(lines))
    arguments = ("--epochs", 1, "--backbone", "small_backbone:Small", "--set", "head=linear", "--quiet")
    gray = ("--backbone", "small_backbone:gray", "--channels", 1)
    for name, extra, side in (("own", (), 48), ("said", ("--image-size", 32), 32), ("gray", gray, 224)):
        inside("train", tmp_path / "pictures", "--out", tmp_path / name, *arguments, *extra)
        mine = sys.modules["small_backbone"]
        model = load(tmp_path / name / "model", register=[mine.Small, mine.gray])
        assert model.inputs["size"] == [side, side]


def test_a_killed_run_goes_on_to_the_same_weights(run, table, tmp_path):
    whole, _ = run
    arguments = command("train", table, "--out", tmp_path / "run", *QUICK)
    process = subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("epoch   2"):
            break
    process.send_signal(signal.SIGKILL)
    process.wait(60)
    process.stderr.close()
    assert not (tmp_path / "run" / "model").exists()
    again = gmlr("train", table, "--out", tmp_path / "run", *QUICK, "--json")
    assert again.returncode == 0, again.stderr
    assert "resuming at stage 1, epoch" in again.stderr
    assert json.loads(again.stdout)["metrics"]["tau_b"] > 0.5
    assert weights(tmp_path / "run") == weights(whole)


def test_control_c_stops_with_everything_saved(table, tmp_path):
    arguments = command("train", table, "--out", tmp_path / "run", *QUICK, "--epochs", "5000")
    process = subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("epoch   2"):
            break
    time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    rest = process.stderr.read()
    assert process.wait(60) == 130
    process.stderr.close()
    assert f"stopped; the same command resumes from {tmp_path / 'run'}" in rest
    result, _ = inside("info", tmp_path / "run")
    assert "not finished" in result.stdout


def test_evaluate_in_a_pipe(run, table):
    shown = gmlr("evaluate", run[0], table)
    assert shown.returncode == 0, shown.stderr
    assert "test, 40 instances" in shown.stdout
    assert "tau-b" in shown.stdout


def test_evaluate_agrees_with_training(run, table):
    result, _ = inside("evaluate", run[0] / "model", table, "--split", "validation", "--json")
    found = json.loads(result.stdout)
    known = json.loads((run[0] / "model" / "config.json").read_text())["about"]["metrics"]
    assert found["instances"] == 24
    assert found["metrics"] == pytest.approx(known)
    assert found["metrics"]["tau_b"] > 0.5


def test_labels_that_are_listed(table, tmp_path):
    words = ("train", table, "--out", tmp_path / "run", "--epochs", "1", "--quiet")
    with pytest.raises(DataError, match=r"label 'sun' is not one of \['sea', 'sky'\]"):
        raise inside(*words, "--labels", "sea,sky")[0].exception
    assert not (tmp_path / "run").exists()
    listed = inside(*words, "--labels", "sea, sky, sun, moon")[0]
    assert listed.exit_code == 0, listed.exception
    model = load(tmp_path / "run" / "model")
    assert model.labels == ("sea", "sky", "sun", "moon")
    assert inside("evaluate", tmp_path / "run", table)[0].exit_code == 0
    part = open_origin(read_origin(tmp_path / "run"), model, tmp_path / "run")
    assert (part.split, len(part.data)) == ("validation", 24)


def test_a_size_is_for_what_is_drawn(run, table):
    with pytest.raises(DataError, match="--size is for Ranked MNIST"):
        raise inside("evaluate", run[0], table, "--size", "5")[0].exception


def test_a_method_of_ones_own_is_found_in_the_folder(tmp_path, table):
    (tmp_path / "mine.py").write_text("from gaussianmlr.methods.gmlr import Gmlr as Mine\n")
    gmlr_script = Path(sys.executable).with_name("gmlr")
    done = subprocess.run(
        [gmlr_script, "train", table, "--out", "run", "--method", "mine:Mine", "--epochs", "1", "--quiet"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env=ENVIRONMENT,
    )
    assert done.returncode == 0, done.stderr


def test_evaluate_says_how_far_probabilities_are_off(run, table):
    result, _ = inside("evaluate", run[0], table, "--split", "validation", "--json")
    found = json.loads(result.stdout)["calibration_error"]
    known = json.loads((run[0] / "model" / "config.json").read_text())["about"]["calibration_error"]
    assert {what: pytest.approx(errors) for what, errors in found.items()} == known
    assert found["pairs"]["before"] != found["pairs"]["after"]
    shown = inside("evaluate", run[0], table, "--split", "validation")[0].stdout
    error = known["pairs"]
    wanted = f"{100 * error['after']:.2f} ({100 * error['before']:.2f} without calibration)"
    assert f"calibration error of pairs: {wanted}" in shown


def test_labels_and_columns_are_matched_by_name(run, table, tmp_path):
    wanted, _ = inside("evaluate", run[0], table, "--json")
    frame = make_table()[["split", "d", "ranking", "b", "a", "c"]]
    frame.insert(0, "more", "x")
    frame.to_csv(tmp_path / "moved.csv", index=False)
    found, _ = inside("evaluate", run[0], tmp_path / "moved.csv", "--json")
    assert json.loads(found.stdout) == json.loads(wanted.stdout)
    only = make_table()
    only[only["ranking"] == "sky"].to_csv(tmp_path / "sky.csv", index=False)  # names one label of three
    found, _ = inside("evaluate", run[0], tmp_path / "sky.csv", "--split", "all", "--json")
    assert json.loads(found.stdout)["instances"] == (only["ranking"] == "sky").sum()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: f.drop(columns="d"), r"no feature columns \['d'\]; the columns are"),
        (lambda f: f.replace({"ranking": {"sky": "moon"}}), r"does not know the labels \['moon'\]"),
        (lambda f: f.assign(split="train"), "no split 'test'; it has train.*--split-column"),
    ],
)
def test_what_does_not_fit_the_model_is_named(run, tmp_path, change, message):
    change(make_table()).to_csv(tmp_path / "wrong.csv", index=False)
    with pytest.raises(DataError, match=message):
        raise inside("evaluate", run[0], tmp_path / "wrong.csv")[0].exception


def test_data_without_a_split_is_taken_whole_and_said(run, tmp_path):
    make_table(seed=5).drop(columns="split").to_csv(tmp_path / "new.csv", index=False)
    result, _ = inside("evaluate", run[0], tmp_path / "new.csv")
    assert "no split: all 160 instances are used" in result.stderr
    assert "looks better" not in result.stderr


def test_info(run):
    result, _ = inside("info", run[0] / "model", "--json")
    found = json.loads(result.stdout)
    assert found["labels"] == list(LABELS)
    assert found["inputs"]["columns"] == ["a", "b", "c", "d"]
    assert found["parameters"] > 1000
    result, _ = inside("info", run[0])
    assert "finished" in result.stdout
    assert "tau-b" in result.stdout


def test_a_place_without_a_model(tmp_path):
    wrong = gmlr("info", tmp_path / "nowhere")
    assert wrong.returncode == 2
    assert wrong.stderr.startswith("gmlr: no model at")
    assert "Traceback" not in wrong.stderr
    (tmp_path / "run.json").write_text("[]")
    assert "not a run of gaussianmlr" in inside("info", tmp_path)[1]
    assert "has no model yet" in inside("evaluate", tmp_path, "gray-s")[1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nothing.csv",), "nothing.csv: does not exist"),
        (("TABLE", "--set", "epoch=3"), "no field 'epoch' in a recipe; did you mean 'epochs'"),
        (("TABLE", "--set", "epochs"), "is not field=value"),
        (("TABLE", "--set", "rate.x=1"), "no field 'rate' that holds settings"),
        (("TABLE", "--method", "nonsense"), "no method 'nonsense'; known are"),
        (("TABLE", "--backbone", "nonsense"), "no backbone 'nonsense'"),
        (("TABLE", "--supervision", "half"), "takes supervision 'strong' or 'weak', not 'half'"),
        (("TABLE", "--recipe", "none.toml"), "none.toml: does not exist; expected a recipe"),
    ],
)
def test_what_cannot_be_trained_is_said(table, tmp_path, arguments, message):
    arguments = [table if argument == "TABLE" else argument for argument in arguments]
    result, said = inside("train", *arguments, "--out", tmp_path / "run", "--quiet")
    assert isinstance(result.exception, DataError)
    assert message in said


def test_a_folder_of_pictures_without_orders(tmp_path):
    (tmp_path / "photos" / "day 1").mkdir(parents=True)
    Image.new("RGB", (8, 8)).save(tmp_path / "photos" / "day 1" / "a.png")
    for words in (
        ("train", tmp_path / "photos", "--out", tmp_path / "run"),
        ("data", "check", tmp_path / "photos"),
    ):
        said = inside(*words)[1]
        assert "photos: pictures without orders; expected a table with columns image,ranking" in said
        assert f"gmlr annotate {tmp_path / 'photos'} --labels" in said


def test_a_recipe_file_changes_what_it_names(tmp_path):
    (tmp_path / "r.toml").write_text('epochs = 7\nmethod_settings = { supervision = "weak" }\n')
    base = Recipe(backbone="mlp", epochs=40)
    recipe = recipe_of(base, file=tmp_path / "r.toml", settings=["clip=none", "freeze=none"], seed=4)
    assert (recipe.backbone, recipe.epochs, recipe.seed, recipe.clip) == ("mlp", 7, 4, None)
    assert recipe.freeze == "none"
    assert recipe.method_settings == {"supervision": "weak"}
    assert recipe_of(recipe, method="lsep", supervision="strong").method_settings == {"supervision": "strong"}


@pytest.mark.parametrize("name", ["train", "evaluate", "predict", "export"])
def test_every_command_shows_an_example(name):
    result, _ = inside(name, "--help")
    assert result.exit_code == 0
    assert f"gmlr {name} " in result.stdout


def test_the_commands_are_listed():
    shown = gmlr("--help").stdout
    assert all(f" {name} " in shown for name in ("train", "evaluate", "predict", "export", "info"))


def test_two_processes_train_as_one_does(tmp_path):
    """Over gloo on loopback: 98 and 23 instances in batches of 10 shard unevenly.

    The MLP's layer norm sees instances one by one, so only the order of sums differs: metrics agree to 1e-4.
    """
    frame = make_table(121)
    frame["split"] = ["validation" if number < 23 else "train" for number in range(len(frame))]
    frame.to_csv(tmp_path / "table.csv", index=False)
    found = {}
    for devices in (1, 2):
        out = tmp_path / f"run{devices}"
        scale = ("--accelerator", "cpu", "--devices", devices)
        quick = ("--model", "network", "--epochs", 4, "--set", "batch_size=10", "--set", "rate=0.003")
        done = gmlr("train", tmp_path / "table.csv", "--out", out, *quick, *scale, "--json")
        assert done.returncode == 0, done.stderr
        assert done.stderr.count("epoch   4") == 1  # one process speaks
        found[devices] = json.loads(done.stdout)  # and one prints
        lines = (out / "epochs.csv").read_text().splitlines()
        found[devices]["epochs"] = [dict(zip(lines[0].split(","), line.split(","))) for line in lines[1:]]
    one, two = found[1], found[2]
    assert one["instances_seen"] == two["instances_seen"] == 4 * 98
    assert two["metrics"] == pytest.approx(one["metrics"], abs=1e-4)
    for measure in ("train_loss", "loss", "tau_b", "hamming_loss"):
        values = [[float(row[measure]) for row in each["epochs"]] for each in (one, two)]
        assert values[1] == pytest.approx(values[0], abs=1e-4)

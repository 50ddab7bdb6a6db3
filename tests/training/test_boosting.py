"""Boosted trees of a run: stopped after any round, they resume bit for bit; forged ones are refused."""

import json
import resource
import signal
import subprocess
import time

import numpy as np
import pytest
import torch

from gaussianmlr import DataError, load
from gaussianmlr._utils.progress import Watcher
from gaussianmlr._utils.seals import read_tensors, write_tensors
from gaussianmlr._utils.ubjson import read_ubjson
from gaussianmlr.data.loading import Arrays
from gaussianmlr.model.recipe import Recipe
from gaussianmlr.training.describe import describe
from gaussianmlr.training.kinds import fit_kinds
from gaussianmlr.training.run_folder import RunFolder
from gaussianmlr.training.trees import fit_trees
from support.commanding import ENVIRONMENT, command, gmlr, make_table
from support.ubj import ubj

pytestmark = pytest.mark.slow

LABELS = ("a", "b", "c")
INPUTS = {"kind": "table", "channels": 6}
RECIPE = Recipe(trees={"rounds": 14}, checkpoint_minutes=1e-6)


def make_rows(count, seed=0, gap=np.nan):
    x = np.random.default_rng(seed).normal(size=(count, 6)).astype(np.float32)
    x[::7, 4] = gap
    return Arrays(x, (x[:, :3] > 0) * (x[:, :3].argsort(1).argsort(1) + 1))


class Stop(Watcher):
    """Sends a signal to this process after a round."""

    def __init__(self, after):
        self.after, self.notes = after, []

    def rounds(self, done, total):
        if done == self.after:
            signal.raise_signal(signal.SIGINT)

    def note(self, text):
        self.notes.append(text)


def trees_of(folder, recipe=RECIPE, validation=True, watcher=None):
    run = RunFolder(folder, recipe, {"labels": list(LABELS), "fingerprint": "rows"})
    held = make_rows(50, 1) if validation else None
    model = fit_trees(recipe, make_rows(150), held, labels=LABELS, inputs=INPUTS, watcher=watcher, folder=run)
    return model.trees.files[0]


@pytest.mark.parametrize(
    ("settings", "validation"),
    [({}, True), ({"patience": 2, "rate": 1.0, "depth": 5}, True), ({"rounds": 112}, False)],
)
def test_stopped_after_any_round_they_resume_bit_for_bit(tmp_path, settings, validation):
    recipe = RECIPE.replace(trees=RECIPE.trees | settings)
    whole = trees_of(tmp_path / "whole", recipe, validation)
    stops = 0
    for after in (1, 2, 3, 6, 13):
        watcher = Stop(after)
        try:
            trees_of(tmp_path / "stopped", recipe, validation, watcher)
        except KeyboardInterrupt:
            stops += 1
            standing = json.loads(read_tensors(tmp_path / "stopped" / "trees.pt")[0]["standing"])
            assert standing["rounds"] == after
            assert "stopping after this round; again to stop at once" in watcher.notes
    watcher = Stop(0)
    assert trees_of(tmp_path / "stopped", recipe, validation, watcher) == whole
    assert stops > 2
    assert trees_of(tmp_path / "stopped", recipe, validation) == whole  # and is kept
    # Runs that keep nothing draw as one stream, and so are other trees of the same recipe.
    once = fit_trees(recipe, make_rows(150), make_rows(50, 1), labels=LABELS, inputs=INPUTS)
    assert once.trees.files[0] != whole


@pytest.mark.parametrize(("thresholds", "validation"), [("model", True), ("label", False)])
def test_with_ties_they_resume_bit_for_bit(tmp_path, thresholds, validation):
    """Their thresholds depend on the means of a round, so a stopped run has nothing else to keep."""
    settings = {"gauge": "canonical", "ties": "learned", "thresholds": thresholds}
    recipe = RECIPE.replace(
        method_settings=settings, trees={"rounds": 14 if validation else 112, "rate": 0.2}
    )
    rows, held = (Arrays(one.inputs, (one.ranks + 1) // 2) for one in (make_rows(300), make_rows(80, 1)))

    def train(name, watcher=None):
        run = RunFolder(tmp_path / name, recipe, {"labels": list(LABELS), "fingerprint": "rows"})
        return fit_trees(
            recipe,
            rows,
            held if validation else None,
            labels=LABELS,
            inputs=INPUTS,
            watcher=watcher,
            folder=run,
        )

    whole = train("whole")
    assert len(whole.trees.tau) == (1 if thresholds == "model" else 3)
    for after in (1, 2, 5, 11):
        with pytest.raises(KeyboardInterrupt):
            train("stopped", Stop(after))
    for again in (train("stopped"), train("stopped")):  # resumed, and kept
        assert again.trees.files[0] == whole.trees.files[0]
        assert torch.equal(again.trees.tau, whole.trees.tau)
        assert again.calibration == whole.calibration
        assert again.predict(held.inputs) == whole.predict(held.inputs)
    untied = fit_trees(
        recipe.replace(method_settings=settings | {"ties": "none"}),
        rows,
        held if validation else None,
        labels=LABELS,
        inputs=INPUTS,
        folder=RunFolder(tmp_path / "untied", recipe, {"labels": list(LABELS), "fingerprint": "rows"}),
    )
    assert untied.trees.files[0] != whole.trees.files[0]  # the threshold takes part in every round


def test_rounds_draw_rows_and_columns_differently(tmp_path):
    """With full steps and one tree per round, equal draws would split on equal columns."""
    forest = read_ubjson(trees_of(tmp_path, RECIPE.replace(trees={"rounds": 40, "depth": 1, "patience": 40})))
    trees = forest["learner"]["gradient_booster"]["model"]["trees"]
    assert len({int(tree["split_indices"][0]) for tree in trees}) >= 3
    assert len({float(tree["sum_hessian"][0]) for tree in trees}) > len(trees) // 2


def stopped(folder):
    with pytest.raises(KeyboardInterrupt):
        trees_of(folder, watcher=Stop(5))
    return read_tensors(folder / "trees.pt")[0]


def test_damaged_checkpoints_are_named(tmp_path):
    stopped(tmp_path)
    file = tmp_path / "trees.pt"
    whole = file.read_bytes()
    changed = bytearray(whole)
    changed[len(whole) // 2] ^= 1
    for damaged in (whole[:-5], bytes(changed), b"", bytes(len(whole))):
        file.write_bytes(damaged)
        with pytest.raises(DataError, match=r"trees\.pt, cannot be read: .*remove it to train them again"):
            trees_of(tmp_path)
        assert file.read_bytes() == damaged
    file.write_bytes(whole)
    found, _ = read_tensors(file)
    write_tensors(file, found | {"run": "0" * 64})
    with pytest.raises(DataError, match="it is of another run"):
        trees_of(tmp_path)
    write_tensors(file, found | {"trees": torch.zeros(1, dtype=torch.uint8).expand(1 << 40)})
    with pytest.raises(DataError, match="it holds no trees"):
        trees_of(tmp_path)
    for standing in ({"rounds": 6}, {"best": 9}, {"loss": "x"}, {"rounds": True}, {"more": 1}):
        write_tensors(file, found | {"standing": json.dumps(json.loads(found["standing"]) | standing)})
        with pytest.raises(DataError, match=r"trees\.pt, cannot be read"):
            trees_of(tmp_path)


def test_forged_checkpoints_do_not_reach_xgboost(tmp_path):
    """Trees with a right checksum that XGBoost would not have written for this run."""
    found = stopped(tmp_path)
    raw = found["trees"].numpy().tobytes()

    def forged(data):
        held = torch.frombuffer(bytearray(data), dtype=torch.uint8)
        write_tensors(tmp_path / "trees.pt", found | {"trees": held})
        with pytest.raises(DataError, match=r"trees\.pt, cannot be read: .*Nothing was changed"):
            trees_of(tmp_path)

    def model_of(value):
        return value["learner"]["gradient_booster"]["model"]

    def with_more(name, more):
        value = read_ubjson(raw)
        model_of(value)["trees"][1][name] = more(model_of(value)["trees"][1][name])
        return ubj(value)

    forged(with_more("left_children", lambda old: old + 1))
    forged(with_more("split_indices", lambda old: old + 6))
    forged(with_more("parents", lambda old: old[::-1].copy()))
    forged(with_more("leaf_weights", lambda old: old[:-3]))
    forged(with_more("base_weights", lambda old: old[:-3]))
    forged(with_more("sum_hessian", lambda old: old[:-1]))
    forged(with_more("categories", lambda old: np.arange(4, dtype=np.int32)))
    forged(with_more("default_left", lambda old: old + 2))
    forged(with_more("left_children", lambda old: np.where(old < 0, old - 4, old).astype(np.int32)))
    forged(with_more("split_type", lambda old: (old * 0 + 1).astype(np.uint8)))
    forged(with_more("id", lambda old: 7))
    forged(with_more("split_type", lambda old: old.tolist()))
    forged(with_more("tree_param", lambda old: old | {"num_nodes": "1000000000"}))
    for change in (
        lambda value: model_of(value).update(tree_info=[0, 0, 9, 0, 0]),
        lambda value: model_of(value).update(iteration_indptr=[0, 5, 9, 1, 2, 3]),
        lambda value: model_of(value)["gbtree_model_param"].update(num_trees="900000000"),
        lambda value: value["learner"]["objective"].update(name="rank:ndcg"),
        lambda value: value["learner"]["learner_model_param"].update(num_class="5"),
        lambda value: value["learner"]["attributes"].update(a="b"),
        lambda value: value.update(config={}),
        lambda value: model_of(value)["trees"].pop(),
    ):
        value = read_ubjson(raw)
        change(value)
        forged(ubj(value))
    forged(raw.replace(b"tree_info", b"tree_inf0"))
    name = ubj("name")[1:]
    forged(raw.replace(name, name + b"Z" + name, 1))  # twice
    forged(raw + b"\0")


def test_any_changed_byte_is_refused_or_read_as_a_number(tmp_path):
    """Numbers of leaves may be anything; whatever else is changed does not reach XGBoost."""
    found = stopped(tmp_path)
    raw, rng = found["trees"].numpy().tobytes(), np.random.default_rng(0)
    refused = 0
    for _ in range(150):
        data = bytearray(raw)
        data[int(rng.integers(len(raw)))] = int(rng.integers(256))
        held = torch.frombuffer(data, dtype=torch.uint8)
        write_tensors(tmp_path / "trees.pt", found | {"trees": held})
        try:
            trees_of(tmp_path)
        except DataError:
            refused += 1
    assert 30 < refused < 150


def test_a_comparison_resumes_and_leaves_nothing(tmp_path, monkeypatch):
    """With `auto`: the network of the comparison is not trained twice, and the choice is the same."""
    recipe = RECIPE.replace(model="auto", backbone="mlp", epochs=3)

    def run(folder, watcher=None):
        return fit_kinds(
            recipe,
            make_rows(150, gap=0),
            make_rows(50, 1, gap=0),
            labels=LABELS,
            inputs=INPUTS,
            out=folder,
            fingerprint="rows",
            accelerator="cpu",
            watcher=watcher,
        ).model

    whole = run(tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "stopped", Stop(5))
    compared = tmp_path / "stopped" / "comparison"
    assert (compared / "network" / "checkpoint.pt").is_file()
    assert (compared / "trees" / "trees.pt").is_file()
    assert not (tmp_path / "stopped" / "choice.json").exists()
    before = (compared / "network" / "epochs.csv").stat().st_mtime_ns
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "stopped", Stop(9))
    assert (compared / "network" / "epochs.csv").stat().st_mtime_ns == before
    again = run(tmp_path / "stopped")
    assert not compared.exists()
    chosen = [(tmp_path / name / "choice.json").read_text() for name in ("whole", "stopped")]
    assert chosen[0] == chosen[1]
    assert again.about["metrics"] == whole.about["metrics"]
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / "stopped" / "choice.json").unlink()
    compared.symlink_to(elsewhere)
    with pytest.raises(DataError, match="comparison is a link"):
        run(tmp_path / "stopped")
    assert list(elsewhere.iterdir()) == []


# Real processes

MANY = ("--model", "trees", "--set", "trees.rounds=400", "--set", "trees.patience=400", "--no-peers")
OFTEN = ("--set", "checkpoint_minutes=0.001")


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    file = tmp_path_factory.mktemp("data") / "hikes.csv"
    make_table(600).to_csv(file, index=False)
    return file


@pytest.fixture(scope="module")
def whole(table, tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole") / "run"
    done = gmlr("train", table, "--out", folder, *MANY)
    assert done.returncode == 0, done.stderr
    return (folder / "model" / "trees-0.ubj").read_bytes()


def begin(folder, *arguments):
    """A command whose trees have a checkpoint, and go on."""
    process = subprocess.Popen(command(*arguments), stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)
    deadline = time.monotonic() + 120
    while not (folder / "trees.pt").exists():
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return process


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGKILL, -9)]
)
def test_a_signal_while_trees_grow(table, whole, tmp_path, number, code):
    folder = tmp_path / "run"
    process = begin(folder, "train", table, "--out", folder, *MANY, *OFTEN)
    process.send_signal(number)
    said = process.communicate(timeout=120)[1]
    assert process.returncode == code, said
    assert "Traceback" not in said
    assert not (folder / "model").exists()
    if number != signal.SIGKILL:
        assert "stopping after this round" in said
        assert f"stopped; the same command resumes from {folder}" in said
    found = describe(folder)  # what `gmlr info` shows
    assert "not finished" in found["state"]
    assert 0 < found["rounds"] < 400
    again = gmlr("train", table, "--out", folder, *MANY)
    assert again.returncode == 0, again.stderr
    assert f"resuming trees at round {found['rounds'] + 1}" in again.stderr
    assert (folder / "model" / "trees-0.ubj").read_bytes() == whole
    assert load(folder / "model").kind == "trees"


def test_a_full_disk_while_trees_grow(table, whole, tmp_path):
    folder = tmp_path / "run"
    process = begin(folder, "train", table, "--out", folder, *MANY, *OFTEN)
    limit = (folder / "trees.pt").stat().st_size + 20_000
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    said = process.communicate(timeout=120)[1]
    assert process.returncode == 2, said
    assert "trees.pt: File too large; the same command resumes from the last checkpoint" in said
    assert "Traceback" not in said
    again = gmlr("train", table, "--out", folder, *MANY)
    assert again.returncode == 0, again.stderr
    assert "resuming trees at round" in again.stderr
    assert (folder / "model" / "trees-0.ubj").read_bytes() == whole

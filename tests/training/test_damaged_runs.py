"""Damaged runs, full disks and signals: a trained model is never lost or made worse."""

import contextlib
import hashlib
import json
import os
import resource
import shutil
import signal
import subprocess
import zipfile

import pytest
import torch

from gaussianmlr import DataError, load
from gaussianmlr._utils.progress import Watcher
from gaussianmlr._utils.seals import read_tensors, write_tensors
from gaussianmlr.data.loading import Arrays
from gaussianmlr.model.recipe import Recipe
from gaussianmlr.paper.cells import Cell, read_cells
from gaussianmlr.training.describe import describe
from gaussianmlr.training.fit import fit
from gaussianmlr.training.run_folder import RunFolder
from support.commanding import ENVIRONMENT, command, gmlr, make_table

pytestmark = pytest.mark.slow

LABELS = ("a", "b", "c")
RECIPE = Recipe(backbone="mlp", epochs=4, batch_size=16, rate=0.01)
QUICK = ("--preset", "smoke", "--set", "batch_size=32", "--epochs", "300", "--set", "workers=0")


def make_data(seed=0):
    x = torch.randn(96, 4, generator=torch.Generator().manual_seed(seed))
    return Arrays(x, (x[:, :3] > 0) * (x[:, :3].argsort(1).argsort(1) + 1))


def run(folder, recipe=RECIPE, **more):
    return fit(recipe, make_data(), make_data(1), labels=LABELS, out=folder, accelerator="cpu", **more)


class Cut(Watcher):
    """Raises when an epoch has ended."""

    def __init__(self, epoch, error=ConnectionError):
        self.epoch, self.error = epoch, error

    def end(self, row):
        if row["epoch"] == self.epoch:
            raise self.error("cut")


class Stop(Watcher):
    """Sends a signal to this process at a step."""

    def __init__(self, at):
        self.left = at

    def step(self, loss):
        self.left -= 1
        if self.left == 0:
            signal.raise_signal(signal.SIGINT)


@contextlib.contextmanager
def ends_within(seconds):
    """Turns a process that hangs, on a pipe for example, into an error."""

    def stop(*_):
        raise TimeoutError(f"still running after {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A finished run, one of another seed, one of another network, and an older best.pt of the first."""
    place = tmp_path_factory.mktemp("runs")
    with pytest.raises(ConnectionError):
        run(place / "run", watcher=Cut(1))
    shutil.copy(place / "run" / "best.pt", place / "first.pt")
    run(place / "run")
    run(place / "seed", RECIPE.replace(seed=5))
    run(place / "wide", RECIPE.replace(backbone_settings={"width": 7}))
    return place


@pytest.fixture
def folder(finished, tmp_path):
    shutil.copytree(finished / "run", tmp_path / "run")
    return tmp_path / "run"


def state(folder):
    """Every file of a run and its bytes."""
    return {
        str(file.relative_to(folder)): file.read_bytes()
        for file in sorted(folder.rglob("*"))
        if file.is_file() and file.name != ".lock"
    }


def weights(folder):
    return (folder / "model" / "model.safetensors").read_bytes()


def flip(file, at=0.5):
    data = bytearray(file.read_bytes())
    data[int(at * len(data))] ^= 4
    file.write_bytes(data)


def in_the_numbers(file):
    """Where the zip archive holds tensors: a bit there changes numbers and nothing else."""
    data = file.read_bytes()
    return (data.index(b"/data/0") + 200) / len(data)


DAMAGES = {
    "missing": (lambda file, place: file.unlink(), "it is missing"),
    "empty": (lambda file, place: file.write_bytes(b""), "it is empty"),
    "cut": (lambda file, place: file.write_bytes(file.read_bytes()[:-2000]), "cut or overwritten"),
    "its checksum cut off": (lambda file, place: file.write_bytes(file.read_bytes()[:-71]), "cut or overw"),
    "zeroed": (lambda file, place: file.write_bytes(bytes(file.stat().st_size)), "cut or overwritten"),
    "a bit": (lambda file, place: flip(file, in_the_numbers(file)), "its checksum is wrong"),
    "text": (lambda file, place: file.write_text("nonsense " * 99), "cut or overwritten"),
    "another seed": (lambda file, place: shutil.copy(place / "seed" / file.name, file), "of another run"),
    "another network": (lambda file, place: shutil.copy(place / "wide" / file.name, file), "of another run"),
}


@pytest.mark.parametrize("damage", [*DAMAGES, "another epoch", "plain"])
def test_damaged_best_weights_are_refused_and_the_model_stays(damage, finished, folder):
    best = folder / "best.pt"
    message = {"another epoch": "not the one that checkpoint.pt was written", "plain": "no checksum"}
    if damage in DAMAGES:
        DAMAGES[damage][0](best, finished)
    elif damage == "another epoch":
        shutil.copy(finished / "first.pt", best)
    else:
        torch.save(read_tensors(finished / "seed" / "best.pt")[0]["weights"], best)
    before = state(folder)
    with pytest.raises(
        DataError, match=r"run/best\.pt, cannot be used: .* remove .*checkpoint\.pt to"
    ) as error:
        run(folder)
    assert (message[damage] if damage in message else DAMAGES[damage][1]) in str(error.value)
    assert state(folder) == before
    (folder / "checkpoint.pt").unlink()  # what the message says
    run(folder)
    assert weights(folder) == weights(finished / "run")


@pytest.mark.parametrize("damage", [name for name in DAMAGES if name != "missing"])
def test_damaged_checkpoints_are_refused_and_the_model_stays(damage, finished, folder):
    spoil, message = DAMAGES[damage]
    spoil(folder / "checkpoint.pt", finished)
    before = state(folder)
    with pytest.raises(DataError, match=rf"run/checkpoint\.pt cannot be read: .*{message}.* remove it to"):
        run(folder)
    assert state(folder) == before
    if "another" not in damage:
        with pytest.raises(DataError, match=r"checkpoint\.pt cannot be read"):
            describe(folder)


@pytest.mark.parametrize("name", ["checkpoint.pt", "best.pt", "data.json", "epochs.csv", "recipe.toml"])
@pytest.mark.parametrize(("kind", "message"), [("pipe", "not a regular file"), ("link", "a link to")])
def test_what_is_no_file_of_the_run_is_neither_read_nor_written(kind, message, name, folder, tmp_path):
    """A pipe blocks whoever opens it; a link in a folder of somebody else may lead to any file."""
    own = tmp_path / "precious.txt"
    own.write_text("precious")
    (folder / name).unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(folder / name)
    else:
        (folder / name).symlink_to(own)
    before = weights(folder)
    with ends_within(20), pytest.raises(DataError, match=rf"{name} is {message}"):
        run(folder)
    assert own.read_text() == "precious"
    assert weights(folder) == before


def test_best_weights_are_needed_while_a_run_is_under_way(finished, tmp_path):
    """A later epoch may never be better: without them the run would end with a worse model."""
    with pytest.raises(ConnectionError):
        run(tmp_path, watcher=Cut(2))
    (tmp_path / "best.pt").unlink()
    with pytest.raises(DataError, match=r"best\.pt, cannot be used: it is missing"):
        run(tmp_path)


def test_a_run_killed_between_best_weights_and_checkpoint_resumes(finished, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        save, calls = RunFolder.save, []

        def fail(self, standing, found):
            calls.append(1)
            if len(calls) == 2:
                raise ConnectionError("the power went")
            save(self, standing, found)

        patch.setattr(RunFolder, "save", fail)
        with pytest.raises(ConnectionError):
            run(tmp_path)
    run(tmp_path)
    assert weights(tmp_path) == weights(finished / "run")


def as_before(folder):
    """Make the files of a run what they were before they had checksums."""
    found = read_tensors(folder / "checkpoint.pt")[0]
    standing = json.loads(found["standing"])
    del standing["best_sha256"]
    torch.save({"standing": json.dumps(standing), "state": found["state"]}, folder / "checkpoint.pt")
    torch.save(read_tensors(folder / "best.pt")[0]["weights"], folder / "best.pt")


@pytest.mark.parametrize("epoch", [1, 2, 3])
def test_runs_without_checksums_resume_bit_for_bit(epoch, finished, tmp_path):
    with pytest.raises(ConnectionError):
        run(tmp_path, watcher=Cut(epoch))
    as_before(tmp_path)
    run(tmp_path)
    assert weights(tmp_path) == weights(finished / "run")


@pytest.mark.parametrize("damage", ["none", "a bit", "another seed", "another network", "zeroed", "missing"])
def test_finished_runs_without_checksums(damage, finished, folder, tmp_path):
    as_before(folder)
    for name in ("seed", "wide"):
        shutil.copytree(finished / name, tmp_path / name)
        as_before(tmp_path / name)
    if damage == "none":
        run(folder)
        assert weights(folder) == weights(finished / "run")
        return
    DAMAGES[damage][0](folder / "best.pt", tmp_path)
    before = state(folder)
    with pytest.raises(DataError, match=r"run/best\.pt, (cannot be used|are not those that)"):
        run(folder)
    assert state(folder) == before


def test_a_damaged_model_is_made_anew_from_the_best_weights(finished, folder):
    flip(folder / "model" / "model.safetensors", 0.9)
    run(folder)
    assert weights(folder) == weights(finished / "run")


@pytest.mark.parametrize("steps", [3, 8])
def test_a_stopped_run_leaves_a_better_model_alone(steps, finished, folder):
    """Its checkpoint is gone, so it starts anew; stopped early, it has less to give."""
    (folder / "checkpoint.pt").unlink()
    before = {name: data for name, data in state(folder).items() if name.startswith("model/")}
    assert run(folder, watcher=Stop(steps)).result.interrupted
    after = state(folder)
    assert {name: after[name] for name in before} == before
    run(folder)
    assert weights(folder) == weights(finished / "run")


def test_a_stop_before_the_first_epoch_leaves_no_untrained_model(tmp_path):
    assert run(tmp_path, watcher=Stop(2)).result.interrupted
    assert not (tmp_path / "model").exists()
    assert run(tmp_path, watcher=Stop(9)).result.interrupted
    assert load(tmp_path / "model").about["images"] == 96 + 5 * 16


def test_a_folder_without_its_record_is_not_taken_over(folder):
    (folder / "run.json").unlink()
    before = state(folder)
    with pytest.raises(DataError, match=r"holds checkpoint\.pt, but no run\.json"):
        run(folder)
    assert state(folder) == before


def test_the_checksum_covers_all_bytes(tmp_path):
    file = tmp_path / "x.pt"
    digest = write_tensors(file, {"weight": torch.arange(6.0)})
    whole = file.read_bytes()
    assert torch.equal(torch.load(file, weights_only=True)["weight"], torch.arange(6.0))  # any tool reads it
    assert read_tensors(file)[1] == digest
    for at in {*range(0, len(whole), 7), *range(len(whole) - 100, len(whole))}:
        file.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with pytest.raises(ValueError, match=r"."):
            read_tensors(file)
        file.write_bytes(whole[:at])
        with pytest.raises(ValueError, match=r"."):
            read_tensors(file)


def test_compressed_checkpoints_are_refused_before_they_grow(tmp_path):
    """With a right checksum: a few kilobytes that would take 80 MB."""
    torch.save({"weights": torch.zeros(20_000_000)}, tmp_path / "plain.pt")
    file = tmp_path / "best.pt"
    with zipfile.ZipFile(tmp_path / "plain.pt") as plain, zipfile.ZipFile(file, "w", 8) as archive:
        for name in plain.namelist():
            archive.writestr(name, plain.read(name))
        archive.comment = b" " * 71
    data = file.read_bytes()[:-71]
    file.write_bytes(data + b"sha256:" + hashlib.sha256(data).hexdigest().encode())
    assert file.stat().st_size < 200_000
    with pytest.raises(ValueError, match="it would grow when it is read"):
        read_tensors(file)


def test_code_in_a_checkpoint_is_not_run(folder):
    class Evil:
        def __reduce__(self):
            return os.mkdir, (str(folder / "evil"),)

    write_tensors(folder / "checkpoint.pt", {"standing": Evil()})
    with pytest.raises(DataError, match=r"checkpoint\.pt cannot be read"):
        run(folder)
    assert not (folder / "evil").exists()


# Real processes


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    file = tmp_path_factory.mktemp("data") / "hikes.csv"
    make_table(120).to_csv(file, index=False)
    return file


@pytest.fixture(scope="module")
def whole(table, tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    done = gmlr("train", table, "--out", folder, *QUICK)
    assert done.returncode == 0, done.stderr
    return folder


def begin(line, *arguments):
    """A command of which a line that begins so has been said; what follows is left to be read."""
    process = subprocess.Popen(
        command(*arguments),
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        env=ENVIRONMENT,
        start_new_session=True,
    )
    for said in process.stderr:
        if said.startswith(line):
            return process
    raise AssertionError(f"it ended before it said {line!r}")


def end(process):
    rest = process.stderr.read()
    process.stderr.close()
    return rest, process.wait(120)


def leftovers(folder):
    return [file.name for file in folder.rglob(".*") if file.name not in (".lock",)]


def test_the_same_command_on_a_damaged_run_is_one_message(whole, table, tmp_path):
    shutil.copytree(whole, tmp_path / "run")
    (tmp_path / "run" / "best.pt").unlink()
    again = gmlr("train", table, "--out", tmp_path / "run", *QUICK)
    assert again.returncode == 2
    assert again.stderr.splitlines()[-1].startswith("gmlr: the best weights of the run, ")
    assert "Traceback" not in again.stderr
    assert weights(tmp_path / "run") == weights(whole)


def test_a_full_disk_is_one_message_and_the_same_command_resumes(whole, table, tmp_path):
    """From some epoch on, no file may grow beyond a limit; the system says so as it does of a full disk."""
    process = begin("epoch   2", "train", table, "--out", tmp_path / "run", *QUICK)
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (20_000, resource.RLIM_INFINITY))
    rest, code = end(process)
    assert code == 2
    assert "Traceback" not in rest
    [message] = [line for line in rest.splitlines() if not line.startswith("epoch ")]
    assert message.startswith("gmlr: cannot write ")
    assert message.endswith(".pt: File too large; the same command resumes from the last checkpoint")
    assert leftovers(tmp_path / "run") == []
    again = gmlr("train", table, "--out", tmp_path / "run", *QUICK)
    assert again.returncode == 0, again.stderr
    assert "resuming at stage 1, epoch" in again.stderr
    assert weights(tmp_path / "run") == weights(whole)


def test_sigterm_saves_and_the_same_command_resumes_bit_for_bit(whole, table, tmp_path):
    arguments = ("train", table, "--out", tmp_path / "run", *QUICK)
    process = begin("epoch   3", *arguments)
    process.send_signal(signal.SIGTERM)
    rest, code = end(process)
    assert code == 143, rest
    assert f"stopped; the same command resumes from {tmp_path / 'run'}" in rest
    assert "Traceback" not in rest
    assert load(tmp_path / "run" / "model").about["interrupted"]
    assert leftovers(tmp_path / "run") == []
    again = gmlr(*arguments)
    assert again.returncode == 0, again.stderr
    assert "resuming at stage 1, epoch" in again.stderr
    assert weights(tmp_path / "run") == weights(whole)


def test_a_signal_to_the_whole_group_ends_loading_processes_too(whole, table, tmp_path):
    """As service managers send it; the run may lose steps, never its last checkpoint."""
    arguments = ("train", table, "--out", tmp_path / "run", *QUICK)
    process = begin("epoch   2", *arguments, "--set", "workers=2")
    os.killpg(process.pid, signal.SIGTERM)
    rest, code = end(process)
    assert code == 143, rest
    assert "Traceback" not in rest
    again = gmlr(*arguments)
    assert again.returncode == 0, again.stderr
    assert weights(tmp_path / "run") == weights(whole)


def test_a_signal_before_training_ends_with_the_same_message(whole, table, tmp_path):
    arguments = ("train", table, "--out", tmp_path / "run", *QUICK)
    process = begin("gmlr on ", *arguments)
    process.send_signal(signal.SIGTERM)
    rest, code = end(process)
    assert (code, "Traceback" in rest) == (143, False), rest
    assert "the same command resumes from" in rest
    assert not (tmp_path / "run" / "model").exists()
    again = gmlr(*arguments)
    assert again.returncode == 0, again.stderr
    assert weights(tmp_path / "run") == weights(whole)


def test_sigterm_on_compare_resumes_to_the_same_cells(table, tmp_path):
    quick = ("--preset", "smoke", "--method", "gmlr,crpc", "--seeds", "1", "--epochs", "60")
    done = gmlr("compare", table, "--out", tmp_path / "whole", *quick)
    assert done.returncode == 0, done.stderr
    process = begin("[1/2] gmlr", "compare", table, "--out", tmp_path / "cut", *quick)
    process.send_signal(signal.SIGTERM)
    rest, code = end(process)
    assert code == 143, rest
    assert f"what is finished is kept, and the same command resumes from {tmp_path / 'cut'}" in rest
    again = gmlr("compare", table, "--out", tmp_path / "cut", *quick)
    assert again.returncode == 0, again.stderr
    assert "1 of 2 cells exist already" in again.stderr
    for name in ("gmlr-strong_seed0.json", "crpc-strong_seed0.json"):
        one, other = (json.loads((tmp_path / run / "cells" / name).read_text()) for run in ("whole", "cut"))
        assert one["tau_b"] == other["tau_b"]


def test_sigterm_on_reproduce_resumes_to_the_same_cell(tmp_path):
    cell = Cell("gray-s", "gmlr", "strong", "smoke", settings=("epochs=6",), images=192)
    words = ["reproduce", "cell", "gray-s", "gmlr", "strong", "--preset", "smoke", "--digits", "embedded"]
    words += ["--set", "epochs=6", "--images", 192]

    def places(name):
        return ["--work", tmp_path / name, "--results", tmp_path / f"{name}-results"]

    done = gmlr(*words, *places("whole"))
    assert done.returncode == 0, done.stderr
    process = begin("epoch   2", *words, *places("cut"))
    process.send_signal(signal.SIGTERM)
    rest, code = end(process)
    assert code == 143, rest
    assert "stopped; the same command resumes" in rest
    again = gmlr(*words, *places("cut"))
    assert again.returncode == 0, again.stderr
    assert "resuming at stage 1, epoch" in again.stderr
    one, other = (read_cells(tmp_path / f"{name}-results" / "cells")[cell] for name in ("whole", "cut"))
    assert one["metrics"] == other["metrics"]
    assert weights(tmp_path / "whole" / cell.name) == weights(tmp_path / "cut" / cell.name)
    # A damaged cell is named, not passed over or believed.
    file = tmp_path / "cut-results" / "cells" / f"{cell.name}.json"
    file.write_text(file.read_text().replace('"seconds": ', '"seconds": 1', 1))
    damaged = gmlr(*words, *places("cut"))
    assert damaged.returncode == 2
    assert f"{cell.name}.json is not a cell: its checksum is wrong" in damaged.stderr
    assert "remove it to run it again" in damaged.stderr

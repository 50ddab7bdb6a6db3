"""The engine: it learns, stops anywhere, resumes bit for bit, and shares work between processes."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

from gaussianmlr import DataError, methods
from gaussianmlr._utils.progress import Watcher
from gaussianmlr.data.loading import Arrays, batches, epoch_order
from gaussianmlr.model.model import build
from gaussianmlr.model.recipe import Recipe
from gaussianmlr.training.engine import train
from gaussianmlr.training.fit import fit
from gaussianmlr.training.run_folder import RunFolder
from support import training_run

pytestmark = pytest.mark.slow

SCRIPT = Path(training_run.__file__)


def start(*arguments, **settings):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONUNBUFFERED": "1"}
    return subprocess.Popen(
        [sys.executable, str(SCRIPT), *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment,
        **settings,
    )


def finish(process, timeout=240):
    output, _ = process.communicate(timeout=timeout)
    assert process.returncode == 0, output
    return output


def wait_for_steps(process, steps):
    seen = 0
    for line in process.stdout:
        seen += line.strip() == "step"
        if seen == steps:
            return
    raise AssertionError("the process ended before its time")


def weights(file):
    return torch.load(file, weights_only=True)


def same(one, other):
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


@pytest.mark.parametrize("name", methods.available())
def test_every_method_learns(name, tmp_path):
    result = training_run.run(name, None, epochs=8, average=None)
    assert not result.interrupted
    assert result.images == 8 * 200 * len(methods.make(name).stages)
    best = max(row["tau_b"] for row in result.history)
    assert best > 0.45
    assert min(row["hamming_loss"] for row in result.history) < 0.3


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
def test_runs_are_deterministic(optimizer):
    first, second = (training_run.run("gmlr", None, optimizer=optimizer) for _ in range(2))
    assert same(first.network.state_dict(), second.network.state_dict())
    other = training_run.run("gmlr", None, seed=1, optimizer=optimizer)
    assert not same(first.network.state_dict(), other.network.state_dict())


@pytest.mark.parametrize(("kill_after", "minutes"), [(5, "0"), (20, "5"), (60, "5")])
def test_a_killed_run_goes_on_bit_for_bit(kill_after, minutes, tmp_path):
    """LSEP has two stages of 4 epochs of 13 steps; checkpoints at every step, or at epochs' ends."""
    finish(start("lsep", tmp_path / "whole", tmp_path / "whole.pt", "--minutes", minutes))
    process = start("lsep", tmp_path / "cut", tmp_path / "cut.pt", "--minutes", minutes)
    wait_for_steps(process, kill_after)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert not (tmp_path / "cut.pt").exists()
    again = finish(start("lsep", tmp_path / "cut", tmp_path / "cut.pt", "--minutes", minutes))
    assert again.count("step") < 2 * 4 * 13  # it went on, it did not start anew
    whole, cut = weights(tmp_path / "whole.pt"), weights(tmp_path / "cut.pt")
    measured = [[(row["loss"], row["tau_b"]) for row in run["history"]] for run in (whole, cut)]
    assert measured[0] == measured[1]
    assert same(whole["state"], cut["state"])


def test_ctrl_c_saves_the_best_and_the_same_call_goes_on(tmp_path):
    finish(start("gmlr", tmp_path / "whole", tmp_path / "whole.pt"))
    process = start("gmlr", tmp_path / "cut", tmp_path / "cut.pt")
    wait_for_steps(process, 20)
    process.send_signal(signal.SIGINT)
    assert "interrupted" in finish(process)
    stopped = weights(tmp_path / "cut.pt")
    assert len(stopped["history"]) >= 1
    assert "finished" in finish(start("gmlr", tmp_path / "cut", tmp_path / "cut.pt"))
    assert same(weights(tmp_path / "whole.pt")["state"], weights(tmp_path / "cut.pt")["state"])


def test_muon_goes_on_bit_for_bit(tmp_path):
    class Stopping(training_run.Watcher):
        def __init__(self):
            self.steps = 0

        def step(self, loss):
            self.steps += 1
            if self.steps == 30:
                raise RuntimeError("the power went")

    whole = training_run.run("gmlr", tmp_path / "whole", optimizer="muon")
    with pytest.raises(RuntimeError, match="power"):
        training_run.run("gmlr", tmp_path / "cut", optimizer="muon", watcher=Stopping())
    again = training_run.run("gmlr", tmp_path / "cut", optimizer="muon")
    assert same(whole.network.state_dict(), again.network.state_dict())


def test_later_stages_may_be_shorter_and_go_on_bit_for_bit(tmp_path):
    class Stopping(Watcher):
        def begin(self, stage, epoch, epochs, steps, done):
            assert epochs == {"ranking": 3, "threshold": 2}[stage]
            if (stage, epoch) == ("threshold", 1):
                raise RuntimeError("power cut")

    recipe = {"epochs": 3, "later_epochs": 2}
    whole = training_run.run("lsep", tmp_path / "whole", **recipe)
    assert [row["stage"] for row in whole.history] == ["ranking"] * 3 + ["threshold"] * 2
    assert whole.history[2]["rate"] < 0.02 * whole.history[1]["rate"]  # every stage has a cycle of its own
    assert whole.history[4]["rate"] < 0.02 * whole.history[3]["rate"]
    with pytest.raises(RuntimeError):
        training_run.run("lsep", tmp_path / "cut", watcher=Stopping(), **recipe)
    again = training_run.run("lsep", tmp_path / "cut", **recipe)
    assert same(whole.network.state_dict(), again.network.state_dict())


def test_a_finished_run_is_not_run_again(tmp_path):
    first = training_run.run("gmlr", tmp_path / "run")
    second = training_run.run("gmlr", tmp_path / "run")
    assert second.images == first.images
    assert same(first.network.state_dict(), second.network.state_dict())


@pytest.mark.parametrize("name", ["gmlr", "lsep"])
def test_two_processes_do_the_same_as_one(name, tmp_path):
    """200 and 61 instances shard unevenly. Batch norm sees its share only, so the net goes without it."""
    script = tmp_path / "no_norm.py"
    text = SCRIPT.read_text().replace("nn.BatchNorm1d(32)", "nn.Identity()")
    script.write_text(text.replace("Dropout(0.2)", "Identity()"))
    results = []
    for processes in (1, 2):
        command = [sys.executable, str(script), name, "", str(tmp_path / f"{processes}.pt")]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        subprocess.run([*command, "--processes", str(processes)], check=True, timeout=240, env=environment)
        results.append(weights(tmp_path / f"{processes}.pt"))
    one, two = results
    for row, other in zip(one["history"], two["history"]):
        for measure in ("train_loss", "loss", "tau_b", "hamming_loss", "f1"):
            assert abs(row[measure] - other[measure]) < 1e-4, (measure, row, other)
    for key in one["state"]:
        assert torch.allclose(one["state"][key], two["state"][key], atol=1e-4)


def test_accumulation_does_not_change_the_step():
    class Plain(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleDict({name: nn.Linear(12, 5) for name in ("mu", "logvar")})

        def forward(self, x):
            return {name: layer(x) for name, layer in self.layers.items()}

    states = []
    for accumulate in (1, 3):
        torch.manual_seed(0)
        recipe = Recipe(epochs=2, batch_size=16, accumulate=accumulate)
        data = training_run.make_data(40, 1)
        states.append(train(Plain(), methods.make("gmlr"), recipe, data, None).network.state_dict())
    assert all(torch.allclose(states[0][key], states[1][key], atol=1e-5) for key in states[0])


def test_instances_of_no_weight_do_not_count():
    data, noise = training_run.make_data(64, 1), training_run.make_data(64, 7)
    both = Arrays(
        torch.cat([data.inputs, noise.inputs]),
        torch.cat([data.ranks, 1 - noise.ranks.clamp(max=1)]),
        torch.cat([torch.ones(64), torch.zeros(64)]),
    )
    result = training_run.run("gmlr", None, data=both, epochs=20, average=None)
    assert result.history[-1]["tau_b"] > 0.4


def test_one_ranker_is_drawn_an_epoch():
    ranks = torch.stack([torch.zeros(50, 2), torch.ones(50, 2), torch.full((50, 2), -1.0)], 1).long()
    data = Arrays(torch.zeros(50, 1), ranks)
    drawn = [data.tensors(range(50), epoch)[1] for epoch in range(3)]
    assert all(set(part.unique().tolist()) == {0, 1} for part in drawn)  # never the one who is missing
    assert not torch.equal(drawn[0], drawn[1])
    assert torch.equal(drawn[0], data.tensors(range(50), 0)[1])


def test_reliable_rankers_are_drawn_more_often():
    ranks = torch.stack([torch.full((3000, 2), float(ranker)) for ranker in range(3)], 1).long()
    ranks[:1500, 2] = -1
    plain = Arrays(torch.zeros(3000, 1), ranks)
    equal = Arrays(torch.zeros(3000, 1), ranks, shares=torch.full((3,), 0.7))
    assert torch.equal(plain.tensors(range(3000), 4)[1], equal.tensors(range(3000), 4)[1])
    drawn = Arrays(torch.zeros(3000, 1), ranks, shares=torch.tensor([1.0, 3.0, 4.0]))
    drawn = drawn.rows(torch.arange(3000)).tensors(range(3000), 4)[1][:, 0]
    for part, wanted in ((drawn[:1500], [1 / 4, 3 / 4, 0]), (drawn[1500:], [1 / 8, 3 / 8, 4 / 8])):
        found = torch.bincount(part, minlength=3) / 1500
        assert found.tolist() == pytest.approx(wanted, abs=0.05)  # four standard errors


@pytest.mark.parametrize("workers", [0, 2])
def test_shares_of_processes_make_up_the_batches(workers):
    data = Arrays(torch.arange(23)[:, None].float(), torch.zeros(23, 2).long())
    order = epoch_order(23, 0, 0, 0)
    shares = [list(batches(data, order, 10, rank=rank, world=3, workers=workers)) for rank in range(3)]
    whole = list(batches(data, order, 10))
    assert [batch.whole for batch in whole] == [10, 10, 3]
    for number, batch in enumerate(whole):
        together = torch.cat([share[number].inputs for share in shares])
        assert sorted(together.flatten().tolist()) == sorted(batch.inputs.flatten().tolist())
    assert sorted(torch.cat([b.inputs for b in whole]).flatten().tolist()) == list(range(23))
    later = list(batches(data, order, 10, first=2))
    assert torch.equal(later[0].inputs, whole[2].inputs)


def test_early_stopping_and_selection():
    settings = {"epochs": 60, "patience": 3, "average": None, "rate": 0.05, "schedule": "constant"}
    result = training_run.run("gmlr", None, **settings)
    assert len(result.history) < 60
    best = max(range(len(result.history)), key=lambda i: result.history[i]["tau_b"])
    assert len(result.history) == best + 1 + 3


def test_each_of_several_stages_is_chosen_by_its_own_loss():
    settings = {"epochs": 60, "patience": 3, "average": None, "rate": 0.05, "schedule": "constant"}
    history = training_run.run("lsep", None, **settings).history
    for stage in ("ranking", "threshold"):
        losses = [row["loss"] for row in history if row["stage"] == stage]
        assert len(losses) < 60
        assert len(losses) == min(range(len(losses)), key=losses.__getitem__) + 1 + 3
    taus = [row["tau_b"] for row in history if row["stage"] == "ranking"]
    assert taus.index(max(taus)) != len(taus) - 4  # which would have stopped elsewhere


@pytest.mark.parametrize("rise", [0.25, 0.75])
def test_the_rate_rises_for_as_long_as_the_recipe_says(rise):
    history = training_run.run("br", None, epochs=8, rate=0.01, rise=rise).history
    rates = [row["rate"] for row in history]
    assert rates.index(max(rates)) + 1 == round(8 * rise)
    assert max(rates) == pytest.approx(0.01, rel=0.01)


def test_a_folder_of_another_run_is_refused(tmp_path):
    RunFolder(tmp_path / "run", Recipe(rate=0.5), {"labels": 4})
    RunFolder(tmp_path / "run", Recipe(rate=0.1), {"labels": 5})  # nothing was trained yet
    (tmp_path / "run" / "epochs.csv").write_text("")
    with pytest.raises(DataError, match=r"holds a run with rate = 0\.1, not 0\.2"):
        RunFolder(tmp_path / "run", Recipe(rate=0.2), {"labels": 5})
    with pytest.raises(DataError, match="holds a run with labels = 5, not 6"):
        RunFolder(tmp_path / "run", Recipe(rate=0.1), {"labels": 6})
    (tmp_path / "run" / "run.json").write_text("{")
    with pytest.raises(DataError, match=r"is not a run of gaussianmlr|cannot be read as JSON"):
        RunFolder(tmp_path / "run", Recipe(), {})
    (tmp_path / "pictures").mkdir()
    (tmp_path / "pictures" / "me.jpg").write_text("")
    with pytest.raises(DataError, match=r"pictures is not empty and does not hold a run \(but 'me\.jpg'\)"):
        RunFolder(tmp_path / "pictures", Recipe(), {})
    assert [file.name for file in (tmp_path / "pictures").iterdir()] == ["me.jpg"]


def test_a_start_that_failed_does_not_bind_the_next(tmp_path):
    recipe, data, validation = small(epochs=1)
    with pytest.raises(
        DataError, match="the backbone 'fast' takes pictures, but the data are rows of numbers"
    ):
        fit(recipe.replace(backbone="fast"), data, validation, labels=("a", "b", "c"), out=tmp_path / "run")
    assert fit(recipe, data, validation, labels=("a", "b", "c"), out=tmp_path / "run").result.history


def test_a_rate_that_is_too_high_is_said(tmp_path):
    recipe, data, validation = small(epochs=2)
    with pytest.raises(DataError, match="lower the rate"):
        fit(recipe.replace(rate=1e30, clip=None), data, validation, labels=("a", "b", "c"))


def test_weights_of_which_none_counts_are_refused():
    recipe, data, validation = small(epochs=1)
    nothing = Arrays(data.inputs, data.ranks, torch.zeros(len(data)))
    with pytest.raises(DataError, match="all weights of the training instances are 0"):
        fit(recipe, nothing, validation, labels=("a", "b", "c"))


@pytest.mark.parametrize("seed", [-1, 1 << 32])
def test_seeds_are_what_generators_take(seed):
    with pytest.raises(DataError, match=f"seed is {seed}; expected"):
        Recipe(seed=seed)


def test_a_place_that_cannot_be_written_is_refused_before_work(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="cannot write to the folder"):
        RunFolder(tmp_path / "file" / "run", Recipe(), {})
    monkeypatch.setattr("shutil.disk_usage", lambda path: type("Usage", (), {"free": 1 << 20}))
    with pytest.raises(DataError, match="has 1 MB left; the run needs"):
        training_run.run("gmlr", tmp_path / "run")


def test_a_broken_checkpoint_is_named(tmp_path):
    training_run.run("gmlr", tmp_path / "run", epochs=1)
    (tmp_path / "run" / "checkpoint.pt").write_bytes(b"nonsense")
    with pytest.raises(
        DataError, match=r"checkpoint\.pt cannot be read: it was cut .* remove it to train again"
    ):
        training_run.run("gmlr", tmp_path / "run", epochs=1)


def test_what_a_run_leaves_behind(tmp_path):
    training_run.run("gmlr", tmp_path / "run", epochs=2)
    assert sorted(file.name for file in (tmp_path / "run").iterdir()) == [
        "best.pt",
        "checkpoint.pt",
        "epochs.csv",
        "recipe.toml",
        "run.json",
    ]
    assert Recipe.read(tmp_path / "run" / "recipe.toml").epochs == 2
    assert json.loads((tmp_path / "run" / "run.json").read_text())["data"] == {"labels": 5}
    lines = (tmp_path / "run" / "epochs.csv").read_text().splitlines()
    assert lines[0].startswith("stage,epoch,train_loss,rate,loss,tau_b,")
    assert len(lines) == 3


def test_nan_and_emptiness_are_named():
    data = training_run.make_data(32, 1)
    data.inputs[3, 2] = float("nan")
    with pytest.raises(DataError, match="the loss became NaN in epoch 1, step"):
        training_run.run("gmlr", None, data=data)
    with pytest.raises(DataError, match="at least one instance"):
        training_run.run("gmlr", None, data=Arrays(torch.zeros(0, 12), torch.zeros(0, 5).long()))


def small(**settings):
    """A run of a small network on a table, with dropout: what it draws is part of the result."""
    recipe = Recipe(backbone="mlp", batch_size=8, **settings)
    x = torch.randn(40, 3, generator=torch.Generator().manual_seed(0))
    return recipe, Arrays(x[:24], (x[:24] > 0).long()), Arrays(x[24:], (x[24:] > 0).long())


def test_processes_that_load_leave_random_numbers_alone():
    data = small()[1]
    states = []
    for workers in (0, 1):
        torch.manual_seed(3)
        list(batches(data, torch.arange(24), 8, workers=workers))
        states.append(torch.get_rng_state())
    assert torch.equal(*states)


def test_a_run_cut_at_the_end_of_its_patience_trains_no_further_epoch(tmp_path):
    recipe, data, validation = small(epochs=30, patience=1, rate=0.1, schedule="constant")

    class Cut(Watcher):
        def end(self, row):
            if row["epoch"] == len(whole.history):
                raise ConnectionError("cut")

    def run(folder, watcher=None):
        torch.manual_seed(0)
        network, method = build(recipe, 3, {"kind": "table", "channels": 3})
        where = RunFolder(tmp_path / folder, recipe, {})
        return train(network, method, recipe, data, validation, folder=where, watcher=watcher)

    whole = run("whole")
    assert 1 < len(whole.history) < 30
    with pytest.raises(ConnectionError):
        run("cut", Cut())
    assert len(run("cut").history) == len(whole.history)


def test_what_changes_no_result_may_change_between_two_parts_of_a_run(tmp_path):
    recipe = small()[0]
    RunFolder(tmp_path, recipe, {})
    (tmp_path / "epochs.csv").write_text("")
    RunFolder(tmp_path, recipe.replace(workers=2, checkpoint_minutes=1.0), {})
    with pytest.raises(DataError, match="rate = "):
        RunFolder(tmp_path, recipe.replace(rate=1.0), {})


@pytest.mark.parametrize("asked", [{"devices": 0}, {"devices": "two"}, {"accelerator": "abacus"}])
def test_devices_that_there_are_not_are_one_message(asked, tmp_path):
    recipe, data, validation = small(epochs=1)
    with pytest.raises(DataError, match=f"{next(iter(asked))} {next(iter(asked.values()))!r}"):
        fit(recipe, data, validation, labels=("a", "b", "c"), out=tmp_path / "run", **asked)
    assert not (tmp_path / "run").exists()

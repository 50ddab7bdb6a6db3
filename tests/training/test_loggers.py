"""Curves: real event files read record by record, the same rows as epochs.csv, once each after a cut."""

import csv
import struct

import pytest
import torch
from tensorboardX.proto.event_pb2 import Event
from typer.testing import CliRunner

from gaussianmlr import DataError
from gaussianmlr._utils.progress import Watcher
from gaussianmlr.cli.main import app
from gaussianmlr.data.loading import Arrays
from gaussianmlr.model.recipe import Recipe
from gaussianmlr.training.fit import fit
from gaussianmlr.training.loggers import Logs, open_loggers
from support.commanding import make_table

RECIPE = Recipe(method="lsep", backbone="mlp", epochs=3, batch_size=16)


def events(folder):
    """Scalars of all event files as (tag, step, value); a record is length, crc, data, crc."""
    found = []
    for file in sorted(folder.glob("events.out.tfevents.*")):
        data, at = file.read_bytes(), 0
        while at < len(data):
            (length,) = struct.unpack("<Q", data[at : at + 8])
            event = Event.FromString(data[at + 12 : at + 12 + length])
            found += [(value.tag, event.step, value.simple_value) for value in event.summary.value]
            at += 12 + length + 4
    return found


def table(file):
    with file.open() as lines:
        return list(csv.DictReader(lines))


def data_of(count=40):
    x = torch.randn(count, 3, generator=torch.Generator().manual_seed(0))
    return Arrays(x, (x > 0).long())


class Cut(Watcher):
    def __init__(self, epochs):
        self.left = epochs

    def end(self, row):
        self.left -= 1
        if self.left == 0:
            raise RuntimeError("power cut")


@pytest.mark.parametrize("cuts", [0, 2])
def test_tensorboard_has_the_rows_of_the_table_once(tmp_path, cuts):
    data, out = data_of(), tmp_path / "run"

    def go(watcher=None):
        loggers = open_loggers(["tensorboard", "csv"], out)
        return fit(RECIPE, data, data, labels=("a", "b", "c"), out=out, loggers=loggers, watcher=watcher)

    for _ in range(cuts):
        with pytest.raises(RuntimeError):
            go(Cut(1))
    go()
    go()  # a finished run logs nothing more
    found, rows = events(out / "tensorboard"), table(out / "epochs.csv")
    assert len(rows) == 6  # two stages of three epochs
    for column in ("train_loss", "loss", "tau_b", "rate", "images"):
        curve = sorted((step, value) for tag, step, value in found if tag == column)
        assert [step for step, _ in curve] == [1, 2, 3, 4, 5, 6]
        assert [value for _, value in curve] == pytest.approx([float(row[column]) for row in rows], rel=1e-6)


def test_a_cut_between_checkpoint_and_log_is_made_up_for(tmp_path, monkeypatch):
    data, out = data_of(), tmp_path / "run"
    write = Logs.write

    def cut(self, history):
        if len(history) == 2:
            raise RuntimeError("power cut")
        write(self, history)

    monkeypatch.setattr(Logs, "write", cut)
    with pytest.raises(RuntimeError):
        fit(RECIPE, data, data, labels=("a", "b", "c"), out=out, loggers=open_loggers(["tensorboard"], out))
    monkeypatch.setattr(Logs, "write", write)
    fit(RECIPE, data, data, labels=("a", "b", "c"), out=out, loggers=open_loggers(["tensorboard"], out))
    steps = [step for tag, step, _ in events(out / "tensorboard") if tag == "loss"]
    assert sorted(steps) == [1, 2, 3, 4, 5, 6]


def test_loggers_of_ones_own(tmp_path):
    from lightning.fabric.loggers import CSVLogger

    logger = CSVLogger(tmp_path, name="mine", version="0", flush_logs_every_n_steps=1)
    data = data_of()
    result = fit(RECIPE, data, data, labels=("a", "b", "c"), loggers=logger).result
    rows = table(tmp_path / "mine" / "0" / "metrics.csv")
    assert [float(row["loss"]) for row in rows] == [row["loss"] for row in result.history]


def test_from_the_command_line(tmp_path):
    make_table().to_csv(tmp_path / "table.csv", index=False)
    arguments = ["train", tmp_path / "table.csv", "--out", tmp_path / "run", "--epochs", 2, "--quiet"]
    done = CliRunner().invoke(app, [*map(str, arguments), "--log", "csv", "--log", "tensorboard"])
    assert done.exit_code == 0, done.output
    assert {tag for tag, _, _ in events(tmp_path / "run" / "tensorboard")} >= {"loss", "tau_b", "train_loss"}


@pytest.mark.parametrize("name", ["tensorboard", "mlflow", "wandb"])
def test_a_missing_package_is_said_before_anything_is_done(name, tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    arguments = ["train", "nowhere.csv", "--out", str(tmp_path / "run"), "--log", name]
    result = CliRunner().invoke(app, arguments)
    assert isinstance(result.exception, DataError)
    assert f"logging to {name} needs" in str(result.exception)
    assert "pip install" in str(result.exception)
    assert not (tmp_path / "run").exists()


def test_a_damaged_note_is_named(tmp_path):
    (tmp_path / "loggers.json").write_text("{")
    with pytest.raises(DataError, match=r"loggers\.json cannot be read"):
        Logs(None, tmp_path)

"""`gmlr tune`: real processes, some of them stopped; errors inside."""

import json
import signal
import subprocess

import pytest
from typer.testing import CliRunner

from gaussianmlr.cli.main import app
from gaussianmlr.model.recipe import Recipe
from support.commanding import ENVIRONMENT, command, gmlr, make_table

pytest.importorskip("optuna", reason="Optuna is not installed: pip install 'gaussianmlr[tune]'")

ASKED = ("--trials", "5", "--folds", "2", "--set", "model=network", "--epochs", "4", "--seed", "3")


@pytest.fixture
def table(tmp_path):
    file = tmp_path / "hikes.csv"
    make_table(120).to_csv(file, index=False)
    return file


def trials(rows):
    """All of the trials but their time."""
    return [{name: value for name, value in row.items() if name != "seconds"} for row in rows]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--workers", "2"], "--ray-address and --workers are for --engine ray"),
        (["--trials", "0"], "trials is 0; expected 1 or more"),
        (["--timeout", "0"], "timeout is 0; expected seconds above 0"),
        (["--method", "gmrl"], "gmrl"),
        (["--set", "rate"], "is not field=value"),
        (["--split", "nowhere", "--test"], "nowhere"),
    ],
)
def test_mistakes_are_said_before_anything_is_trained(table, tmp_path, arguments, message):
    result = CliRunner().invoke(app, ["tune", str(table), "--out", str(tmp_path / "out"), *arguments])
    assert message in str(result.exception)
    assert not (tmp_path / "out").exists()


def test_a_test_that_is_not_there_is_refused(tmp_path):
    file = tmp_path / "hikes.csv"
    make_table(60).drop(columns="split").to_csv(file, index=False)
    result = CliRunner().invoke(app, ["tune", str(file), "--out", str(tmp_path / "out"), "--test"])
    assert "has no test part; leave --test out" in str(result.exception)
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
@pytest.mark.parametrize("sign", [signal.SIGKILL, signal.SIGINT])
def test_a_search_that_was_stopped_tries_what_it_would_have_tried(table, tmp_path, sign):
    whole = gmlr("tune", table, "--out", tmp_path / "whole", *ASKED, "--json")
    assert whole.returncode == 0, whole.stderr
    process = subprocess.Popen(
        command("tune", table, "--out", tmp_path / "cut", *ASKED),
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        env=ENVIRONMENT,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    for line in process.stderr:
        if line.startswith("[2/5]"):
            break
    process.send_signal(sign)
    rest = process.stderr.read()
    process.stderr.close()
    assert process.wait(120) == (-9 if sign == signal.SIGKILL else 130)
    assert (sign == signal.SIGKILL) != (f"the same command resumes from {tmp_path / 'cut'}" in rest)
    again = gmlr("tune", table, "--out", tmp_path / "cut", *ASKED, "--json")
    assert again.returncode == 0, again.stderr
    assert "of 5 trials exist already" in again.stderr
    assert trials(json.loads(again.stdout)["trials"]) == trials(json.loads(whole.stdout)["trials"])
    assert not (tmp_path / "cut/runs").exists()


@pytest.mark.slow
def test_the_command_that_trains_the_best_is_shown_and_works(tmp_path):
    table = tmp_path / "my hikes.csv"
    make_table(120).rename(columns={"ranking": "taste"}).to_csv(table, index=False, sep=";")
    done = gmlr("tune", table, "--out", tmp_path / "out", *ASKED, "--ranking", "taste", "--sep", ";")
    assert done.returncode == 0, done.stderr
    assert "No trial saw the test part" in done.stdout
    shown = done.stdout.rpartition("train the best: ")[2]
    words = subprocess.run(["xargs", "-n1"], input=shown, capture_output=True, text=True).stdout.splitlines()
    assert words[:2] == ["gmlr", "train"]
    trained = gmlr(*words[1:], "--no-peers")
    assert trained.returncode == 0, trained.stderr
    best = Recipe.read(tmp_path / "out/best.json").to_dict()
    made = json.loads((tmp_path / "out/best/model/config.json").read_text())["recipe"]
    assert best["method_settings"].pop("ties") == "auto"
    assert made["method_settings"].pop("ties") == "none"  # what training settles where no order holds ties
    assert made == best

"""`gmlr compare`: real processes, one of them killed; errors inside."""

import csv
import json
import signal
import subprocess

import pytest
from typer.testing import CliRunner

from gaussianmlr.cli.main import app
from support.commanding import ENVIRONMENT, command, gmlr, make_table

pytestmark = pytest.mark.slow

QUICK = ("--preset", "smoke", "--set", "batch_size=32", "--method", "gmlr,crpc", "--seeds", "2")


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    file = tmp_path_factory.mktemp("data") / "hikes.csv"
    make_table(120).to_csv(file, index=False)  # with a test part of its own
    return file


def inside(*arguments):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    return result, str(result.exception)


def cells(folder):
    found = {file.name: json.loads(file.read_text()) for file in sorted((folder / "cells").iterdir())}
    return {name: (cell["metrics"], cell["tau_b"], cell["parts"]) for name, cell in found.items()}


def stopped_after(lines, sign, *arguments):
    """Send a signal as soon as so many cells are finished; the rest of what was said, and the exit code."""
    process = subprocess.Popen(
        command(*arguments),
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        env=ENVIRONMENT,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # shells ignore it in the background
    )
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith(f"[{lines}/"):
            break
    process.send_signal(sign)
    rest = process.stderr.read()
    process.stderr.close()
    return rest, process.wait(120)


def test_a_killed_comparison_goes_on_to_the_same_numbers(table, tmp_path):
    whole = gmlr("compare", table, "--out", tmp_path / "whole", *QUICK)
    assert whole.returncode == 0, whole.stderr
    stopped_after(1, signal.SIGKILL, "compare", table, "--out", tmp_path / "cut", *QUICK)
    first = tmp_path / "cut" / "cells" / "gmlr-strong_seed0.json"
    before = first.stat().st_mtime_ns
    assert not (tmp_path / "cut" / "comparison.md").exists()
    again = gmlr("compare", table, "--out", tmp_path / "cut", *QUICK, "--json")
    assert again.returncode == 0, again.stderr
    assert "of 4 cells exist already" in again.stderr
    assert first.stat().st_mtime_ns == before
    assert cells(tmp_path / "cut") == cells(tmp_path / "whole")
    result = json.loads(again.stdout)
    order = sorted(("gmlr:strong", "crpc:strong"), key=lambda name: -mean(tmp_path / "cut", name))
    assert [one["name"] for one in result["contenders"]] == order
    assert "the data's own test part" in result["setup"]
    assert "2 seeds and 30 test instances both random" in result["verdict"]["test"]
    _check_output(whole, tmp_path / "whole")


def mean(folder, name):
    values = [found[0]["tau_b"] for file, found in cells(folder).items() if file.startswith(name[:4])]
    return sum(values) / len(values)


def _check_output(done, folder):
    assert "\x1b" not in done.stdout + done.stderr  # a pipe is no terminal
    assert "[4/4] crpc:strong, seed1: tau-b " in done.stderr
    for words in ("tau-b ↑", "calibration error ↓", "gmlr:strong", "crpc:strong", " ± ", "best"):
        assert words in done.stdout
    assert "wins" in done.stdout or "No winner" in done.stdout
    names = {"cells", "plan.json", *(f"comparison.{form}" for form in ("md", "tex", "csv", "json", "png"))}
    assert {file.name for file in folder.iterdir()} - {".lock"} == names
    rows = list(csv.DictReader((folder / "comparison.csv").read_text().splitlines()))
    shown = {row["contender"]: float(row["value"]) for row in rows if row["metric"] == "tau_b"}
    for name, value in shown.items():
        assert value == pytest.approx(100 * mean(folder, name), abs=1e-3)


def test_control_c_keeps_what_is_finished(table, tmp_path):
    rest, code = stopped_after(
        1, signal.SIGINT, "compare", table, "--out", tmp_path, *QUICK, "--epochs", "40"
    )
    assert code == 130
    assert f"the same command resumes from {tmp_path}" in rest
    assert "gmlr-strong_seed0.json" in cells(tmp_path)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--method", "gmrl"], "no contender 'gmrl'"),
        (["--folds", "3"], "has its own test part"),
        (["--seeds", "0"], "seeds is 0; expected 1 or more"),
        (["--preset", "quick"], "no preset 'quick'"),
        (["--supervision", "half"], "'strong', 'weak' or 'both', not 'half'"),
        (["--set", "rate"], "is not field=value"),
        (["--set", "method_settings.bound=2", "--method", "lsep"], "no contender has the method 'gmlr'"),
        (["--set", "method_settings.supervision=weak"], "use --supervision"),
        (["--set", "method_settings.bond=2"], "method 'gmlr' has no setting 'bond'"),
        (["--size", "100"], "size is for Ranked MNIST"),
    ],
)
def test_mistakes_are_said_before_anything_is_trained(table, tmp_path, arguments, message):
    result, error = inside("compare", table, "--out", tmp_path / "out", *arguments)
    assert message in error
    assert result.exit_code == 1  # the exit code 2 is given outside, by main
    assert not list(tmp_path.glob("out/cells/*"))


def test_a_mistake_is_one_message_and_exit_code_2(tmp_path):
    done = gmlr("compare", tmp_path / "nowhere.csv", "--out", tmp_path / "out")
    assert done.returncode == 2
    assert done.stderr.startswith("gmlr: ")
    assert "does not exist" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "out").exists()

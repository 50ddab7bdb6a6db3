"""The command line in real processes."""

import json
import subprocess
import sys
import time

import gaussianmlr


def gmlr(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "gaussianmlr.cli", *arguments], capture_output=True, text=True, timeout=120
    )


def test_version_and_help():
    assert gmlr("--version").stdout.strip() == f"gmlr {gaussianmlr.__version__}"
    assert "methods" in gmlr("--help").stdout


def test_help_is_quick():
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        gmlr("--help")
        seconds.append(time.perf_counter() - start)
    assert min(seconds) < 0.5


def test_methods():
    shown = gmlr("methods")
    assert shown.returncode == 0
    assert "GaussianMLR" in shown.stdout
    found = json.loads(gmlr("methods", "--json").stdout)
    assert {method["name"] for method in found} >= {"gmlr", "lsep", "crpc"}


def test_an_unknown_command_is_refused():
    wrong = gmlr("trian")
    assert wrong.returncode == 2
    assert "trian" in wrong.stderr
    assert "Traceback" not in wrong.stderr

"""The command line in real processes."""

import json
import resource
import subprocess
import sys

import gaussianmlr


def gmlr(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "gaussianmlr", *arguments], capture_output=True, text=True, timeout=120
    )


def test_version_and_help():
    assert gmlr("--version").stdout.strip() == f"gmlr {gaussianmlr.__version__}"
    assert "methods" in gmlr("--help").stdout


def test_help_is_quick():
    """Half a second of work; what a busy machine adds to the wall clock is not ours."""

    def seconds():
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        gmlr("--help")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    assert min(seconds() for _ in range(3)) < 0.5


def test_commands_end_without_looking_for_cycles():
    """Among the objects of torch that takes seconds, which a signal to stop would wait for."""
    code = (
        "import atexit, gc, sys\n"
        "atexit.register(lambda: print(gc.get_freeze_count()))\n"
        "from gaussianmlr.cli.main import main\n"
        "sys.argv = ['gmlr', 'methods']\n"
        "main()"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0, ended.stderr
    assert int(ended.stdout.splitlines()[-1]) > 1_000


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

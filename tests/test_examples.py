"""Scripts of examples/ in processes of their own, the notebook by cells, the README's commands as printed."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent
SCRIPTS = sorted((ROOT / "examples").glob("plot_*.py"))
ENVIRONMENT = {**os.environ, "MPLBACKEND": "agg", "PYTHONWARNINGS": "error::FutureWarning"}


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_examples_run(script, tmp_path):
    done = subprocess.run(
        [sys.executable, script], cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.iterdir())  # an example leaves nothing where it was called


def test_the_notebook_runs(tmp_path, monkeypatch):
    import matplotlib

    matplotlib.use("agg")
    monkeypatch.chdir(tmp_path)
    notebook = json.loads((ROOT / "examples/quick_start.ipynb").read_text("utf-8"))
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    assert len({cell["id"] for cell in notebook["cells"]}) == len(notebook["cells"])
    names = {"__name__": "__main__"}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            assert cell["outputs"] == []  # they would grow old
            exec(compile("".join(cell["source"]), f"cell {cell['id']}", "exec"), names)
    assert names["ranker"].score(names["X"][300:], names["y"][300:]) > 0.5
    assert len(names["curves"].lines_) == 4


def test_commands_of_the_readme_work_as_printed(tmp_path):
    text = (ROOT / "README.md").read_text("utf-8")
    lines = [line.partition("#")[0].split() for line in re.findall(r"^gmlr .*$", text, re.MULTILINE)]
    assert len(lines) == 5
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    for _, *words in lines:
        done = subprocess.run(
            [sys.executable, "-m", "gaussianmlr", *words], cwd=tmp_path, capture_output=True, text=True
        )
        assert done.returncode == 0, (words, done.stderr)
    assert (tmp_path / "run/report.html").is_file()
    assert len((tmp_path / "orders.csv").read_text("utf-8").splitlines()) == 401
    assert list((tmp_path / "who").glob("*.md"))

"""The package itself: light to import, complete, typed."""

import subprocess
import sys
import tomllib
from importlib.resources import files
from itertools import chain
from pathlib import Path

import pytest

import gaussianmlr

ROOT = Path(__file__).parent.parent


def run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_import_brings_nothing_heavy():
    heavy = "torch lightning torchmetrics matplotlib pandas scipy sklearn numba numpy rich typer"
    loaded = run(f"import sys, gaussianmlr; print([m for m in {heavy.split()!r} if m in sys.modules])")
    assert loaded.strip() == "[]"


def test_import_is_quick():
    def seconds(module):
        code = f"import time; t = time.perf_counter(); import {module}; print(time.perf_counter() - t)"
        return min(float(run(code)) for _ in range(3))

    ours, torch = seconds("gaussianmlr"), seconds("torch")
    assert ours < 0.5
    assert ours < torch / 3


def test_every_public_name_is_there():
    for name in gaussianmlr.__all__:
        assert getattr(gaussianmlr, name) is not None
    assert set(gaussianmlr.__all__) <= set(dir(gaussianmlr))
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        gaussianmlr.nonsense  # noqa: B018


def test_typed_and_versioned():
    assert files("gaussianmlr").joinpath("py.typed").is_file()
    assert gaussianmlr.__version__[0].isdigit()


def test_the_tested_versions_satisfy_the_declared_ranges():
    from packaging.requirements import Requirement

    pinned = dict(
        line.split("==") for line in (ROOT / "constraints.txt").read_text().splitlines() if "==" in line
    )
    pinned = {name.lower().replace("_", "-"): version for name, version in pinned.items()}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *chain(*project["optional-dependencies"].values())]
    for requirement in map(Requirement, wanted):
        if requirement.name == "gaussianmlr":
            continue
        version = pinned.get(requirement.name.lower().replace("_", "-"))
        assert version, f"{requirement.name} is not pinned in constraints.txt"
        assert requirement.specifier.contains(version), f"{requirement} does not allow {version}"

"""The package itself: light to import, complete, typed."""

import inspect
import re
import subprocess
import sys
import tomllib
import zipfile
from importlib.resources import files
from itertools import chain
from pathlib import Path

import pytest

import gaussianmlr
from gaussianmlr import model, training

ROOT = Path(__file__).parent.parent


def run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_import_brings_nothing_heavy():
    heavy = "torch lightning torchmetrics matplotlib pandas scipy sklearn numba numpy rich typer"
    loaded = run(f"import sys, gaussianmlr; print([m for m in {heavy.split()!r} if m in sys.modules])")
    assert loaded.strip() == "[]"


def test_import_is_quick():
    def seconds(module):
        code = "import time; t = time.process_time(); import {}; print(time.process_time() - t)"
        return float(run(code.format(module)))

    # Processor time, in turns, and the best of each: a busy machine slows all of them down alike.
    modules = ("gaussianmlr", "json, typing, importlib, dataclasses", "torch")
    ours, plain, torch = (
        min(times) for times in zip(*([seconds(name) for name in modules] for _ in range(3)))
    )
    assert ours < torch / 10
    assert ours < plain + 0.1


def test_every_public_name_is_there():
    for name in gaussianmlr.__all__:
        assert getattr(gaussianmlr, name) is not None
    assert set(gaussianmlr.__all__) <= set(dir(gaussianmlr))
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        gaussianmlr.nonsense  # noqa: B018


def test_typed_and_versioned():
    assert files("gaussianmlr").joinpath("py.typed").is_file()
    assert gaussianmlr.__version__[0].isdigit()


def test_the_wheel_has_all_files_of_the_package(tmp_path):
    """Pages, the models that come with them and every other file that is no code, as pip builds it."""
    from gaussianmlr.pages.playing import SHIPPED

    code = "import sys; from hatchling.build import build_wheel; build_wheel(sys.argv[1])"
    subprocess.run([sys.executable, "-c", code, tmp_path], cwd=ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("gaussianmlr-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        held = {name: archive.getinfo(name).file_size for name in archive.namelist()}
        sources = {name: archive.read(name).decode() for name in held if "/static/" in name}
    package = ROOT / "src/gaussianmlr"
    there = {file for file in package.rglob("*") if file.is_file() and "__pycache__" not in file.parts}
    assert {f"gaussianmlr/{file.relative_to(package)}" for file in there} <= set(held)
    assert len(SHIPPED) >= 1
    for folder in SHIPPED:
        place = f"gaussianmlr/{folder.relative_to(package)}"
        assert held[f"{place}/model.safetensors"] < 4 << 20
        assert f"{place}/config.json" in held
    wanted = {path for text in sources.values() for path in re.findall(r"/static/[\w/.-]+\.(?:js|css)", text)}
    assert len(wanted) > 10
    assert {f"gaussianmlr/pages{path}" for path in wanted} <= set(held)


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


def public(module):
    """Classes and functions that a module says are public, and those of its public modules."""
    for name in module.__all__:
        value = getattr(module, name)
        if inspect.ismodule(value):
            yield from public(value) if hasattr(value, "__all__") else ()
        elif inspect.isclass(value) or inspect.isfunction(value):
            yield value


def is_record(value):
    """What functions give back or ask for; their examples show it."""
    is_tuple = inspect.isclass(value) and issubclass(value, tuple)
    is_shape = getattr(value, "_is_protocol", False) or hasattr(value, "__required_keys__")
    return is_tuple or is_shape


# Bases of what people write themselves, and what functions give back: shown by these, and in docs/
SHOWN_ELSEWHERE = {"Backbone", "Head", "Report", "Agreement", "Result", "Watcher"}


def test_every_public_name_has_an_example():
    names = {*public(gaussianmlr), *public(model), *public(training)}
    assert len(names) > 100
    bare = {
        value.__name__
        for value in names
        if not is_record(value) and not re.search(r"Examples\n\s+-{8}\n(.|\n)*>>> ", value.__doc__ or "")
    }
    assert bare == SHOWN_ELSEWHERE

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
from gaussianmlr.model import model
from gaussianmlr.training import engine as training

ROOT = Path(__file__).parent.parent


def run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_import_brings_nothing_heavy():
    heavy = "torch lightning torchmetrics matplotlib pandas scipy sklearn numba numpy rich typer"
    loaded = run(f"import sys, gaussianmlr; print([m for m in {heavy.split()!r} if m in sys.modules])")
    assert loaded.strip() == "[]"


@pytest.mark.slow
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
    from gaussianmlr.model.shipped import place_of, shipped_names

    code = "import sys; from hatchling.build import build_wheel; build_wheel(sys.argv[1])"
    subprocess.run([sys.executable, "-c", code, tmp_path], cwd=ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("gaussianmlr-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        held = {name: archive.getinfo(name).file_size for name in archive.namelist()}
        sources = {name: archive.read(name).decode() for name in held if "/static/" in name}
    package = ROOT / "src/gaussianmlr"
    there = {file for file in package.rglob("*") if file.is_file() and "__pycache__" not in file.parts}
    assert {f"gaussianmlr/{file.relative_to(package)}" for file in there} <= set(held)
    folders = [place_of(f"shipped:{name}") for name in shipped_names()]
    assert len(folders) >= 2
    assert sum((folder / "model.safetensors").stat().st_size for folder in folders) < 6 << 20
    for folder in folders:
        place = f"gaussianmlr/{folder.relative_to(package)}"
        assert held[f"{place}/model.safetensors"] < 4 << 20
        assert f"{place}/config.json" in held
    wanted = {path for text in sources.values() for path in re.findall(r"/static/[\w/.-]+\.(?:js|css)", text)}
    assert len(wanted) > 10
    for path in wanted:  # /static/base.js is shared, /static/play/main.js is the app's own
        *app, name = path.removeprefix("/static/").split("/")
        assert f"gaussianmlr/{f'apps/{app[0]}' if app else '_utils'}/static/{name}" in held


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
SHOWN_ELSEWHERE = {"Backbone", "Head", "Report", "Agreement", "Result", "Thurstone"}


def test_the_image_is_built_from_what_is_there():
    """No daemon runs here; its text names files, extras, pins and an address that exist."""
    text = (ROOT / "Dockerfile").read_text("utf-8").replace("\\\n", " ")
    ignored = {line for line in (ROOT / ".dockerignore").read_text("utf-8").splitlines() if "*" not in line}
    for words in re.findall(r"^COPY (?!--from)(.*) \S+$", text, re.MULTILINE):
        for name in words.split():
            assert (ROOT / name).exists(), name
            assert name not in ignored
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert {project["readme"], *project["license-files"]} <= set(text.split())  # the build reads them
    extras = re.search(r"\.\[([\w,-]+)\]", text)[1].split(",")
    assert set(extras) <= set(project["optional-dependencies"])
    assert "\ntorch==" in (ROOT / "constraints.txt").read_text("utf-8")  # what grep looks for
    assert text.index("USER gmlr") < text.index("ENTRYPOINT")
    port = re.search(r"EXPOSE (\d+)", text)[1]
    assert f"http://127.0.0.1:{port}/health" in text
    served = (ROOT / "src/gaussianmlr/apps/web/server.py").read_text("utf-8")
    assert '@app.get("/health"' in served


def test_every_public_name_has_an_example():
    names = {*public(gaussianmlr), *public(model), *public(training)}
    assert len(names) > 100
    bare = {
        value.__name__
        for value in names
        if not is_record(value) and not re.search(r"Examples\n\s+-{8}\n(.|\n)*>>> ", value.__doc__ or "")
    }
    assert bare == SHOWN_ELSEWHERE


_WITHOUT = """
import importlib.abc, importlib.util, sys

class Blocked(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        frame = sys._getframe(1)
        while "importlib" in frame.f_code.co_filename:
            frame = frame.f_back
        ours = frame.f_globals.get("__name__", "").startswith("gaussianmlr")
        if ours and name.partition(".")[0] in EXTRAS:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

EXTRAS = "matplotlib numba mlxtend PIL pyarrow jinja2 markupsafe kornia fastapi uvicorn ray onnx".split()
sys.meta_path.insert(0, Blocked())
import gaussianmlr._utils.extras as extras
from gaussianmlr import DataError
extras.find_spec = lambda name: None if name in EXTRAS else importlib.util.find_spec(name)
"""


@pytest.mark.slow
def test_estimators_need_no_extra(tmp_path):
    """What scikit-learn users install is enough for them: fit, predict, save, load."""
    code = f"""{_WITHOUT}
import numpy as np, gaussianmlr
x = np.random.default_rng(0).normal(size=(60, 3))
y = gaussianmlr.densify(x)
ranker = gaussianmlr.GaussianMLR(n_members=1, epochs=2, hidden=8, random_state=0).fit(x, y)
model = gaussianmlr.load(ranker.save({str(tmp_path / "model")!r}))
print(model.labels == ranker.labels_, -1 < ranker.score(x, y) < 1)
"""
    assert run(code) == "True True\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("from gaussianmlr.data import RankedMNIST; RankedMNIST('gray-s', 'test', size=2)", "ranked-mnist"),
        ("from gaussianmlr.data import read_image; read_image('x.png')", "images"),
        (
            "import numpy as np; from gaussianmlr import Prediction, plots; one = np.ones((1, 1)); "
            "plots.SignificanceDisplay.from_predictions(Prediction(one, one, ['a'])).plot()",
            "plots",
        ),
        ("from gaussianmlr.report import write_report; write_report('.')", "report"),
        ("from gaussianmlr.data import read_table; read_table('x.parquet')", "parquet"),
    ],
)
def test_what_needs_an_extra_names_it(code, message, tmp_path):
    (tmp_path / "x.png").write_bytes(b"x")
    (tmp_path / "x.parquet").write_bytes(b"x")
    script = f"{_WITHOUT}\ntry:\n    {code}\nexcept DataError as error:\n    print(error)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=tmp_path)
    assert f"pip install 'gaussianmlr[{message}]'" in done.stdout, done.stderr

"""A folder is data: files name no code, and stray modules of the current folder are not imported."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import gaussianmlr
from gaussianmlr import DataError, methods
from gaussianmlr._utils import trust
from gaussianmlr.methods.gmlr import Gmlr
from gaussianmlr.model.model import Model, build
from gaussianmlr.model.recipe import Recipe
from gaussianmlr.model.schema import digest_of
from gaussianmlr.nn import backbones
from gaussianmlr.paper.cells import read_cells
from support.commanding import ENVIRONMENT, LABELS, make_table
from support.config_fuzz import pictures, tables

pytestmark = pytest.mark.slow

SCRIPT = Path(sys.executable).with_name("gmlr")
MARK = "import pathlib; pathlib.Path(__file__).with_name('marker').write_text(__name__)\n"
MINE = """
import torch
from torch.hub import load
from gaussianmlr.nn.backbones import Mlp
from gaussianmlr.methods.gmlr import Gmlr

class Mine(Gmlr):
    name = "mine"

def layers(channels, *, width: int = 4):
    return Mlp(channels, width=width)

def two(channels):
    return torch.nn.Linear(channels, 2)
"""


@pytest.fixture(autouse=True)
def nothing_trusted(monkeypatch):
    """What one test trusts is nothing to the next."""
    monkeypatch.setattr(trust, "_TRUSTED", set())
    monkeypatch.setattr(trust, "_GIVEN", {})
    monkeypatch.setattr(methods.base, "_REGISTRY", dict(methods.base._REGISTRY))
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield
    for name in ("mine", "evilmod", "their_plugin"):
        sys.modules.pop(name, None)


@pytest.fixture
def table(tmp_path):
    make_table(60).to_csv(tmp_path / "table.csv", index=False)
    return tmp_path / "table.csv"


def run(*arguments, cwd, module=False):
    """`gmlr` in a folder, as installed or as a module."""
    begin = [sys.executable, "-m", "gaussianmlr"] if module else [SCRIPT]
    return subprocess.run(
        [*begin, *map(str, arguments)], capture_output=True, text=True, cwd=cwd, env=ENVIRONMENT, timeout=240
    )


def rewrite(saved, **recipe):
    """A model that says otherwise, by somebody who knows about checksums."""
    config = json.loads((saved / "config.json").read_text())
    config["recipe"].update(recipe)
    config["config_sha256"] = digest_of(config)
    (saved / "config.json").write_text(json.dumps(config))


def attacks(folder):
    """What has run code, or emptied a file, by being loaded."""
    (folder / "hub").mkdir()
    (folder / "hub" / "hubconf.py").write_text(
        MARK + "def net(**_):\n    import torch; return torch.nn.Identity()\n"
    )
    (folder / "evilmod.py").write_text(MARK + "class Evil: pass\n")
    victim = folder / "precious.txt"
    victim.write_text("precious")
    hub = {"repo_or_dir": str(folder / "hub"), "model": "net", "source": "local", "trust_repo": True}
    yield "torch.hub", {"backbone": "torch.hub:load", "backbone_settings": hub}
    settings = {"filename": str(victim), "filemode": "w", "force": True}
    yield "logging", {"backbone": "logging:basicConfig", "backbone_settings": settings}
    yield "evilmod", {"method": "evilmod:Evil"}
    yield "evilmod", {"backbone": "evilmod:Evil"}


def unharmed(folder):
    marked = [*folder.rglob("marker")]
    return not marked and (folder / "precious.txt").read_text() == "precious"


def test_a_config_cannot_run_code(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    for number, (module, recipe) in enumerate(attacks(tmp_path)):
        saved = tables().save(tmp_path / f"model{number}")
        rewrite(saved, **recipe)
        with pytest.raises(
            DataError, match=rf"code of the module '{module}'.*--trust {module} on.*register=\["
        ):
            gaussianmlr.load(saved)
        with pytest.raises(DataError, match="code of the module"):
            Recipe.read(write(tmp_path / "recipe.json", recipe))
    assert unharmed(tmp_path)
    assert "evilmod" not in sys.modules


def write(file, fields):
    file.write_text(json.dumps(fields))
    return file


@pytest.mark.parametrize("module", [False, True], ids=["gmlr", "python -m"])
def test_commands_run_no_code_of_the_folder(tmp_path, table, module):
    """Neither what a model names, nor modules that other packages look for and do not find."""
    *_, (_, recipe), _ = attacks(tmp_path)
    for stray in ("opt_einsum", "dill", "bottleneck", "numpy", "typer", "json"):
        (tmp_path / f"{stray}.py").write_text(MARK)
    saved = tables().save(tmp_path / "model")
    rewrite(saved, **recipe)
    assert run("methods", cwd=tmp_path, module=module).returncode == 0
    for arguments in (("predict", "model", "table.csv"), ("evaluate", "model", "table.csv")):
        done = run(*arguments, cwd=tmp_path, module=module)
        assert done.returncode == 2
        assert "--trust evilmod" in done.stderr
        assert done.stderr.count("\n") == 1
    (tmp_path / "recipe.toml").write_text('method = "evilmod:Evil"\n')
    done = run("train", table, "--out", "run", "--recipe", "recipe.toml", cwd=tmp_path, module=module)
    assert (done.returncode, "--trust evilmod" in done.stderr) == (2, True)
    assert run("info", "model", cwd=tmp_path, module=module).returncode == 0
    assert unharmed(tmp_path)


def test_a_module_of_ones_own_from_training_to_prediction(tmp_path, table):
    """Named on the command line it is found in the folder; a model that names it needs --trust."""
    (tmp_path / "mine.py").write_text(MINE)
    train = (
        "train",
        table,
        "--out",
        "run",
        "--method",
        "mine:Mine",
        "--backbone",
        "mine:layers",
        "--epochs",
        2,
    )
    done = run(*train, "--quiet", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    again = run(*train, "--quiet", "--recipe", "run/recipe.toml", cwd=tmp_path)  # names what was named
    assert again.returncode == 0, again.stderr
    refused = run("predict", "run", "table.csv", cwd=tmp_path)
    assert refused.returncode == 2
    assert "names the method 'mine:Mine'" in refused.stderr
    allowed = run("predict", "run", "table.csv", "--trust", "mine", cwd=tmp_path)
    assert allowed.returncode == 0, allowed.stderr
    assert len(allowed.stdout.splitlines()) == 60
    wrong = run("predict", "run", "table.csv", "--trust", "nothing_there", cwd=tmp_path)
    assert (wrong.returncode, "cannot import 'nothing_there'" in wrong.stderr) == (2, True)
    compared = (
        "compare",
        table,
        "--out",
        "who",
        "--method",
        "mine:Mine:weak,br",
        "--seeds",
        1,
        "--epochs",
        1,
    )
    assert run(*compared, "--quiet", cwd=tmp_path).returncode == 0


def test_what_a_caller_passes_is_known(tmp_path, monkeypatch):
    recipe = Recipe(method="mine:Mine", backbone="mlp")
    (tmp_path / "mine.py").write_text(MINE)
    monkeypatch.syspath_prepend(str(tmp_path))
    inputs = {"kind": "table", "channels": 3}
    model = Model(*build(recipe, 3, inputs), LABELS, recipe, inputs)
    saved = model.save(tmp_path / "model")
    with pytest.raises(DataError, match=r"register=\[Mine\]"):
        gaussianmlr.load(saved)  # although this process has imported it
    mine = sys.modules["mine"]
    x = torch.rand(4, 3)
    again = gaussianmlr.load(saved, register=[mine.Mine])
    assert torch.equal(again.read(x).scores, model.read(x).scores)
    assert type(again.method) is mine.Mine
    with pytest.raises(DataError, match="expected a class or a function to register"):
        gaussianmlr.load(saved, register=["mine"])


def test_a_registered_name_needs_no_more(tmp_path):
    class Registered(Gmlr):
        name = "registered"

    recipe = Recipe(method="registered", backbone="mlp")
    inputs = {"kind": "table", "channels": 3}
    methods.register(Registered)
    saved = Model(*build(recipe, 3, inputs), LABELS, recipe, inputs).save(tmp_path / "model")
    assert gaussianmlr.load(saved).method.name == "registered"
    del methods.base._REGISTRY["registered"]
    with pytest.raises(DataError, match="no method 'registered'"):
        gaussianmlr.load(saved)
    assert gaussianmlr.load(saved, register=[Registered]).method.name == "registered"


def test_a_trusted_module_is_trusted_with_what_it_defines(tmp_path, monkeypatch):
    """It has imported `torch.hub.load`, which was not meant; and no other module is trusted with it."""
    (tmp_path / "mine.py").write_text(MINE)
    monkeypatch.syspath_prepend(str(tmp_path))
    saved = tables().save(tmp_path / "model")
    trust.trust("mine")
    (_, recipe), *_ = attacks(tmp_path)
    rewrite(saved, **{**recipe, "backbone": "mine:load"})
    with pytest.raises(DataError, match="'mine:load', which that module does not define"):
        gaussianmlr.load(saved)
    rewrite(saved, **recipe)
    with pytest.raises(DataError, match=r"--trust torch\.hub"):
        gaussianmlr.load(saved)
    rewrite(saved, backbone="mine:layers", backbone_settings={"width": "4"})
    with pytest.raises(DataError, match="width is '4'; Input should be a valid integer"):
        gaussianmlr.load(saved)
    assert unharmed(tmp_path)


def test_one_name_may_be_trusted_alone(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(MINE)
    monkeypatch.syspath_prepend(str(tmp_path))
    trust.trust("mine:layers")
    recipe = tmp_path / "recipe.json"
    assert Recipe.read(write(recipe, {"backbone": "mine:layers"})).backbone == "mine:layers"
    with pytest.raises(DataError, match="names the backbone 'mine:two'"):
        Recipe.read(write(recipe, {"backbone": "mine:two"}))
    with pytest.raises(DataError, match="names the method 'mine:Mine'"):
        Recipe.read(write(recipe, {"method": "mine:Mine"}))


def test_installed_packages_bring_names(tmp_path, monkeypatch):
    """By entry points, and imported only when their name is asked for."""
    (tmp_path / "their_plugin.py").write_text(MARK + MINE.replace('"mine"', '"theirs"'))
    info = tmp_path / "their_plugin-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: their-plugin\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[gaussianmlr.methods]\ntheirs = their_plugin:Mine\nbroken = their_plugin:nothing\n"
        "[gaussianmlr.backbones]\ntheir-layers = their_plugin:layers\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    trust._entries.cache_clear()
    try:
        assert "theirs" in methods.available()
        assert "their-layers" in backbones.available()
        assert not (tmp_path / "marker").exists()
        recipe, inputs = Recipe(method="theirs", backbone="mlp"), {"kind": "table", "channels": 3}
        saved = Model(*build(recipe, 3, inputs), LABELS, recipe, inputs).save(tmp_path / "model")
        assert (tmp_path / "marker").read_text() == "their_plugin"
        assert gaussianmlr.load(saved).method.name == "theirs"
        with pytest.raises(DataError, match=r"cannot import 'broken' of gaussianmlr\.methods"):
            methods.make("broken")
        assert callable(backbones.registry.find("their-layers")[0])
    finally:
        trust._entries.cache_clear()


@pytest.mark.parametrize(
    "name",
    [
        "hf:./folder",
        "hf:/etc",
        "hf:../x",
        "hf:..",
        "hf:here",
        "timm:hf-hub:some/model",
        "timm:local-dir:/etc",
    ],
)
def test_models_of_zoos_are_named_and_not_placed(tmp_path, monkeypatch, name):
    """Before transformers or timm see anything of it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here").mkdir()
    saved = pictures().save(tmp_path / "model")
    rewrite(saved, backbone=name, backbone_settings={})
    with pytest.raises(DataError, match="files do not decide what is opened"):
        gaussianmlr.load(saved)


@pytest.mark.filterwarnings("ignore")  # transformers' own
def test_opening_a_model_fetches_nothing(tmp_path, monkeypatch):
    transformers = pytest.importorskip("transformers")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "cache"))

    def refuse(*_, **__):
        raise AssertionError("a connection was opened")

    monkeypatch.setattr("socket.socket.connect", refuse)
    monkeypatch.setattr("socket.getaddrinfo", refuse)
    config = transformers.ResNetConfig(
        embedding_size=4, hidden_sizes=[4, 4], depths=[1, 1], layer_type="basic"
    )
    transformers.AutoModel.from_config(config).save_pretrained(tmp_path / "zoo")
    name = f"hf:{tmp_path / 'zoo'}"
    recipe, inputs = Recipe(backbone=name, head="linear"), {"kind": "image", "channels": 3}
    model = Model(*build(recipe, 3, inputs), LABELS, recipe, inputs)
    saved = model.save(tmp_path / "model")
    with pytest.raises(DataError, match="--trust hf:"):
        gaussianmlr.load(saved)
    trust.allow(name)
    x = torch.rand(1, 3, 32, 32)
    assert torch.equal(gaussianmlr.load(saved).read(x).scores, model.network.eval() and model.read(x).scores)
    rewrite(saved, backbone="hf:nobody/nothing")
    with pytest.raises(DataError, match="cannot load 'nobody/nothing' through transformers"):
        gaussianmlr.load(saved)


@pytest.mark.filterwarnings("ignore")  # transformers' own
def test_code_of_a_model_on_the_hub_is_not_run(tmp_path):
    """Nobody is asked on standard input whether it should be."""
    pytest.importorskip("transformers")
    folder = tmp_path / "remote"
    folder.mkdir()
    auto = {"AutoConfig": "evil.Config", "AutoModel": "evil.Model"}
    (folder / "config.json").write_text(json.dumps({"model_type": "evil", "auto_map": auto}))
    (folder / "evil.py").write_text(MARK + "class Config: pass\nclass Model: pass\n")
    with pytest.raises(DataError, match="through transformers"):
        backbones.make(f"hf:{folder}", channels=3)
    assert not (folder / "marker").exists()


def test_cells_name_no_code(tmp_path):
    metrics = dict.fromkeys(("tau_b", "spearman_rho", "gamma", "hamming_loss", "max1_error", "f1"), 0.5)
    source = next(iter(sorted((Path(__file__).parents[2] / "results" / "cells").glob("*.json"))))
    facts = {**json.loads(source.read_text()), "metrics": metrics}
    facts["variant"] = {"settings": ["backbone=evilmod:Evil"]}
    (tmp_path / "cell.json").write_text(json.dumps(facts))
    with pytest.raises(DataError, match="names the backbone 'evilmod:Evil'"):
        read_cells(tmp_path)


def test_workers_of_ray_have_the_trust_of_the_command(tmp_path, table):
    """And no more: without it they import nothing from the folder either."""
    pytest.importorskip("ray")
    (tmp_path / "mine.py").write_text(MINE)
    inputs = {"kind": "table", "channels": 4, "columns": ["a", "b", "c", "d"]}
    for method in ("gmlr", "mine:Mine"):
        with pytest.MonkeyPatch.context() as patch:
            patch.syspath_prepend(str(tmp_path))
            recipe = Recipe(method=method, backbone="mlp")
            Model(*build(recipe, 3, inputs), LABELS, recipe, inputs).save(tmp_path / method.partition(":")[0])
    (tmp_path / "bottleneck.py").write_text(MARK)  # pandas looks for it
    engine = ("--engine", "ray", "--workers", 1)
    done = run("predict", "gmlr", "table.csv", *engine, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "marker").exists()
    (tmp_path / "bottleneck.py").unlink()
    done = run("predict", "mine", "table.csv", *engine, "--trust", "mine", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 60

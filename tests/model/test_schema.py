"""The config of a model is checked as a whole before anything is built of it."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import gaussianmlr
from gaussianmlr import DataError
from gaussianmlr.data.inputs import read_rows
from gaussianmlr.model.schema import digest_of, read_config
from gaussianmlr.model.shipped import place_of
from support.commanding import ENVIRONMENT, call, command
from support.config_fuzz import pictures, tables

pytestmark = pytest.mark.slow

CASES = 2_400


@pytest.fixture
def saved(tmp_path):
    return tables().save(tmp_path / "model")


def rewrite(saved, change, *, knowing=True):
    """Change a config, with or without its checksum."""
    config = json.loads((saved / "config.json").read_text())
    change(config)
    if knowing:
        config["config_sha256"] = digest_of(config)
    (saved / "config.json").write_text(json.dumps(config))


def encoded(first):
    """A change that gives the first of three columns another kind."""
    return lambda config: config["inputs"].update(encoding=[first, {"kind": "number"}, {"kind": "number"}])


def test_thousands_of_wrong_configs_are_refused_or_harmless(tmp_path):
    """No other error, no hang, no file, program or connection, and less than a gigabyte."""
    (tmp_path / "fuzz_evil.py").write_text("open('marker', 'w').write('ran')\n")
    script = Path(__file__).parents[1] / "support" / "config_fuzz.py"
    done = subprocess.run(
        [sys.executable, script, tmp_path / "models", str(CASES), "0"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**ENVIRONMENT, "PYTHONPATH": os.pathsep.join([*filter(None, sys.path), str(tmp_path)])},
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["wrong"] == []
    assert found["written"] == found["else"] == []
    assert {name.partition(".")[0] for name in found["imported"]} <= {"pydantic", "gaussianmlr"}
    assert not (tmp_path / "marker").exists()
    assert found["megabytes"] < 1_000
    assert found["slowest"] < 10
    assert found["refused"] > CASES / 2  # by what they say, not by their checksum
    assert found["same"] > 100
    assert found["trees"] > CASES / 10  # whose files of trees were changed, not the config
    assert found["other"] > 10
    assert sum(found[name] for name in ("refused", "checksum", "same", "other")) == CASES


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c.update(labels=["sky", "sky"]), "labels that are not all different"),
        (lambda c: c.update(labels=[]), r"labels is \[\]; List should have at least 1 item"),
        (lambda c: c.update(labels=["sky", 1]), r"labels\.1 is 1; Input should be a valid string"),
        (lambda c: c.update(members=0), "members is 0"),
        (lambda c: c.update(members=True), "members is True"),
        (lambda c: c.update(members=7), "do not fit its config"),
        (lambda c: c.update(format_version=-3), "format_version is -3"),
        (lambda c: c.update(more=1), "more: Extra inputs are not permitted"),
        (lambda c: c.update(weights_sha256="0"), "weights_sha256 is '0'"),
        (lambda c: c.update(method="lsep"), "method is 'lsep', not 'gmlr'"),
        (lambda c: c["inputs"].update(columns=["a"]), "1 columns for 3 channels of table inputs"),
        (lambda c: c["inputs"]["scaling"]["std"].pop(), "2 std for 3 channels"),
        (lambda c: c["inputs"]["scaling"].update(std=[1.0, 0.0, 1.0]), r"inputs\.scaling\.std\.1 is 0\.0"),
        (lambda c: c["inputs"].update(channels=4), "3 columns for 4 channels"),
        (lambda c: c["inputs"].update(size=[9, 9_999]), r"inputs\.size\.1 is 9999"),
        (lambda c: c["inputs"].update(kind="image"), "columns for 3 channels of image inputs"),
        (encoded({"kind": "words"}), r"inputs\.encoding\.0\.kind is 'words'"),
        (encoded({"kind": "number", "categories": ["a"]}), "categories in a column of kind number"),
        (encoded({"kind": "category", "categories": ["b", "a"]}), "categories that are not sorted"),
        (encoded({"kind": "category", "categories": ["a", "a"]}), "categories that are not sorted"),
        (encoded({"kind": "category", "categories": ["a"], "frequent": [1]}), "not among 1, in order"),
        (encoded({"kind": "category", "categories": ["a" * 1001]}), r"encoding\.0\.categories\.0"),
        (
            encoded({"kind": "category", "categories": [f"{i:05}" for i in range(10_001)]}),
            "at most 10000 items",
        ),
        (encoded({"kind": "date"}), r"the parts \[\] in a column of kind date"),
        (encoded({"kind": "date", "parts": ["hour", "days"]}), "the parts"),
        (encoded({"kind": "date", "parts": ["days", "hour"]}), "an encoding of 4 channels for 3"),
        (lambda c: c["inputs"].update(encoding=[{"kind": "number"}]), "an encoding of 1 columns for 3 names"),
        (encoded({"kind": "number", "gaps": True}), "do not fit its config"),
        (lambda c: c["calibration"].update(pairs=0), r"calibration\.pairs is 0"),
        (lambda c: c["recipe"].update(rate=10**400), "was changed: "),
        (lambda c: c["recipe"].update(method_settings={"bound": "4"}), "bound is '4'; .* valid number"),
        (lambda c: c["recipe"].update(backbone_settings={"width": 4.5}), r"width is 4\.5; .* valid integer"),
        (lambda c: c["recipe"].update(backbone_settings={"name": "x"}), "no network can be built"),
        (lambda c: c["recipe"].update(head_settings={"dropout": 7.0}), "no network can be built"),
        (lambda c: c["recipe"].update(head_settings={"hidden": 10**6}), "larger network than its weights"),
        (lambda c: c["about"].update(images="many"), r"about\.images is 'many'"),
        (lambda c: c["versions"].update(torch=2), r"versions\.torch is 2"),
    ],
)
def test_what_a_config_may_not_say(saved, change, message):
    rewrite(saved, change)
    with pytest.raises(DataError, match=message) as caught:
        gaussianmlr.load(saved)
    assert "\n" not in str(caught.value)
    assert str(saved) in str(caught.value)


def test_whole_numbers_beyond_64_bits_are_numbers(saved):
    """JSON has them, and numpy would make objects of them."""
    rewrite(saved, lambda config: config["inputs"]["scaling"].update(mean=[0.0, 10**30, 1.0]))
    model = gaussianmlr.load(saved)
    with pytest.raises(DataError, match=r"-5e\+29 standard deviations"):
        read_rows([[1, 2, 3]], model.inputs)


def test_the_checksum_covers_the_config(saved):
    """Any value that is another, wherever it stands; but not how the file is laid out."""
    config = json.loads((saved / "config.json").read_text())
    (saved / "config.json").write_text(json.dumps(dict(sorted(config.items()))))
    gaussianmlr.load(saved)
    changes = [
        lambda c: c["calibration"].update(relevance=1.6),
        lambda c: c["labels"].reverse(),
        lambda c: c["inputs"]["scaling"]["mean"].reverse(),
        lambda c: c["inputs"]["columns"].reverse(),
        lambda c: c["about"]["metrics"].update(f1=0.99),
        lambda c: c["recipe"].update(seed=5),
    ]
    for change in changes:
        (saved / "config.json").write_text(json.dumps(config))
        rewrite(saved, change, knowing=False)
        for opened in (gaussianmlr.load, read_config):
            with pytest.raises(DataError, match=r"config\.json is not the file that was saved"):
                opened(saved)


@pytest.mark.parametrize("name", ["gray-s", "gray-s-crpc"])
def test_models_of_before_configs_had_a_checksum_still_load(name, tmp_path):
    folder = place_of(f"shipped:{name}")
    config = json.loads((folder / "config.json").read_text())
    config.pop("config_sha256", None)
    older = shutil.copytree(folder, tmp_path / "older")
    (older / "config.json").write_text(json.dumps(config))
    model = gaussianmlr.load(older)
    assert model.read(torch.zeros(1, 1, 224, 224)).scores.shape == (1, 10)


def test_what_could_not_be_measured_is_kept(tmp_path):
    """NaN is no JSON: null on disk, and NaN again."""
    model = pictures()
    model.about["metrics"] = {"tau_b": float("nan"), "f1": 0.5}
    saved = model.save(tmp_path / "model")
    assert "NaN" not in (saved / "config.json").read_text()
    metrics = gaussianmlr.load(saved).about["metrics"]
    assert metrics["f1"] == 0.5
    assert metrics["tau_b"] != metrics["tau_b"]
    old = (saved / "config.json").read_text().replace('"tau_b": null', '"tau_b": NaN')
    (saved / "config.json").write_text(old)  # as it was written once
    assert gaussianmlr.load(saved).about["metrics"]["f1"] == 0.5
    shown = subprocess.run(command("info", saved), capture_output=True, text=True, env=ENVIRONMENT)
    assert shown.returncode == 0, shown.stderr
    assert "50.00" in shown.stdout
    shown = subprocess.run(command("info", saved, "--json"), capture_output=True, text=True, env=ENVIRONMENT)
    assert json.loads(shown.stdout)["metrics"] == {"tau_b": None, "f1": 0.5}
    assert "NaN" not in shown.stdout


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "run.json", "plan.json", "data.json"])
@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_pipes_and_devices_are_not_read(saved, name, kind):
    """They would be waited for until somebody writes, or read without end."""
    (saved / name).unlink(missing_ok=True)
    os.mkfifo(saved / name) if kind == "pipe" else (saved / name).symlink_to("/dev/zero")
    for arguments in (("info", saved), ("report", saved), ("evaluate", saved, "gray-s")):
        refused = False
        signal.alarm(60)
        try:
            call(*arguments)
        except DataError:
            refused = True
        finally:
            signal.alarm(0)
        assert refused or name not in ("config.json", "model.safetensors")


@pytest.mark.parametrize("depth", [200, 5_000, 1_000_000])
def test_deep_json_is_refused(saved, depth):
    text = (saved / "config.json").read_text().rstrip().removesuffix("}")
    (saved / "config.json").write_text(f'{text}, "about": {"[" * depth}{"]" * depth}}}')
    with pytest.raises(DataError):
        gaussianmlr.load(saved)


def test_a_config_without_end_is_refused(saved):
    with (saved / "config.json").open("a") as file:
        file.write(" " * (97 << 20))
    with pytest.raises(DataError, match="larger than"):
        gaussianmlr.load(saved)

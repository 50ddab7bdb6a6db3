"""ONNX files say what the model says, for any length of batch."""

import importlib.util
import json

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from gaussianmlr import DataError
from gaussianmlr.cli.main import app
from gaussianmlr.model import export as exporting
from gaussianmlr.model.calibration import Calibration
from gaussianmlr.model.export import export_onnx
from gaussianmlr.model.model import Model, build
from gaussianmlr.model.recipe import Recipe

pytestmark = pytest.mark.slow

onnxruntime = pytest.importorskip("onnxruntime", reason="the extra onnx is not installed")
LABELS = ("sea", "sky", "sun")
TABLE = {
    "kind": "table",
    "channels": 4,
    "columns": ["a", "b", "c", "d"],
    "scaling": {"mean": [0.0, 1.0, 2.0, 3.0], "std": [1.0] * 4},
}
IMAGE = {
    "kind": "image",
    "channels": 1,
    "size": [32, 48],
    "preprocess": {"size": [32, 48], "channels": 1, "mean": [0.0], "std": [1.0]},
}


def make_model(method, backbone, inputs):
    torch.manual_seed(1)
    recipe = Recipe(method=method, backbone=backbone)
    network, made = build(recipe, len(LABELS), inputs)
    network(torch.rand(8, inputs["channels"], *inputs.get("size", [])))  # moves the statistics of batch norm
    network.eval()
    return Model(network, made, LABELS, recipe, inputs)


@pytest.mark.parametrize("method", ["gmlr", "lsep", "crpc"])
@pytest.mark.parametrize(("backbone", "inputs"), [("mlp", TABLE), ("fast", IMAGE)])
def test_onnxruntime_agrees(method, backbone, inputs, tmp_path):
    model = make_model(method, backbone, inputs)
    model.calibration = Calibration(2.0, 3.0)  # a file says what a calibrated model says
    differences = export_onnx(model, tmp_path / "model.onnx")
    assert max(differences.values()) < 1e-4
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx", providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    assert names == ["scores", "p_relevant", *(["mu", "sigma"] if method == "gmlr" else [])]
    for count in (1, 5):
        x = torch.rand(count, inputs["channels"], *inputs.get("size", []))
        reading = model.read(x)
        for name, found in zip(names, session.run(None, {"inputs": x.numpy()})):
            np.testing.assert_allclose(found, getattr(reading, name).numpy(), atol=1e-4)
    known = session.get_modelmeta().custom_metadata_map
    assert json.loads(known["labels"]) == list(LABELS)
    assert json.loads(known["inputs"]) == inputs
    assert known["method"] == method


def test_the_command(tmp_path):
    make_model("gmlr", "mlp", TABLE).save(tmp_path / "model")
    arguments = ["export", str(tmp_path / "model"), "--to", "onnx", "--out", str(tmp_path / "m.onnx")]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    assert "scores, p_relevant, mu, sigma; onnxruntime agrees to" in done.stdout
    assert sorted(file.name for file in tmp_path.iterdir()) == ["m.onnx", "model"]


def test_without_the_extra(monkeypatch, tmp_path):
    find = importlib.util.find_spec
    monkeypatch.setattr(
        "gaussianmlr._utils.extras.find_spec", lambda name: None if name == "onnxscript" else find(name)
    )
    with pytest.raises(DataError, match=r"needs onnxscript: pip install 'gaussianmlr\[onnx\]'"):
        export_onnx(make_model("gmlr", "mlp", TABLE), tmp_path / "m.onnx")


def test_a_file_that_would_say_something_else_is_not_written(monkeypatch, tmp_path):
    monkeypatch.setattr(exporting, "TOLERANCE", -1.0)
    with pytest.raises(DataError, match="nothing was written"):
        export_onnx(make_model("lsep", "mlp", TABLE), tmp_path / "m.onnx")
    assert not list(tmp_path.iterdir())

"""What schemathesis makes of the descriptions of the three servers: no 500, nothing undocumented."""

import subprocess
import sys

import pytest
import torch
from PIL import Image

from gaussianmlr.model.model import Model, build
from gaussianmlr.model.recipe import Recipe
from support.paging import digit_model, running

pytestmark = pytest.mark.slow

CHECKS = "not_a_server_error,status_code_conformance"
MORE = f"{CHECKS},content_type_conformance,response_schema_conformance"
MORE = f"{MORE},negative_data_rejection,unsupported_method"


def command_of(kind, folder):
    if kind == "serve":
        torch.manual_seed(0)
        inputs, recipe = {"kind": "table", "channels": 2, "columns": ["a", "b"]}, Recipe(backbone="mlp")
        model = Model(*build(recipe, 2, inputs), ("sea", "sky"), recipe, inputs)
        return ("serve", model.save(folder / "model"))
    if kind == "play":
        return ("play", "--model", digit_model(side=56).save(folder / "model"), "--digits", "embedded")
    for name in "abc":
        Image.new("RGB", (8, 8), "navy").save(folder / f"{name}.png")
    (folder / "labels.txt").write_text("sea\nsky\n")
    return ("annotate", folder, "--labels", folder / "labels.txt", "--out", folder / "answers")


@pytest.mark.parametrize(("kind", "checks"), [("serve", MORE), ("play", MORE), ("annotate", CHECKS)])
def test_servers_do_what_they_say_and_nothing_breaks_them(tmp_path, kind, checks):
    pytest.importorskip("schemathesis")
    with running("-m", "gaussianmlr", *command_of(kind, tmp_path), "--port", 0) as server:
        command = [sys.executable, "-m", "schemathesis.cli", "run", f"{server.url}/openapi.json"]
        command += ["--checks", checks, "--phases", "coverage,fuzzing", "--max-examples", "20"]
        command += ["--seed", "1", "--no-color", "--generation-database", "none"]
        found = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=tmp_path)
        assert found.returncode == 0, found.stdout[-4000:] + found.stderr[-1000:]
        assert "generated" in found.stdout
        code, errors = server.stop()
    assert code == 0
    assert "Traceback" not in errors

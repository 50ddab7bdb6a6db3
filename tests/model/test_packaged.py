"""Models whose frozen backbone stays in the package it comes from."""

import json

import pytest
import torch
from safetensors.torch import load_file, save_file

import gaussianmlr
from gaussianmlr.errors import DataError
from gaussianmlr.model.model import Model
from gaussianmlr.model.network import build
from gaussianmlr.model.recipe import Recipe
from gaussianmlr.model.schema import digest_of

INPUTS = {"kind": "image", "channels": 3, "size": [64, 64]}


def photo_model(**changes):
    torch.manual_seed(0)
    recipe = Recipe(
        backbone="efficientnet-lite0", backbone_settings={"pool": True}, head="linear", freeze="all"
    ).replace(**changes)
    return Model(*build(recipe, 3, INPUTS), ("sky", "sea", "sun"), recipe, INPUTS)


@pytest.fixture(scope="module")
def model():
    return photo_model()


def edit(folder, **changes):
    file = folder / "config.json"
    config = json.loads(file.read_text()) | changes
    config["config_sha256"] = digest_of(config)
    file.write_text(json.dumps(config))


def test_the_head_alone_is_written_and_the_whole_is_read(model, tmp_path):
    x = torch.rand(2, 3, 64, 64)
    folder = model.save(tmp_path / "head", whole=False)
    held = load_file(folder / "model.safetensors")
    assert all(name.startswith("head.") for name in held)
    assert sum(tensor.numel() for tensor in held.values()) == 1281 * 512 + 2 * 513 * 3
    again = gaussianmlr.load(folder)
    for name, tensor in model.network.state_dict().items():
        assert torch.equal(again.network.state_dict()[name], tensor), name
    assert torch.equal(again.read(x).scores, model.read(x).scores)
    assert json.loads((folder / "config.json").read_text())["format_version"] == 3


def test_other_weights_in_the_package_are_noticed(model, tmp_path):
    folder = model.save(tmp_path / "head", whole=False)
    edit(folder, packaged_sha256="0" * 64)
    with pytest.raises(DataError, match="installed weights of 'efficientnet-lite0' are not those"):
        gaussianmlr.load(folder)


def test_only_published_weights_may_be_left_out(model, tmp_path):
    changed = photo_model()
    with torch.no_grad():
        next(changed.network.backbone.parameters()).add_(1.0)
    with pytest.raises(DataError, match="not those of its package: save the model whole"):
        changed.save(tmp_path / "changed", whole=False)
    for other in ({"freeze": 1}, {"backbone": "fast", "backbone_settings": {}, "head": "tokens"}):
        with pytest.raises(DataError, match="no package holds the weights of"):
            photo_model(**other).save(tmp_path / "other", whole=False)
    assert list(tmp_path.iterdir()) == []


def test_files_do_not_choose_what_is_left_out(model, tmp_path):
    """A forged config can neither fill other tensors nor name other packages."""
    folder = model.save(tmp_path / "head", whole=False)
    recipe = json.loads((folder / "config.json").read_text())["recipe"]
    for name in ("fast", "hf:some/model", "+".join(["efficientnet-lite0"] * 4)):
        edit(folder, recipe=recipe | {"backbone": name, "backbone_settings": {}})
        with pytest.raises(DataError, match="whose weights are in no package"):
            gaussianmlr.load(folder)
    edit(folder, recipe=recipe, packaged_sha256=None)
    with pytest.raises(DataError):
        gaussianmlr.load(folder)


def test_weights_in_the_file_do_not_replace_those_of_the_package(model, tmp_path):
    folder = model.save(tmp_path / "head", whole=False)
    weights = load_file(folder / "model.safetensors")
    name = next(name for name in model.network.state_dict() if name.startswith("backbone."))
    save_file({**weights, name: torch.zeros_like(model.network.state_dict()[name])}, folder / "more")
    (folder / "more").replace(folder / "model.safetensors")
    from gaussianmlr.model.checks import sha256

    edit(folder, weights_sha256=sha256(folder / "model.safetensors"))
    again = gaussianmlr.load(folder)
    assert torch.equal(again.network.state_dict()[name], model.network.state_dict()[name])

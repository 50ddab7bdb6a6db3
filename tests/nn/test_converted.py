"""onnxruntime's features are torch's, or torch computes them."""

import sys

import pytest
import torch
from torch import nn

from gaussianmlr.model.model import Model, build
from gaussianmlr.model.quick import quickened
from gaussianmlr.model.recipe import Recipe
from gaussianmlr.nn import backbones
from gaussianmlr.nn.backbones import converted
from gaussianmlr.nn.backbones.converted import Converted, convert
from gaussianmlr.nn.backbones.joined import Joined
from gaussianmlr.training import features

pytest.importorskip("onnxruntime")
LABELS = ("a", "b", "c", "d")
INPUTS = {"kind": "image", "channels": 3, "size": [64, 64]}


def _pictures(count, side=64):
    return torch.rand(count, 3, side, side, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("name", ["fast", "resnet18"])
def test_features_equal_torch_for_batches_of_any_length(name):
    backbone = backbones.make(name, channels=3).eval()
    made = convert(backbone, _pictures(3), note=pytest.fail)
    assert isinstance(made, Converted)
    with torch.no_grad():
        for count in (1, 5):
            assert torch.allclose(made(_pictures(count)), backbone(_pictures(count)), atol=1e-3)
        whole = (255 * _pictures(2)).to(torch.uint8)
        assert torch.allclose(made(whole), backbone(whole), atol=1e-3)
        # Of another size: torch computes them.
        assert torch.equal(made(_pictures(2, 96)), backbone(_pictures(2, 96)))


def test_joined_backbones_with_mirror_images_equal_torch():
    backbone = backbones.make("fast+resnet18", channels=3, mirror=True).eval()
    made = convert(backbone, _pictures(3), note=pytest.fail)
    assert isinstance(made, Joined)
    assert all(isinstance(member, Converted) for member in made.members)
    with torch.no_grad():
        assert torch.allclose(made(_pictures(2)), backbone(_pictures(2)), atol=1e-3)


def test_a_backbone_in_training_mode_is_not_changed():
    backbone = backbones.make("fast", channels=3).train()
    state = {name: value.clone() for name, value in backbone.state_dict().items()}
    convert(backbone, _pictures(3))
    assert all(module.training for module in backbone.modules())
    assert all(torch.equal(value, state[name]) for name, value in backbone.state_dict().items())


def test_torch_is_used_with_a_note_where_onnxruntime_differs(monkeypatch):
    notes, backbone = [], backbones.make("fast", channels=3).eval()
    monkeypatch.setattr(converted.Converted, "extract", lambda self, x: self._whole[0].extract(x) + 0.01)
    assert convert(backbone, _pictures(2), note=notes.append) is backbone
    assert "differ by" in notes[0]


class _Odd(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(1))

    def forward(self, x):
        return torch.linalg.eigvalsh(x.mean(1) @ x.mean(1).mT) * self.scale


def test_torch_is_used_with_a_note_where_the_network_cannot_be_converted():
    notes, backbone = [], backbones.make(_Odd(), channels=3, size=8).eval()
    assert convert(backbone, _pictures(2, 8), note=notes.append) is backbone
    assert "onnxruntime cannot" in notes[0]


def test_a_missing_package_is_named(monkeypatch):
    notes, backbone = [], backbones.make("fast", channels=3).eval()
    monkeypatch.setattr(converted, "find_spec", lambda name: None)
    assert convert(backbone, _pictures(2), note=notes.append) is backbone
    assert "gaussianmlr[onnx]" in notes[0]


def test_features_of_many_pictures_equal_those_of_torch(monkeypatch):
    backbone, pictures = backbones.make("resnet18", channels=3, pool=True), _pictures(70)
    quick = features.compute_features(backbone, pictures, cache=False, workers=2, note=pytest.fail)
    monkeypatch.setattr(features, "FEWEST", sys.maxsize)
    slow = features.compute_features(backbone, pictures, cache=False, workers=1)
    with torch.no_grad():
        naive = torch.cat([backbone.eval()(picture[None]) for picture in pictures])
    assert not torch.equal(quick, slow)  # or onnxruntime was not used
    assert torch.allclose(quick, naive, atol=1e-3)
    assert torch.allclose(slow, naive, atol=1e-4)


def test_scores_of_a_model_with_a_frozen_backbone_equal_those_of_torch():
    recipe = Recipe(backbone="resnet18", freeze="all")
    model = Model(*build(recipe, 4, INPUTS), LABELS, recipe, INPUTS)
    quick = quickened(model, note=pytest.fail)
    assert isinstance(quick.network.backbone, Converted)
    assert torch.allclose(quick.read(_pictures(5)).scores, model.read(_pictures(5)).scores, atol=1e-3)


def test_a_model_with_a_trained_backbone_stays_as_it_is():
    recipe = Recipe(backbone="resnet18")
    model = Model(*build(recipe, 4, INPUTS), LABELS, recipe, INPUTS)
    assert quickened(model) is model

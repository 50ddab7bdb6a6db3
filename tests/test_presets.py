"""Presets: the paper's numbers, and recipes that build."""

import pytest

from gaussianmlr import DataError
from gaussianmlr.model import build
from gaussianmlr.presets import PRESETS, preset


def test_the_papers_settings():
    """As the paper and its code have them, for canvases and for photographs."""
    recipe = preset("paper", "canvas")
    found = (recipe.optimizer, recipe.rate, recipe.weight_decay, recipe.batch_size, recipe.epochs)
    assert found == ("adam", 1e-4, 1e-5, 64, 50)
    assert (recipe.schedule, recipe.decay, recipe.decay_every) == ("exponential", 0.9, 1)
    assert (recipe.backbone, recipe.head, recipe.clip) == ("resnet18", "linear", None)
    photo = preset("paper", "photo")
    assert (photo.epochs, photo.decay_every, photo.freeze) == (200, 5, "all")


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


def test_unknown_names():
    with pytest.raises(DataError, match="no preset 'fast'"):
        preset("fast", "canvas")
    with pytest.raises(DataError, match="not 'video'"):
        preset("cpu", "video")

"""The default recipe follows the pictures and what is installed."""

import numpy as np
import pytest
from PIL import Image

from gaussianmlr.data import RankedData
from gaussianmlr.model.presets import preset
from gaussianmlr.training import defaults
from gaussianmlr.training.defaults import default_recipe, why_small

THREE = "efficientnet-lite0+efficientnet-lite1+efficientnet-lite2"


@pytest.fixture
def pictures(tmp_path):
    def made(mode):
        files = [tmp_path / f"{number}{mode}.png" for number in range(3)]
        for file in files:
            Image.new(mode, (8, 8)).save(file)
        return RankedData(np.array([[1, 0], [0, 1], [2, 1]]), ["sky", "sea"], images=files)

    return made


def test_colour_pictures_take_the_pretrained_networks_of_the_preset(pictures, monkeypatch):
    monkeypatch.setattr(defaults, "find_spec", lambda name: object())
    recipe = default_recipe(pictures("RGB"))
    assert (recipe.backbone, recipe.freeze) == (THREE, "all")
    assert recipe.replace(method_settings={}) == preset("cpu", "photo").replace(method_settings={})


@pytest.mark.parametrize(
    ("mode", "there", "named"), [("L", True, False), ("RGB", False, False), ("RGB", True, True)]
)
def test_other_pictures_take_the_small_network(pictures, monkeypatch, mode, there, named):
    monkeypatch.setattr(defaults, "find_spec", lambda name: object() if there else None)
    recipe = default_recipe(pictures(mode), named=named)
    assert (recipe.backbone, recipe.freeze, recipe.epochs) == ("fast", "none", 30)
    assert ("gaussianmlr[efficientnet]" in why_small()) is not there


def test_a_preset_is_taken_at_its_word(pictures, monkeypatch):
    monkeypatch.setattr(defaults, "find_spec", lambda name: None)
    assert default_recipe(pictures("L"), "cpu").backbone == THREE

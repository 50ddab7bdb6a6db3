"""The default recipe follows the pictures and what is installed."""

import json

import numpy as np
import pytest
from PIL import Image

from gaussianmlr.data import RankedData
from gaussianmlr.model.presets import preset
from gaussianmlr.model.recipe import Recipe
from gaussianmlr.training import defaults
from gaussianmlr.training.defaults import default_recipe, why_small, with_default_ties

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


def test_ties_are_the_default_of_new_runs_alone(tmp_path):
    table = RankedData(np.array([[1, 0], [2, 1]]), ["sky", "sea"], features=np.zeros((2, 3)))
    chosen = with_default_ties(Recipe(), table, tmp_path / "new")
    assert chosen.method_settings == {"ties": "auto"}
    assert with_default_ties(Recipe(), table, tmp_path / "new", "cpu") == Recipe()
    assert with_default_ties(Recipe(method="ranknet"), table, tmp_path / "new") == Recipe(method="ranknet")
    for settings in ({}, {"ties": "learned"}):
        run = tmp_path / f"run{len(settings)}"
        run.mkdir()
        known = {"labels": ["a"], "fingerprint": "x"}
        began = Recipe(method_settings=settings).to_dict()
        (run / "run.json").write_text(json.dumps({"recipe": began, "data": known}))
        assert with_default_ties(Recipe(), table, run).method_settings == settings

"""Recipes: files and back, and what they refuse."""

import json
import tomllib

import pytest

from gaussianmlr import DataError
from gaussianmlr.commands.settings import recipe_of
from gaussianmlr.recipe import Recipe

CHANGED = Recipe(
    method="crpc",
    method_settings={"supervision": "weak", "vote": "published"},
    freeze=2,
    clip=None,
    patience=3,
    backbone_settings={"widths": [16, 32], "curves": True},
)


@pytest.mark.parametrize("recipe", [Recipe(), CHANGED])
def test_toml_and_json_round_trips(recipe, tmp_path):
    (tmp_path / "recipe.toml").write_text(recipe.to_toml())
    (tmp_path / "recipe.json").write_text(json.dumps(recipe.to_dict()))
    assert Recipe.read(tmp_path / "recipe.json") == recipe
    read = Recipe.read(tmp_path / "recipe.toml")
    # TOML has no word for nothing: what is not set falls back to the default.
    assert read.replace(clip=recipe.clip) == recipe


def test_every_field_is_documented():
    text = Recipe().to_toml()
    for name, about in Recipe.describe().items():
        assert about.endswith(".")
        assert f"# {about}" in text
        assert name in text
    assert tomllib.loads(text)["epochs"] == 10


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"epoch": 3}, "no field 'epoch' in a recipe; did you mean 'epochs'"),
        ({"zzz": 3}, "no field 'zzz' in a recipe; it has method,"),
        ({"epochs": "three"}, "epochs is 'three'; expected a whole number"),
        ({"epochs": True}, "epochs is True; expected a whole number"),
        ({"epochs": 0}, "epochs is 0; expected 1 or more"),
        ({"rate": -1}, "rate is -1.0; expected more than 0"),
        ({"schedule": "cosine"}, "schedule is 'cosine'; expected 'one-cycle' or 'exponential' or 'constant'"),
        ({"freeze": "some"}, "freeze is 'some'; expected a whole number or 'none' or 'all'"),
        ({"average": 2}, "average is 2.0"),
        ({"rise": 1}, "rise is 1.0; expected a number between 0 and 1"),
        ({"method_settings": 3}, "method_settings is 3; expected named values"),
    ],
)
def test_what_is_refused(fields, message):
    with pytest.raises(DataError, match=message):
        Recipe.from_dict(fields)


def test_files_that_are_no_recipes(tmp_path):
    with pytest.raises(DataError, match="cannot read the recipe"):
        Recipe.read(tmp_path / "nowhere.toml")
    (tmp_path / "bad.toml").write_text("epochs =")
    with pytest.raises(DataError, match="is no TOML"):
        Recipe.read(tmp_path / "bad.toml")
    (tmp_path / "list.json").write_text("[1]")
    with pytest.raises(DataError, match="expected named fields"):
        Recipe.read(tmp_path / "list.json")


def test_settings_are_not_inherited_by_another_method_backbone_or_head(tmp_path):
    base = Recipe(
        method_settings={"balance": "comparisons"},
        backbone_settings={"curves": True},
        head_settings={"hidden": 9},
    )
    assert base.replace(method="lsep", head="linear").to_dict() == {
        **base.to_dict(),
        "method": "lsep",
        "method_settings": {},
        "head": "linear",
        "head_settings": {},
    }
    assert base.replace(backbone="mlp", backbone_settings={"width": 3}).backbone_settings == {"width": 3}
    assert base.replace(method="gmlr") == base
    (tmp_path / "other.toml").write_text('method = "crpc"')
    assert Recipe.read(tmp_path / "other.toml", base).method_settings == {}
    assert recipe_of(base, settings=["method=lsep"]).method_settings == {}
    assert recipe_of(base, method="br", backbone="mlp").backbone_settings == {}


def test_the_constructor_checks_too():
    with pytest.raises(DataError, match="epochs is '3'; expected a whole number"):
        Recipe(epochs="3")
    with pytest.raises(DataError, match="seed is -1; expected 0 or more"):
        Recipe(seed=-1)


def test_nothing_inside_settings_is_left_out_of_toml(tmp_path):
    (tmp_path / "recipe.toml").write_text(Recipe(backbone_settings={"a": None, "b": 1}).to_toml())
    assert Recipe.read(tmp_path / "recipe.toml").backbone_settings == {"b": 1}

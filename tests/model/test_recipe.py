"""Recipes: files and back, and what they refuse."""

import json
import math
import tomllib

import pytest

from gaussianmlr import DataError
from gaussianmlr._utils.strict_json import dumps, loads
from gaussianmlr.model.recipe import Recipe
from gaussianmlr.model.settings import changed, recipe_of

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
    with pytest.raises(DataError, match=r"nowhere\.toml: does not exist; expected a recipe"):
        Recipe.read(tmp_path / "nowhere.toml")
    (tmp_path / "bad.toml").write_text("epochs =")
    with pytest.raises(DataError, match="is not TOML"):
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


DIGITS = "1" + "0" * 400


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "a.toml",
            f"rate = {DIGITS}",
            r"rate is 1000.*\.\.\.; expected a magnitude below 9223372036854775808",
        ),
        ("a.json", f'{{"rate": {DIGITS}}}', "rate is 1000.*; expected a magnitude below"),
        ("a.toml", f"rate = 1{'0' * 5000}", "is not TOML: Exceeds the limit"),
        ("a.toml", f"epochs = {DIGITS}", "epochs is 1000.*; expected a magnitude below"),
        ("a.json", '{"rate": 1e999}', "rate is inf; expected a finite number"),
        ("a.json", '{"weight_decay": NaN}', "weight_decay is nan; expected a finite number"),
        ("a.toml", "clip = inf", "clip is inf; expected a finite number"),
        (
            "a.toml",
            "method_settings = { a = [1, nan] }",
            r"method_settings\.a is nan; expected a finite number",
        ),
        (
            "a.toml",
            f"label_weights = {{ sky = {DIGITS} }}",
            r"label_weights\.sky is 1000.*; expected a magnitude",
        ),
        (
            "a.toml",
            "label_weights = { sky = 1e40 }",
            r"the weight of sky is 1e\+40; expected a number from 0 up to",
        ),
        ("a.toml", f"x = {'[' * 5000}{']' * 5000}", "is nested too deeply"),
        ("a.json", "[" * 100_000, "nested too deeply"),
        (
            "a.toml",
            f"head_settings = {{ a = {'[' * 30}{']' * 30} }}",
            r"head_settings\.a is nested too deeply",
        ),
        ("a.toml", "#" * 17_000_000, "larger than 16,777,216 bytes"),
    ],
)
def test_numbers_and_depths_that_no_run_can_have(tmp_path, name, text, message):
    (tmp_path / name).write_text(text)
    with pytest.raises(DataError, match=message) as caught:
        Recipe.read(tmp_path / name)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("rate=1e999", "rate is inf; expected a finite number"),
        (f"rate={DIGITS}", "rate is 1000.*; expected a magnitude below"),
        (f"rate=1{'0' * 5000}", r"rate is '1000.*\.\.\.; expected a number"),
        ("method_settings.a=-inf", r"method_settings\.a is -inf; expected a finite number"),
        (f"rate={'[' * 5000}", "is nested too deeply"),
    ],
)
def test_settings_of_the_command_line_without_bounds(setting, message):
    with pytest.raises(DataError, match=message):
        changed(Recipe(), setting)


def test_numbers_in_python_without_bounds():
    with pytest.raises(DataError, match="rate is a huge int; expected a magnitude below"):
        Recipe(rate=10**5000)


def test_json_has_neither_nan_nor_infinity():
    value = {"a": math.nan, "b": [1.5, -math.inf, ("x", math.inf)], "c": None, "d": "NaN"}
    assert json.loads(dumps(value), parse_constant=lambda word: pytest.fail(word)) == {
        "a": None, "b": [1.5, None, ["x", None]], "c": None, "d": "NaN",
    }  # fmt: skip
    assert loads(dumps({"a": "\U0001f600"})) == {"a": "\U0001f600"}

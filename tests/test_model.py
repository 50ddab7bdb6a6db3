"""Models on disk: whole, safe, and refused with a reason where they are not."""

import json

import pytest
import torch
from torch import nn

import gaussianmlr
from gaussianmlr import DataError, methods
from gaussianmlr.batches import Arrays
from gaussianmlr.fitting import evaluate, fit
from gaussianmlr.recipe import Recipe

LABELS = ("sky", "sea", "sun")


def make_data(count=80, seed=0):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(count, 4, generator=generator)
    hidden = x[:, :3] + 0.3 * x[:, 3:]
    return Arrays(x, (hidden.argsort(-1).argsort(-1) + 1 - (hidden <= 0).sum(-1, keepdim=True)).clamp(min=0))


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    recipe = Recipe(backbone="mlp", epochs=6, batch_size=16, rate=0.01)
    out = tmp_path_factory.mktemp("run")
    return fit(recipe, make_data(), make_data(40, 1), labels=LABELS, out=out, fingerprint="abc"), out


@pytest.fixture
def saved(fitted, tmp_path):
    return fitted[0].model.save(tmp_path / "model")


def test_a_saved_model_reads_the_same(fitted, saved):
    model, again = fitted[0].model, gaussianmlr.load(saved)
    x = make_data(30, 2).inputs
    assert torch.equal(model.read(x).scores, again.read(x).scores)
    assert torch.allclose(model.read(x).sigma, again.read(x, batch_size=7).sigma)
    assert again.labels == LABELS
    assert again.recipe == model.recipe
    assert again.about["fingerprint"] == "abc"
    assert set(again.about["versions"]) >= {"torch", "gaussianmlr", "python"}


def test_no_pickle_and_nothing_half_written(fitted, saved):
    assert sorted(file.name for file in saved.iterdir()) == ["README.md", "config.json", "model.safetensors"]
    assert [file.name for file in saved.parent.iterdir()] == ["model"]
    card = (saved / "README.md").read_text()
    assert "sky, sea, sun" in card
    assert "| tau_b |" in card


def test_fit_leaves_the_model_in_its_folder(fitted):
    result, out = fitted
    data = make_data(40, 1)
    loaded = gaussianmlr.load(out / "model")
    assert evaluate(loaded, data) == pytest.approx(result.model.about["metrics"])
    assert evaluate(loaded, data)["tau_b"] > 0.5


@pytest.mark.parametrize("name", methods.available())
def test_every_method_is_saved_with_its_settings(name, tmp_path):
    recipe = Recipe(method=name, method_settings={"supervision": "weak"}, backbone="mlp", epochs=1)
    model = fit(recipe, make_data(), None, labels=LABELS).model
    again = gaussianmlr.load(model.save(tmp_path / name))
    assert again.method == model.method
    assert torch.equal(again.read(make_data().inputs).scores, model.read(make_data().inputs).scores)


def test_a_backbone_of_ones_own(tmp_path):
    own = nn.Sequential(nn.Linear(4, 6), nn.Tanh())
    model = fit(Recipe(backbone="own", epochs=1), make_data(), None, labels=LABELS, backbone=own).model
    model.save(tmp_path / "model")
    again = gaussianmlr.load(tmp_path / "model", backbone=nn.Sequential(nn.Linear(4, 6), nn.Tanh()))
    assert torch.equal(again.read(make_data().inputs).scores, model.read(make_data().inputs).scores)
    with pytest.raises(DataError, match="no backbone 'own'"):
        gaussianmlr.load(tmp_path / "model")


def test_a_model_that_is_there_is_not_replaced_by_accident(fitted, saved, tmp_path):
    with pytest.raises(DataError, match="is there already"):
        fitted[0].model.save(saved)
    fitted[0].model.save(saved, overwrite=True)
    gaussianmlr.load(saved)
    other = tmp_path / "photos"
    other.mkdir()
    with pytest.raises(DataError, match=r"is no model: it has no config\.json"):
        fitted[0].model.save(other, overwrite=True)
    assert other.is_dir()


def edit(saved, **changes):
    config = json.loads((saved / "config.json").read_text())
    (saved / "config.json").write_text(json.dumps({**config, **changes}))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda s: (s / "config.json").unlink(), r"is no model: it has no config\.json"),
        (lambda s: (s / "config.json").write_text("{"), "cannot be read"),
        (lambda s: (s / "config.json").write_text("{}"), "is no model of gaussianmlr"),
        (lambda s: edit(s, format_version=99), "has model format 99, .* update gaussianmlr"),
        (lambda s: edit(s, labels=["sky"]), "do not fit its config"),
        (lambda s: edit(s, recipe={"nonsense": 1}), "no field 'nonsense'"),
        (lambda s: edit(s, inputs={}), "was changed: 'kind'"),
        (lambda s: (s / "model.safetensors").unlink(), r"has no model\.safetensors"),
        (lambda s: (s / "model.safetensors").write_bytes(b"cut"), "was changed or cut"),
    ],
)
def test_damaged_and_foreign_folders_are_refused(saved, damage, message):
    damage(saved)
    with pytest.raises(DataError, match=message):
        gaussianmlr.load(saved)


def test_a_place_without_a_model(tmp_path):
    with pytest.raises(DataError, match="no model at"):
        gaussianmlr.load(tmp_path / "nowhere")


def test_labels_must_match_the_data():
    with pytest.raises(DataError, match="ranks for 3 labels, but 2 labels are named"):
        fit(Recipe(backbone="mlp"), make_data(), None, labels=("a", "b"))

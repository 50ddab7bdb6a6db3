"""Frozen backbones: one pass of the backbone, and the model that training the whole network gives."""

import sys

import numpy as np
import pytest
import torch
from PIL import Image

import gaussianmlr
from gaussianmlr._utils.progress import Watcher
from gaussianmlr.data import RankedMNIST, Setting
from gaussianmlr.data.loading import Arrays
from gaussianmlr.data.open import open_data
from gaussianmlr.model.recipe import Recipe
from gaussianmlr.nn.backbones import make
from gaussianmlr.training.epochs import for_training
from gaussianmlr.training.fit import fit
from gaussianmlr.training.frozen import OfFiles, features_of, stands_still

LABELS = ("a", "b", "c")
SMALL = {"widths": [8, 16], "blocks": [1]}
RECIPE = Recipe(
    backbone_settings=SMALL,
    head="linear",
    head_settings={"dropout": 0.3},
    freeze="all",
    epochs=3,
    batch_size=8,
)


def pictures(count=24, seed=0):
    generator = np.random.default_rng(seed)
    images = generator.integers(0, 256, (count, 3, 32, 32), dtype=np.uint8)
    return Arrays(images, generator.integers(0, 3, (count, 3)), generator.random(count, dtype=np.float32))


class Counting(Watcher):
    def __init__(self):
        self.told, self.notes = [], []

    def features(self, done, total):
        self.told.append((done, total))

    def note(self, text):
        self.notes.append(text)


def passes(monkeypatch):
    """How many inputs go through a backbone of this name from here on."""
    seen = []
    kind = type(make("fast", channels=3, **SMALL))
    forward = kind.forward
    monkeypatch.setattr(kind, "forward", lambda self, x: seen.append(len(x)) or forward(self, x))
    return seen


AUGMENTED = {"augment": "randaugment", "augment_settings": {"views": 2}}


@pytest.mark.parametrize("method", ["gmlr", "lsep"])
@pytest.mark.parametrize("average", [None, 0.9])
@pytest.mark.parametrize("more", [{}, {"freeze": 1}, AUGMENTED, {"freeze": 1, **AUGMENTED}])
def test_the_model_is_that_of_training_the_whole_network(method, average, more, monkeypatch):
    data, validation = pictures(), pictures(12, seed=1)
    recipe = RECIPE.replace(method=method, average=average, optimizer="adamw", **more)
    quick = fit(recipe, data, validation, labels=LABELS, cache=False)
    monkeypatch.setattr(sys.modules["gaussianmlr.training.fit"], "stands_still", lambda *_: False)
    slow = fit(recipe, data, validation, labels=LABELS, cache=False)
    for name, value in slow.model.network.state_dict().items():
        assert torch.allclose(quick.model.network.state_dict()[name], value, atol=1e-4), (
            name
        )  # rounding, and Adam
    assert [row["loss"] for row in quick.result.history] == pytest.approx(
        [row["loss"] for row in slow.result.history], abs=1e-5
    )
    one, other = (fitted.model.read(validation.inputs).scores for fitted in (quick, slow))
    assert torch.allclose(one, other, atol=1e-5)


def test_the_backbone_sees_every_input_once_and_never_again(monkeypatch, tmp_path):
    data, validation, watcher = pictures(), pictures(12, seed=1), Counting()
    seen = passes(monkeypatch)
    arguments = {"labels": LABELS, "cache": tmp_path / "features", "watcher": watcher}
    fit(RECIPE, data, validation, **arguments)
    assert sum(seen) == 24 + 12 + 2  # two show how large the features are; the end measures on features, too
    assert watcher.told == [(8, 24), (16, 24), (24, 24), (8, 12), (12, 12)]
    assert len(list((tmp_path / "features").iterdir())) == 2
    seen.clear()
    fit(RECIPE.replace(rate=1e-4, epochs=1), data, validation, **arguments)
    assert sum(seen) == 2
    seen.clear()
    fit(RECIPE.replace(epochs=1), data, validation, **{**arguments, "cache": False})
    assert sum(seen) == 24 + 12 + 2


def test_what_is_saved_is_the_whole_network(tmp_path):
    data = pictures()
    fitted = fit(RECIPE, data, data, labels=LABELS, out=tmp_path / "run", cache=tmp_path / "kept")
    loaded = gaussianmlr.load(tmp_path / "run" / "model")
    assert torch.equal(loaded.read(data.inputs).scores, fitted.model.read(data.inputs).scores)
    assert loaded.about["metrics"]["tau_b"] == max(row["tau_b"] for row in fitted.result.history)
    again = fit(RECIPE, data, data, labels=LABELS, out=tmp_path / "run", cache=tmp_path / "kept")
    assert torch.equal(again.model.read(data.inputs).scores, fitted.model.read(data.inputs).scores)


def test_features_of_picture_files_are_known_by_contents(tmp_path):
    generator = np.random.default_rng(0)
    lines = ["image,ranking"]
    for number in range(10):
        pixels = generator.integers(0, 256, (40, 30, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(tmp_path / f"{number}.png")
        lines.append(f"{number}.png,{'sky > sea' if number % 2 else 'sea'}")
    (tmp_path / "manifest.csv").write_text("\n".join(lines) + "\n")
    source = open_data(tmp_path / "manifest.csv", image_size=32)
    assert isinstance(source.train, OfFiles)
    backbone = make("fast", channels=3, **SMALL).eval()
    found = features_of(backbone, source.train, cache=tmp_path / "kept")
    with torch.no_grad():
        expected = torch.cat([backbone(source.train[i][0][None]) for i in range(8)])
    assert torch.allclose(found.inputs, expected, atol=1e-5)
    assert torch.equal(found.ranks, source.train.ranks)
    features_of(backbone, source.train, cache=tmp_path / "kept")
    assert len(list((tmp_path / "kept").iterdir())) == 1
    features_of(backbone, open_data(tmp_path / "manifest.csv", image_size=48).train, cache=tmp_path / "kept")
    assert len(list((tmp_path / "kept").iterdir())) == 2


def test_sets_that_are_drawn_go_through_once():
    setting = Setting(name="tiny", factor="scale", scale=(0.7, 1.2), canvas=48, count=(1, 3))
    data = RankedMNIST(setting, "train", size=70, digits="embedded")
    backbone = make("fast", channels=1, **SMALL).eval()
    found = features_of(backbone, data)
    images, ranks = data.tensors(range(70))
    with torch.no_grad():
        assert torch.allclose(found.inputs, backbone(images), atol=1e-5)
    assert torch.equal(found.ranks, ranks)


def test_frozen_stages_see_every_version_once(monkeypatch, tmp_path):
    data, validation, watcher = pictures(), pictures(12, seed=1), Counting()
    seen, stem = [], make("fast", channels=3, **SMALL).stem[0]
    forward = type(stem).forward
    monkeypatch.setattr(type(stem), "forward", lambda self, x: seen.append(len(x)) or forward(self, x))
    recipe = RECIPE.replace(freeze=1, epochs=5, **AUGMENTED)
    fit(recipe, data, validation, labels=LABELS, cache=tmp_path, watcher=watcher)
    # A trial shows the width of the maps; two more how large they are; the end measures the whole.
    assert sum(seen) == 1 + 2 * 24 + 12 + 2
    assert watcher.told[:6] == [(8, 48), (16, 48), (24, 48), (32, 48), (40, 48), (48, 48)]


def test_versions_of_picture_files_are_kept_and_are_those_of_training(tmp_path):
    generator = np.random.default_rng(0)
    lines = ["image,ranking"]
    for number in range(10):
        pixels = generator.integers(0, 256, (40, 30, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(tmp_path / f"{number}.png")
        lines.append(f"{number}.png,{'sky > sea' if number % 2 else 'sea'}")
    (tmp_path / "manifest.csv").write_text("\n".join(lines) + "\n")
    source = open_data(tmp_path / "manifest.csv", image_size=32)
    data = for_training(source.train, RECIPE.replace(seed=7, **AUGMENTED))
    backbone = make("fast", channels=3, **SMALL).eval()
    found = features_of(backbone, data, cache=tmp_path / "kept")
    assert len(list((tmp_path / "kept").iterdir())) == 2
    assert torch.equal(found[0][1], source.train.ranks[0])
    for epoch in range(5):
        images, ranks = data.tensors_at(range(8), epoch)
        with torch.no_grad():
            expected = backbone(images)
        features, truth = found.tensors_at(range(8), epoch)
        assert torch.allclose(features, expected, atol=1e-5)
        assert torch.equal(truth, ranks)
    assert not torch.equal(found.each[0].inputs, found.each[1].inputs)
    few = found.rows(torch.tensor([3, 1]))
    assert torch.equal(few.tensors_at([0], 1)[0], found.tensors_at([3], 1)[0])
    other_seed = for_training(source.train, RECIPE.replace(seed=8, **AUGMENTED))
    features_of(backbone, other_seed, cache=tmp_path / "kept")
    assert len(list((tmp_path / "kept").iterdir())) == 2  # the versions that repeat are those of every seed


def test_what_changes_is_not_computed_once():
    data = pictures()
    assert stands_still(RECIPE, data)
    assert not stands_still(RECIPE.replace(freeze="none"), data)
    assert not stands_still(RECIPE.replace(fresh=True), data)
    assert not stands_still(RECIPE, for_training(data, RECIPE.replace(augment="randaugment")))
    assert stands_still(RECIPE, for_training(data, RECIPE.replace(**AUGMENTED)))

    class Told:
        def __len__(self):
            return 2

        def tensors_at(self, indices, epoch=0):
            return pictures().tensors(indices)

    assert not stands_still(RECIPE, Told())


def test_features_that_do_not_fit_are_not_held(monkeypatch):
    monkeypatch.setattr("gaussianmlr.training.frozen.LARGEST", 1000)
    data, watcher = pictures(), Counting()
    fitted = fit(RECIPE.replace(epochs=1), data, data, labels=LABELS, watcher=watcher, cache=False)
    assert "do not fit in memory" in watcher.notes[0]
    assert len(fitted.result.history) == 1


def test_tables_of_several_rankers_keep_them():
    ranks = np.stack([np.zeros((6, 3), int), np.ones((6, 3), int)], 1)
    data = Arrays(np.random.default_rng(0).normal(size=(6, 4)).astype(np.float32), ranks, seed=3)
    found = features_of(make("mlp", channels=4), data, cache=False)
    assert torch.equal(found.tensors(range(6), 5)[1], data.tensors(range(6), 5)[1])

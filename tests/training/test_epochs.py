"""Data that changes from epoch to epoch: what an epoch sees, and that a run resumes with it bit for bit."""

import json

import numpy as np
import pytest
import torch

from gaussianmlr import DataError
from gaussianmlr._utils.progress import Watcher
from gaussianmlr.data import Augment, RankedMNIST, Setting
from gaussianmlr.data.loading import Arrays
from gaussianmlr.model.presets import preset
from gaussianmlr.model.recipe import Recipe
from gaussianmlr.training.epochs import Augmented, Fresh, for_training
from gaussianmlr.training.fit import fit
from gaussianmlr.training.run_folder import RunFolder

SETTING = Setting(name="tiny", factor="scale", scale=(0.7, 1.2), canvas=48, count=(1, 3))
RECIPE = Recipe(
    method="lsep",
    backbone_settings={"widths": [8, 16], "blocks": [1]},
    epochs=2,
    batch_size=8,
    fresh=True,
    augment="randaugment",
    checkpoint_minutes=0.0,
)


class Recorded(RankedMNIST):
    """Remembers which images of the stream were asked for."""

    seen: list[int]

    def fresh(self, epoch):
        made = super().fresh(epoch)
        made.__class__, made.seen = Recorded, self.seen
        return made

    def tensors(self, indices):
        self.seen += (np.asarray(indices) + self.start).tolist()
        return super().tensors(indices)


@pytest.fixture(scope="module")
def validation():
    return RankedMNIST(SETTING, "validation", size=12, digits="embedded")


def drawn(size=20):
    return RankedMNIST(SETTING, "train", size=size, digits="embedded")


class Crash(Watcher):
    def __init__(self, step):
        self.left = step

    def step(self, loss):
        self.left -= 1
        if self.left == 0:
            raise RuntimeError("power cut")


def test_no_image_is_trained_on_twice(validation):
    data = drawn()
    data.__class__, data.seen = Recorded, []
    recipe = RECIPE.replace(augment="none")
    fit(recipe, data, validation, labels=data.labels)
    # Two stages of two epochs of 20 images; statistics of batch norms look at some of them again.
    assert set(data.seen) == set(range(80))
    data.seen.clear()
    fit(recipe.replace(fresh=False), data, validation, labels=data.labels)
    assert set(data.seen) == set(range(20))


@pytest.mark.parametrize("step", [2, 5, 8])
def test_a_run_that_was_cut_goes_on_bit_for_bit(validation, tmp_path, step):
    data = drawn()
    whole = fit(RECIPE, data, validation, labels=data.labels, out=tmp_path / "whole").model
    with pytest.raises(RuntimeError, match="power cut"):
        fit(RECIPE, data, validation, labels=data.labels, out=tmp_path / "cut", watcher=Crash(step))
    cut = fit(RECIPE, data, validation, labels=data.labels, out=tmp_path / "cut").model
    state, other = whole.network.state_dict(), cut.network.state_dict()
    assert all(torch.equal(state[name], other[name]) for name in state)


@pytest.mark.parametrize("kind", ["bytes", "floats"])
def test_augmented_images_are_those_of_augment(kind):
    pixels = np.random.default_rng(0).integers(0, 256, (4, 3, 16, 16), dtype=np.uint8)
    inputs = pixels if kind == "bytes" else pixels.astype(np.float32) / 255
    weights = np.arange(4, dtype=np.float32)
    augment = Augment(operations=2, magnitude=20, seed=3)
    data = Augmented(Arrays(inputs, np.arange(8).reshape(4, 2), weights), augment)
    images, ranks, weighed = data.tensors_at([3, 1], epoch=7)
    for place, index in enumerate((3, 1)):
        unit = torch.from_numpy(pixels[index].astype(np.float32) / 255)
        assert torch.equal(images[place], augment.augment(unit, epoch=7, index=index))
    assert ranks.tolist() == [[6, 7], [2, 3]]
    assert weighed.tolist() == [3, 1]
    assert not torch.equal(images, data.tensors_at([3, 1], epoch=8)[0])


def test_random_numbers_of_training_stay_as_they_were():
    data = Augmented(Arrays(np.zeros((1, 1, 8, 8), np.uint8), np.zeros((1, 2), int)), Augment())
    torch.manual_seed(0)
    expected = torch.rand(3)
    torch.manual_seed(0)
    data.tensors_at([0], epoch=1)
    assert torch.equal(torch.rand(3), expected)


def test_the_papers_photographs_are_augmented():
    data = Arrays(np.zeros((1, 3, 8, 8), np.uint8), np.zeros((1, 2), int))
    found = for_training(data, preset("paper", "photo"))
    assert isinstance(found, Augmented)
    assert (found.augment.operations, found.augment.magnitude, found.augment.bins) == (3, 10, 40)


@pytest.mark.parametrize(
    ("inputs", "settings", "message"),
    [
        (np.zeros((2, 3), np.float32), {"fresh": True}, "Arrays is fixed"),
        (np.zeros((2, 3), np.float32), {"augment": "randaugment"}, r"not inputs \[3\]"),
        (np.full((2, 3, 8, 8), 2.0), {"augment": "randaugment"}, "not values from 2 to 2"),
        (
            np.zeros((2, 3, 8, 8)),
            {"augment": "randaugment", "augment_settings": {"strength": 3}},
            "strength = 3; expected operations, magnitude, bins and views",
        ),
        (
            np.zeros((2, 3, 8, 8)),
            {"augment": "randaugment", "augment_settings": {"bins": "4"}},
            "bins = '4'; expected",
        ),
        (
            np.zeros((2, 3, 8, 8)),
            {"augment": "randaugment", "augment_settings": {"views": 0}},
            "views is 0; expected 1 or more",
        ),
    ],
)
def test_what_cannot_change_is_said_before_training(inputs, settings, message, tmp_path):
    data = Arrays(inputs, np.zeros((2, 2), int))
    with pytest.raises(DataError, match=message):
        fit(Recipe(**settings), data, data, labels=("a", "b"), out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_fresh_sets_know_their_size_and_first_epoch():
    data = drawn(5)
    assert len(Fresh(data)) == 5
    assert torch.equal(Fresh(data)[4][0], data[4][0])


def test_a_run_from_before_a_field_was_there_goes_on(tmp_path):
    RunFolder(tmp_path / "run", Recipe(), {"labels": 2})
    file = tmp_path / "run" / "run.json"
    there = json.loads(file.read_text())
    del there["recipe"]["fresh"]
    file.write_text(json.dumps(there))
    (tmp_path / "run" / "epochs.csv").write_text("")
    RunFolder(tmp_path / "run", Recipe(), {"labels": 2})
    with pytest.raises(DataError, match="fresh = False, not True"):
        RunFolder(tmp_path / "run", Recipe(fresh=True), {"labels": 2})

"""Models on disk: whole, safe, and refused with a reason where they are not."""

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

import gaussianmlr
from gaussianmlr import DataError, methods
from gaussianmlr.data import RankedData
from gaussianmlr.data.loading import Arrays
from gaussianmlr.inference.matching import open_model
from gaussianmlr.model.calibration import Calibration
from gaussianmlr.model.model import join
from gaussianmlr.model.recipe import Recipe
from gaussianmlr.model.schema import digest_of
from gaussianmlr.rankers import reliability
from gaussianmlr.training.fit import evaluate, fit
from gaussianmlr.training.sets import ready_sets

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


def test_members_are_averaged_and_saved_as_one(tmp_path):
    data = make_data()
    recipe = Recipe(backbone="mlp", epochs=1, head_settings={"hidden": 8})
    several = [fit(recipe.replace(seed=seed), data, None, labels=LABELS).model for seed in range(3)]
    whole = join(several)
    x = data.inputs[:5]
    means = torch.stack([one.read(x).scores for one in several]).mean(0)
    torch.testing.assert_close(whole.read(x).scores, means)
    loaded = gaussianmlr.load(whole.save(tmp_path / "model"))
    assert loaded.members == whole.members == 3
    assert torch.equal(loaded.read(x).scores, whole.read(x).scores)
    assert join(several[:1]) is several[0]
    for one, (relevance, pairs) in zip(several, [(1, 2), (2, 2), (4, 2)]):
        one.calibration = Calibration(relevance, pairs)
    found = join(several).calibration
    assert (found.relevance, found.pairs) == pytest.approx((2, 2))
    with pytest.raises(DataError, match="fits one network"):
        gaussianmlr.load(tmp_path / "model", backbone=nn.Identity())


def test_weights_of_validation_rows_count_in_the_loss():
    data = make_data()
    recipe = Recipe(backbone="mlp", epochs=1, head_settings={"hidden": 8})
    few = Arrays(data.inputs[:20], data.ranks[:20])
    all_rows = Arrays(data.inputs[:40], data.ranks[:40], torch.arange(40) < 20)
    one, two = (fit(recipe, data, part, labels=LABELS).result.history[0] for part in (few, all_rows))
    assert two["loss"] == pytest.approx(one["loss"])


def test_no_pickle_and_nothing_half_written(fitted, saved):
    assert sorted(file.name for file in saved.iterdir()) == ["README.md", "config.json", "model.safetensors"]
    assert [file.name for file in saved.parent.iterdir()] == ["model"]
    card = (saved / "README.md").read_text()
    assert "sky, sea, sun" in card
    assert "| tau-b |" in card


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
    with pytest.raises(DataError, match="already exists"):
        fitted[0].model.save(saved)
    fitted[0].model.save(saved, overwrite=True)
    gaussianmlr.load(saved)
    other = tmp_path / "photos"
    other.mkdir()
    with pytest.raises(DataError, match=r"is not a model: it has no config\.json"):
        fitted[0].model.save(other, overwrite=True)
    assert other.is_dir()


def edit(saved, **changes):
    """Changed by somebody who knows about checksums."""
    config = {**json.loads((saved / "config.json").read_text()), **changes}
    (saved / "config.json").write_text(json.dumps({**config, "config_sha256": digest_of(config)}))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda s: (s / "config.json").unlink(), r"is not a model: it has no config\.json"),
        (lambda s: (s / "config.json").write_text("{"), "cannot be read"),
        (lambda s: (s / "config.json").write_text("{}"), "is not a model of gaussianmlr"),
        (lambda s: edit(s, format_version=99), "has model format 99, .* update gaussianmlr"),
        (lambda s: edit(s, labels=["sky"]), "do not fit its config"),
        (lambda s: edit(s, recipe={"nonsense": 1}), "no field 'nonsense'"),
        (lambda s: edit(s, inputs={}), r"was changed: inputs\.kind: Field required"),
        (lambda s: edit(s, format_version=0), "format_version is 0; .* greater than or equal to 1"),
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


def test_a_failed_replacement_keeps_the_old_model(fitted, saved, monkeypatch):
    from gaussianmlr._utils import files

    def fail(part, final, replace):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files, "publish", fail)
    with pytest.raises(DataError, match="No space left"):
        fitted[0].model.save(saved, overwrite=True)
    gaussianmlr.load(saved)
    assert [file.name for file in saved.parent.iterdir()] == ["model"]


@pytest.mark.slow
@pytest.mark.parametrize("then", ["load", "open", "save"])
def test_a_model_is_not_lost_when_a_process_dies_while_it_replaces_it(fitted, saved, then):
    expected = gaussianmlr.load(saved).read(make_data().inputs).scores
    program = "import os, pathlib, sys, gaussianmlr\nmodel = gaussianmlr.load(sys.argv[1])\n"
    program += "pathlib.Path.rename = lambda self, to, do=os.rename: (do(self, to), os._exit(9))\n"
    program += "model.save(sys.argv[1], overwrite=True)"
    assert subprocess.run([sys.executable, "-c", program, saved]).returncode == 9
    assert not saved.exists()
    if then == "save":
        with pytest.raises(DataError, match="already exists"):
            fitted[0].model.save(saved)
    if then == "open":
        (saved.parent / "run.json").write_text("{}")
        assert torch.equal(open_model(saved.parent).read(make_data().inputs).scores, expected)
    assert torch.equal(gaussianmlr.load(saved).read(make_data().inputs).scores, expected)
    assert not [file.name for file in saved.parent.iterdir() if file.name.startswith(".")]
    fitted[0].model.save(saved, overwrite=True)
    assert not [file.name for file in saved.parent.iterdir() if file.name.startswith(".")]


def test_a_full_disk_is_one_message_and_the_old_model_stays(saved):
    program = "import resource, sys, gaussianmlr\nmodel = gaussianmlr.load(sys.argv[1])\n"
    program += "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))\n"
    program += "model.save(sys.argv[1], overwrite=True)"
    done = subprocess.run([sys.executable, "-c", program, saved], capture_output=True, text=True)
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith(f"gaussianmlr.errors.DataError: cannot write the model to {saved}: ")
    assert "File too large" in last
    gaussianmlr.load(saved)
    assert [file.name for file in saved.parent.iterdir()] == ["model"]


def test_a_folder_of_a_run_on_other_data_is_refused(tmp_path):
    data, recipe = make_data(), Recipe(backbone="mlp", epochs=1)
    fit(recipe, data, data, labels=LABELS, out=tmp_path / "run")
    with pytest.raises(DataError, match="holds a run with fingerprint"):
        fit(recipe, Arrays(-data.inputs, data.ranks), data, labels=LABELS, out=tmp_path / "run")
    with pytest.raises(DataError, match="holds a run with fingerprint"):
        fit(recipe, data, make_data(seed=3), labels=LABELS, out=tmp_path / "run")


def test_a_folder_in_which_another_process_trains_is_refused(tmp_path):
    program = "import sys, pathlib, time; from gaussianmlr._utils.files import held\n"
    program += "with held(pathlib.Path(sys.argv[1])): print('held', flush=True); time.sleep(60)"
    other = subprocess.Popen([sys.executable, "-c", program, tmp_path / "run"], stdout=subprocess.PIPE)
    data, recipe = make_data(), Recipe(backbone="mlp", epochs=1)
    try:
        assert other.stdout.readline() == b"held\n"
        with pytest.raises(DataError, match=r"another process is at work in .*run; wait for it"):
            fit(recipe, data, data, labels=LABELS, out=tmp_path / "run")
    finally:
        other.kill()
        other.communicate()
    fit(recipe, data, data, labels=LABELS, out=tmp_path / "run")  # the dead hold nothing


@pytest.mark.parametrize("kind", ["float64", "float16", "int64", "reversed", "frame"])
def test_inputs_of_any_numbers(kind):
    data = make_data()
    inputs = {
        "float64": lambda x: x.double(),
        "float16": lambda x: x.half().float(),
        "int64": lambda x: (10 * x).long(),
        "reversed": lambda x: x.numpy()[::-1],
        "frame": lambda x: pd.DataFrame(x.numpy(), index=range(5, 85)),
    }[kind](data.inputs)
    model = fit(Recipe(backbone="mlp", epochs=1), Arrays(inputs, data.ranks), None, labels=LABELS).model
    assert model.read(inputs).scores.shape == (80, 3)


def test_ranked_data_and_tensor_data_sets():
    data = make_data()
    ranked = RankedData(
        ranks=data.ranks.numpy(), labels=LABELS, features=data.inputs.numpy().astype("float64")
    )
    assert fit(Recipe(backbone="mlp", epochs=1), ranked, ranked).model.labels == LABELS
    plain = torch.utils.data.TensorDataset(data.inputs, data.ranks)
    assert fit(Recipe(backbone="mlp", epochs=1), plain, plain, labels=LABELS).model.about["metrics"]


def test_several_rankers_of_validation_data_are_made_one():
    data = make_data()
    twice = Arrays(data.inputs, torch.stack([data.ranks, data.ranks], 1))
    recipe = Recipe(backbone="mlp", epochs=2, rankers="all")
    one, other = (fit(recipe, twice, check, labels=LABELS).result.history for check in (data, twice))
    assert [row["tau_b"] for row in one] == [row["tau_b"] for row in other]


def test_rankers_are_drawn_by_reliability():
    data = make_data()
    careless = data.ranks[torch.randperm(len(data.ranks), generator=torch.Generator().manual_seed(0))]
    several = Arrays(data.inputs, torch.stack([data.ranks, careless, data.ranks], 1))
    found, _ = ready_sets(Recipe(rankers="reliable"), several, None, {})
    np.testing.assert_allclose(found.shares, reliability(several.ranks.numpy()))
    assert found.shares[1] < 0.2 * found.shares[0]
    assert ready_sets(Recipe(rankers="all"), several, None, {})[0].shares is None
    assert ready_sets(Recipe(rankers="reliable"), data, None, {})[0] is data  # one order: nobody to draw


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"ranks": torch.full((80, 3), -5)}, "row 0 holds the rank -5"),
        ({"weights": -torch.ones(80)}, r"row 0 has the weight -1\.0; expected a finite number from 0 up"),
        ({"ranks": torch.zeros(80, 3)}, "expected ranks to be integers"),
        ({"inputs": torch.zeros(80)}, r"expected inputs of shape \[N, \.\.\.\], got shape \[80\]"),
    ],
)
def test_bad_arrays_are_named(change, message):
    data = make_data()
    with pytest.raises(DataError, match=message):
        Arrays(**{"inputs": data.inputs, "ranks": data.ranks, **change})


def test_augmentation_hears_of_every_epoch():
    class Set:
        def __init__(self):
            self.epochs = []

        def set_epoch(self, epoch):
            self.epochs.append(epoch)

        def __len__(self):
            return 20

        def __getitem__(self, index):
            return make_data(20)[index]

    data = Set()
    fit(Recipe(method="lsep", backbone="mlp", epochs=3), data, None, labels=LABELS)
    assert data.epochs == [0, 1, 2, 3, 4, 5]

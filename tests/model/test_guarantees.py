"""Guarantees from training to predictions: rows that nothing else saw, kept on disk, told by every face."""

import importlib
import itertools
import json
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

from gaussianmlr import DataError, GaussianMLR, MultiLabelRanker, Prediction, load
from gaussianmlr.apps.serve.app import serving_app
from gaussianmlr.data import RankedData, from_arrays
from gaussianmlr.data.loading import Arrays
from gaussianmlr.data.open import open_data
from gaussianmlr.data.splits import split
from gaussianmlr.model import Conformal, Guaranteed, Recipe
from gaussianmlr.model.calibration import Calibration
from gaussianmlr.model.prediction import Significances
from gaussianmlr.model.schema import digest_of
from gaussianmlr.training.fit import fit
from support.commanding import call, gmlr, make_table

LABELS = ("sky", "sea", "sun", "sand")
RECIPE = Recipe(backbone="mlp", epochs=6, batch_size=32, rate=0.01)


def draw(count, seed, noise=1.0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(count, 4)).astype(np.float32)
    hidden = 2 * x + noise * rng.normal(size=(count, 4))
    ranks = np.where(hidden > 0, hidden.argsort(1).argsort(1) + 1 - (hidden <= 0).sum(1, keepdims=True), 0)
    return Arrays(x, ranks)


@pytest.fixture(scope="module")
def model():
    found = fit(RECIPE, draw(400, 0), draw(200, 1), labels=LABELS).model
    held = draw(199, 2)
    found.calibrate_conformal(held.inputs, held.ranks.numpy())
    return found


def said(scores, ranks, sigma=1.0, conformal=True):
    """Predictions of a model whose means are these scores, calibrated on themselves."""
    chances = torch.special.ndtr(torch.tensor(scores / sigma)).numpy()
    found = Prediction(scores, chances, LABELS, Significances(scores, np.full_like(scores, sigma)), "gmlr")
    return replace(found, conformal=Conformal.fit(found, ranks)) if conformal else found


def test_new_rows_get_what_was_promised(model):
    test = draw(4_000, 3)
    for alpha in (0.05, 0.1, 0.2):
        seen = model.predict(test.inputs).guaranteed(alpha).observed(test.ranks)
        noise = 4 * math.sqrt(alpha * (1 - alpha) / model.conformal.relevance.rows)  # of the calibration
        assert abs(seen.covered - (1 - alpha)) < noise
        assert seen.placed > 1 - alpha - noise
        assert seen.wrong < alpha + noise
        assert 1 < seen.set_size < 4
        assert seen.statements > 1
    sizes = [model.predict(test.inputs).guaranteed(alpha).relevance_sets.mean() for alpha in (0.05, 0.1, 0.2)]
    assert sizes[0] > sizes[1] > sizes[2]


def test_a_model_that_is_far_too_sure_keeps_its_promises():
    """The Gaussian intervals of the same predictions fail by far."""
    held, test = draw(300, 4, noise=3.0), draw(4_000, 5, noise=3.0)
    means = [2.0 * data.inputs.double().numpy() for data in (held, test)]
    calibrated = said(means[0], held.ranks.numpy(), sigma=0.05)
    new = replace(said(means[1], test.ranks.numpy(), 0.05, conformal=False), conformal=calibrated.conformal)
    truth = test.ranks.numpy()
    seen = new.guaranteed(0.1).observed(truth)
    assert seen.covered > 0.85
    assert seen.placed > 0.87
    assert seen.wrong < 0.13
    naive = new.partial_order(0.9) & (new.p_relevant > 0.9)[:, :, None]
    wrong = (naive & (truth[:, :, None] <= truth[:, None, :])).sum((1, 2)) / np.maximum(1, naive.sum((1, 2)))
    assert wrong.mean() > 0.3


def test_every_method_has_guarantees():
    data, test = draw(400, 6), draw(2_000, 7)
    for method in ("lsep", "crpc", "ranknet"):
        found = fit(RECIPE.replace(method=method, conformal=0.4), data, None, labels=LABELS).model
        seen = found.predict(test.inputs).guaranteed(0.1).observed(test.ranks)
        assert found.conformal.statements.rows == 160
        assert seen.covered > 0.8
        assert seen.placed > 0.85
        assert seen.wrong < 0.15


def test_what_is_said_agrees_in_arrays_frames_texts_and_json(model):
    test = draw(30, 8)
    prediction = model.predict(test.inputs)
    found = prediction.guaranteed(0.2)
    assert isinstance(found, Guaranteed)
    assert len(found) == 30
    assert found.rows == 199
    assert "199 calibration rows" in found.statement
    assert "80 % or more" in found.statement
    limits = model.conformal.limits(0.2)
    assert np.array_equal(found.relevance_sets, prediction.p_relevant >= -limits["relevance"] * (1 - 1e-5))
    frame, plain = found.to_frame(), json.loads(found.to_json())
    assert list(frame.columns) == ["instance", "label", "in_set", "place_low", "place_high", "n_below"]
    for row, one in enumerate(plain["instances"]):
        here = frame[frame.instance == row].set_index("label")
        assert set(one["labels"]) == set(here.index[here.in_set])
        assert one["places"] == {label: [here.place_low[label], here.place_high[label]] for label in LABELS}
        said = {(LABELS[u], LABELS[v]) for u, v in zip(*np.nonzero(found.partial_orders[row]))}
        assert {tuple(pair) for pair in one["above"]} == said
        chains = [chain.split(" > ") for chain in one["text"].partition("?")[0].split(";")]
        shown = {(a.strip(), b.strip()) for chain in chains for a, b in itertools.pairwise(chain)}
        assert shown <= said
        assert all(label in one["text"] for label in one["labels"])
    assert not found.relevance_sets.flags.writeable
    assert (found.rank_intervals.low <= found.rank_intervals.high).all()
    assert np.array_equal(prediction[3].guaranteed(0.2).relevance_sets[0], found.relevance_sets[3])


def test_predictions_without_a_calibration_say_what_to_do(model):
    test = draw(5, 9)
    with pytest.raises(DataError, match=r"train with conformal=0\.1"):
        model.predict(test.inputs, calibrated=False).guaranteed(0.1)
    other = replace(model, calibration=Calibration(3.0, 3.0))  # the scores are of other probabilities
    assert other.guarantees is None
    with pytest.raises(DataError, match="no conformal calibration"):
        other.predict(test.inputs).guaranteed(0.1)
    with pytest.raises(DataError, match=r"alpha 0\.001 needs at least 999 calibration rows .*, got 1"):
        model.predict(test.inputs).guaranteed(0.001)
    with pytest.raises(DataError, match="at least one row"):
        Conformal.fit(model.predict(test.inputs)[:0], np.zeros((0, 4), int))
    with pytest.raises(DataError, match="whole ranks of shape"):
        Conformal.fit(model.predict(test.inputs), np.zeros((5, 3), int))


def test_one_label_has_sets_and_nothing_to_compare():
    scores = np.random.default_rng(0).normal(size=(60, 1))
    found = Prediction(scores, 1 / (1 + np.exp(-scores)), ("sky",))
    found = replace(found, conformal=Conformal.fit(found, (scores > 0).astype(int))).guaranteed(0.1)
    assert found.relevance_sets[scores[:, 0] > 0.5].all()
    assert not found.partial_orders.any()
    assert (found.rank_intervals.low == 1).all()
    assert found.conformal.smallest_alpha == 1 / (1 + (scores > 0).sum())


def test_unknown_labels_follow_the_documented_rule():
    data = draw(100, 10)
    means, ranks = 2.0 * data.inputs.double().numpy(), data.ranks.numpy().copy()
    whole = said(means, ranks).conformal
    ranks[50:] = -1  # rows about which nothing is known
    some = said(means, ranks).conformal
    assert some == said(means[:50], ranks[:50]).conformal
    assert some.statements.rows == 50 < whole.statements.rows
    ranks[:, 0] = -1  # what is not known to be relevant need not be in a set
    without = said(means, ranks).conformal
    fewer = np.where((ranks > 0).any(1), np.where(ranks > 0, said(means, ranks).p_relevant, 2).min(1), 2)
    assert without.relevance.limits[-1] == pytest.approx(-fewer.min())


def test_a_model_keeps_its_guarantees_on_disk(model, tmp_path):
    again = load(model.save(tmp_path / "model"))
    assert again.conformal == model.conformal
    test = draw(20, 11)
    one, other = (which.predict(test.inputs).guaranteed(0.1) for which in (model, again))
    assert one.to_json() == other.to_json()
    file = tmp_path / "model" / "config.json"
    good = json.loads(file.read_text())
    assert "calibrated on 199 rows" in (tmp_path / "model" / "README.md").read_text()
    changes = {
        "limits that do not rise": lambda c: c["relevance"]["limits"].reverse(),
        "fall to 0": lambda c: c["places"]["losses"].__setitem__(-1, 1.0),
        "beside them": lambda c: c["statements"]["limits"].append(2.0),
        "rows is -1": lambda c: c["relevance"].update(rows=-1),
        "temperatures": lambda c: c.update(temperatures=[1.0]),
        "Extra inputs": lambda c: c.update(more=1),
    }
    for message, change in changes.items():
        config = json.loads(json.dumps(good))
        change(config["conformal"])
        config["config_sha256"] = digest_of(config)
        file.write_text(json.dumps(config))
        with pytest.raises(DataError, match=message):
            load(tmp_path / "model")
    del good["conformal"]  # as of older versions
    good["config_sha256"] = digest_of(good)
    file.write_text(json.dumps(good))
    assert load(tmp_path / "model").conformal is None


def test_a_model_without_guarantees_is_written_as_before(tmp_path):
    found = fit(RECIPE.replace(epochs=1), draw(40, 0), None, labels=LABELS).model
    assert "conformal" not in json.loads((found.save(tmp_path / "model") / "config.json").read_text())


def test_rows_of_the_calibration_are_neither_trained_on_nor_validated(monkeypatch):
    seen = {}

    def train(network, method, recipe, data, validation, **options):
        seen.update(train=data, validation=validation)
        return real(network, method, recipe, data, validation, **options)

    fitting = importlib.import_module("gaussianmlr.training.fit")
    real = fitting.train
    monkeypatch.setattr(fitting, "train", train)
    calibrated = []
    fit_real = Conformal.fit.__func__

    def fit_conformal(cls, prediction, ranks, temperatures):
        calibrated.append((len(prediction), prediction.scores))
        return fit_real(cls, prediction, ranks, temperatures)

    monkeypatch.setattr(Conformal, "fit", classmethod(fit_conformal))
    data = draw(100, 12)
    for one in (data, from_arrays(data.inputs.numpy(), data.ranks.numpy(), labels=LABELS)):
        found = fit(RECIPE.replace(epochs=1, conformal=0.3), one, draw(20, 1), labels=LABELS).model
        assert len(seen["train"]) == 70
        assert calibrated[-1][0] == 30
        whole = {tuple(row) for row in data.inputs.tolist()}
        trained = {tuple(row) for row in seen["train"].inputs.tolist()}
        held = torch.tensor(sorted(whole - trained))
        assert len(held) == 30
        scores = np.sort(found.predict(held).scores, 0)
        np.testing.assert_allclose(np.sort(calibrated[-1][1], 0), scores, atol=1e-5)


def test_parts_of_a_table_stay_what_they_were(tmp_path):
    frame = make_table(200).drop(columns="split")
    frame.to_csv(tmp_path / "table.csv", index=False)
    before, after = (open_data(tmp_path / "table.csv", conformal=share) for share in (0.0, 0.25))
    assert before.conformal is None
    assert before.fingerprint == after.fingerprint
    assert (len(before.train), len(before.validation)) == (160, 40)
    assert (len(after.train), len(after.validation), len(after.conformal)) == (120, 40, 40)
    assert torch.equal(before.validation.ranks, after.validation.ranks)
    assert before.inputs["scaling"] != after.inputs["scaling"]  # which does not see the held-out rows
    assert "40 of 160 training instances are held out to calibrate guarantees" in after.notes
    data = RankedData(np.ones((6, 1), int), ["a"], np.ones((6, 1)), ids=["x", "x", "y", "y", "z", "z"])
    parts, _ = split(data, conformal=0.5)
    assert sum(len(part) for part in parts.values()) == 6
    assert all(len(part) == 2 for part in parts.values())  # rows of one id stay together
    with pytest.raises(DataError, match="leaves none"):
        split(data.subset([0, 1, 2, 3]), conformal=0.5)
    with pytest.raises(DataError, match="gray-s is drawn"):
        open_data("gray-s", conformal=0.1)


def test_the_same_recipe_resumes_and_another_share_is_refused(tmp_path):
    data, recipe = draw(100, 13), RECIPE.replace(epochs=1, conformal=0.2)
    first = fit(recipe, data, None, labels=LABELS, out=tmp_path / "run").model
    again = fit(recipe, data, None, labels=LABELS, out=tmp_path / "run").model
    assert again.conformal == first.conformal
    assert load(tmp_path / "run" / "model").conformal == first.conformal
    with pytest.raises(DataError, match="conformal"):
        fit(recipe.replace(conformal=0.3), data, None, labels=LABELS, out=tmp_path / "run")
    with pytest.raises(DataError, match=r"conformal is 0\.9; expected a share from 0 to 0\.5"):
        Recipe(conformal=0.9)


QUICK = {"epochs": 3, "hidden": 16, "random_state": 0}


@pytest.mark.slow
def test_an_ensemble_is_calibrated_on_rows_that_no_member_saw():
    data, test = draw(500, 14), draw(2_000, 15)
    X, y = data.inputs.numpy(), data.ranks.numpy()
    ranker = GaussianMLR(**QUICK, n_members=3, conformal=0.3).fit(X, y)
    assert ranker.model_.conformal.statements.rows == 150
    seen = ranker.predict_full(test.inputs.numpy()).guaranteed(0.1).observed(test.ranks)
    assert abs(seen.covered - 0.9) < 0.09
    held = draw(99, 16)
    given = GaussianMLR(**QUICK).fit(X, y, conformal_set=(held.inputs.numpy(), held.ranks.numpy()))
    plain = GaussianMLR(**QUICK).fit(X, y)
    assert given.model_.conformal.rows == 99
    assert np.array_equal(given.decision_function(X), plain.decision_function(X))  # training is the same
    by_hand = Conformal.fit(
        plain.predict_full(held.inputs.numpy()), held.ranks.numpy(), given.model_.conformal.temperatures
    )
    assert by_hand == given.model_.conformal
    with pytest.raises(DataError, match="no conformal calibration"):
        plain.predict_full(X).guaranteed(0.1)
    for wrong, message in ((0.7, "conformal is 0.7"), ("a", "conformal is 'a'")):
        with pytest.raises(DataError, match=message):
            MultiLabelRanker(**QUICK, conformal=wrong).fit(X, y)
    with pytest.raises(DataError, match="parameter of the estimator"):
        MultiLabelRanker(**QUICK, recipe={"conformal": 0.1}).fit(X, y)
    with pytest.raises(DataError, match="conformal_set to be a pair"):
        MultiLabelRanker(**QUICK).fit(X, y, conformal_set=X)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("guarantees")
    make_table(400).to_csv(folder / "hikes.csv", index=False)
    call("train", folder / "hikes.csv", "--out", folder / "run", "--epochs", 6, "--conformal", 0.2, "--quiet")
    return folder / "run"


@pytest.mark.slow
def test_commands_train_predict_and_report(run, tmp_path):
    new = make_table(20, seed=5).drop(columns=["ranking", "split"])
    new.to_csv(tmp_path / "new.csv", index=False)
    lines = call("predict", run, tmp_path / "new.csv", "--format", "jsonl", "--guarantee", 0.1).splitlines()
    table = call("predict", run, tmp_path / "new.csv", "--out", tmp_path / "said.csv", "--guarantee", 0.1)
    assert table == ""
    written = pd.read_csv(tmp_path / "said.csv")
    loaded = load(run / "model")
    known = open_data(run.parent / "hikes.csv").labels
    scaling = loaded.inputs["scaling"]
    x = (new.to_numpy() - scaling["mean"]) / scaling["std"]
    promised = loaded.predict(x.astype(np.float32)).guaranteed(0.1)
    for row, line in enumerate(map(json.loads, lines)):
        assert line["guaranteed"] == promised.texts[row]
        for place, label in enumerate(known):
            low, high = (part[row, place] for part in promised.rank_intervals)
            told = line["labels"][label]
            assert (told["place_low"], told["place_high"]) == (low, high)
            assert told["in_set"] is bool(promised.relevance_sets[row, place])
            assert written[f"in_set:{label}"][row] == promised.relevance_sets[row, place]
            assert written[f"place_low:{label}"][row] == low
    done = gmlr("predict", run, tmp_path / "new.csv", "--guarantee", 0.001)
    assert done.returncode == 2
    assert "alpha 0.001 needs at least 999 calibration rows" in done.stderr
    off = gmlr("predict", run, tmp_path / "new.csv", "--guarantee", 0.1, "--uncalibrated")
    assert off.returncode == (0 if loaded.conformal.temperatures == (1.0, 1.0) else 2)
    call("report", run, "--out", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert 'id="guarantees"' in page
    assert f"calibrated on {loaded.conformal.rows} instances" in page
    assert "guarantees" in call("info", run / "model")


@pytest.mark.slow
def test_gmlr_calibrate_takes_rows_that_training_did_not_see(run, tmp_path):
    copy = tmp_path / "model"
    data = run.parent / "hikes.csv"
    shown = json.loads(call("calibrate", run, data, "--out", copy, "--json"))
    assert shown["rows"] == 100  # the test part
    assert load(copy).conformal.statements.rows == 100
    assert load(run / "model").conformal.statements.rows != 100
    for part, message in (("train", "is used in training"), ("validation", "is used"), ("all", "trained on")):
        with pytest.raises(DataError, match=message):
            call("calibrate", copy, data, "--split", part)
    make_table(60, seed=8).drop(columns="split").to_csv(tmp_path / "more.csv", index=False)
    said = call("calibrate", copy, tmp_path / "more.csv")
    assert "calibrated on 60 rows" in said
    assert load(copy).conformal.statements.rows == 60


@pytest.mark.slow
def test_the_server_tells_guarantees_on_request(model):
    from starlette.testclient import TestClient

    x = draw(7, 17).inputs
    with TestClient(serving_app(model), base_url="http://127.0.0.1") as client:
        asked = {"rows": x.tolist(), "guarantee": 0.1}
        answer = client.post("/predict", json=asked).json()
        wanted = model.predict(x).guaranteed(0.1)
        assert answer["guarantee"]["rows"] == 199
        assert answer["guarantee"]["statement"] == wanted.statement
        told = [instance["guaranteed"] for instance in answer["instances"]]
        assert told == wanted.to_dict()["instances"]
        assert "guarantee" not in client.post("/predict", json={"rows": x.tolist()}).json()
        few = client.post("/predict", json={"rows": x.tolist(), "guarantee": 0.001})
        assert few.status_code == 400
        assert "999" in few.text
        assert client.get("/info").json()["guarantees"] == {"rows": 199}

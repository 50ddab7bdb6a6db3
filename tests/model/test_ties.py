"""Predictions with ties, their calibration, and models that learn them on disk."""

import json

import numpy as np
import pytest
import torch

from gaussianmlr import DataError, Prediction, load, normal
from gaussianmlr.methods import Reading, make
from gaussianmlr.methods.ties import raw_of, tau_of
from gaussianmlr.model import Model, Recipe, build
from gaussianmlr.model.calibration import Calibration, calibrate, compare
from gaussianmlr.model.prediction import Significances

TABLE = {"kind": "table", "channels": 3}
LABELS = ("a", "b", "c", "d")


def tied(tau=0.5, sigma=0.5):
    raw = Significances(np.array([[3.0, 1.1, 1.0, -1.0], [1.0, 3.0, 5.0, 7.0]]), np.full((2, 4), sigma))
    chances = normal.p_relevant(*map(torch.tensor, raw)).numpy()
    return Prediction(raw.mu, chances, LABELS, raw, "gmlr", tau=None if tau is None else np.full((2, 4), tau))


def test_orders_show_ties():
    found = tied()
    assert found.orders == ["a > b = c", "d > c > b > a"]
    assert found.ranks.tolist() == [[2, 1, 1, 0], [1, 2, 3, 4]]
    assert found.lists[0] == [["a"], ["b", "c"]]
    assert json.loads(found.to_json())["instances"][0]["order"] == "a > b = c"
    assert found.to_frame()["rank"].tolist()[:4] == [2, 1, 1, 0]
    assert np.array_equal(found.ranks > 0, found.p_relevant > 0.5)
    assert found[0].orders == ["a > b = c"]
    assert found[[1, 0]] == tied()[[1, 0]] != tied(0.4)[[1, 0]]
    assert "b = c" in repr(found)


def test_without_thresholds_nothing_ties():
    plain = tied(None)
    assert plain.orders == ["a > b > c", "d > c > b > a"]
    assert not plain.p_tie.any()
    assert plain != tied()
    assert tied(0.0).orders == plain.orders


def test_pairs_and_partial_orders():
    found = tied()
    whole = found.p_above + found.p_above.transpose(0, 2, 1) + found.p_tie
    assert np.allclose(whole, 1.0, atol=1e-12)
    law = [torch.tensor(part) for part in found.raw]
    assert np.allclose(found.p_above, normal.p_above(*law, 0.5), atol=1e-14)
    assert np.allclose(found.p_tie, normal.p_tie(*law, 0.5), atol=1e-14)
    assert np.array_equal(found.partial_order(0.9), found.p_above >= 0.9)
    assert found.partial_order(0.99).sum() < tied(None).partial_order(0.99).sum()


def test_scores_without_sigma_tie_too():
    reading = make("ranknet", ties="learned").read(
        {"score": torch.tensor([[2.0, 1.9, -1.0]]), "tau": raw_of(torch.tensor([[1.0]]))}
    )
    found = Prediction.from_reading(reading, "abc", method="ranknet")
    assert found.orders == ["a = b"]
    assert np.allclose(found.p_above + found.p_above.transpose(0, 2, 1) + found.p_tie, 1.0)
    plain = Prediction(found.scores, found.p_relevant, tuple("abc"), method="br")
    with pytest.raises(DataError, match="p_tie"):
        _ = plain.p_tie


def test_bad_thresholds():
    with pytest.raises(DataError, match="tau"):
        tied(-0.1)


def test_thresholds_are_in_canonical_units():
    """A free gauge changes the units of mu, not the ties."""
    outputs = {"mu": torch.randn(5, 4), "logvar": torch.randn(5, 4), "tau": raw_of(torch.tensor([[0.4]]))}
    assert tau_of(outputs).item() == pytest.approx(0.4)
    free = make("gmlr", ties="learned").read(outputs)
    gauged = normal.canonical(free.mu, free.sigma)
    unit = gauged.sigma / free.sigma
    assert torch.allclose(free.tau * unit, torch.full((5, 4), 0.4), atol=1e-6)
    assert torch.equal(normal.best_buckets(gauged.mu, gauged.sigma, free.tau * unit), free.ranks)


@pytest.mark.parametrize("ties", [0.5, 2.0])
def test_calibration_finds_the_factor_of_thresholds(ties):
    """Truth: noise twice and thresholds `ties` times as large as the model says."""
    rng = np.random.default_rng(0)
    mu = 1.5 + 2.0 * rng.normal(size=(3000, 6))
    hidden = mu + rng.normal(size=mu.shape)
    ranks = np.zeros(mu.shape, np.int64)
    # Two labels of an instance are compared, so that ties are those of the model and nothing else.
    upper, lower = hidden[:, 0], hidden[:, 1]
    both = (upper > 0) & (lower > 0)
    close = np.abs(upper - lower) < 0.6
    ranks[:, 2:] = -1
    ranks[:, 0] = (upper > 0) * (1 + (both & ~close & (upper > lower)))
    ranks[:, 1] = (lower > 0) * (1 + (both & ~close & (lower > upper)))
    means, sigma = torch.from_numpy(mu), torch.full(mu.shape, 0.5).double()
    tau = torch.full(mu.shape, 0.6 / ties).double()
    reading = Reading(means, torch.special.ndtr(means / sigma), means, sigma, tau)
    found = calibrate(reading, torch.from_numpy(ranks))
    # Relevance depends on the same noise and cuts it, so that temperatures are near, not at, the truth.
    assert found.ties == pytest.approx(ties, rel=0.15)
    assert found.pairs == pytest.approx(2.0, rel=0.25)
    again = calibrate(found.apply(reading), torch.from_numpy(ranks))
    assert again.ties == pytest.approx(1.0, abs=0.1)
    errors = compare(reading, torch.from_numpy(ranks), found)["pairs"]
    assert errors.ece_after < errors.ece_before


def test_calibration_keeps_its_old_form():
    assert Calibration(2.0, 3.0).to_dict() == {"relevance": 2.0, "pairs": 3.0}
    assert Calibration(2.0, 3.0, 0.5).to_dict()["ties"] == 0.5
    reading = make("gmlr").read({"mu": torch.ones(1, 2), "logvar": torch.zeros(1, 2)})
    assert Calibration(1.0, 1.0, 2.0).apply(reading).tau is None


@pytest.mark.parametrize("thresholds", ["model", "label"])
def test_on_disk(tmp_path, thresholds):
    torch.manual_seed(0)
    recipe = Recipe(backbone="mlp", method_settings={"ties": "learned", "thresholds": thresholds})
    model = Model(*build(recipe, 4, TABLE), LABELS, recipe, TABLE, calibration=Calibration(1.0, 1.2, 1.5))
    with torch.no_grad():
        model.network.head.layers["tau"].values.add_(0.1)
    again = load(model.save(tmp_path / "model"))
    x = torch.randn(20, 3)
    assert again.calibration == model.calibration
    assert torch.equal(again.read(x).tau, model.read(x).tau)
    assert again.predict(x) == model.predict(x)
    assert again.predict(x).tau[0, 0] > 0.5 * 1.5


def test_models_without_ties_are_written_as_before(tmp_path):
    recipe = Recipe(backbone="mlp")
    torch.manual_seed(0)
    model = Model(*build(recipe, 4, TABLE), LABELS, recipe, TABLE, calibration=Calibration(1.1, 1.2))
    torch.manual_seed(0)
    with_ties = build(recipe.replace(method_settings={"ties": "learned"}), 4, TABLE)[0].state_dict()
    assert "head.layers.tau.values" in with_ties
    assert all(torch.equal(with_ties[name], part) for name, part in model.network.state_dict().items())
    config = json.loads((model.save(tmp_path / "model") / "config.json").read_text())
    assert config["calibration"] == {"relevance": 1.1, "pairs": 1.2}
    assert config["format_version"] == 1
    assert load(tmp_path / "model").read(torch.zeros(1, 3)).tau is None


def test_onnx(tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    from gaussianmlr.model.export import export_onnx

    torch.manual_seed(0)
    recipe = Recipe(backbone="mlp", method_settings={"ties": "learned"})
    model = Model(*build(recipe, 4, TABLE), LABELS, recipe, TABLE, calibration=Calibration(1.0, 1.2, 1.5))
    export_onnx(model, tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx", providers=["CPUExecutionProvider"])
    x = torch.randn(5, 3)
    mu, sigma, tau = (
        torch.from_numpy(part) for part in session.run(["mu", "sigma", "tau"], {"inputs": x.numpy()})
    )
    assert torch.equal(normal.best_buckets(mu, sigma, tau), torch.tensor(model.predict(x).ranks))

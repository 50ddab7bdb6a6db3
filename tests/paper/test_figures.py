"""Numbers of figures against scipy and naive loops; readings of models on probes."""

import json

import numpy as np
import pytest
import torch
from scipy import stats

from gaussianmlr import methods
from gaussianmlr.data import adjusting_sequences
from gaussianmlr.metrics.sequences import (
    correlation,
    follow_score,
    follow_sigma,
    overlap,
    rank_correlation,
    spread,
)
from gaussianmlr.model.calibration import Calibration
from gaussianmlr.model.model import Model, build
from gaussianmlr.model.scale import JndScale
from gaussianmlr.paper.cells import Cell, recipe_of
from gaussianmlr.paper.probes import follow
from gaussianmlr.paper.singles import Bars, bars_of
from gaussianmlr.paper.strips import checkpoints

RANDOM = np.random.default_rng(0)


def test_correlations():
    x, y = RANDOM.normal(size=30), RANDOM.integers(0, 5, 30).astype(float)
    assert correlation(x, y) == pytest.approx(stats.pearsonr(x, y).statistic)
    assert rank_correlation(x, y) == pytest.approx(stats.spearmanr(x, y).statistic)
    assert correlation(x, np.ones(30)) == 0.0


def test_following_a_score():
    truth = adjusting_sequences("gray-s", count=3, frames=7, digits="embedded").significance
    scores = truth + RANDOM.normal(size=truth.shape)
    found = follow_score(scores, truth)
    pairs = [(scores[i, :, p], truth[i, :, p]) for i in range(3) for p in (0, 2)]
    assert found["linearity"] == pytest.approx(
        np.mean([stats.pearsonr(*pair)[0] for pair in pairs]), abs=1e-4
    )
    assert found["monotonicity"] == pytest.approx(
        np.mean([stats.spearmanr(*pair)[0] for pair in pairs]), abs=1e-4
    )
    drift = np.mean([np.std(s[:, 1]) / np.mean([np.ptp(s[:, 0]), np.ptp(s[:, 2])]) for s in scores])
    assert found["drift"] == pytest.approx(drift, abs=1e-4)
    squared = follow_score(truth**3, truth)  # monotone, not straight
    assert squared["monotonicity"] == 1.0
    assert squared["linearity"] < 0.99
    assert follow_score(np.ones_like(truth), truth)["drift"] is None  # JSON has no infinity
    assert follow_sigma(truth, truth)["follows"] == 1.0
    assert follow_sigma(truth, truth)["low"] == 1.0
    assert follow_sigma(truth, truth)["high"] == 9.0


@pytest.mark.parametrize("gap", [0.0, 0.5, 3.0, 20.0])
def test_overlap_of_equal_deviations_has_a_closed_form(gap):
    assert overlap(1.0, 2.0, 1.0 + gap, 2.0) == pytest.approx(2 * stats.norm.cdf(-gap / 4), abs=1e-6)


def test_spread_of_scores():
    scores = RANDOM.normal([0, 5, 10, 10], [1, 1, 2, 2], size=(4000, 4))
    found = spread(scores, np.tile([1.0, 1.5, 2.0, 2.5], (4000, 1)))
    np.testing.assert_allclose(found["means"], [0, 5, 10, 10], atol=0.2)
    np.testing.assert_allclose(found["stds"], [1, 1, 2, 2], atol=0.1)
    assert found["overlaps"][0] == pytest.approx(2 * stats.norm.cdf(-2.5), abs=0.01)
    assert found["overlaps"][2] > 0.95


def test_checkpoints_are_different_and_in_order():
    scores = RANDOM.normal(size=50)
    chosen = checkpoints(scores, 10)
    assert len(set(chosen)) == 10
    assert np.all(np.diff(scores[chosen]) >= 0)
    assert {int(np.argmin(scores)), int(np.argmax(scores))} <= set(chosen)


def test_bars_agree_with_readings():
    """Relevant is what stands above its threshold, in every method's own quantity."""
    outputs = {
        "crpc": {"pair": torch.randn(5, 10)},
        "lsep": {"score": torch.randn(5, 4), "threshold": torch.randn(5, 4)},
        "gmlr": {"mu": torch.randn(5, 4), "logvar": torch.randn(5, 4)},
    }
    for name, output in outputs.items():
        method = methods.make(name)
        relevant = (method.read(output).scores > 0).numpy()
        for row, found in enumerate(bars_of(method, output, tuple("abcd"))):
            assert ((found.values > found.thresholds) == relevant[row]).all()
            assert set(found.order.replace(" > ", "")) == {"abcd"[k] for k in range(4) if relevant[row, k]}
    votes = bars_of(methods.make("crpc"), outputs["crpc"], tuple("abcd"))[0]
    chance, naive, pair = torch.sigmoid(outputs["crpc"]["pair"][0]).tolist(), [0.0] * 5, 0
    for left in range(5):
        for right in range(left + 1, 5):
            naive[left] += chance[pair]
            naive[right] += 1 - chance[pair]
            pair += 1
    np.testing.assert_allclose([*votes.values, votes.thresholds[0]], naive, atol=1e-6)


@pytest.mark.parametrize("name", ["gmlr", "lsep", "crpc"])
def test_gauges_of_a_model(name):
    torch.manual_seed(0)
    recipe = recipe_of(Cell("gray-s", name, "strong", "smoke"))
    network, method = build(recipe, 10, {"kind": "image", "channels": 1})
    model = Model(network.eval(), method, tuple("0123456789"), recipe, {"kind": "image", "channels": 1})
    probe = adjusting_sequences("gray-s", count=2, frames=3, digits="embedded")
    track = follow(model, probe)
    assert track.raw.shape == (2, 3, 3)
    reading = model.read(probe[1])
    for place, digit in enumerate(probe.labels[1]):
        expected = reading.scores[:, digit].numpy()
        if name == "gmlr":
            np.testing.assert_allclose(track.raw[1, :, place], expected, atol=1e-5)
            scale = np.exp(np.log(reading.sigma.numpy()).mean(1))
            np.testing.assert_allclose(track.canonical[1, :, place], expected / scale, atol=1e-5)
            np.testing.assert_allclose(track.sigma_raw[1, :, place], reading.sigma[:, digit], atol=1e-5)
        else:
            np.testing.assert_allclose(track.canonical[1, :, place], expected, atol=1e-5)
    assert (track.thresholds is not None) == (name == "lsep")
    model.jnd, model.calibration = JndScale([0.0, 1.0], [0.0, 1.0]), Calibration(pairs=2.0)
    if name == "gmlr":  # what a calibrated prediction shows, before its temperature
        shown = model.predict(probe[1]).significance[:, probe.labels[1]]
        np.testing.assert_allclose(follow(model, probe).jnd[1], 2.0 * shown, rtol=1e-4, atol=1e-5)


def test_bars_survive_the_cell():
    outputs = {"mu": torch.randn(1, 3), "logvar": torch.randn(1, 3)}
    (said,) = bars_of(methods.make("gmlr"), outputs, ("a", "b", "c"))
    back = Bars.from_dict(json.loads(json.dumps(said.to_dict())))
    np.testing.assert_allclose(back.values, outputs["mu"][0], atol=1e-4)
    np.testing.assert_allclose(back.deviations, methods.make("gmlr").read(outputs).sigma[0], atol=1e-4)
    assert back.order == said.order

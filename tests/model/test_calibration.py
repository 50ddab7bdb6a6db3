"""Temperatures: found again where they are known, harmless where the data says nothing."""

import json

import numpy as np
import pytest
import torch
from scipy.optimize import minimize_scalar
from scipy.special import log_expit, log_ndtr, ndtr

import gaussianmlr
from gaussianmlr import DataError, metrics
from gaussianmlr.data.loading import Arrays
from gaussianmlr.methods import Reading
from gaussianmlr.metrics import abstention
from gaussianmlr.model.calibration import COLDEST, HOTTEST, Calibration, calibrate, compare
from gaussianmlr.model.recipe import Recipe
from gaussianmlr.training.fit import fit


def gaussian(mu, sigma):
    mu, sigma = torch.as_tensor(mu, dtype=torch.float64), torch.as_tensor(sigma, dtype=torch.float64)
    return Reading(mu, torch.special.ndtr(mu / sigma), mu, sigma)


def simulated(count, temperature, seed, shift=0.0):
    """A model whose sigma is `temperature` times too small, and the truth drawn by the right one."""
    rng = np.random.default_rng(seed)
    mu = rng.normal(shift, 1.0, (count, 5))
    sigma = rng.uniform(0.5, 1.5, mu.shape)
    truth = rng.normal(mu, sigma)
    ranks = np.where(
        truth > 0, 1 + ((truth[:, None, :] < truth[:, :, None]) & (truth > 0)[:, None]).sum(-1), 0
    )
    return gaussian(mu, sigma / temperature), torch.from_numpy(ranks)


@pytest.mark.parametrize("temperature", [0.4, 1.0, 3.0])
def test_known_temperatures_are_found_again(temperature):
    reading, ranks = simulated(4000, temperature, seed=0)
    assert calibrate(reading, ranks).relevance == pytest.approx(temperature, rel=0.05)
    # Where all labels are relevant, every pair is ordered and none is left out for what it is.
    reading, ranks = simulated(4000, temperature, seed=1, shift=12.0)
    assert (ranks > 0).all()
    assert calibrate(reading, ranks).pairs == pytest.approx(temperature, rel=0.05)


def test_a_few_wild_mistakes_do_not_set_the_temperature():
    reading, ranks = simulated(2000, 2.0, seed=8)
    certain = gaussian(
        torch.cat([reading.mu, torch.full((10, 5), 40.0)]), torch.cat([reading.sigma, torch.ones(10, 5)])
    )
    truth = torch.cat([ranks, torch.zeros(10, 5, dtype=ranks.dtype)])  # half of a percent, each 40 sigmas off
    assert calibrate(certain, truth).relevance == pytest.approx(2.0, rel=0.1)


@pytest.mark.parametrize("temperature", [0.5, 2.0])
def test_log_odds_too(temperature):
    rng = np.random.default_rng(2)
    odds = rng.normal(0, 2, (4000, 3))
    ranks = torch.from_numpy((rng.random(odds.shape) < 1 / (1 + np.exp(-odds))).astype(np.int64))
    found = calibrate(Reading.of_scores(torch.from_numpy(odds * temperature).float()), ranks)
    assert found.relevance == pytest.approx(temperature, rel=0.06)
    assert found.pairs == 1.0


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("supervision", ["strong", "weak"])
def test_the_likelihood_is_the_largest_one(seed, supervision):
    """Against a plain loop over labels and pairs, another optimiser; drawn towards 1 by its noise."""
    reading, ranks = simulated(60, 2.0, seed)
    ranks[::7, 1] = -1
    order = [[min(int(r), 1) for r in row] if supervision == "weak" else row.tolist() for row in ranks]
    mu, sigma = reading.mu.tolist(), reading.sigma.tolist()
    sides = {1: [], 0: []}
    pairs = []
    for number, (m, s, row) in enumerate(zip(mu, sigma, order)):
        for u, rank in enumerate(row):
            if rank >= 0:
                sides[int(rank > 0)].append((number, m[u] / s[u] * (1 if rank > 0 else -1)))
            for v, other in enumerate(row):
                if rank > other >= 0:
                    pairs.append((number, (m[u] - m[v]) / (s[u] ** 2 + s[v] ** 2) ** 0.5))

    def cost(log_temperature, lists, left_out, lapses):
        total = 0.0
        for numbers, margins in lists:
            z = margins / np.exp(log_temperature)
            logs = np.log(lapses / 2 + (1 - lapses) * ndtr(z))
            total -= logs[~np.isin(numbers, left_out)].sum() + log_ndtr(-z).mean()
        return total

    def best(lists, left_out=()):
        shares = [(lists, list(left_out), share) for share in (0, 0.005, 0.01, 0.02)]
        found = [minimize_scalar(cost, args=share, bounds=(-3, 3), method="bounded") for share in shares]
        return min(found, key=lambda one: one.fun).x

    def shrunk(lists):
        without = [best(lists, range(start, start + 3)) for start in range(0, 60, 3)]  # 20 groups of three
        noise = 19 / 20 * ((without - np.mean(without)) ** 2).sum()
        return np.exp(best(lists) * max(0, 1 - noise / best(lists) ** 2))

    found = calibrate(reading, ranks, supervision=supervision)
    assert found.relevance == pytest.approx(shrunk([np.array(side).T for side in sides.values()]), rel=3e-3)
    assert found.pairs == pytest.approx(shrunk([np.array(pairs).T]), rel=3e-3)


def test_few_instances_move_a_temperature_only_beyond_noise():
    """On average over small samples of a known law, nothing is lost where the model is right."""
    held_out = {true: simulated(4000, true, seed=99) for true in (1.0, 2.0)}

    def loss(true, temperature):
        reading, ranks = held_out[true]
        z = torch.where(ranks > 0, 1, -1) * reading.mu / reading.sigma / temperature
        return -float(torch.special.log_ndtr(z).mean())

    for true in (1.0, 2.0):
        small = [calibrate(*simulated(25, true, seed)).relevance for seed in range(15)]
        excess = np.mean([loss(true, found) for found in small]) - loss(true, true)
        if true == 1.0:
            assert np.mean(np.array(small) == 1.0) > 0.4  # one in three errors of a normal law is above its s
            assert np.quantile(np.abs(np.log(small)), 0.5) < 0.05
            assert excess < 0.005
        else:
            assert excess < 0.25 * (loss(true, 1.0) - loss(true, true))
            assert np.median(small) == pytest.approx(2.0, rel=0.15)


def test_one_instance_alone_says_nothing():
    reading, ranks = simulated(1, 3.0, seed=0)
    assert calibrate(reading, ranks) == Calibration(1.0, 1.0)


def test_degenerate_data():
    one = torch.ones(3, 2)
    none = calibrate(gaussian(one, one), torch.full((3, 2), -1))
    assert none == Calibration(1.0, 1.0)
    assert calibrate(gaussian(0 * one, one), torch.tensor([[1, 0]] * 3)) == Calibration(1.0, 1.0)
    # Without a mistake the temperature falls, but not to where nothing is ever doubted again.
    sure, order = torch.tensor([[2.0, -2.0]] * 3), torch.tensor([[1, 0]] * 3)
    right = calibrate(gaussian(sure, torch.ones(3, 2)), order)
    assert right.relevance > COLDEST
    assert right.pairs > COLDEST
    wrong = calibrate(gaussian(sure, torch.ones(3, 2)), 1 - order)
    assert wrong.to_dict() == pytest.approx({"relevance": HOTTEST, "pairs": HOTTEST})
    far = calibrate(gaussian(torch.tensor([[1e4, -1e4]]), torch.ones(1, 2)), torch.tensor([[1, 1]]))
    assert COLDEST <= far.relevance <= HOTTEST
    saturated = calibrate(Reading.of_scores(torch.tensor([[90.0, -90.0]])), torch.tensor([[1, 1]]))
    assert COLDEST <= saturated.relevance <= HOTTEST
    single = calibrate(gaussian(torch.ones(4, 1), torch.ones(4, 1)), torch.tensor([[1], [1], [0], [1]]))
    assert single.pairs == 1.0


@pytest.mark.parametrize("bad", [0, -1.0, float("nan"), float("inf"), "hot", True])
def test_bad_temperatures_are_refused(bad):
    with pytest.raises(DataError, match="the temperature of pairs is"):
        Calibration(1.0, bad)


def test_shapes_are_checked():
    with pytest.raises(DataError, match=r"expected ranks of the reading's shape \[2, 3\], got \[2, 2\]"):
        calibrate(Reading.of_scores(torch.ones(2, 3)), torch.ones(2, 2))


def test_log_odds_at_a_temperature():
    odds = torch.tensor([[-80.0, -3.0, 0.0, 5.0, 12.0]])
    found = Calibration(2.0).apply(Reading.of_scores(odds)).p_relevant
    assert np.allclose(found.log().numpy(), log_expit(odds.numpy() / 2), rtol=2e-3, atol=1e-5)


def test_errors_fall_on_data_that_was_not_fitted():
    reading, ranks = simulated(1500, 3.0, seed=4)
    found = calibrate(reading, ranks)
    other, truth = simulated(1500, 3.0, seed=5)
    report = compare(other, truth, found)
    assert set(report) == {"relevance", "pairs"}
    for part in report.values():
        assert part.ece_after < 0.03 < 0.1 < part.ece_before
    again = metrics.ece(found.apply(other).p_relevant, truth)
    assert report["relevance"].ece_after == pytest.approx(float(again))
    assert set(compare(Reading.of_scores(other.scores), truth, found)) == {"relevance"}


LABELS = ("sky", "sea", "sun")


def noisy(count, seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(count, 8)).astype(np.float32)
    hidden = x[:, :3] + rng.normal(0, 1.5, (count, 3))
    ranks = np.where(
        hidden > 0, 1 + ((hidden[:, None] < hidden[:, :, None]) & (hidden > 0)[:, None]).sum(-1), 0
    )
    return Arrays(x, ranks)


@pytest.fixture(scope="module")
def trained():
    recipe = Recipe(backbone="mlp", epochs=40, batch_size=16, rate=0.01, weight_decay=0.0, select="last")
    return fit(recipe, noisy(150, 0), noisy(300, 1), labels=LABELS).model


def test_a_model_that_learned_by_heart_is_calmed(trained):
    """Trained too long on noise, a network is too sure; validation data tells it, and test data agrees."""
    assert trained.calibration.relevance > 1.2
    assert trained.calibration.pairs > 1.2
    test = noisy(1000, 2)
    report = compare(trained.read(test.inputs, calibrated=False), test.ranks, trained.calibration)
    for part in report.values():
        assert part.ece_after < 0.6 * part.ece_before
    errors = trained.about["calibration_error"]
    assert errors["pairs"]["after"] < errors["pairs"]["before"]


def test_calibration_is_kept_and_can_be_left_out(trained, tmp_path):
    folder = trained.save(tmp_path / "model")
    again = gaussianmlr.load(folder)
    assert again.calibration == trained.calibration
    x = noisy(20, 3).inputs
    with_it, without = again.predict(x), again.predict(x, calibrated=False)
    assert np.array_equal(with_it.ranks, without.ranks)
    assert np.array_equal(with_it.scores, without.scores)
    assert (np.abs(with_it.p_relevant - 0.5) < np.abs(without.p_relevant - 0.5)).all()
    assert np.allclose(with_it.raw.sigma, without.raw.sigma * again.calibration.pairs)
    config = json.loads((folder / "config.json").read_text())
    del config["calibration"], config["config_sha256"]  # a model of before there were any
    (folder / "config.json").write_text(json.dumps(config))
    old = gaussianmlr.load(folder)
    assert old.calibration is None
    assert np.array_equal(old.predict(x).p_relevant, without.p_relevant)
    config["calibration"] = {"relevance": -1}
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(DataError, match=r"calibration\.relevance is -1"):
        gaussianmlr.load(folder)


def test_off_by_the_recipe(tmp_path):
    recipe = Recipe(backbone="mlp", epochs=1, calibrate=False)
    data = noisy(40, 0)
    model = fit(recipe, data, data, labels=LABELS, out=tmp_path).model
    assert model.calibration is None
    assert "calibration_error" not in model.about
    # A finished run is not trained again for it, and not refused.
    later = fit(recipe.replace(calibrate=True), data, data, labels=LABELS, out=tmp_path).model
    assert later.calibration is not None
    assert torch.equal(later.read(data.inputs).scores, model.read(data.inputs).scores)


def naive_abstention(p_above, ranks, confidence):
    """A double loop over the pairs of every instance."""
    right = wrong = pairs = 0
    for table, row in zip(p_above, ranks):
        for u, v in np.ndindex(table.shape):
            if row[u] > row[v] >= 0:
                pairs += 1
                right += table[u, v] >= confidence and table[u, v] > 0.5
                wrong += table[v, u] >= confidence and table[v, u] > 0.5
    made = right + wrong
    return made / pairs if pairs else 0.0, right / made if made else 0.0, made


def test_abstention_against_a_naive_loop(monkeypatch):
    rng = np.random.default_rng(0)
    upper = np.triu(rng.choice([0.1, 0.5, 0.62, 0.9, 0.97, 1.0], (12, 5, 5)), 1)
    p_above = upper + np.tril(1 - upper.transpose(0, 2, 1), -1) + 0.5 * np.eye(5)
    ranks = rng.integers(-1, 4, (12, 5))
    confidences = [0.5, 0.6, 0.62, 0.9, 0.95, 1.0]
    curve = abstention(p_above, ranks, confidences)
    for place, confidence in enumerate(confidences):
        expected = naive_abstention(p_above, ranks, confidence)
        found = (curve.coverage[place], curve.accuracy[place], curve.counts[place])
        assert found == pytest.approx(expected)
    from gaussianmlr.metrics import calibration

    monkeypatch.setattr(calibration, "BLOCK", 30)
    again = abstention(
        torch.from_numpy(p_above), torch.from_numpy(ranks), torch.tensor(confidences, dtype=torch.float64)
    )
    assert isinstance(again.coverage, torch.Tensor)
    assert again.coverage.tolist() == curve.coverage.tolist()
    empty = abstention(np.zeros((0, 2, 2)), np.zeros((0, 2), dtype=int))
    assert len(empty.coverage) == 50
    assert not empty.coverage.any()


def test_abstention_of_true_probabilities_gets_better_as_it_says_less():
    reading, ranks = simulated(3000, 1.0, seed=6, shift=12.0)
    from gaussianmlr.normal import p_above

    curve = abstention(p_above(reading.mu, reading.sigma), ranks)
    assert curve.coverage[0] == 1.0
    assert (curve.coverage.diff() <= 0).all()
    assert (curve.accuracy >= curve.confidences - 0.01).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.ones((1, 2)), [[1, 0]]), r"expected probabilities of shape \[1, 2, 2\] beside these ranks"),
        ((np.full((1, 2, 2), 0.5), [[1, 0]], [0.4]), "expected a vector of confidences from 0.5 to 1"),
    ],
)
def test_bad_abstention_is_named(arguments, message):
    with pytest.raises(DataError, match=message):
        abstention(*arguments)

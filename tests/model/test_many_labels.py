"""Readings of many labels: pairs of the most significant ones, and costs that follow the orders."""

import numpy as np
import pytest
import torch

from gaussianmlr import metrics
from gaussianmlr.errors import DataError
from gaussianmlr.methods import make
from gaussianmlr.methods.base import Reading
from gaussianmlr.model import pairs
from gaussianmlr.model.calibration import Calibration, _pair_margins, compare
from gaussianmlr.model.model import Model, build, load
from gaussianmlr.model.prediction import Prediction, Significances
from gaussianmlr.model.recipe import Recipe
from gaussianmlr.nn.network import MOST_PAIRS, make_network
from gaussianmlr.normal import Significance, p_above
from support.memory import peak_of


def drawn(count, width, seed=0):
    """A prediction and true ranks, with ties and unknown labels."""
    rng = np.random.default_rng(seed)
    raw = Significances(rng.normal(size=(count, width)), rng.uniform(0.5, 2, (count, width)))
    labels = tuple(f"l{k}" for k in range(width))
    found = Prediction(raw.mu, torch.special.ndtr(torch.tensor(raw.mu / raw.sigma)).numpy(), labels, raw)
    return found, rng.integers(-1, 4, (count, width)) * (rng.random((count, width)) < 0.6)


def test_pairs_of_the_top_are_those_of_all():
    found, _ = drawn(5, 30)
    places, above, ties = found.top_pairs(7)
    assert not ties.any()  # without a threshold of indifference
    for row in range(5):
        best = sorted(range(30), key=lambda k: -found.scores[row, k])[:7]
        assert places[row].tolist() == best
        np.testing.assert_allclose(above[row], found.p_above[row][np.ix_(best, best)], rtol=1e-12)
    assert found.top_pairs(99).p_above.shape == (5, 30, 30)
    assert found.partial_text(0.8, top=30) == found.partial_text(0.8)
    for bad in (0, -1, 2.5, True, "5"):
        with pytest.raises(DataError, match="expected a number of labels from 1 up"):
            found.top_pairs(bad)


def test_a_partial_order_of_the_top_makes_the_statements_of_all():
    raw = Significances(np.array([[9.0, 6.0, 3.0, -5.0]]), np.ones((1, 4)))
    found = Prediction(raw.mu, np.array([[0.99, 0.99, 0.99, 0.01]]), tuple("abcd"), raw)
    assert found.partial_text(0.9) == ["a > b > c"]
    assert found.partial_text(0.9, top=2) == ["a > b"]


def test_frames_and_json_of_the_top():
    found, _ = drawn(3, 20)
    whole, some = found.to_dict("p_first", "expected_rank"), found.to_dict("p_first", "expected_rank", top=4)
    for row in range(3):
        best = sorted(range(20), key=lambda k: -found.scores[row, k])[:4]
        mine = some["instances"][row]
        assert list(mine["labels"]) == [f"l{k}" for k in best]
        assert mine["order"] == whole["instances"][row]["order"]
        for label, values in mine["labels"].items():
            assert values == whole["instances"][row]["labels"][label]
    held = {label for one in some["instances"] for label in one["labels"]}
    assert some["labels"] == [label for label in found.labels if label in held]
    frame = found.to_frame(top=4)
    assert len(frame) == 12
    assert frame["label"].tolist() == [label for one in some["instances"] for label in one["labels"]]
    sure = found.to_dict(confidence=0.8, top=4)["instances"][0]
    assert sure["partial"] == found.partial_text(0.8, top=4)[0]
    assert "rank_low" not in next(iter(sure["labels"].values()))


def test_what_has_a_number_per_pair_of_many_labels_is_refused():
    width = 30_000
    found = Prediction(np.zeros((1, width)), np.full((1, width), 0.5), [str(k) for k in range(width)])
    raw = Significances(np.zeros((1, width)), np.ones((1, width)))
    found = Prediction(found.scores, found.p_relevant, found.labels, raw)
    for read in (
        lambda: found.p_above,
        lambda: found.p_rank,
        lambda: found.rank_interval(),
        lambda: found.partial_order(),
        lambda: found.partial_text(),
        lambda: found.partial_text(top=width),
        lambda: found.top_pairs(width),
        lambda: found.to_json(confidence=0.9, top=2 * width),
    ):
        with pytest.raises(DataError, match=rf"900,000,000 numbers, .* expected at most {pairs.MOST:,}"):
            read()
    assert found.top_pairs(50).p_above.shape == (1, 50, 50)


def test_methods_of_pairs_refuse_many_labels():
    most = 1_999
    assert make("crpc").outputs[0].size(most) <= MOST_PAIRS < make("crpc").outputs[0].size(most + 1)
    with pytest.raises(DataError, match=r"50,005,000 for 10,000 labels; .*\(1,999 labels\). gmlr, ranknet"):
        make_network(make("crpc"), labels=10_000, channels=2, backbone="mlp", head="linear")


@pytest.mark.parametrize("kind", [np.asarray, torch.tensor])
def test_metrics_of_pairs_by_significances_are_those_of_the_matrix(kind):
    found, truth = drawn(40, 12, 1)
    law = Significance(kind(found.raw.mu), kind(found.raw.sigma))
    matrix = kind(found.p_above)
    for measure in (metrics.reliability, metrics.abstention):
        mine, theirs = measure(law, truth), measure(matrix, truth)
        for name in mine._fields:
            np.testing.assert_allclose(getattr(mine, name), getattr(theirs, name), rtol=1e-12, atol=1e-15)
        assert type(mine[1]) is type(theirs[1])
    assert float(metrics.ece(law, truth)) == pytest.approx(float(metrics.ece(matrix, truth)), rel=1e-12)
    with pytest.raises(DataError, match="expected mu and sigma of the ranks' shape"):
        metrics.ece(law, truth[:, :5])


def test_calibration_compares_every_ordered_pair_once():
    """Against a loop over all pairs."""
    found, truth = drawn(6, 9, 2)
    mu, sigma = map(torch.tensor, found.raw)
    margins, instances = [], []
    for row in range(6):
        for u in range(9):
            for v in range(9):
                if truth[row, u] > truth[row, v] >= 0:
                    margins.append((mu[row, u] - mu[row, v]) / torch.hypot(sigma[row, u], sigma[row, v]))
                    instances.append(row)
    side, tied = _pair_margins(mu, sigma, None, torch.tensor(truth))
    assert not len(tied.instances)
    assert side.instances.tolist() == instances
    np.testing.assert_allclose(side.margins, margins, rtol=1e-14)
    reading = Reading(mu, torch.tensor(found.p_relevant), mu, sigma)
    both = compare(reading, torch.tensor(truth), Calibration(pairs=2.0), of=("pairs",))["pairs"]
    expected = metrics.ece(p_above(mu, 2 * sigma), torch.tensor(truth))
    assert both.ece_after == pytest.approx(float(expected), rel=1e-12)


def test_memory_of_a_comparison_does_not_grow_with_the_square_of_the_labels():
    """4 x 4,000 labels: a matrix of pairs alone would take 0.5 GB."""
    found, _ = drawn(4, 4_000)
    truth = torch.zeros(4, 4_000, dtype=torch.int64)
    truth[:, :10] = torch.arange(1, 11)
    reading = Reading(*map(torch.tensor, (found.scores, found.p_relevant, *found.raw)))
    assert peak_of(lambda: compare(reading, truth, Calibration(pairs=2.0))) < 100


def test_a_model_of_very_many_labels_is_loaded_as_it_was_saved(tmp_path):
    """Names of 150,000 labels and columns, and the scaling of these, take 15 MB."""
    count = 150_000
    recipe = Recipe(backbone="mlp", backbone_settings={"width": 2}, head_settings={"hidden": 2})
    scaling = {"mean": np.linspace(0, 1 / 3, count).tolist(), "std": np.linspace(1, 4 / 3, count).tolist()}
    columns = [f"column {place:06}" for place in range(count)]
    inputs = {"kind": "table", "channels": count, "columns": columns, "scaling": scaling}
    labels = tuple(f"label {place:06}" for place in range(count))
    model = Model(*build(recipe, count, inputs), labels, recipe, inputs)
    found = load(model.save(tmp_path / "model"))
    assert (found.labels, found.inputs["scaling"]) == (labels, scaling)
    with pytest.raises(DataError, match="1,000,001 labels; expected at most 1,000,000 in a model"):
        build(recipe, 1_000_001, {"kind": "table", "channels": 2})

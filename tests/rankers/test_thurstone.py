"""Thurstone's model: a naive likelihood, finite differences, known people found again, peers."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from gaussianmlr import DataError, metrics, rankers
from gaussianmlr.orders.reading import dense
from gaussianmlr.rankers.likelihood import State, all_terms, compare, evaluate, expect


def people(rng, instances, sigma, threshold, labels=8, missing=0.0, spread=2.5):
    """True significances, and what people with this noise and these thresholds answer."""
    truth = rng.normal(0, spread, (instances, labels))
    sigma, threshold = np.asarray(sigma), np.asarray(threshold)
    perceived = truth[:, None] + sigma[:, None] * rng.normal(size=(instances, len(sigma), labels))
    above = perceived - threshold[:, None]
    flat = above.reshape(-1, labels)
    ranks = dense(flat, flat > 0).reshape(above.shape)
    ranks[rng.random(ranks.shape[:2]) < missing] = -1
    return truth, ranks


def tau(order, truth):
    return metrics.kendall_tau_b(order, dense(truth, truth > 0))


def example(rng):
    table = rng.integers(-1, 4, (4, 3, 5))
    table[0, 1] = -1
    cells = table.shape[0] * table.shape[2]
    state = State(
        rng.normal(0, 2, cells), rng.uniform(0.2, 2, cells), rng.normal(0, 0.5, 3), rng.normal(0, 1, 3), 0.4
    )
    return table, (table >= 0).any(1).ravel(), state


def naive_objective(table, state):
    nodes, shares = np.polynomial.hermite.hermgauss(7)

    def expected(mean, variance):
        total = 0.0
        for node, share in zip(nodes, shares):
            total += share / np.sqrt(np.pi) * norm.logcdf(mean + np.sqrt(2 * variance) * node)
        return total

    count, many, labels = table.shape
    mean, variance = state.mean.reshape(count, labels), state.variance.reshape(count, labels)
    sigma, total = np.exp(state.log_sigma), 0.0
    for i in range(count):
        for r in range(many):
            order = table[i, r]
            for k in range(labels):
                if order[k] >= 0:
                    sign = 1 if order[k] > 0 else -1
                    distance = sign * (mean[i, k] - state.threshold[r]) / sigma[r]
                    total += expected(distance, variance[i, k] / sigma[r] ** 2)
                for other in range(labels):
                    if order[k] > order[other] > 0:
                        both = (variance[i, k] + variance[i, other]) / (2 * sigma[r] ** 2)
                        distance = (mean[i, k] - mean[i, other]) / np.sqrt(2 * sigma[r] ** 2)
                        total += 2 / (order > 0).sum() * expected(distance, both)
        for k in range(labels):
            if (table[i, :, k] >= 0).any():  # minus the divergence of two Gaussians
                scale = np.exp(2 * state.log_scale)
                ratio = variance[i, k] / scale
                total -= 0.5 * (ratio - 1 - np.log(ratio) + mean[i, k] ** 2 / scale)
    total += sum(norm.logpdf(one, 0, 0.5) - norm.logpdf(0, 0, 0.5) for one in state.log_sigma)
    total += sum(norm.logpdf(one) - norm.logpdf(0) for one in state.threshold)
    return total - 10 * (state.log_scale + 2 * np.exp(-2 * state.log_scale))


@pytest.mark.parametrize("seed", range(5))
def test_objective_against_a_naive_loop(seed):
    table, seen, state = example(np.random.default_rng(seed))
    assert evaluate(compare(table), seen, state).value == pytest.approx(
        naive_objective(table, state), rel=1e-12
    )


@pytest.mark.parametrize("seed", range(3))
def test_gradients_against_finite_differences(seed):
    table, seen, state = example(np.random.default_rng(seed))
    answers = compare(table)
    slopes = evaluate(answers, seen, state)

    def difference(name, place, step=1e-5):
        values = []
        for sign in (1, -1):
            moved = getattr(state, name).copy()
            moved[place] += sign * step
            values.append(evaluate(answers, seen, state._replace(**{name: moved})).value)
        return (values[0] - values[1]) / (2 * step)

    for name, found in [
        ("mean", slopes.labels.mean),
        ("variance", slopes.labels.variance),
        ("log_sigma", slopes.person[:, 0]),
        ("threshold", slopes.person[:, 1]),
    ]:
        expected = [difference(name, place) for place in range(len(found))]
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    ("centre", "spread"), [(0.0, 0.3), (-1.0, 1.0), (3.0, 1.5), (-30.0, 2.0), (40.0, 1.0)]
)
def test_expectations_against_integration(centre, spread):
    found = expect(np.array([centre]), np.array([spread]), all_terms, 7)

    def integral(function):
        reach = 12 * spread
        return quad(
            lambda x: function(x) * norm.pdf(x, centre, spread), centre - reach, centre + reach, limit=200
        )[0]

    def slope(z):
        return np.exp(norm.logpdf(z) - norm.logcdf(z))

    assert found[0][0] == pytest.approx(integral(norm.logcdf), rel=0.02, abs=1e-3)
    assert found[1][0] == pytest.approx(integral(slope), rel=0.02, abs=2e-3)
    assert found[2][0] == pytest.approx(integral(lambda z: slope(z) * (z + slope(z))), rel=0.05, abs=0.01)


def test_the_fit_is_a_stationary_point():
    _, table = people(np.random.default_rng(0), 60, [0.5, 1, 1, 2], [0.3, -0.3, 0, 0], missing=0.2)
    found = rankers.thurstone(table, tolerance=1e-7, max_sweeps=1000)
    seen = (table >= 0).any(1).ravel()
    fill = np.nan_to_num
    state = State(
        fill(found.mean).ravel(), np.where(seen, fill(found.sd).ravel() ** 2, 1.0),
        np.log(found.sigma), found.threshold, np.log(found.scale),
    )  # fmt: skip
    slopes = evaluate(compare(table), seen, state)
    assert np.abs(slopes.labels.mean).max() < 1e-3
    assert np.abs(slopes.labels.variance).max() < 1e-3
    # along directions that keep the two sums which identify the model
    for column, weight in [(0, np.ones(4)), (1, found.sigma**-2)]:
        pull = (slopes.person[:, column] * weight).sum() / (weight**2).sum()
        assert np.abs(slopes.person[:, column] - pull * weight).max() < 0.01
    for step in (-0.01, 0.01):
        assert (
            evaluate(compare(table), seen, state._replace(log_scale=state.log_scale + step)).value
            < slopes.value
        )


@pytest.mark.slow
def test_known_people_are_found_again():
    rng = np.random.default_rng(1)
    sigma = np.exp(np.linspace(-0.8, 0.8, 12))[rng.permutation(12)]
    threshold = rng.normal(0, 0.5, 12)
    threshold -= (threshold / sigma**2).sum() / (sigma**-2).sum()
    truth, table = people(rng, 400, sigma, threshold, missing=0.4)
    found = rankers.thurstone(table)
    assert np.corrcoef(np.log(found.sigma), np.log(sigma))[0, 1] > 0.98
    assert np.abs(np.log(found.sigma / sigma)).max() < 0.25
    assert np.corrcoef(found.threshold, threshold)[0, 1] > 0.95
    assert np.abs(found.threshold - threshold).max() < 0.3
    assert found.scale == pytest.approx(2.5, rel=0.25)
    known = np.isfinite(found.mean)
    mean_rank = np.ma.masked_less(table, 0).mean(axis=1).filled(0)
    for chosen in (known, known & (truth > 0)):  # of irrelevant labels nobody says the order
        plain = np.corrcoef(mean_rank[chosen], truth[chosen])[0, 1]
        assert np.corrcoef(found.mean[chosen], truth[chosen])[0, 1] > plain + 0.01
    assert ((found.mean > 0) == (truth > 0))[known].mean() > 0.93
    assert 0.005 < found.log_sigma_error.min() < found.log_sigma_error.max() < 0.1
    assert np.log(found.sigma).mean() == pytest.approx(0, abs=1e-12)
    assert (found.threshold * found.reliability).sum() == pytest.approx(0, abs=1e-9)
    np.testing.assert_array_equal(found.mean, rankers.thurstone(table).mean)


@pytest.mark.slow
def test_one_careless_person_costs_mean_rank_but_not_thurstone():
    rng = np.random.default_rng(2)
    truth, table = people(rng, 300, [0.7] * 5, [0.0] * 5)
    clean = {method: tau(rankers.aggregate(table, method), truth) for method in ("mean_rank", "thurstone")}
    careless = table.copy()
    careless[:, 0] = careless[rng.permutation(300), 0]
    noisy = {method: tau(rankers.aggregate(careless, method), truth) for method in clean}
    assert clean["mean_rank"] - noisy["mean_rank"] > 0.03
    without = tau(rankers.aggregate(table[:, 1:], "thurstone"), truth)  # as if the person had not been there
    assert without - noisy["thurstone"] < 0.005
    assert noisy["thurstone"] > noisy["mean_rank"] + 0.02
    found = rankers.thurstone(careless)
    assert found.sigma.argmax() == 0
    assert found.sigma[0] > 3 * found.sigma[1:].max()


def test_names_of_people_and_labels_do_not_matter():
    rng = np.random.default_rng(3)
    _, table = people(rng, 40, [0.5, 1, 2], [0, 0.5, -0.5], labels=5, missing=0.2)
    whole = rankers.thurstone(table)
    rows, who, labels = rng.permutation(40), rng.permutation(3), rng.permutation(5)
    turned = rankers.thurstone(table[np.ix_(rows, who, labels)])
    np.testing.assert_allclose(turned.sigma, whole.sigma[who], rtol=1e-8)
    np.testing.assert_allclose(turned.threshold, whole.threshold[who], atol=1e-8)
    np.testing.assert_allclose(turned.mean, whole.mean[np.ix_(rows, labels)], atol=1e-7)
    np.testing.assert_array_equal(turned.ranks(), whole.ranks()[np.ix_(rows, labels)])


def test_few_answers_shrink_towards_the_common_noise():
    rng = np.random.default_rng(4)
    _, table = people(rng, 200, [0.7, 0.7, 0.7, 0.7], [0.0] * 4)
    table[:, 3] = table[rng.permutation(200), 3]
    many = rankers.thurstone(table)
    table[3:, 3] = -1
    few = rankers.thurstone(table)
    assert 1 < few.sigma[3] / few.sigma[:3].mean() < 0.5 * many.sigma[3] / many.sigma[:3].mean()
    assert few.log_sigma_error[3] > 3 * few.log_sigma_error[0]
    table[:, 3] = -1
    nobody = rankers.thurstone(table)
    assert (nobody.sigma[3], nobody.threshold[3], nobody.log_sigma_error[3]) == (1.0, 0.0, 0.5)


def test_ties_and_unknown_labels():
    table = np.array([[[2, 1, 1, 0, -1], [2, 1, 1, 0, -1]], [[1, 0, 0, 0, 0], [-1, -1, -1, -1, -1]]])
    found = rankers.thurstone(table)
    assert found.ranks().tolist() == [[2, 1, 1, 0, -1], [1, 0, 0, 0, 0]]
    assert np.isnan(found.mean[0, 4])
    assert np.isfinite(found.sd[0, :4]).all()
    # one order against a tie decides
    assert rankers.aggregate([[[1, 1, 0], [2, 1, 0]]], "thurstone").tolist() == [[2, 1, 0]]


def test_weights_are_refused():
    with pytest.raises(DataError, match="Thurstone's model takes no weights"):
        rankers.aggregate([[[1, 0]]], "thurstone", [[1.0]])


def test_reliability_of_many_instances_is_from_some():
    _, table = people(np.random.default_rng(5), 90, [0.5, 1, 2], [0, 0, 0])
    chosen = np.linspace(0, 89, 30).round().astype(int)
    np.testing.assert_array_equal(rankers.reliability(table, most=30), rankers.reliability(table[chosen]))
    assert rankers.reliability(table).argsort().tolist() == [2, 1, 0]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_people_are_judged_as_by_crowd_kit():
    """Dawid and Skene's error rates of "label applies?" order people as sigma does; decisions agree."""
    peers = pytest.importorskip("crowdkit.aggregation", reason="crowd-kit is not installed")
    import pandas as pd

    rng = np.random.default_rng(6)
    sigma = np.array([0.4, 0.6, 0.9, 1.4, 2.2, 3.5])
    _, table = people(rng, 200, sigma, np.zeros(6))
    row, person, label = np.nonzero(table >= 0)
    said = (table > 0)[row, person, label].astype(int)
    frame = pd.DataFrame({"task": row * 8 + label, "worker": person, "label": said})
    peer = peers.DawidSkene(n_iter=50).fit(frame)
    wrong = peer.errors_.reset_index()
    rate = [
        sum(row[1 - row["label"]] for _, row in wrong[wrong["worker"] == one].iterrows()) for one in range(6)
    ]
    found = rankers.thurstone(table)
    assert np.argsort(rate).tolist() == np.argsort(found.sigma).tolist() == list(range(6))
    assert ((found.mean.ravel() > 0) == (peer.labels_.sort_index().to_numpy() == 1)).mean() > 0.95

"""Split-conformal calibration against naive loops, MAPIE, and the coverage that theory promises."""

import math

import numpy as np
import pytest
from scipy.stats import norm, truncnorm

from gaussianmlr import DataError
from gaussianmlr.model import conformal as core
from gaussianmlr.model.conformal import Scores

ALPHAS = (0.05, 0.1, 0.2, 0.35)


def random_rows(count, width, seed, unknown=0.0):
    """Scores, probabilities and ranks with ties, irrelevant and, by option, unknown labels."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(count, width))
    noisy = scores + rng.normal(size=(count, width))
    ranks = np.where(noisy > 0, 1 + np.floor(2 * noisy), 0).astype(np.int64)
    ranks[rng.random(size=ranks.shape) < unknown] = -1
    return scores, norm.cdf(scores), ranks


def chances_of(scores, chances):
    above = norm.cdf((scores[:, :, None] - scores[:, None, :]) / math.sqrt(2))
    return np.minimum(above, chances[:, :, None])


def quantile(values, alpha):
    """The split-conformal quantile by its textbook definition."""
    place = math.ceil(round((len(values) + 1) * (1 - alpha), 9))
    return sorted(values)[place - 1]


@pytest.mark.parametrize("count", [19, 20, 39, 99, 100, 257, 999])
def test_the_limit_of_sets_is_the_split_conformal_quantile(count):
    _, p_relevant, ranks = random_rows(count * 2, 5, count)
    some = (ranks > 0).any(1).nonzero()[0][:count]
    p_relevant, ranks = p_relevant[some], ranks[some]
    lowest = [-min(p for p, rank in zip(*row) if rank > 0) for row in zip(p_relevant, ranks)]
    curve = core.risk_curve(core.relevance_scores(p_relevant, ranks), -1.0)
    assert curve.rows == count
    for alpha in ALPHAS:
        assert curve.limit(alpha) == quantile(lowest, alpha)


def naive_loss(values, weights, rows, alpha, least):
    """The smallest limit by trying all of them."""
    for limit in sorted({least, *(value for value in values if value > least)}):
        total = sum(weight for value, weight in zip(values, weights) if value > limit)
        if (total + 1) / (rows + 1) <= alpha + 1e-9:
            return limit
    raise AssertionError


@pytest.mark.parametrize("seed", range(4))
def test_a_curve_finds_the_limit_that_a_naive_search_finds(seed):
    rng = np.random.default_rng(seed)
    rows = 60
    values, weights = rng.choice(rng.normal(size=40), size=150), rng.random(150)
    weights *= rows / weights.sum()
    curve = core.risk_curve(Scores(values, weights, rows), -0.5)
    for alpha in ALPHAS:
        assert curve.limit(alpha) == naive_loss(values, weights, rows, alpha, -0.5)
    order = rng.permutation(150)
    assert core.risk_curve(Scores(values[order], weights[order], rows), -0.5).limits == curve.limits


def test_a_thinned_curve_errs_on_the_side_of_caution():
    rng = np.random.default_rng(0)
    values = rng.normal(size=20_000)
    curve = core.risk_curve(Scores(values, np.ones(20_000), 20_000), -9.0)
    assert len(curve.limits) <= core.MOST_POINTS
    for alpha in (0.001, 0.01, *ALPHAS):
        exact = quantile(values, alpha)
        assert curve.limit(alpha) >= exact
        assert abs(norm.cdf(curve.limit(alpha)) - norm.cdf(exact)) < 2 / core.MOST_POINTS


@pytest.mark.parametrize("unknown", [0.0, 0.3])
def test_the_three_losses_agree_with_naive_loops(unknown):
    scores, p_relevant, ranks = random_rows(80, 5, 3, unknown)
    places, chances = core.expected_places(scores), chances_of(scores, p_relevant)
    sets = core.relevance_sets(p_relevant, -0.4)
    found, said = core.place_intervals(places, 1.5), core.stated(chances, 0.6)
    losses = [
        core.relevance_losses(sets, ranks),
        core.place_losses(found, ranks),
        core.statement_losses(said, ranks),
    ]
    for row, order in enumerate(ranks):
        relevant = [u for u in range(5) if order[u] > 0]
        missed = 0
        for u in relevant:
            possible = {1 + sum(order > order[u]) + more for more in range(sum(order < 0) + 1)}
            held = set(range(found.low[row, u], found.high[row, u] + 1))
            missed += not possible <= held
        made = [
            (u, v) for u in range(5) for v in range(5) if said[row, u, v] and min(order[u], order[v]) >= 0
        ]
        wrong = sum(order[u] <= order[v] for u, v in made)
        wanted = [
            float(not all(sets[row, u] for u in relevant)) if relevant else math.nan,
            missed / len(relevant) if relevant else math.nan,
            wrong / max(1, len(made)) if sum(order >= 0) > 1 else math.nan,
        ]
        np.testing.assert_allclose([loss[row] for loss in losses], wanted)


def test_statement_steps_are_the_running_maximum_of_the_share_of_wrong_statements():
    scores, p_relevant, ranks = random_rows(40, 5, 7, 0.1)
    chances = chances_of(scores, p_relevant)
    chances = np.round(chances, 1)  # many equal ones
    found = core.statement_scores(chances, ranks)
    for limit in (0.5, 0.55, 0.6, 0.7, 0.8, 0.85, 0.9):
        total, rows = 0.0, 0
        for row in range(40):
            one, order = chances[row : row + 1], ranks[row : row + 1]
            steps = [max(limit, 0.5), *(c for c in np.unique(one) if c > max(limit, 0.5))]
            shares = [core.statement_losses(one > step, order)[0] for step in steps]
            if not math.isnan(shares[0]):
                total, rows = total + max(shares), rows + 1
        assert rows == found.rows
        assert found.weights[found.values > limit].sum() == pytest.approx(total)


def losses_of(seed, pool, width=5, spoiled=False):
    """Scores of a fixed pool of rows, one `Scores` per row and kind; spoiled ones are of a bad model."""
    scores, p_relevant, ranks = random_rows(pool, width, seed)
    if spoiled:  # far too sure, and of the wrong sign for one label
        scores = np.concatenate([-scores[:, :1], 5 * scores[:, 1:]], 1)
        p_relevant = norm.cdf(9 * scores)
    places, chances = (
        core.expected_places(scores, scores, np.ones_like(scores)),
        chances_of(scores, p_relevant),
    )
    rows = [slice(row, row + 1) for row in range(pool) if (ranks[row] > 0).any()]
    return [
        ([core.relevance_scores(p_relevant[row], ranks[row]) for row in rows], -1.0),
        ([core.place_scores(core.Places(*(p[row] for p in places)), ranks[row]) for row in rows], 0.0),
        ([core.statement_scores(chances[row], ranks[row]) for row in rows], 0.5),
    ]


@pytest.mark.parametrize("spoiled", [False, True])
@pytest.mark.parametrize("kind", [0, 1, 2])
def test_the_mean_loss_of_a_new_row_is_at_most_alpha(kind, spoiled):
    """2,000 random splits of one pool: the expected loss is below alpha, within binomial noise."""
    parts, least = losses_of(1, 120, spoiled=spoiled)[kind]
    rng, count = np.random.default_rng(kind), 39
    for alpha in (0.1, 0.25):
        lost = []
        for _ in range(2_000):
            *known, new = rng.choice(len(parts), count + 1, replace=False)
            limit = core.risk_curve(Scores.join([parts[row] for row in known]), least).limit(alpha)
            lost.append(parts[new].weights[parts[new].values > limit].sum())
        noise = 4 * math.sqrt(alpha * (1 - alpha) / len(lost))
        assert np.mean(lost) <= alpha + noise
        if kind == 0 and not spoiled:  # scores that differ: not more cautious than one row in the calibration
            assert np.mean(lost) >= alpha - 1 / (count + 1) - noise


def test_coverage_without_ties_is_exact():
    """With n scores that differ, a row is covered with probability 1 - floor((n+1) alpha) / (n+1)."""
    values = np.arange(12.0)
    for alpha in (0.1, 0.25, 0.4):
        missed = []
        for new in range(12):
            known = np.delete(values, new)
            limit = core.risk_curve(Scores(known, np.ones(11), 11), -1.0).limit(alpha)
            missed.append(values[new] > limit)
        assert np.mean(missed) == math.floor(12 * alpha + 1e-9) / 12


def test_too_few_rows_are_refused_with_the_number_that_is_needed():
    curve = core.risk_curve(Scores(np.zeros(37), np.ones(37), 37), -1.0)
    with pytest.raises(DataError, match=r"alpha 0\.01 needs at least 99 calibration rows, got 37"):
        curve.limit(0.01)
    for alpha in (0.5, 0.3, 0.2, 0.1, 0.05, 0.04, 0.025, 0.02, 0.01, 0.001):
        least = core.least_rows(alpha)
        assert (least + 1) * alpha >= 1 - 1e-9
        assert least * alpha < 1 - 1e-9
        core.risk_curve(Scores(np.zeros(least), np.ones(least), least), -1.0).limit(alpha)
    for wrong in (0.0, 1.0, 0.51, -0.1, math.nan, True, "0.1"):
        with pytest.raises(DataError, match="alpha is"):
            curve.limit(wrong)


def test_expected_places_are_those_of_simulated_truncated_gaussians():
    rng = np.random.default_rng(0)
    mu, sigma = np.array([[1.5, 0.2, -0.8, -2.0]]), np.array([[0.7, 1.0, 1.2, 0.5]])
    draws = rng.normal(mu, sigma, size=(200_000, 4))
    found = core.expected_places(mu, mu, sigma)
    for u in range(4):
        own = truncnorm(-mu[0, u] / sigma[0, u], np.inf, mu[0, u], sigma[0, u]).rvs(200_000, random_state=u)
        place = 1 + (np.delete(draws, u, 1) > own[:, None]).sum(1)
        assert found.centre[0, u] == pytest.approx(place.mean(), abs=0.03)
        # Independent events have no more variance than those that share u.
        assert place.std() / 2 < found.spread[0, u] < place.std() + 0.35
    far = core.expected_places(-50 * sigma, -50 * sigma, sigma)
    assert np.isfinite(far.centre).all()
    assert np.isfinite(core.expected_places(1e6 * mu).centre).all()


def test_nothing_depends_on_the_order_of_labels_or_rows():
    scores, p_relevant, ranks = random_rows(60, 5, 5, 0.1)
    rng = np.random.default_rng(0)
    rows, labels = rng.permutation(60), rng.permutation(5)
    pick = np.ix_(rows, labels)
    chances = chances_of(scores, p_relevant)
    mixed = chances[rows][:, labels][:, :, labels]
    pairs = [
        (core.relevance_scores(p_relevant, ranks), core.relevance_scores(p_relevant[pick], ranks[pick])),
        (
            core.place_scores(core.expected_places(scores), ranks),
            core.place_scores(core.expected_places(scores[pick]), ranks[pick]),
        ),
        (core.statement_scores(chances, ranks), core.statement_scores(mixed, ranks[pick])),
    ]
    for one, other in pairs:
        for alpha in ALPHAS:
            limits = [core.risk_curve(scores, -1.0).limit(alpha) for scores in (one, other)]
            assert limits[0] == pytest.approx(limits[1], rel=1e-12)


def test_statements_are_strict_partial_orders():
    scores, p_relevant, _ = random_rows(200, 6, 11)
    for limit in (0.5, 0.6, 0.8):
        said = core.stated(chances_of(scores, p_relevant), limit)
        assert not (said & said.transpose(0, 2, 1)).any()
        through = np.einsum("nuv,nvw->nuw", said.astype(int), said.astype(int)) > 0
        assert not (through & ~said).any()


@pytest.mark.slow
def test_recall_is_controlled_at_the_threshold_that_mapie_finds():
    """MAPIE controls the expected share of relevant labels outside a set, which the same core can do."""
    mapie = pytest.importorskip("mapie.risk_control", reason="needs mapie")
    _, p_relevant, ranks = random_rows(400, 5, 2)
    some = (ranks > 0).any(1)
    p_relevant, relevant = p_relevant[some], ranks[some] > 0
    shares = relevant / relevant.sum(1, keepdims=True)
    curve = core.risk_curve(Scores(-p_relevant[relevant], shares[relevant], len(relevant)), -1.0)
    step = 0.01
    grid = np.arange(0.0, 1.0, step)
    for alpha in (0.05, 0.1, 0.2):
        theirs = mapie.MultiLabelClassificationController(
            predict_function=lambda x: x,
            risk="recall",
            method="crc",
            target_level=1 - alpha,
            predict_params=grid,
        )
        theirs.calibrate(p_relevant, relevant.astype(int))
        best = float(np.ravel(theirs.best_predict_param)[0])
        assert 0 <= -curve.limit(alpha) - best <= step + 1e-9  # the largest step of the grid below ours


def test_the_smallest_level_of_all_needs_too_many_rows():
    """Its inverse is infinite."""
    curve = core.Curve((0.0,), (0.0,), 1_000)
    with pytest.raises(DataError, match="needs at least 999999999999999999 calibration rows, got 1000"):
        curve.limit(5e-324)

"""The scale of just noticeable differences, against quadrature and data with a known s(m)."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm

from gaussianmlr import load
from gaussianmlr.data.loading import Arrays
from gaussianmlr.errors import DataError
from gaussianmlr.methods.base import Reading
from gaussianmlr.model import Model, Recipe, build
from gaussianmlr.model.calibration import Calibration
from gaussianmlr.model.model import join
from gaussianmlr.model.prediction import Prediction, Significances
from gaussianmlr.model.scale import JndScale, fit_scale, mean_scale
from gaussianmlr.training.fit import fit

RNG = np.random.default_rng(0)
LABELS = ("a", "b", "c", "d")
SUPPORT = Path(__file__).parents[1] / "support"


def reading(mu, sigma):
    mu, sigma = torch.as_tensor(mu), torch.as_tensor(sigma)
    return Reading(mu, torch.special.ndtr(mu / sigma), mu, sigma)


def in_gauge(mu, sigma):
    """The canonical gauge, by its definition."""
    scale = np.exp(np.log(sigma).mean(1, keepdims=True))
    return mu / scale, sigma / scale


scales = st.lists(
    st.tuples(st.integers(-300, 300).map(lambda knot: knot / 10), st.floats(-3, 3)),
    min_size=1,
    max_size=8,
    unique_by=lambda pair: round(pair[0], 3),
).map(lambda pairs: JndScale(*zip(*sorted(pairs))))


@given(scales, st.integers(-6000, 6000).map(lambda m: m / 100))
@settings(max_examples=60, deadline=None)
def test_the_closed_form_is_the_integral(scale, m):
    def slope(x):
        return 1 / (np.sqrt(2) * np.exp(np.interp(x, scale.knots, scale.log_sigma)))

    inside = sorted(knot for knot in scale.knots if min(0, m) < knot < max(0, m))
    ends = [0.0, *(inside if m > 0 else inside[::-1]), m]
    expected = sum(quad(slope, left, right)[0] for left, right in pairwise(ends))
    assert scale.values(m) == pytest.approx(expected, rel=1e-6, abs=1e-8)


@given(
    scales,
    st.lists(
        st.floats(-60, 60, allow_subnormal=False), min_size=2, max_size=6, unique_by=lambda m: round(m, 3)
    ),
)
@settings(max_examples=60, deadline=None)
def test_zero_stays_zero_and_orders_stay(scale, means):
    values = scale.values(means)
    assert scale.values(0.0) == 0.0
    np.testing.assert_array_equal(np.argsort(values), np.argsort(means))
    np.testing.assert_array_equal(np.sign(values), np.sign(means))


def test_a_known_typical_sigma_is_found():
    mu = RNG.uniform(-6, 6, size=(3000, 6))
    sigma = np.exp(0.3 * mu + 0.1 * RNG.normal(size=mu.shape))
    found = fit_scale(reading(mu, sigma))
    mu, sigma = in_gauge(mu, sigma)
    # The gauge of an instance depends on its own labels: the truth is a local median.
    for m in (-3.0, -1.0, 1.0, 3.0):
        near = np.abs(mu - m) < 0.2
        assert np.log(found.typical_sigma(m)) == pytest.approx(np.log(np.median(sigma[near])), abs=0.2)


def test_a_difference_of_one_is_ordered_84_times_in_100_everywhere():
    rows = 40_000
    mu = RNG.uniform(-2, 8, size=(rows, 2))
    sigma = 0.3 * np.exp(0.25 * mu)
    # A third label, far below, brings every instance into the canonical gauge.
    mu, sigma = np.c_[mu, np.full(rows, -50.0)], np.c_[sigma, 1 / sigma.prod(1)]
    found = fit_scale(reading(mu, sigma))
    values = found.values(mu[:, :2])
    drawn = mu[:, :2] + sigma[:, :2] * RNG.normal(size=(rows, 2))
    difference = values[:, 0] - values[:, 1]
    for low, high in ((-2.0, 1.0), (1.0, 4.0), (4.0, 8.0)):
        here = ((mu[:, :2] >= low) & (mu[:, :2] < high)).all(1) & (np.abs(difference - 1.0) < 0.25)
        assert here.sum() > 50
        right = (drawn[here, 0] > drawn[here, 1]).mean()
        assert right == pytest.approx(norm.cdf(1.0), abs=4 * np.sqrt(0.84 * 0.16 / here.sum()) + 0.03)


def test_the_gauge_of_an_instance_does_not_matter():
    mu, sigma = RNG.normal(size=(200, 5)), np.exp(RNG.normal(size=(200, 5)))
    factor = np.exp(3 * RNG.normal(size=(200, 1)))
    one, other = fit_scale(reading(mu, sigma)), fit_scale(reading(factor * mu, factor * sigma))
    np.testing.assert_allclose(one.knots, other.knots, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(one.log_sigma, other.log_sigma, rtol=1e-6, atol=1e-9)


def bend(scale):
    return np.ptp(scale.log_sigma)


def test_few_rows_are_shrunk_towards_a_constant():
    mu = RNG.normal(size=(2000, 6))
    noise = np.exp(RNG.normal(size=mu.shape))  # unrelated to mu
    unrelated = [bend(fit_scale(reading(mu[:rows], noise[:rows]))) for rows in (12, 40)]
    assert max(unrelated) < 0.35
    related = np.exp(0.8 * mu)
    assert bend(fit_scale(reading(mu, related))) > 1.0
    assert fit_scale(reading(mu[:1], related[:1])) is None
    assert fit_scale(Reading(torch.zeros(9, 2), torch.zeros(9, 2))) is None


def test_equal_means_and_many_ties_are_one_knot():
    mu = np.repeat([[1.0, -1.0]], 300, 0)
    found = fit_scale(reading(mu, np.ones_like(mu)))
    assert found.values([-1.0, 0.0, 1.0]) == pytest.approx([-(0.5**0.5), 0.0, 0.5**0.5])


DEGENERATE = {
    "one label": (RNG.normal(size=(300, 1)), np.exp(RNG.normal(size=(300, 1)))),
    "two instances": (RNG.normal(size=(2, 5)), np.exp(RNG.normal(size=(2, 5)))),
    "all irrelevant": (-np.exp(RNG.normal(size=(300, 4))), np.exp(RNG.normal(size=(300, 4)))),
    "one mean": (np.full((300, 4), 0.7), np.exp(RNG.normal(size=(300, 4)))),
    "all zero": (np.zeros((300, 4)), np.ones((300, 4))),
    "huge means": (1e30 * RNG.normal(size=(300, 4)), np.ones((300, 4))),
    "tiny sigmas": (RNG.normal(size=(300, 4)), np.full((300, 4), 1e-200)),
    "sigmas of all sizes": (RNG.normal(size=(300, 4)), np.exp(60 * RNG.normal(size=(300, 4)))),
}


@pytest.mark.parametrize("case", DEGENERATE)
def test_degenerate_predictions_give_a_scale(case):
    mu, sigma = DEGENERATE[case]
    found = fit_scale(reading(mu, sigma))
    means = np.array([-np.inf, -1e300, -1e9, -3.0, -0.1, 0.0, 0.1, 3.0, 1e9, 1e300, np.inf])
    values = found.values(means)
    assert values[5] == 0.0
    assert (np.diff(values[4:7]) > 0).all()
    assert (np.diff(values[1:-1]) >= 0).all()
    assert values[0] == -np.inf
    assert values[-1] == np.inf
    if case == "one label":  # the canonical sigma of a single label is 1
        np.testing.assert_allclose(values[1:-1], means[1:-1] / np.sqrt(2))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_predictions_that_are_no_numbers_are_refused(bad):
    mu, sigma = RNG.normal(size=(30, 3)), np.ones((30, 3))
    for place in (mu, sigma):
        before, place[4, 1] = place[4, 1], bad
        with pytest.raises(DataError, match=rf"is {bad} at \[4, 1\]"):
            fit_scale(reading(mu, sigma))
        place[4, 1] = before
    assert np.isnan(JndScale([0.0], [0.0]).values([np.nan])).all()


def test_no_truth_is_needed_and_none_is_used():
    """Validation orders that say the opposite change the temperatures, not the shape of the scale."""
    x = RNG.normal(size=(300, 4)).astype(np.float32)
    right = np.where(x > 0, x.argsort(1).argsort(1) + 1, 0)
    recipe = Recipe(backbone="mlp", epochs=2, select="last", calibrate=False)
    found = [
        fit(recipe, Arrays(x, right), Arrays(x, ranks), labels=LABELS).model.jnd
        for ranks in (right, right[::-1].copy())
    ]
    assert found[0] == found[1]


def test_deviations_follow_the_delta_method():
    scale = JndScale([-2.0, 0.0, 3.0], [-1.0, 0.0, 1.5])
    mu, sigma = np.array([-3.0, -1.0, 0.5, 2.0, 9.0]), np.array([1.0, 2.0, 0.1, 0.5, 3.0])
    step = 1e-6
    slope = (scale.values(mu + step) - scale.values(mu - step)) / (2 * step)
    np.testing.assert_allclose(scale.apply(mu, sigma)[1], sigma * slope, rtol=1e-6)


def test_scales_of_members_are_averaged():
    one, other = JndScale([0.0, 2.0], [0.0, 1.0]), JndScale([1.0, 3.0], [1.0, 3.0])
    both = mean_scale([one, other])
    assert np.log(both.typical_sigma(2.0)) == pytest.approx((1.0 + 2.0) / 2)
    assert mean_scale([one]) == one


def test_members_with_other_temperatures_are_averaged_in_common_units():
    """A temperature T divides canonical means by T: one scale, seen by two members and by their mean."""
    inputs, bent = {"kind": "table", "channels": 2}, JndScale([-2.0, 0.0, 3.0], [-1.0, 0.2, 1.0])
    recipe = Recipe(backbone="mlp")
    members = [
        Model(
            *build(recipe, 4, inputs),
            LABELS,
            recipe,
            inputs,
            calibration=Calibration(1.0, pairs),
            jnd=bent.stretched(1.0 / pairs),
        )
        for pairs in (0.7, 2.8)
    ]
    both = join(members)
    assert both.calibration.pairs == pytest.approx(1.4)
    means = np.array([-9.0, -1.0, 0.0, 0.3, 1.0, 4.0])
    np.testing.assert_allclose(both.jnd.typical_sigma(means / 1.4), bent.typical_sigma(means))


@pytest.mark.parametrize(
    ("knots", "logs", "said"),
    [
        ([1.0, 1.0], [0.0, 0.0], "increasing"),
        ([1.0], [0.0, 0.0], "1 knots and 2 values"),
        ([], [], "0 knots"),
        ([np.nan], [0.0], "finite"),
        ([0.0], [99.0], "between -50 and 50"),
        (["a"], [0.0], "finite numbers"),
    ],
)
def test_what_is_no_scale_is_refused(knots, logs, said):
    with pytest.raises(DataError, match=said):
        JndScale(knots, logs)


def test_predictions_on_three_scales():
    mu, sigma = 5 * RNG.normal(size=(20, 4)), np.exp(RNG.normal(size=(20, 4)))
    scale = JndScale([-1.0, 2.0], [0.0, 1.0])
    found = Prediction(mu, norm.cdf(mu / sigma), LABELS, Significances(mu, sigma), jnd=scale)
    assert found.scale == "jnd"
    canonical = found.rescaled("canonical")
    np.testing.assert_allclose(canonical.significance, in_gauge(mu, sigma)[0])
    np.testing.assert_allclose(found.significance, scale.values(in_gauge(mu, sigma)[0]))
    np.testing.assert_array_equal(found.rescaled("raw").sigma, sigma)
    for other in (canonical, found.rescaled("raw")):
        assert other.orders == found.orders
        np.testing.assert_array_equal(other.p_above, found.p_above)
    assert found.rescaled("raw").rescaled("jnd") == found
    assert found.to_dict()["scale"] == "jnd"
    assert found[:3].scale == "jnd"
    with pytest.raises(DataError, match="'jnd', 'canonical' or 'raw', not 'log'"):
        found.rescaled("log")
    old = Prediction(mu, norm.cdf(mu / sigma), LABELS, Significances(mu, sigma))
    assert old.scale == "canonical"
    with pytest.raises(DataError, match="no scale of just noticeable differences"):
        old.rescaled("jnd")
    with pytest.raises(DataError, match="has no sigma"):
        Prediction(mu, norm.cdf(mu), LABELS, method="br").rescaled("jnd")


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    x = RNG.normal(size=(300, 4)).astype(np.float32)
    noisy = x + 0.5 * RNG.normal(size=x.shape)
    data = Arrays(x, np.where(noisy > 0, noisy.argsort(1).argsort(1) + 1, 0))
    out = tmp_path_factory.mktemp("run")
    recipe = Recipe(backbone="mlp", epochs=3)
    return fit(recipe, data, data, labels=LABELS, out=out).model, out, data, x


def test_a_model_keeps_its_scale(trained):
    model, out, data, x = trained
    again = load(out / "model")
    assert again.jnd == model.jnd
    assert again.predict(x).scale == "jnd"
    expected = fit_scale(model.read(x))
    np.testing.assert_allclose(
        model.jnd.values([-2.0, 0.5, 2.0]), expected.values([-2.0, 0.5, 2.0]), rtol=0.02
    )
    without = fit(Recipe(backbone="mlp", epochs=1, jnd=False), data, data, labels=LABELS).model
    assert without.jnd is None
    assert without.predict(x).scale == "canonical"


def test_models_of_before_the_scale_have_none():
    old = load(SUPPORT / "before_rooms" / "run" / "model")  # made by commit e4e2d02
    found = old.predict(RNG.normal(size=(5, 4)).astype(np.float32))
    assert old.jnd is None
    assert found.scale == "canonical"
    np.testing.assert_allclose(found.significance, in_gauge(found.raw.mu, found.raw.sigma)[0], rtol=1e-6)
    with pytest.raises(DataError, match="by an older version; 'canonical' and 'raw' are there"):
        found.rescaled("jnd")


@pytest.mark.parametrize("method", ["crpc", "lsep", "ranknet", "zlpr", "pl", "br"])
def test_methods_without_sigma_say_so(trained, method):
    _, _, data, x = trained
    model = fit(Recipe(method=method, backbone="mlp", epochs=1), data, data, labels=LABELS).model
    assert model.jnd is None
    found = model.predict(x[:3])
    assert found.scale is None
    assert "scale" not in found.to_dict()
    for scale in ("jnd", "canonical", "raw"):
        with pytest.raises(DataError, match=f"the method '{method}' has no sigma"):
            found.rescaled(scale)


def test_temperatures_do_not_bend_the_scale(trained):
    model, _, _, x = trained
    cold, warm = model.predict(x, calibrated=False), model.predict(x)
    # A temperature multiplies all differences by one number.
    np.testing.assert_allclose(cold.significance, model.calibration.pairs * warm.significance, rtol=1e-5)

"""Predictions: what they say agrees with itself, with simulation, and with plain loops."""

import json
import math
import pickle
import re
from dataclasses import replace

import mpmath
import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import norm

from gaussianmlr import DataError, Prediction, methods, to_ranks
from gaussianmlr.methods import Reading
from gaussianmlr.model.calibration import Calibration
from gaussianmlr.model.prediction import Significances
from gaussianmlr.model.scale import JndScale

LABELS = ("sky", "sea", "sun", "fog")


def reading_of(mu, sigma):
    mu, sigma = torch.as_tensor(mu), torch.as_tensor(sigma)
    return Reading(mu, torch.special.ndtr(mu / sigma), mu, sigma)


def make(count=6, seed=0, calibration=None, labels=LABELS):
    rng = np.random.default_rng(seed)
    mu = rng.normal(0, 1.5, (count, len(labels))).astype(np.float32)
    sigma = rng.uniform(0.3, 2.0, mu.shape).astype(np.float32)
    return Prediction.from_reading(reading_of(mu, sigma), labels, method="gmlr", calibration=calibration)


def outputs_of(method, count, labels, generator):
    return {
        output.name: torch.randn(count, output.size(labels), generator=generator) for output in method.outputs
    }


@pytest.mark.parametrize("name", methods.available())
@pytest.mark.parametrize("temperature", [None, 0.3, 7.0])
def test_ranks_orders_and_relevance_agree_for_every_method(name, temperature):
    method = methods.make(name)
    outputs = outputs_of(method, 50, 4, torch.Generator().manual_seed(1))
    calibration = None if temperature is None else Calibration(temperature, 1.0 / temperature)
    plain = Prediction.from_reading(method.read(outputs), LABELS, method=name)
    found = Prediction.from_reading(method.read(outputs), LABELS, method=name, calibration=calibration)
    assert np.array_equal(found.ranks > 0, found.p_relevant > 0.5)
    assert np.array_equal(found.ranks > 0, found.scores > 0)
    assert np.array_equal(to_ranks(found.orders, LABELS).ranks, found.ranks)
    assert np.array_equal(to_ranks(found.lists, LABELS).ranks, found.ranks)
    assert np.array_equal(found.ranks, plain.ranks)
    for scores, ranks in zip(found.scores, found.ranks):
        for u, v in np.ndindex(4, 4):
            if scores[u] > 0 and scores[v] > 0:
                assert (ranks[u] > ranks[v]) == (scores[u] > scores[v])


tiny = st.sampled_from([0.0, -0.0, 1e-300, -1e-300, 1e-9, -1e-9, 3.0, -40.0, 40.0])


@given(arrays(np.float64, (3, 2), elements=tiny), st.floats(0.05, 20))
def test_scores_next_to_zero_and_in_the_tails_agree_too(mu, temperature):
    reading = reading_of(mu, np.ones_like(mu))
    found = Prediction.from_reading(reading, "ab", calibration=Calibration(temperature, temperature))
    assert np.array_equal(found.p_relevant > 0.5, mu > 0)
    assert np.array_equal(found.ranks > 0, mu > 0)


@pytest.mark.parametrize("calibration", [None, Calibration(1.7, 0.6)])
def test_probabilities_against_simulation(calibration):
    prediction = make(3, calibration=calibration)
    mu, sigma = prediction.raw
    rng = np.random.default_rng(7)
    draws = rng.normal(mu, sigma, (200_000, *mu.shape))
    bar = 5 * 0.5 / math.sqrt(len(draws))
    above = (draws[..., :, None] > draws[..., None, :]).mean(0)
    off_diagonal = ~np.eye(4, dtype=bool)
    assert np.abs(above - prediction.p_above)[:, off_diagonal].max() < bar
    first = draws.argmax(-1)
    for label in range(4):
        assert np.abs((first == label).mean(0) - prediction.p_first[:, label]).max() < bar
    relevant = draws > 0
    ranks = np.where(
        relevant, 1 + ((draws[..., None, :] < draws[..., :, None]) & relevant[..., None, :]).sum(-1), 0
    )
    # The law of the pairs, given relevance, at the probability of relevance.
    often = relevant.sum(0) > 20_000
    assert often.sum() > 4
    for rank in range(1, 5):
        share = (ranks == rank).sum(0)[often] / relevant.sum(0)[often]
        assert np.abs(share * prediction.p_relevant[often] - prediction.p_rank[..., rank][often]).max() < 0.01
    mean = ranks.sum(0)[often] / relevant.sum(0)[often] * prediction.p_relevant[often]
    assert np.abs(mean - prediction.expected_rank[often]).max() < 0.02


@pytest.mark.parametrize("calibration", [None, Calibration(2.5, 0.8)])
def test_laws_of_ranks_are_laws_and_know_the_relevance(calibration):
    prediction = make(20, seed=3, calibration=calibration)
    assert np.allclose(prediction.p_rank.sum(-1), 1.0, atol=1e-6)
    assert (prediction.p_rank >= 0).all()
    assert np.allclose(prediction.p_rank[..., 0], 1 - prediction.p_relevant)
    mean = (prediction.p_rank * np.arange(5)).sum(-1)
    assert np.allclose(mean, prediction.expected_rank, atol=1e-6 if calibration is None else 1e-3)
    low, high = prediction.rank_interval(0.8)
    for row, label in np.ndindex(low.shape):
        law = prediction.p_rank[row, label]
        assert law[low[row, label] : high[row, label] + 1].sum() >= 0.8 - 1e-6
        assert law[: low[row, label]].sum() <= 0.1 + 1e-9
        assert law[high[row, label] + 1 :].sum() <= 0.1 + 1e-9


@pytest.mark.parametrize("temperature", [1.0, 0.7, 3.0])
def test_degrees_against_exact_integrals(temperature):
    """E[s | s > 0] by mpmath, times the calibrated probability of relevance."""
    mu = np.array([[-30.0, -6.0, -1.0, -1e-3, 0.0, 0.5, 4.0, 900.0]])
    found = Prediction.from_reading(
        reading_of(mu, np.full_like(mu, 0.8)), "abcdefgh", calibration=Calibration(temperature, 1.0)
    ).rescaled("raw")
    with mpmath.workdps(40):
        for label, m in enumerate(mu[0]):
            z = mpmath.mpf(m) / mpmath.mpf(0.8)
            tail = mpmath.erfc(-z / mpmath.sqrt(2)) / 2
            mean = m + mpmath.mpf(0.8) * mpmath.npdf(z) / tail
            if abs(m) < 5:
                ends = [0, max(m, 0) + 1, max(m, 0) + 30]
                integral = mpmath.quad(lambda x, m=m: x * mpmath.npdf(x, m, 0.8), ends)
                assert mpmath.almosteq(mean * tail, integral, 1e-12)
            wanted = float(mean) * found.p_relevant[0, label]
            assert found.degree[0, label] == pytest.approx(wanted, rel=1e-11)


def test_degrees_on_all_scales():
    prediction = replace(make(40), jnd=JndScale([-1.0, 2.0], [-0.5, 1.0]), scale="jnd")
    draws = np.random.default_rng(0).normal(prediction.significance, prediction.sigma, (100_000, 40, 4))
    often = (draws > 0).sum(0) > 10_000
    above = np.maximum(draws, 0).sum(0) / np.maximum(1, (draws > 0).sum(0))
    assert often.sum() > 80
    assert np.abs(prediction.p_relevant * above - prediction.degree)[often].max() < 0.03
    canonical = prediction.rescaled("canonical")
    assert (np.abs(canonical.degree - prediction.degree) > 0.2).any()
    factor = np.exp(np.random.default_rng(1).normal(0, 2, (40, 1)))
    other = Prediction.from_reading(reading_of(*(factor * part for part in prediction.raw)), LABELS)
    assert np.allclose(other.degree, canonical.degree)  # the gauge of an instance does not matter
    sure = Prediction(np.array([[-1e200, 1e200]]), np.array([[0.0, 1.0]]), ("a", "b"), law(1e200))
    assert sure.rescaled("raw").degree.tolist() == [[0.0, 1e200]]


def law(size):
    return Significances(np.array([[-size, size]]), np.ones((1, 2)))


def test_a_certain_no_in_the_far_tail_stays_a_law():
    prediction = Prediction.from_reading(
        reading_of([[-60.0, 2.0]], [[1.0, 1.0]]), "ab", calibration=Calibration(20.0, 1.0)
    )
    assert prediction.p_rank[0, 0].tolist() == pytest.approx([1 - norm.cdf(-3), norm.cdf(-3), 0], abs=1e-7)
    assert prediction.expected_rank[0, 0] == pytest.approx(norm.cdf(-3), rel=1e-4)


def test_canonical_gauge_and_raw():
    prediction = make(5)
    mu, sigma = prediction.raw
    scale = np.exp(np.log(sigma).mean(1, keepdims=True))
    assert np.allclose(prediction.significance, mu / scale)
    assert np.allclose(prediction.sigma, sigma / scale)
    again = Prediction.from_reading(reading_of(mu * 7, sigma * 7), LABELS)
    assert np.allclose(again.significance, prediction.significance)


def test_partial_orders_follow_the_pairs():
    prediction = make(30)
    for confidence in (0.6, 0.9):
        assert np.array_equal(prediction.partial_order(confidence), prediction.p_above >= confidence)
    hot = make(30, calibration=Calibration(1.0, 5.0))
    assert hot.partial_order(0.9).sum() < prediction.partial_order(0.9).sum()
    sure = Prediction.from_reading(reading_of([[9.0, 5.0, 0.1, -9.0]], [[1.0] * 4]), LABELS)
    assert sure.partial_text(0.9) == ["sky > sea ? sun"]


def test_temperatures_in_closed_form():
    mu, sigma = np.array([[1.0, -0.5, 2.0]]), np.array([[0.5, 1.0, 2.0]])
    found = Prediction.from_reading(reading_of(mu, sigma), "abc", calibration=Calibration(2.0, 3.0))
    assert np.allclose(found.p_relevant, norm.cdf(mu / sigma / 2.0))
    expected = norm.cdf((mu[0, 0] - mu[0, 1]) / math.hypot(sigma[0, 0], sigma[0, 1]) / 3.0)
    assert found.p_above[0, 0, 1] == pytest.approx(expected)
    assert np.array_equal(found.scores, mu)


@pytest.mark.parametrize(
    "reading",
    [
        "significance",
        "sigma",
        "degree",
        "p_above",
        "p_first",
        "p_rank",
        "expected_rank",
        "rank_interval",
        "partial_order",
    ],
)
def test_methods_without_sigma_say_what_they_have(reading):
    prediction = Prediction(np.array([[1.0, -2.0]]), np.array([[0.7, 0.1]]), ("a", "b"), method="lsep")
    asked = f"{reading}()" if reading in ("rank_interval", "partial_order") else reading
    with pytest.raises(
        DataError, match="'lsep' has no sigma: it gives ranks, orders, scores and p_rel"
    ) as bad:
        eval(f"prediction.{asked}")
    assert reading in str(bad.value)
    assert prediction.orders == ["a"]


def test_frame_is_tidy():
    prediction = make(7)
    frame = prediction.to_frame("p_first", "expected_rank", "degree", confidence=0.9)
    assert len(frame) == 28
    assert list(frame.columns) == [
        *("instance", "label", "rank", "score", "significance", "sigma", "p_relevant"),
        *("p_first", "expected_rank", "degree", "rank_low", "rank_high"),
    ]
    row = frame[(frame.instance == 4) & (frame.label == "sun")].iloc[0]
    assert row["rank"] == prediction.ranks[4, 2]
    assert row.p_first == prediction.p_first[4, 2]
    assert row.rank_high == prediction.rank_interval(0.9).high[4, 2]
    wide = frame.pivot_table(index="instance", columns="label", values="p_relevant")[list(LABELS)]
    assert np.array_equal(wide.to_numpy(), prediction.p_relevant)
    with pytest.raises(DataError, match="no column 'p_last'"):
        prediction.to_frame("p_last")


def test_json_reads_back():
    prediction = make(3)
    found = json.loads(prediction.to_json(confidence=0.8))
    assert found["labels"] == list(LABELS)
    assert [one["order"] for one in found["instances"]] == prediction.orders
    assert [one["partial"] for one in found["instances"]] == prediction.partial_text(0.8)
    again = [[one["labels"][label]["p_relevant"] for label in LABELS] for one in found["instances"]]
    assert np.array_equal(again, prediction.p_relevant)


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        (np.int64(5), 5),
        (np.str_("a"), "a"),
        (pd.Timestamp("2020-02-01"), "2020-02-01 00:00:00"),
        (float("nan"), "nan"),
        ((1, "b"), "(1, 'b')"),
    ],
)
def test_any_index_of_a_frame_can_name_instances_in_json(name, wanted):
    odd = Prediction(np.ones((1, 1)), np.ones((1, 1)), ("a",), names=(name,))
    found = json.loads(odd.to_json(), parse_constant=pytest.fail)  # NaN is no JSON
    assert found["instances"][0]["name"] == wanted


def test_single_precision_agrees_too():
    barely = Prediction(np.array([[1e-12, 0.0]]), np.array([[0.5, 0.5]]), ("a", "b"))
    assert np.array_equal(barely.p_relevant.astype(np.float32) > 0.5, barely.ranks > 0)


def test_slices_keep_names_and_numbers():
    prediction = make(10)
    assert prediction[3] == prediction[3:4] == prediction[[3]]
    assert prediction[-1].names == (9,)
    assert prediction[:4].names == (0, 1, 2, 3)
    assert prediction[prediction.ranks.max(1) > 1].names == tuple(np.flatnonzero(prediction.ranks.max(1) > 1))
    assert np.array_equal(prediction[2:5].p_above, prediction.p_above[2:5])
    assert np.allclose(prediction[2:5].p_first, prediction.p_first[2:5], atol=1e-7)
    assert len(prediction[:0]) == 0
    assert prediction[:0].p_rank.shape == (0, 4, 5)
    assert prediction != prediction[:9]
    assert [len(one) for one in prediction] == [1] * 10  # iteration ends
    with pytest.raises(IndexError, match="no instance 10 among 10"):
        prediction[10]


def test_a_value_never_changes():
    mu = np.ones((1, 4))
    prediction = Prediction(mu, mu, LABELS, Significances(mu, mu))
    mu[:] = 5
    assert (prediction.scores == 1).all()
    for part in ("scores", "p_relevant", "ranks", "significance", "p_above", "p_rank", "expected_rank"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(prediction, part)[0, 0] = 9
    with pytest.raises(AttributeError):
        prediction.method = "other"
    assert pickle.loads(pickle.dumps(prediction)) == prediction


def test_what_people_see():
    text = repr(make(11))
    lines = text.splitlines()
    assert lines[0] == "Prediction of 11 instances, 4 labels, by gmlr"
    assert len(lines) == 10
    assert lines[-1].strip() == "... and 3 more"
    nothing = Prediction(-np.ones((1, 1)), np.zeros((1, 1)), ("a",))
    assert repr(nothing) == "Prediction of 1 instance, 1 label\n  0  (none)"
    page = Prediction(np.ones((1, 1)), np.ones((1, 1)), ("<b>&",), names=("<script>",))._repr_html_()
    assert "<script>" not in page
    assert "&lt;b&gt;&amp; 100%" in page
    long = make(11)._repr_html_()
    assert len(re.findall("<tr>", long)) == 9
    assert "... and 3 more" in long


def test_one_label():
    prediction = make(4, labels=("a",))
    assert prediction.p_above.tolist() == [[[0.5]]] * 4
    assert np.allclose(prediction.p_first, 1.0)
    assert np.allclose(prediction.p_rank[:, 0, 1], prediction.p_relevant[:, 0])


ONE = np.ones((1, 2))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((ONE, ONE, ("a",)), r"expected scores of 1 labels, got shape \[1, 2\]"),
        ((ONE[0], ONE, ("a", "b")), r"expected scores of shape \[N, K\]"),
        ((ONE * math.nan, ONE, ("a", "b")), r"scores is nan at \[0, 0\]; expected a finite number"),
        ((ONE, ONE * 2, ("a", "b")), r"p_relevant is 2.0 at \[0, 0\]; expected a probability"),
        ((ONE, ONE * 0.2, ("a", "b")), "more than 1/2 where the score is above 0"),
        ((ONE, ONE, ("a", "b"), (ONE, 0 * ONE)), r"sigma is 0.0 at \[0, 0\]; expected a number above 0"),
        ((ONE, ONE[:, :1], ("a", "b")), r"expected p_relevant of the scores' shape \[1, 2\], got \[1, 1\]"),
        ((ONE, ONE, ("a", "b"), None, "", ("x", "y")), "a name for each of 1 instances, got 2"),
        ((ONE, ONE, ("a", "a")), "labels must differ"),
    ],
)
def test_bad_parts_are_named(arguments, message):
    with pytest.raises(DataError, match=message):
        Prediction(*arguments)

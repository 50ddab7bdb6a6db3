"""Metrics: equal to scipy, scikit-learn and naive loops row by row, and never NaN."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kendalltau, spearmanr
from sklearn import metrics as sk
from sklearn.calibration import calibration_curve

from gaussianmlr import DataError, metrics
from gaussianmlr.metrics import _instances
from support import oracles_metrics as oracle

PER_INSTANCE = [
    metrics.kendall_tau_b,
    metrics.kendall_tau_a,
    metrics.spearman_rho,
    metrics.gamma,
    metrics.positives_tau,
    metrics.exact_match,
    metrics.hamming_loss,
    metrics.max1_error,
    metrics.top1_accuracy,
    metrics.ranking_loss,
    metrics.average_precision,
    metrics.coverage,
    metrics.ndcg,
]


@st.composite
def predictions(draw, smallest=-1):
    """Scores with many ties, below and above zero, beside ranks that may be unknown."""
    count, width = draw(st.integers(1, 4)), draw(st.integers(1, 7))
    grid = st.sampled_from([-np.inf, -2.0, -1.0, 0.0, 0.5, 1.0, 1.5, 2.0, np.inf])
    scores = draw(st.lists(grid, min_size=count * width, max_size=count * width))
    ranks = draw(st.lists(st.integers(smallest, 3), min_size=count * width, max_size=count * width))
    return np.array(scores).reshape(count, width), np.array(ranks).reshape(count, width)


def random_case(seed=0, count=200, width=8, unknown=0.15):
    rng = np.random.default_rng(seed)
    ranks = np.where(rng.random((count, width)) < 0.5, rng.integers(1, 6, (count, width)), 0)
    scores = np.round(ranks - 1 + rng.normal(0, 2, ranks.shape), 0)  # rounding makes ties
    return scores, np.where(rng.random(ranks.shape) < unknown, -1, ranks)


def check_rows(metric, naive, scores, ranks):
    found = metric(scores, ranks, reduction="none")
    for value, (score, rank) in zip(found, oracle.known_rows(scores, ranks)):
        expected = naive(score, rank) if len(rank) else 0.0
        assert value == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    ("metric", "naive"),
    [
        (metrics.kendall_tau_b, oracle.tau_b),
        (metrics.kendall_tau_a, oracle.tau_a),
        (metrics.gamma, oracle.gamma),
        (lambda *args, **kw: metrics.spearman_rho(*args, formula="untied", **kw), oracle.rho_untied),
        (metrics.positives_tau, lambda s, r: oracle.positives_tau(s, r) or 0.0),
        (metrics.exact_match, oracle.exact_match),
        (metrics.max1_error, oracle.max1),
        (metrics.top1_accuracy, oracle.top1),
        (metrics.hamming_loss, lambda s, r: np.mean((s > 0) != (r > 0))),
    ],
    ids=["tau_b", "tau_a", "gamma", "rho_untied", "positives_tau", "exact", "max1", "top1", "hamming"],
)
@given(case=predictions())
def test_rows_against_naive_loops(metric, naive, case):
    check_rows(metric, naive, *case)


def finite_or_zero(value):
    return 0.0 if np.isnan(value) else float(value)


@pytest.mark.filterwarnings("ignore:An input array is constant")
@pytest.mark.parametrize("width", [2, 5, 40])
def test_correlations_against_scipy(width):
    scores, ranks = random_case(1, 150, width)
    tau = metrics.kendall_tau_b(scores, ranks, reduction="none")
    rho = metrics.spearman_rho(scores, ranks, reduction="none")
    compared = 0
    for i, (score, rank) in enumerate(oracle.known_rows(scores, ranks)):
        if len(rank) < 2:
            continue
        compared += 1
        claim = oracle.claimed(score)
        assert tau[i] == pytest.approx(finite_or_zero(kendalltau(claim, rank).statistic), abs=1e-9)
        assert rho[i] == pytest.approx(finite_or_zero(spearmanr(claim, rank).statistic), abs=1e-9)
    assert compared > 80


def sklearn_row(metric, score, rank, **options):
    return metric([(rank > 0).astype(int)], [score], **options)


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        (metrics.ranking_loss, lambda s, r: sklearn_row(sk.label_ranking_loss, s, r)),
        (
            metrics.average_precision,
            lambda s, r: sklearn_row(sk.label_ranking_average_precision_score, s, r),
        ),
        (metrics.coverage, lambda s, r: sklearn_row(sk.coverage_error, s, r)),
        (metrics.ndcg, lambda s, r: sk.ndcg_score([r], [s])),
        (lambda *a, **kw: metrics.ndcg(*a, k=3, **kw), lambda s, r: sk.ndcg_score([r], [s], k=3)),
    ],
    ids=["ranking_loss", "average_precision", "coverage", "ndcg", "ndcg@3"],
)
@pytest.mark.parametrize("width", [3, 9])
def test_retrieval_against_scikit_learn(metric, expected, width):
    scores, ranks = random_case(2, 150, width)
    found = metric(scores, ranks, reduction="none")
    compared = 0
    for value, (score, rank) in zip(found, oracle.known_rows(scores, ranks)):
        if len(rank) > 1:  # scikit-learn refuses a single label
            assert value == pytest.approx(expected(score, rank), abs=1e-9)
            compared += 1
    assert compared > 120


@given(predictions())
def test_retrieval_against_scikit_learn_on_odd_rows(case):
    scores, ranks = np.nan_to_num(case[0], posinf=9, neginf=-9), case[1]
    pairs = [
        (metrics.ranking_loss, sk.label_ranking_loss),
        (metrics.average_precision, sk.label_ranking_average_precision_score),
        (metrics.coverage, sk.coverage_error),
    ]
    for metric, peer in pairs:
        found = metric(scores, ranks, reduction="none")
        for value, (score, rank) in zip(found, oracle.known_rows(scores, ranks)):
            if len(rank) > 1:
                assert value == pytest.approx(sklearn_row(peer, score, rank), abs=1e-9)


@pytest.mark.parametrize("zero_division", [0.0, 1.0])
def test_f1_and_hamming_against_scikit_learn(zero_division):
    scores, ranks = random_case(3, unknown=0)
    ranks[0], scores[0] = 0, -1  # nothing there, nothing predicted
    ranks[:, 0], scores[:, 0] = 0, -1  # a label that never occurs
    true, predicted = ranks > 0, scores > 0
    for average, peer in {"micro": "micro", "instance": "samples", "macro": "macro"}.items():
        expected = sk.f1_score(true, predicted, average=peer, zero_division=zero_division)
        found = metrics.f1(scores, ranks, average=average, zero_division=zero_division)
        assert found == pytest.approx(expected, abs=1e-12)
    each = metrics.f1(scores, ranks, average="macro", reduction="none", zero_division=zero_division)
    assert each == pytest.approx(sk.f1_score(true, predicted, average=None, zero_division=zero_division))
    assert metrics.hamming_loss(scores, ranks) == pytest.approx(sk.hamming_loss(true, predicted))


def test_f1_leaves_unknown_labels_out():
    scores, ranks = random_case(4)
    known = ranks >= 0
    expected = sk.f1_score((ranks > 0)[known], (scores > 0)[known])
    assert metrics.f1(scores, ranks) == pytest.approx(expected, abs=1e-12)
    ranks[:, 2] = -1
    columns = [
        sk.f1_score((ranks > 0)[known[:, j], j], (scores > 0)[known[:, j], j]) for j in range(8) if j != 2
    ]
    assert metrics.f1(scores, ranks, average="macro") == pytest.approx(np.mean(columns), abs=1e-12)


@given(predictions())
def test_evaluate_is_the_six_functions(case):
    single = {
        "tau_b": metrics.kendall_tau_b,
        "spearman_rho": metrics.spearman_rho,
        "gamma": metrics.gamma,
        "hamming_loss": metrics.hamming_loss,
        "max1_error": metrics.max1_error,
        "f1": metrics.f1,
    }
    found = metrics.evaluate(*case)
    assert list(found) == list(single)
    assert all(type(value) is float for value in found.values())
    for name, metric in single.items():
        assert found[name] == pytest.approx(metric(*case), abs=1e-12)


@given(predictions())
def test_means_leave_out_what_cannot_be_measured(case):
    scores, ranks = case
    for metric in PER_INSTANCE:
        vector = metric(scores, ranks, reduction="none")
        assert np.isfinite(vector).all()
        counts = np.array([len(rank) > 0 for _, rank in oracle.known_rows(*case)])
        if metric is metrics.positives_tau:
            counts = np.array([len({r for r in rank if r > 0}) > 1 for rank in ranks])
        expected = vector[counts].mean() if counts.any() else 0.0
        assert metric(scores, ranks) == pytest.approx(expected, abs=1e-12)
        assert metric(scores, ranks, reduction="sum") == pytest.approx(vector[counts].sum(), abs=1e-12)
        assert (vector[~counts] == 0).all()


@given(predictions())
def test_an_unknown_label_is_as_good_as_absent(case):
    scores, ranks = case
    wider = np.concatenate([np.full((len(scores), 1), np.inf), scores], axis=1)
    unknown = np.concatenate([np.full((len(ranks), 1), -1), ranks], axis=1)
    for metric in PER_INSTANCE:
        expected = metric(scores, ranks, reduction="none")
        assert metric(wider, unknown, reduction="none") == pytest.approx(expected, abs=1e-12)
    assert metrics.f1(wider, unknown) == metrics.f1(scores, ranks)


@given(predictions(smallest=0))
def test_ranks_are_perfect_scores_of_themselves(case):
    ranks = case[1]
    assert metrics.exact_match(ranks, ranks) == 1
    assert metrics.hamming_loss(ranks, ranks) == 0
    for metric in (metrics.kendall_tau_b, metrics.spearman_rho, metrics.gamma):
        ordered = np.array([len(set(row)) > 1 for row in ranks.tolist()])
        assert (metric(ranks, ranks, reduction="none") == ordered).all()  # exactly 1, not nearly


@given(predictions())
def test_top1_never_beats_max1(case):
    assert metrics.top1_accuracy(*case) <= 1 - metrics.max1_error(*case) or (case[1] < 0).all()


@pytest.mark.parametrize(
    ("metric", "scores", "ranks", "expected"),
    [
        (metrics.kendall_tau_b, [-1, -2, -3], [2, 1, 0], 0),  # nothing predicted: all tie
        (metrics.kendall_tau_b, [3, 2, 1], [1, 1, 1], 0),
        (metrics.kendall_tau_b, [3], [1], 0),
        (metrics.spearman_rho, [-1, -2, -3], [2, 1, 0], 0),
        (metrics.gamma, [1, 1, 1], [2, 1, 0], 0),
        (metrics.max1_error, [-1, -2, -3], [1, 0, 0], 0),  # raw scores decide
        (metrics.max1_error, [-1, -2, -3], [0, 1, 0], 1),
        (metrics.max1_error, [2, 2, 1], [0, 1, 0], 1),  # the first of several
        (metrics.max1_error, [2, 2, 1], [0, 0, 0], 1),
        (metrics.max1_error, [9, 2, 1], [-1, 1, 0], 0),
        (metrics.max1_error, [-np.inf, -np.inf], [-1, 1], 0),
        (metrics.top1_accuracy, [2, 1, -1], [2, 2, 1], 1),
        (metrics.top1_accuracy, [2, 1, -1], [1, 2, 0], 0),
        (metrics.top1_accuracy, [2, 1, -1], [0, 0, 0], 0),
        (metrics.exact_match, [-1, -2, 0], [0, 0, 0], 1),
        (metrics.exact_match, [2, 1, 1], [3, 2, 1], 0),
        (metrics.exact_match, [2, 2, 2], [0, 0, 0], 0),  # the same ties, another cut
        (metrics.positives_tau, [1, 1, -1], [2, 1, 0], 0),
        (metrics.average_precision, [1, 2], [0, 0], 1),
        (metrics.ranking_loss, [1, 2], [1, 1], 0),
        (metrics.coverage, [1, 2], [0, 0], 0),
        (metrics.ndcg, [1, 2], [0, 0], 0),
    ],
)
def test_documented_values_of_odd_instances(metric, scores, ranks, expected):
    assert metric([scores], [ranks]) == expected


def test_positives_tau_sees_what_the_threshold_hides():
    scores, ranks = [[-1.0, -2.0, 5.0], [1.0, 1.0, 1.0]], [[2, 1, 0], [1, 1, 0]]
    assert metrics.positives_tau(scores, ranks) == 1
    assert metrics.positives_tau(scores, ranks, reduction="none").tolist() == [1, 0]


def test_no_instances():
    empty = np.zeros((0, 3))
    for metric in PER_INSTANCE:
        assert metric(empty, empty) == 0
        assert metric(empty, empty, reduction="none").shape == (0,)
    assert set(metrics.evaluate(empty, empty).values()) == {0.0}


def test_tensors_in_tensors_out():
    scores, ranks = random_case(5)
    for metric in [*PER_INSTANCE, metrics.f1]:
        expected = metric(scores, ranks)
        assert type(expected) is float
        found = metric(torch.tensor(scores, requires_grad=True), torch.tensor(ranks))
        assert (found.shape, found.dtype) == (torch.Size([]), torch.float64)
        assert float(found) == pytest.approx(expected, abs=1e-12)
        assert not found.requires_grad
    vector = metrics.gamma(torch.tensor(scores), torch.tensor(ranks), reduction="none")
    assert vector.shape == (200,)
    half = metrics.evaluate(torch.tensor(scores, dtype=torch.bfloat16), torch.tensor(ranks, dtype=torch.int8))
    assert half == pytest.approx(metrics.evaluate(scores, ranks))  # whole numbers survive bfloat16
    assert metrics.gamma(torch.tensor(scores), ranks).dtype == torch.float64


def test_inputs_are_not_changed():
    scores, ranks = random_case(6)
    scores.flags.writeable = ranks.flags.writeable = False
    before = scores.copy(), ranks.copy()
    tensors = torch.tensor(scores), torch.tensor(ranks)
    for metric in [*PER_INSTANCE, metrics.f1, metrics.evaluate]:
        metric(scores, ranks)
        metric(*tensors)
    assert (tensors[0].numpy() == before[0]).all()
    assert (tensors[1].numpy() == before[1]).all()


def test_ranks_need_not_be_dense():
    scores, ranks = random_case(7)
    stretched = np.where(ranks > 0, ranks * 10**12, ranks)
    for metric in PER_INSTANCE:
        if metric is not metrics.ndcg:  # its gains are the ranks
            assert metric(scores, stretched) == metric(scores, ranks)


def test_chunks_do_not_change_the_result(monkeypatch):
    scores, ranks = random_case(8)
    whole = [metric(scores, ranks, reduction="none") for metric in PER_INSTANCE]
    totals = metrics.evaluate(scores, ranks), metrics.f1(scores, ranks, average="macro")
    monkeypatch.setattr(_instances, "COMPARISONS", 20)
    monkeypatch.setattr(_instances, "BLOCK", 60)
    for metric, expected in zip(PER_INSTANCE, whole):
        assert metric(scores, ranks, reduction="none") == pytest.approx(expected, abs=1e-12)
    assert metrics.evaluate(scores, ranks) == pytest.approx(totals[0], abs=1e-12)
    assert metrics.f1(scores, ranks, average="macro") == pytest.approx(totals[1], abs=1e-12)


@settings(max_examples=20)
@given(st.integers(0, 10**6), st.integers(1, 20))
def test_calibration_against_scikit_learn(seed, bins):
    rng = np.random.default_rng(seed)
    probabilities = rng.integers(0, bins * 2 + 1, (12, 5)) / (bins * 2)  # many on the edges
    ranks = rng.integers(-1, 3, (12, 5))
    known = ranks >= 0
    curve = metrics.reliability(probabilities, ranks, bins=bins)
    observed, said = calibration_curve((ranks > 0)[known], probabilities[known], n_bins=bins)
    filled = curve.counts > 0
    assert curve.observed[filled] == pytest.approx(observed, abs=1e-12)
    assert curve.predicted[filled] == pytest.approx(said, abs=1e-12)
    assert curve.counts.sum() == known.sum()
    assert (curve.observed[~filled] == 0).all()
    assert (curve.predicted[~filled] == 0).all()
    error = np.dot(curve.counts[filled] / known.sum(), abs(observed - said))
    assert metrics.ece(probabilities, ranks, bins=bins) == pytest.approx(error, abs=1e-12)


def test_pair_calibration_counts_both_directions_of_ordered_pairs():
    rng = np.random.default_rng(0)
    probabilities = rng.random((20, 5, 5))
    ranks = rng.integers(-1, 3, (20, 5))
    said, came = [], []
    for n in range(20):
        for u in range(5):
            for v in range(5):
                if min(ranks[n, u], ranks[n, v]) >= 0 and ranks[n, u] != ranks[n, v]:
                    said.append(probabilities[n, u, v])
                    came.append(ranks[n, u] > ranks[n, v])
    curve = metrics.reliability(probabilities, ranks, bins=10)
    observed, mean = calibration_curve(came, said, n_bins=10)
    assert curve.observed == pytest.approx(observed, abs=1e-12)
    assert curve.predicted == pytest.approx(mean, abs=1e-12)
    assert curve.counts.tolist() == np.histogram(said, curve.edges)[0].tolist()
    found = metrics.ece(torch.tensor(probabilities), torch.tensor(ranks), bins=10)
    error = np.dot(curve.counts, abs(observed - mean)) / len(said)
    assert isinstance(found, torch.Tensor)
    assert float(found) == pytest.approx(error)


def test_true_probabilities_are_calibrated():
    rng = np.random.default_rng(1)
    probabilities = rng.random((4000, 10))
    ranks = (rng.random(probabilities.shape) < probabilities).astype(int)
    assert metrics.ece(probabilities, ranks) < 0.01
    assert metrics.ece(1 - probabilities, ranks) > 0.4
    assert metrics.ece(probabilities[:0], ranks[:0]) == 0


@pytest.mark.parametrize(
    ("scores", "ranks", "message"),
    [
        ([[1.0, np.nan], [1, 2]], [[1, 0], [1, 0]], "1 of 2 rows hold NaN:\n  row 0: nan in column 1"),
        (torch.tensor([[1.0, torch.nan]]), [[1, 0]], "nan in column 1"),
        ([[1.0, 2.0]], [[1, 0, 0]], r"one shape \[N, K\], got \[1, 2\] and \[1, 3\]"),
        ([1.0, 2.0], [[1, 0]], r"got shape \[2\]; put a single instance"),
        (np.zeros((2, 0)), np.zeros((2, 0)), r"K >= 1, got shape \[2, 0\]"),
        ([[1.0, 2.0]], [[1, -2]], "row 0: -2 in column 1"),
        ([[1.0, 2.0]], [[1, 0.5]], "row 0: 0.5 in column 1"),
        ([[1.0, 2.0]], [[1, np.nan]], "row 0: nan in column 1 .*-1 stands for unknown"),
        ([[1.0, 2.0]], [1, 0], r"expected ranks of shape \[N, K\], got shape \[2\]"),
        ([["a", "b"]], [[1, 0]], "expected scores to be numbers"),
        ([[1.0, 2.0], [1.0]], [[1, 0]], "expected scores to be numbers"),
        (torch.tensor([[1j]]), [[1]], "real numbers, got torch.complex64"),
    ],
)
def test_bad_input_is_named(scores, ranks, message):
    for metric in (metrics.kendall_tau_b, metrics.f1, metrics.evaluate):
        with pytest.raises(DataError, match=message):
            metric(scores, ranks)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda s, r: metrics.gamma(s, r, reduction="median"), "reduction is one of .* not 'median'"),
        (lambda s, r: metrics.spearman_rho(s, r, formula="x"), "formula is one of 'tied', 'untied', not 'x'"),
        (lambda s, r: metrics.f1(s, r, average="all"), "average is one of .* not 'all'"),
        (lambda s, r: metrics.f1(s, r, reduction="none"), "average='instance' has one value per instance"),
        (lambda s, r: metrics.ndcg(s, r, k=0), "from 1 up, or None, got 0"),
        (lambda s, r: metrics.ece(s, r), r"in \[0, 1\], got 2.0 at \[0, 1\]; 1 of 2"),
        (lambda s, r: metrics.ece([[0.5, np.nan]], r), r"got nan at \[0, 1\]"),
        (lambda s, r: metrics.ece(np.zeros((1, 2, 3)), r), r"\[1, 2\] or \[1, 2, 2\] .* got \[1, 2, 3\]"),
        (lambda s, r: metrics.reliability(s, r, bins=0), "bins to be a number from 1 up, got 0"),
    ],
)
def test_bad_settings_are_named(call, message):
    with pytest.raises(DataError, match=message):
        call([[1.0, 2.0]], [[1, 0]])


def test_torchmetrics_waits_until_a_class_is_used():
    code = """
import sys
from gaussianmlr import metrics
metrics.evaluate([[1.0, -1.0]], [[1, 0]])
assert "torchmetrics" not in sys.modules
metrics.KendallTauB
assert "torchmetrics" in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_public_names_exist():
    for name in metrics.__all__:
        assert getattr(metrics, name).__doc__
    with pytest.raises(AttributeError, match="no attribute 'accuracy'"):
        _ = metrics.accuracy


@pytest.mark.parametrize("kind", ["Int64", "Float64", object])
def test_frames_of_nullable_numbers(kind):
    ranks = pd.DataFrame([[2, 1, 0], [0, 1, 2]], dtype=kind)
    scores = np.array([[3.0, 1.0, 2.0], [0.0, 1.0, 2.0]])
    wanted = metrics.kendall_tau_b(scores, ranks.to_numpy(np.int64))
    assert metrics.kendall_tau_b(pd.DataFrame(scores).astype("Float64"), ranks) == wanted
    ranks.iloc[0, 0] = None
    with pytest.raises(DataError, match="row 0: nan in column 0"):
        metrics.kendall_tau_b(scores, ranks)
    with pytest.raises(DataError, match=r"a masked value at \[0, 1\]"):
        metrics.kendall_tau_b(np.ma.masked_array(scores, mask=[[0, 1, 0], [0, 0, 0]]), [[2, 1, 0], [0, 1, 2]])


@pytest.mark.parametrize("tensor", [False, True])
def test_scores_of_unknown_labels_may_be_missing(tensor):
    ranks = np.array([[2, -1, 1, 0], [-1, 1, 0, 2]])
    scores = np.random.default_rng(0).normal(size=(2, 4))
    gaps = np.where(ranks < 0, np.nan, scores)
    for name in ("kendall_tau_b", "f1", "average_precision", "ranking_loss"):
        metric = getattr(metrics, name)
        given = torch.from_numpy(gaps) if tensor else gaps
        assert float(metric(given, ranks)) == float(metric(scores, ranks))
    with pytest.raises(DataError, match="rows hold NaN"):
        metrics.kendall_tau_b(np.where(ranks == 0, np.nan, scores), ranks)

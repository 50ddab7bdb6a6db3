"""Rankers: aggregation equals naive loops and brute force, agreement the known figures of NSID."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kendalltau

from gaussianmlr import DataError, metrics, rankers
from support import oracles_metrics as oracle

METHODS = ["mean_rank", "borda", "kemeny", "thurstone"]


@st.composite
def rank_tables(draw, smallest=-1, most_labels=5, most_rankers=5):
    shape = draw(st.integers(1, 3)), draw(st.integers(1, most_rankers)), draw(st.integers(1, most_labels))
    size = int(np.prod(shape))
    table = draw(st.lists(st.integers(smallest, 4), min_size=size, max_size=size))
    return np.array(table).reshape(shape)


def unseen(row):
    return [-1] * len(row[0])


@given(rank_tables())
def test_mean_rank_ordering_against_a_naive_loop(table):
    expected = [oracle.mean_rank_row(row) if oracle.present(row) else unseen(row) for row in table.tolist()]
    assert rankers.mean_rank_ordering(table).tolist() == expected


@given(rank_tables())
def test_borda_against_a_naive_loop(table):
    expected = [oracle.borda_row(row) if oracle.present(row) else unseen(row) for row in table.tolist()]
    assert rankers.borda(table).tolist() == expected


def brute_force_key(row, candidate):
    """Cost, then buckets of relevant labels, then irrelevant labels: less is better."""
    known = [rank for rank in candidate if rank >= 0]
    cost = sum(oracle.distance(ranker, candidate) for ranker in row)
    return cost, max(known, default=0), sum(rank == 0 for rank in known)


@settings(max_examples=150)
@given(rank_tables(most_labels=4))
def test_kemeny_against_brute_force(table):
    for row, found in zip(table.tolist(), rankers.kemeny(table).tolist()):
        known = [label for label in range(len(found)) if any(ranker[label] >= 0 for ranker in row)]
        assert [rank >= 0 for rank in found] == [label in known for label in range(len(found))]
        candidates = []
        for order in oracle.all_rank_rows(len(known)):
            full = unseen(row)
            for label, rank in zip(known, order):
                full[label] = rank
            candidates.append(full)
        assert found in candidates
        assert brute_force_key(row, found) == min(brute_force_key(row, order) for order in candidates)


def test_kemeny_is_no_worse_than_the_others_for_many_labels():
    rng = np.random.default_rng(0)
    table = rng.integers(0, 5, (4, 5, 9))
    cost = {
        method: [
            sum(oracle.distance(ranker, order) for ranker in row)
            for row, order in zip(table.tolist(), rankers.aggregate(table, method).tolist())
        ]
        for method in METHODS
    }
    assert all(k <= b and k <= m for k, b, m in zip(cost["kemeny"], cost["borda"], cost["mean_rank"]))


def test_kemeny_in_blocks(monkeypatch):
    table = np.random.default_rng(1).integers(-1, 4, (30, 4, 4))
    whole = rankers.kemeny(table)
    monkeypatch.setattr(rankers.aggregation, "_CELLS", 7 << 4)
    assert (rankers.kemeny(table) == whole).all()
    assert (rankers.kemeny(table[::-1])[::-1] == whole).all()


@pytest.mark.parametrize("method", METHODS)
@given(table=rank_tables(smallest=0, most_rankers=1))
def test_one_ranker_is_the_aggregate(method, table):
    expected = [[sorted({0, *row}).index(rank) for rank in row] for row in table[:, 0].tolist()]
    assert rankers.aggregate(table, method).tolist() == expected


@pytest.mark.parametrize("method", METHODS)
@given(table=rank_tables(smallest=0))
def test_a_missing_ranker_changes_nothing(method, table):
    absent = np.concatenate([table, np.full_like(table[:, :1], -1)], axis=1)
    assert (rankers.aggregate(absent, method) == rankers.aggregate(table, method)).all()


@pytest.mark.parametrize("method", METHODS)
def test_no_instances_and_nobody_there(method):
    assert rankers.aggregate(np.zeros((0, 3, 4), dtype=int), method).shape == (0, 4)
    assert rankers.aggregate(np.full((1, 3, 4), -1), method).tolist() == [[-1] * 4]


@pytest.mark.parametrize("method", ["mean_rank", "borda"])
def test_a_weight_is_a_repetition(method):
    rng = np.random.default_rng(0)
    table = rng.integers(-1, 4, size=(1, 6, 5))
    for _ in range(20):
        weights = rng.integers(0, 4, size=6)
        weights[0] = 1  # somebody is there
        expected = rankers.aggregate(table.repeat(weights, axis=1), method)
        np.testing.assert_array_equal(rankers.aggregate(table, method, weights[None]), expected)
    with pytest.raises(DataError, match="ranker 1 has weight -1"):
        rankers.aggregate(table, method, [[1, -1, 1, 1, 1, 1]])
    with pytest.raises(DataError, match="expected weights of shape"):
        rankers.aggregate(table, method, [1.0])
    with pytest.raises(DataError, match="takes no weights"):
        rankers.aggregate(table, "kemeny", weights[None])


def test_equal_means_tie_exactly():
    # thirds: 1 + 2 + 2 and 2 + 2 + 1 over three rankers, though summed in another order
    table = [[[2, 1], [1, 2], [1, 1], [1, 1], [1, 1], [2, 1], [1, 2]]]
    assert rankers.mean_rank_ordering(table).tolist() == [[1, 1]]
    assert rankers.borda(table).tolist() == [[1, 1]]


@given(rank_tables(most_rankers=4))
@settings(max_examples=30)
def test_agreement_against_a_naive_loop(table):
    count = table.shape[1]
    if count < 2:
        with pytest.raises(DataError, match="at least two rankers"):
            rankers.agreement(table)
        return
    each = []
    for one in range(count):
        pairs = []
        for row in table.tolist():
            others = [ranker for other, ranker in enumerate(row) if other != one]
            rest = oracle.mean_rank_row(others) if oracle.present(others) else unseen(row)
            both = [(a, b) for a, b in zip(row[one], rest) if a >= 0 and b >= 0]
            if both:
                pairs.append(oracle.tau_b(*map(np.array, zip(*both))))
        each.append(np.mean(pairs) if pairs else np.nan)
    if np.isnan(each).all():
        with pytest.raises(DataError, match="know the same labels"):
            rankers.agreement(table)
        return
    found = rankers.agreement(table)
    assert found.tau_b_of_ranker == pytest.approx(each, nan_ok=True)
    assert found.against_rest["tau_b"] == pytest.approx(np.nanmean(each))


@pytest.mark.filterwarnings("ignore:An input array is constant")
def test_pairwise_agreement_against_scipy():
    table = np.random.default_rng(2).integers(0, 4, (20, 3, 6))
    table[:5, 2] = -1
    expected = []
    for one, other in [(0, 1), (0, 2), (1, 2)]:
        taus = [kendalltau(row[one], row[other]).statistic for row in table if (row >= 0).all() or other == 1]
        expected.append(np.mean(np.nan_to_num(taus)))
    assert rankers.agreement(table).pairwise_tau_b == pytest.approx(np.mean(expected))


def test_agreement_reads_well():
    text = repr(rankers.agreement([[[2, 1, 0], [2, 1, 0], [-1, -1, -1]]]))
    assert text.splitlines() == [
        "Agreement of 3 rankers",
        "  one against the rest: tau_b 1.000, spearman_rho 1.000, gamma 1.000, hamming_loss 0.000, "
        "max1_error 0.000, f1 1.000",
        "  tau_b of each ranker: 1.000, 1.000, -",
        "  tau_b between two rankers: 1.000",
    ]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: rankers.borda([[1, 0]]), r"shape \[N, R, K\] .* got shape \[1, 2\]"),
        (lambda: rankers.borda([[[1, 0], [1]]]), r"expected ranks of shape \[N, R, K\]"),
        (lambda: rankers.borda([[["a"]]]), "expected ranks to be integers, got <U1 such as .*a"),
        (lambda: rankers.borda([[[1, -2]]]), "row 0, ranker 0: -2 for label 1; expected 0, 1, 2"),
        (lambda: rankers.borda([[[1, 0.5]]]), "row 0, ranker 0: 0.5 for label 1"),
        (
            lambda: rankers.borda([[[1, 0]], [[np.nan, 1]]]),
            "1 of 4 ranks .*\n  row 1, ranker 0: nan for label 0",
        ),
        (lambda: rankers.kemeny(np.zeros((1, 1, 13))), "max_labels=12 labels, got 13; .* use borda"),
        (
            lambda: rankers.aggregate([[[1]]], "mode"),
            "one of .mean_rank., .borda., .kemeny., .thurstone., not .mode.",
        ),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(DataError, match=message):
        call()


@pytest.fixture(scope="module")
def scenes():
    """The rankers' orders of NSID, ranks [2000, 10, 9], and its test images."""
    beside = Path(__file__).resolve().parents[3] / "shared" / "data"
    folder = Path(os.environ.get("GAUSSIANMLR_SHARED_DATA") or beside) / "nsid"
    if not (folder / "pic_scene.mat").exists():
        pytest.skip(
            "the NSID data are not at hand; GAUSSIANMLR_SHARED_DATA names the folder that holds nsid/"
        )
    from scipy.io import loadmat

    orders = np.stack([picture["label"] for picture in loadmat(folder / "pic_scene.mat")["pic"][0]])
    ranks = np.zeros((*orders.shape[:2], 9), dtype=int)
    for image, ranker in np.ndindex(orders.shape[:2]):
        relevant = orders[image, ranker].tolist()
        relevant = relevant[: relevant.index(10)]
        for place, label in enumerate(relevant):
            ranks[image, ranker, label - 1] = len(relevant) - place
    split = json.loads((folder / "config.json").read_text())
    return ranks, np.array(split["test"]) - 1


def test_scenes_aggregate_as_published(scenes):
    ranks, _ = scenes
    order = rankers.mean_rank_ordering(ranks)
    positives = (order > 0).sum(axis=1)
    assert (np.flatnonzero(positives == 0) + 1).tolist() == [254]
    assert sum(positives > order.max(axis=1)) == 92
    assert (positives[positives > 0].min(), positives.max()) == (1, 7)
    assert positives.mean() == pytest.approx(2.4825)


def test_scenes_agree_as_published(scenes):
    ranks, test = scenes
    assert len(test) == 400
    found = rankers.agreement(ranks[test])
    published = {"tau_b": 85.8, "spearman_rho": 88.2, "gamma": 92.2, "hamming_loss": 6.9, "max1_error": 2.9}
    published["f1"] = 86.6
    percent = {name: 100 * value for name, value in found.against_rest.items()}
    assert percent == pytest.approx(published, abs=0.05)


def test_scenes_aggregates_are_near_each_other(scenes):
    ranks, test = scenes
    orders = {method: rankers.aggregate(ranks[test], method) for method in METHODS[:3]}
    for method in ("borda", "kemeny"):
        assert metrics.kendall_tau_b(orders[method], orders["mean_rank"]) > 0.9

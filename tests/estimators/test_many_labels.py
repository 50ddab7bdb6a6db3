"""Estimators of many labels: sparse orders, and memory that does not grow with the square of the labels."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from gaussianmlr import GaussianMLR, MultiLabelRanker
from gaussianmlr.data import read_xmlc, write_xmlc
from gaussianmlr.errors import DataError
from gaussianmlr.estimators.targets import read_truth
from support.memory import peak_of

pytestmark = pytest.mark.slow

QUICK = {"n_members": 1, "epochs": 2, "hidden": 8, "random_state": 0}


def drawn(rows, labels, positives=5):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, 6))
    best = np.argsort(-(X @ rng.normal(size=(6, labels))), axis=1)[:, :positives]
    ranks = np.zeros((rows, labels), dtype=np.int64)
    np.put_along_axis(ranks, best, np.arange(positives, 0, -1), axis=1)
    return X, ranks


@pytest.mark.parametrize("labels", [40, 400])  # made dense, kept sparse
def test_sparse_orders_are_learned_as_dense_ones(labels):
    X, ranks = drawn(60, labels)
    dense = GaussianMLR(model="network", **QUICK).fit(X, ranks)
    sparse = GaussianMLR(model="network", **QUICK).fit(X, csr_array(ranks))
    np.testing.assert_array_equal(sparse.decision_function(X), dense.decision_function(X))
    assert sparse.labels_ == dense.labels_ == tuple(map(str, range(labels)))
    assert sparse.score(X, csr_array(ranks)) == dense.score(X, ranks)


def test_sparse_rows_and_sparse_orders_from_a_file(tmp_path):
    X, ranks = drawn(60, 400)
    X[X < 0] = 0
    write_xmlc(tmp_path / "train.txt", X, ranks)
    data = read_xmlc(tmp_path / "train.txt", ordered=True)
    found = MultiLabelRanker(**QUICK).fit(data.X, data.y)
    expected = MultiLabelRanker(**QUICK).fit(csr_array(X), ranks)
    np.testing.assert_array_equal(found.decision_function(data.X), expected.decision_function(data.X))


def test_weights_names_and_guarantees_of_sparse_orders():
    X, ranks = drawn(80, 310)
    labels = [f"label {k}" for k in range(310)]
    ranker = GaussianMLR(labels=labels, conformal=0.25, **QUICK)
    ranker.fit(X, csr_array(ranks), sample_weight=np.r_[np.zeros(10), np.ones(70)])
    assert ranker.labels_ == tuple(labels)
    assert ranker.chosen_["kind"] == "network"
    assert "310 numbers, one per label" in ranker.chosen_["why"]
    assert ranker.model_.guarantees.rows > 0
    with pytest.raises(DataError, match="y has 310 columns; expected one for each of 3 labels"):
        GaussianMLR(labels=list("abc"), **QUICK).fit(X, csr_array(ranks))


def test_memory_of_a_fit_follows_the_labels():
    """150 x 3,000: pairs of the held-out rows alone would take 3 GB at a time."""
    X, ranks = drawn(150, 3_000)
    GaussianMLR(**QUICK).fit(X[:, :3], ranks[:, :350])  # imports
    assert peak_of(lambda: GaussianMLR(**QUICK).fit(X, csr_array(ranks))) < 400


def test_guarantees_of_very_many_labels_are_refused_before_the_training():
    X, ranks = drawn(40, 5_001)
    ranker = MultiLabelRanker(conformal=0.25, n_members=1, epochs=100_000)  # would take days
    with pytest.raises(DataError, match="25,010,001 for 5,001 labels; expected at most 5,000"):
        ranker.fit(X, csr_array(ranks))


def test_an_evaluation_set_stays_sparse():
    """1,200 x 20,000: dense ranks alone would take 190 MB."""
    X, ranks = drawn(1_200, 400)
    dense, sparse = (
        GaussianMLR(**QUICK).fit(X[:60], csr_array(ranks[:60]), eval_set=(X[60:], truth))
        for truth in (ranks[60:], csr_array(ranks[60:]))
    )
    np.testing.assert_array_equal(sparse.decision_function(X), dense.decision_function(X))
    narrow = csr_array(ranks)
    wide = csr_array((narrow.data, narrow.indices, narrow.indptr), shape=(1_200, 20_000))
    kept = read_truth(wide, tuple(map(str, range(20_000))), keep_sparse=True)
    assert (kept.shape, kept.matrix.nnz) == ((1_200, 20_000), np.count_nonzero(ranks))
    with pytest.raises(DataError, match="y has 400 columns; expected one for each of 20,000 labels"):
        GaussianMLR(**QUICK).fit(X[:20], wide[:20], eval_set=(X, csr_array(ranks)))

"""Sparse ranks against dense ones."""

import numpy as np
import pytest
from scipy.sparse import coo_array, csc_array, csr_array, csr_matrix

from gaussianmlr import to_ranks
from gaussianmlr.errors import DataError
from gaussianmlr.orders import SparseRanks


@pytest.mark.parametrize("form", [csr_array, csc_array, coo_array, csr_matrix])
def test_sparse_ranks_are_dense_ranks(form):
    """As a loop over rows numbers the distinct values."""
    rng = np.random.default_rng(0)
    given = rng.integers(-1, 9, (50, 12)) * (rng.random((50, 12)) < 0.4)
    given[3] = 0
    given[-1] = 0
    found = SparseRanks(form(given))
    expected = given.copy()
    for row in expected:
        values = sorted({value for value in row.tolist() if value > 0})
        row[:] = [values.index(value) + 1 if value > 0 else value for value in row.tolist()]
    np.testing.assert_array_equal(found.dense(), expected)
    np.testing.assert_array_equal(found.dense(), to_ranks(expected).ranks)
    some = np.array([3, 0, 49])
    np.testing.assert_array_equal(found.dense(some), expected[some])
    np.testing.assert_array_equal(found[some].dense(), expected[some])
    np.testing.assert_array_equal(found[expected[:, 0] > 0].dense(), expected[expected[:, 0] > 0])
    assert (len(found), found.shape, found[5:9].shape) == (50, (50, 12), (4, 12))


def test_nothing_stored_is_irrelevant():
    assert SparseRanks(csr_array((3, 4), dtype=np.int8)).dense().tolist() == [[0] * 4] * 3


@pytest.mark.parametrize("bad", [0.5, -2, np.nan, np.inf])
def test_what_are_no_ranks_is_refused(bad):
    with pytest.raises(DataError, match=r"row 1: .*expected -1, 0, 1, 2"):
        SparseRanks(csr_array([[0.0, 1.0], [bad, 0.0]]))


def test_entries_in_any_sequence_and_number_are_what_scipy_makes_of_them():
    """Unsorted, with zeros that are stored and entries that add up; the caller's matrix stays as it is."""
    columns, values = np.array([3, 0, 2, 0, 1, 3, 3]), np.array([2, 4, 0, 5, -1, 1, 4])
    given = csr_array((values, columns, np.array([0, 5, 5, 7])), shape=(3, 4))
    assert SparseRanks(given).dense().tolist() == [[2, -1, 0, 1], [0, 0, 0, 0], [0, 0, 0, 1]]
    assert (given.indices.tolist(), given.data.tolist()) == (columns.tolist(), values.tolist())


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.uint64])
def test_ranks_beyond_the_integers_keep_their_order(kind):
    given = np.array([[2.0**63, 1, 0, 2.0**62], [1, 0, 0, 0]]).astype(kind)
    assert SparseRanks(csr_array(given)).dense().tolist() == [[3, 1, 0, 2], [1, 0, 0, 0]]

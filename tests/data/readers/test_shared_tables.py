"""The label-distribution tables people publish, where they are at hand."""

import numpy as np
import pytest
import scipy.io

from gaussianmlr.data import read_mat
from support.shared import needs


@pytest.mark.parametrize(
    ("name", "shape", "labels"),
    [("emotion6", (1980, 168), 7), ("Painting", (280, 142), 8), ("Movie", (7755, 1869), 5)],
)
def test_published_label_distributions(name, shape, labels):
    path = needs("tabular", f"{name}.mat")
    data = read_mat(path)
    degrees = scipy.io.loadmat(path)["labels"]
    assert data.features.shape == shape
    assert data.ranks.shape == (shape[0], labels)
    assert ((data.ranks > 0) == (degrees > 0)).all()
    # An order is right where every pair of labels is ordered as its degrees are.
    rows = slice(0, 200)
    signs = [np.sign(values[rows, :, None] - values[rows, None, :]) for values in (data.ranks, degrees)]
    assert (signs[0] == signs[1]).all()

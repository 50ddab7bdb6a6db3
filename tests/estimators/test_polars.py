"""Frames of polars as inputs and targets of estimators."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from gaussianmlr import DataError, GaussianMLR, to_ranks
from gaussianmlr.estimators.targets import read_orders

RANKS = pd.DataFrame({"sky": [2, 0, 1, 0] * 5, "sea": [1, 1, 0, 1] * 5})
X = pd.DataFrame(np.random.default_rng(0).normal(size=(20, 2)), columns=["a", "b"])


def test_labels_keep_their_names():
    for given in (pl.DataFrame(RANKS.to_dict("list")), pl.DataFrame(RANKS.to_dict("list")).lazy()):
        ranks, labels = read_orders(given)
        assert labels == ("sky", "sea")
        assert ranks.tolist() == RANKS.to_numpy().tolist()
    texts = pl.Series(["sky > sea", "sea"])
    assert to_ranks(texts).ranks.tolist() == [[1, 2], [1, 0]]
    gaps = pl.DataFrame({"sky": [1, None]})
    with pytest.raises(DataError, match=r"row 1: nan in column 0 \('sky'\)"):
        to_ranks(gaps)


def test_an_estimator_of_frames_is_that_of_pandas():
    settings = {"epochs": 2, "random_state": 0}
    one = GaussianMLR(**settings).fit(X, RANKS)
    other = GaussianMLR(**settings).fit(pl.DataFrame(X.to_dict("list")), pl.DataFrame(RANKS.to_dict("list")))
    assert other.labels_ == ("sky", "sea")
    assert other.feature_names_in_.tolist() == ["a", "b"]
    np.testing.assert_array_equal(
        one.decision_function(X), other.decision_function(pl.DataFrame(X.to_dict("list")))
    )

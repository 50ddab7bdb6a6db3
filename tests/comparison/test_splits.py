"""Splits of a comparison: disjoint, complete, the same for all, and the data's own where it has them."""

import numpy as np
import pytest

from gaussianmlr.comparison.splits import Run, parts_of, runs_of
from gaussianmlr.data import RankedData
from gaussianmlr.data.splits import has_test
from gaussianmlr.errors import DataError


def make(count=53, **more):
    ranks = np.tile([[2, 1, 0]], (count, 1))
    return RankedData(ranks=ranks, labels=["a", "b", "c"], features=np.arange(count)[:, None] * 1.0, **more)


def counts(parts):
    return {name: int((parts == name).sum()) for name in ("train", "validation", "test")}


def test_a_seed_draws_a_split():
    data = make()
    first, again, other = (parts_of(data, Run(seed)) for seed in (0, 0, 1))
    assert counts(first) == {"train": 34, "validation": 8, "test": 11}
    assert (first == again).all()
    assert (first != other).any()


def test_folds_test_every_instance_once():
    data = make()
    runs = runs_of(2, folds=5)
    assert len(runs) == 10
    for seed in (0, 1):
        tested = np.stack([parts_of(data, run, 5) == "test" for run in runs if run.seed == seed])
        assert (tested.sum(0) == 1).all()
        assert set(tested.sum(1).tolist()) <= {10, 11}
    assert not np.array_equal(parts_of(data, runs[0], 5), parts_of(data, runs[5], 5))


def test_the_order_of_rows_does_not_matter():
    data = make(ids=[f"hike {i}" for i in range(53)])
    order = np.random.default_rng(0).permutation(53)
    for run in (Run(3), Run(3, 1)):
        assert (parts_of(data, run, 4)[order] == parts_of(data.subset(order), run, 4)).all()


def test_rows_with_one_id_stay_together():
    data = make(60, ids=[str(i // 4) for i in range(60)])
    for run in runs_of(3, folds=3):
        parts = parts_of(data, run, 3).reshape(15, 4)
        assert (parts == parts[:, :1]).all()
        assert {"train", "validation", "test"} == set(parts.ravel())


def test_parts_of_the_data_are_kept():
    own = ["train"] * 30 + ["val"] * 10 + ["Test"] * 13
    data = make(split=own)
    assert has_test(data)
    for seed in range(3):
        assert parts_of(data, Run(seed)).tolist() == ["train"] * 30 + ["validation"] * 10 + ["test"] * 13
    without = make(split=["train"] * 40 + ["test"] * 13)
    parts = parts_of(without, Run(0))
    assert (parts[40:] == "test").all()
    assert counts(parts) == {"train": 32, "validation": 8, "test": 13}
    kept = make(split=["train"] * 40 + ["valid"] * 13)
    assert not has_test(kept)
    for run in runs_of(1, folds=4):
        parts = parts_of(kept, run, 4)
        assert (parts[40:] == "validation").all()
        assert counts(parts) == {"train": 30, "validation": 13, "test": 10}


def test_what_cannot_be_split():
    with pytest.raises(DataError, match="2 instances to train on; too few for a train, a validation"):
        parts_of(make(2), Run(0))
    with pytest.raises(DataError, match="4 instances to train on; too few for 5 folds"):
        parts_of(make(4), Run(0, 0), 5)
    with pytest.raises(DataError, match="seeds is 0"):
        runs_of(0)
    with pytest.raises(DataError, match="folds is 1"):
        runs_of(1, folds=1)

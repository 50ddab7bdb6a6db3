"""`fit` records where its data came from, and reports find it again."""

import numpy as np
import pytest

from gaussianmlr.data import RankedMNIST, from_arrays, read_table
from gaussianmlr.data.splits import shuffled_folds, split
from gaussianmlr.errors import DataError
from gaussianmlr.inference.matching import open_origin
from gaussianmlr.model.recipe import Recipe
from gaussianmlr.report.measure import Wanted, find_evidence
from gaussianmlr.training.fit import fit
from gaussianmlr.training.origin import read_origin
from support.commanding import make_table

TINY = Recipe(backbone="mlp", epochs=1)


@pytest.fixture
def table(tmp_path):
    file = tmp_path / "hikes.csv"
    make_table(60).to_csv(file, index=False)
    return file


@pytest.mark.parametrize("shuffled", [False, True])
def test_a_report_finds_the_table_of_a_run_from_python(table, tmp_path, shuffled):
    data = read_table(table)
    train, held = (split(data)[0][part] for part in ("train", "validation"))
    if shuffled:  # a split that the file knows nothing of
        train, held = map(data.subset, shuffled_folds(len(data), 4, seed=1)[0])
    model = fit(TINY, train, held, out=tmp_path / "run").model
    found = find_evidence(model, tmp_path / "run", Wanted())
    assert found.own
    assert sorted(found.names) == sorted(held.ids)
    assert found.metrics == pytest.approx(model.about["metrics"])
    frame = make_table(60)
    frame["a"] += 1
    frame.to_csv(table, index=False)
    with pytest.raises(DataError, match="is not what the run was trained on"):
        find_evidence(model, tmp_path / "run", Wanted())


def test_the_test_part_is_that_of_the_file(table, tmp_path):
    data = read_table(table)
    model = fit(TINY, data.subset("train"), data.subset(range(0, 60, 5)), out=tmp_path / "run").model
    part = open_origin(read_origin(tmp_path / "run"), model, tmp_path / "run", "test")
    assert part.data.ids == data.subset("test").ids


def test_ranked_mnist_knows_its_digits(tmp_path):
    recipe = Recipe(backbone="fast", epochs=1, batch_size=8)
    data, held = (RankedMNIST("gray-s", part, size=8, digits="embedded") for part in ("train", "validation"))
    model = fit(recipe, data, held, out=tmp_path / "run").model
    origin = read_origin(tmp_path / "run")
    assert (origin.data, origin.digits, origin.validation) == ("gray-s", "embedded", 8)
    found = open_origin(origin, model, tmp_path / "run")
    assert np.array_equal(found.data.batch([3]).images, held.batch([3]).images)


def test_data_that_does_not_say_where_it_is_from(tmp_path):
    x = np.random.default_rng(0).normal(size=(40, 2))
    data = from_arrays(x, (x > 0).astype(int), labels=["a", "b"])
    fit(TINY, data, data, out=tmp_path / "run")
    assert read_origin(tmp_path / "run") is None

"""Frames with categories, dates and gaps through the estimators."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import cross_val_score

from gaussianmlr import CalibratedRanker, DataError, DummyRanker, GaussianMLR, NeighbourRanker, load
from gaussianmlr.data.inputs import read_rows
from support.messy import USED, messy_table

QUICK = {"n_members": 1, "epochs": 12, "hidden": 64, "rate": 0.003, "random_state": 0}
FRAME = messy_table()
X, Y = FRAME[USED], FRAME["ranking"].tolist()


@pytest.fixture(scope="module")
def ranker():
    return GaussianMLR(model="network", **QUICK).fit(X[:240], Y[:240])


def test_every_form_of_a_table_has_the_same_scores(ranker, tmp_path):
    pl = pytest.importorskip("polars")
    expected = ranker.decision_function(X)
    typed = X.assign(city=X.city.astype("category"), wet=X.wet == "yes", day=pd.to_datetime(X.day))
    forms = [
        pl.from_pandas(X),
        pl.from_pandas(typed),
        typed,
        X.assign(age=X.age.astype(str)),
        X.astype(object),
    ]
    for form in forms:
        np.testing.assert_array_equal(ranker.decision_function(form), expected)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(ranker)).decision_function(X), expected)
    model = load(ranker.save(tmp_path / "model"))
    records = [
        {name: None if pd.isna(cell) else cell for name, cell in row.items()} for row in X.to_dict("records")
    ]
    np.testing.assert_allclose(model.read(read_rows(records, model.inputs)).scores, expected, atol=1e-5)


@pytest.mark.parametrize("kind", ["trees", "both", "auto"])
def test_trees_learn_from_the_same_frame(kind, tmp_path):
    ranker = GaussianMLR(model=kind, **QUICK).fit(X[:240], Y[:240])
    assert ranker.score(X[240:], Y[240:]) > 0.5
    shuffled = X.assign(city=X.city.sample(frac=1, random_state=0).to_numpy())
    assert ranker.score(shuffled[240:], Y[240:]) < ranker.score(X[240:], Y[240:]) - 0.1
    strange = X[240:].assign(city="Atlantis", wet=None, day=None)
    assert np.isfinite(ranker.decision_function(strange)).all()
    again = GaussianMLR.load(ranker.save(tmp_path / "model"))
    np.testing.assert_array_equal(again.decision_function(X), ranker.decision_function(X))
    if kind != "auto":
        assert ranker.feature_importances_.shape == (X.shape[1],)
        assert ranker.feature_importances_.sum() == pytest.approx(1.0)


def test_the_columns_are_learned_from(ranker):
    assert ranker.score(X[240:], Y[240:]) > 0.5
    shuffled = X.assign(city=X.city.sample(frac=1, random_state=0).to_numpy())
    assert ranker.score(shuffled[240:], Y[240:]) < ranker.score(X[240:], Y[240:]) - 0.1


def test_new_categories_and_gaps_have_a_meaning(ranker):
    row = X.iloc[:1].assign(age=ranker.model_.inputs["scaling"]["mean"][0], city="Rome", wet="yes")
    without = ranker.decision_function(row.assign(city="Atlantis"))
    np.testing.assert_array_equal(ranker.decision_function(row.assign(city="Utopia")), without)
    assert not np.allclose(ranker.decision_function(row), without)
    assert not np.allclose(ranker.decision_function(row.assign(city=None)), without)
    wet = ranker.decision_function(row.assign(wet=None))  # training had no gaps: the mean of 0 and 1
    lower, upper = sorted(
        [ranker.decision_function(row.assign(wet=word)) for word in ("yes", "no")], key=lambda x: x[0, 0]
    )
    assert lower[0, 0] < wet[0, 0] < upper[0, 0]


@pytest.mark.parametrize(
    "other",
    [
        CalibratedRanker(RandomForestClassifier(n_estimators=20), random_state=0),
        NeighbourRanker(),
        DummyRanker(),
    ],
)
def test_rivals_take_the_same_frame(other):
    other.fit(X[:240], Y[:240])
    dummy = DummyRanker().fit(X[:240], Y[:240]).score(X[240:], Y[240:])
    assert other.score(X[240:], Y[240:]) >= (dummy if isinstance(other, DummyRanker) else dummy + 0.1)
    assert np.isfinite(other.decision_function(X[240:].assign(city="Atlantis", wet=None, day=None))).all()


@pytest.mark.slow
def test_gaps_in_arrays():
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=(200, 3))
    ranks = np.where(numbers > 0, numbers.argsort(1).argsort(1) + 1, 0)
    gaps = np.where(rng.random(numbers.shape) < 0.2, np.nan, numbers)
    for ranker in (GaussianMLR(**QUICK), NeighbourRanker()):
        full = ranker.fit(numbers, ranks)
        mean = np.where(np.isnan(gaps), numbers.mean(0), gaps)
        np.testing.assert_allclose(full.decision_function(gaps), full.decision_function(mean), atol=1e-5)
        assert np.isfinite(ranker.fit(gaps, ranks).decision_function(gaps)).all()
    assert np.isfinite(cross_val_score(GaussianMLR(**QUICK | {"epochs": 2}), gaps, ranks, cv=2)).all()
    objects = gaps.astype(object)
    objects[np.isnan(gaps)] = None
    again = GaussianMLR(**QUICK).fit(objects, ranks)
    np.testing.assert_array_equal(
        again.decision_function(objects), GaussianMLR(**QUICK).fit(gaps, ranks).decision_function(gaps)
    )
    with pytest.raises(ValueError, match="infinity"):
        GaussianMLR(**QUICK).fit(np.where(np.isnan(gaps), np.inf, gaps), ranks)


def test_free_text_is_left_out_with_a_warning():
    frame = FRAME[["age", "note", "city", "nothing"]]
    with pytest.warns(UserWarning, match="left out") as caught:
        ranker = GaussianMLR(**QUICK | {"epochs": 2}).fit(frame, Y)
    assert ["note" in str(caught[0].message), "nothing" in str(caught[1].message)] == [True, True]
    assert ranker.model_.inputs["columns"] == ["age", "city"]
    assert ranker.n_features_in_ == 4
    np.testing.assert_array_equal(
        ranker.decision_function(frame), ranker.decision_function(frame.assign(note="x", nothing="y"))
    )
    with pytest.raises(DataError, match="column 'day' of X holds dates such as '3/4/2024'"):
        GaussianMLR(**QUICK).fit(frame.assign(day="3/4/2024")[["age", "day"]], Y)


def test_infinity_is_named_by_column():
    table = pd.DataFrame({"empty": [None] * 4, "city": list("abab"), "age": [1.0, np.inf, 2.0, 3.0]})
    with pytest.raises(DataError, match="column 'age' of X holds infinity"):
        GaussianMLR(**QUICK).fit(table, ["sky", "sea", "sky", "sea"])

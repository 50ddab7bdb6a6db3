"""The networks as scikit-learn estimators: its checks, its tools, and one prediction read in many ways."""

import json
import pickle
import subprocess
import sys
from functools import partial

import joblib
import numpy as np
import pandas as pd
import pytest
import torch
from scipy import sparse
from scipy.stats import norm
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.inspection import permutation_importance
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import gaussianmlr
from gaussianmlr import (
    DataError,
    DummyRanker,
    MultiLabelRanker,
    NeighbourRanker,
    methods,
    rankers,
    to_ranks,
)
from gaussianmlr.data.splits import rolling_hold_out
from gaussianmlr.estimators.scorers import get_scorer
from gaussianmlr.metrics import evaluate, kendall_tau_b
from support.estimators import NOT_A_CLASSIFIER, check_sparse_formats

GaussianMLR = partial(gaussianmlr.GaussianMLR, model="network")  # the other kinds: test_gaussian.py
BATCHES = "rows come in batches that are drawn, so that a weight moves the weights but is no repetition"
EXPECTED = {
    **NOT_A_CLASSIFIER,
    "check_sample_weight_equivalence_on_dense_data": BATCHES,
    "check_sample_weight_equivalence_on_sparse_data": BATCHES,
}
QUICK = {"epochs": 2, "n_members": 1, "hidden": 8, "random_state": 0}
LEARNS = {"epochs": 12, "n_members": 1, "hidden": 32, "dropout": 0.0, "rate": 0.01, "random_state": 0}


@parametrize_with_checks(
    [GaussianMLR(**QUICK), MultiLabelRanker("crpc", **QUICK)], expected_failed_checks=lambda _: EXPECTED
)
def test_scikit_learns_checks(estimator, check):
    check(estimator)


def make_table(rows=150, seed=1):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 5)) * [1, 10, 0.1, 3, 1] + [0, 50, 0, -3, 0]
    heights = ((X - X.mean(0)) / X.std(0)) @ np.random.default_rng(0).normal(size=(5, 3))
    return X, np.where(heights > 0, heights.argsort(1).argsort(1) + 1, 0)


@pytest.fixture(scope="module")
def table():
    X, y = make_table()
    return X, to_ranks(y).ranks


@pytest.fixture(scope="module")
def fitted(table):
    return GaussianMLR(**{**LEARNS, "n_members": 2}, recipe={"calibrate": False}).fit(*table)


def test_it_learns_and_generalises(fitted, table):
    X, y = make_table(300, seed=2)
    assert fitted.score(*table) > 0.7
    assert fitted.score(X, y) == kendall_tau_b(fitted.decision_function(X), y) > 0.6
    assert fitted.score(X, y) > NeighbourRanker().fit(*table).score(X, y)


def test_all_predictions_are_readings_of_one(fitted, table):
    X = table[0]
    ranks, chance, scores = fitted.predict(X), fitted.predict_proba(X), fitted.decision_function(X)
    mu, sigma = fitted.predict_significance(X)
    np.testing.assert_array_equal(ranks > 0, chance > 0.5)
    np.testing.assert_array_equal(ranks > 0, mu > 0)
    np.testing.assert_array_equal(to_ranks(fitted.predict_order(X), fitted.labels_).ranks, ranks)
    np.testing.assert_array_equal(
        to_ranks(fitted.predict_order(X, form="lists"), fitted.labels_).ranks, ranks
    )
    np.testing.assert_array_equal(np.sign(scores), np.sign(mu))
    np.testing.assert_allclose(chance, norm.cdf(mu / sigma), atol=1e-6)
    np.testing.assert_allclose(np.log(sigma).mean(1), 0, atol=1e-6)  # the canonical gauge
    pairs = fitted.predict_pairs(X)
    spread = np.sqrt(sigma[:, :, None] ** 2 + sigma[:, None] ** 2)
    np.testing.assert_allclose(pairs, norm.cdf((mu[:, :, None] - mu[:, None]) / spread), atol=1e-6)
    np.testing.assert_allclose(fitted.predict_first(X).sum(1), 1, atol=1e-4)
    sure = fitted.predict_order(X, confidence=0.9)
    assert len(sure) == len(X)
    assert sum(">" in text for text in sure) < sum(">" in text for text in fitted.predict_order(X))
    with pytest.raises(DataError, match="not a list of buckets"):
        fitted.predict_order(X, form="lists", confidence=0.9)
    chance[:] = 0  # what people get is theirs
    assert fitted.predict_proba(X).any()


def test_methods_without_sigma_say_so(table):
    ranker = MultiLabelRanker("ranknet", **QUICK).fit(*table)
    for ask in (ranker.predict_significance, ranker.predict_pairs, ranker.predict_first):
        with pytest.raises(DataError, match="'ranknet' has no sigma"):
            ask(table[0])
    with pytest.raises(DataError, match="'ranknet' has no sigma"):
        ranker.predict_order(table[0], confidence=0.9)


@pytest.mark.parametrize("method", methods.available())
def test_every_method_can_be_fitted(table, method):
    ranker = MultiLabelRanker(method, **LEARNS).fit(*table)
    assert ranker.score(*table) > 0.3
    assert ranker.model_.method.name == method


def test_settings_of_the_method(table):
    weak = MultiLabelRanker(supervision="weak", **QUICK).fit(*table)
    assert weak.model_.method == methods.make(
        "gmlr", supervision="weak", gauge="canonical", balance="comparisons"
    )
    free = GaussianMLR(method_settings={"gauge": "free", "balance": "parts", "bound": 2.0}, **QUICK).fit(
        *table
    )
    assert free.model_.method == methods.make("gmlr", gauge="free", bound=2.0)
    same = MultiLabelRanker(**QUICK).fit(*table)
    np.testing.assert_array_equal(
        same.decision_function(table[0]), GaussianMLR(**QUICK).fit(*table).decision_function(table[0])
    )


def test_orders_in_every_form(table):
    X, ranks = table
    labels = ["sky", "sea", "sun"]
    forms = {
        "texts": gaussianmlr.to_text(ranks, labels),
        "lists": gaussianmlr.to_lists(ranks, labels),
        "frame": pd.DataFrame(ranks, columns=labels),
        "tensor": torch.from_numpy(ranks),
        "sparse": sparse.csr_array(ranks),
        "nested": ranks.tolist(),
    }
    expected = GaussianMLR(**QUICK).fit(X, ranks).decision_function(X)
    for name, y in forms.items():
        given = labels if name in ("texts", "lists") else None
        ranker = GaussianMLR(**QUICK, labels=given).fit(X, y)
        np.testing.assert_array_equal(ranker.decision_function(X), expected, err_msg=name)
        assert ranker.labels_ == (tuple(labels) if name in ("texts", "lists", "frame") else ("0", "1", "2"))
        assert ranker.score(X, y) == ranker.score(X, ranks if name != "frame" else y)
    assert list(ranker.classes_) == list(ranker.labels_)


def test_several_rankers(table):
    X, ranks = table
    rng = np.random.default_rng(0)
    several = np.stack([ranks, ranks, rng.permuted(ranks, axis=1)], axis=1)
    one = GaussianMLR(**QUICK).fit(X, several)
    two = GaussianMLR(**QUICK).fit(X, rankers.aggregate(several))
    np.testing.assert_array_equal(one.predict_proba(X), two.predict_proba(X))
    assert one.score(X, several.tolist()) == two.score(X, rankers.aggregate(several))
    drawn = GaussianMLR(**QUICK, rankers="all").fit(X, several)
    assert (drawn.predict_proba(X) != one.predict_proba(X)).any()
    shared = GaussianMLR(**QUICK, rankers="all").fit(sparse.csr_array(X), several)
    assert shared.predict(sparse.csr_array(X)).shape == ranks.shape
    for rows in (X, sparse.csr_array(X)):
        reliable = GaussianMLR(**QUICK, rankers="reliable").fit(rows, several)
        assert (reliable.predict_proba(rows) != drawn.predict_proba(rows)).any()


def test_one_label_unknown_labels_and_few_rows(table):
    X, ranks = table
    assert set(GaussianMLR(**QUICK).fit(X, ranks[:, :1]).predict(X).ravel()) <= {0, 1}
    gaps = ranks.copy()
    gaps[np.random.default_rng(0).random(ranks.shape) < 0.5] = -1
    ranker = GaussianMLR(**LEARNS).fit(X, gaps)
    assert ranker.predict(X).min() == 0  # what is predicted is never unknown
    assert ranker.score(X, ranks) > 0.4
    assert GaussianMLR(**QUICK).fit(X[:1], ranks[:1]).predict(X).shape == ranks.shape
    missing = GaussianMLR(**QUICK, labels=["a", "b", "c"]).fit(X[:2], ["a", "a > b"])
    assert missing.predict(X[:2]).shape == (2, 3)
    with pytest.raises(DataError, match="label 'c' is not one of"):
        GaussianMLR(**QUICK).fit(X[:2], ["a", "a > b"]).score(X[:2], ["c", "c > a"])
    assert -1 <= missing.score(X[:2], ["c", "c > a"]) <= 1


def test_weights_count(table):
    X, ranks = table
    other = np.where(ranks > 0, 0, 1)
    doubled, both = np.concatenate([X, X]), np.concatenate([ranks, other])
    for weights, wanted in (((1.0, 1e-3), ranks), ((1e-3, 1.0), other), ((1.0, 0.0), ranks)):
        weight = np.repeat(weights, len(X))
        ranker = GaussianMLR(**LEARNS).fit(doubled, both, sample_weight=weight)
        assert evaluate(ranker.decision_function(X), wanted)["hamming_loss"] < 0.3
    alone = GaussianMLR(**LEARNS).fit(X, ranks, sample_weight=np.ones(len(X)))
    np.testing.assert_array_equal(
        alone.predict_proba(X),
        GaussianMLR(**LEARNS).fit(doubled, both, sample_weight=np.repeat([2, 0], len(X))).predict_proba(X),
    )


def test_evaluation_data_choose_the_epoch(table):
    X, ranks = table
    ranker = GaussianMLR(**{**QUICK, "epochs": 4}).fit(X, ranks, eval_set=(X[:20], ranks[:20]))
    history = ranker.history_[0]
    assert len(history) == 4
    best = max(row["tau_b"] for row in history)
    assert best == pytest.approx(kendall_tau_b(ranker.decision_function(X[:20]), ranks[:20]))
    fast = GaussianMLR(**{**LEARNS, "rate": 0.3}, recipe={"select": "loss"})
    fast.fit(X, ranks, eval_set=(X[:20], ranks[:20]))
    best = min(fast.history_[0], key=lambda row: row["loss"])
    assert best["tau_b"] == pytest.approx(kendall_tau_b(fast.decision_function(X[:20]), ranks[:20]))
    stopped = GaussianMLR(**{**QUICK, "epochs": 50}, patience=1, rate=1e-7).fit(X, ranks)
    assert len(stopped.history_[0]) < 50
    all_rows = GaussianMLR(**QUICK, validation_fraction=0).fit(X, ranks)
    assert "tau_b" not in all_rows.history_[0][0]
    with pytest.raises(DataError, match="rows of X and"):
        ranker.fit(X, ranks, eval_set=(X[:20], ranks[:19]))


def test_members_hold_out_other_rows_and_are_averaged(fitted, table):
    parts = [set(rolling_hold_out(150, 0.15, turn, seed=3)[1]) for turn in range(6)]
    assert len(set.union(*parts)) == sum(map(len, parts)) == 6 * 22
    x = torch.from_numpy(((table[0] - table[0].mean(0)) / table[0].std(0)).astype(np.float32))
    members = fitted.model_.network.members
    assert len(members) == fitted.model_.members == 2
    with torch.no_grad():
        expected = (members[0](x)["mu"] + members[1](x)["mu"]) / 2
    np.testing.assert_allclose(fitted.decision_function(table[0]), expected, atol=1e-5)
    assert not torch.equal(members[0](x)["mu"], members[1](x)["mu"])


def test_temperatures_of_members_are_joined_and_change_no_rank(table):
    X, ranks = table
    ranker = GaussianMLR(**{**LEARNS, "n_members": 2}).fit(X, ranks)
    cold = GaussianMLR(**{**LEARNS, "n_members": 2}, recipe={"calibrate": False}).fit(X, ranks)
    assert ranker.model_.calibration.relevance != 1
    np.testing.assert_array_equal(ranker.predict(X), cold.predict(X))
    z = norm.ppf(cold.predict_proba(X)) / ranker.model_.calibration.relevance
    sure = np.abs(z) < 4  # farther out the probabilities have no digits left
    np.testing.assert_allclose(norm.ppf(ranker.predict_proba(X))[sure], z[sure], atol=1e-3)


def test_the_same_seed_the_same_numbers_and_nothing_else_is_touched(table):
    X, ranks = table
    torch.manual_seed(5)
    np.random.seed(5)  # noqa: NPY002
    before = (torch.get_rng_state(), np.random.get_state()[1].copy())  # noqa: NPY002
    one = GaussianMLR(**QUICK).fit(X, ranks).decision_function(X)
    assert torch.equal(torch.get_rng_state(), before[0])
    np.testing.assert_array_equal(np.random.get_state()[1], before[1])  # noqa: NPY002
    torch.manual_seed(6)
    np.testing.assert_array_equal(GaussianMLR(**QUICK).fit(X, ranks).decision_function(X), one)
    assert (GaussianMLR(**{**QUICK, "random_state": 1}).fit(X, ranks).decision_function(X) != one).any()
    first, second = (GaussianMLR(**{**QUICK, "random_state": None}).fit(X, ranks) for _ in range(2))
    assert (first.decision_function(X) != second.decision_function(X)).any()


def test_clone_pickle_and_threads(fitted, table):
    X, ranks = table
    copy = clone(fitted.set_output(predict="pandas"))
    assert copy.get_params() == fitted.get_params()
    assert isinstance(copy.set_params(epochs=1).fit(X, ranks).predict(X), pd.DataFrame)
    fitted.set_output(predict="default")
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict_proba(X), fitted.predict_proba(X))
    with joblib.parallel_config(backend="threading", n_jobs=3):
        found = cross_val_score(GaussianMLR(**QUICK), X, ranks, cv=3)
    np.testing.assert_array_equal(found, cross_val_score(GaussianMLR(**QUICK), X, ranks, cv=3))


@pytest.mark.slow
def test_processes_of_joblib(table):
    X, ranks = table
    alone = cross_val_score(GaussianMLR(**QUICK), X, ranks, cv=2)
    np.testing.assert_allclose(cross_val_score(GaussianMLR(**QUICK), X, ranks, cv=2, n_jobs=2), alone)


def test_grid_search_in_a_pipeline_with_columns(table):
    X, ranks = table
    frame = pd.DataFrame(X, columns=list("abcde"))
    frame["kind"] = np.where(X[:, 0] > 0, "high", "low")
    orders = gaussianmlr.to_text(ranks, ["sky", "sea", "sun"])
    columns = ColumnTransformer(
        [("numbers", StandardScaler(), list("abcde")), ("texts", OneHotEncoder(), ["kind"])]
    )
    pipeline = make_pipeline(columns, GaussianMLR(**QUICK))
    search = GridSearchCV(
        pipeline,
        {"gaussianmlr__hidden": [1, 32]},
        scoring=gaussianmlr.estimators.scorers.get_scorers(),
        refit="tau_b",
        cv=2,
        error_score="raise",
    ).fit(frame, orders)
    assert search.best_params_ == {"gaussianmlr__hidden": 32}
    assert list(search.classes_) == ["sea", "sky", "sun"]
    for name in gaussianmlr.estimators.scorers.available():
        assert np.isfinite(search.cv_results_[f"mean_test_{name}"]).all()
    assert search.predict(frame).shape == (150, 3)


def test_permutation_importance_finds_the_column_that_matters():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = np.stack([X[:, 1] > 0, X[:, 1] <= 0], axis=1).astype(int)
    ranker = GaussianMLR(**LEARNS).fit(X, y)
    found = permutation_importance(ranker, X, y, n_repeats=2, random_state=0)
    assert found.importances_mean.argmax() == 1
    assert found.importances_mean[1] > 0.5


def test_frames_in_and_out(table):
    X, ranks = table
    inputs = pd.DataFrame(X, columns=list("abcde"), index=[f"row {i}" for i in range(len(X))])
    ranker = GaussianMLR(**QUICK).fit(inputs, pd.DataFrame(ranks, columns=["x", "y", "z"]))
    assert list(ranker.feature_names_in_) == list("abcde")
    assert ranker.n_features_in_ == 5
    assert ranker.predict_full(inputs).names[0] == "row 0"
    frame = ranker.set_output(predict="pandas").predict_proba(inputs)
    assert list(frame.columns) == ["x", "y", "z"]
    assert list(frame.index) == list(inputs.index)
    mu, sigma = ranker.predict_significance(inputs)
    assert (sigma > 0).all().all()
    assert list(mu.columns) == ["x", "y", "z"]
    with pytest.raises(DataError, match="'default' or 'pandas'"):
        ranker.set_output(predict="excel")


def test_sparse_inputs_of_every_format(table):
    X, ranks = table
    check_sparse_formats(GaussianMLR(**QUICK, scale=False), X[:40], ranks[:40])
    # Sparse columns are not centred; dense ones that are centred already are told the same.
    scaled = X / X.std(0)
    one = GaussianMLR(**QUICK).fit(sparse.csr_array(X), ranks)
    two = GaussianMLR(**QUICK, scale=False).fit(scaled, ranks)
    np.testing.assert_allclose(one.decision_function(X), two.decision_function(scaled), atol=1e-5)


def test_the_scale_of_columns_does_not_matter(table):
    X, ranks = table
    one, two = GaussianMLR(**QUICK).fit(X, ranks), GaussianMLR(**QUICK).fit(X * 1000 - 7, ranks)
    np.testing.assert_allclose(one.decision_function(X), two.decision_function(X * 1000 - 7), atol=1e-4)


@pytest.mark.slow
def test_a_saved_estimator_serves_the_command_line(fitted, table, tmp_path):
    X = table[0]
    folder = fitted.save(tmp_path / "model")
    loaded = gaussianmlr.load(folder)
    assert loaded.members == 2
    assert fitted.to_model() is fitted.model_
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(fitted)).predict(X[:9]), fitted.predict(X[:9]))
    file = tmp_path / "rows.csv"
    pd.DataFrame(X[:9], columns=loaded.inputs["columns"]).to_csv(file, index=False)
    command = [sys.executable, "-m", "gaussianmlr", "predict", str(folder), str(file)]
    done = subprocess.run([*command, "--format", "jsonl"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    orders = [json.loads(line)["order"] for line in done.stdout.splitlines()]
    assert orders == fitted.predict_order(X[:9])


def test_defaults_follow_the_number_of_rows():
    found = {rows: GaussianMLR()._recipe(rows, 0) for rows in (100, 2_000, 100_000)}
    assert found[100].batch_size < found[2_000].batch_size < found[100_000].batch_size
    assert found[100].epochs > found[2_000].epochs > found[100_000].epochs
    given = GaussianMLR(epochs=3, batch_size=7, recipe={"optimizer": "adam"})._recipe(100, 0)
    assert (given.epochs, given.batch_size, given.optimizer) == (3, 7, "adam")


def test_errors_say_what_is_wrong(table):
    X, ranks = table
    for wrong, text in (
        ({"n_members": 0}, "n_members is 0"),
        ({"epochs": 0}, "epochs is 0; expected a whole number from 1 up"),
        ({"epochs": 2.5}, "epochs is 2.5"),
        ({"batch_size": 0}, "batch_size is 0"),
        ({"hidden": "wide"}, "hidden is 'wide'"),
        ({"validation_fraction": "some"}, "validation_fraction is 'some'"),
        ({"validation_fraction": 1.0}, "validation_fraction is 1.0"),
        ({"epochs": -1}, "epochs is -1"),
        ({"method": "magic"}, "no method 'magic'"),
        ({"recipe": {"epoch": 3}}, "did you mean 'epochs'"),
    ):
        with pytest.raises(DataError, match=text):
            MultiLabelRanker(**{**QUICK, **wrong}).fit(X, ranks)
    with pytest.raises(DataError, match="label 'moon' is not one of"):
        GaussianMLR(**QUICK, labels=["sun"]).fit(X[:1], ["moon"])


def test_orders_that_say_nothing_are_refused(table):
    X, ranks = table
    nothing = np.full_like(ranks, -1)
    several = np.stack([nothing, nothing], 1)
    for ranker in (GaussianMLR(**QUICK), NeighbourRanker(), DummyRanker()):
        with pytest.raises(DataError, match=rf"all {len(X)} x 3 entries of y are unknown \(-1\)"):
            ranker.fit(X, nothing)
    with pytest.raises(DataError, match=rf"all {len(X)} x 2 x 3 entries of y are unknown"):
        GaussianMLR(**QUICK).fit(X, several)
    with pytest.raises(DataError, match="all 10 x 3 entries of eval_set's y are unknown"):
        GaussianMLR(**QUICK).fit(X, ranks, eval_set=(X[:10], nothing[:10]))
    nothing[3, 1] = 0
    GaussianMLR(**QUICK).fit(X, nothing)  # little, and yet something
    with pytest.raises(DataError, match="all 1 x 3 entries of y are unknown"):  # that row weighs nothing
        GaussianMLR(**QUICK).fit(X[2:4], nothing[2:4], sample_weight=[1.0, 0.0])


def test_a_label_that_a_fold_lacks_says_how_to_name_it():
    X = np.arange(8.0)[:, None]
    orders = ["sun"] * 4 + ["moon > sun"] * 4
    hint = r"lacks \['moon'\], as can happen in a fold .*: labels=\[...\]"
    folds = {"cv": KFold(2), "error_score": "raise"}
    for scoring in (None, get_scorer("tau_b")):
        with pytest.raises(DataError, match=hint):
            cross_val_score(DummyRanker(), X, orders, scoring=scoring, **folds)
        named = cross_val_score(DummyRanker(labels=["moon", "sun"]), X, orders, scoring=scoring, **folds)
        assert np.isfinite(named).all()
    with pytest.raises(DataError, match=hint):
        GaussianMLR(**QUICK).fit(X[:4], orders[:4], eval_set=(X, orders))
    with pytest.raises(DataError, match="expected 1 columns") as caught:  # ranks have no names to lack
        DummyRanker().fit(X[:4], orders[:4]).score(X, np.ones((8, 2), int))
    assert "labels=[...]" not in str(caught.value)


def test_words_among_numbers_are_named():
    frame = pd.DataFrame({"height": [1.0, 2.0, 3.0], "kind": ["3", "oak", "4"]})
    with pytest.raises(DataError, match=r"column 'kind' of X is 'oak' in row 1; expected a number"):
        GaussianMLR(**QUICK).fit(frame, ["a", "b", "a"])
    ranker = GaussianMLR(**QUICK).fit([[1.0, 2.0], [2.0, 3.0]], ["a", "b"])
    with pytest.raises(DataError, match=r"column 1 of X is 'oak' in row 0; expected numbers"):
        ranker.predict([["1", "oak"], ["2", "3"]])


@pytest.mark.parametrize("method", ["gmlr", "ranknet", "br"])
def test_one_label_is_learned(method):
    """Tau-b says nothing of one label; the epoch must not be chosen by it."""
    X = np.random.default_rng(0).normal(size=(300, 4))
    y = (X @ [1.0, 2.0, -1.0, 0.5] > 0)[:, None].astype(int)
    ranker = MultiLabelRanker(method, **LEARNS).fit(X[:200], y[:200])
    assert (ranker.predict(X[200:]) == y[200:]).mean() > 0.9


def test_rows_without_any_relevant_label_are_learned():
    X = np.random.default_rng(0).normal(size=(150, 4))
    ranker = GaussianMLR(**LEARNS).fit(X, np.zeros((150, 3), dtype=int))
    assert not ranker.predict(X).any()
    assert ranker.predict_proba(X).max() < 0.5

"""GaussianMLR of every kind: networks, trees, both, and the choice between them."""

import copy
import json
import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.inspection import permutation_importance
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.utils.estimator_checks import parametrize_with_checks

import gaussianmlr
from gaussianmlr import DataError, GaussianMLR, MultiLabelRanker
from gaussianmlr.estimators import gaussian
from gaussianmlr.training import trees
from support.estimators import NOT_A_CLASSIFIER

DRAWN = "rows are drawn for batches and trees, so that a weight is no repetition"
EXPECTED = {
    **NOT_A_CLASSIFIER,
    "check_sample_weight_equivalence_on_dense_data": DRAWN,
    "check_sample_weight_equivalence_on_sparse_data": DRAWN,
}
QUICK = {
    "epochs": 2,
    "n_members": 1,
    "hidden": 8,
    "random_state": 0,
    "recipe": {"trees": {"rounds": 16, "rate": 0.3, "penalty": 1.0}},
}
KINDS = ["network", "trees", "both", "auto"]


def make_table(rows=120, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 5))
    heights = X[:, :3] + 0.3 * rng.normal(size=(rows, 3))
    return X, np.where(heights > 0, heights.argsort(1).argsort(1) + 1, 0)


@pytest.fixture(scope="module")
def table():
    return make_table()


@pytest.mark.slow
@parametrize_with_checks(
    [GaussianMLR(model=kind, **QUICK) for kind in ("trees", "both", "auto")],
    expected_failed_checks=lambda _: EXPECTED,
)
def test_scikit_learns_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_learns_is_copied_and_saved(table, kind, tmp_path):
    ranker = GaussianMLR(model=kind, **{**QUICK, "epochs": 20, "hidden": 32, "rate": 0.01}).fit(*table)
    X, y = make_table(seed=1)
    assert ranker.score(X, y) > 0.4
    wanted = ranker.predict_proba(X)
    again = GaussianMLR.load(ranker.save(tmp_path / "model"))
    for other in (copy.deepcopy(ranker), pickle.loads(pickle.dumps(ranker)), again):
        np.testing.assert_array_equal(other.predict_proba(X), wanted)
    assert again.chosen_["kind"] == ranker.chosen_["kind"] == ranker.model_.kind
    assert again.n_features_in_ == 5
    sigma = ranker.predict_significance(X)[1]
    np.testing.assert_allclose(np.log(sigma).mean(1), np.log(sigma).mean(), atol=1e-6)  # one gauge
    np.testing.assert_array_equal(gaussianmlr.load(tmp_path / "model").predict(X).ranks.shape, y.shape)


def test_both_is_the_mean_of_its_kinds(table):
    X, y = table
    settings = {**QUICK, "recipe": {**QUICK["recipe"], "calibrate": False}}
    scores = {kind: GaussianMLR(model=kind, **settings).fit(X, y).decision_function(X) for kind in KINDS[:3]}
    np.testing.assert_allclose(scores["both"], (scores["network"] + scores["trees"]) / 2, atol=1e-6)
    assert np.abs(scores["network"] - scores["trees"]).max() > 0.1


@pytest.mark.slow
def test_the_choice_follows_the_data_and_says_why(monkeypatch):
    """Steps that only trees see at once; then the same choice with the trees made useless."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 6))
    cells = (np.floor(3 * X[:, 0]).astype(int) * 7 + np.floor(3 * X[:, 1]).astype(int) * 3) % 3
    y = np.eye(3, dtype=int)[cells] * 2 + np.eye(3, dtype=int)[(cells + 1) % 3]
    ranker = GaussianMLR(n_members=1, random_state=0, recipe={"trees": {"rate": 0.2}}).fit(X, y)
    found = ranker.chosen_
    assert found["kind"] == ranker.model_.kind
    assert set(found["scores"]) == set(found["standard_errors"]) == {"network", "trees", "both"}
    assert found["scores"]["trees"] > found["scores"]["network"]
    assert f"model='{found['kind']}' skips this (--model {found['kind']})" in found["why"]
    weak = {"trees": {"rounds": 1, "rate": 0.0001}}
    simple = GaussianMLR(n_members=1, random_state=0, recipe=weak).fit(*make_table(300))
    assert simple.chosen_["kind"] in ("network", "both")
    assert simple.chosen_["scores"]["network"] > simple.chosen_["scores"]["trees"]


@pytest.mark.parametrize("members", [1, 2, 4])
def test_auto_trains_on_at_most_three_times_the_rows_of_a_kind(table, members, monkeypatch):
    X, y = table
    rows = {"network": 0, "trees": 0}
    fit, fit_trees = gaussian.MultiLabelRanker._fit_kind.__globals__["fit"], trees.fit_trees

    def count(kind, train):
        def counted(recipe, data, *others, **options):
            rows[kind] += len(data)
            return train(recipe, data, *others, **options)

        return counted

    names = gaussian.MultiLabelRanker._fit_kind.__globals__
    monkeypatch.setitem(names, "fit", count("network", fit))
    monkeypatch.setitem(names, "fit_trees", count("trees", fit_trees))
    GaussianMLR(model="trees", **{**QUICK, "n_members": members}).fit(X, y)
    alone = rows["trees"]
    rows.update(network=0, trees=0)
    GaussianMLR(**{**QUICK, "n_members": members}).fit(X, y)
    assert rows["network"] > 0
    assert rows["trees"] > 0
    assert rows["network"] + rows["trees"] <= 3.05 * alone


def test_without_xgboost(table, monkeypatch):
    from gaussianmlr._utils import extras

    monkeypatch.setattr(trees, "find_spec", lambda name: None)
    monkeypatch.setattr(extras, "find_spec", lambda name: None)
    ranker = GaussianMLR(**QUICK).fit(*table)
    assert ranker.model_.kind == "network"
    assert "pip install 'gaussianmlr[trees]'" in ranker.chosen_["why"]
    with pytest.raises(DataError, match=r"needs xgboost-cpu: pip install 'gaussianmlr\[trees\]'"):
        GaussianMLR(model="trees", **QUICK).fit(*table)


def test_importances(table):
    X, y = table
    ranker = GaussianMLR(model="trees", **QUICK).fit(X, y)
    assert ranker.feature_importances_.sum() == pytest.approx(1)
    assert ranker.feature_importances_[:3].min() > ranker.feature_importances_[3:].max()
    by_chance = permutation_importance(ranker, X, y, n_repeats=3, random_state=0).importances_mean
    assert by_chance[:3].min() > by_chance[3:].max()
    assert not hasattr(GaussianMLR(model="network", **QUICK).fit(X, y), "feature_importances_")


@pytest.mark.parametrize("kind", ["trees", "auto"])
def test_sparse_rankers_weights_and_evaluation_sets(table, kind):
    X, y = table
    dense = GaussianMLR(model=kind, scale=False, **QUICK).fit(X, y)
    rows = sparse.csr_array(X)
    same = GaussianMLR(model=kind, scale=False, **QUICK).fit(rows, y)
    np.testing.assert_allclose(same.decision_function(rows), dense.decision_function(X), atol=1e-5)
    several = np.stack([y, y[:, ::-1], y], 1)
    for how in ("aggregate", "all"):
        ranker = GaussianMLR(model=kind, rankers=how, **QUICK).fit(X, several, eval_set=(X[:20], y[:20]))
        assert ranker.predict(X).shape == y.shape
    both, orders = np.concatenate([X, X]), np.concatenate([y, y[:, ::-1]])
    for heavy in (0, 1):
        weight = np.repeat([1.0, 1e-3] if heavy == 0 else [1e-3, 1.0], len(X))
        ranker = GaussianMLR(model=kind, **QUICK).fit(both, orders, sample_weight=weight)
        assert ranker.score(X, orders[: len(X)] if heavy == 0 else orders[len(X) :]) > 0.3


@pytest.mark.parametrize("rows", [1, 2, 12, 39])
def test_few_rows(table, rows):
    X, y = table
    ranker = GaussianMLR(**QUICK).fit(X[:rows], y[:rows])
    assert "too few" in ranker.chosen_["why"]
    assert ranker.predict(X).shape == y.shape


@pytest.mark.parametrize("order", [[2, 1, 0], [0, 0, 0], [1, 1, 1], [1, -1, 0]])
def test_constant_targets(table, order):
    X = table[0]
    ranker = GaussianMLR(**QUICK).fit(X, np.tile([order], (len(X), 1)))
    assert np.isfinite(ranker.predict_proba(X)).all()
    known = np.array(order) >= 0
    trees_alone = GaussianMLR(model="trees", **QUICK).fit(X, np.tile([order], (len(X), 1)))
    assert ((trees_alone.predict(X) > 0)[:, known] == (np.array(order) > 0)[known]).all()


def test_searches(table):
    X, y = table
    search = GridSearchCV(GaussianMLR(**QUICK), {"model": ["network", "trees"]}, cv=2).fit(X, y)
    assert search.best_params_["model"] in ("network", "trees")
    scores = cross_val_score(GaussianMLR(model="trees", **QUICK), X, y, cv=2)
    np.testing.assert_array_equal(scores, cross_val_score(GaussianMLR(model="trees", **QUICK), X, y, cv=2))


def test_wrong_settings_are_named(table):
    with pytest.raises(DataError, match="model is 'forest'; expected 'auto', 'network', 'trees' or 'both'"):
        GaussianMLR(model="forest").fit(*table)
    with pytest.raises(DataError, match="trees have no setting 'deep'; there are rounds"):
        GaussianMLR(model="trees", recipe={"trees": {"deep": 3}}).fit(*table)
    with pytest.raises(DataError, match="trees: depth is 99; expected a whole number from 1 to 16"):
        GaussianMLR(model="trees", recipe={"trees": {"depth": 99}}).fit(*table)


def test_loading_models_of_other_methods_and_changed_files(table, tmp_path):
    saved = MultiLabelRanker("crpc", epochs=1, n_members=1).fit(*table).save(tmp_path / "crpc")
    with pytest.raises(DataError, match=r"'crpc': use MultiLabelRanker\.load"):
        GaussianMLR.load(saved)
    assert MultiLabelRanker.load(saved).method == "crpc"
    model = GaussianMLR(model="trees", **QUICK).fit(*table).save(tmp_path / "trees")
    assert json.loads((model / "config.json").read_text())["format_version"] == 2
    file = model / "trees-0.ubj"
    whole = file.read_bytes()
    for changed in (whole[:-1], whole[:100] + b"x" + whole[101:]):
        file.write_bytes(changed)
        with pytest.raises(DataError, match=r"trees-0\.ubj is not the file that was saved"):
            gaussianmlr.load(model)
    file.unlink()
    with pytest.raises(DataError, match=r"has no trees-0\.ubj; copy the whole folder"):
        gaussianmlr.load(model)


def test_wide_tables_train_trees_on_the_columns_that_matter():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 1500)).astype(np.float32)  # 96,000 thresholds
    X[:, 7], X[3, 20] = 1.0, np.nan
    heights = X[:, [100, 700, 1300]] + 0.3 * rng.normal(size=(400, 3))
    y = np.where(heights > 0, heights.argsort(1).argsort(1) + 1, 0)
    ranker = GaussianMLR(model="trees", random_state=0, n_members=1, recipe={"trees": {"rounds": 60}})
    gains = ranker.fit(X[:300], y[:300]).feature_importances_
    assert (gains[[100, 700, 1300]] > 2 * gains.mean()).all()
    assert np.count_nonzero(gains) <= trees.MOST_BINS // 32
    assert ranker.score(X[300:], y[300:]) > 0.5
    before = ranker.predict(X[300:])
    X[:, gains == 0] = 1e6
    np.testing.assert_array_equal(ranker.predict(X[300:]), before)

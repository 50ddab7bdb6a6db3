"""The classic rivals against naive loops, scikit-learn's own parts and its common checks."""

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Perceptron
from sklearn.utils.estimator_checks import parametrize_with_checks

from gaussianmlr import CalibratedRanker, DataError, DummyRanker, NeighbourRanker, rankers, to_ranks
from gaussianmlr.metrics import kendall_tau_b
from support.estimators import NOT_A_CLASSIFIER, check_sparse_formats

BOOTSTRAP = "a bootstrap draws rows, so that a weight is not a repetition; as in RandomForestClassifier"


def expected_failures(estimator):
    if not isinstance(getattr(estimator, "classifier", None), RandomForestClassifier):
        return NOT_A_CLASSIFIER
    names = (
        "check_sample_weight_equivalence_on_dense_data",
        "check_sample_weight_equivalence_on_sparse_data",
    )
    return {**NOT_A_CLASSIFIER, **dict.fromkeys(names, BOOTSTRAP)}


@parametrize_with_checks(
    [
        CalibratedRanker(LogisticRegression()),
        CalibratedRanker(RandomForestClassifier(3)),
        NeighbourRanker(n_neighbours=4),
        NeighbourRanker(n_neighbours=4, scale=False, aggregation="borda"),
        DummyRanker(),
    ],
    expected_failed_checks=expected_failures,
)
def test_scikit_learns_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(7)
    X = rng.normal(size=(120, 4))
    heights = X @ rng.normal(size=(4, 4)) + 0.3 * rng.normal(size=(120, 4))
    ranks = np.where(heights > 0, heights.round(1).argsort(1).argsort(1) + 1, 0)
    ranks[rng.random(ranks.shape) < 0.1] = -1
    return X, to_ranks(ranks).ranks


def test_calibrated_ranking_is_one_classifier_a_pair_and_votes(table):
    X, ranks = table
    labels = ranks.shape[1]
    votes = np.zeros((len(X), labels + 1))
    for u in range(labels):
        for v in range(u + 1, labels + 1):
            rows, targets = [], []
            for row, order in enumerate(ranks):
                other = 0.5 if v == labels else order[v]  # the virtual label
                if order[u] >= 0 and other >= 0 and order[u] != other:
                    rows.append(row)
                    targets.append(int(order[u] > other))
            chance = LogisticRegression().fit(X[rows], targets).predict_proba(X)[:, 1]
            votes[:, u] += chance
            votes[:, v] += 1 - chance
    model = CalibratedRanker(LogisticRegression()).fit(X, ranks)
    np.testing.assert_allclose(model.decision_function(X), votes[:, :-1] - votes[:, -1:], atol=1e-12)
    assert model.score(X, ranks) == pytest.approx(kendall_tau_b(votes[:, :-1] - votes[:, -1:], ranks))
    assert model.score(X, ranks) > DummyRanker().fit(X, ranks).score(X, ranks) + 0.2


def test_calibrated_ranking_with_hard_votes_weak_orders_and_seeds(table):
    X, ranks = table
    scores = CalibratedRanker(Perceptron()).fit(X, ranks).decision_function(X)
    np.testing.assert_array_equal(scores, scores.round())
    weak = CalibratedRanker(LogisticRegression(), supervision="weak").fit(X, ranks)
    same = CalibratedRanker(LogisticRegression()).fit(X, ranks.clip(max=1))
    np.testing.assert_array_equal(weak.decision_function(X), same.decision_function(X))
    forest = RandomForestClassifier(5)
    one, two = (CalibratedRanker(forest, random_state=3).fit(X, ranks).predict_proba(X) for _ in range(2))
    np.testing.assert_array_equal(one, two)
    assert (one != CalibratedRanker(forest, random_state=4).fit(X, ranks).predict_proba(X)).any()
    with parallel_config(backend="threading"):
        three = CalibratedRanker(forest, random_state=3, n_jobs=2).fit(X, ranks).predict_proba(X)
    np.testing.assert_array_equal(one, three)


def test_pairs_that_teach_nothing():
    X = np.arange(4.0)[:, None]
    model = CalibratedRanker().fit(X, [[1, 2, -1], [1, 2, -1], [1, 2, -1], [1, 2, -1]])
    # a is below b and above the virtual label, b above both, of c nobody knows anything
    np.testing.assert_array_equal(model.decision_function(X[:1]), [[1.5, 2.5, 1.5] - np.array([0.5] * 3)])


def test_neighbours_are_not_people(table):
    X, ranks = table
    for ranker in (NeighbourRanker(aggregation="thurstone"), DummyRanker(aggregation="thurstone")):
        with pytest.raises(DataError, match="people who order many instances"):
            ranker.fit(X, ranks)


@pytest.mark.parametrize("aggregation", ["mean_rank", "borda", "kemeny"])
def test_neighbours_are_found_and_aggregated(table, aggregation):
    X, ranks = table
    model = NeighbourRanker(n_neighbours=5, aggregation=aggregation).fit(X, ranks)
    scaled = X / X.std(0)
    for query in range(0, 120, 17):
        near = np.argsort(((scaled - scaled[query]) ** 2).sum(1))[:5]
        expected = rankers.aggregate(ranks[near][None], aggregation)[0]
        np.testing.assert_array_equal(model.predict(X[query : query + 1])[0], expected.clip(min=0))


def test_weights_of_neighbours_are_repetitions(table):
    X, ranks = table
    weights = np.random.default_rng(0).integers(0, 4, len(X))
    weighted = NeighbourRanker(n_neighbours=6).fit(X, ranks, sample_weight=weights)
    repeated = NeighbourRanker(n_neighbours=6).fit(X.repeat(weights, 0), ranks.repeat(weights, 0))
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X))
    np.testing.assert_array_equal(weighted.predict(X), repeated.predict(X))


def test_the_dummy_says_the_consensus(table):
    X, ranks = table
    dummy = DummyRanker(aggregation="borda").fit(X, ranks)
    np.testing.assert_array_equal(dummy.predict(X), np.repeat(rankers.borda(ranks[None]), len(X), 0))


@pytest.mark.parametrize("model", [CalibratedRanker(LogisticRegression()), NeighbourRanker(), DummyRanker()])
def test_predictions_never_disagree(table, model):
    X, ranks = table
    model.fit(X, ranks)
    found, chance, scores = model.predict(X), model.predict_proba(X), model.decision_function(X)
    np.testing.assert_array_equal(found > 0, scores > 0)
    assert (chance[found > 0] >= 0.5).all()
    assert (chance[found == 0] <= 0.5).all()
    np.testing.assert_array_equal(to_ranks(model.predict_order(X), model.labels_).ranks, found)
    assert model.predict_order(X[:1], form="lists")[0] == [
        [label] for _, label in sorted(zip(found[0], model.labels_), reverse=True) if _ > 0
    ]


@pytest.mark.parametrize("model", [CalibratedRanker(LogisticRegression()), NeighbourRanker(), DummyRanker()])
def test_sparse_inputs_of_every_format(table, model):
    X, ranks = table
    check_sparse_formats(model, X[:40], ranks[:40])


def test_several_rankers_and_frames(table):
    pd = pytest.importorskip("pandas")
    X, ranks = table
    several = np.stack([ranks, ranks, np.roll(ranks, 1, 1)], axis=1)
    one = DummyRanker().fit(X, several)
    two = DummyRanker().fit(X, rankers.aggregate(several))
    np.testing.assert_array_equal(one.predict(X), two.predict(X))
    assert one.score(X, several) == two.score(X, rankers.aggregate(several))
    frame = pd.DataFrame(ranks, columns=["d", "c", "b", "a"], index=range(5, 125))
    inputs = pd.DataFrame(X, columns=list("wxyz"), index=frame.index)
    model = NeighbourRanker().fit(inputs, frame)
    assert list(model.feature_names_in_) == list("wxyz")
    assert model.score(inputs, frame[["a", "b", "c", "d"]]) == model.score(inputs, frame)
    given = model.set_output(predict="pandas").predict_proba(inputs)
    assert list(given.columns) == ["d", "c", "b", "a"]
    assert list(given.index) == list(frame.index)


def test_errors_say_what_is_wrong(table):
    X, ranks = table
    with pytest.raises(DataError, match="rows and y"):
        DummyRanker().fit(X, ranks[1:])
    with pytest.raises(DataError, match="weight -1"):
        DummyRanker().fit(X, ranks, sample_weight=-np.ones(len(X)))
    with pytest.raises(DataError, match="Kemeny"):
        NeighbourRanker(aggregation="kemeny").fit(X, ranks, sample_weight=np.ones(len(X))).predict(X)
    with pytest.raises(DataError, match="n_neighbours is 0"):
        NeighbourRanker(0).fit(X, ranks)
    with pytest.raises(DataError, match="supervision"):
        CalibratedRanker(supervision="none").fit(X, ranks)
    with pytest.raises(DataError, match="'text' or 'lists'"):
        DummyRanker().fit(X, ranks).predict_order(X, form="html")

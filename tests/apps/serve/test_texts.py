"""A model of texts behind the server."""

import pytest

from gaussianmlr.apps.serve.app import serving_app
from gaussianmlr.data import read_table
from gaussianmlr.model.recipe import Recipe
from gaussianmlr.training.fit import fit
from support.paging import ask_app

ROWS = {"text": ["so happy", "so sad", "happy day", "sad day"] * 5, "ranking": ["joy", "sorrow"] * 10}


@pytest.fixture(scope="module")
def model():
    import pandas as pd

    recipe = Recipe(backbone="text:tfidf", epochs=20)
    return fit(recipe, read_table(pd.DataFrame(ROWS)), None).model


def test_texts_and_rows_get_the_same_answers(model):
    texts = ["happy", "very sad", ""]
    found = ask_app(
        serving_app(model),
        ("/predict", {"texts": texts, "names": ["a", "b", "c"]}),
        ("/predict", {"rows": [{"text": text} for text in texts], "names": ["a", "b", "c"]}),
        ("/info",),
    )
    assert [answer.status_code for answer in found] == [200, 200, 200]
    assert found[0].json() == found[1].json()
    orders = [one["order"] for one in found[0].json()["instances"]]
    assert orders[:2] == ["joy", "sorrow"]
    about = found[2].json()
    assert about["takes"] == ["texts", "rows"]
    assert "vocabulary" not in str(about)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"images": ["aGk="]}, "expected 'texts' or 'rows' alone"),
        ({"texts": ["a"], "rows": [["a"]]}, "expected 'texts' or 'rows' alone"),
        ({"texts": []}, "0 texts; expected 1 to 256"),
        ({"texts": [3]}, "string"),
        ({"rows": [{"txt": "a"}]}, "no 'text'; expected a text"),
        ({"rows": [[["a"]]]}, "expected a text"),
    ],
)
def test_other_requests_are_refused(model, asked, message):
    (answer,) = ask_app(serving_app(model), ("/predict", asked))
    assert answer.status_code in (400, 422)
    assert message in answer.text


def test_models_of_rows_take_no_texts():
    from gaussianmlr.model.model import Model, build

    inputs = {"kind": "table", "channels": 2}
    recipe = Recipe(backbone="mlp")
    rows = Model(*build(recipe, 2, inputs), ("sky", "sea"), recipe, inputs)
    (answer,) = ask_app(serving_app(rows), ("/predict", {"texts": ["a"]}))
    assert answer.status_code == 400
    assert "expected 'rows' alone" in answer.text

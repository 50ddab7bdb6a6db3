"""How a model codes columns, against loops and pandas."""

import numpy as np
import pandas as pd
import pytest
import torch

from gaussianmlr import DataError
from gaussianmlr.data import read_table
from gaussianmlr.data.columns import Column, channels_of, code_cell, fit_columns, recode, slots
from gaussianmlr.data.inputs import RowReader, encoding_of, read_rows, scaled, scaling_of, table_inputs
from gaussianmlr.data.matrices import read_column, read_matrix
from gaussianmlr.nn.backbones.expanded import Expand
from support.messy import USED, messy_table


def test_one_hot_inputs_are_those_of_pandas():
    """Numbers, indicators of gaps, then one column per category and one for its gaps."""
    frame = messy_table()[USED]
    found = read_matrix(frame)
    inputs = table_inputs(found.values, USED, found.columns)
    given = Expand(slots(encoding_of(inputs)))(scaled(recode_all(found, inputs), inputs)).numpy()
    age = (frame.age - frame.age.mean()) / frame.age.std(ddof=0)
    wet = (frame.wet == "yes").astype(float)
    day = pd.to_datetime(frame.day)
    days = [(day - pd.Timestamp(0)).dt.days, day.dt.day_of_year, day.dt.day_of_week]
    numbers = [
        age.fillna(0),
        (wet - wet.mean()) / wet.std(ddof=0),
        *((one - one.mean()) / one.std(ddof=0) for one in days),
    ]
    dummies = pd.get_dummies(frame.city, dummy_na=True).astype(float)
    expected = np.column_stack([*numbers, frame.age.isna(), dummies])
    assert inputs["channels"] == 6
    np.testing.assert_allclose(given, expected, atol=1e-5)


def recode_all(found, inputs):
    return recode(found.values, found.columns, encoding_of(inputs), inputs["columns"])


def test_rare_new_and_missing_categories():
    train = np.array([[0.0], [0.0], [1.0], [2.0], [2.0], [2.0]])  # the second category only once
    column = fit_columns(train, (Column("category", ("a", "b", "c", "d")),))[0]
    assert column == Column("category", ("a", "c"), other=True)
    assert [code_cell(text, column) for text in ("a", "b", "c", "new")] == [0, 2, 1, 2]
    one_hot = Expand(slots((column,)))(torch.tensor([[0.0], [1.0], [2.0], [float("nan")]]))
    assert one_hot.tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, 0]]
    known = Expand(slots((Column("category", ("a", "c")),)))
    assert known(torch.tensor([[1.0], [2.0]])).tolist() == [[0, 1], [0, 0]]  # a new one has no effect


def test_only_frequent_categories_have_an_input():
    rng = np.random.default_rng(0)
    codes = np.concatenate([np.repeat(np.arange(100), 2), rng.choice(np.arange(0, 100, 2), 500)])
    names = tuple(f"c{number:03}" for number in range(100))
    column = fit_columns(codes[:, None].astype(float), (Column("category", names),))[0]
    counts = np.bincount(codes)
    assert column.categories == names
    assert len(column.frequent) == 64
    assert counts[list(column.frequent)].min() >= np.delete(counts, column.frequent).max()
    inputs = slots((column,))[0].inputs
    assert sorted(set(inputs)) == list(range(65))
    assert all(inputs[code] == 64 for code in range(101) if code not in column.frequent)
    many = tuple(f"{number:05}" for number in range(10_001))
    rows = np.repeat(np.arange(10_001.0), 2)[:, None]
    assert len(fit_columns(rows, (Column("category", many),))[0].categories) == 10_000


def test_numbers_without_gaps_have_no_encoding():
    rows = np.random.default_rng(0).normal(size=(20, 3))
    assert fit_columns(rows) is None
    assert table_inputs(rows, ["a", "b", "c"], None) == {
        "kind": "table",
        "channels": 3,
        "columns": ["a", "b", "c"],
        "scaling": {"mean": rows.mean(0).tolist(), "std": rows.std(0).tolist()},
    }


def test_statistics_ignore_gaps():
    rng = np.random.default_rng(0)
    rows = rng.normal(3, 2, size=(50, 3))
    rows[rng.random(rows.shape) < 0.3] = np.nan
    rows[:, 2] = np.nan
    for weights in (None, np.ones(50)):
        found = scaling_of(rows, weights)
        np.testing.assert_allclose(found["mean"][:2], np.nanmean(rows[:, :2], 0))
        np.testing.assert_allclose(found["std"][:2], np.nanstd(rows[:, :2], 0))
        assert (found["mean"][2], found["std"][2]) == (0.0, 1.0)


def test_a_gap_is_the_mean_where_training_had_none():
    inputs = table_inputs(np.array([[1.0, np.nan], [3.0, 4.0]]), ["a", "b"], None)
    found = scaled([[np.nan, np.nan]], inputs)
    assert found[0, 0] == 0
    assert found[0, 1].isnan()
    with pytest.raises(DataError, match="row 0: nothing in column 'a'; expected a number"):
        scaled([[np.nan, 1.0]], {"channels": 2, "columns": ["a", "b"]})


def test_rows_of_json_are_rows_of_the_frame():
    frame = messy_table(120)[USED]
    found = read_matrix(frame)
    inputs = table_inputs(found.values, USED, found.columns)
    whole = scaled(recode_all(found, inputs), inputs)
    records = [
        {name: None if pd.isna(cell) else cell for name, cell in row.items()}
        for row in frame.to_dict("records")
    ]
    np.testing.assert_array_equal(read_rows(records, inputs).numpy(), whole.numpy())
    np.testing.assert_array_equal(
        read_rows([[*row.values()] for row in records], inputs).numpy(), whole.numpy()
    )
    texts = [{name: "" if cell is None else str(cell) for name, cell in row.items()} for row in records]
    np.testing.assert_array_equal(read_rows(texts, inputs).numpy(), whole.numpy())


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"age": "old"}, "row 0: 'old' in column 'age'; expected a number"),
        ({"age": 1e308}, r"row 0: 1e\+308 in column 'age' is too large"),
        ({"age": "inf"}, "row 0: inf in column 'age'; expected a finite number"),
        ({"wet": "maybe"}, "row 0: 'maybe' in column 'wet'; expected true or false"),
        ({"day": "31-Dec-24"}, "row 0: '31-Dec-24' in column 'day'; expected a date such as 2024-12-31"),
        ({"city": ["Rome"]}, r"row 0: \['Rome'\] in column 'city'; expected a text"),
    ],
)
def test_cells_of_another_kind_are_named(row, message):
    frame = messy_table(120)[USED]
    found = read_matrix(frame)
    inputs = table_inputs(found.values, USED, found.columns)
    with pytest.raises(DataError, match=message):
        read_rows([{"age": 1, "city": "Rome", "wet": True, "day": "2024-01-01"} | row], inputs)
    with pytest.raises(DataError, match="no 'day'; expected a date"):
        RowReader(inputs).coded({"age": 1, "city": "Rome", "wet": True})


def test_recoding_is_by_name():
    rng = np.random.default_rng(0)
    old, new = ("a", "b", "c", "d"), ("b", "d", "e")
    codes = rng.integers(0, 4, 50).astype(float)
    codes[:5] = np.nan
    found = recode(codes[:, None], (Column("category", old),), (Column("category", new),), ["x"])[:, 0]
    for before, after in zip(codes, found):
        if np.isnan(before):
            assert np.isnan(after)
        else:
            text = old[int(before)]
            assert after == (new.index(text) if text in new else 3)
    with pytest.raises(DataError, match=r"column 'x' holds category of 4.*; expected a number"):
        recode(codes[:, None], (Column("category", old),), None, ["x"])
    numbers = recode(np.array([[1.0], [7.0]]), None, (Column("category", ("1", "2")),), ["x"])
    assert numbers.tolist() == [[0.0], [2.0]]


def test_parts_of_dates_are_those_of_pandas():
    stamps = pd.date_range("1968-02-27 05:00", periods=3000, freq="11h")
    days = read_column(pd.Series(stamps)).values
    found = channels_of(days[:, None], (Column("date", parts=("days", "day of year", "weekday", "hour")),))
    np.testing.assert_allclose(found[:, 0], (stamps - pd.Timestamp(0)) / pd.Timedelta(days=1))
    np.testing.assert_array_equal(found[:, 1], stamps.day_of_year)
    np.testing.assert_array_equal(found[:, 2], stamps.day_of_week)
    np.testing.assert_allclose(found[:, 3], stamps.hour, atol=1e-6)
    column = fit_columns(read_column(pd.Series(stamps.normalize()[:1])).values[:, None], (Column("date"),))[0]
    assert column.parts == ("days",)  # the others do not vary


@pytest.mark.parametrize(
    ("values", "kind", "expected"),
    [
        (pd.Series([1, None], dtype="Int64"), "number", [1, np.nan]),
        (pd.Series([True, None], dtype="boolean"), "boolean", [1, np.nan]),
        (pd.Series(["b", None, "a"], dtype="string"), "category", [1, np.nan, 0]),
        (pd.Series([2, 1, 2], dtype="category"), "category", [1, 0, 1]),
        (pd.to_datetime(pd.Series(["1970-01-02 01:00"])).dt.tz_localize("Europe/Rome"), "date", [1.0]),
        (pd.Series([1.5, 2], dtype="float32"), "number", [1.5, 2]),
        (np.array(["1970-01-03", "NaT"], dtype="datetime64[D]"), "date", [2, np.nan]),
    ],
)
def test_types_of_pandas(values, kind, expected):
    found = read_column(values)
    assert found.column.kind == kind
    np.testing.assert_array_equal(found.values, expected)


def test_types_of_polars():
    pl = pytest.importorskip("polars")
    import datetime

    for values, kind, expected in [
        (pl.Series([1, None]), "number", [1, np.nan]),
        (pl.Series([True, None]), "boolean", [1, np.nan]),
        (pl.Series(["b", None, "a"]), "category", [1, np.nan, 0]),
        (pl.Series(["b", None, "a"], dtype=pl.Categorical), "category", [1, np.nan, 0]),
        (pl.Series([datetime.date(1970, 1, 3), None]), "date", [2, np.nan]),
        (pl.Series([datetime.datetime(1970, 1, 3, 12)]), "date", [2.5]),
    ]:
        found = read_column(values)
        assert found.column.kind == kind
        np.testing.assert_array_equal(found.values, expected)


def test_columns_that_are_left_out():
    frame = messy_table(120)
    found = read_matrix(frame[["age", "nothing", "note", "city"]])
    assert found.used == (0, 3)
    assert found.notes[0] == "column 'nothing' is left out: it is empty"
    assert "column 'note' is left out: 120 different texts in 120 rows are no categories" in found.notes[1]
    again = read_matrix(frame[["age", "nothing", "note", "city"]], found)
    np.testing.assert_array_equal(again.values, found.values)
    with pytest.raises(DataError, match="no column can be used"):
        read_matrix(frame[["nothing"]])


@pytest.mark.parametrize("rows", [2, 8, 40])
def test_few_sentences_are_texts_and_few_names_are_categories(rows):
    sentences = [f"number {place} was a rather good day" for place in range(rows)]
    frame = pd.DataFrame({"comment": sentences, "ranking": ["joy", "joy > fear"] * (rows // 2)})
    (column,) = read_table(frame).encoding
    assert column.kind == "text"
    repeated = frame.assign(comment=(sentences[: max(1, rows // 4)] * rows)[:rows])
    assert [one.kind for one in read_table(repeated).encoding] == ["category"]
    names = frame.assign(comment=[f"Mr {place}" for place in range(rows)])
    assert [one.kind for one in read_table(names).encoding] == ["category"]
    beside = read_table(frame.assign(age=range(rows)))
    assert (beside.feature_names, "--texts 'comment'" in " ".join(beside.notes)) == (("age",), True)

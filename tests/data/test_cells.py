"""Cells of a table: gaps, numbers, truths, dates, and the kind of column they make."""

import datetime
import math

import numpy as np
import pandas as pd
import pytest

from gaussianmlr import DataError
from gaussianmlr.data.cells import date_of, is_gap, kind_of, number_in, text_of, truth_of, unique_cells


def kind(*values):
    return kind_of(unique_cells(np.array(values, dtype=object)))


@pytest.mark.parametrize(
    "value",
    [
        None,
        math.nan,
        np.float32("nan"),
        pd.NA,
        pd.NaT,
        "",
        "  ",
        "NA",
        "n/a",
        "NaN",
        "NULL",
        "None",
        "-",
        "?",
    ],
)
def test_gaps(value):
    assert is_gap(value)


@pytest.mark.parametrize(
    "value", [0, 0.0, False, "0", "no", "nothing", "--", "Nancy", [], np.datetime64("2020-01-01")]
)
def test_no_gaps(value):
    assert not is_gap(value)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (("1", "2.5", "n/a", " 3 "), "number"),
        ((1, 2.5, None), "number"),
        (("0", "1"), "number"),
        (("yes", "No", "?"), "boolean"),
        ((True, False, None), "boolean"),
        (("true", "0", "1"), "boolean"),
        (("yes", "no", "maybe"), "category"),
        (("2024-01-31", "2023-02-01 10:30", "2024-05-01T10:00:00Z"), "date"),
        ((datetime.date(2024, 1, 1), pd.Timestamp("2024-05-05")), "date"),
        (("red", "blue", "7"), "category"),
        (("1", "2", "red"), "number"),  # with one mistake
        (tuple(f"comment {number}" for number in range(51)), "text"),
        (tuple(f"comment {number}" for number in range(50)), "category"),
        (tuple(f"comment {number}" for number in range(51)) * 2, "category"),
    ],
)
def test_kinds(values, expected):
    assert kind(*values) == expected


@pytest.mark.parametrize("text", ["3/4/2024", "03.04.24", "31-12-2024", "31/12/2024 10:00"])
def test_dates_of_two_readings_are_not_guessed(text):
    with pytest.raises(DataError, match="may be read in two ways"):
        kind(text, text)


@pytest.mark.parametrize("text", ["31.12.2024", "2024/12/31", "2024.12.31"])
def test_dates_of_one_reading_are_read(text):
    assert kind(text, "na") == "date"
    assert date_of(text) == date_of("2024-12-31")
    assert date_of(f"{text} 06:00") == date_of("2024-12-31") + 0.25
    for wrong in ("31.02.2024", "2024/13/01", "2024/12.31", "1.2.24"):
        with pytest.raises(ValueError):
            date_of(wrong)


@pytest.mark.parametrize("text", ["12%", "12.5 %", "€ 1.234,50", "98,766.80 €", "$5", "-3 %", "£1 000"])
def test_numbers_with_a_sign_are_no_categories(text):
    with pytest.raises(DataError, match=r"holds numbers with a sign, such as .*; write the numbers alone"):
        kind(text, "7%", "red")


@pytest.mark.parametrize("text", ["36 months", "5th", "%", "$", "A4", "10-20 %"])
def test_texts_with_numbers_are_categories(text):
    assert kind(text, "other") == "category"


def test_dates_count_days_as_pandas_does():
    texts = [
        "1969-12-31",
        "1970-01-01",
        "2024-02-29T06:00",
        "2024-02-29 23:59:59.5",
        "2024-07-01T12:00:00+02:00",
    ]
    for text in texts:
        stamp = pd.Timestamp(text)
        stamp = stamp.tz_convert(None) if stamp.tzinfo else stamp
        days = (stamp - pd.Timestamp(0)) / pd.Timedelta(days=1)
        for value in (text, pd.Timestamp(text), pd.Timestamp(text).to_pydatetime()):
            assert date_of(value) == pytest.approx(days, abs=1e-9)
    assert (
        date_of(np.datetime64("2024-01-01")) == (datetime.date(2024, 1, 1) - datetime.date(1970, 1, 1)).days
    )
    for wrong in ("2024-02-30", "2024-1-1", "20240101", 3.0, "x"):
        with pytest.raises((TypeError, ValueError)):
            date_of(wrong)


def test_texts_and_numbers():
    assert [text_of(value) for value in (3, 3.0, np.float64(3), np.int64(3), "3", True)] == ["3"] * 5 + [
        "True"
    ]
    assert number_in(10**400) == math.inf
    assert number_in(-(10**400)) == -math.inf
    with pytest.raises(ValueError, match="1_0"):
        number_in("1_0")
    with pytest.raises(ValueError, match="2"):
        truth_of(2)


def test_a_cell_that_is_a_list_is_named():
    with pytest.raises(TypeError, match=r"row 1 is \[1\]: argument must be a string or a number, not 'list'"):
        unique_cells(np.array(["a", [1], "b"], dtype=object))

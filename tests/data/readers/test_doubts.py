"""Columns that may mean something else get a note; columns that cannot get none."""

import numpy as np
import pandas as pd
import pytest

from gaussianmlr.data import read_table

ROWS = 40


def notes_of(path, header, cell, **options):
    lines = [header] + [
        f"{cell(row)},{row / 7:.2f},{'sky > sea' if row % 2 else 'sea'}" for row in range(ROWS)
    ]
    path.write_text("\n".join(lines) + "\n")
    return " | ".join(read_table(path, **options).notes)


@pytest.mark.parametrize(
    ("header", "cell", "expected"),
    [
        ("zip,b,ranking", lambda row: ["00501", "90210"][row % 2], "leading zeros, such as '00501'"),
        (
            "a,b,ranking",
            lambda row: ["950", "1.234"][row % 2],
            "'1.234' is read as 1.234, though numbers such as '950'",
        ),
        (
            "customer_id,b,ranking",
            lambda row: 100 + 17 * row,
            "'customer_id' has another number in every row",
        ),
        ("customerId,b,ranking", lambda row: 100 + 17 * row, "'customerId' has another number in every row"),
        (
            "Sky,b,ranking",
            lambda row: row % 5,
            "column 'Sky' is used as a feature, though a label is called so",
        ),
    ],
)
def test_what_may_mean_something_else_is_noted(tmp_path, header, cell, expected):
    assert expected in notes_of(tmp_path / "a.csv", header, cell)


@pytest.mark.parametrize(
    ("header", "cell"),
    [
        ("a,b,ranking", lambda row: ["0", "0.5", "10"][row % 3]),
        ("a,b,ranking", lambda row: ["1.234", "5.678"][row % 2]),
        ("a,b,ranking", lambda row: ["1.234", "5.6", "7"][row % 3]),
        ("a,b,ranking", lambda row: 100 + 17 * row),
        ("grid,b,ranking", lambda row: 100 + 17 * row),
        ("group_id,b,ranking", lambda row: row % 4),
        ("id,b,ranking", lambda row: f"{row:03d}"),
        ("day,b,ranking", lambda row: f"2024-01-{1 + row % 28:02d}"),
    ],
)
def test_plain_columns_have_no_note(tmp_path, header, cell):
    assert notes_of(tmp_path / "a.csv", header, cell) == ""


def test_what_was_said_is_not_questioned(tmp_path):
    zips = lambda row: ["00501", "90210"][row % 2]  # noqa: E731
    assert notes_of(tmp_path / "a.csv", "zip,b,ranking", zips, kinds={"zip": "category"}) == ""
    ids = lambda row: 100 + 17 * row  # noqa: E731
    assert notes_of(tmp_path / "b.csv", "user_id,b,ranking", ids, features=["user_id", "b"]) == ""


def test_texts_of_a_frame_are_looked_at():
    frame = pd.DataFrame(
        {"zip": ["02139", "90210"] * 5, "b": np.arange(10) / 3, "ranking": ["sky", "sea > sky"] * 5}
    )
    assert any("such as '02139'" in note for note in read_table(frame).notes)

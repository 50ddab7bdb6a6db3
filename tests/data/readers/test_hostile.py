"""Files as other programs write them: each is read with its values, or refused with its problem."""

import csv
import io
import subprocess
import sys
import time
import zipfile

import numpy as np
import openpyxl
import pandas as pd
import polars as pl
import pytest
from PIL import Image

from gaussianmlr import DataError, to_ranks
from gaussianmlr.data import check, read_table
from gaussianmlr.data.open import find_data
from gaussianmlr.data.readers.layout import Layout
from support.memory import peak_of

ORDERS = ["sky > sea", "sea", "sky = sun", ""]
HEIGHTS, SLOPES = [1.5, 2.5, 0.25, 1234.5], [3, 1, 4, 1]


def frame() -> pd.DataFrame:
    return pd.DataFrame({"height": HEIGHTS, "slope": SLOPES, "ranking": ORDERS})


def assert_read(data, notes=(), heights=HEIGHTS):
    """The values of `frame`, and notes that hold these texts and no others."""
    assert data.feature_names == ("height", "slope")
    np.testing.assert_array_equal(data.features, np.column_stack([heights, SLOPES]))
    assert data.labels == ("sea", "sky", "sun")
    assert data.ranks.tolist() == [[1, 2, 0], [1, 0, 0], [0, 1, 1], [0, 0, 0]]
    found = [note for note in data.notes if "1 of 4 cells" not in note]
    assert len(found) == len(data.notes) - 1
    assert any(note.endswith("are empty: no label applies there") for note in data.notes)
    assert len(found) == len(notes), found
    for note, text in zip(found, notes):
        assert text in note


def write(path, text, encoding="utf-8"):
    path.write_bytes(text.encode(encoding))
    return path


def csv_text(**settings) -> str:
    return frame().to_csv(index=False, **settings)


TEXTS = {
    "comma": (csv_text(), "utf-8", "t.csv", []),
    "bom": (csv_text(), "utf-8-sig", "t.csv", []),
    "crlf": (csv_text(lineterminator="\r\n"), "utf-8", "t.csv", []),
    "old Macintosh": (csv_text(lineterminator="\r"), "utf-8", "t.csv", []),
    "all quoted": (csv_text(quoting=csv.QUOTE_ALL), "utf-8", "t.csv", []),
    "semicolon": (csv_text(sep=";"), "utf-8", "t.csv", ["separated by ';'"]),
    "semicolon and decimal comma": (
        csv_text(sep=";", decimal=","),
        "utf-8",
        "t.csv",
        ["separated by ';'", "decimal commas, such as '1,5', are read in column 'height'"],
    ),
    "quoted decimal commas": (csv_text(decimal=","), "utf-8", "t.csv", ["decimal commas, such as '1,5'"]),
    "pipe": (csv_text(sep="|"), "utf-8", "t.csv", ["separated by '|'"]),
    "tabs in a .csv": (csv_text(sep="\t"), "utf-8", "t.csv", ["separated by tabs"]),
    "tsv": (csv_text(sep="\t"), "utf-8", "t.tsv", []),
    "commas in a .tsv": (csv_text(), "utf-8", "t.tsv", ["separated by ','"]),
    "Excel's Unicode text": (csv_text(sep="\t"), "utf-16", "t.txt", ["read as UTF-16"]),
    "UTF-16 big endian": ("\ufeff" + csv_text(sep=";"), "utf-16-be", "t.csv", ["UTF-16", "';'"]),
    "Excel's first line": ("sep=;\n" + csv_text(sep=";"), "utf-8", "t.csv", ["separated by ';'"]),
    "pandas' index": (frame().to_csv(), "utf-8", "t.csv", ["the first column has no name and is left out"]),
    "an index of texts": (
        frame().set_axis(list("wxyz")).to_csv(),
        "utf-8",
        "t.csv",
        ["the first column has no name and is left out"],
    ),
    "saved twice": (
        pd.read_csv(io.StringIO(frame().to_csv())).to_csv(),
        "utf-8",
        "t.csv",
        ["the first column has no name", "the first column has no name"],
    ),
    "a named index": (
        frame().to_csv(index_label="index"),
        "utf-8",
        "t.csv",
        ["'index' only numbers the rows"],
    ),
    "empty columns at the end": (
        "\n".join(line + ";;" for line in csv_text(sep=";").splitlines()) + "\n",
        "utf-8",
        "t.csv",
        ["separated by ';'", "column 4 has no name and no values", "column 5 has no name"],
    ),
    "other case and spaces": (
        csv_text().replace("ranking", " Ranking "),
        "utf-8",
        "t.csv",
        ["as the ranking"],
    ),
}


@pytest.mark.parametrize("name", TEXTS)
def test_texts_are_read(tmp_path, name):
    text, encoding, file, notes = TEXTS[name]
    assert_read(read_table(write(tmp_path / file, text, encoding)), notes)


def save_excel(path, rows, **others):
    book = openpyxl.Workbook()
    book.active.title = "data"
    for row in rows:
        book.active.append(row)
    for title, cells in others.items():
        sheet = book.create_sheet(title)
        for row in cells:
            sheet.append(row)
    book.save(path)
    return path


def rows_of(table: pd.DataFrame) -> list[list[object]]:
    return [list(table.columns), *(list(row) for row in table.itertuples(index=False))]


def test_excel(tmp_path):
    assert_read(read_table(save_excel(tmp_path / "a.xlsx", rows_of(frame()))))
    frame().to_excel(tmp_path / "b.xlsx", index=True)  # pandas writes the index and leaves its name out
    assert_read(read_table(tmp_path / "b.xlsx"), ["the first column has no name"])
    blank = [[None], *rows_of(frame())[:3], [None, None], *rows_of(frame())[3:]]
    assert_read(read_table(save_excel(tmp_path / "c.xlsx", blank)))
    two = save_excel(tmp_path / "d.xlsx", [["nothing", "here"], [1, 2]], Second=rows_of(frame()))
    for sheet in ("Second", "second", "2"):
        assert_read(read_table(two, sheet=sheet))
    one = save_excel(tmp_path / "e.xlsx", rows_of(frame()), Other=[["x"], [1]])
    assert_read(
        read_table(one), ["read the sheet 'data', the first of ['data', 'Other']; --sheet takes another"]
    )
    with pytest.raises(DataError, match=r"no sheet 'Third'; it has \['data', 'Second'\]"):
        read_table(two, sheet="Third")


def test_formulas_are_values_or_refused(tmp_path):
    book = rows_of(frame())
    book[2][0] = "=1+1.5"  # openpyxl does not compute
    with pytest.raises(DataError, match=r"cell A3 holds the formula '=1\+1.5' without a value"):
        read_table(save_excel(tmp_path / "a.xlsx", book))
    book[2][0] = "#DIV/0!"
    with pytest.raises(DataError, match=r"cell A3 holds #DIV/0!, the error of a formula"):
        read_table(save_excel(tmp_path / "b.xlsx", book))


def test_frames_of_polars_and_other_formats(tmp_path):
    table = pl.DataFrame({"height": HEIGHTS, "slope": SLOPES, "ranking": [*ORDERS[:3], None]})
    assert_read(read_table(table))
    table.write_parquet(tmp_path / "t.parquet")
    table.write_ndjson(tmp_path / "t.jsonl")
    table.write_csv(tmp_path / "t.csv", separator=";")
    assert_read(read_table(tmp_path / "t.parquet"))
    assert_read(read_table(tmp_path / "t.jsonl"))
    assert_read(read_table(tmp_path / "t.csv"), ["separated by ';'"])
    missing = frame().assign(ranking=[*ORDERS[:3], np.nan])
    assert_read(read_table(missing))  # what pandas makes of an empty cell


def test_latin_1(tmp_path):
    text = frame().rename(columns={"height": "höhe"}).to_csv(index=False)
    path = write(tmp_path / "t.csv", text, "latin-1")
    with pytest.raises(
        DataError, match=r"line 1, b'h\\xf6he.*it looks like Latin-1 \(cp1252\): pass --encoding lat"
    ):
        read_table(path)
    assert read_table(path, encoding="latin-1").feature_names == ("höhe", "slope")
    euro = write(tmp_path / "e.csv", "price in €,ranking\n1,a > b\n2,b\n", "cp1252")
    with pytest.raises(DataError, match=r"pass --encoding cp1252"):
        read_table(euro)
    assert read_table(euro, encoding="cp1252").feature_names == ("price in €",)


REFUSED = {
    "thousands": (
        "x;ranking\n1,234.5;a\n2;b\n",
        "column 'x': '1,234.5' has a separator of thousands; write 1234.5",
    ),
    "German thousands": (
        "x;ranking\n1.234,5;a\n2;b\n",
        "'1.234,5' has a separator of thousands; write 1234,5",
    ),
    "spaces": ("x;ranking\n1 234;a\n2;b\n", "'1 234' has a separator of thousands; write 1234"),
    "either": ("x;ranking\n1,234;a\n2,500;b\n", "'1,234' may be 1.234 or 1234; say --decimal"),
    "thousands beside points": (
        "x;y;ranking\n1,234;1.5;a\n2,500;2.5;b\n",
        "'1,234' has a separator of thousands",
    ),
    "points beside commas": (
        "x;y;ranking\n1.234;1,5;a\n2.500;2,5;b\n",
        "'1.234' may be 1.234 or 1234, as other",
    ),
    "two signs": ("x;ranking\n1,5;a\n2.5;b\n", "'1,5' has a decimal comma and '2.5' a decimal point"),
    "two separators": (
        "a, b;ranking\n1,5;x\n2,5;y\n",
        "may be separated by ',' or ';'; say which with --sep",
    ),
    "no name": ("x,,ranking\n1,7,a\n2,8,b\n", "column 2 has no name, but holds 7"),
    "UTF-16 without a mark": ("x,ranking\n1,a\n".encode("utf-16-le"), "pass --encoding utf-16-le"),
    "a ZIP file": (b"PK\x03\x04 and so on", "is a ZIP file, as Excel writes; is it an .xlsx file?"),
    "an old Excel file": (b"\xd0\xcf\x11\xe0 and so on", "an old Excel file (.xls) or one with a password"),
    "commas": (
        'x,ranking\n1,"sky, sea, sun"\n2,"sea, sky"\n3,sun\n',
        "write 'sky > sea > sun' ('=' for ties), or give ",
    ),
    "semicolons": ("x,ranking\n1,sky;sea\n2,sea;sun;sky\n3,sun;sky\n", "(--order-separator ';')"),
    "mixed": ('x,ranking\n1,sky > sea\n2,"sky, sea"\n3,"sea, sky"\n', "2 of 3 orders hold ','"),
    "printed lists": ("x,ranking\n1,\"['sky', 'sea']\"\n2,\"['sea']\"\n", "is a list written as a text"),
    "a gap": ("x,label:a,label:b\n1,1,\n2,,1\n3,,2\n", "column 'label:a': nothing in rows 1, 2; write 0"),
    "a misspelt column": ("x,rankings\n1,a\n", "is it the column 'rankings'? Say --ranking 'rankings'"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_problems_are_named(tmp_path, name):
    content, message = REFUSED[name]
    path = tmp_path / "t.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(DataError) as caught:
        read_table(path)
    assert message in str(caught.value)
    assert message in checked(path)


def checked(path) -> str:
    """The problems that a check lists, or why it cannot read the file."""
    try:
        return "\n".join(map(str, check(path).errors))
    except DataError as error:
        return str(error)


def test_what_is_said_settles_it(tmp_path):
    either = write(tmp_path / "e.csv", "x;ranking\n1,234;a\n2,500;b\n")
    assert read_table(either, decimal=",").features[:, 0].tolist() == [1.234, 2.5]
    beside = write(tmp_path / "b.csv", "x;y;ranking\n7;1,5;a\n2;2,5;b\n")
    with pytest.raises(DataError, match=r"column 'y': '1,5' has a comma; write it with a decimal point"):
        read_table(beside, decimal=".")
    two = write(tmp_path / "t.csv", "a, b;ranking\n1,5;x\n2,5;y\n")
    assert read_table(two, sep=";").feature_names == ("a, b",)
    assert read_table(two, sep=";").features[:, 0].tolist() == [1.5, 2.5]
    points = write(tmp_path / "p.csv", "x;ranking\n1.234;a\n2.5;b\n")
    with pytest.raises(DataError, match="has a point; write it with a decimal comma"):
        read_table(points, decimal=",")


def test_categories_with_commas_stay_texts(tmp_path):
    """Only columns of numbers have decimal commas."""
    path = write(tmp_path / "t.csv", "kind;x;ranking\nsize 1,5;2,5;a\nlarge;1;b\n")
    seen = read_table(path, features=["x"])
    assert seen.features[:, 0].tolist() == [2.5, 1.0]
    assert any("in column 'x'" in note for note in seen.notes)


def test_order_separators(tmp_path):
    path = write(tmp_path / "t.csv", 'x,ranking\n1,"sky, sea, sun"\n2,"sea, sky,"\n3,sun = sky\n4,\n')
    data = read_table(path, order_separator=",")
    assert data.labels == ("sea", "sky", "sun")
    assert data.ranks.tolist() == [[2, 3, 1], [2, 1, 0], [0, 1, 1], [0, 0, 0]]
    assert to_ranks(["a;b", '"c;d";a'], order_separator=";").ranks.tolist() == [[2, 1, 0], [1, 0, 2]]
    assert to_ranks(["a b  c", "c"], order_separator=" ").ranks.tolist() == [[3, 2, 1], [0, 0, 1]]
    assert to_ranks(["a -> b"], order_separator="->").ranks.tolist() == [[2, 1]]
    with pytest.raises(DataError, match="order_separator is '='"):
        to_ranks(["a"], order_separator="=")


@pytest.mark.parametrize(
    "orders",
    [
        ["red, dark > blue", "blue > red, dark", "blue"],  # used with our signs
        ["red, dark", "red, dark", "blue"],  # one label, always the same
        ['"red, dark"', '"red, light"', '"blue, dark"'],  # in quotes
        ["Paris, France > Rome, Italy", "Rome, Italy", "Oslo, Norway > Paris, France"],
        ["km/h", "m/s > km/h", "m/s"],
    ],
)
def test_labels_that_hold_separators_stay(orders):
    assert any("," in label or "/" in label for label in to_ranks(orders).labels)


def test_listed_labels_may_hold_commas():
    labels = ["red, dark", "red, light", "blue, dark"]
    assert to_ranks(labels, labels).ranks.tolist() == np.eye(3, dtype=int).tolist()
    with pytest.raises(DataError, match="would be one label each"):
        to_ranks(labels)


PLACES = pd.DataFrame({"x": [5, 6, 7], "label:a": [1, 2, 3], "label:b": [2, 3, 1], "label:c": [3, 1, 2]})


def test_positions_are_questioned_and_read(tmp_path):
    PLACES.to_csv(tmp_path / "t.csv", index=False)
    report = check(tmp_path / "t.csv")
    assert any("If 1 is the best, say positions=True (--positions)" in str(one) for one in report.warnings)
    assert read_table(PLACES).ranks[0].tolist() == [1, 2, 3]
    read = read_table(PLACES, positions=True)
    assert read.ranks.tolist() == [[3, 2, 1], [2, 1, 3], [1, 3, 2]]
    assert not any("positions" in note for note in read.notes)
    gaps = PLACES.assign(**{"label:c": [3, np.nan, 0]}).replace({"label:a": {3: 2}})
    assert read_table(gaps, positions=True).ranks.tolist() == [[3, 2, 1], [2, 1, 0], [1, 2, 0]]
    assert read_table(gaps, positions=True, missing="unknown").ranks[1].tolist() == [2, 1, -1]
    tied = PLACES.assign(**{"label:a": [1, 1, 1]})
    assert not any("positions" in note for note in read_table(tied).notes)


def test_an_index_is_left_out_with_judgement():
    numbers = pd.DataFrame({"t": range(12), "x": np.arange(12) % 5, "ranking": ["a", "b"] * 6})
    assert read_table(numbers).feature_names == ("x",)
    assert read_table(numbers, features=["t", "x"]).feature_names == ("t", "x")
    assert read_table(numbers.drop(columns="x")).feature_names == ("t",)  # nothing else to learn from
    assert read_table(numbers.head(5)).feature_names == ("t", "x")  # may be chance
    assert read_table(numbers[["x", "t", "ranking"]]).feature_names == ("x", "t")


def test_names_of_columns():
    people = pd.DataFrame({"Age": [31, 64], "Weight": [70.0, 80.0], "Order ": ["a", "b"], "note": ["x", "y"]})
    data = read_table(people, ranking="order", drop=["NOTE"])
    assert data.feature_names == ("Age",)
    assert data.weights.tolist() == [70.0, 80.0]
    assert "column 'Weight' is read as the weight" in data.notes[0]
    assert read_table(people, ranking="order", features=["age", "Weight"]).feature_names == ("Age", "Weight")
    with pytest.raises(DataError, match=r"no column 'ordr' \(ranking\); did you mean 'Order '"):
        read_table(people, ranking="ordr")
    with pytest.raises(DataError, match=r"no feature columns \['agee'\]; did you mean 'Age'"):
        read_table(people, ranking="order", features=["agee"])
    with pytest.raises(DataError, match=r"no column 'nte' to drop; did you mean 'note'"):
        read_table(people, ranking="order", drop=["nte"])
    both = people.assign(age=[1, 2])
    with pytest.raises(DataError, match=r"'AGE' may be any of the columns \['Age', 'age'\]"):
        read_table(both, ranking="order", features=["AGE"])


def test_many_equal_problems_are_one_line(tmp_path):
    table = pd.DataFrame({"x": range(1, 201), "ranking": ["a > b", "a >"] * 100})
    table.to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises(DataError) as caught:
        read_table(tmp_path / "t.csv")
    assert str(caught.value).splitlines() == [
        "100 problems in t.csv:",
        "  rows 1, 3, 5 and 97 more: 'a >': empty bucket at the end; a label must stand there",
    ]
    report = check(tmp_path / "t.csv")
    assert len(report.errors) == 100  # for programs
    assert repr(report).count("empty bucket") == 1


def test_folders_with_one_table(tmp_path):
    frame().to_csv(tmp_path / "hikes 2024.csv", index=False)
    (tmp_path / "README.txt").write_text("notes")
    data = find_data(tmp_path)
    assert_read(data, ["read hikes 2024.csv"])
    frame().to_csv(tmp_path / "other.tsv", sep="\t", index=False)
    with pytest.raises(DataError, match=r"holds hikes 2024.csv, other.tsv; name the one to read"):
        find_data(tmp_path)


@pytest.mark.parametrize("column", ["image", "Path", "file", "filename"])
def test_manifests_of_any_name(tmp_path, column):
    for name in "ab":
        Image.new("RGB", (8, 8), "blue").save(tmp_path / f"{name}.png")
    pd.DataFrame({column: ["a.png", "b.png"], "ranking": ["sky", "sea"]}).to_csv(
        tmp_path / "x.csv", index=False
    )
    data = find_data(tmp_path)
    assert [file.name for file in data.images] == ["a.png", "b.png"]
    assert check(tmp_path).kind == "images"


def test_a_column_of_paths_to_other_files_is_no_picture(tmp_path):
    table = pd.DataFrame({"file": ["a.wav", "b.wav"], "x": [1, 2], "ranking": ["sky", "sea"]})
    table.to_csv(tmp_path / "t.csv", index=False)
    assert find_data(tmp_path / "t.csv", layout=Layout(drop=("file",))).feature_names == ("x",)


@pytest.mark.slow
def test_a_bomb_is_refused(tmp_path):
    import zipfile

    with (
        zipfile.ZipFile(tmp_path / "b.xlsx", "w", zipfile.ZIP_DEFLATED) as packed,
        packed.open("xl/worksheets/sheet1.xml", "w") as part,
    ):
        for _ in range(1100):
            part.write(b" " * (1 << 20))
    with pytest.raises(DataError, match="unpacks to"):
        read_table(tmp_path / "b.xlsx")
    far = save_excel(tmp_path / "far.xlsx", rows_of(frame()))
    book = openpyxl.load_workbook(far)
    book.active.cell(row=1_048_576, column=16_384, value="here")
    book.save(far)
    with pytest.raises(DataError, match="behind the last column of the header"):
        read_table(far)


@pytest.mark.slow
def test_the_command(tmp_path):
    path = write(tmp_path / "t.csv", "Height;Ziel\n1,5;sky, sea\n2,5;sea, sky\n3,5;sky\n")
    arguments = ["data", "check", str(path), "--ranking", "ziel", "--order-separator", ","]
    found = subprocess.run(
        [sys.executable, "-m", "gaussianmlr", *arguments], capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stderr + found.stdout
    assert "note: columns are separated by ';' (--sep)" in found.stdout
    assert "note: decimal commas, such as '1,5', are read in column 'Height' (--decimal)" in found.stdout
    refused = subprocess.run(
        [sys.executable, "-m", "gaussianmlr", *arguments[:-2]], capture_output=True, text=True, check=False
    )
    assert refused.returncode == 1
    assert "2 of 3 orders hold ','" in refused.stdout


_NAMESPACE = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
_STRINGS = "application/vnd.openxmlformats-officedocument.spreadsheetml.sharedStrings+xml"
_MANY = 600_000


def _strings(content, before=""):
    """Shared strings of other content; they are read before any cell."""
    return {"xl/sharedStrings.xml": f"{before}<sst {_NAMESPACE}>{content}</sst>"}


def _rows(content):
    text = f"<worksheet {_NAMESPACE}><sheetData>{content}</sheetData></worksheet>"
    return {"xl/worksheets/sheet1.xml": text}


def _head(names):
    cells = [f'<c t="str"><v>{name}</v></c>' for name in names]
    return f"<row>{''.join(cells)}</row>"


_TENFOLD = [(level, f"&a{level - 1};" * 10) for level in range(1, 10)]
_ENTITIES = '<!ENTITY a0 "a">' + "".join(f"<!ENTITY a{level} '{text}'>" for level, text in _TENFOLD)
_FAR = "lies beyond 1,048,576 rows, 16,384 columns, or as many cells"
BOMBS = {
    "empty strings": (lambda: _strings("<si/>" * _MANY), "many more or longer tags"),
    "attributes": (
        lambda: _rows("<row " + " ".join(f'a{place}=""' for place in range(_MANY)) + "/>"),
        "many more or longer tags",
    ),
    "empty cells": (lambda: _rows(f"<row>{'<c/>' * _MANY}</row>"), "many more or longer tags"),
    "a far row": (lambda: _rows('<row r="99999999999"><c r="A9"><v>1</v></c></row>'), f"row 1048577 {_FAR}"),
    "a far column": (lambda: _rows('<row><c r="ZZZ9"/></row>' * 9_999), f"row 1 {_FAR}"),
    "a wide header": (lambda: _rows(_head(range(9_999)) + "<row><c><v>1</v></c></row>" * 999), _FAR),
    "entities in entities": (
        lambda: _strings("<si><t>&a9;</t></si>", f"<!DOCTYPE sst [{_ENTITIES}]>"),
        "cannot be read as Excel",
    ),
    "an external entity": (
        lambda: _strings("<si><t>&a;</t></si>", '<!DOCTYPE sst [<!ENTITY a SYSTEM "file:///etc/passwd">]>'),
        "cannot be read as Excel",
    ),
    "a sheet that is many": (
        lambda: _rows("<row/>" * 30_000) | {"xl/workbook.xml": _sheets(999)},
        "many more or longer tags",
    ),
}


def _sheets(number):
    relation = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    each = "".join(f'<sheet name="s{one}" sheetId="{one}" r:id="rId1"/>' for one in range(1, number))
    return f'<workbook {_NAMESPACE} xmlns:r="{relation}"><sheets>{each}</sheets></workbook>'


@pytest.mark.slow
@pytest.mark.parametrize("name", BOMBS)
def test_excel_files_cost_what_they_hold(tmp_path, name):
    """Files of some kilobytes that would take minutes, or gigabytes, to read as they say."""
    make, message = BOMBS[name]
    whole, bomb, others = save_excel(tmp_path / "whole.xlsx", rows_of(frame())), tmp_path / "t.xlsx", make()
    assert_read(read_table(whole))
    with zipfile.ZipFile(whole) as source, zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as target:
        for part in {*source.namelist(), *others}:
            text = others[part] if part in others else source.read(part).decode()
            if part == "[Content_Types].xml" and "xl/sharedStrings.xml" in others:
                more = f'<Override PartName="/xl/sharedStrings.xml" ContentType="{_STRINGS}"/></Types>'
                text = text.replace("</Types>", more)
            target.writestr(part, text)

    def read():
        began = time.process_time()
        with pytest.raises(DataError, match=message) as caught:
            read_table(bomb)
        assert time.process_time() - began < 30
        assert "\n" not in str(caught.value)

    assert peak_of(read) < 400


def test_a_sparse_sheet_with_formulas_that_were_not_computed(tmp_path):
    """Empty cells are told from formulas without a value, also far down."""
    from openpyxl import Workbook

    book = Workbook()
    for row in [["a", "b", "ranking"], *([number, None, "sky > sea"] for number in range(200))]:
        book.active.append(row)
    book.active["B150"] = "=A150+1"
    book.save(tmp_path / "t.xlsx")
    with pytest.raises(DataError, match=r"cell B150 holds the formula '=A150\+1' without a value"):
        read_table(tmp_path / "t.xlsx")


def test_stars_are_questioned(tmp_path):
    path = tmp_path / "stars.csv"
    path.write_text("x,label:jazz,label:rock\n1,5,2\n2,1,4\n3,3,3\n")
    (note,) = read_table(path).notes
    assert "every label applies to every instance" in note
    assert "--threshold 2" in note
    assert not read_table(path, threshold=2).notes
    path.write_text("x,label:jazz,label:rock\n1,1,2\n2,2,1\n3,2,1\n")
    found = check(path)
    (question,) = (str(one) for one in found.warnings if "positions" in one.message)
    assert question not in found.notes  # said once
    assert "labels 'jazz', 'rock': applies to every instance" in str(found)


def test_a_first_row_much_longer_than_the_header_makes_no_columns(tmp_path):
    """300,000 columns took a minute and half a gigabyte before they were refused."""
    file = tmp_path / "t.csv"
    file.write_text("a;b;ranking\n" + ";" * 300_000 + "\n1;2;sky\n")

    def read():
        with pytest.raises(DataError, match=r"row 0 \(line 2\): 300001 cells; expected 3"):
            read_table(file)

    assert peak_of(read) < 100

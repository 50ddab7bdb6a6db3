"""Hostile and damaged files: one clear error each, and nothing is changed."""

import io
import json
import os
import shutil
import sqlite3
import time
import zipfile

import numpy as np
import pandas as pd
import pytest

from gaussianmlr.apps.annotate import (
    Found,
    Store,
    StoreError,
    export_answers,
    import_answers,
    read_items,
    read_labels,
)
from gaussianmlr.errors import DataError

LABELS = ("sea", "sky", "sun")


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "store", create=True) as made:
        made.bring(Found("text", "poems", {f"p{number}": f"poem {number}" for number in range(50)}), LABELS)
        made.answer(1, made.person("Ann").id, [["sky"], ["sea"]], token="1", note="hm")
        yield made


def task(**more):
    result = {"type": "ranker", "value": {"ranker": ["sky"]}}
    annotation = {"completed_by": "cy", "result": [result], **more}
    return {"data": {"text": "p1"}, "annotations": [annotation]}


def record(rank):
    value = [{"value": "sky", "rank": rank}, {"value": "sea", "rank": 2}]
    response = {"user_id": "cy", "status": "submitted", "values": {"order": {"value": value}}}
    return {"id": "p1", "fields": {"text": "x"}, "responses": [response]}


def note_of(text):
    odd = task()
    odd["annotations"][0]["result"].append({"type": "textarea", "value": {"text": [text]}})
    return odd


DEEP = "[" * 100_000 + "]" * 100_000


@pytest.mark.parametrize(
    ("form", "text", "what"),
    [
        ("label-studio", DEEP, "nested too deeply"),
        ("label-studio", "[" * 900 + "]" * 900, "expected a list of tasks|nested too deeply"),
        ("label-studio", '[{"a": ' + DEEP + "}]", "nested too deeply"),
        ("argilla", '{"items": ' + DEEP + "}", "nested too deeply"),
        ("label-studio", "[" + "9" * 5_000 + "]", "is not JSON"),
        ("label-studio", json.dumps([task(lead_time=10**400)]), "lead_time 1000.*expected seconds"),
        ("label-studio", json.dumps([task(lead_time=float("inf"))]), "lead_time inf"),
        ("label-studio", json.dumps([task(completed_by="half \ud800")]), "half of a character"),
        ("label-studio", json.dumps([task(completed_by="x" * 10**6)]), "expected a name"),
        ("label-studio", json.dumps([task(completed_by=[[[]]])]), "."),
        ("label-studio", json.dumps([note_of("half \udc00")]), "half of a character"),
        ("label-studio", json.dumps([note_of("a\0b")]), "NUL"),
        ("label-studio", json.dumps([note_of("x" * 10**6)]), "1,000,000 characters; expected at most"),
        ("label-studio", json.dumps([{**task(), "data": {"text": "a/" * 300_000}}]), "no item is called"),
        (
            "label-studio",
            json.dumps([{**task(), "data": {"text": "//[" + "?" * 10**5}}]),
            "no item is called",
        ),
        ("argilla", json.dumps([record(10**400)]), "rank 1000.*expected a number"),
        ("argilla", json.dumps([record(float("nan"))]), "rank nan"),
        ("argilla", json.dumps([record([1])]), r"rank \[1\]"),
        ("argilla", "\x00", "is not JSON"),
    ],
)
def test_hostile_exports_of_others_are_one_error(store, tmp_path, form, text, what):
    before, people = store.answers(), store.people()
    (tmp_path / "bad.json").write_text(text)
    began = time.monotonic()
    if what == ".":  # odd, but a name all the same
        import_answers(store, tmp_path / "bad.json", form)
        return
    with pytest.raises(DataError, match=what) as error:
        import_answers(store, tmp_path / "bad.json", form)
    assert len(str(error.value)) < 2_000
    assert time.monotonic() - began < 5
    assert (store.answers(), store.people()) == (before, people)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes of that kind")
@pytest.mark.parametrize("form", ["manifest", "label-studio", "argilla"])
def test_pipes_and_folders_are_not_waited_for(store, tmp_path, form):
    os.mkfifo(tmp_path / "pipe.csv")
    for path in (
        tmp_path / "pipe.csv",
        tmp_path,
        tmp_path / "nowhere.csv",
        "/dev/zero",
        tmp_path / ("x" * 300),
    ):
        with pytest.raises(DataError):
            import_answers(store, path, form)
    with pytest.raises(DataError, match="not a regular file"):
        read_labels(tmp_path / "pipe.csv")


def test_a_file_beyond_all_measure_is_not_read(store, tmp_path):
    for name in ("huge.json", "labels.txt"):
        with (tmp_path / name).open("wb") as file:
            file.truncate(1 << 40)  # a terabyte that takes no space
    with pytest.raises(DataError, match=r"1,099,511,627,776 bytes; expected at most 268,435,456"):
        import_answers(store, tmp_path / "huge.json", "label-studio")
    with pytest.raises(DataError, match="1,099,511,627,776 bytes"):
        read_labels(tmp_path / "labels.txt")


@pytest.mark.parametrize(
    ("row", "what"),
    [
        ({"seconds": 10**400}, "in column 'seconds'; expected a number"),
        ({"seconds": "1e999"}, "inf seconds"),
        ({"seconds": [1]}, "in column 'seconds'; expected a number"),
        ({"seconds": -1}, "-1.0 seconds"),
        ({"note": "\ud800"}, "half of a character"),
        ({"note": "x" * 5_000}, "5,000 characters"),
        ({"ranker": "a\x07"}, "expected a name"),
        ({"ranker": ["Ann", "Bob"] * 100}, "expected a name"),
        ({"id": {"deep": [1]}}, "no item is called"),
        ({"ranking": "sky > " * 1_000}, "row 0"),
        ({"ranking": "sky ? sea"}, "are unknown"),
    ],
)
def test_hostile_manifests_are_one_error(store, tmp_path, row, what):
    before = store.answers()
    (tmp_path / "bad.jsonl").write_text(json.dumps({"id": "p1", "ranker": "cy", "ranking": "sky", **row}))
    with pytest.raises(DataError, match=what):
        import_answers(store, tmp_path / "bad.jsonl")
    assert store.answers() == before


def test_lists_in_cells_of_parquet_are_one_error_or_a_text(store, tmp_path):
    frame = pd.DataFrame({"id": ["p1"], "ranker": ["cy"], "ranking": ["sky"]})
    frame.assign(seconds=[np.array([1.0, 2.0])]).to_parquet(tmp_path / "bad.parquet")
    with pytest.raises(DataError, match="expected a number"):
        import_answers(store, tmp_path / "bad.parquet")
    frame.assign(note=[np.array([1.0, 2.0])]).to_parquet(tmp_path / "odd.parquet")
    assert import_answers(store, tmp_path / "odd.parquet") == (1, 0)


def test_what_people_write_comes_back_from_every_table(tmp_path):
    notes = [
        "a\rb",
        "a\r\nb",
        "\t",
        '"',
        "=1+1",
        ",;|",
        "\u2028",
        "x" * 4_000,
        "\ufeff",
        " lead",
        "é\u0301",
        "\x1a",
    ]
    for suffix in ("csv", "tsv", "jsonl", "parquet"):
        photos = tmp_path / suffix
        photos.mkdir()
        items = {f"{number}.png": str(photos / f"{number}.png") for number in range(len(notes))}
        with Store(photos / "one", create=True) as one, Store(photos / "two", create=True) as two:
            for store in (one, two):
                store.bring(Found("image", str(photos), items), LABELS)
            ann = one.person("=Ann()").id
            for item, note in enumerate(notes, 1):
                one.answer(item, ann, [["sea"]], token=str(item), note=note)
            export_answers(one, photos / f"out.{suffix}")
            assert import_answers(two, photos / f"out.{suffix}") == (len(notes), 0)
            assert [answer.note for answer in two.answers()] == notes


def test_cells_for_a_spreadsheet_are_no_formulas(store, tmp_path):
    import csv

    store.answer(2, store.person("=cmd|'/c calc'!A1").id, [["sea"]], token="2")
    store.answer(3, store.person("@SUM(1+1)").id, [["sea"]], token="3")
    export_answers(store, tmp_path / "safe.csv", escape_formulas=True)
    export_answers(store, tmp_path / "plain.csv")
    names = {}
    for name in ("safe", "plain"):
        with (tmp_path / f"{name}.csv").open(newline="") as file:
            names[name] = [row["ranker"] for row in csv.DictReader(file)]
    assert names["plain"] == ["Ann", "=cmd|'/c calc'!A1", "@SUM(1+1)"]
    assert names["safe"] == ["Ann", "'=cmd|'/c calc'!A1", "'@SUM(1+1)"]
    with pytest.raises(DataError, match=r"only in \.csv and \.tsv"):
        export_answers(store, tmp_path / "safe.parquet", escape_formulas=True)


def test_items_that_no_store_can_keep_are_named(tmp_path):
    with Store(tmp_path / "store", create=True) as store:
        for items in ({"half \ud800": "x"}, {"x": "half \ud800"}, {"x": {"a": "half \ud800"}}):
            with pytest.raises(DataError, match="half of a character"):
                store.bring(Found("text", "t", items), LABELS)
        with pytest.raises(DataError, match="half of a character"):
            store.bring(Found("text", "t", {"a": "b"}), ["\ud800"])
        assert (store.count(), store.labels) == (0, ())
        for number in (2**63, -(2**63) - 1, 10**30):
            with pytest.raises(DataError, match="64 bits"):
                store.item(number)


def test_infinite_cells_are_texts(tmp_path):
    (tmp_path / "rows.csv").write_text("id,a,b\nx,inf,1\ny,-inf,2\nz,,3\n")
    found = read_items(tmp_path / "rows.csv")
    assert [row["a"] for row in found.items.values()] == ["inf", "-inf", None]
    with Store(tmp_path / "store", create=True) as store:
        store.bring(Found("row", "t", {"old": {"a": float("inf")}}), LABELS)  # as written before
        json.dumps(store.items()[0].content, allow_nan=False)


@pytest.mark.skipif(os.name != "posix", reason="names are bytes there")
def test_a_name_that_is_no_text_is_named(tmp_path):
    folder = tmp_path / "photos"
    folder.mkdir()
    with open(os.fsencode(folder) + b"/caf\xe9.png", "wb") as file:  # noqa: PTH123 - a name of bytes
        file.write(b"x")
    with pytest.raises(DataError, match=r"caf\\udce9\.png' is not UTF-8; rename"):
        read_items(folder)


# Stores that are damaged, foreign or newer


def copy_of(store, folder):
    """A store of its own, whole and closed, and its file."""
    folder.mkdir()
    with sqlite3.connect(folder / "answers.sqlite") as target:
        source = sqlite3.connect(store.folder / "answers.sqlite")
        source.backup(target)
        source.close()
    target.close()
    return folder / "answers.sqlite"


def change(file, *statements):
    connection = sqlite3.connect(file, isolation_level=None)
    for statement in statements:
        connection.execute(statement)
    connection.close()


ENDLESS = (
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i AS name, i AS value FROM n"
)
TRIGGER = "CREATE TRIGGER t AFTER INSERT ON history BEGIN DELETE FROM history; END"


@pytest.mark.parametrize(
    ("statements", "what"),
    [
        (
            ["UPDATE about SET value = '2' WHERE name = 'version'"],
            r"has version '2', and .* reads 1; upgrade",
        ),
        (["UPDATE about SET value = 'x' WHERE name = 'format'"], "is no store of answers"),
        (["DROP TABLE about"], "is no store of answers"),
        (["DROP TABLE about", f"CREATE VIEW about AS {ENDLESS}"], "is no store of answers"),
        (["DROP VIEW answers"], r"damaged or changed in \['answers'\]"),
        (["DROP TABLE suggestions"], "damaged or changed"),
        (["ALTER TABLE people ADD COLUMN age"], "damaged or changed"),
        ([TRIGGER], r"damaged or changed in \['t'\]"),
    ],
)
def test_foreign_newer_and_changed_stores_are_refused_and_stay(store, tmp_path, statements, what):
    file = copy_of(store, tmp_path / "copy")
    change(file, *statements)
    before = file.read_bytes()
    for create in (True, False):
        with pytest.raises(DataError, match=what):
            Store(file.parent, create=create)
    assert file.read_bytes() == before
    assert [one.name for one in file.parent.iterdir()] == ["answers.sqlite"]


def test_the_database_of_another_program_stays_byte_for_byte(tmp_path):
    file = tmp_path / "other" / "answers.sqlite"
    file.parent.mkdir()
    change(file, "CREATE TABLE mine (x)", "INSERT INTO mine VALUES (7)")
    before = file.read_bytes()
    for create in (True, False):
        with pytest.raises(DataError, match="is no store of answers"):
            Store(file.parent, create=create)
    assert file.read_bytes() == before


@pytest.mark.parametrize("damage", ["cut", "zeroed", "noise", "text", "zip"])
def test_damaged_stores_are_refused_and_stay(store, tmp_path, damage):
    file = copy_of(store, tmp_path / "copy")
    whole = file.read_bytes()
    holds = io.BytesIO()
    with zipfile.ZipFile(holds, "w") as archive:
        archive.writestr("a", "b" * 1_000)
    broken = {
        "cut": whole[: len(whole) // 2],
        "zeroed": whole[:4096] + bytes(len(whole) - 4096),
        "noise": whole[:8192] + np.random.default_rng(0).bytes(len(whole) - 8192),
        "text": b"no database at all" * 500,
        "zip": holds.getvalue(),
    }[damage]
    file.write_bytes(broken)
    for create in (True, False):
        with pytest.raises(
            DataError, match=r"answers\.sqlite: (is damaged|cannot be used|is no store|damaged)"
        ):
            Store(file.parent, create=create)
    assert file.read_bytes() == broken


def test_rows_that_no_store_writes_are_named(store, tmp_path):
    file = copy_of(store, tmp_path / "copy")
    for content in (f"'{DEEP}'", "'{'", "7.5e300", "x'00ff'"):
        change(file, f"UPDATE items SET content = {content} WHERE id = 2")
        with Store(file.parent) as opened:
            if content == "7.5e300":  # a number is JSON too
                assert opened.item(2).content == 7.5e300
                continue
            with pytest.raises(StoreError, match="item 2 is damaged") as error:
                opened.item(2)
            assert error.value.cause == "damaged"
            assert opened.item(1).content == "poem 0"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes of that kind")
def test_a_store_that_is_no_file_is_refused(tmp_path):
    for name, make in (("pipe", os.mkfifo), ("folder", os.mkdir)):
        (tmp_path / name).mkdir()
        make(tmp_path / name / "answers.sqlite")
        with pytest.raises(DataError, match="is not a regular file"):
            Store(tmp_path / name, create=True)
    with pytest.raises(DataError, match="File name too long"):
        Store(tmp_path / ("x" * 300), create=True)


def test_a_store_that_has_no_room_refuses_and_recovers(store):
    ann = store.person("Ann").id
    pages = store._connections._writer.execute("PRAGMA page_count").fetchone()[0]
    store._connections._writer.execute(f"PRAGMA max_page_count = {pages}")
    kept = 0

    def answer():
        nonlocal kept
        while kept < 200:
            store.answer(2, ann, [["sea"]], token=f"t{kept}", note="x" * 4_000)
            kept += 1

    with pytest.raises(StoreError, match="the disk is full") as error:
        answer()
    assert error.value.cause == "full"
    assert len(store.history(2, ann)) == kept
    assert store.item(2).name == "p1"
    store._connections._writer.execute("PRAGMA max_page_count = 100000")
    store.answer(2, ann, [["sea"]], token="again", note="x" * 4_000)
    assert len(store.history(2, ann)) == kept + 1


def test_a_locked_store_is_read_and_says_when_it_cannot_be_written(store):
    with Store(store.folder, patience=0.2) as other:
        with store.together():
            store.person("Bob")
            assert [one.name for one in store.people()] == ["Ann", "Bob"]
            assert [one.name for one in other.people()] == ["Ann"]  # not committed yet
            with pytest.raises(StoreError, match="locked by another program") as error:
                other.person("Cy")
            assert error.value.cause == "locked"
            with Store(store.folder) as third:  # opening takes no lock either
                assert third.count() == 50
        assert [one.name for one in other.people()] == ["Ann", "Bob"]
        other.person("Cy")
    with pytest.raises(DataError, match="closed"):
        other.people()
    with pytest.raises(DataError, match="closed"):
        other.person("Di")


def test_an_import_leaves_room_for_others(store, tmp_path):
    """Its transaction is as short as its writing: ten thousand answers in seconds, not in a minute."""
    names = [f"i{number}" for number in range(10_000)]
    with Store(tmp_path / "large", create=True) as large:
        large.bring(Found("text", "t", dict.fromkeys(names, "x")), LABELS)
        rows = "".join(f"{name},Ann,sky > sea\n" for name in names)
        (tmp_path / "given.csv").write_text(f"id,ranker,ranking\n{rows}")
        queries = []
        large._connections._writer.set_trace_callback(queries.append)
        assert import_answers(large, tmp_path / "given.csv") == (10_000, 0)
        large._connections._writer.set_trace_callback(None)
        assert len(queries) < 7 * 10_000
        assert sum("sum(undone)" in query for query in queries) <= 1  # it reads all of history
    shutil.rmtree(tmp_path / "large")

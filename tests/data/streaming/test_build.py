"""Rows on disk: what is read is what a table in memory holds, and what is wrong is named by file and row."""

import gzip
import json
import shutil

import numpy as np
import pandas as pd
import pytest
import torch

from gaussianmlr import DataError
from gaussianmlr.data import check, read_table
from gaussianmlr.data.loading import fetch
from gaussianmlr.data.open import find_data, open_data
from gaussianmlr.data.readers.layout import Layout
from gaussianmlr.data.splits import split
from gaussianmlr.data.streamed import open_rows
from gaussianmlr.data.streaming import build as building
from gaussianmlr.data.streaming import learn, sets, store
from gaussianmlr.data.streaming import look as looking
from gaussianmlr.data.streaming.files import find_rows

pytest.importorskip("pyarrow")
ROWS = 1_000


@pytest.fixture(autouse=True)
def small_shards(monkeypatch):
    """Shards of 64 rows, read 300 rows at a time, of which few are kept."""
    monkeypatch.setattr(store, "SHARD", 1)
    monkeypatch.setattr(building, "_MOST", 300)
    monkeypatch.setattr(building, "_FEWEST", 300)
    monkeypatch.setattr(sets, "BUFFER_ROWS", 64 * 16)


def messy(count=ROWS, seed=0):
    """Numbers, gaps, booleans, dates, categories with rare ones, weights, and labels that come late."""
    rng = np.random.default_rng(seed)
    orders = ["sea > sky", "sky", "sun = sea > sky", "", "sky ? sun"]
    frame = pd.DataFrame(
        {
            "height": rng.normal(1e6, 3, count),
            "slope": np.where(rng.random(count) < 0.1, np.nan, rng.normal(size=count)),
            "dry": rng.choice(["yes", "no"], count),
            "day": (pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 700, count), "D")).astype(
                str
            ),
            "city": rng.choice(["Rome", "Oslo", None, "Bern"], count),
            "weight": rng.integers(1, 4, count),
            "ranking": rng.choice(orders, count),
        }
    )
    frame.loc[700:, "city"] = rng.choice(["Lima", "Oslo"], max(0, count - 700))
    frame.loc[5, "city"] = "Atlantis"  # one row alone
    frame.loc[900:, "ranking"] = "dune > sky"
    return frame


def opened(path, folder, **options):
    rows = find_rows(path, stream=True, **options)
    return open_rows(rows, looking.look(rows), folder / "rows")


def same_as_in_memory(streamed, whole):
    assert streamed.labels == whole.labels
    assert len(streamed.train) == len(whole.train)
    assert streamed.inputs.get("encoding") == whole.inputs.get("encoding")
    assert streamed.inputs["columns"] == whole.inputs["columns"]
    for name in ("mean", "std"):
        assert np.allclose(streamed.inputs["scaling"][name], whole.inputs["scaling"][name], rtol=1e-9)
    for part in ("train", "validation"):
        one, other = getattr(streamed, part), getattr(whole, part)
        every = list(range(len(other)))
        for found, expected in zip(fetch(one, every), fetch(other, every), strict=True):
            assert found.dtype == expected.dtype
            assert torch.allclose(found, expected, atol=1e-5, equal_nan=True)


def write_parts(frame, folder, cuts=(100, 110, 600)):
    folder.mkdir()
    for number, part in enumerate(np.split(np.arange(len(frame)), cuts)):
        frame.iloc[part].to_parquet(folder / f"part-{number}.parquet", index=False)
    return folder


def test_a_csv_file_is_read_as_it_is_in_memory(tmp_path):
    frame = messy()
    frame.to_csv(tmp_path / "table.csv", index=False)
    same_as_in_memory(opened(tmp_path / "table.csv", tmp_path), open_data(tmp_path / "table.csv"))


def test_a_folder_of_parquet_files_is_one_table(tmp_path):
    frame = messy()
    parts = write_parts(frame, tmp_path / "parts")
    whole = open_data(read_table(frame))
    streamed = opened(parts, tmp_path)
    same_as_in_memory(streamed, whole)
    assert streamed.train.store.shards == -(-ROWS // 64)
    same_as_in_memory(streamed, open_data(find_data(parts)))  # small enough to be read whole


def test_other_forms_of_text(tmp_path):
    frame = messy().drop(columns=["dry", "day"])
    whole = open_data(read_table(frame))
    with gzip.open(tmp_path / "packed.csv.gz", "wt") as file:
        frame.to_csv(file, index=False)
    frame.to_csv(tmp_path / "commas.csv", index=False, sep=";", decimal=",")
    records = [{k: None if v != v else v for k, v in one.items()} for one in frame.to_dict("records")]
    (tmp_path / "lines.jsonl").write_text("\n".join(map(json.dumps, records)) + "\n")
    for name in ("packed.csv.gz", "commas.csv", "lines.jsonl"):
        same_as_in_memory(opened(tmp_path / name, tmp_path / name.split(".")[0]), whole)


def test_splits_weights_and_ids_are_those_of_the_table(tmp_path):
    frame = messy()
    frame["id"] = [f"row {number}" for number in np.random.default_rng(3).permutation(ROWS)]
    parts = write_parts(frame, tmp_path / "ids")
    expected, _ = split(read_table(frame))
    streamed = opened(parts, tmp_path / "a")
    held = sets.held_part(streamed.train.store, "validation")
    assert held.ids == expected["validation"].ids
    assert held.ranks.tolist() == expected["validation"].ranks.tolist()

    frame["split"] = np.random.default_rng(1).choice(["train", "val", "test", "other"], ROWS)
    parts = write_parts(frame, tmp_path / "splits")
    streamed = opened(parts, tmp_path / "b")
    assert len(streamed.train) == (frame["split"] == "train").sum()
    assert len(streamed.validation) == (frame["split"] == "val").sum()
    assert any("'other'" in note for note in streamed.notes)
    weights = fetch(streamed.train, list(range(len(streamed.train))))[2]
    assert weights.tolist() == frame["weight"][frame["split"] == "train"].tolist()


def test_parts_in_memory_are_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(learn, "MOST_HELD", 50)
    frame = messy()
    parts = write_parts(frame, tmp_path / "parts")
    streamed = opened(parts, tmp_path / "a")
    assert (len(streamed.train), len(streamed.validation)) == (950, 50)
    order = [str(number) for number in range(ROWS)]
    expected = sorted(order, key=lambda name: learn.hashlib.sha256(f"{name}\x000".encode()).digest())[:50]
    held = np.flatnonzero(np.concatenate([streamed.train.store.parts_of(s) for s in range(16)]) == 1)
    assert held.tolist() == sorted(map(int, expected))

    frame["split"] = ["validation", "train"] * (ROWS // 2)
    streamed = opened(write_parts(frame, tmp_path / "splits"), tmp_path / "b")
    assert (len(streamed.train), len(streamed.validation)) == (500, 50)
    assert "50 of 500 validation instances are used" in streamed.notes


def test_rows_are_read_again_only_if_files_or_options_changed(tmp_path):
    parts = write_parts(messy(), tmp_path / "parts")
    first = opened(parts, tmp_path)
    born = (tmp_path / "rows" / "rows.bin").stat().st_ino
    again = opened(parts, tmp_path)
    assert (tmp_path / "rows" / "rows.bin").stat().st_ino == born
    assert again.fingerprint == first.fingerprint
    assert opened(parts, tmp_path, layout=Layout(drop=("slope",))).fingerprint != first.fingerprint
    messy(seed=1).iloc[:100].to_parquet(parts / "part-0.parquet", index=False)
    assert opened(parts, tmp_path).fingerprint != first.fingerprint
    assert not [one for one in tmp_path.iterdir() if one.name.endswith((".part", ".old"))]


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("ranking", "sky >", "row 153"),
        ("height", np.inf, "inf in column 'height'; expected a finite number"),
        ("weight", -1, "weight -1.0; expected a number >= 0"),
        ("dry", "perhaps", "'perhaps' in column 'dry'; expected true or false"),
        ("day", "2024-31-31", "'2024-31-31' in column 'day'; expected a date"),
    ],
)
def test_a_bad_row_is_named_with_its_file(column, value, message, tmp_path, monkeypatch):
    monkeypatch.setattr(looking, "_OF_OTHERS", 100)
    frame = messy()
    frame.loc[600 + 153, column] = value  # beyond what is looked at
    parts = write_parts(frame, tmp_path / "parts", (450, 600))
    with pytest.raises(DataError) as refused:
        opened(parts, tmp_path)
    assert "part-2.parquet" in str(refused.value)
    assert "row 153" in str(refused.value)
    assert message in str(refused.value)
    assert not (tmp_path / "rows").exists()
    if column == "dry":  # in memory, it is a column of three categories
        assert "or categories with --categories 'dry'" in str(refused.value)
        return
    with pytest.raises(DataError) as whole:
        read_table(frame)
    assert str(refused.value).splitlines()[1] == str(whole.value).splitlines()[1].replace("753", "153")


def test_rows_that_are_removed_meanwhile_are_named(tmp_path):
    messy().to_csv(tmp_path / "table.csv", index=False)
    source = opened(tmp_path / "table.csv", tmp_path)
    shutil.rmtree(tmp_path / "rows")
    with pytest.raises(DataError, match=r"rows.bin cannot be read: No such file.*; the same command"):
        fetch(source.train, [0])


def test_short_and_long_rows_of_a_text_file_are_named(tmp_path):
    lines = ["a,b,ranking", *["1,2,sky"] * 400, "1,2", *["1,2,sky"] * 50]
    (tmp_path / "short.csv").write_text("\n".join(lines) + "\n")
    with pytest.raises(DataError, match=r"row 400 \(line 402\): 2 cells; expected 3"):
        opened(tmp_path / "short.csv", tmp_path)
    lines[401] = "1,2,sky,4"
    (tmp_path / "long.csv").write_text("\n".join(lines) + "\n")
    with pytest.raises(DataError, match=r"row 400 \(line 402\): 4 cells; expected 3"):
        opened(tmp_path / "long.csv", tmp_path)


def test_what_needs_all_rows_in_memory_is_refused(tmp_path):
    frame = messy(50)
    frame.assign(ranker="ann", id=range(50)).to_csv(tmp_path / "rankers.csv", index=False)
    with pytest.raises(DataError, match="several rankers"):
        opened(tmp_path / "rankers.csv", tmp_path)
    frame.assign(text=[f"a long text {number}" for number in range(50)]).to_csv(tmp_path / "texts.csv")
    with pytest.raises(DataError, match="column 'text' holds texts"):
        opened(tmp_path / "texts.csv", tmp_path)
    parts = write_parts(frame, tmp_path / "parts", (20,))
    frame.drop(columns="slope").to_parquet(parts / "part-9.parquet")
    with pytest.raises(DataError, match=r"part-9.parquet: no feature columns \['slope'\]"):
        opened(parts, tmp_path)
    frame.drop(columns="weight").to_parquet(parts / "part-9.parquet")
    with pytest.raises(DataError, match=r"part-9.parquet: has no column 'weight'"):
        opened(parts, tmp_path)
    with pytest.raises(DataError, match="cannot be streamed"):
        find_rows(tmp_path / "x.npz", stream=True)


@pytest.mark.parametrize("seen", [True, False])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"label:sky": "label:Sky"}, "'Sky' is not in both"),
        (
            {"label:sky": None},
            "part-2.parquet: its label columns are ['sea'], those of the first files ['sea', 'sky']",
        ),
        ({None: "label:sun"}, "'sun' is not in both"),
        ({"city": "City"}, "'City' is not in both"),
    ],
)
def test_a_file_with_other_columns_is_refused_wherever_it_is(change, message, seen, tmp_path, monkeypatch):
    """Its orders would be those of other labels, its categories those of another column."""
    if not seen:
        monkeypatch.setattr(looking, "_OTHERS", 1)  # the second
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"city": rng.choice(["Rome", "Oslo"], 60), "height": rng.normal(size=60)})
    frame = frame.assign(**{"label:sea": rng.integers(0, 3, 60), "label:sky": rng.integers(0, 3, 60)})
    parts = write_parts(frame, tmp_path / "parts", (20, 40))
    assert opened(parts, tmp_path / "whole").labels == ("sea", "sky")
    ((old, new),) = change.items()
    last = frame[40:].drop(columns=old) if new is None else frame[40:].rename(columns={old: new})
    (last.assign(**{new: 1}) if old is None else last).to_parquet(parts / "part-2.parquet", index=False)
    with pytest.raises(DataError) as refused:
        opened(parts, tmp_path)
    assert message in str(refused.value)


def test_the_row_of_a_gap_or_a_list_is_that_of_its_file(tmp_path):
    frame = pd.DataFrame({"height": np.arange(60.0), "label:sea": 1.0, "label:sky": 0.0})
    frame.loc[47, "label:sky"] = np.nan
    parts = write_parts(frame, tmp_path / "parts", (20, 40))
    with pytest.raises(DataError, match=r"part-2.parquet:\n  column 'label:sky': nothing in row 7;"):
        opened(parts, tmp_path)
    frame[40:].assign(**{"height": [[1.0]] * 20, "label:sky": 0}).to_parquet(parts / "part-2.parquet")
    with pytest.raises(DataError, match=r"part-2.parquet:\n  column 'height': row 0 is array"):
        opened(parts, tmp_path)


def test_large_tables_are_streamed_and_small_ones_are_not(tmp_path, monkeypatch):
    from gaussianmlr.data.streaming import files

    parts = write_parts(messy(), tmp_path / "parts")
    assert find_rows(parts) is None
    assert find_rows("gray-s") is None
    monkeypatch.setattr(files, "STREAM_ABOVE", 8 * ROWS * 7 - 1)  # bytes of its cells
    assert [file.name for file in find_rows(parts).files] == [f"part-{number}.parquet" for number in range(4)]
    assert find_rows(parts, stream=False) is None


def test_parquet_files_in_subfolders_are_found_and_marks_are_not(tmp_path):
    frame = messy(40)
    for year in ("b", "a"):
        (tmp_path / "all" / year).mkdir(parents=True)
        frame.to_parquet(tmp_path / "all" / year / "part.parquet", index=False)
        (tmp_path / "all" / year / "_part.parquet").touch()
    found = find_rows(tmp_path / "all", stream=True)
    assert [found.name(file) for file in found.files] == ["a/part.parquet", "b/part.parquet"]
    assert len(find_data(tmp_path / "all")) == 80


def test_what_is_not_read_of_a_folder_of_parquet_files_is_told(tmp_path):
    frame = messy(40)
    parts = write_parts(frame, tmp_path / "parts", (20,))
    (parts / "year=2024").mkdir()
    frame.to_parquet(parts / "year=2024" / "late.parquet", index=False)
    assert "not read: 1 in folders below, such as year=2024/late.parquet" in find_data(parts).notes
    for number in (0, 1):
        (parts / f"part-{number}.parquet").rename(parts / "year=2024" / f"part-{number}.parquet")
    found = find_data(parts)
    assert len(found) == 80
    assert "folders such as 'year=2024' are not read as columns" in found.notes


def test_pictures_are_read_when_they_are_needed(tmp_path):
    image = pytest.importorskip("PIL.Image")
    rng = np.random.default_rng(0)
    (tmp_path / "photos").mkdir()
    for number in range(150):
        pixels = rng.integers(0, 255, (12, 10, 3), dtype=np.uint8)
        image.fromarray(pixels).save(tmp_path / "photos" / f"{number}.png")
    frame = pd.DataFrame(
        {"image": [f"{n}.png" for n in range(150)], "ranking": ["sky > sea", "sea", "sun"] * 50}
    )
    frame.to_csv(tmp_path / "photos" / "manifest.csv", index=False)
    whole = open_data(tmp_path / "photos", image_size=8)
    rows = find_rows(tmp_path / "photos", stream=True)
    streamed = open_rows(rows, looking.look(rows), tmp_path / "rows", image_size=8, channels=3)
    assert streamed.inputs == whole.inputs
    for part in ("train", "validation"):
        one, other = getattr(streamed, part), getattr(whole, part)
        where = list(range(len(other)))[::-7]
        for found, expected in zip(fetch(one, where), fetch(other, where), strict=True):
            assert torch.equal(found, expected)
    frame.loc[140, "image"] = "nowhere.png"
    frame.to_csv(tmp_path / "photos" / "manifest.csv", index=False)
    with pytest.raises(DataError, match=r"nowhere.png: does not exist"):
        open_rows(find_rows(tmp_path / "photos", stream=True), looking.look(rows), tmp_path / "rows")


def test_files_named_after_splits_are_not_one_table(tmp_path):
    for name in ("train-0", "train-1", "test-0"):
        messy(20).to_csv(tmp_path / f"{name}.csv", index=False)
    with pytest.raises(DataError, match=r"holds test-0.csv, train-0.csv, train-1.csv; name the one to read"):
        find_data(tmp_path)
    (tmp_path / "test-0.csv").unlink()
    assert len(find_data(tmp_path)) == 40
    assert check(tmp_path).statistics["instances"] == 40


@pytest.mark.parametrize(
    ("options", "layout"),
    [({"threshold": 2.0, "tolerance": 0.5}, Layout()), ({}, Layout(positions=True))],
)
def test_label_columns_are_read_as_grades_or_positions(options, layout, tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=500), "b": rng.normal(size=500).round(1)})
    grades = rng.permuted(np.tile([1.0, 2.0, 3.0], (500, 1)), axis=1)
    for place, name in enumerate(("red", "green", "blue")):
        frame[f"label:{name}"] = grades[:, place]
    parts = write_parts(frame, tmp_path / "parts", (100, 130))
    frame.to_csv(tmp_path / "whole.csv", index=False)
    whole = find_data(tmp_path / "whole.csv", layout=layout, **options)
    same_as_in_memory(opened(parts, tmp_path, layout=layout, **options), open_data(whole))

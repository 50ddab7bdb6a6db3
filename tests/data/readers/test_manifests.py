"""A folder of pictures and its manifest: any format, and no way out of the folder."""

import json

import pandas as pd
import pytest
from PIL import Image

from gaussianmlr import DataError
from gaussianmlr.data import read_images


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "set"
    (folder / "more").mkdir(parents=True)
    for name in ("a.png", "b.png", "more/c.png"):
        Image.new("RGB", (8, 6), "green").save(folder / name)
    Image.new("RGB", (8, 6), "red").save(tmp_path / "secret.png")
    return folder


ROWS = [
    {"image": "a.png", "ranking": "sky > sea", "split": "train", "weight": 1},
    {"image": "b.png", "ranking": "sea", "split": "train", "weight": 2},
    {"image": "more/c.png", "ranking": "", "split": "test", "weight": 3},
]


@pytest.mark.parametrize("kind", ["csv", "parquet", "jsonl", "tsv"])
def test_every_format_of_a_manifest(folder, kind):
    frame, path = pd.DataFrame(ROWS), folder / f"manifest.{kind}"
    if kind == "parquet":
        frame.to_parquet(path)
    elif kind == "jsonl":
        path.write_text("\n".join(map(json.dumps, ROWS)))
    else:
        frame.to_csv(path, index=False, sep="," if kind == "csv" else "\t")
    for source in (folder, path):
        data = read_images(source)
        assert data.orders() == ["sky > sea", "sea", ""]
        assert data.images == (folder / "a.png", folder / "b.png", folder / "more" / "c.png")
        assert data.ids == ("a.png", "b.png", "more/c.png")
        assert data.splits == {"train": 2, "test": 1}
        assert data.weights.tolist() == [1, 2, 3]
        assert data.features is None


def write(folder, text):
    (folder / "manifest.csv").write_text(text)
    return folder


def test_several_rankers_of_one_image(folder):
    text = "image,ranker,ranking\na.png,1,sky > sea\na.png,2,sky\nb.png,1,sea\n"
    data = read_images(write(folder, text))
    assert data.ids == ("a.png", "b.png")
    assert data.by_ranker.tolist() == [[[1, 2], [0, 1]], [[1, 0], [-1, -1]]]
    assert data.ranks.tolist()[1] == [1, 0]


def test_label_columns_and_pictures_elsewhere(folder, tmp_path):
    (tmp_path / "list.csv").write_text("image,label:sky,label:sea,note\na.png,0.9,0.1,nice\nb.png,0,1,\n")
    data = read_images(tmp_path / "list.csv", folder=folder, threshold=0.0)
    assert data.orders() == ["sky > sea", "sea"]
    assert data.images[0] == folder / "a.png"


def test_paths_written_on_windows(folder):
    assert read_images(write(folder, "image,ranking\nmore\\c.png,sky\n")).images[0].is_file()


@pytest.mark.parametrize("name", ["../secret.png", "more/../../secret.png", "{absolute}", "link.png"])
def test_nothing_outside_the_folder_is_read_unless_allowed(folder, tmp_path, name):
    if name == "link.png":
        (folder / "link.png").symlink_to(tmp_path / "secret.png")
    name = name.format(absolute=tmp_path / "secret.png")
    write(folder, f"image,ranking\na.png,sky\n{name},sky\n")
    with pytest.raises(DataError, match=r"secret\.png: leads out of the folder|link\.png: leads out"):
        read_images(folder)
    assert len(read_images(folder, allow_outside=True)) == 2


def test_every_bad_row_is_named_at_once(folder):
    text = "image,ranking\na.png,sky >\nb.png,sky\nnone.png,sky\nmore,sky\nb.png,sea\n,sky\n"
    with pytest.raises(DataError) as caught:
        read_images(write(folder, text))
    message = str(caught.value)
    assert "5 problems in manifest.csv" in message
    assert "row 0 (id 'a.png'): 'sky >': empty bucket" in message
    assert "none.png: does not exist" in message
    assert "more: is a folder" in message
    assert "row 4: id 'b.png' is also in row 1" in message
    assert "row 5: nothing in column 'image'" in message


def test_manifests_that_cannot_be_found(folder):
    with pytest.raises(DataError, match=r"no manifest; expected one of manifest\.csv"):
        read_images(folder)
    write(folder, "shot,ranking\na.png,sky\n")
    with pytest.raises(DataError, match=r"no column 'image' \(id\)"):
        read_images(folder)
    (folder / "manifest.jsonl").write_text("")
    with pytest.raises(DataError, match=r"holds manifest\.csv, manifest\.jsonl; name the one"):
        read_images(folder)

"""Names and paths to data that is ready to train on, and to be tested on."""

import copy

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image

from gaussianmlr import DataError
from gaussianmlr.data import from_arrays
from gaussianmlr.data.inputs import scaled
from gaussianmlr.data.loading import batches
from gaussianmlr.data.open import find_data, open_data
from gaussianmlr.data.splits import split as split_of
from gaussianmlr.training.defaults import default_recipe
from support.commanding import make_table


@pytest.fixture
def table(tmp_path):
    make_table().to_csv(tmp_path / "table.csv", index=False)
    return tmp_path / "table.csv"


def test_a_table_is_standardised_by_its_training_part(table):
    source = open_data(table)
    x = source.train.inputs
    assert torch.allclose(x.mean(0), torch.zeros(4), atol=1e-5)
    assert torch.allclose(x.std(0, unbiased=False), torch.ones(4), atol=1e-5)
    raw = make_table()
    raw = raw[raw["split"] == "test"][["a", "b", "c", "d"]].to_numpy()
    assert torch.equal(source.test.inputs, scaled(raw, source.inputs))
    assert source.inputs["columns"] == ["a", "b", "c", "d"]
    assert len(source.train) + len(source.validation) == 120


def test_what_is_held_out_depends_on_ids_alone():
    def held(ids):
        data = from_arrays(np.arange(float(len(ids)))[:, None], [["x"]] * len(ids), labels=["x"], ids=ids)
        parts, notes = split_of(data)
        assert notes == [
            f"no split: {round(len(ids) / 5)} of {len(ids)} training instances are held out for validation"
        ]
        return set(parts["validation"].ids), set(parts["train"].ids)

    ids = [f"photo {number}" for number in range(50)]
    validation, train = held(ids)
    assert (validation, train) == held(ids[::-1])
    assert len(validation) == 10
    assert not validation & train


def test_rows_of_one_id_stay_together():
    ids = [f"photo {number}" for number in range(20) for _ in range(3)]
    data = from_arrays(np.arange(60.0)[:, None], [["x"]] * 60, labels=["x"], ids=ids)
    parts, notes = split_of(data)
    assert len(parts["validation"]) == 12
    assert not set(parts["validation"].ids) & set(parts["train"].ids)
    assert "12 of 60" in notes[0]
    with pytest.raises(DataError, match="all rows have the id 'a'; expected two ids"):
        split_of(from_arrays(np.zeros((3, 1)), [["x"]] * 3, labels=["x"], ids=["a"] * 3))


def test_a_constant_column_breaks_nothing():
    data = from_arrays(np.full((10, 2), 0.1), [["x"]] * 10, labels=["x"])
    assert torch.isfinite(open_data(data).train.inputs).all()


def test_names_of_splits(tmp_path):
    frame = make_table()
    frame["split"] = np.resize(["Train", "val", "train", "test"], len(frame))
    frame.to_parquet(tmp_path / "t.parquet")
    source = open_data(tmp_path / "t.parquet")
    assert (len(source.train), len(source.validation), len(source.test)) == (80, 40, 40)
    frame["split"] = "test"
    frame.to_parquet(tmp_path / "t.parquet")
    with pytest.raises(DataError, match="no instance has the split 'train'; it has \\['test'\\]"):
        open_data(tmp_path / "t.parquet")


def test_splits_that_nobody_knows_are_left_out_with_a_note(tmp_path):
    frame = make_table()
    frame["split"] = np.resize(["train", "train", "test", "tset"], len(frame))
    frame.to_csv(tmp_path / "t.csv", index=False)
    note = "40 of 160 instances are in 'tset', which training leaves out; known are train, val, valid, dev, "
    assert [one for one in open_data(tmp_path / "t.csv").notes if "tset" in one] == [
        f"{note}validation, test"
    ]
    frame["split"] = np.resize(["train", "val", "trian", "tset"], len(frame))
    _, notes = split_of(from_arrays(np.zeros((160, 1)), [["x"]] * 160, labels=["x"], split=frame["split"]))
    assert notes == [note.replace("40 of", "80 of").replace("'tset'", "'trian', 'tset'") + "validation, test"]


def test_orders_alone_teach_nothing(tmp_path):
    make_table()[["ranking"]].to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises(DataError, match="holds orders alone"):
        open_data(tmp_path / "t.csv")


@pytest.fixture
def pictures(tmp_path):
    rows = []
    for number in range(6):
        Image.new("RGB", (20 + number, 16), (number * 40, 0, 255)).save(tmp_path / f"{number}.png")
        for ranker, order in (("ann", "sky > sea"), ("bob", "sea")):
            rows.append({"image": f"{number}.png", "ranker": ranker, "ranking": order})
    pd.DataFrame(rows).to_csv(tmp_path / "manifest.csv", index=False)
    return tmp_path


def test_pictures_of_reliable_rankers(pictures):
    source = open_data(pictures, image_size=32, rankers="reliable", seed=3)
    assert source.train.ranks.shape == (5, 2, 2)
    alone = copy.copy(source.train)
    alone.shares = torch.tensor([1.0, 1e-9])
    assert alone.tensors_at(range(5), 2)[1].tolist() == [[1, 2]] * 5


def test_pictures_of_every_ranker(pictures):
    source = open_data(pictures, image_size=32, rankers="all", seed=3)
    assert source.inputs["preprocess"]["size"] == [32, 32]
    assert source.inputs["channels"] == 3
    order = torch.arange(len(source.train))
    seen = set()
    for epoch in range(6):
        (batch,) = batches(source.train, order, 8, epoch=epoch)
        assert batch.inputs.shape == (5, 3, 32, 32)
        assert 0 <= batch.inputs.min() <= batch.inputs.max() <= 1
        seen |= {tuple(ranks) for ranks in batch.ranks.tolist()}
    assert seen == {(1, 2), (1, 0)}
    (batch,) = batches(open_data(pictures, image_size=32).train, order, 8)
    assert batch.ranks.shape == (5, 2)
    (empty,) = batches(source.train, order[:1], 8, rank=1, world=2)
    assert empty.inputs.shape == (0, 3, 32, 32)


def test_gray_pictures_stay_gray(pictures):
    for file in pictures.glob("*.png"):
        Image.open(file).convert("L").save(file)
    assert open_data(pictures, image_size=32).train[0][0].shape == (1, 32, 32)
    assert open_data(pictures, image_size=32, channels=3).train[0][0].shape == (3, 32, 32)


def test_ranked_mnist_by_name():
    source = open_data("color-b", size=60, digits="embedded")
    assert (len(source.train), len(source.validation), len(source.test)) == (60, 10, 10)
    assert source.inputs["channels"] == 3
    assert source.fingerprint != open_data("color-b", size=120, digits="embedded").fingerprint
    assert default_recipe(find_data("color-b")).backbone == "fast"


def test_size_is_for_sets_that_are_drawn(table):
    with pytest.raises(DataError, match="size is for Ranked MNIST"):
        open_data(table, size=5)


def test_sizes_of_pictures(table, pictures):
    for side in (0, -3):
        for data in (table, pictures, "gray-s"):
            with pytest.raises(DataError, match=f"image_size is {side}; expected 1 or more"):
                open_data(data, image_size=side)
    for data in (table, "gray-s"):
        with pytest.raises(DataError, match="image_size is for pictures, got 32"):
            open_data(data, image_size=32)

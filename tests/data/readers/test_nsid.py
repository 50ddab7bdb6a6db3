"""NSID: the numbers known of the set, and small sets in its layout."""

import shutil

import numpy as np
import pytest

from gaussianmlr import DataError
from gaussianmlr.data import read_nsid
from gaussianmlr.data.readers.nsid import LABELS
from support.fakes import nsid
from support.shared import needs

SKY, CLOUD, SUN = (LABELS.index(name) + 1 for name in ("sky", "cloud", "sun"))
RANKINGS = [
    [(SKY, CLOUD), (CLOUD, SKY), (SKY,)],
    [(SUN,), (SUN,), (SUN, SKY)],
    [(), (), ()],
    [(SKY,), (SKY, SUN), (SKY, SUN)],
]
SPLIT = {"train": [1, 2, 3], "test": [4]}


def test_orders_of_every_ranker_and_of_all(tmp_path):
    data = read_nsid(nsid(tmp_path, RANKINGS, SPLIT, [1, 2, 3, 4]))
    assert data.labels == LABELS
    assert data.ids == ("1", "2", "4")
    assert data.by_ranker.shape == (3, 3, 9)
    assert data.by_ranker[0, :, [SKY - 1, CLOUD - 1]].T.tolist() == [[2, 1], [1, 2], [1, 0]]
    # Image 1, by hand: sky stands at 1, 2, 1; cloud at 2, 1, 3 (irrelevant); the virtual label at 3, 3, 2.
    assert data.orders() == ["sky > cloud", "sun", "sky > sun"]
    assert data.split.tolist() == ["train", "train", "test"]
    assert [image.name for image in data.images] == ["1.jpg", "2.jpg", "4.jpg"]
    assert data.notes == ("image 3 left out: no label is relevant after aggregation (mean_rank)",)


def test_any_subset_of_the_pictures(tmp_path):
    data = read_nsid(nsid(tmp_path, RANKINGS, SPLIT, [4, 3]))
    assert data.ids == ("4",)
    assert "2 images left out: their pictures are not there" in data.notes
    assert len(read_nsid(tmp_path, orders_only=True)) == 3


@pytest.mark.parametrize("kind", ["zip", "gztar"])
def test_an_archive_is_as_good_as_a_folder(tmp_path, kind):
    nsid(tmp_path / "nsid" / "inner", RANKINGS, SPLIT, [1, 2, 4])
    archive = shutil.make_archive(str(tmp_path / "scenes"), kind, tmp_path / "nsid")
    assert read_nsid(archive).fingerprint() == read_nsid(tmp_path / "nsid").fingerprint()


def test_features_instead_of_pictures(tmp_path):
    nsid(tmp_path, RANKINGS, SPLIT)
    values = np.arange(8.0).reshape(4, 2)
    np.save(tmp_path / "f.npy", values)
    np.savez(tmp_path / "f.npz", features=values[[3, 0]], numbers=[4, 1])
    for features in (values, tmp_path / "f.npy"):
        data = read_nsid(tmp_path, features=features)
        assert data.features.tolist() == [[0, 1], [2, 3], [6, 7]]
    data = read_nsid(tmp_path, features=tmp_path / "f.npz")
    assert data.ids == ("1", "4")
    assert data.features.tolist() == [[0, 1], [6, 7]]
    assert "1 images left out: no features of theirs were given" in data.notes
    with pytest.raises(DataError, match="expected features of 4 images"):
        read_nsid(tmp_path, features=values[:2])
    np.savez(tmp_path / "g.npz", features=values, numbers=[1, 2, 3, 9])
    with pytest.raises(DataError, match=r"one number 1\.\.4 per row"):
        read_nsid(tmp_path, features=tmp_path / "g.npz")


def test_what_is_missing_is_explained(tmp_path):
    with pytest.raises(DataError, match=r"no pic_scene\.mat\. NSID is a folder .*Geng and Luo"):
        read_nsid(tmp_path)
    nsid(tmp_path, RANKINGS)
    with pytest.raises(DataError, match=r"no pictures such as 1\.jpg"):
        read_nsid(tmp_path)
    data = read_nsid(tmp_path, orders_only=True)
    assert data.split is None
    assert "no config.json: the data has no split" in data.notes


def test_rows_and_splits_that_cannot_be(tmp_path):
    bad = [1, 2, 3, 4, 5, 6, 7, 8, 9, 9]
    nsid(tmp_path, [[(SKY,)], [bad], [(SUN,)]], {"train": [1, 2, 7], "test": [1, 3, "x"]})
    with pytest.raises(DataError) as caught:
        read_nsid(tmp_path, orders_only=True)
    message = str(caught.value)
    assert "4 problems" in message
    assert "image 2: [1, 2, 3, 4, 5, 6, 7, 8, 9, 9]; expected a permutation of 1..10" in message
    assert "config.json: 7 in 'train'; expected numbers 1..3" in message
    assert "config.json: image 1 is in 'train' and in 'test'" in message
    assert "config.json: 'x' in 'test'" in message


def test_the_published_set():
    folder = needs("nsid", "pic_scene.mat").parent
    data = read_nsid(folder, orders_only=True)
    assert len(data) == 1999
    assert data.notes == ("image 254 left out: no label is relevant after aggregation (mean_rank)",)
    assert data.by_ranker.shape == (1999, 10, 9)
    assert data.splits == {"train": 1599, "test": 400}
    found = data.describe()
    assert found["ties"] == 92
    assert (found["positives"]["min"], found["positives"]["max"]) == (1, 7)


def test_how_well_people_agree_on_the_published_set():
    from gaussianmlr.rankers import agreement

    folder = needs("nsid", "pic_scene.mat").parent
    rest = agreement(read_nsid(folder, orders_only=True).subset("test").by_ranker).against_rest
    known = {
        "tau_b": 85.8,
        "spearman_rho": 88.2,
        "gamma": 92.2,
        "hamming_loss": 6.9,
        "max1_error": 2.9,
        "f1": 86.6,
    }
    assert {name: round(100 * value, 1) for name, value in rest.items()} == known

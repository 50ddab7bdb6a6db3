"""RankedData: it holds together, parts of it stay aligned, and its fingerprint sees every change."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from gaussianmlr import DataError
from gaussianmlr.data import RankedData
from gaussianmlr.data.statistics import first_shares, places

LABELS = ("mountain", "sky", "sun")


def small(**changes):
    parts = {
        "ranks": [[2, 1, 0], [0, 1, 1], [1, 0, -1], [0, 0, 3]],
        "labels": LABELS,
        "features": np.arange(8.0).reshape(4, 2),
        "split": ["train", "test", "train", "test"],
        "weights": [1, 2, 3, 4],
        "ids": ["a", "b", "c", "d"],
        "by_ranker": [[[2, 1, 0], [-1, -1, -1]]] * 4,
        "source": "a test",
    }
    return RankedData(**{**parts, **changes})


@pytest.mark.parametrize(
    ("which", "ids"),
    [
        ("test", ("b", "d")),
        ([True, False, False, True], ("a", "d")),
        ([3, 0], ("d", "a")),
        ([-1], ("d",)),
        ([], ()),
    ],
)
def test_every_part_of_a_subset_stays_aligned(which, ids):
    part = small().subset(which)
    assert part.ids == ids
    numbers = ["abcd".index(name) for name in ids]
    assert part.features.tolist() == [[2.0 * i, 2.0 * i + 1] for i in numbers]
    assert part.weights.tolist() == [i + 1.0 for i in numbers]
    assert part.split.tolist() == [["train", "test", "train", "test"][i] for i in numbers]
    assert part.ranks.tolist() == [[[2, 1, 0], [0, 1, 1], [1, 0, -1], [0, 0, 1]][i] for i in numbers]
    assert part.by_ranker.shape == (len(ids), 2, 3)
    assert len(part.orders()) == len(ids)


@pytest.mark.parametrize(
    ("which", "message"),
    [
        ("validation", r"no split 'validation'; the data has \['train', 'test'\]"),
        ([True, False], "mask of 4 booleans"),
        ([4], "numbers below 4"),
        ([0.5], "name of a split, a mask or a list of numbers"),
    ],
)
def test_subsets_that_cannot_be(which, message):
    with pytest.raises(DataError, match=message):
        small().subset(which)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"labels": LABELS[:2]}, "expected 2 columns of ranks, one per label, got 3"),
        ({"features": np.zeros((3, 2))}, r"shape \[4, D\], got shape \[3, 2\]"),
        ({"features": [["red", 1]] * 4}, "`from_arrays` reads texts"),
        ({"features": [[0, np.inf]] * 4}, "rows 0, 1, 2 and 1 more: inf in column 1"),
        ({"images": ["a.png"] * 4}, "features or an image, not both"),
        ({"weights": [1, -1, 1, 1]}, r"row 1: weight -1\.0"),
        ({"weights": [1]}, "expected 4 weights"),
        ({"split": ["train"]}, "expected 4 split"),
        ({"ids": ["a"]}, "expected 4 ids"),
        ({"by_ranker": np.zeros((4, 3))}, r"shape \[4, rankers, 3\]"),
        ({"rankers": ["x", "x"]}, "2 different names of rankers"),
        ({"feature_names": ["one"]}, "expected 2 feature names, got 1"),
    ],
)
def test_parts_that_do_not_fit_are_named(changes, message):
    with pytest.raises(DataError, match=message):
        small(**changes)


def test_the_fingerprint_sees_contents_and_nothing_else(tmp_path):
    data = small()
    assert data.fingerprint() == small(source="elsewhere", notes=["left out"]).fingerprint()
    assert data.fingerprint() == small(features=data.features.astype(np.float32)).fingerprint()
    changed = [
        {"features": data.features + 1e-9},
        {"ranks": [[1, 2, 0], [0, 1, 1], [1, 0, -1], [0, 0, 1]]},
        {"labels": ("mountain", "sky", "moon")},
        {"labels": ("mountain", "skys", "un")},
        {"split": ["train"] * 4},
        {"weights": None},
        {"ids": ["a", "b", "c", "e"]},
    ]
    prints = {small(**change).fingerprint() for change in changed}
    assert len(prints | {data.fingerprint()}) == len(changed) + 1


def test_the_fingerprint_follows_the_bytes_of_images_not_their_place(tmp_path):
    prints = []
    for name, content in [("x", b"one"), ("y", b"one"), ("z", b"two")]:
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.png").write_bytes(content)
        data = RankedData([[1, 0]], ["sky", "sun"], images=[tmp_path / name / "a.png"], ids=["a.png"])
        prints.append(data.fingerprint())
    assert prints[0] == prints[1] != prints[2]
    assert data.fingerprint(files=False) not in prints
    gone = replace(data, images=(tmp_path / "gone.png",))
    with pytest.raises(DataError, match=r"gone\.png: cannot be read"):
        gone.fingerprint()


def test_a_repr_says_what_there_is():
    assert repr(small()) == (
        "RankedData: 4 instances of 2 features, 3 labels (mountain, sky, sun), 2 rankers, "
        "split train 2, test 2, from a test"
    )
    assert small(features=None).kind == "orders"


@given(arrays.arrays(np.int64, st.tuples(st.integers(1, 5), st.integers(1, 5)), elements=st.integers(-1, 3)))
def test_statistics_against_loops(ranks):
    ranks = RankedData(ranks, [str(i) for i in range(ranks.shape[1])]).ranks  # dense
    found = RankedData(ranks, [str(i) for i in range(ranks.shape[1])]).describe()
    for label in range(ranks.shape[1]):
        place_sum, relevant, first = 0.0, 0, 0.0
        for row in ranks.tolist():
            if row[label] > 0:
                relevant += 1
                higher = sum(rank > row[label] for rank in row)
                equal = row.count(row[label])
                place_sum += sum(range(higher + 1, higher + equal + 1)) / equal
                first += (row[label] == max(row)) / row.count(max(row))
        entry = found["labels"][str(label)]
        assert entry["relevant"] == relevant
        assert entry["first"] == pytest.approx(first)
        assert entry["mean_place"] == (pytest.approx(place_sum / relevant) if relevant else None)
    ties = sum(len([r for r in row if r > 0]) != len({r for r in row if r > 0}) for row in ranks.tolist())
    assert found["ties"] == ties
    assert found["unknown"] == sum(row.count(-1) for row in ranks.tolist())
    assert sum(found["positives"]["histogram"].values()) == found["instances"] == len(ranks)
    assert first_shares(ranks).sum() == pytest.approx(len(ranks) - found["empty"])
    assert (np.isnan(places(ranks)) == (ranks <= 0)).all()


def test_statistics_of_rankers_and_weights():
    found = small().describe()
    assert found["rankers"] == {
        "count": 2,
        "orders": {"1": 4, "2": 0},
        "an_instance": {"min": 1, "max": 1},
    }
    assert found["weights"] == {"sum": 10.0, "max": 4.0}
    assert found["splits"] == {"train": 2, "test": 2}
    assert small().subset([]).describe()["positives"]["mean"] is None

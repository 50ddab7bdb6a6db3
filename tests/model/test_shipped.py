"""Models that come with the package, and weights in 16 bits."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.torch import load_file

import gaussianmlr
from gaussianmlr.data import RankedMNIST
from gaussianmlr.errors import DataError
from gaussianmlr.model.shipped import place_of, shipped_names
from support.commanding import gmlr
from support.paging import digit_model


def test_every_name_loads_and_a_wrong_one_lists_them():
    for name in shipped_names():
        assert gaussianmlr.load(f"shipped:{name}").labels
    with pytest.raises(DataError, match=r"no model 'birds' comes with the package; expected one of .*gray-s"):
        gaussianmlr.load("shipped:birds")
    with pytest.raises(DataError, match=r"no model '\.\./gray-s'"):
        gaussianmlr.load("shipped:../gray-s")


def test_all_of_them_are_small():
    folders = [place_of(f"shipped:{name}") for name in shipped_names()]
    assert sum(file.stat().st_size for folder in folders for file in folder.iterdir()) <= 5_000_000


@pytest.mark.slow
def test_one_takes_photographs(tmp_path):
    """Those of the README, beside what a person sees; the backbone comes from its package."""
    photos = Path(__file__).parents[2] / "examples/photos"
    done = gmlr("predict", "shipped:nsid", str(photos), "--out", str(tmp_path / "out.csv"))
    assert done.returncode == 0, done.stderr
    rows = pd.read_csv(tmp_path / "out.csv")
    orders = {Path(name).stem: order.split(" > ") for name, order in zip(rows["name"], rows["order"])}
    assert orders["china"][0] == "building"
    assert orders["flower"] == ["plant"]
    assert orders["picos-de-europa"][:2] == ["mountain", "snow"]
    assert orders["sunset"][0] == "sky"
    assert set(orders["aizkorri"]) >= {"mountain", "plant"}
    assert set(orders["brook"]) == {"plant", "water"}
    assert len(orders) == 6


@pytest.mark.slow
def test_commands_take_the_names():
    told = gmlr("info", "shipped:gray-s", "--json")
    assert '"labels"' in told.stdout
    found = gmlr("evaluate", "shipped:gray-s", "gray-s", "--digits", "embedded", "--size", "64", "--json")
    assert found.returncode == 0


def test_half_the_size_is_nearly_the_same_model(tmp_path):
    """The bound is that of a 16-bit float: 11 bits of each weight."""
    model = gaussianmlr.load("shipped:gray-s")
    half = model.save(tmp_path / "half", half=True)
    weights, small = (
        load_file(model.save(tmp_path / "whole") / "model.safetensors"),
        load_file(half / "model.safetensors"),
    )
    for name, tensor in weights.items():
        if tensor.is_floating_point():
            assert small[name].dtype == torch.float16
            close = (small[name].float() - tensor).abs() <= 2**-11 * tensor.abs() + 2**-25
            assert close.all(), name
    again = gaussianmlr.load(half)
    assert {one.dtype for one in again.network.parameters()} == {torch.float32}
    images = torch.stack([RankedMNIST("gray-s", "test", size=32, digits="embedded")[i][0] for i in range(32)])
    one, other = model.predict(images), again.predict(images)
    assert np.abs(one.significance - other.significance).max() < 0.05
    assert np.mean([a == b for a, b in zip(one.orders, other.orders)]) >= 0.9


def test_a_weight_too_large_for_half_is_refused(tmp_path):
    model = digit_model()
    with torch.no_grad():
        next(model.network.parameters()).fill_(1e6)
    with pytest.raises(DataError, match="1e\\+06, too large for 16 bits"):
        model.save(tmp_path / "half", half=True)
    assert not (tmp_path / "half").exists()

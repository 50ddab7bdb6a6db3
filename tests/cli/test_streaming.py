"""`evaluate` and `predict` of folders of tables say what they say of one table."""

import json

import numpy as np
import pandas as pd
import pytest

from gaussianmlr import DataError
from support.commanding import call, make_table

pytest.importorskip("pyarrow")
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A table with a test part as one file and as a folder of three, and a run on streamed rows of it."""
    place = tmp_path_factory.mktemp("streamed")
    frame = make_table(300)
    frame["id"] = [f"hike {number}" for number in range(300)]
    frame.to_csv(place / "table.csv", index=False)
    (place / "parts").mkdir()
    for number, part in enumerate(np.array_split(np.arange(300), 3)):
        frame.iloc[part].to_parquet(place / "parts" / f"{number}.parquet", index=False)
    call("train", place / "parts", "--stream", "--out", place / "run", "--epochs", 3, "--quiet")
    return place


@pytest.mark.parametrize("split", ["test", "validation", "all"])
def test_a_streamed_folder_is_measured_as_the_table_is(trained, split, monkeypatch):
    monkeypatch.setenv("GAUSSIANMLR_CACHE", str(trained / "cache"))
    run = ("evaluate", trained / "run", "--split", split, "--json", "--no-peers")
    found = [
        json.loads(call(*run, trained / "table.csv")),
        json.loads(call(*run, trained / "parts")),
        json.loads(call(*run, trained / "parts", "--stream")),
        json.loads(call(*run, trained / "table.csv", "--stream")),
    ]
    assert found[0]["instances"] == {"test": 75, "validation": 45, "all": 300}[split]
    for other in found[1:]:
        assert other["instances"] == found[0]["instances"]
        assert other["metrics"] == pytest.approx(found[0]["metrics"], abs=1e-6)


def test_peers_are_measured_beside_a_model_of_streamed_rows(trained):
    found = json.loads(call("evaluate", trained / "run", trained / "parts", "--stream", "--json"))
    assert set(found["peers"]) == {"constant order"}
    assert found["peers"]["constant order"]["tau_b"] < found["metrics"]["tau_b"]


def test_a_folder_is_predicted_file_by_file(trained):
    call("predict", trained / "run", trained / "parts", "--out", trained / "folder.csv")
    call("predict", trained / "run", trained / "table.csv", "--out", trained / "table-out.csv")
    folder, table = (pd.read_csv(trained / name) for name in ("folder.csv", "table-out.csv"))
    assert folder["name"].tolist() == [f"{n // 100}.parquet:hike {n}" for n in range(300)]
    pd.testing.assert_frame_equal(folder.drop(columns="name"), table.drop(columns="name"))


def test_an_unknown_label_in_a_streamed_test_part_is_named(trained):
    frame = make_table(60)
    frame.loc[50, "ranking"] = "dune > sky"
    frame.to_csv(trained / "other.csv", index=False)
    with pytest.raises(DataError, match=r"row 50.*dune"):
        call("evaluate", trained / "run", trained / "other.csv", "--stream")

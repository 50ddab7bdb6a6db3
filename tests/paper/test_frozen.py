"""Test images are for recipes that were frozen and committed before: a real repository, pictures of noise."""

import json
import subprocess

import numpy as np
import pytest
from typer.testing import CliRunner

from gaussianmlr import DataError
from gaussianmlr.cli.main import app
from gaussianmlr.data import read_nsid
from gaussianmlr.metrics import evaluate
from gaussianmlr.paper.cells import Cell, read_cells, write_cell
from gaussianmlr.paper.evidence import Evidence
from gaussianmlr.paper.frozen import check_frozen, freeze
from gaussianmlr.paper.places import Places, Sources
from gaussianmlr.paper.plans import cells_of
from gaussianmlr.paper.run import run_cell
from gaussianmlr.paper.tables import make_table, to_markdown
from gaussianmlr.paper.values import read_values
from gaussianmlr.rankers import aggregate
from support.fakes import nsid

pytestmark = pytest.mark.slow

CELL = Cell("nsid-test", "crpc", "strong", "smoke", settings=("rankers=all",))


def git(folder, *words):
    names = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run(["git", *names, *words], cwd=folder, check=True, capture_output=True)


@pytest.fixture(scope="module")
def scenes(tmp_path_factory):
    random = np.random.default_rng(1)
    rankings = [
        [tuple(random.permutation(9)[: random.integers(1, 5)] + 1) for _ in range(3)] for _ in range(24)
    ]
    split = {"train": list(range(1, 17)), "test": list(range(17, 25))}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GAUSSIANMLR_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield nsid(tmp_path_factory.mktemp("nsid"), rankings, split, range(1, 25))


@pytest.fixture
def places(tmp_path):
    git(tmp_path, "init", "-q")
    (tmp_path / "results").mkdir()
    return Places(tmp_path / "work", tmp_path / "results")


def test_only_frozen_and_committed_recipes_meet_the_test_images(places, scenes):
    with pytest.raises(DataError, match="test images are for frozen recipes only"):
        run_cell(CELL, places, Sources(nsid=scenes))
    freeze([CELL, Cell("gray-s", "gmlr", "strong", "smoke")], places.frozen, places.cells)
    assert list(json.loads(places.frozen.read_text())["recipes"]) == [CELL.name]
    with pytest.raises(DataError, match="is not committed as it is"):
        run_cell(CELL, places, Sources(nsid=scenes))
    git(places.results, "add", "frozen.json")
    git(places.results, "commit", "-qm", "freeze")
    other = CELL.at(settings=("rankers=all", "rate=0.01"))
    with pytest.raises(DataError, match="or with another recipe"):
        run_cell(other, places, Sources(nsid=scenes))
    assert not list(places.results.glob("cells/*"))
    assert run_cell(CELL, places, Sources(nsid=scenes)) == "landed"

    found = read_cells(places.cells)
    facts, data = found[CELL], read_nsid(scenes)
    commits = subprocess.run(
        ["git", "log", "--format=%H"], cwd=places.results, capture_output=True, text=True
    )
    assert facts["frozen"]["commit"] == commits.stdout.strip()
    assert facts["data"]["selection"] == "last epoch"
    assert facts["recipe"]["rankers"] == "all"
    # Measured on the test pictures, against the aggregate, in the order of the pictures.
    test = data.subset(data.split == "test")
    values = read_values(places.cells, facts)
    assert values.ids == test.ids
    assert (values.ranks == test.ranks).all()
    tau = 100 * evaluate(values.scores, test.ranks)["tau_b"]
    assert facts["metrics"]["tau_b"] == pytest.approx(tau, abs=1e-3)
    # People: each against the mean rank of the others.
    each = [
        evaluate(test.by_ranker[:, one], aggregate(np.delete(test.by_ranker, one, 1)))["tau_b"]
        for one in range(3)
    ]
    assert facts["data"]["people"]["tau_b"] == pytest.approx(100 * np.mean(each), abs=1e-3)
    text = to_markdown(make_table("nsid-test", found, "smoke", evidence=Evidence(found, places.cells)))
    assert "People, each against the other nine (mean of ten): tau-b" in text
    assert "images, tested on 8." in text
    with pytest.raises(DataError, match="the test images were looked at by"):
        freeze([CELL], places.frozen, places.cells)


def test_a_changed_freeze_is_refused(places):
    freeze([CELL], places.frozen, places.cells)
    git(places.results, "add", "frozen.json")
    git(places.results, "commit", "-qm", "freeze")
    assert len(check_frozen(CELL, places.frozen)["sha256"]) == 64
    text = places.frozen.read_text()
    places.frozen.write_text(text.replace('"rate": 0.001', '"rate": 0.002'))
    with pytest.raises(DataError, match="its checksum is wrong"):
        check_frozen(CELL, places.frozen)
    places.frozen.write_text(text + "\n")
    with pytest.raises(DataError, match="is not committed as it is"):
        check_frozen(CELL, places.frozen)


def test_freezing_from_the_command_line(tmp_path):
    words = ["reproduce", "freeze", "--results", str(tmp_path / "r")]
    shown = CliRunner().invoke(app, words)
    assert shown.exit_code == 0, shown.exception
    frozen = json.loads((tmp_path / "r/frozen.json").read_text())["recipes"]
    wanted = cells_of("nsid-test", "cpu")
    assert set(frozen) == {cell.training.name for cell in wanted}
    assert len(frozen) == 6 * 5 * 2  # six methods, five seeds, the aggregate and all rankers
    kept = {
        "metrics": dict.fromkeys(("tau_b", "spearman_rho", "gamma", "hamming_loss", "max1_error", "f1"), 1.0)
    }
    write_cell(tmp_path / "r/cells", wanted[0], {**kept, "images_seen": 1, "seconds": 1.0})
    with pytest.raises(DataError, match="cannot be frozen after that"):
        raise CliRunner().invoke(app, words).exception
